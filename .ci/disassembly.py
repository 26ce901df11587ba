"""Hold this package's reading of machine code against nvdisasm, on every kernel and without a GPU.

``PYTHONPATH=.:.ci python -m disassembly [--capability 9.0,12.1] FILE.csv`` needs the extras dev and cu13, and takes
minutes per compute capability. It writes a line per check; exit code 1 means that one differs.
"""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
import tempfile
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from cuda.pathfinder import find_nvidia_binary_utility

from smembench.explain.occupancy import ANY_GPU
from smembench.kernels import registry
from smembench.kernels.problems import PROBLEMS
from smembench.kernels.program import GpuKernel
from smembench.model.case import Case
from smembench.model.errors import UsageError
from smembench.model.formats import NARROW, WIDE
from smembench.model.text import one_line
from smembench.run.config import from_data
from smembench.run.plan import Plan
from smembench.toolchains.machine_code import instructions
from smembench.toolchains.memory_instructions import accesses
from smembench.toolchains.mnemonics import mnemonic
from smembench.toolchains.register_bank_conflicts import CAPABILITY, Instruction, operands, target
from smembench.toolchains.registry import toolchain_of

_CAPABILITIES = ("8.0", "8.6", "8.9", "9.0", "10.0", "10.3", "11.0", "12.0", "12.1")
_SIZES = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16}
_WIDE = ("LDS", "STS", "LDG", "STG")


class Check(NamedTuple):
    """A property of an instruction, as it is read here and as nvdisasm shows it."""

    name: str
    here: object
    shown: object


def checks(capability: str, place: int, word: Instruction, shown: dict[str, Any]) -> Iterator[Check]:
    """What is read of an instruction, the ``place``-th of its kernel."""
    name, *modifiers = shown["opcode"].split(".")
    text = shown.get("operands", "")
    low, _ = word
    yield Check("mnemonic", mnemonic(low & 0xFFF), name.partition("_")[0])  # of UCGABAR_ARV and UCGABAR_WAIT
    yield Check("guard", low >> 12 & 0xF, _guard(shown.get("predicate", "")))
    if name in _WIDE:
        widths = [_SIZES[entry] for entry in modifiers if entry in _SIZES]
        here = next((access.width for access in accesses(word)), None)
        yield Check("width", here, widths[-1] if widths else 4)
    if name == "BRA" and (jumps := re.search(r"0x([0-9a-f]+)$", text)):
        taken = int(jumps[1], 16) // 16 - place - 1
        yield Check("target", target(place, word), place + 1 + taken * (1 if float(capability) >= 9 else 256))
    if capability == CAPABILITY and low & 0xFFF == 0x223:
        slots = dict(enumerate(entry.strip("-|") for entry in text.split(",")[1:4]))
        kept = {slot: _register(entry) for slot, entry in slots.items() if entry.endswith(".reuse")}
        read = {number for entry in slots.values() if (number := _register(entry)) != 255}
        yield Check("operands", operands(word, {}), (read, kept))


def _guard(predicate: str) -> int:
    """The four bits of ``@P0``, ``@!P0``, ``@!PT`` or ``@UP0``; of P2R nvdisasm shows an operand as a guard."""
    if not predicate.startswith("@"):
        return 7
    number = predicate.lstrip("@!U").removeprefix("P")
    return (7 if number == "T" else int(number)) + 8 * ("!" in predicate)


def _register(text: str) -> int:
    number = text.removesuffix(".reuse").removeprefix("R")
    return 255 if number == "Z" else int(number)


def disassembled(code: bytes) -> list[dict[str, Any]]:
    """The instructions of a file with one kernel as nvdisasm shows them: opcode, operands and predicate.

    Raises:
        FileNotFoundError: if nvdisasm is not installed.
    """
    tool = find_nvidia_binary_utility("nvdisasm")
    if tool is None:
        raise FileNotFoundError("nvdisasm is not installed: pip install nvidia-cuda-nvdisasm")
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(code)
        file.flush()
        printed = subprocess.run([tool, "-json", file.name], check=True, capture_output=True, text=True).stdout
    _, (kernel,) = json.loads(printed)
    result: list[dict[str, Any]] = kernel["sass-instructions"]
    return result


def compared(capability: str, code: bytes) -> Iterator[Check]:
    """The checks of all instructions of a file with one kernel."""
    words: Sequence[Instruction] = instructions(code)
    for place, (word, shown) in enumerate(zip(words, disassembled(code), strict=True)):
        yield from checks(capability, place, word, shown)


def cases() -> list[Case]:
    """A case per kernel and compiler, of the first element type that it takes."""
    result: dict[tuple[str, str, str], Case] = {}
    for problem in PROBLEMS:
        for dtype in (*WIDE, *NARROW):
            try:
                sweep = {"problem": problem, "dtype": dtype, "kernel": ",".join(registry.names(problem, "cuda"))}
                where = {"compiler": "numba,nvrtc", "device": "cuda:0"}
                plan = Plan.of(from_data({"name": "all", "sweep": [sweep | where]}), {"cuda:0": "cuda:0"})
                planned = list(plan.cases({"cuda:0": ANY_GPU, "cpu": ANY_GPU}))
            except UsageError:  # not a type of the problem
                continue
            for item in planned:
                if not item.skip and isinstance(registry.kernel_of(item.case).build(item.case), GpuKernel):
                    result.setdefault((problem, item.case.kernel, item.case.compiler), item.case)
    return list(result.values())


def lines(capability: str) -> Iterator[list[object]]:
    """A line per check: capability, kernels, check, how many instructions agree, how many differ, and in what."""
    agree: Counter[str] = Counter()
    differ: dict[str, Counter[str]] = {}
    kernels = 0
    for case in cases():
        program = registry.kernel_of(case).build(case)
        try:
            code = toolchain_of(program).machine_code(case, program, capability)[1]
        except Exception as error:  # each compiler raises its own
            print(f"{capability} {case.kernel} by {case.compiler} is left out: {one_line(error)[:60]}", file=sys.stderr)
            continue
        kernels += 1
        for check in compared(capability, code):
            if check.here == check.shown:
                agree[check.name] += 1
            else:
                differ.setdefault(check.name, Counter())[f"{check.here} is {check.shown}"] += 1
    for name in sorted({*agree, *differ}):
        other = differ.get(name, Counter())
        examples = "; ".join(f"{what} ({count})" for what, count in other.most_common())
        yield [capability, kernels, name, agree[name], other.total(), examples]


def main() -> None:
    """Compile, disassemble and compare."""
    parser = ArgumentParser(prog="disassembly", description=__doc__)
    parser.add_argument("--capability", default=",".join(_CAPABILITIES), help="separated by commas")
    parser.add_argument("file", type=Path)
    given = parser.parse_args()
    result = [line for capability in given.capability.split(",") for line in lines(capability)]
    with given.file.open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerows([["capability", "kernels", "check", "agree", "differ", "what differs"], *result])
    sys.exit(1 if any(line[4] for line in result) else 0)


if __name__ == "__main__":
    main()
