"""The one entrance for data: every record is read by itself, and only a declaration or a container's own type decides.

A column has one dimension and a row its declared width. What does not fit is that record's problem: it counts as
missing there, and changes nothing about another record, a type, a shape or an error.
"""

from discreet.rows.cells import key_of, number_of, parts_of, place_of, text_of, whole_of
from discreet.rows.columns import cell_columns, cells, column, doubles, is_row, labels, present, table, wholes
from discreet.rows.containers import columns_of, has_width, names_of, on_device

__all__ = [
    "cell_columns",
    "cells",
    "column",
    "columns_of",
    "doubles",
    "has_width",
    "is_row",
    "key_of",
    "labels",
    "names_of",
    "number_of",
    "on_device",
    "parts_of",
    "place_of",
    "present",
    "table",
    "text_of",
    "whole_of",
    "wholes",
]
