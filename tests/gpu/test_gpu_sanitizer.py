"""On a real GPU: Compute Sanitizer finds no fault in kernels that need tensor cores or asynchronous copies."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from programs import case_of, first_dtype
from random_products import SIZES_OF_TILES, STEPS
from smembench.devices.cuda import CudaDevice
from smembench.devices.cuda_description import why_unusable
from smembench.explain.ncu_child import WORK, Work
from smembench.kernels.problems import PROBLEMS
from smembench.kernels.registry import kernel_of
from smembench.model.case import Case

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.untimed,
    pytest.mark.skipif(bool(why_unusable()), reason=str(why_unusable())),
    pytest.mark.skipif(shutil.which("compute-sanitizer") is None, reason="Compute Sanitizer is not on the PATH"),
]

SIZES = [(259, 517, 515), (260, 520, 520)]
"""Two of the largest tiles and a bit of a third, and more steps along k than any kernel has stages."""
CLEAN, FAULTY = re.compile(r"SUMMARY: 0 (error|hazard)s"), re.compile(r"SUMMARY: [1-9]\d* (error|hazard)")
PADDING = 4096
"""Bytes between allocations, which no kernel may touch."""
UNSAFE = Path(__file__).parent / "kernels" / "unsafe.py"


def sanitized(tool: str, cases: Sequence[Case]) -> subprocess.CompletedProcess[str]:
    """A process that launches each case once, under a tool; Python raises the API's errors itself."""
    options = ["--tool", tool, "--padding", PADDING, "--report-api-errors", "no", "--launch-timeout", 120]
    child = [sys.executable, "-m", "smembench.explain.ncu_child", WORK.dump_json(Work(cases, launches=0)).decode()]
    return subprocess.run(
        ["compute-sanitizer", *map(str, options), *child],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
        env={**os.environ, "SMEMBENCH_KERNELS": str(UNSAFE)},
        check=False,
    )


@pytest.mark.parametrize("tool", ["memcheck", "racecheck", "synccheck", "initcheck"])
def test_no_kernel_has_a_fault(gpu: CudaDevice, tool: str) -> None:
    cases = [
        replace(case_of(kernel, m, n, k, first_dtype(kernel)), b_layout=b_layout)
        for kernel in STEPS
        for m, n, k in (*SIZES, *SIZES_OF_TILES.get(kernel.name, ()))
        for b_layout in kernel.b_layouts
    ]
    taken = [case for case in cases if not kernel_of(case).refusal(case, gpu.info.compute_capability)]
    # The smallest arrays first: buffers grow, and of a larger one more than the case's arrays may be read unnoticed.
    ran = sanitized(tool, sorted(taken, key=PROBLEMS["matmul"].bytes_moved))
    assert ran.returncode == 0, ran.stdout[-10_000:]
    assert CLEAN.search(ran.stdout), ran.stdout[-10_000:]


@pytest.mark.parametrize(("tool", "kernel"), [("memcheck", "beyond_the_input"), ("racecheck", "no_barrier")])
def test_a_fault_is_found(tool: str, kernel: str) -> None:
    case = Case("transpose", kernel, "cuda:0", "float32", 8, 8)
    output = sanitized(tool, [case]).stdout
    assert FAULTY.search(output), output
