"""Codes that fit any argument of any call."""

from __future__ import annotations

from discreet.error_codes.row import Explained

ARGUMENTS = {
    "wrong-type": Explained(
        'a value of another type, such as `protects="person"` or a single value where a list is expected',
        "The parameter has one meaning only for the types it names.",
        "the type that the message names",
    ),
    "not-a-number": Explained(
        "text, NaN, infinity or a truth value where a number is expected",
        "Promises are computed exactly; such a value has no exact number.",
        "a finite number, such as `0.5` or `Fraction(1, 2)`",
    ),
    "not-whole": Explained("`k=1.5`", "This parameter counts something.", "a whole number, such as `k=2`"),
    "out-of-range": Explained(
        "`epsilon=-1`, `confidence=1.5`", "The value lies outside the range of the parameter.", "a value in the range"
    ),
    "ends-out-of-order": Explained(
        "`between=(120, 0)`", "A range is its smaller end, then its larger end.", "`between=(0, 120)`"
    ),
    "not-an-option": Explained(
        'a word that the parameter does not know, such as `of="persons"`',
        "Only the listed words have a meaning here.",
        "one of the words in the message",
    ),
    "missing-argument": Explained(
        '`dp.release(…, key="q1")` without `ledger=`',
        "The call needs one more argument to have a meaning.",
        "the argument that the message names",
    ),
    "conflicting-arguments": Explained(
        "two arguments that exclude each other, such as `feature_norm=` and `feature_ranges=`",
        "Each gives the same fact in another way.",
        "one of the two",
    ),
    "formula": Explained(
        '`"cost = age"`, `"cost ~ log(age)"`, or a range for a column that is not in the formula',
        "A formula names an outcome, and terms that are columns or products of columns.",
        '`"cost ~ age + treated"`',
    ),
    "wrong-shape": Explained(
        "an array of another shape", "Shapes are declared, never read from the data.", "an array of the declared shape"
    ),
    "empty": Explained("an empty list of columns, choices or queries", "There is nothing to answer.", "at least one"),
    "duplicates": Explained("the same name or choice twice", "Each one must be distinguishable.", "each one once"),
    "too-large": Explained(
        "more cells, queries, steps or digits than can be computed",
        "The limit keeps memory and time bounded before anything is charged.",
        "a smaller question; the message names the limit",
    ),
    "unknown-column": Explained("a column that the table does not have", "No such column is declared.", "a known one"),
}
