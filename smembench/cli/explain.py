"""``smembench explain``: why a kernel takes as long as it does."""

from __future__ import annotations

from pathlib import Path

import typer

from smembench.cli import complete
from smembench.cli.explain_file import explain_file
from smembench.cli.explain_lanes import Layout, explain_layout, refuse_others
from smembench.cli.explain_options import Chosen, Launch, Pages, Task
from smembench.cli.explain_package import explain_package, explain_report
from smembench.cli.options import changed
from smembench.cli.signature import argument, takes
from smembench.model.errors import UsageError


@takes(launch=Launch, chosen=Chosen, task=Task, layout=Layout, outputs=Pages)
def explain(
    kernel: str | None = argument(
        "KERNEL",
        "CUDA kernels, such as transposeSmem; several with --measure. Or any kernel in a file: path.cu:name, "
        "path.ptx:name, or path.py:name of Numba, Triton or CuPy. Or a report of ncu: path.ncu-rep.",
        autocompletion=complete.kernels,
    ),
    *,
    launch: Launch,
    chosen: Chosen,
    task: Task,
    layout: Layout,
    outputs: Pages,
) -> None:
    """Explain a kernel's conflicts, coalescing and roofs, without a GPU.

    The trace runs the timed function itself, on addresses instead of data. For each access in the source it gives the
    wavefronts per request in shared memory (n times the ideal is an n-way conflict) or the 32-byte sectors per request
    in global memory. The last line says what removes bank conflicts: a pad or a swizzle.

    With a cure all accesses are counted again. Tiles that the TMA copies and that tensor cores read (wgmma) have a
    table of their own. Occupancy counts registers if a compiler is installed. The roofs are those of memory, of L1 and
    shared memory, and of arithmetic.

    Mistakes that the trace shows are named first, and the exit code is 1: an index outside an array, two threads that
    access a word of shared memory, one of them storing, with no barrier between, a barrier that not all threads reach,
    and a load of shared memory that nothing stored.

    A kernel in a file of your own is traced with the arguments of a launch. CUDA C++ is compiled by nvcc, or without
    it by NVRTC, which takes no host code; "name<float,32>" is a template. PTX is that of any compiler. A Python file is
    imported, for a function of Numba or Triton, or for CuPy's RawKernel. What depends on data that was not given is
    named; give an array's data as a .npy file. The blocks of a cluster are run together, and what they access of each
    other's shared memory has a table of its own.

    Examples:

      smembench explain transposeSmem --block 32x32
      smembench explain tiled --gpu l4
      smembench explain transposeSmemPad --block 16x16 --dtype float64 --best-pad
      smembench explain transposeSmemPad --export banks.html
      smembench explain mine.cu:scale --grid 64 --block 256 --arg float32[16384]
      smembench explain transposeSmem --block 16x16 --best-swizzle
      smembench explain tiled --run results/reference/20261129T121757Z-documents
      smembench explain tiled --m 1000 --n 520 --k 4096
      smembench explain naive --stride 5000 --json
      smembench explain mine.py:kernel --grid 128x128 --block 32x8 --arg indices.npy
      smembench explain mine.py:softmax --grid 64 --arg float32[64,999] --arg BLOCK=1024
      smembench explain mine.cu:ring --grid 8 --block 128 --cluster 4 --arg float32[1024]
      smembench explain --layout "lane % 16 * 64" --itemsize 2 --vector 8
      smembench explain transposeSmem,transposeSmemPad --pad-width 1,2 --measure
      smembench explain profile.ncu-rep
    """
    from smembench.explain.ncu import REPORTS
    from smembench.launches.cuda_file import is_cuda_file
    from smembench.launches.python_file import is_in_file
    from smembench.views.console import say, stderr

    if layout.given:
        refuse_others(layout, kernel, [*changed(launch), *changed(chosen), *changed(task, but="row")])
        explain_layout(layout, task.row, outputs)
        return
    if wrong := changed(layout):
        raise UsageError(f"{wrong[0]}: goes with --layout or --store")
    if kernel is None:
        raise UsageError("KERNEL: name a kernel, such as transposeSmem or path.cu:name, or give --layout")
    if kernel.endswith(REPORTS):
        old = ["--html"] if outputs.html is not None else []
        if wrong := [*changed(launch), *changed(chosen), *changed(task), *old]:
            raise UsageError(f"{wrong[0]}: goes with a kernel, not with a report of ncu")
        explain_report(Path(kernel), outputs)
        return
    if is_in_file(kernel) or is_cuda_file(kernel):
        old = ["--html"] if outputs.html is not None else []
        others = [*changed(chosen), *(["--measure"] if task.measure else []), *old]
        if wrong := [option for option in others if option not in ("--capability", "--gpu")]:
            raise UsageError(f"{wrong[0]}: goes with the package's kernels, not with a kernel in a file")
        mistakes = explain_file(kernel, launch, chosen, task, outputs)
    else:
        if wrong := changed(launch, but="block"):
            raise UsageError(f"{wrong[0]}: goes with a kernel in a file, such as path.cu:name or path.py:function")
        mistakes = explain_package(kernel, launch.block, chosen, task, outputs)
    if mistakes:
        say(stderr, f"mistakes of the kernel: {mistakes}")
        raise typer.Exit(1)
