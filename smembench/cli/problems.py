"""``smembench transpose``, ``matmul`` and so on: a command per problem, from the axes and help that it declares."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from smembench.cli import options
from smembench.cli.options import Running, Sampling
from smembench.cli.signature import argument, flag, keyword, sign, takes
from smembench.kernels.problems import COMMANDS, PROBLEMS
from smembench.model.axis import Axis
from smembench.model.problem import Problem

_SHARED: dict[str, Any] = {
    "kernel": options.KERNELS,
    "dtype": options.DTYPES,
    "inputs": options.INPUTS,
    "b_layout": options.B_LAYOUTS,
    "device": options.DEVICES,
    "cache": options.CACHE,
    "compiler": options.COMPILERS,
    "peers": options.PEERS,
}


def commands() -> list[Callable[..., None]]:
    """The commands of all problems, in their order."""
    return [_command(name, problems) for name, problems in COMMANDS.items()]


def _command(name: str, problems: Sequence[Problem]) -> Callable[..., None]:
    """A command that runs one sweep per problem."""

    size = problems[0].axes[0].name

    def command(*, sampling: Sampling, running: Running, sizes: str | None, **values: Any) -> None:
        from smembench.cli.measure import measure
        from smembench.model.errors import UsageError
        from smembench.run.config import from_flags

        if sizes is not None:
            if values[size] is not None:
                raise UsageError(f"{sizes} and --{size} {values[size]}: give the size once")
            values[size] = sizes
        if values.get("pad") is False and values.get("pad_width") and not values.get("kernel"):
            raise UsageError(f"--no-pad and --pad-width {values['pad_width']}: give one of them")
        sweeps = _sweeps(name, problems, options.given(**values))
        measure(from_flags({"name": name, **sampling.config(), "sweep": sweeps}), running)

    command.__name__ = name
    command.__doc__ = PROBLEMS[name].texts.help
    own = {axis.name: _own(axis) for problem in problems for axis in problem.axes + problem.texts.kernel_axes}
    shared = {key: shown for key, shown in _SHARED.items() if any(key in problem.texts.options for problem in problems)}
    if "dtype" in shared:
        dtype = Axis("dtype", "Element types.", PROBLEMS[name].dtypes[0])
        shared["dtype"] = options.of_axis(dtype, "NAME,…")
    taken = {"sizes": argument(f"{size.upper()},…", f"The same as --{size}."), **own, **shared}
    kinds = dict.fromkeys(("pad", "peers"), bool | None)
    sign(command, [keyword(key, kinds.get(key, str | None), shown) for key, shown in taken.items()])
    return takes(sampling=Sampling, running=Running)(command)


def _own(axis: Axis) -> Any:
    if axis.name == "pad":
        return flag(axis.help, "--pad/--no-pad", default=None)
    return options.of_axis(axis, "XxY,…" if axis.name == "block" else "N,…")


def _sweeps(name: str, problems: Sequence[Problem], given: dict[str, Any]) -> list[dict[str, Any]]:
    """A sweep per problem, with the values of its own options."""
    sweeps = []
    for problem in problems:
        keys = [*(axis.name for axis in problem.axes + problem.texts.kernel_axes), *problem.texts.options]
        sweep = {key: value for key, value in given.items() if key in keys}
        if problem.texts.strided_kernel and "stride" in sweep:
            sweep = {"kernel": problem.texts.strided_kernel, **sweep}
        sweeps.append({"problem": problem.name, **sweep})
    return _with_kernels(name, sweeps, given["kernel"]) if len(sweeps) > 1 and "kernel" in given else sweeps


def _with_kernels(name: str, sweeps: list[dict[str, Any]], text: str) -> list[dict[str, Any]]:
    """The sweeps of problems that have any of the kernels, each with its own kernels.

    Raises:
        UsageError: for a kernel that no problem has, and for a size or block of a problem without any of the kernels.
    """
    from smembench.kernels import registry
    from smembench.model.errors import UsageError
    from smembench.run.axes import parse_kernels

    names = {sweep["problem"]: registry.names(sweep["problem"]) for sweep in sweeps}
    known = [kernel for of_problem in names.values() for kernel in of_problem]
    chosen = parse_kernels(text, known, what=f"{name} kernel")
    kept = []
    for sweep in sweeps:
        of_problem = names[sweep["problem"]]
        if own := [kernel for kernel in chosen if kernel in of_problem]:
            kept.append({**sweep, "kernel": own})
        elif stray := [f"--{key} {value}" for key, value in sweep.items() if key not in ("problem", *_SHARED)]:
            raise UsageError(f"{stray[0]}: is for {', '.join(of_problem)}, and --kernel names none of them")
    return kept
