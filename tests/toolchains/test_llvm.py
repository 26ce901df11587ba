"""LLVM's PTX in the place of NVVM's, and that the process's own Numba stays as it is."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from numba import njit

from smembench import UsageError, explain_function
from smembench.explain.analysis import explain
from smembench.explain.record import costs_dict
from smembench.studies.explain import Axes, cases
from smembench.toolchains import numba
from smembench.toolchains.cuda_libraries import cuda_libraries
from smembench.toolchains.llvm import in_a_fork
from smembench.views.explain import sentences

ALIKE = (
    "transposeSmem",
    "setColReadRow",
    "sharedDiverging",
    "constantDiverging",
    "tiled",
    "mmaSwizzled",
    "sumShuffled",
)
"""Of each way to access memory one."""
FIGURES = ("conflict_degree", "wavefronts_per_request", "sectors_per_request", "addresses_per_request", "requests")


def predictions(kernel: str) -> tuple[str, list[Any]]:
    """What explain says, and the figures of each access."""
    (case, *_) = cases(kernel, Axes(), n=128)
    result = explain(case, "9.0")
    costs = costs_dict(result)
    accesses = [item for memory in ("shared", "global", "constant") for item in costs[memory]]
    return " ".join(sentences(result)), [
        *costs["mistakes"],
        *([item.get(name) for name in FIGURES] for item in accesses),
    ]


def sines(out: Any, x: Any) -> None:
    out[0] = math.sin(x[0])


@pytest.mark.slow
def test_predictions_are_those_of_nvvms_ptx_and_functions_of_libdevice_are_refused_by_name() -> None:
    if not all(cuda_libraries().values()):
        pytest.skip("needs NVIDIA's compilers: pip install 'smembench[cu13]'")
    ran = subprocess.run([sys.executable, __file__], capture_output=True, text=True, check=True, timeout=100)
    refused, by_llvm = json.loads(ran.stdout)
    assert refused.startswith("sines: calls __nv_sin, which NVIDIA's compilers have: pip install")
    for kernel in ALIKE:
        text, figures = predictions(kernel)
        assert "The PTX is that of" not in text
        assert by_llvm[kernel][1] == figures
        assert "The PTX is that of llvmlite" in by_llvm[kernel][0]


def summed(x: Any) -> Any:
    y, total = x.copy(), 0.0
    for item in x:
        total += item
    return total, y, [total]


def test_errors_of_the_fork_are_the_functions_own() -> None:
    class Local(Exception):
        """One that cannot be pickled."""

    def fails(error: Exception) -> bytes:
        raise error

    assert in_a_fork(lambda: b"made") == b"made"
    with pytest.raises(ZeroDivisionError, match="by nought"):
        in_a_fork(lambda: fails(ZeroDivisionError("by nought")))
    with pytest.raises(UsageError, match="of its own"):
        in_a_fork(lambda: fails(Local("of its own")))
    with pytest.raises(UsageError, match="ended early"):
        in_a_fork(lambda: os._exit(1))


if __name__ == "__main__":
    vars(numba)["cuda_libraries"] = lambda: {"NVVM": "", "nvJitLink": ""}
    try:
        explain_function(sines, grid=1, block=32, args=(np.zeros(1), np.zeros(1)), capability="9.0")
    except UsageError as error:
        result = {kernel: predictions(kernel) for kernel in ALIKE}
        # The first code for the CPU in this process: Numba makes its types now, as a program beside would.
        assert njit(summed)(np.ones(4))[0] == 4
        print(json.dumps([str(error), result]))
