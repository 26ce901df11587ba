"""Starts the simulator's tests in a process of their own: it must be switched on before numba is imported."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import simulated
from conftest import SIMULATED_PART
from smembench.kernels import registry
from smembench.kernels.problems import PROBLEMS
from smembench.model.case import Case
from smembench.model.errors import DeviceUnavailable

PARTS = 2
"""Processes, so that several workers have a share of what takes longest."""
SIMULATED = os.environ.get("NUMBA_ENABLE_CUDASIM") == "1"


@pytest.mark.slow
@pytest.mark.skipif(SIMULATED, reason="this is that process")
@pytest.mark.parametrize("part", range(PARTS))
def test_cuda_kernels_in_the_simulator(part: int) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", Path(__file__).parent],
        capture_output=True,
        text=True,
        env=os.environ | {"NUMBA_ENABLE_CUDASIM": "1", SIMULATED_PART: f"{part}/{PARTS}"},
        cwd=Path(__file__).parents[2],
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.skipif(SIMULATED, reason="the simulator is on")
def test_the_simulator_refuses_to_run_when_it_is_off() -> None:
    case = Case("transpose", "copyGmem", "cuda:0", "float32", 1, 1)
    with pytest.raises(DeviceUnavailable, match="set NUMBA_ENABLE_CUDASIM=1"):
        simulated.run(case, registry.kernel_of(case), PROBLEMS["transpose"], ())
