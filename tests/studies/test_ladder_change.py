"""What a step of the ladder changes from the step before."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from functools import cache
from io import StringIO
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from conftest import Rows
from programs import cuda_kernel
from smembench.explain.analysis import numba_program
from smembench.kernels.kernel import Kernel
from smembench.kernels.problems import PROBLEMS
from smembench.model.errors import UsageError
from smembench.store.run import Run
from smembench.studies.explain import Target, cases, explained
from smembench.studies.ladder.change import Change, change
from smembench.studies.ladder.climb import problems, steps
from smembench.studies.ladder.listing import listing, parts
from smembench.toolchains.machine_code import MachineCode
from smembench.views.ladder_change import figures, print_change

PAIRS = [pair for problem in problems() for pair in pairwise(steps(problem, "cuda"))]
PADDING = change("transpose", "transposeSmemPad")
"""Without machine code, since no compute capability is given."""


@pytest.fixture(scope="module", autouse=True)
def _explained_once() -> Generator[None]:
    """A step is explained once, not again as the one before the next."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("smembench.studies.ladder.change.explained", cache(explained))
        yield


def source(kernel: Kernel) -> list[str]:
    """A kernel's lines at a size where those apply that are for special sizes."""
    ((case,),) = [cases(kernel.name, n=2**15 if kernel.problem == "transpose" else None)]
    return listing(parts(numba_program(kernel, case).function))


@pytest.mark.parametrize(("before", "after"), PAIRS, ids=[after.name for _, after in PAIRS])
def test_every_step_changes_lines(before: Kernel, after: Kernel) -> None:
    old, new = source(before), source(after)
    assert old != new
    for lines in (old, new):
        assert any(line.startswith("def ") for line in lines)
        assert not any(line.startswith(("import", "from ", "KERNEL", '"""')) for line in lines)


def test_the_lines_of_padding_are_the_width_of_the_tile() -> None:
    changed = [line for line in PADDING.lines[2:] if line[0] in "-+"]
    assert changed == ["-width = 32", "+width = 33"]
    assert PADDING.lines[:2] == [
        "--- transposeSmem in transpose_smem.py",
        "+++ transposeSmemPad in transpose_smem.py",
    ]


def test_a_function_that_is_made_per_step_is_shown_once_and_then_by_its_constants() -> None:
    lines = source(cuda_kernel("matmul", "serpentine"))
    assert lines.count("def step(memory: Memory, at: Offsets) -> None:") == 1
    assert lines.count("def load: as above") == 15  # of the fragments of 16 steps
    staging = "a_staged: Array, b_staged: Array, A: Matrix, B: Matrix, thread: Index, corner: Place, k0: Index"
    assert lines.count(f"def load({staging}) -> None:") == 1


def test_the_counters_of_padding() -> None:
    cells = {name: (old, new) for name, old, new in figures(PADDING, None).cells}
    assert cells["wavefronts per shared load request"] == ("32.0", "1.00")
    assert cells["sectors per global store request"] == ("4.00", "4.00")
    assert "registers per thread" not in cells
    assert "no CUDA compiler found" in figures(PADDING, None).sentence


def test_two_steps_are_held_against_each_other() -> None:
    changed = change(
        "transpose", "naiveGmem,transposeSmemPad", {"n": 512}, dtype="float64", target=Target(capability="9.0")
    )
    case = changed.after.explained.case
    assert (changed.before.kernel.name, case.n, case.dtype) == ("naiveGmem", 512, "float64")
    known = {name for name, _, new in figures(changed, "9.0").cells if new}
    assert known >= {"occupancy", "sectors per global load request"}


@pytest.mark.parametrize(("before", "after"), PAIRS, ids=[after.name for _, after in PAIRS])
def test_what_a_step_changes_fits_two_screens(before: Kernel, after: Kernel) -> None:
    text = StringIO()
    if not before.takes((after.dtypes or PROBLEMS[after.problem].dtypes)[0]):
        with pytest.raises(UsageError, match=rf"{after.name}: is the first step of the ladder in \w+; give "):
            change(after.problem, after.name)
        return
    changed = change(after.problem, f"{before.name},{after.name}", {"n": 2**7})
    print_change(Console(file=text, width=80), changed, None)
    assert 5 < len(text.getvalue().splitlines()) <= 100
    assert changed.functions[0] == (changed.before.parts[0], changed.after.parts[0])
    if changed.before.parts[0].source != changed.after.parts[0].source:
        assert f"+++ {changed.after.parts[0].name} in" in text.getvalue()


def test_the_constants_of_padding() -> None:
    assert PADDING.constants == {"width": ("32", "33")}
    text = StringIO()
    print_change(Console(file=text, width=80), PADDING, None)
    assert "width: 32 -> 33" in text.getvalue()


def test_a_step_for_other_sizes_changes_nothing() -> None:
    text = StringIO()
    print_change(Console(file=text, width=80), change("transpose", "transposePaired", {"n": 64}), None)
    assert "The lines are the same at this size." in text.getvalue()


@given(
    st.dictionaries(st.sampled_from("ABCD"), st.integers(1, 9)),
    st.dictionaries(st.sampled_from("ABCD"), st.integers(1, 9)),
)
def test_kinds_of_instructions_that_change_add_up_to_the_difference(old: dict[str, int], new: dict[str, int]) -> None:
    def step(kinds: dict[str, int]) -> Any:
        return SimpleNamespace(explained=SimpleNamespace(code=MachineCode(1, 0, sum(kinds.values()), kinds=kinds)))

    result = Change(step(old), step(new)).instructions
    assert sum(after - before for before, after in result.values()) == sum(new.values()) - sum(old.values())
    assert all(before != after for before, after in result.values())
    assert [abs(after - before) for before, after in result.values()] == sorted(
        (abs(after - before) for before, after in result.values()), reverse=True
    )


def test_the_gain_is_of_the_blocks_that_are_shown(rows: Rows) -> None:
    result = rows({"transposeSmem": [4.0], "transposeSmemPad": [2.0]})
    others = [replace(row, block_x=16, block_y=16, elapsed_ms=1.0) for row in result]
    alone = rows({"transposeSmem": [1.0]}, n=512)
    assert list(PADDING.measured(Run([*others, *alone, *result])).rows) == result
    assert list(PADDING.measured(Run([*others, *alone])).rows) == others
    with pytest.raises(UsageError, match="no case of both transposeSmem and transposeSmemPad"):
        PADDING.measured(Run(alone))


@pytest.mark.parametrize("no_color", [True, False])
def test_lines_are_coloured_on_a_terminal(*, no_color: bool) -> None:
    text = StringIO()
    console = Console(file=text, width=80, force_terminal=True, no_color=no_color)
    print_change(console, PADDING, None, full=True)
    (line,) = [line for line in text.getvalue().splitlines() if "-width = 32" in line]
    assert line.startswith("-") is no_color
