"""``smembench explain`` of a kernel in a file of the user's."""

from __future__ import annotations

from shlex import quote

from smembench.cli.explain_layouts import show_layouts, show_pads
from smembench.cli.explain_options import Chosen, Launch, Pages, Task
from smembench.cli.options import written
from smembench.cli.output import opened
from smembench.model.errors import UsageError


def explain_file(kernel: str, launch: Launch, chosen: Chosen, task: Task, outputs: Pages) -> int:
    """Do a task for a kernel in a file of the user's; how many mistakes an explained one has."""
    from smembench.explain.any_kernel import explain_any
    from smembench.explain.record import costs_dict, roofs_dict
    from smembench.launches.arguments import in_order_and_named
    from smembench.launches.dimensions import dimensions
    from smembench.launches.launch import Launch as AnyLaunch
    from smembench.studies.explain import target as gpu
    from smembench.views.console import stdout
    from smembench.views.explain import explanation, print_explanation, tables
    from smembench.views.explain_cure import cure_lines
    from smembench.views.explain_roof import launch_roofs
    from smembench.views.export import Result

    if launch.grid is None:
        raise UsageError(f"{kernel}: give --grid and --block, such as --grid 128x128 --block 32x8")
    what = task.chosen(outputs)
    target = opened(outputs, but={} if what else {"csv": "is written with --best-pad or --best-swizzle; use --json"})
    grid = dimensions(launch.grid, "--grid")
    block = None if launch.block is None else dimensions(launch.block, "--block")
    cluster = None if launch.cluster is None else dimensions(launch.cluster, "--cluster")
    whole = AnyLaunch(grid, block, *in_order_and_named(launch.arg or ()), launch.shared_bytes or 0, cluster)
    device, capability = gpu(capability=chosen.capability, gpu=chosen.gpu)
    explained = explain_any(kernel, whole, capability=capability, options=launch.options)
    if what:
        (show_pads if what == "best_pad" else show_layouts)(explained, explained.title, task.row, target)
        return 0
    shown, cures = [*explanation(explained), *launch_roofs(explained, device)], cure_lines(explained)
    result = Result(
        sections=tables(explained, shown, cures),
        data=lambda: {"title": explained.title, **costs_dict(explained), **roofs_dict(explained, device)},
    )
    following = "" if explained.trace.mistakes else f"smembench time {quote(kernel)} {written(launch)}"
    target.show(result, lambda: print_explanation(stdout, explained, shown, cures, following))
    return len(explained.trace.mistakes)
