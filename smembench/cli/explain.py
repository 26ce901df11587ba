"""``smembench explain``: why a kernel takes as long as it does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from smembench.cli.options import SIZE, Outputs, changed, complete_kernel, one_of
from smembench.cli.output import Opened, opened
from smembench.cli.signature import takes
from smembench.model.errors import SmembenchError, UsageError

if TYPE_CHECKING:
    from smembench.explain.costs import Costs
    from smembench.model.case import Case
    from smembench.model.device import DeviceInfo


@dataclass(frozen=True)
class Asked:
    """The cases to explain, and for which compute capability, GPU and stored run."""

    cases: Sequence[Case]
    capability: str | None
    device: DeviceInfo | None
    run: Path | None

    @property
    def case(self) -> Case:
        """The only case.

        Raises:
            UsageError: if there are several.
        """
        if len(self.cases) > 1:
            raise UsageError(f"{len(self.cases)} cases: give one; only --measure takes several")
        return self.cases[0]


@dataclass(frozen=True, kw_only=True)
class Launch:
    """How a kernel is launched."""

    block: Annotated[
        str | None,
        typer.Option(
            metavar="XxY,…",
            help="Block dimensions in threads; several with --measure. (default: 32x32 or the kernel's)",
        ),
    ] = None
    grid: Annotated[
        str | None,
        typer.Option(metavar="XxYxZ", help="With a kernel in a file: blocks of the grid, in 1 to 3 dimensions."),
    ] = None
    arg: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ARG",
            help="With a kernel in a file: an argument, in the kernel's order: float32[4096,4096], 1024, 0.5, "
            "'float32 0.5', or x.npy for an array with its data.",
        ),
    ] = None
    shared_bytes: Annotated[
        int | None,
        typer.Option(min=0, metavar="BYTES", help="With a kernel in a file: dynamic shared memory of the launch."),
    ] = None
    define: Annotated[
        list[str] | None,
        typer.Option("--define", "-D", metavar="NAME[=VALUE]", help="With a kernel in a .cu file: define a macro."),
    ] = None
    include: Annotated[
        list[str] | None,
        typer.Option("--include", "-I", metavar="DIR", help="With a kernel in a .cu file: look for headers here, too."),
    ] = None
    std: Annotated[
        str | None,
        typer.Option("--std", metavar="NAME", help="With a kernel in a .cu file: the standard, such as c++20."),
    ] = None

    @property
    def options(self) -> list[str]:
        """The options of NVRTC."""
        named = [*(f"-D{name}" for name in self.define or ()), *(f"-I{folder}" for folder in self.include or ())]
        return [*named, *([f"--std={self.std}"] if self.std else [])]


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """Which cases of the package's kernels are explained, and for which GPU."""

    dtype: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,…", help="Element types; several with --measure. (default: as the kernel's command measures)"
        ),
    ] = None
    pad_width: Annotated[
        str, typer.Option(metavar="N,…", help="Extra columns of a padded tile; several with --measure.")
    ] = "1"
    n: Annotated[
        int | None,
        typer.Option(
            "--n",
            "-n",
            parser=SIZE,
            metavar="N",
            help="Side of the matrices, or elements. (default: as the kernel's command measures)",
        ),
    ] = None
    m: Annotated[int | None, typer.Option("--m", parser=SIZE, metavar="N", help="Rows of A and C. (default: n)")] = None
    k: Annotated[
        int | None, typer.Option("--k", parser=SIZE, metavar="N", help="Columns of A and rows of B. (default: n)")
    ] = None
    nx: Annotated[
        int | None, typer.Option("--nx", parser=SIZE, metavar="N", help="Columns of a transpose's input.")
    ] = None
    ny: Annotated[int | None, typer.Option("--ny", parser=SIZE, metavar="N", help="Rows of a transpose's input.")] = (
        None
    )
    stride: Annotated[
        int | None, typer.Option(parser=SIZE, metavar="N", help="Elements between rows (matmul) or lanes (strided).")
    ] = None
    b_layout: Annotated[
        str | None,
        typer.Option("--b-layout", metavar="NAME", help="How a product's second matrix lies in memory: rows, columns."),
    ] = None
    capability: Annotated[
        str | None,
        typer.Option(
            "--cc",
            metavar="X.Y",
            help="Compute capability, for registers and occupancy. (default: of --run or of the GPU here, else 9.0)",
        ),
    ] = None
    run: Annotated[
        Path | None, typer.Option(metavar="DIR", help="A stored run: explain for its GPU. (default: the GPU here)")
    ] = None

    def asked(self, kernel: str, block: str | None) -> Asked:
        """The cases of a kernel, and the GPU they are explained for."""
        from smembench.kernels import registry
        from smembench.studies.explain import Axes, cases, target
        from smembench.views.console import notes, say

        device, capability = target(self.run, self.capability)
        options = asdict(self)
        del options["run"], options["capability"]
        axes = Axes(block, options.pop("dtype"), options.pop("pad_width"))
        found = cases(kernel, axes, device=device, **options)
        for mistake in registry.mistakes():
            say(notes, mistake)
        return Asked(found, capability, device, self.run)


