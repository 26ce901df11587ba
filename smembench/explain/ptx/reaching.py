"""Reaching definitions of registers: a compiler gives one name to a counter and, elsewhere, to a sum."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from smembench.explain.ptx.flow import pieces, successors
from smembench.explain.ptx.program import PtxKernel


class Reaching:
    """The writes of a kernel by the reads that they reach."""

    def __init__(self, kernel: PtxKernel) -> None:
        self._kernel = kernel
        self._writes: dict[str, list[int]] = {}
        for number, op in enumerate(kernel.code):
            for name in op.targets:
                self._writes.setdefault(name, []).append(number)
        several = [(name, at) for name, numbers in self._writes.items() if len(numbers) > 1 for at in numbers]
        self._bits = {place: 1 << bit for bit, place in enumerate(several)}
        self._places = [number for _, number in several]
        self._of_name: dict[str, int] = {}
        for name, number in several:
            self._of_name[name] = self._of_name.get(name, 0) | self._bits[name, number]
        self._reaching = self._by_instruction() if several else {}

    def writes(self, number: int, name: str) -> Sequence[int]:
        """The instructions whose writes of a register reach an instruction."""
        if name not in self._of_name:
            return self._writes.get(name, ())
        reaching = self._reaching.get(number, 0) & self._of_name[name]
        return [self._places[bit] for bit in _ones(reaching)]

    def _by_instruction(self) -> Mapping[int, int]:
        """The writes that reach each instruction, as bits."""
        extents = pieces(self._kernel)
        after = successors(self._kernel, extents)
        begins = [0] * (len(extents) + 1)
        waiting = [*range(len(extents))]
        while waiting:
            piece = waiting.pop(0)
            reaching = begins[piece]
            for number in range(*extents[piece]):
                reaching = self._behind(number, reaching)
            for successor in after[piece]:
                if reaching & ~begins[successor]:
                    begins[successor] |= reaching
                    if successor < len(extents) and successor not in waiting:
                        waiting.append(successor)
        reached = {}
        for begin, extent in zip(begins, extents, strict=False):
            for number in range(*extent):
                reached[number] = begin
                begin = self._behind(number, begin)
        return reached

    def _behind(self, number: int, reaching: int) -> int:
        """The writes that reach the next instruction; under a predicate other threads keep theirs."""
        given = self._kernel.code[number]
        for name in given.targets:
            if name in self._of_name:
                kept = reaching if given.guard else reaching & ~self._of_name[name]
                reaching = kept | self._bits[name, number]
        return reaching


def _ones(bits: int) -> Iterator[int]:
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest
