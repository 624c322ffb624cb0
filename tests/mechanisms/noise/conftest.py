"""What is checked of drawn numbers is shared with `tests/exact`."""

from ...exact.conftest import checks

__all__ = ["checks"]