@dataclass(frozen=True, kw_only=True)
class Task:
    """What is found out about the cases, other than an explanation."""

    best_pad: Annotated[
        bool, typer.Option("--best-pad", help="Find the smallest pad without conflicts of loads or stores.")
    ] = False
    best_swizzle: Annotated[
        bool, typer.Option("--best-swizzle", help="Find the XOR of columns with the fewest conflicts, and the pad.")
    ] = False
    row: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="With --best-swizzle: elements per row of shared arrays with one dimension."
        ),
    ] = None
    measure: Annotated[
        bool, typer.Option("--measure", help="Compare with the hardware's counters; needs a GPU and ncu.")
    ] = False

    def chosen(self, outputs: Pages) -> str:
        """The task's name, "html" for an explanation in the older spelling, "" for any other.

        Raises:
            UsageError: for two tasks at once, and for an option of a task that is not asked for.
        """
        html = outputs.html is not None
        what = one_of(measure=self.measure, best_pad=self.best_pad, best_swizzle=self.best_swizzle, html=html)
        if self.row is not None and not self.best_swizzle:
            raise UsageError(f"--row {self.row}: goes with --best-swizzle")
        one_of(json=outputs.json, html=html)
        return what


@dataclass(frozen=True, kw_only=True)
class Pages(Outputs):
    """The outputs, with an older spelling that writes a page and prints nothing."""

    html: Annotated[Path | None, typer.Option("--html", metavar="FILE", hidden=True)] = None

    def opened(self, task: str) -> Opened:
        """The outputs of a task, or of an explanation, which has no rows for CSV and a page of its own."""
        from smembench.report.files import check_extra
        from smembench.store.files import Output

        if task and self.html is None:
            return opened(self)
        but = {"csv": "is written with --measure, --best-pad or --best-swizzle; use --json for the explanation itself"}
        target = opened(self, but=but)
        if self.html is not None:
            target = Opened(
                target.printed, [*target.files, (Output(self.html, force=self.force, what="--html"), "html")]
            )
        if "html" in target.forms:
            check_extra("explain --html", "jinja2")
        return target


