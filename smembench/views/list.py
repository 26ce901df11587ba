"""``smembench list``: the records of problems, kernels, compilers, lessons, configs and devices, and their lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from smembench.kernels import registry
from smembench.kernels.kernel import Kernel
from smembench.kernels.problems import PROBLEMS
from smembench.model.case import DEFAULT_COMPILER, ENGINES
from smembench.model.data_sheets import data_sheets
from smembench.model.device import DeviceInfo
from smembench.model.groups import grouped
from smembench.run.shipped import about, shipped
from smembench.studies.lesson import LESSONS
from smembench.toolchains import registry as toolchains
from smembench.toolchains.registry import Toolchain
from smembench.views.records import Record

_VARIED = re.compile(r"(Unroll|Dyn|Pad)+")


def kernels() -> list[Record]:
    """Kernels, problem by problem, with the element types that they take and the compilers of their ports.

    Those of GPUs come first. ``variant_of`` names the kernel of which one is a variant for special purposes.
    """
    return [
        {
            "problem": problem,
            "kernel": kernel.name,
            "variant_of": _base(kernel),
            "on": kernel.kind,
            "what": kernel.summary,
            "dtypes": list(kernel.dtypes or PROBLEMS[problem].dtypes),
            "ports": [port.compiler for port in registry.of_name(problem, kernel.name, kernel.kind) if _written(port)],
        }
        for problem in PROBLEMS
        for kernel in sorted(registry.kernels(), key=lambda kernel: kernel.kind != "cuda")
        if kernel.problem == problem and not kernel.port
    ]


def _written(port: Kernel) -> bool:
    """True for a kernel written for another toolchain, not the same function by another engine."""
    return port.port and port.compiler not in ENGINES


def _base(kernel: Kernel) -> str | None:
    """The kernel of whose name a kernel's is an extension, unless it is measured by default or a step of a ladder."""
    if kernel.standard or kernel.ladder:
        return None
    names = [name for name in registry.names(kernel.problem) if _VARIED.fullmatch(kernel.name.removeprefix(name))]
    return min(names, key=len, default=None)


def compilers() -> list[Record]:
    """Compilers, each with its language, or how to install it."""
    return [
        {"compiler": one.name, "what": one.not_installed() or _takes(one), "installed": one.installed}
        for one in toolchains.compilers()
    ]


def _takes(toolchain: Toolchain[Any]) -> str:
    same = toolchain.name in ENGINES and toolchain.name != DEFAULT_COMPILER
    return f"{toolchain.language}: the same kernels as {DEFAULT_COMPILER}" if same else toolchain.language


def lessons() -> list[Record]:
    """Lessons, each with what it teaches."""
    return [{"lesson": name, "what": taught} for name, taught in LESSONS.items()]


def configs() -> list[Record]:
    """The package's configs, each with what it says of itself."""
    return [{"config": name, "what": about(path)} for name, path in shipped().items()]


def devices(infos: Sequence[DeviceInfo]) -> list[Record]:
    """Devices, each with its model."""
    return [{"device": device.name, "what": device.model} for device in infos]


def gpus() -> list[Record]:
    """GPUs whose data sheets ``explain --gpu`` knows."""
    return [
        {"gpu": name, "what": f"{sheet.model}, compute capability {sheet.compute_capability}"}
        for name, sheet in data_sheets().items()
    ]


def lines(part: str, records: Sequence[Record]) -> Iterator[str]:
    """A heading and a line per record: its name and what it is. Kernels have a heading for each problem."""
    if part == "kernels":
        for name, of_problem in grouped(records, lambda record: str(record["problem"])).items():
            problem = PROBLEMS[name]
            yield f"{name}: {problem.texts.title}, {', '.join(problem.dtypes)}"
            variants = [str(record["kernel"]) for record in of_problem if record["variant_of"]]
            for record in (record for record in of_problem if not record["variant_of"]):
                dtypes, ports = record["dtypes"], record["ports"]
                also = f"; also by {', '.join(ports)}" if isinstance(ports, list) and ports else ""
                if isinstance(dtypes, list) and problem.dtypes[0] not in dtypes:
                    also = f" ({', '.join(dtypes)}){also}"
                yield f"  {record['on']:<5} {record['kernel']:<19} {record['what']}{also}"
            yield from [f"  and variants: {', '.join(variants)}"] if variants else []
        return
    yield f"{part}:"
    named = [(str(next(iter(record.values()))), record["what"]) for record in records]
    width = max((len(name) for name, _ in named), default=0)
    for name, what in named:
        yield f"  {name:<{width}} {what}"
