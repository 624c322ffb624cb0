"""The rows that a statistic reads, and how they are divided."""