@takes(launch=Launch, chosen=Chosen, task=Task, outputs=Pages)
def explain(
    kernel: Annotated[
        str,
        typer.Argument(
            metavar="KERNEL",
            help="CUDA kernels, such as transposeSmem; several with --measure. Or any kernel in a file: path.cu:name, "
            "path.ptx:name, or Numba's path.py:function.",
            autocompletion=complete_kernel,
        ),
    ],
    *,
    launch: Launch,
    chosen: Chosen,
    task: Task,
    outputs: Pages,
) -> None:
    """Explain a kernel from a trace, without a GPU: bank conflicts, coalescing, occupancy, roofs.

    The trace runs the timed function itself, on addresses instead of data. For each access in the source it gives the
    wavefronts per request in shared memory (n times the ideal is an n-way conflict) or the 32-byte sectors per request
    in global memory. Tiles that the TMA copies and that tensor cores read (wgmma) have a table of their own. Occupancy
    counts registers if a compiler is installed. The roofs are those of memory, of L1 and shared memory, and of
    arithmetic.

    Mistakes that the trace shows are named first, and the exit code is 1: an index outside an array, two threads that
    access a word of shared memory, one of them storing, with no barrier between, a barrier that not all threads reach,
    and a load of shared memory that nothing stored.

    A kernel in a file of your own is traced with the arguments of a launch: CUDA C++ compiled by NVRTC, PTX of any
    compiler, or a function for Numba, whose file is imported. What depends on data that was not given is named; give
    an array's data as a .npy file.

    Examples:

      smembench explain transposeSmem --block 32x32
      smembench explain mine.cu:transpose --grid 128x128 --block 32x32 --arg float32[4096,4096] --arg float32[4096,4096]
      smembench explain mine.py:kernel --grid 128x128 --block 32x8 --arg float32[4096,4096] --arg indices.npy --arg 1024
      smembench explain transposeSmemPad --block 16x16 --dtype float64 --best-pad
      smembench explain transposeSmem --block 16x16 --best-swizzle
      smembench explain tiled --run results/reference/20261123T134710Z-documents
      smembench explain tiled --m 1000 --n 520 --k 4096
      smembench explain naive --stride 5000 --json
      smembench explain transposeSmemPad --export banks.html
      smembench explain transposeSmem,transposeSmemPad --block 32x32,16x16 --pad-width 1,2 --measure
    """
    from smembench.studies.explain_cuda import is_cuda_file
    from smembench.studies.explain_file import is_in_file

    if is_in_file(kernel) or is_cuda_file(kernel):
        old = ["--html"] if outputs.html is not None else []
        if wrong := [*changed(chosen, but="capability"), *changed(task), *old]:
            raise UsageError(f"{wrong[0]}: goes with the package's kernels, not with a kernel in a file")
        _in_file(kernel, launch, chosen.capability, outputs)
        return
    if wrong := changed(launch, but="block"):
        raise UsageError(f"{wrong[0]}: goes with a kernel in a file, such as path.cu:name or path.py:function")
    what = task.chosen(outputs)
    target = outputs.opened(what)
    asked = chosen.asked(kernel, launch.block)
    if what == "measure":
        _measure(asked, target)
    elif what == "best_pad":
        _best_pad(asked.case, target)
    elif what == "best_swizzle":
        _best_swizzle(asked.case, task.row, target)
    else:
        _explain(asked, target, page=outputs.html)


def _explain(asked: Asked, target: Opened, *, page: Path | None) -> None:
    """Explain a case; with ``page`` only a page is written."""
    from smembench.explain.record import to_dict
    from smembench.studies.explain import explained, measured
    from smembench.views.console import say, stderr, stdout
    from smembench.views.explain import explanation, print_explanation, tables
    from smembench.views.explain_cure import cure_lines, cure_sections
    from smembench.views.explain_roof import roof
    from smembench.views.export import Result

    case, capability, device = asked.case, asked.capability, asked.device
    timed = measured(case, asked.run, device) if asked.run is not None and device is not None else None
    said = explained(case, capability, device.sm_count if device else None)
    shown, cures = [*explanation(said), roof(said, capability, device, timed)], cure_lines(said)

    def html() -> str:
        from smembench.report.explanation import explanation_page

        return explanation_page(said, [*shown, *cure_sections(cures)])

    result = Result(
        sections=tables(said, shown, cures),
        data=lambda: {**to_dict(said, capability, device), "measured_ms": timed.elapsed_ms if timed else None},
        html=html,
    )
    if page is not None:
        target.show(result, lambda: say(stderr, f"wrote {page}"))
        return
    target.show(result, lambda: print_explanation(stdout, said, shown, cures))
    _fail_on_mistakes(said)


