"""Audits: attack a mechanism and report lower confidence bounds on ε and δ, with the power of the attack."""

from discreet.audit.auditor import Audit, audit
from discreet.audit.bounds import Finding, delta_lower_bound, lower_bound
from discreet.audit.power import Power

__all__ = ["Audit", "Finding", "Power", "audit", "delta_lower_bound", "lower_bound"]
