"""Counts for the owner's monitoring, in the format of Prometheus. None depends on an answer, or on its time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from discreet.extras import need


class Counters:
    """How many requests came, by verb and by outcome."""

    TYPE = "text/plain; version=0.0.4; charset=utf-8"

    def __init__(self) -> None:
        self._library = need("prometheus_client", "gateway", "discreet serve")
        self._registry = self._library.CollectorRegistry()
        self._requests = self._library.Counter(
            "discreet_requests", "Requests by verb and outcome.", ["verb", "outcome"], registry=self._registry
        )
        self._gauges = {
            name: self._library.Gauge(f"discreet_{name}", said, registry=self._registry)
            for name, said in (
                ("waiting", "Questions that wait for a lane."),
                ("late", "Late answers since the owner last looked."),
                ("charged", "Charged questions since the owner last looked."),
                ("bits", "How many bits time may have told since then."),
            )
        }

    def count(self, verb: str, header: Mapping[str, Any]) -> None:
        """Count a request and its outcome: answered, or the code of its error."""
        self._requests.labels(verb, "ok" if header.get("ok") else str(header.get("code"))).inc()

    def exposed(self, waiting: int, standing: Mapping[str, float]) -> bytes:
        """All counts as text."""
        for name, value in {"waiting": waiting, **standing}.items():
            self._gauges[name].set(value)
        return bytes(self._library.generate_latest(self._registry))
