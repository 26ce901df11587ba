"""Options that several commands share, each declared once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, fields
from importlib.util import find_spec
from pathlib import Path
from shlex import quote
from typing import Any, TypeVar

import typer

from smembench.cli import complete
from smembench.cli.signature import argument, flag, group, option
from smembench.model.axis import BLOCK, Axis
from smembench.model.case import ENGINES
from smembench.model.errors import UsageError
from smembench.model.install import extra
from smembench.model.numbers import capability, percent, seconds, size
from smembench.toolchains.registry import names

T = TypeVar("T")


def _read(parse: Callable[[object], T]) -> Callable[[object], T]:
    """A reader of an option's text whose errors Typer shows with the text."""

    def read(text: object) -> T:
        try:
            return parse(text)
        except ValueError as error:
            raise typer.BadParameter(f"{text!r} {error}") from None

    return read


SECONDS, PERCENT, SIZE, CAPABILITY = _read(seconds), _read(percent), _read(size), _read(capability)
"""Parsers of options: durations such as 10s, percentages such as 0.5%, sizes such as 4k, capabilities such as 9.0."""


def of_axis(axis: Axis, metavar: str = "N,…") -> Any:
    """The option for the values of an axis, with the axis's help."""
    text = f"{axis.help} (default: {axis.default})" if axis.default else axis.help
    return option(metavar, text, *([f"-{axis.name}"] if len(axis.name) == 1 else []))


PROBLEM = argument(
    "PROBLEM", "The problem, such as transpose or matmul.", default=..., autocompletion=complete.problems
)
OVERRIDES = option("KEY=VALUE", "Override a key: samples=50, n=1024, matmul.block=16x16.")
SIDES = option("N,…", "Side of square matrices, or elements. (default: the problem's)", "-n")
ROWS = option("N,…", "Rows of A and C. (default: n)")
DEPTHS = option("N,…", "Columns of A and rows of B. (default: n)")
KERNELS = option("NAME,…", "Kernels by name. (default: the standard ones)", autocompletion=complete.kernels)
BLOCKS = of_axis(BLOCK, "XxY,…")
DTYPES = of_axis(Axis("dtype", "Element types.", "float32"), "NAME,…")
INPUTS = option(
    "NAME,…",
    "Distribution of a product's inputs: normal, uniform, integers, zeros. "
    "(default: normal for bfloat16, float16, tf32 and float8_e4m3, else uniform)",
)
B_LAYOUTS = option(
    "NAME,…",
    "How a product's second matrix lies in memory: rows, columns (as networks' weights do). "
    "(default: columns for tf32 and float8_e4m3, else rows)",
)
DEVICES = option("NAME,…", "auto, cuda, cuda:1, cpu. (default: auto, a GPU if usable)")
COMPILERS = option(
    "NAME,…",
    f"{', '.join(names())}; calls of libraries are compiled by none. "
    f"(default: {ENGINES[0]}; where it is not installed, {ENGINES[1]})",
)
PEERS = flag("Also measure cuBLAS, CuPy and PyTorch, where installed.", default=None)
CACHE = option(
    "MODE,…",
    "L2 as the launch before left it (warm), full of other data (cold) or of copies of the arrays (rotated). "
    "(default: warm)",
)
CASES = option("TEXT", "Only cases whose id contains this, or matches it if it has a *.")
WHY = flag("Show each claim of the documents in full, with its interval and the reason.")


