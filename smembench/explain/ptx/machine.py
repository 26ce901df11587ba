"""Run a PTX kernel on addresses: the threads of a block as NumPy arrays, group by group.

Threads at the smallest program counter run first, so that groups which parted meet again. Only what addresses,
branches and barriers depend on is computed; the rest, such as the sums of a product, is skipped. What is loaded from
arrays without data is unknown, and so is what is computed from it. An access, a branch or a barrier that depends on it
is noted and left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from smembench.explain.mistakes import WARP_SYNCS, Mistake
from smembench.explain.ptx.accesses import Accesses, Traced
from smembench.explain.ptx.memory import Memory
from smembench.explain.ptx.needed import MEMORY, needed
from smembench.explain.ptx.program import ENDS, Instruction, PtxKernel
from smembench.explain.ptx.registers import Launch, Mask, Registers
from smembench.explain.ptx.values import Run, of_values
from smembench.model.errors import UsageError

_IGNORED = (
    "membar", "fence", "prefetch", "prefetchu", "nanosleep", "discard", "applypriority", "pmevent", "griddepcontrol",
    "createpolicy", "setmaxnreg",
)  # fmt: skip
"""Instructions that neither access memory nor give values that are followed."""
_OPAQUE = ("isspacep", "mma", "wmma", "dp4a", "dp2a", "testp", "addc", "subc", "madc", "szext")
"""Instructions whose results are unknown."""
_MOST_STEPS = 4_000_000
"""Instructions of a block that are run, at most."""

_Barrier = tuple[int, int, int]
"""Where threads go on behind a barrier, its number, and for how many threads it waits, 0 for all."""


class Machine:
    """Runs blocks of a launch, one after the other; ``widths`` are those of ``merged.Merging``.

    Raises:
        UsageError: for an instruction that cannot be run, and a kernel that does too much.
    """

    def __init__(self, kernel: PtxKernel, launch: Launch, memory: Memory, widths: Mapping[int, int]) -> None:
        self.memory = memory
        self._kernel = kernel
        self._registers = Registers(kernel, launch, memory)
        self.threads = self._registers.threads
        self._needed = needed(kernel, memory.has_data)
        self._accesses = Accesses(self._registers, self._needed, widths)
        self._blocks, self._block_at = self._compiled()

    def run(self, index: tuple[int, int, int]) -> Traced:
        """Run a block and return what it did."""
        self._registers.enter(index)
        self._accesses.enter()
        self.memory.enter(self.threads)
        with np.errstate(all="ignore"):
            self._run()
        return self._accesses.found

    def _compiled(self) -> tuple[list[tuple[list[tuple[Instruction, Run]], Instruction | None]], dict[int, int]]:
        """Straight pieces of code, each with the instruction that ends it, and their numbers by first instruction."""
        code = self._kernel.code
        begins = {0, *self._kernel.labels.values()} | {n + 1 for n, each in enumerate(code) if each.root in ENDS}
        begins.discard(len(code))
        ordered = sorted(begins)
        blocks = []
        for begin, end in zip(ordered, [*ordered[1:], len(code)], strict=True):
            last = code[end - 1] if code[end - 1].root in ENDS else None
            inside = code[begin : end - 1] if last is not None else code[begin:end]
            made = ((each, self._instruction(each)) for each in inside)
            blocks.append(([(each, run) for each, run in made if run is not None], last))
        at = {begin: number for number, begin in enumerate(ordered)}
        return blocks, at | {len(code): len(ordered)}

    def _instruction(self, given: Instruction) -> Run | None:
        """A function that runs an instruction for the threads of a mask; None if nothing depends on it."""
        root = given.root
        if root in MEMORY and not (root == "ld" and given.space == "param"):
            return self._accesses.of_memory(given)
        if root in _IGNORED or not self._needed.registers.intersection(given.targets):
            if root not in _IGNORED and not given.targets and root != "call":
                raise self._registers.refused(given.called_from.line, given.opcode)
            if root == "call":
                raise self._registers.refused(given.called_from.line, given.opcode)
            return None
        if root == "ld":
            return self._parameter(given)
        if root == "mov" and ("{" in given.operands[0] or "{" in given.operands[1]):
            return self._packed(given)
        if root in ("mov", "cvta"):
            return self._moved(given)
        if root in ("shfl", "vote", "activemask", "match", "redux", "elect"):
            return self._across_lanes(given)
        return self._computed(given)

    def _refused(self, given: Instruction) -> UsageError:
        return UsageError(f"{self.kernel.name}, line {given.called_from.line}: {given.opcode} is not traced")

    def _computed(self, given: Instruction) -> Callable[[Mask | None], None]:
        found = operation(given.parts)
        names, targets = given.sources, given.targets
        if found is None or len(found.types) != len(given.operands) - 1:
            if given.root not in _OPAQUE and "." not in given.opcode:
                raise self._refused(given)

            def opaque(mask: Mask | None) -> None:
                for name in targets:
                    self._write(name, np.zeros((), TYPES[self.kernel.type_of(name) or "b32"])[()], mask, np.bool_(True))

            return opaque
        operands = [self._operand(*each) for each in zip(given.operands[1:], found.types, strict=False)]
        compute, results = found.compute, _results(given)

        def run(mask: Mask | None) -> None:
            value = compute(*(operand() for operand in operands))
            unknown = self._unknown_in(names)
            if isinstance(value, list):
                for name, each in zip(results, value, strict=False):
                    if name != "_":
                        self._write(name, each, mask, unknown)
            else:
                self._write(targets[0], value, mask, unknown)

        return run

    def _moved(self, given: Instruction) -> Callable[[Mask | None], None]:
        """``mov`` and ``cvta``, which adds or takes away where a space lies among generic addresses."""
        (target,) = given.targets
        source = self._operand(given.operands[1], TYPES[given.types[-1]])
        window = np.uint64(self.memory.window(given.space)) if given.root == "cvta" else np.uint64(0)
        if given.root == "mov" and given.operands[1] in self.kernel.variables:
            window = np.uint64(0)
        away = "to" in given.parts

        def run(mask: Mask | None) -> None:
            value = source()
            if window:
                value = value - window if away else value + window
            self._write(target, value, mask, self._unknown_in(given.sources))

        return run

    def _packed(self, given: Instruction) -> Callable[[Mask | None], None]:
        """``mov`` between a register and the registers of its parts, the lowest first."""
        whole = np.dtype(f"u{np.dtype(TYPES[given.types[-1]]).itemsize}")
        source, target = given.operands[1], given.operands[0]
        texts = split((source if "{" in source else target).strip("{} "))
        part = np.dtype(f"u{whole.itemsize // len(texts)}")
        shifts = [whole.type(8 * part.itemsize * number) for number in range(len(texts))]
        if "{" in source:
            operands = [self._operand(text, part.str[1:]) for text in texts]

            def pack(mask: Mask | None) -> None:
                value: Any = whole.type(0)
                for operand, shift in zip(operands, shifts, strict=True):
                    value = value | operand().astype(whole) << shift
                self._write(given.targets[0], value, mask, self._unknown_in(given.sources))

            return pack
        operand = self._operand(source, whole.str[1:])

        def unpack(mask: Mask | None) -> None:
            value, unknown = operand(), self._unknown_in(given.sources)
            for name, shift in zip(texts, shifts, strict=True):
                if name != "_":
                    self._write(name, (value >> shift).astype(part), mask, unknown)

        return unpack

    def _parameter(self, given: Instruction) -> Callable[[Mask | None], None]:
        match = _ADDRESS.fullmatch(given.operands[1])
        if match is None or match[1] not in self.launch.parameters:
            raise self._refused(given)
        kind, begin = np.dtype(TYPES[given.types[-1]]), int(match[3] or "0", 0)
        content = self.launch.parameters[match[1]]
        values = []
        for number in range(len(given.targets)):
            at = begin + number * kind.itemsize
            values.append(np.frombuffer(content[at : at + kind.itemsize], kind)[0])

        def run(mask: Mask | None) -> None:
            for name, value in zip(given.targets, values, strict=True):
                self._write(name, value, mask)

        return run

    def _across_lanes(self, given: Instruction) -> Callable[[Mask | None], None]:
        compute = across_lanes(given, self._operand, self.threads)
        if compute is None:
            raise self._refused(given)

        def run(mask: Mask | None) -> None:
            active = np.ones(self.threads, np.bool_) if mask is None else mask
            unknown = self._unknown_in(given.sources)
            if unknown is not None:  # any lane's value may reach any other
                unknown = np.ones(self.threads, np.bool_)
            for name, value in zip(_results(given), compute(active), strict=False):
                if name != "_":
                    self._write(name, value, mask, unknown)

        return run

    # Memory.

    def _address(self, text: str) -> tuple[Callable[[], Any], list[str]]:
        """A function that returns the address in brackets, and the registers in it."""
        match = _ADDRESS.fullmatch(text)
        if match is None:
            raise UsageError(f"{self.kernel.name}: the address {text} is not traced")
        offset = int(match[3] or "0", 0) * (-1 if match[2] == "-" else 1)
        declared = self.kernel.type_of(match[1])
        kind = "u8" if declared is None else f"u{np.dtype(TYPES[declared]).itemsize}"
        base = self._operand(match[1], kind)
        names = [match[1]] if declared is not None else []
        return lambda: np.asarray(base()).astype(np.int64) + offset, names

    def _memory_access(self, given: Instruction) -> Callable[[Mask | None], None] | None:
        if given.root == "cp":
            return self._asynchronous_copy(given)
        if given.root in ("ldmatrix", "stmatrix"):
            return self._matrices(given)
        return self._plain_access(given)

    def _plain_access(self, given: Instruction) -> Callable[[Mask | None], None]:
        kind = {"ld": "load", "ldu": "load", "st": "store", "atom": "atomic", "red": "atomic"}[given.root]
        types = given.types
        if not types:
            raise self._refused(given)
        element = np.dtype(TYPES[types[-1]])
        count = next((int(part[1:]) for part in given.parts if re.fullmatch(r"v[248]", part)), 1)
        width = self._widths.get(id(given), element.itemsize * count)
        (address, in_address), *_ = [self._address(text) for text in given.addresses]
        wanted = bool(self._needed.registers.intersection(given.targets))
        stores = kind != "load" and given.space in self._needed.spaces
        values = self._stored(given, element) if stores else []
        targets = _elements(given.operands[0]) if given.root in ("ld", "ldu", "atom") else [""] * count

        def access(mask: Mask | None) -> None:
            mask = self._followed(given, mask, in_address)
            addresses = np.broadcast_to(address(), self.threads)
            operands = [value() for value in values]
            unknown = self._unknown_in(given.sources) if stores else None
            for part in self.memory.apart(given.space, addresses, mask):
                access_space(part, addresses, operands, unknown)

        def access_space(mask: Mask | None, addresses: Integers, operands: Sequence[Any], unknown: Mask | None) -> None:
            space, inside = self._note(given, kind, width, addresses, mask)
            for number, target in enumerate(targets):
                at = inside + number * element.itemsize
                if stores and kind == "atomic":
                    value, missing = self.memory.update(given.parts, space, at, operands, (mask, unknown))
                elif wanted:
                    value, missing = self.memory.load(space, at, element, mask)
                if wanted and target != "_":
                    self._write(target, value, mask, missing)
                if stores and kind == "store":
                    self.memory.store(space, at, operands[number], (mask, unknown))

        return access

    def _stored(self, given: Instruction, element: np.dtype[Any]) -> list[Callable[[], Any]]:
        """The values that an instruction stores, or those that an atomic one combines with what is there."""
        others = [text for text in given.operands if not text.startswith("[")]
        texts = others if given.root in ("st", "red") else others[1:]
        if given.root == "st" and texts:
            texts = _elements(texts[0])
        number = element.str[1:] if element.kind != "V" else "u8"
        return [self._operand(text, number) for text in texts]

    def _followed(self, given: Instruction, mask: Mask | None, names: Sequence[str]) -> Mask | None:
        """The threads whose addresses are known; the others are noted."""
        unknown = self._unknown_in(names)
        if unknown is None:
            return mask
        inside = np.ones(self.threads, np.bool_) if mask is None else mask
        if (inside & unknown).any():
            self._note_unknown(given, "an address")
        return inside & ~unknown

    def _note_unknown(self, given: Instruction, what: str) -> None:
        self.found.unfollowed.add(Unfollowed(given.called_from.line, what, "data that was not given"))

    def _note(
        self, given: Instruction, kind: str, width: int, addresses: Integers, mask: Mask | None, way: str = ""
    ) -> tuple[str, Integers]:
        """Record an access; the space, and the addresses in it."""
        space, inside = self.memory.located(given.space, addresses, mask)
        if width and space in ("shared", "global", "const"):
            row = inside.copy() if mask is None else np.where(mask, inside, NOWHERE)
            self.found.records.append(Record(given, space, kind, width, way, row, self._order.copy()))
        return space, inside

    def _asynchronous_copy(self, given: Instruction) -> Callable[[Mask | None], None] | None:
        if "bulk" in given.parts:
            raise self._refused(given)
        if "async" not in given.parts or not given.addresses:
            return None  # commits and waits, in whose order all copies are done at once
        (to, in_to), (of, in_of) = [self._address(text) for text in given.addresses[:2]]
        others = [text for text in given.operands if not text.startswith("[")]
        width = int(others[0], 0)
        limited = len(others) > 1 and "cache_hint" not in given.opcode
        size = self._operand(others[1], "u4") if limited else None

        def copy(mask: Mask | None) -> None:
            mask = self._followed(given, mask, [*in_to, *in_of])
            source, target = (np.broadcast_to(each(), self.threads) for each in (of, to))
            read = mask
            if size is not None:
                some = np.broadcast_to(size() > 0, self.threads)
                read = some if mask is None else some & mask
            if read is None or read.any():
                self._note(given, "load", width, source, read, "asynchronous")
            if mask is None or mask.any():
                space, inside = self._note(given, "store", width, target, mask, "asynchronous")
                self.memory.forget(space, inside, width, mask)

        return copy

    def _matrices(self, given: Instruction) -> Callable[[Mask | None], None]:
        """``ldmatrix`` and ``stmatrix``: each matrix has eight rows, by the addresses of eight lanes."""
        address, in_address = self._address(given.addresses[0])
        count = next((int(part[1]) for part in given.parts if re.fullmatch(r"x[124]", part)), 1)
        lanes = np.arange(self.threads) % WARP < 8 * count
        kind = "load" if given.root == "ldmatrix" else "store"

        def matrices(mask: Mask | None) -> None:
            mask = self._followed(given, mask, in_address)
            rows = lanes if mask is None else lanes & mask
            self._note(given, kind, 16, np.broadcast_to(address(), self.threads), rows, "matrix")
            for name in given.targets:
                self._write(name, np.uint32(0), mask, np.bool_(True))

        return matrices

    # Control.

    def _run(self) -> None:
        everyone = np.ones(self.threads, np.bool_)
        running: dict[int, Mask] = {0: everyone}
        waiting: dict[_Barrier, Mask] = {}
        steps = 0
        while running or waiting:
            if not running:
                self._release(running, waiting)
                continue
            number = min(running)
            mask = running.pop(number)
            if number >= len(self._blocks):
                continue
            inside, last = self._blocks[number]
            steps += len(inside) + 1
            if steps > MOST_STEPS:
                raise UsageError(
                    f"{self._kernel.name}: a block runs more than {MOST_STEPS} instructions; give less work"
                )
            whole = None if mask.all() else mask
            for instruction, run in inside:
                guarded = self._guarded(instruction, whole)
                if guarded is None or guarded.any():
                    run(guarded)
            self._go_on(number, last, mask, (running, waiting))

    def _guarded(self, given: Instruction, mask: Mask | None) -> Mask | None:
        """The threads of a mask whose predicate is true; None for all."""
        if not given.guard:
            return mask
        taken = self._predicate(given)
        if mask is not None:
            taken = taken & mask
        return None if taken.all() else taken

    def _predicate(self, given: Instruction) -> Mask:
        taken, unknown = self._registers.predicate(given.guard, negated=given.negated)
        if unknown is not None:
            self._accesses.note_unknown(given, "a branch")
        return taken

    def _go_on(
        self,
        number: int,
        last: Instruction | None,
        mask: Mask,
        at: tuple[dict[int, Mask], dict[_Barrier, Mask]],
    ) -> None:
        """Where the threads of a mask go after a piece of code."""
        running, _ = at
        taken = mask
        if last is None:
            _join(running, number + 1, mask)
            return
        if last.guard:
            chosen = self._predicate(last)
            unknown = self._registers.unknown_in([last.guard])
            if unknown is not None and last.root == "bra" and self._target(last) > number:
                chosen = chosen | unknown  # past what depends on data
            taken = mask & chosen
            if (rest := mask & ~chosen).any():
                _join(running, number + 1, rest)
            if not taken.any():
                return
        if last.root == "bra":
            _join(running, self._target(last), taken)
        elif last.root in ("bar", "barrier"):
            self._wait(number, last, taken, at)
        elif last.root == "brx":
            self._by_index(last, taken, running)

    def _by_index(self, last: Instruction, taken: Mask, running: dict[int, Mask]) -> None:
        """``brx.idx``: to labels of a table; past all of them where the index depends on data."""
        table = self.kernel.tables.get(last.operands[1])
        if table is None:
            raise self._refused(last)
        targets = [self._block_at[self.kernel.labels[label]] for label in table]
        index = np.broadcast_to(self._operand(last.operands[0], "u4")(), self.threads)
        unknown = self._unknown_in(last.sources)
        if unknown is not None and (taken & unknown).any():
            self._note_unknown(last, "a branch")
            _join(running, max(targets), taken & unknown)
            taken = taken & ~unknown
        for number, target in enumerate(targets):
            if (chosen := taken & (index == number)).any():
                _join(running, target, chosen)

    def _target(self, branch: Instruction) -> int:
        return self._block_at[self._kernel.labels[branch.operands[-1]]]

    def _wait(
        self, number: int, last: Instruction, mask: Mask, at: tuple[dict[int, Mask], dict[_Barrier, Mask]]
    ) -> None:
        running, waiting = at
        if "warp" in last.parts:
            self._accesses.order[mask] += 1
            _join(running, number + 1, mask)
            return
        operands = last.operands[1:] if "red" in last.parts else last.operands
        constants = [
            self._registers.operand(text, "u4")()
            for text in operands
            if self._kernel.type_of(text.lstrip("!")) != "pred"
        ]
        if any(np.ndim(value) for value in constants):
            raise self._registers.refused(last.called_from.line, last.opcode)
        name, count = (*(int(value) for value in constants), 0, 0)[:2]
        if "arrive" in last.parts:
            _join(running, number + 1, mask)
        _join(waiting, (number + 1, name, count), mask)

    def _release(self, running: dict[int, Mask], waiting: dict[_Barrier, Mask]) -> None:
        """Let those go on that wait for a barrier that all have reached; with a mistake, if not all have."""
        names = sorted({name for _, name, _ in waiting})
        for name in names:
            groups = {key: mask for key, mask in waiting.items() if key[1] == name}
            arrived = np.logical_or.reduce([*groups.values()])
            lines = {self._line_before(key[0]) for key in groups}
            others = np.logical_or.reduce([np.zeros_like(arrived), *(m for k, m in waiting.items() if k[1] != name)])
            if len(lines) > 1 or ((others & ~arrived).any() and not any(key[2] for key in groups)):
                smallest = min(groups.values(), key=lambda mask: int(mask.sum()))
                line = next(self._line_before(key[0]) for key, mask in groups.items() if mask is smallest)
                text = (
                    f"{smallest.sum()} of the block's {self.threads} threads reach this barrier; all must that have "
                    "not returned"
                )
                self._accesses.found.mistakes.add(Mistake(line, "barrier", text))
            self._accesses.order[arrived] = (self._accesses.order[arrived].max() // WARP_SYNCS + 1) * WARP_SYNCS
            for key, mask in groups.items():
                instruction = self._blocks[key[0] - 1][1]
                if instruction is None or "arrive" not in instruction.parts:
                    self._reduced(instruction, arrived)
                    _join(running, key[0], mask)
                del waiting[key]
            self._accesses.found.barriers += 1

    def _line_before(self, number: int) -> int:
        last = self._blocks[number - 1][1]
        return last.called_from.line if last is not None else 0

    def _reduced(self, given: Instruction | None, arrived: Mask) -> None:
        """The result of ``barrier.red``: over all threads that have arrived."""
        if given is None or "red" not in given.parts:
            return
        source = given.operands[-1]
        value = np.broadcast_to(self._registers.operand(source.lstrip("!"), "?")(), self.threads) ^ source.startswith(
            "!"
        )
        found: Any = np.uint32((value & arrived).sum())
        if "and" in given.parts:
            found = np.bool_(value[arrived].all())
        elif "or" in given.parts:
            found = np.bool_(value[arrived].any())
        unknown = self._unknown_in([source.lstrip("!")])  # one thread's leaves the result unknown to all
        missing = None if unknown is None or not unknown[arrived].any() else np.bool_(True)
        self._write(given.operands[0], found, arrived, missing)


def _elements(text: str) -> list[str]:
    """The registers of a vector, or the one register."""
    return split(text.strip("{} "))


def _results(given: Instruction) -> list[str]:
    """The targets as written, of which ``_`` takes nothing: ``%p|%q``."""
    return [text.strip() for text in given.operands[0].split("|")]


def _join(into: dict[Any, Mask], at: Any, mask: Mask) -> None:
    into[at] = into[at] | mask if at in into else mask
