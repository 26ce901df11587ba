"""Kernels by all compilers one below the other, and the best at each size compared with the limits."""

from __future__ import annotations

from dataclasses import replace

import pytest

from smembench.kernels.problems import PROBLEMS
from smembench.model.case import Block, Case
from smembench.model.device import DeviceInfo
from smembench.model.measurement import Measurement, Resources, Sample, Status
from smembench.store.relations import relate
from smembench.store.run import Run
from smembench.store.run_json import Description, Git
from smembench.store.schema import Row, row_of
from smembench.studies import compilers as study
from smembench.studies.compilers import Build, PortedCase, compiled, measured, names, ports_of
from smembench.toolchains import registry
from smembench.toolchains.machine_code import MachineCode
from smembench.toolchains.register_bank_conflicts import MainLoop
from smembench.toolchains.registry import Refused
from smembench.views import compilers as view
from smembench.views.limits import limits
from smembench.views.sentences import sentence

DOCUMENTED = ("copyGmem", "naiveGmem", "transposeSmem", "transposeSmemPad")
RUN = Description(
    devices=[DeviceInfo(name="cuda:0", model="a GPU", compute_capability="9.0")], versions={"numba": "1.2"}
)


def code(of: Case) -> MachineCode:
    return MachineCode(40, 8, 200) if of.compiler == "numba" else MachineCode(32, 0, 100)


@pytest.fixture(autouse=True)
def made_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """The compilers of the run are those here, and make this code."""
    monkeypatch.setattr(study, "versions", lambda *, cuda: {"numba": "1.2"})
    monkeypatch.setattr(study, "machine_code", lambda of, capability: code(of) if capability == "9.0" else None)


def case(kernel: str, compiler: str = "numba", *, problem: str = "transpose", block: Block | None = None) -> Case:
    k = 64 if problem == "matmul" else None
    return Case(problem, kernel, "cuda:0", "float32", 64, 64, k, block or Block(16, 16), compiler=compiler)


def row(of: Case, elapsed_ms: float, registers: int | None = None) -> Row:
    problem = PROBLEMS[of.problem]
    samples = tuple(Sample(0, index, elapsed_ms) for index in range(3))
    done = Measurement(of, Status.OK, "", problem.bytes_moved(of), problem.flops(of), 0, samples=samples)
    done = replace(done, verified=True, ci_width=0.0, resources=Resources(registers, 0))
    return row_of("run", done, relate([done]))


def port_of(of: Case) -> Case:
    return replace(of, compiler="nvrtc")


def by_nvrtc(pairs: list[PortedCase]) -> PortedCase:
    (result,) = (pair for pair in pairs if pair.compiler == "nvrtc")
    return result


def test_rows_pair_up_by_everything_but_the_compiler() -> None:
    rows = [
        row(case("naive", problem="matmul"), 2.0, 40),
        row(case("naive", problem="matmul", block=Block(8, 8)), 3.0),
        row(case("naive", "nvrtc", problem="matmul"), 1.5, 32),
        row(case("copyGmem", "nvrtc"), 1.0),
    ]
    (pair,) = measured(Run(rows), code)
    assert (pair.case, pair.ratio and pair.ratio.value) == (rows[0].case, 0.75)
    assert pair.ours == Build(2.0, 40, 0, 200)
    assert pair.port == Build(1.5, 32, 0, 100)


def test_what_was_not_measured_is_compared_by_its_code() -> None:
    pair = by_nvrtc(compiled([case("copyGmem")], code))
    assert (pair.ours, pair.port, pair.ratio) == (Build(None, 40, 8, 200), Build(None, 32, 0, 100), None)
    unknown = by_nvrtc(compiled([case("copyGmem")], lambda of: None))
    assert unknown.ours == unknown.port == Build()


def test_a_port_that_was_not_measured_is_named_with_its_reason() -> None:
    refused = replace(row(case("copyGmem", "nvrtc"), 1.0), status="skipped", reason="too odd", elapsed_ms=None)
    (section,) = view.of_run(Run([row(case("copyGmem"), 1.0, 32), refused], RUN))
    assert section.cells == [["copyGmem", "16x16", "numba", "1.0000", "", "32", "", "200"]]
    assert section.sentence == "Not by CUDA C: copyGmem: too odd."

    of = case("copyGmem")
    pair = by_nvrtc(compiled([of], code, {port_of(of): "too odd"}))
    assert (pair.ours, pair.port, pair.missing) == (Build(None, 40, 8, 200), Build(), "too odd")


def test_what_a_compiler_does_not_take_is_named_with_its_reason() -> None:
    def refused(of: Case) -> MachineCode | None:
        if of.compiler == "nvrtc":
            raise Refused("no such thing as blockIdx")
        return code(of)

    (section,) = view.compilers([by_nvrtc(compiled([case("copyGmem")], refused))], "", {})
    assert [line[2] for line in section.cells] == ["numba"]
    assert section.sentence == "Not by CUDA C: copyGmem: no such thing as blockIdx."


def test_the_ports_of_a_case_differ_in_their_compiler() -> None:
    of = case("transposeSmemPad")
    assert [port.compiler for port in ports_of(of)] == ["mlir", "nvrtc", "triton"]
    assert {replace(port, compiler="numba") for port in ports_of(of)} == {of}


def test_without_a_toolchain_its_ports_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "find_spec", lambda module: None)
    assert names("transpose") == DOCUMENTED
    assert [pair.compiler for pair in compiled([case("transposeSmemPad")], code)] == ["nvrtc"]
    assert {sweep["compiler"] for sweep in study.sweeps("transpose,matmul")} == {"nvrtc"}
    monkeypatch.setattr(registry, "find_spec", lambda module: module)
    assert [pair.compiler for pair in compiled([case("transposeSmemPad")], code)] == ["mlir", "nvrtc", "triton"]
    assert "tiled2D" in names("matmul")


def test_the_table_says_how_fast_numba_is_and_what_may_be_to_blame() -> None:
    rows = [
        row(case("naiveGmem"), 2.0, 40),
        row(case("naiveGmem", "nvrtc"), 1.8, 32),
        row(case("copyGmem"), 1.0, 32),
        row(case("copyGmem", "nvrtc"), 1.0, 32),
    ]
    (section,) = view.of_run(Run(rows, RUN))
    assert section.heading == "a GPU · numba 1.2 · matrix transpose 64×64 float32"
    assert section.cells[:2] == [
        ["naiveGmem", "16x16", "numba", "2.0000", "", "40", "", "200"],
        ["naiveGmem", "16x16", "nvrtc", "1.8000", "0.900 ±0.01 %", "32", "", "100"],
    ]
    assert "0.900 ±0.01 % to 1.000 ±0.01 % of the speed of CUDA C; lowest for naiveGmem 16x16" in section.sentence
    assert "Numba takes more registers and instructions" in section.sentence
    assert view.of_run(Run(rows[:1], RUN)) == []


@pytest.mark.parametrize(
    ("elapsed", "loops", "end"),
    [
        ((1.0, 1.25), (850, 800), "highest for tiled 16x16, where CUDA C has a main loop that can reach at most 80 %"),
        ((1.25, 1.0), (800, 850), "lowest for tiled 16x16, where Numba has a main loop that can reach at most 80 %"),
        ((1.25, 1.0), (850, 800), "lowest for tiled 16x16, where Numba takes more registers and instructions."),
        ((1.0, 1.25), (800, 850), "highest for tiled 16x16."),
        ((1.0, 1.0), (800, 850), "lowest for tiled 16x16."),
    ],
)
def test_the_sentence_is_about_the_ratio_farthest_from_one(
    monkeypatch: pytest.MonkeyPatch, elapsed: tuple[float, float], loops: tuple[int, int], end: str
) -> None:
    def with_loop(of: Case, capability: str) -> MachineCode:
        by_numba = of.compiler == "numba"
        return replace(code(of), loop=MainLoop(1100, loops[0] if by_numba else loops[1], 1000))

    monkeypatch.setattr(study, "machine_code", with_loop)
    of = case("tiled", problem="matmul")
    (section,) = view.of_run(Run([row(of, elapsed[0], 40), row(port_of(of), elapsed[1], 32)], RUN))
    assert end in section.sentence


@pytest.mark.parametrize(
    ("made", "by"),
    [({"versions": {"numba": "1.1"}}, "numba 1.1"), ({"git": {"revision": "0123456789"}}, "revision 0123456")],
)
def test_of_code_that_others_made_no_instructions_are_said(
    monkeypatch: pytest.MonkeyPatch, made: dict[str, object], by: str
) -> None:
    monkeypatch.setattr(study, "git_revision", lambda: Git(revision="abcdef"))
    rows = [row(case("copyGmem"), 1.0, 32), row(case("copyGmem", "nvrtc"), 1.0, 32)]
    (section,) = view.of_run(Run(rows, Description.model_validate(RUN.data | made)))
    assert section.cells[0][-1] == ""
    assert section.sentence.endswith(f"Instructions are left out: the run's code is by {by}.")


def test_without_times_the_table_has_none() -> None:
    pair = by_nvrtc(compiled([case("tiled", problem="matmul")], code))
    (section,) = view.compilers([pair], "compute capability 8.0", {})
    assert section.heading == "compute capability 8.0 · matrix product 64×64×64 float32"
    assert section.cells == [
        ["tiled", "16x16", "numba", "40", "8", "2048", "200"],
        ["tiled", "16x16", "nvrtc", "32", "0", "2048", "100"],
    ]
    assert section.sentence == ""


def test_the_best_of_a_size_stands_beside_its_yardsticks() -> None:
    rows = [
        row(replace(case("memcpy"), block=None), 0.9),
        row(replace(case("torch", "torch"), block=None), 3.0),
        row(case("copyGmem"), 0.5),
        row(case("naiveGmem"), 4.0),
        row(case("transposeSmemPad"), 1.0),
    ]
    (section,) = limits(Run(rows, RUN))
    assert [column.heading for column in section.columns][-2:] == ["over\nmemcpy", "over\ntorch"]
    (line,) = section.cells
    assert line[:2] == ["64×64", "transposeSmemPad 16x16"]
    assert line[-2:] == ["0.900 ±0.01 %", "3.000 ±0.01 %"]
    (alone,) = limits(Run(rows[2:], RUN))
    assert (alone.columns[-1].heading, alone.cells[0][-1]) == ("over\nnaiveGmem", "4.000 ±0.01 %")
    slower = row(case("naiveGmem", block=Block(8, 8)), 6.0)
    assert limits(Run([*rows[2:], slower], RUN))[0].cells == alone.cells
    cold = [replace(one, case_id=f"{one.case_id[:-4]}cold", cache="cold") for one in rows]
    assert limits(Run([*rows, *cold], RUN), most=0)[0].notes[-1] == "2 more lines: --limits"  # of one size
    port = row(case("transposeSmemPad", "nvrtc"), 0.9)
    assert limits(Run([*rows, port], RUN))[0].cells == [line]
    assert limits(Run([*rows[:2], port], RUN))[0].cells[0][1] == "transposeSmemPad nvrtc 16x16"
    assert limits(Run([*rows, replace(rows[3], kernel="somebodysOwn", elapsed_ms=0.1)], RUN))[0].cells == section.cells


def test_a_sentence_says_nothing_of_disturbed_times_and_of_ports() -> None:
    naive, shared = row(case("naiveGmem"), 4.0), row(case("transposeSmem"), 1.0)
    assert sentence(Run([naive, shared])).startswith(
        "Through shared memory the transpose is 4.000 times (±0.01 %) as fast as naiveGmem"
    )
    for changed in ({"cpu_waiting": 0.5}, {"throttle_reasons": "sw_thermal"}, {"compiler": "nvrtc"}):
        assert sentence(Run([replace(naive, **changed), shared])) == ""
