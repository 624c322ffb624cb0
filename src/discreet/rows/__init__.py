"""Reading data: each record is read by itself, with a declared type or the type of its container.

A column has one dimension, and a row has its declared width. A value that does not fit counts as missing. It does not
change another record, a type, a shape or an error.
"""

from discreet.rows.cells import key_of, number_of, parts_of, place_of, text_of, whole_of
from discreet.rows.columns import cell_columns, cells, column, doubles, is_row, labels, present, table, wholes
from discreet.rows.containers import columns_of, has, has_width, names_of, none_of, on_device, some

__all__ = [
    "cell_columns",
    "cells",
    "column",
    "columns_of",
    "doubles",
    "has",
    "has_width",
    "is_row",
    "key_of",
    "labels",
    "names_of",
    "none_of",
    "number_of",
    "on_device",
    "parts_of",
    "place_of",
    "present",
    "some",
    "table",
    "text_of",
    "whole_of",
    "wholes",
]
