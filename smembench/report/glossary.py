"""Meanings of the columns of a report's tables, by heading."""

from __future__ import annotations

from collections.abc import Iterable

from smembench.kernels.problems import PROBLEMS
from smembench.views.sections import Section

CEILINGS = [problem.ceiling_kernel for problem in PROBLEMS.values() if problem.ceiling_kernel]

WORDS = {
    "kernel": "The kernel's name, as --kernel takes it.",
    "block": "Threads of a block, across × down; +1 is a tile padded by one column.",
    "size": "Rows × columns; of products m × k × n; of kernels of your own, the sizes that were swept.",
    "elapsed ms": "Median time of one launch, in milliseconds.",
    "95 % CI": "Half of the width of the time's 95 % confidence interval, in %; of three rounds or more, between them.",
    "spread": "Half of the distance between the samples' quartiles, in % of the median.",
    "GB/s": "Effective bandwidth: the bytes that the problem must move, in 10⁹ per second.",
    "GFLOP/s": "Floating-point operations, in 10⁹ per second.",
    "TFLOP/s": "Floating-point operations, in 10¹² per second.",
    "% of copyGmem": "Speed beside a copy by the same loads and stores, without the transpose.",
    **{f"% of {name}": f"Speed beside {name}, which only moves the data: the practical ceiling." for name in CEILINGS},
    "% of peak": "Share of the peak that the device's data sheet gives for what bounds the problem.",
    "% of roof": "Share of the roof above the case: of bandwidth or of arithmetic, whichever is lower.",
    "bytes/clk per SM": "Bytes of shared memory that a multiprocessor delivers per clock; the banks deliver 128.",
    "vs CPU": "Times as fast as the CPU's kernel at the same size.",
    "vs naive": "Times as fast as the naive kernel at the same size and block.",
    "conflicts ld / st": "Predicted wavefronts per shared-memory request of loads / stores; 1 is without conflicts.",
    "sectors ld / st": "Predicted 32-byte sectors per global-memory request of loads / stores.",
    "addresses per request": "Different constant-memory addresses per request; each is served in turn.",
    "occupancy": "Share of a multiprocessor's warps that can be resident, as predicted.",
    "✓": "The output was checked before it was timed.",
    "gain": "Times as fast as the best step before it; in brackets if within the noise.",
    "what changes": "What the step does differently from the one before.",
    "figure": "What was measured; the method is below the table.",
    "published": "What others have published for a GPU, with the source.",
    "holds here?": "Whether the documents' claim holds on this device, with the interval of the ratio.",
    "verdict": "What the change is beyond noise and threshold: slower, faster, or ambiguous if noise hides it.",
    "ratio": "New time over base time; above 1 is slower.",
    "± at 95 %": "Half of the 95 % confidence interval of the ratio.",
    "q": "The lowest false discovery rate at which the change counts.",
    "noise": "Standard deviation of the ratio if nothing changed.",
    "newest ms": "Time in the newest run.",
    "level ms": "Median time since the last change.",
    "changed": "The newest level against the one before it.",
    "oldest to newest": "Times of all runs as bars, oldest first.",
    "samples": "Times that were measured.",
    "spread of devices": "Standard deviation between the devices, in % of the median, robust against a few.",
    "slow in": "The metrics in which the device is slow.",
    "ECC errors": "Memory errors since the driver was loaded: those that ECC corrected, and those that it could not.",
    "PCIe": "Generation of the link during the run, of the one that GPU and host can have.",
    "lanes": "Lanes of the PCIe link during the run, of those that GPU and host can have.",
    "NVLinks": "NVLinks that were up, of those that the GPU has.",
    "rate": "GFLOP/s, or GB/s of a kernel without arithmetic.",
    "cases": "Kernels with size, block, dtype and so on that were planned.",
    "ok": "Cases that were checked and measured.",
    "failed": "Cases whose output was wrong or whose kernel could not run.",
    "skipped": "Cases that the device or the kernel cannot run.",
    "rounds": "How often the case was set up anew and measured.",
    "FLOP/byte": "Arithmetic intensity: operations per byte that the problem must move.",
}


def explained(sections: Iterable[Section]) -> dict[str, tuple[int, str]]:
    """The words that these tables need, each with a number and what it means."""
    titles = {column.title for section in sections for column in section.columns}
    return {word: (place, meaning) for place, (word, meaning) in enumerate(WORDS.items()) if word in titles}
