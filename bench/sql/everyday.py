"""The sixty everyday questions and their errors at ε = 1: `python -m bench.sql.everyday`."""

from __future__ import annotations

from bench.report import line, notes, section, table, verdict
from examples.sql import questions


def main() -> None:
    section(
        "Sixty everyday questions",
        "sql.everyday",
        f"""The questions of `examples/sql/questions.sql` about the clinic of the demo, each with
        ε = {questions.EPSILON} and δ = {questions.DELTA}. An error is the median over the numbers of one answer,
        relative to plain DuckDB on the same text.""",
    )
    table("question", "rows", "median relative error")
    errors = []
    for asked, rows, error in questions.answered():
        errors.append(error)
        line(asked, rows, f"{100 * error:.2g}%")
    small = sum(error < 0.05 for error in errors)
    notes(
        f"The error of {small} of {len(errors)} is below 5%. Larger are those of small differences: a correlation near "
        "0, a growth of few percent, a count of seven values."
    )
    verdict({"60 questions, all answered": len(errors) == 60 and all(error < float("inf") for error in errors)})


if __name__ == "__main__":
    main()
