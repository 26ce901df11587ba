"""Runs PTX through the whole interpreter: one instruction on registers of every thread, or a kernel on arrays."""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from functools import cache
from math import isnan
from typing import Any, NamedTuple

import numpy as np

from smembench.explain.ptx.content import GlobalArray
from smembench.explain.ptx.machine import Machine
from smembench.explain.ptx.memory import SPACING, Memory
from smembench.explain.ptx.merged import Merging
from smembench.explain.ptx.parse import Module, parse
from smembench.explain.ptx.program import PtxKernel
from smembench.explain.ptx.records import Traced
from smembench.explain.ptx.registers import Launch

Value = int | float | bool

_HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"
_SLOT = 8
"""Bytes of each value that a thread loads or stores."""
_FOLLOW = f"""
    .reg .b64 %follow<2>;
    ld.global.u8 %follow0, [{SPACING}];
    ld.global.u8 %follow1, [%follow0];
"""
"""An address that depends on the first array, so that everything that is stored in memory is computed."""
_FLOATS = {"f16": "<e", "f32": "<f", "f64": "<d"}


class Operand(NamedTuple):
    """Values of an operand by thread, the same for all in a uniform register; ``register`` as it is declared."""

    type: str
    values: Sequence[int]
    uniform: bool = False
    register: str = ""


def bits_of(kind: str) -> int:
    """The bits of a PTX type; 1 of a predicate."""
    return 1 if kind == "pred" else int(kind[1:])


