"""Estimators that learn from rows without labels: clusters, mixtures and components."""
