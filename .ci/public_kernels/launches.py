"""The launches of kernels.toml: arguments, and figures that are both predicted and counted."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from smembench.explain.arguments import parsed
from smembench.explain.array_argument import ArrayArgument

FIGURES: Mapping[str, str] = {
    "shared load wavefronts": "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "shared load requests": "smsp__inst_executed_op_shared_ld.sum",
    "shared store wavefronts": "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    "shared store requests": "smsp__inst_executed_op_shared_st.sum",
    "matrix load wavefronts": "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldsm.sum",
    "matrix load requests": "smsp__inst_executed_op_ldsm.sum",
    "asynchronous copy requests": "smsp__inst_executed_op_ldgsts.sum",
    "global load sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "global load requests": "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "global store sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "global store requests": "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
}
"""Totals of a launch, and the counters of Nsight Compute that have them."""


def launches() -> list[dict[str, Any]]:
    """All kernels, in the order of the file."""
    found: list[dict[str, Any]] = tomllib.loads(Path(__file__).with_name("kernels.toml").read_text())["kernel"]
    return found


def arguments(kernel: Mapping[str, Any], *, data: bool) -> Iterator[Any]:
    """A kernel's arguments; arrays hold random numbers of a fixed seed, or zeros, if there is to be ``data``."""
    for number, text in enumerate(kernel["args"]):
        argument = parsed(text)
        if data and isinstance(argument, ArrayArgument):
            zeros = number in kernel.get("zeros", ())
            made = np.zeros(argument.shape, argument.dtype) if zeros else content(argument, number)
            argument = ArrayArgument(argument.shape, argument.dtype, made)
        yield argument


def content(array: ArrayArgument, seed: int) -> np.ndarray:
    """Random numbers, integers over the whole range of their type."""
    random = np.random.default_rng(seed)
    if array.dtype.kind == "f":
        return random.random(array.shape, np.float32).astype(array.dtype)
    limits = np.iinfo(array.dtype)
    return random.integers(limits.min, limits.max, array.shape, array.dtype, endpoint=True)


def sides(text: str) -> tuple[int, ...]:
    """The dimensions of a grid or a block."""
    return tuple(map(int, re.split("x", text)))
