"""The program of the desk: it reads from its input where the vault is, and serves on the sockets it was given."""

from __future__ import annotations

import json
import resource
import socket
import sys
from fractions import Fraction
from pathlib import Path

from discreet.errors import DiscreetError
from discreet.gateway.desk.server import serve_desk
from discreet.gateway.isolation import harden
from discreet.gateway.settings import SHOWN_AMOUNTS, OidcSettings, Settings

FILES = 8192
"""So many files may be open: connections over HTTP and PostgreSQL, and some more."""


def main() -> None:
    """Serve until the supervisor says stop."""
    harden(ends_with_parent=True)
    _allow_many_files()
    opening = json.load(sys.stdin)
    listening = {name: socket.socket(fileno=number) for name, number in opening["listening"].items()}
    oidc = opening["oidc"]
    shown = {name: None if opening[name] is None else Fraction(opening[name]) for name in SHOWN_AMOUNTS}
    settings = Settings(
        certificate=opening["certificate"],
        key=opening["key"],
        answer_after=opening["answer_after"],
        oidc=None if oidc is None else OidcSettings(**oidc),
        name=opening["name"],
        version=opening["version"],
        question_default=shown["question_default"],
        question_most=shown["question_most"],
        approve_above=shown["approve_above"],
    )
    metrics, postgres = ([listening[name]] if name in listening else [] for name in ("metrics", "postgres"))
    try:
        serve_desk(
            [listening["http"]],
            Path(opening["vault"]),
            settings,
            metrics=metrics,
            postgres=postgres,
            setup=opening["setup"],
            ready=lambda: print("ready", flush=True),
        )
    except DiscreetError as error:
        print(f"error [{error.code}]: {error}", file=sys.stderr)
        sys.exit(1)


def _allow_many_files() -> None:
    """Every connection is an open file: allow as many as this user may have."""
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES if most == resource.RLIM_INFINITY else min(FILES, most)
    if now != resource.RLIM_INFINITY and now < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


if __name__ == "__main__":
    main()
