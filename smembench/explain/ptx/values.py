"""Instructions that compute values, as functions of the threads that run them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from smembench.explain.ptx.operations import operation
from smembench.explain.ptx.program import ADDRESS, Instruction, results
from smembench.explain.ptx.registers import OF_A_RUN, Mask, Registers
from smembench.explain.ptx.warps import across_lanes
from smembench.launches.ptx_entry import TYPES, split

Run = Callable[[Mask | None], None]

OPAQUE = ("isspacep", "mma", "wmma", "dp4a", "dp2a", "testp", "addc", "subc", "madc", "szext")
"""Instructions whose results are unknown."""
_ACROSS_LANES = ("shfl", "vote", "activemask", "match", "redux", "elect")


def of_values(given: Instruction, registers: Registers) -> Run:
    """A function that computes an instruction's targets.

    Raises:
        UsageError: for an instruction that is not traced.
    """
    if given.root == "ld":
        return _parameter(given, registers)
    if not OF_A_RUN.isdisjoint(given.operands[1:]):
        return _opaque(given, registers)
    if given.root == "mov" and ("{" in given.operands[0] or "{" in given.operands[1]):
        return _packed(given, registers)
    if given.root in ("mov", "cvta"):
        return _moved(given, registers)
    if given.root in _ACROSS_LANES:
        return _across_lanes(given, registers)
    if given.root in ("mapa", "getctarank"):
        return _of_cluster(given, registers)
    if given.root == "isspacep" and given.space == "shared":
        return _is_shared(given, registers)
    return _computed(given, registers)


def _computed(given: Instruction, registers: Registers) -> Run:
    arithmetic = operation(given.parts)
    names, targets = given.sources, given.targets
    if arithmetic is None or len(arithmetic.types) != len(given.operands) - 1:
        if given.root not in OPAQUE and "." not in given.opcode:
            raise registers.refused(given.called_from.line, given.opcode)
        return _opaque(given, registers)
    operands = [registers.operand(*pair) for pair in zip(given.operands[1:], arithmetic.types, strict=False)]
    compute, written, leave_unknown = arithmetic.compute, results(given), _opaque(given, registers)
    divisor = operands[1] if given.root in ("div", "rem") and arithmetic.types[1][0] in "iu" else None

    def run(mask: Mask | None) -> None:
        unknown = registers.unknown_in(names)
        if unknown is registers.everyone:
            leave_unknown(mask)
            return
        if divisor is not None and (by_zero := registers.spread(divisor() == 0)).any():
            unknown = by_zero if unknown is None else unknown | by_zero
        value = compute(*[operand() for operand in operands])
        if isinstance(value, list):
            for name, part in zip(written, value, strict=False):
                if name != "_":
                    registers.write(name, part, mask, unknown)
        else:
            registers.write(targets[0], value, mask, unknown)

    return run


def _opaque(given: Instruction, registers: Registers) -> Run:
    """A function that leaves the targets unknown."""
    nothing = [(name, registers.nothing(name)) for name in given.targets]

    def run(mask: Mask | None) -> None:
        for name, value in nothing:
            registers.write(name, value, mask, registers.everyone)

    return run


def _writing(given: Instruction, registers: Registers, compute: Callable[[], Any]) -> Run:
    """A function that writes a value to the first target."""
    target, sources = given.targets[0], given.sources

    def run(mask: Mask | None) -> None:
        registers.write(target, compute(), mask, registers.unknown_in(sources))

    return run


def _moved(given: Instruction, registers: Registers) -> Run:
    """``mov`` and ``cvta``, which adds or takes away where a space lies among generic addresses."""
    source = registers.operand(given.operands[1], TYPES[given.types[-1]])
    window = np.uint64(registers.memory.window(given.space)) if given.root == "cvta" else np.uint64(0)
    if given.root == "mov" and given.operands[1] in registers.kernel.variables:
        window = np.uint64(0)
    if not window:
        return _writing(given, registers, source)
    away = "to" in given.parts
    return _writing(given, registers, lambda: source() - window if away else source() + window)


def _of_cluster(given: Instruction, registers: Registers) -> Run:
    """The address of another block's shared memory, or the rank of the block that an address is in."""
    address = registers.operand(given.operands[1], f"u{np.dtype(TYPES[given.types[-1]]).itemsize}")
    if given.root != "mapa":
        return _writing(given, registers, lambda: registers.memory.windows.rank_of(address()))
    rank = registers.operand(given.operands[2], "u4")
    return _writing(given, registers, lambda: registers.memory.windows.mapped(address(), rank()))


def _is_shared(given: Instruction, registers: Registers) -> Run:
    """``isspacep.shared``: true for generic addresses of the own block's shared memory, or of any in the cluster."""
    address, of_cluster = registers.operand(given.operands[1], "u8"), "shared::cluster" in given.parts
    return _writing(given, registers, lambda: registers.memory.windows.is_shared(address(), of_cluster=of_cluster))


def _packed(given: Instruction, registers: Registers) -> Run:
    """``mov`` between a register and the registers of its parts, the lowest first."""
    whole = np.dtype(f"u{np.dtype(TYPES[given.types[-1]]).itemsize}")
    source, target = given.operands[1], given.operands[0]
    texts = split((source if "{" in source else target).strip("{} "))
    part = np.dtype(f"u{whole.itemsize // len(texts)}")
    shifts = [whole.type(8 * part.itemsize * number) for number in range(len(texts))]
    if "{" in source:
        operands = [registers.operand(text, part.str[1:]) for text in texts]

        def pack() -> Any:
            value: Any = whole.type(0)
            for operand, shift in zip(operands, shifts, strict=True):
                value = value | operand().astype(whole) << shift
            return value

        return _writing(given, registers, pack)
    operand = registers.operand(source, whole.str[1:])

    def unpack(mask: Mask | None) -> None:
        value, unknown = operand(), registers.unknown_in(given.sources)
        for name, shift in zip(texts, shifts, strict=True):
            if name != "_":
                registers.write(name, (value >> shift).astype(part), mask, unknown)

    return unpack


def _parameter(given: Instruction, registers: Registers) -> Run:
    match = ADDRESS.fullmatch(given.operands[1])
    if match is None or match[1] not in registers.launch.parameters:
        raise registers.refused(given.called_from.line, given.opcode)
    kind, begin = np.dtype(TYPES[given.types[-1]]), int(match[3] or "0", 0)
    content = registers.launch.parameters[match[1]]
    values = []
    for number in range(len(given.targets)):
        at = begin + number * kind.itemsize
        values.append(np.frombuffer(content[at : at + kind.itemsize], kind)[0])

    def run(mask: Mask | None) -> None:
        for name, value in zip(given.targets, values, strict=True):
            registers.write(name, value, mask)

    return run


def _across_lanes(given: Instruction, registers: Registers) -> Run:
    compute = across_lanes(given, registers.operand, registers.threads)
    if compute is None:
        raise registers.refused(given.called_from.line, given.opcode)

    def run(mask: Mask | None) -> None:
        active = np.ones(registers.threads, np.bool_) if mask is None else mask
        unknown = registers.unknown_in(given.sources)
        if unknown is not None:  # any lane's value may reach any other
            unknown = np.ones(registers.threads, np.bool_)
        for name, value in zip(results(given), compute(active), strict=False):
            if name != "_":
                registers.write(name, value, mask, unknown)

    return run
