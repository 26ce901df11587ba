"""The options of ``smembench explain``: a kernel's launch, cases of the package's, tasks, pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from smembench.cli.options import CAPABILITY, SIZE, Outputs, one_of
from smembench.cli.output import Opened, opened
from smembench.cli.signature import flag, group, option
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


@group("Launch of a kernel in a file (--block with any kernel)")
class Launch:
    """Options of a kernel's launch."""

    block: str | None = option(
        "XxY,…",
        "Block dimensions in threads; several with --measure. (default: 32x32 or the kernel's; Triton's are those of "
        "num_warps)",
    )
    grid: str | None = option("XxYxZ", "Blocks of the grid, in 1 to 3 dimensions.")
    cluster: str | None = option(
        "XxYxZ",
        "Blocks of a thread block cluster, which divide the grid, of CUDA C++ or PTX. (default: the kernel's "
        "__cluster_dims__, if it has them)",
    )
    arg: list[str] | None = option(
        "ARG",
        "An argument, in the kernel's order: float32[4096,4096], 1024, 0.5, 'float32 0.5', or x.npy for an array with "
        "its data. 'float32[64,100] strides 128x1 offset 4' has gaps, in elements. 'tensormap(float16[4096,4096], box "
        "64x128, swizzle 128)' is one for the TMA. Triton's constants have names: BLOCK=128, num_warps=8.",
    )
    shared_bytes: int | None = option("BYTES", "Dynamic shared memory of the launch.", min=0)
    define: list[str] | None = option("NAME[=VALUE]", "Define a macro in a .cu file.", "-D")
    include: list[str] | None = option("DIR", "Look here, too, for headers of a .cu file.", "-I")
    std: str | None = option("NAME", "The standard of a .cu file, such as c++20.")

    @property
    def options(self) -> list[str]:
        """The options of the compiler."""
        named = [*(f"-D{name}" for name in self.define or ()), *(f"-I{folder}" for folder in self.include or ())]
        return [*named, *([f"--std={self.std}"] if self.std else [])]


@group("Sizes")
class Sizes:
    """Sizes of the package's problems, other than one side."""

    m: int | None = option("N", "Rows of A and C. (default: n)", parser=SIZE)
    k: int | None = option("N", "Columns of A and rows of B. (default: n)", parser=SIZE)
    nx: int | None = option("N", "Columns of a transpose's input.", parser=SIZE)
    ny: int | None = option("N", "Rows of a transpose's input.", parser=SIZE)


@group("Sizes")
class Layouts(Sizes):
    """Sizes, and how matrices lie in memory."""

    stride: int | None = option("N", "Elements between rows (matmul) or lanes (strided).", parser=SIZE)
    b_layout: str | None = option("NAME", "How a product's second matrix lies in memory: rows, columns.")


@group()
class Chosen(Layouts):
    """Options that choose the explained cases of the package's kernels, and the GPU."""

    dtype: str | None = option("NAME,…", "Element types; several with --measure. (default: the command's)")
    pad_width: str = option("N,…", "Extra columns of a padded tile; several with --measure.", default="1")
    n: int | None = option("N", "Side of the matrices, or elements. (default: the command's)", "-n", parser=SIZE)
    capability: str | None = option(
        "X.Y",
        "Compute capability, for registers and occupancy. (default: of --gpu, of --run or of the GPU here, else 9.0)",
        "--cc",
        parser=CAPABILITY,
    )
    gpu: str | None = option("NAME", "A GPU with the roofs of its data sheet: a100, h100, h200, l4, t4, rtx4090.")
    run: Path | None = option("DIR", "A stored run: explain for its GPU. (default: the GPU here)")

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


@group()
class Task:
    """Options for results other than an explanation."""

    best_pad: bool = flag("Find the smallest pad without conflicts of loads or stores.")
    best_swizzle: bool = flag("Find the XOR of columns with the fewest conflicts, and the pad.")
    row: int | None = option(
        "N", "With --best-pad or --best-swizzle: elements per row of shared arrays with one dimension.", min=1
    )
    measure: bool = flag("Compare with the hardware's counters; needs a GPU and ncu.")

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


@group("Output")
class Pages(Outputs):
    """The outputs, with an older spelling that writes a page and prints nothing."""

    html: Path | None = option("FILE", "", hidden=True)

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
