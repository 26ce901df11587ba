"""Which members of a group are slower than the group's normal variation: robust, for many series at once.

Arrays hold logarithms of times, shape (series, members), NaN where a member has none; nothing here knows of GPUs.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import numpy as np

from smembench.stats.noise import Floats

FEWEST = 3
"""Members of which one can be told from the others: of two that differ either may be the normal one."""
_NORMAL = 1.4826
"""Standard deviation of normal values over their median absolute deviation."""


@dataclass(frozen=True, slots=True)
class Outliers:
    """Each member against the others, by series.

    Attributes:
        distance: from the median of the series, above 0 is slower; NaN where a member has no time.
        spread: by series, the standard deviation between normal members.
        p: probability that a normal member is measured so slow, if the threshold is still normal.
    """

    distance: Floats
    spread: Floats
    p: Floats


def outliers(times: Floats, noise: Floats, threshold: float) -> Outliers:
    """Judge every member of every series.

    Args:
        times: logarithms of times.
        noise: standard error of each.
        threshold: a smaller distance is normal, in logarithms.
    """
    from scipy.stats import t  # slow to import, and a help page needs none

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of series without times
        distance = times - np.nanmedian(times, axis=1, keepdims=True)
        spread = _NORMAL * np.nanmedian(np.abs(distance), axis=1)
    count = np.isfinite(times).sum(axis=1)
    beyond = (distance - threshold) / np.maximum(np.hypot(spread[:, None], noise), math.ulp(1.0))
    p = t.sf(beyond, np.maximum(0.37 * (count - 1), 1)[:, None])
    p[count < FEWEST] = np.nan
    return Outliers(distance, spread, np.asarray(p, dtype=np.float64))
