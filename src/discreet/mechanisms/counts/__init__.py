"""Many counts at once: streams, trees, workloads and tables of marginals."""