def _in_file(kernel: str, launch: Launch, capability: str | None, outputs: Pages) -> None:
    """Explain a kernel in a file of the user's."""
    from smembench.explain.arguments import dimensions, parsed
    from smembench.explain.foreign import explain_function
    from smembench.explain.ptx.costs import Call
    from smembench.explain.record import costs_dict
    from smembench.studies.explain import target as gpu
    from smembench.studies.explain_cuda import explain_cuda, is_cuda_file
    from smembench.studies.explain_file import function_in
    from smembench.views.console import stdout
    from smembench.views.explain import explanation, print_explanation, tables
    from smembench.views.explain_cure import cure_lines
    from smembench.views.export import Result

    if launch.grid is None or launch.block is None:
        raise UsageError(f"{kernel}: give --grid and --block, such as --grid 128x128 --block 32x8")
    target = opened(outputs, but={"csv": "goes with the package's kernels, not with a kernel in a file"})
    grid, block = dimensions(launch.grid, "--grid"), dimensions(launch.block, "--block")
    arguments = [parsed(text) for text in launch.arg or ()]
    shared_bytes, architecture = launch.shared_bytes or 0, gpu(capability=capability).capability
    if is_cuda_file(kernel):
        call = Call(grid, block, arguments, shared_bytes)
        found = explain_cuda(kernel, call, capability=architecture or "9.0", options=launch.options)
    elif launch.options:
        raise UsageError(f"{launch.options[0]}: goes with a kernel in a .cu file")
    else:
        found = explain_function(
            function_in(kernel),
            grid=grid,
            block=block,
            arguments=arguments,
            shared_bytes=shared_bytes,
            capability=architecture,
        )
    shown, cures = explanation(found), cure_lines(found)
    result = Result(sections=tables(found, shown, cures), data=lambda: {"title": found.title, **costs_dict(found)})
    target.show(result, lambda: print_explanation(stdout, found, shown, cures))
    _fail_on_mistakes(found)


def _fail_on_mistakes(found: Costs) -> None:
    from smembench.views.console import say, stderr

    if found.trace.mistakes:
        say(stderr, f"mistakes of the kernel: {len(found.trace.mistakes)}")
        raise typer.Exit(1)


def _best_pad(case: Case, target: Opened) -> None:
    """Show the pads that were tried, and the smallest without conflicts."""
    from smembench.explain.analysis import best_pad
    from smembench.views.explain import pad_records, pads
    from smembench.views.export import Result

    best, tried = best_pad(case)
    records = pad_records(tried)
    data = {"case_id": case.id, "best": best, "pads": records}
    target.show(Result(sections=[pads(tried, best, _heading(case))], data=lambda: data, rows=lambda: records))


def _best_swizzle(case: Case, row: int | None, target: Opened) -> None:
    """Show the layouts of each array that were tried."""
    from smembench.explain.best_layout import best_layouts
    from smembench.views.explain_layouts import layout_records, layouts, verdict_records
    from smembench.views.export import Result

    found = best_layouts(case, row)
    records = layout_records(found)
    data = {"case_id": case.id, "layouts": records, "verdicts": verdict_records(found)}
    target.show(Result(sections=layouts(found, _heading(case)), data=lambda: data, rows=lambda: records))


def _heading(case: Case) -> str:
    return f"{case.kernel} · block {case.block} · {case.dtype}"


def _measure(asked: Asked, target: Opened) -> None:
    """Compare the predictions with the hardware's counters."""
    from smembench.model.text import number_of
    from smembench.studies.explain import counted
    from smembench.views.explain import comparison, counter_records
    from smembench.views.export import Result

    device = asked.device
    found = counted(asked.cases, asked.capability, device.sm_count if device else None)
    records = counter_records(found)
    table = comparison(found, f"Predicted, and counted by the hardware: {number_of(len(asked.cases), 'case')}")
    target.show(Result(sections=[table], data=lambda: {"figures": records}, rows=lambda: records))
    if others := sum(item.agrees is False for item in found):
        raise SmembenchError(f"{others} of {number_of(len(found), 'prediction')} differ from the hardware's counters")