def decoded(kind: str, bits: int) -> Value:
    """The number that the lowest bits of a register are."""
    size = bits_of(kind)
    bits &= (1 << size) - 1
    if kind == "pred":
        return bool(bits)
    if kind in _FLOATS:
        return float(struct.unpack(_FLOATS[kind], bits.to_bytes(size // 8, "little"))[0])
    return bits - (1 << size) if kind[0] == "s" and bits >> size - 1 else bits


def encoded(kind: str, value: Value, size: int = 0) -> int:
    """The bits of a number of a type in a register of ``size`` bits."""
    if kind in _FLOATS:
        return int.from_bytes(struct.pack(_FLOATS[kind], value), "little")
    assert isinstance(value, int)
    return int(value) & (1 << (size or bits_of(kind))) - 1


def same(kind: str, one: int, other: int) -> bool:
    """Whether bits are the same, or both are a NaN."""
    if one == other:
        return True
    return kind in _FLOATS and all(isnan(decoded(kind, bits)) for bits in (one, other))


def register_type(kind: str) -> str:
    """The type by which compilers declare a register for a value."""
    return kind if kind in ("f32", "f64", "pred") else f"b{max(bits_of(kind), 16)}"


def computed(instruction: str, operands: Sequence[Operand], results: Sequence[str]) -> list[tuple[int, ...]]:
    """The bits of the results of an instruction, by thread.

    Args:
        instruction: its operands are registers ``%a0``, ``%a1``, ..., its results ``%d0``, ...
        operands: what is in these.
        results: the types by which the results are declared.
    """
    threads = max(len(operand.values) for operand in operands)
    kinds = tuple((item.register or register_type(item.type), item.uniform) for item in operands)
    kernel = _kernel(instruction, kinds, tuple(results))
    arrays, parameters = [GlobalArray("none", SPACING, 8, np.zeros(8, np.uint8))], {}
    for number, (operand, (kind, _)) in enumerate(zip(operands, kinds, strict=True)):
        mask = (1 << max(bits_of(kind), 8)) - 1
        slots = np.array([value & mask for value in operand.values], np.uint64)
        if operand.uniform:
            parameters[f"p{number}"] = slots[:1].tobytes()
        arrays.append(_array(len(arrays), slots))
    outputs = [_array(len(arrays) + number, np.zeros(threads, np.uint64)) for number in range(len(results))]
    launch = Launch((1, 1, 1), (threads, 1, 1), parameters)
    result = Machine(kernel, launch, Memory(kernel, [*arrays, *outputs], 0), Merging({})).run((0, 0, 0))
    assert not result.mistakes
    assert not result.unfollowed
    columns: list[list[int]] = [_content(item).view(np.uint64).tolist() for item in outputs]
    return list(zip(*columns, strict=True))


def is_followed(instruction: str, operands: Sequence[Operand], results: Sequence[str]) -> bool:
    """Whether the results are known at all."""
    kinds = tuple((item.register or register_type(item.type), item.uniform) for item in operands)
    text = _text(instruction, kinds, tuple(results))
    text = text.replace("ret;", "cvt.u64.u32 %at, %r; ld.global.u8 %r, [%at]; ret;")
    kernel = parse(text).kernels["k"]
    arrays = [_array(number, np.zeros(1, np.uint64)) for number in range(1 + len(operands) + len(results))]
    result = Machine(kernel, Launch((1, 1, 1), (1, 1, 1), {}), Memory(kernel, arrays, 0), Merging({})).run((0, 0, 0))
    return not result.unfollowed


def run_source(
    ptx: str,
    name: str,
    arguments: Sequence[Any],
    grid: tuple[int, int, int] = (1, 1, 1),
    block: tuple[int, int, int] = (32, 1, 1),
    dynamic_bytes: int = 0,
    cluster: tuple[int, int, int] = (1, 1, 1),
) -> list[Traced]:
    """Run all clusters of a kernel, which are blocks without ``cluster``.

    Arrays are changed in place, and the first argument must be one.
    """
    ptx = re.sub(rf"(\.entry {re.escape(name)}\b[^{{]*{{)", lambda match: match[1] + _FOLLOW, ptx)
    kernel = parse(ptx).kernels[name]
    arrays: list[GlobalArray] = []
    parameters: dict[str, bytes] = {}
    for parameter, argument in zip(kernel.parameters, arguments, strict=True):
        if isinstance(argument, np.ndarray):
            begin = (len(arrays) + 1) * SPACING
            arrays.append(GlobalArray(parameter.name, begin, argument.nbytes, argument.reshape(-1).view(np.uint8)))
            parameters[parameter.name] = begin.to_bytes(8, "little")
        else:
            parameters[parameter.name] = argument.tobytes()
    launch = Launch(grid, block, parameters, dynamic_bytes, cluster=cluster)
    machine = Machine(kernel, launch, Memory(kernel, arrays, dynamic_bytes), Merging({}))
    x, y, z = launch.clusters
    return [machine.run((i, j, k)) for k in range(z) for j in range(y) for i in range(x)]


def parsed(text: str) -> Module:
    """A module of PTX without its head."""
    return parse(_HEAD + text)


def _array(number: int, slots: Any) -> GlobalArray:
    return GlobalArray(f"array{number}", (number + 1) * SPACING, slots.nbytes, slots.view(np.uint8))


def _content(array: GlobalArray) -> Any:
    assert array.data is not None
    return array.data


@cache
def _kernel(instruction: str, operands: tuple[tuple[str, bool], ...], results: tuple[str, ...]) -> PtxKernel:
    return parse(_text(instruction, operands, results)).kernels["k"]


def _text(instruction: str, operands: tuple[tuple[str, bool], ...], results: tuple[str, ...]) -> str:
    lines = [_FOLLOW, ".reg .b64 %at; .reg .b32 %r; .reg .pred %none;", "mov.u32 %r, %tid.x;"]
    for number, (kind, uniform) in enumerate(operands):
        lines.append(f".reg .{kind} %a{number};")
        lines.append(f"mad.wide.u32 %at, %r, {_SLOT}, {(number + 2) * SPACING};")
        source = f"param.{{}} %{{}}, [p{number}]" if uniform else "global.{} %{}, [%at]"
        if kind == "pred":
            lines.append(f".reg .b16 %n{number};")
            lines.append(f"ld.{source.format('u8', f'n{number}')};")
            lines.append(f"setp.ne.b16 %a{number}, %n{number}, 0;")
        else:
            lines.append(f"ld.{source.format(f'b{bits_of(kind)}', f'a{number}')};")
    lines += [f".reg .{kind} %d{number};" for number, kind in enumerate(results)]
    lines.append(f"{instruction};")
    for number, kind in enumerate(results):
        lines.append(f"mad.wide.u32 %at, %r, {_SLOT}, {(len(operands) + number + 2) * SPACING};")
        if kind == "pred":
            lines.append(f".reg .b32 %o{number};")
            lines.append(f"selp.u32 %o{number}, 1, 0, %d{number};")
            lines.append(f"st.global.u32 [%at], %o{number};")
        else:
            lines.append(f"st.global.b{bits_of(kind)} [%at], %d{number};")
    return f"{_HEAD}.visible .entry k()\n{{\n" + "\n".join(lines) + "\nret;\n}\n"
