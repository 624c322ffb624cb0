"""From a plan to an answer: charged, measured, drawn, stored, and shown with its intervals."""
