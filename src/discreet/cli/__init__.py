"""The `discreet` command."""

from discreet.cli.app import main

__all__ = ["main"]
