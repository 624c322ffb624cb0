"""Tables of made-up people: measure, choose what is most wrong, measure it, fit a model, draw rows from it."""

from discreet.synthetic.declared import Declared
from discreet.synthetic.sample import MadeUp
from discreet.synthetic.synthesis import Synthesis

__all__ = ["Declared", "MadeUp", "Synthesis"]