@group("Sampling")
class Sampling:
    """Sampling limits; the values given become keys of the run's config, which reads durations and percentages."""

    quick: bool = flag("At least 10 samples in 1 round, until ±5 %; at most 2 s per case.")
    rigorous: bool = flag("At least 100 samples in 10 rounds, until ±0.2 %; at most 120 s per case.")
    samples: int | None = option("N", "Minimum number of samples per case. (default: 30)")
    rounds: int | None = option(
        "N", "Minimum number of rounds over all cases, each in a new random order. (default: 3)"
    )
    precision: str | None = option(
        "PERCENT",
        "Sample until the 95 % interval of the samples' median is within ± this; only more rounds narrow what differs "
        "between rounds. (default: 0.5 on a GPU, 2 on a CPU)",
    )
    max_seconds: str | None = option(
        "TIME", "Maximum sampling time per case; CPU cases too slow for 3 samples are skipped. (default: 30s)"
    )
    warmup: str | None = option(
        "TIME", "How long to launch the kernel before the samples of each round. (default: 20ms)"
    )
    sustained: str | None = option(
        "TIME",
        "After all rounds, launch each case on a GPU back to back for this long: times at the beginning and at the "
        "end, energy per launch. (default: 0s)",
    )
    seed: int | None = option("N", "Seed of the random inputs and of the order of cases. (default: a new one per run)")
    timeout: str | None = option("TIME", "Abort a case that takes longer than this, sampling excluded. (default: 300s)")

    def config(self) -> dict[str, Any]:
        """The keys given, over those of a preset.

        Raises:
            UsageError: for two presets at once.
        """
        from smembench.run.stop_rule import PRESETS

        values = asdict(self)
        preset = one_of(**{name: values.pop(name) for name in PRESETS})
        return {**PRESETS.get(preset, {}), **given(**values)}


def _silence(quiet: bool) -> bool:
    from smembench.views.console import notes

    notes.quiet = quiet
    return quiet


QUIET = flag("Print results and errors, but no notes, no progress.", "-q", callback=_silence)


@group("Output")
class Outputs:
    """Destinations of a command's result; ``cli.output.opened`` reads them. Hidden options are older spellings."""

    export: Path | None = option(
        "FILE",
        "Write the result as its suffix says: .csv, .json, .md, .tex or .html; a run also .gbench.json, "
        ".nvbench.json, .bmf.json or .smaller.json; -.csv and so on print it.",
    )
    json: bool = flag("Print JSON instead of tables.")
    quiet: bool = QUIET
    force: bool = flag("Replace existing files.")
    csv: Path | None = option("PATH|-", "", hidden=True)
    markdown: bool = flag("", hidden=True)
    latex: bool = flag("", hidden=True)


@group("Running")
class Running(Outputs):
    """Options of a run's progress and of its output."""

    force: bool = flag("Replace existing files; resume even if something differs.")
    dry_run: bool = flag("Print the cases and measure nothing.")
    verbose: bool = flag("Also print the calibration and every sample.", "-v")
    no_lock: bool = flag("Run even if another run uses the GPU.")
    wait: bool = flag("Wait until no other run uses the GPU.")
    nvtx: bool = flag("Mark each case in each round as a range for nsys and ncu; needs nvtx.")

    def check_nvtx(self, other: str = "") -> None:
        """Raise UsageError if --nvtx is given and nvtx is missing, or ``other``, an option that leaves no ranges."""
        if self.nvtx and other:
            raise UsageError(f"--nvtx: does not go with {other}")
        if self.nvtx and not find_spec("nvtx"):
            raise UsageError(f"--nvtx: needs the package nvtx: {extra('nvtx')}")


def help_alone(context: typer.Context) -> None:
    """Print the help of a group of commands that is called without one."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def given(**values: Any) -> dict[str, Any]:
    """The options that were given."""
    return {name: value for name, value in values.items() if value is not None}


def changed(group: Any, *, but: str = "") -> list[str]:
    """The options of a group that were given, other than ``but``: those that are not their defaults."""
    names = [field.name for field in fields(group) if getattr(group, field.name) != field.default]
    return [f"--{name}".replace("_", "-") for name in names if name != but]


def written(group: Any) -> str:
    """The options of a group that were given, for a shell."""
    words = []
    for field in fields(group):
        if (value := getattr(group, field.name)) != field.default:
            for item in value if isinstance(value, list) else (value,):
                words += [f"--{field.name.replace('_', '-')}", *([] if item is True else [quote(str(item))])]
    return " ".join(words)


def one_of(**flags: bool) -> str:
    """The name of the flag that was given, "" for none.

    Raises:
        UsageError: for several.
    """
    chosen = [name for name, there in flags.items() if there]
    if len(chosen) > 1:
        raise UsageError(f"{' and '.join(f'--{name}' for name in chosen).replace('_', '-')}: give one of them")
    return "".join(chosen)
