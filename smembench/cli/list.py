"""``smembench list``: problems, kernels, compilers, lessons and devices."""

from __future__ import annotations


def list_() -> None:
    """List problems, kernels, compilers, lessons and devices."""
    from smembench.devices.cuda import gpu_count, why_unusable
    from smembench.devices.select import open_device
    from smembench.kernels import registry
    from smembench.views.console import say, stderr, stdout
    from smembench.views.list import lines

    names = [*(f"cuda:{index}" for index in range(gpu_count())), "cpu"]
    for mistake in registry.mistakes():
        say(stderr, mistake)
    for line in lines([open_device(name).info for name in names], why_unusable() or ""):
        say(stdout, line)
