"""Synthetic tables: measure the data, improve what the model gets most wrong, and draw rows from the model."""

from discreet.synthetic.declared import Declared
from discreet.synthetic.sample import SyntheticSample
from discreet.synthetic.synthesis import Synthesis
from discreet.synthetic.table import SyntheticTable

__all__ = ["Declared", "Synthesis", "SyntheticSample", "SyntheticTable"]
