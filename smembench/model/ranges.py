"""Ranges of the numbers in stored results. Nothing is checked here: whoever reads a file refuses what is outside."""

import math
from typing import Annotated

from annotated_types import Interval

Count = Annotated[int, Interval(ge=0, le=10**30)]
Size = Annotated[int, Interval(ge=1, lt=2**63)]
Milliseconds = Annotated[float, Interval(ge=1e-9, le=1e12)]
"""An elapsed time: from a picosecond to thirty years."""
Ratio = Annotated[float, Interval(ge=0, lt=math.inf)]
"""A rate, a percentage or an error measure."""
Positive = Annotated[float, Interval(ge=1e-9, le=1e30)]
Reading = Annotated[float, Interval(ge=-1e30, le=1e30)]
"""A reading of a sensor or the operating system."""
WholeReading = Annotated[int, Interval(ge=-(10**15), le=10**15)]
