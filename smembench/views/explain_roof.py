"""``smembench explain``: the roofs of a launch, and which of them it hits."""

from __future__ import annotations

from collections.abc import Callable

from smembench.explain.analysis import Explanation, numba_program
from smembench.explain.costs import Costs
from smembench.explain.roof import MEMORY, ON_CHIP, Roof, lowest, on_chip_share, ridge, roofs, work_of
from smembench.kernels import registry
from smembench.kernels.problems import PROBLEMS
from smembench.model.data_sheets import DataSheet
from smembench.model.device import DeviceInfo
from smembench.store.schema import Row
from smembench.views.columns import milliseconds, number, scaled, within
from smembench.views.sections import Section, table

_UNLESS = {
    MEMORY: " (higher if a cache holds its arrays)",
    ON_CHIP: " (higher if the compiler merges loads)",
}


def roof(
    explained: Explanation, capability: str | None, device: DeviceInfo | None, measured: Row | None = None
) -> Section:
    """The bytes and operations of a launch, and the least time that they take on a device.

    Without a device there are no peaks, and the sentences say only what the compute capability decides. ``measured`` is
    the case as it was timed there.
    """
    bounds, size = roofs(explained.work, device), PROBLEMS[explained.case.problem].texts.size(explained.case)
    heading = f"Roofs{f' of {device.model}' if device else ''}, {size}"
    sentence = " ".join([*_sentences(explained, capability, device, bounds, measured), *_source(device)])
    return _table(heading, bounds, device).below(sentence=sentence)


def launch_roofs(explained: Costs, device: DeviceInfo | None) -> list[Section]:
    """The roofs of a launch of which no FLOPs are known: memory, and L1 and shared memory; none without a device."""
    if device is None:
        return []
    bounds, texts = roofs(work_of(explained), device), []
    if (hit := lowest(bounds)) is not None:
        texts.append(f"A launch takes at least {milliseconds(hit[1])} ms, by the roof of {hit[0].name}.")
    texts.append("Memory moves each array once; arithmetic is not counted.")
    return [_table(f"Roofs of {device.model}", bounds, device).below(sentence=" ".join([*texts, *_source(device)]))]


def _source(device: DeviceInfo | None) -> list[str]:
    """The source of the peaks, if it is not the GPU itself."""
    return [f"Peaks by {device.source}."] if isinstance(device, DataSheet) else []


def _table(heading: str, bounds: list[Roof], device: DeviceInfo | None) -> Section:
    columns: dict[str, Callable[[Roof], str]] = {
        "roof": lambda limit: limit.name,
        "per launch": lambda limit: scaled(limit.amount, limit.unit),
    }
    if device:
        columns["peak"] = lambda limit: "" if limit.peak is None else f"{number(limit.peak / 1e9)} G{limit.unit}/s"
        columns["least ms"] = lambda limit: milliseconds(limit.milliseconds)
    return table(heading, bounds, columns, words=("roof",))


def _sentences(
    explained: Explanation, capability: str | None, device: DeviceInfo | None, bounds: list[Roof], measured: Row | None
) -> list[str]:
    work, texts = explained.work, []
    if (hit := lowest(bounds)) is not None:
        limit, ms = hit
        amount, unit = (work.flops, "GFLOP/s") if work.flops else (explained.bytes_moved, "GB/s")
        merging_known = limit.name == ON_CHIP and explained.code is not None
        unless = "" if merging_known else _UNLESS.get(limit.name, "")
        reached = "Tightest bound:"
        if measured is not None and measured.elapsed_ms is not None:
            reached = (
                f"Measured: {within(measured.elapsed_ms, measured.interval)} ms, "
                f"{number(amount / measured.elapsed_ms / 1e6)} {unit}, {100 * ms / measured.elapsed_ms:.0f} % of the "
                "tightest bound:"
            )
        texts.append(f"{reached} {limit.name}, {number(amount / ms / 1e6)} {unit}{unless}.")
    if not numba_program(registry.kernel_of(explained.case), explained.case).on_device:
        texts.append(
            "These roofs are the kernel's; the copies between host and device, which are timed too, have none here."
        )
    if work.flops:
        edge = None if device is None else ridge(work.dtype, device)
        beside = "" if edge is None else f", the ridge {number(edge)}"
        texts.append(f"Arithmetic intensity: {number(explained.intensity)} FLOP per compulsory byte{beside}.")
    if hit is None:
        share = on_chip_share(work, capability)
        if share is not None and share < 1:
            texts.append(
                f"At one wavefront per clock, shared memory limits this kernel to {100 * share:.1f} % of the "
                f"arithmetic peak (compute capability {capability})."
            )
        if isinstance(device, DataSheet):
            texts.append("Which roof limits it is not known: not all peaks are on the data sheet.")
        else:
            texts.append(
                "Which roof limits it depends on the device's peaks: run explain on a machine with the GPU, give its "
                "name with --gpu, or a stored run of it with --run."
            )
    return texts
