"""The books of a gateway: accounts, tokens, limits, approvals, policies and the audit, in one database."""
