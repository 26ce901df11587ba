"""The options of ``smembench explain``: a kernel's launch, cases of the package's, tasks, pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import typer

from smembench.cli.options import CAPABILITY, SIZE, Outputs, one_of
from smembench.cli.output import Opened, opened
from smembench.model.errors import UsageError

if TYPE_CHECKING:
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
        from smembench.studies.explain import single

        return single(self.cases)


@dataclass(frozen=True, kw_only=True)
class Launch:
    """Options of a kernel's launch."""

    panel: ClassVar = "Launch of a kernel in a file (--block with any kernel)"

    block: Annotated[
        str | None,
        typer.Option(
            metavar="XxY,…",
            help="Block dimensions in threads; several with --measure. (default: 32x32 or the kernel's; Triton's are "
            "those of num_warps)",
        ),
    ] = None
    grid: Annotated[str | None, typer.Option(metavar="XxYxZ", help="Blocks of the grid, in 1 to 3 dimensions.")] = None
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="XxYxZ",
            help="Blocks of a thread block cluster, which divide the grid, of CUDA C++ or PTX. (default: the kernel's "
            "__cluster_dims__, if it has them)",
        ),
    ] = None
    arg: Annotated[
        list[str] | None,
        typer.Option(
            "--arg",
            metavar="ARG",
            help="An argument, in the kernel's order: float32[4096,4096], 1024, 0.5, 'float32 0.5', or x.npy for an "
            "array with its data. 'float32[64,100] strides 128x1 offset 4' has gaps, in elements. "
            "'tensormap(float16[4096,4096], box 64x128, swizzle 128)' is one for the TMA. Triton's constants have "
            "names: BLOCK=128, num_warps=8.",
        ),
    ] = None
    shared_bytes: Annotated[
        int | None, typer.Option(min=0, metavar="BYTES", help="Dynamic shared memory of the launch.")
    ] = None
    define: Annotated[
        list[str] | None, typer.Option("--define", "-D", metavar="NAME[=VALUE]", help="Define a macro in a .cu file.")
    ] = None
    include: Annotated[
        list[str] | None,
        typer.Option("--include", "-I", metavar="DIR", help="Look here, too, for headers of a .cu file."),
    ] = None
    std: Annotated[
        str | None, typer.Option("--std", metavar="NAME", help="The standard of a .cu file, such as c++20.")
    ] = None

    @property
    def options(self) -> list[str]:
        """The options of the compiler."""
        named = [*(f"-D{name}" for name in self.define or ()), *(f"-I{folder}" for folder in self.include or ())]
        return [*named, *([f"--std={self.std}"] if self.std else [])]


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """Sizes of the package's problems, other than one side."""

    panel: ClassVar[str] = "Sizes"

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


@dataclass(frozen=True, kw_only=True)
class Layouts(Sizes):
    """Sizes, and how matrices lie in memory."""

    stride: Annotated[
        int | None, typer.Option(parser=SIZE, metavar="N", help="Elements between rows (matmul) or lanes (strided).")
    ] = None
    b_layout: Annotated[
        str | None,
        typer.Option("--b-layout", metavar="NAME", help="How a product's second matrix lies in memory: rows, columns."),
    ] = None


@dataclass(frozen=True, kw_only=True)
class Chosen(Layouts):
    """Options that choose the explained cases of the package's kernels, and the GPU."""

    panel: ClassVar[str] = ""

    dtype: Annotated[
        str | None,
        typer.Option(metavar="NAME,…", help="Element types; several with --measure. (default: the command's)"),
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
            help="Side of the matrices, or elements. (default: the command's)",
        ),
    ] = None
    capability: Annotated[
        str | None,
        typer.Option(
            "--cc",
            parser=CAPABILITY,
            metavar="X.Y",
            help="Compute capability, for registers and occupancy. (default: of --gpu, of --run or of the GPU here, "
            "else 9.0)",
        ),
    ] = None
    gpu: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="A GPU with the roofs of its data sheet: a100, h100, h200, l4, t4, rtx4090."),
    ] = None
    run: Annotated[
        Path | None, typer.Option(metavar="DIR", help="A stored run: explain for its GPU. (default: the GPU here)")
    ] = None

    def asked(self, kernel: str, block: str | None) -> Asked:
        """The cases of a kernel, and the GPU they are explained for."""
        from smembench.kernels import registry
        from smembench.studies.explain import Axes, cases, target
        from smembench.views.console import notes, say

        on = target(self.run, self.capability, self.gpu)
        options = asdict(self)
        del options["run"], options["capability"], options["gpu"]
        axes = Axes(block, options.pop("dtype"), options.pop("pad_width"))
        chosen = cases(kernel, axes, on=on, **options)
        for mistake in registry.mistakes():
            say(notes, mistake)
        return Asked(chosen, on.capability, on.device, self.run)


@dataclass(frozen=True, kw_only=True)
class Task:
    """Options for results other than an explanation."""

    best_pad: Annotated[
        bool, typer.Option("--best-pad", help="Find the smallest pad without conflicts of loads or stores.")
    ] = False
    best_swizzle: Annotated[
        bool, typer.Option("--best-swizzle", help="Find the XOR of columns with the fewest conflicts, and the pad.")
    ] = False
    row: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="With --best-pad or --best-swizzle: elements per row of shared arrays with one dimension.",
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
        if self.row is not None and what not in ("best_pad", "best_swizzle"):
            raise UsageError(f"--row {self.row}: goes with --best-pad or --best-swizzle")
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
