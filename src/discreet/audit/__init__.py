"""Attack what was built: lower confidence bounds on ε and δ from outputs alone, with their power stated."""

from discreet.audit.auditor import Audit, audit
from discreet.audit.bounds import Finding, delta_lower_bound, lower_bound
from discreet.audit.power import Power

__all__ = ["Audit", "Finding", "Power", "audit", "delta_lower_bound", "lower_bound"]
