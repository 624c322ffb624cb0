"""All settings of a gateway: the page names each with its section and default, and a mistaken section is corrected."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from discreet.errors import InvalidArgument
from discreet.gateway.settings import SECTIONS, Settings, settings_of

from ...refusing import refuses

PAGE = Path(__file__).parents[3] / "docs" / "gateway.md"
SUBSECTIONS = {name.partition(".")[2] for name in SECTIONS} - {""}


def rows() -> list[tuple[str, str, str]]:
    """Section, setting and default of each row of the table."""
    found = re.findall(
        r"^\| `\[(gateway[.\w]*)\]` \| (`[^|]*) \|.*\| ([^|]*) \|$", PAGE.read_text("utf-8"), re.MULTILINE
    )
    return [(section, name, default) for section, names, default in found for name in re.findall(r"`(\w+)`", names)]


def test_the_page_names_every_setting_with_its_section() -> None:
    told = [(section, name) for section, name, _ in rows()]
    assert sorted(told) == sorted(
        (section, key) for section, keys in SECTIONS.items() for key in keys if key not in SUBSECTIONS
    )


def test_the_page_has_the_defaults() -> None:
    """Those that can be written in a policy."""
    known = {f"gateway.{name}": str(getattr(Settings(), name)) for name in ("http", "version", "share")}
    known |= {f"gateway.{name}": getattr(Settings(), name) for name in ("late_allowed", "lanes")}
    known |= {"gateway.users": list(Settings().users), "gateway.answer_after": f"{Settings().answer_after:g}s"}
    known |= {"gateway.limits.alert_at": 0.8, "gateway.mcp.confirm_above": 0.1}
    told = {f"{section}.{name}": default.strip("`") for section, name, default in rows()}
    assert float(Settings().alert_at) == 0.8
    assert float(Settings().mcp_confirm_above) == 0.1
    for name, value in known.items():
        assert tomllib.loads(f"value = {told[name]}")["value"] == value, (name, json.dumps(told[name]))


@pytest.mark.parametrize(
    ("words", "section"),
    [
        ({"approve_above": 1}, "[gateway.limits]"),
        ({"limits": {"lanes": 2}}, "[gateway]"),
        ({"question": {"session": 1}}, "[gateway.limits] or [gateway.mcp]"),
        ({"mcp": {"most": 1}}, "[gateway.question]"),
    ],
)
def test_a_setting_in_the_wrong_section_is_sent_to_its_own(words: dict, section: str) -> None:
    with refuses(InvalidArgument, "policy-unknown-key") as refused:
        settings_of(words, Path(), None)  # type: ignore[arg-type]
    assert f"belongs into {section}." in str(refused.value)


def test_a_setting_that_nothing_knows_is_refused_with_the_closest() -> None:
    with refuses(InvalidArgument, "policy-unknown-key") as refused:
        settings_of({"answer_aftr": "2s"}, Path(), None)  # type: ignore[arg-type]
    assert "answer_after" in str(refused.value)
