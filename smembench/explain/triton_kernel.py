"""Explain a function of ``triton.jit``: compile it as its first launch does, and trace its PTX."""

from __future__ import annotations

from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from smembench.explain.costs import Costs
from smembench.explain.ptx.costs import Call, explain_ptx
from smembench.explain.ptx.parse import parse
from smembench.launches.array_argument import Argument, ArrayArgument
from smembench.launches.dimensions import as_text
from smembench.launches.launch import Launch
from smembench.launches.triton_launch import compiled_launch
from smembench.model.errors import UsageError
from smembench.model.hardware import WARP
from smembench.toolchains.machine_code import parse as parse_code
from smembench.toolchains.triton_function import inner


def explain_triton(function: Any, launch: Launch, *, capability: str) -> Costs:
    """Explain a function of ``triton.jit``. Behind the parameters of its source it has pointers to scratch memory.

    Raises:
        UsageError: for arguments that it does not take, a block that is not that of ``num_warps``, what does not
            compile, and as ``explain_ptx``.
    """
    compiled, passed = compiled_launch(function, launch, capability)
    function = inner(function)
    name, path = function.__name__, function.fn.__code__.co_filename
    (kernel,) = parse(compiled.ptx).kernels.values()
    hidden = [f"scratch{number}" for number in range(len(kernel.parameters) - len(passed))]
    kernel.name_parameters([*passed, *hidden])
    scratch: list[Argument] = [0] * len(hidden)
    if compiled.scratch_bytes:
        scratch[0] = ArrayArgument((compiled.scratch_bytes * prod(launch.grid),), np.dtype(np.uint8))
    block = launch.block or (compiled.threads,)
    if prod(block) != compiled.threads:
        raise UsageError(
            f"block {as_text(block)}: {name} has {compiled.threads} threads, by num_warps={compiled.threads // WARP}; "
            "leave the block out"
        )
    return explain_ptx(
        kernel,
        Call(launch.grid, block, [*passed.values(), *scratch], compiled.shared_bytes),
        title=f"{name} in {Path(path).name}",
        filename=path,
        code=(capability, parse_code("", compiled.code)),
    )
