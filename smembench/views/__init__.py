"""Terminal output of the studies."""

import random
from importlib import import_module

_state = random.getstate()
import_module("rich.style")  # draws a number as it is imported, which would be the caller's next
random.setstate(_state)
