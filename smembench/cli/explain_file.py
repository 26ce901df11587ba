"""``smembench explain`` of a kernel in a file of the user's."""

from __future__ import annotations

from smembench.cli.explain_options import Launch
from smembench.cli.options import Outputs
from smembench.cli.output import opened
from smembench.model.errors import UsageError


def explain_file(kernel: str, launch: Launch, capability: str | None, outputs: Outputs) -> int:
    """Explain a kernel in a file of the user's; how many mistakes it has."""
    from smembench.explain.arguments import dimensions, parsed
    from smembench.explain.foreign import explain_function
    from smembench.explain.ptx.costs import Call
    from smembench.explain.record import costs_dict
    from smembench.studies.explain import target as gpu
    from smembench.studies.explain_cuda import explain_cuda, is_cuda_file
    from smembench.studies.explain_file import function_in
    from smembench.views.console import stdout
    from smembench.views.explain import explanation, print_explanation, tables
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
    shown = explanation(found)
    result = Result(sections=tables(found, shown), data=lambda: {"title": found.title, **costs_dict(found)})
    target.show(result, lambda: print_explanation(stdout, found, shown))
    return len(found.trace.mistakes)
