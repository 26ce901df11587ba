"""The launches of the lists of kernels: arguments, and figures that are both predicted and counted."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from smembench.launches.arguments import parsed
from smembench.launches.array_argument import ArrayArgument

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


LANGUAGES = ("cuda", "numba", "triton")
"""A file of kernels each; they are numbered through."""


def launches() -> list[dict[str, Any]]:
    """All kernels, in the order of the files, with their ``language``."""
    folder = Path(__file__).parent
    return [
        {**kernel, "language": language}
        for language in LANGUAGES
        for kernel in tomllib.loads((folder / f"{language}.toml").read_text())["kernel"]
    ]


def given(kernel: Mapping[str, Any]) -> list[Any]:
    """A kernel's arguments as its source has them."""
    return list(map(parsed, kernel["args"]))


def arguments(kernel: Mapping[str, Any], *, data: bool) -> Iterator[Any]:
    """The arguments of a kernel's machine code.

    Arrays with ``values`` hold these. If there is to be ``data``, the others hold random numbers of a fixed seed, or
    zeros.
    """
    for number, argument in enumerate(given(kernel)):
        if not isinstance(argument, ArrayArgument):
            yield argument
            continue
        if text := kernel.get("values", {}).get(str(number)):
            made = eval(text, {"np": np, "random": np.random.default_rng(number)}).astype(argument.dtype)
            argument = ArrayArgument(argument.shape, argument.dtype, made.reshape(argument.shape))
        elif data:
            zeros = number in kernel.get("zeros", ())
            made = np.zeros(argument.shape, argument.dtype) if zeros else content(argument, number)
            argument = ArrayArgument(argument.shape, argument.dtype, made)
        yield from descriptor(argument) if kernel["language"] == "numba" else [argument]
    if kernel["language"] == "triton":
        yield from (np.uint64(0), np.uint64(0))  # scratch memory, of which the kernels need none


def descriptor(array: ArrayArgument) -> Iterator[Any]:
    """A contiguous array as Numba passes it: two owners, elements, bytes of one, address, shape, strides in bytes."""
    yield from (np.uint64(0), np.uint64(0), np.int64(np.prod(array.shape)), np.int64(array.dtype.itemsize), array)
    yield from map(np.int64, array.shape)
    yield from (np.int64(np.prod(array.shape[axis + 1 :]) * array.dtype.itemsize) for axis in range(len(array.shape)))


def content(array: ArrayArgument, seed: int) -> np.ndarray:
    """Random numbers, integers over the whole range of their type; random bytes for structures."""
    random = np.random.default_rng(seed)
    if array.dtype.kind in "fc":
        return random.random(array.shape, np.float32).astype(array.dtype)
    if array.dtype.kind == "V":
        size = int(np.prod(array.shape)) * array.dtype.itemsize
        return random.integers(0, 256, size, np.uint8).view(array.dtype).reshape(array.shape)
    if array.dtype.kind == "b":
        return random.integers(0, 2, array.shape).astype(np.bool_)
    limits = np.iinfo(array.dtype)
    return random.integers(limits.min, limits.max, array.shape, array.dtype, endpoint=True)


def shared_bytes(build: Path, number: int, kernel: Mapping[str, Any]) -> int:
    """The dynamic shared memory of a launch: Triton's compiler tells it, the list for the others."""
    file = build / f"{number}.shared_bytes"
    return int(file.read_text()) if file.exists() else int(kernel.get("shared_bytes", 0))


def sides(text: str) -> tuple[int, ...]:
    """The dimensions of a grid or a block."""
    return tuple(map(int, re.split("x", text)))
