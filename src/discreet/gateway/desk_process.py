"""The program of the desk: it reads from its input where the vault is, and serves on the sockets it was given."""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path

from discreet.errors import DiscreetError
from discreet.gateway.desk_server import serve_desk
from discreet.gateway.isolation import harden
from discreet.gateway.settings import OidcSettings, Settings


def main() -> None:
    """Serve until the supervisor says stop."""
    harden(ends_with_parent=True)
    opening = json.load(sys.stdin)
    listening = {name: socket.socket(fileno=number) for name, number in opening["listening"].items()}
    oidc = opening["oidc"]
    settings = Settings(
        certificate=opening["certificate"],
        key=opening["key"],
        answer_after=opening["answer_after"],
        oidc=None if oidc is None else OidcSettings(**oidc),
    )
    metrics, postgres = ([listening[name]] if name in listening else [] for name in ("metrics", "postgres"))
    try:
        serve_desk(
            [listening["http"]],
            Path(opening["vault"]),
            settings,
            metrics=metrics,
            postgres=postgres,
            ready=lambda: print("ready", flush=True),
        )
    except DiscreetError as error:
        print(f"error [{error.code}]: {error}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
