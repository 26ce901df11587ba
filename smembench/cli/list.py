"""``smembench list``: problems, kernels, compilers, lessons, configs and devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, get_args

import typer

if TYPE_CHECKING:
    from smembench.model.device import DeviceInfo

What = Literal["kernels", "compilers", "lessons", "configs", "devices"]


def list_(
    what: Annotated[
        What | None,
        typer.Argument(metavar="[WHAT]", help=f"{', '.join(get_args(What))}; all of them without it."),
    ] = None,
) -> None:
    """List problems with their kernels, compilers, lessons, configs and devices.

    Examples:

      smembench list
      smembench list configs
    """
    from smembench.kernels import registry
    from smembench.views import list as parts
    from smembench.views.console import say, stderr, stdout

    for mistake in registry.mistakes():
        say(stderr, mistake)
    for name in [what] if what else get_args(What):
        for line in parts.devices(*_devices()) if name == "devices" else getattr(parts, name)():
            say(stdout, line)


def _devices() -> tuple[list[DeviceInfo], str]:
    """The devices here, and why no GPU can be used."""
    from smembench.devices.cuda import gpu_count, why_unusable
    from smembench.devices.select import open_device

    names = [*(f"cuda:{index}" for index in range(gpu_count())), "cpu"]
    return [open_device(name).info for name in names], why_unusable() or ""
