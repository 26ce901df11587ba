"""Requests by warps without an active lane: they move nothing, but hardware counts them.

The compiler guards an access by a predicate where the source has an ``if``, and then every warp that comes there issues
it, with whatever lanes take the branch; a warp at an access without a predicate has an active lane. How often it is
issued with none follows from the machine code in three cases:

- every warp issues each instruction of a kind once, since none lies in a loop or is branched around;
- every warp issues each guarded instruction of a kind once, and none without a guard is of the same line;
- a store is guarded that no thread makes, such as zeros beyond an edge that is never reached, and the store of the
  other branch is not: then each warp that issues this one issues that one as well.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from linecache import getlines

from smembench.explain.requests import Request
from smembench.explain.trace import Trace
from smembench.toolchains.machine_code import MachineCode
from smembench.toolchains.memory_instructions import UNREAD, MemoryInstruction
from smembench.toolchains.source_lines import shared_by_line


def idle_requests(
    traced: Trace, requests: Sequence[Request], code: MachineCode, warps: int, lined: Callable[[], bytes]
) -> dict[str, int]:
    """Those of a launch to shared memory, by kind; ``warps`` are those of the grid.

    A kind is left out if it has none, and if that is not known. ``lined`` compiles with line information.
    """
    found = of_warps(requests, code.memory, warps)
    kinds = {each.kind for each in code.memory if each.space == "shared" and each.guarded} - found.keys()
    kinds -= {kind for space, kind in traced.unmatched if space == "shared"}
    if not kinds:
        return {kind: count for kind, count in found.items() if count > 0}
    lines = shared_by_line(lined, code)
    for kind in kinds:
        found[kind] = of_lines([each for each in requests if each.site.kind == kind], kind, lines, warps)
    if not found.get("store") and "store" in kinds and (others := never_taken(traced)):
        found["store"] = of_branches(requests, others, _guards(lines))
    return {kind: count for kind, count in found.items() if count > 0}


def of_warps(requests: Iterable[Request], code: Mapping[MemoryInstruction, int], warps: int) -> dict[str, int]:
    """Those of kinds whose instructions every warp issues once: so many less those with an active lane.

    Not of asynchronous copies and of matrices, whose requests are not those of other loads and stores.
    """
    active: Counter[str] = Counter()
    for request in requests:
        if request.site.space == "shared":
            active[request.site.kind] += request.weight
    found = {}
    for kind, with_lanes in active.items():
        instructions = {each: count for each, count in code.items() if (each.space, each.kind) == ("shared", kind)}
        if all(each.once and each.width != UNREAD for each in instructions):
            found[kind] = max(0, warps * sum(instructions.values()) - with_lanes)
    return found


def of_lines(
    requests: Iterable[Request], kind: str, lines: Mapping[int, Mapping[MemoryInstruction, int]], warps: int
) -> int:
    """Those of a kind whose guarded instructions every warp issues once; 0 if it is not known.

    Args:
        requests: those of a launch, of this kind.
        lines: the instructions of each line.
    """
    active: Counter[int] = Counter()
    for request in requests:
        if request.site.space == "shared":
            active[request.site.line] += request.weight
    found = 0
    for line, instructions in lines.items():
        of_kind = {each: count for each, count in instructions.items() if each.kind == kind}
        if any(each.guarded for each in of_kind):
            if line not in active or not all(each.guarded and each.once and each.width != UNREAD for each in of_kind):
                return 0
            found += max(0, warps * sum(of_kind.values()) - active[line])
    return found


def _guards(lines: Mapping[int, Mapping[MemoryInstruction, int]]) -> dict[int, set[bool]]:
    """By line, whether a predicate guards its stores; of several some may have one."""
    found: dict[int, set[bool]] = {}
    for line, instructions in lines.items():
        if guards := {each.guarded for each in instructions if each.kind == "store"}:
            found[line] = guards
    return found


def never_taken(trace: Trace) -> dict[int, int]:
    """The lines of stores to shared memory that no thread made, each with that of the other branch, which some did."""
    made = {each.site.line for each in trace.accesses if (each.site.space, each.site.kind) == ("shared", "store")}
    tree = ast.parse("".join(getlines(trace.filename)))
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.If):
            for one, other in ((node.body, node.orelse), (node.orelse, node.body)):
                for (array, line), (same, taken) in zip(_stores(one), _stores(other), strict=False):
                    if array == same and line not in made and taken in made:
                        found[line] = taken
    return found


def of_branches(requests: Iterable[Request], others: Mapping[int, int], guards: Mapping[int, Collection[bool]]) -> int:
    """Those of guarded stores that no thread makes; 0 if others are guarded, too, and it is not known.

    Args:
        requests: those of a launch.
        others: see ``never_taken``.
        guards: by line, whether a predicate guards its stores to shared memory.
    """
    alone = {line for line, by_predicate in guards.items() if set(by_predicate) == {True}}
    if any(True in guards[line] for line in guards.keys() - alone) or not alone <= others.keys():
        return 0
    if any(set(guards.get(others[line], ())) != {False} for line in alone):
        return 0
    issued: Counter[int] = Counter()
    for request in requests:
        if (request.site.space, request.site.kind) == ("shared", "store"):
            issued[request.site.line] += request.weight
    return sum(issued[others[line]] for line in alone)


def _stores(statements: Sequence[ast.stmt]) -> Iterator[tuple[str, int]]:
    """The only store to an element among a branch's own statements: its array and its line."""
    found = [
        (ast.unparse(target.value), statement.lineno)
        for statement in statements
        if isinstance(statement, ast.Assign)
        for target in statement.targets
        if isinstance(target, ast.Subscript)
    ]
    if len(found) == 1:
        yield found[0]
