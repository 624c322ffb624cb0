"""Audits: attack a mechanism or a model, and report lower confidence bounds on ε, with the power of the attack."""

from discreet.audit.auditor import Audit, audit
from discreet.audit.bounds import Finding, delta_lower_bound, lower_bound
from discreet.audit.membership import membership_score
from discreet.audit.models import ModelAudit, audit_model
from discreet.audit.one_run import OneRun
from discreet.audit.power import Power

__all__ = [
    "Audit",
    "Finding",
    "ModelAudit",
    "OneRun",
    "Power",
    "audit",
    "audit_model",
    "delta_lower_bound",
    "lower_bound",
    "membership_score",
]
