"""What the sizes of one run say together: where a GPU begins to pay, and where its stride slows the CPU's baseline."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from conftest import ROOT, Measured
from smembench.model.case import Block
from smembench.model.measurement import Measurement
from smembench.store.load import load
from smembench.store.relations import relate
from smembench.store.run import Run
from smembench.store.schema import row_of
from smembench.views.break_even import tables, where_it_pays
from smembench.views.sections import sections

NOISE = (0.99, 1.0, 1.01, 1.0, 0.995, 1.005)
CPU = {16: 1.0, 32: 8.0, 64: 64.0}
"""Times of the CPU's triple loop in ms, by n."""


def product(measured: Measured, kernel: str, n: int, ms: float, block: int = 16) -> Measurement:
    on_cpu = kernel == "cpu"
    times = [ms * part for part in NOISE]
    device, blocks = ("cpu", None) if on_cpu else ("cuda:0", Block(block, block))
    return measured(kernel, times, problem="matmul", device=device, n=n, block=blocks)


def run_of(result: Sequence[Measurement]) -> Run:
    return Run([row_of("run", measurement, relate(result)) for measurement in result])


def test_a_gpu_pays_from_the_size_from_which_on_it_is_faster_at_every_larger_one(measured: Measured) -> None:
    times = {
        "always": {16: 0.5, 32: 0.5, 64: 0.5},
        "later": {16: 5.0, 32: 4.0, 64: 4.0},
        "twice": {16: 0.5, 32: 20.0, 64: 4.0},  # faster at 16, too, but not at 32
        "never": {16: 5.0, 32: 20.0, 64: 64.1},  # within the noise
        "once": {64: 1.0},
    }
    result = [product(measured, "cpu", n, ms) for n, ms in reversed(CPU.items())]
    result += [product(measured, kernel, n, ms) for kernel, of in times.items() for n, ms in of.items()]
    (section,) = where_it_pays(run_of(result))
    assert [column.heading for column in section.columns] == ["size", "cpu ms", "always", "later", "twice", "never"]
    assert [line[0] for line in section.cells] == ["16×16×16", "32×32×32", "64×64×64"]
    assert section.cells[1][2:] == ["16.0 ±1.9 %", "2.00 ±1.9 %", "0.400 ±1.9 %", "0.400 ±1.9 %"]
    assert section.sentence == (
        "Of the sizes measured, faster than cpu: always from 16×16×16 on, later from 32×32×32 on, "
        "twice from 64×64×64 on; not faster at the largest: never."
    )


def test_of_several_blocks_the_fastest_of_each_size_stands_beside_the_cpu(measured: Measured) -> None:
    result = [product(measured, "cpu", n, CPU[n]) for n in (16, 32)]
    blocks = {(16, 16): 0.5, (16, 32): 2.0, (32, 16): 8.0, (32, 32): 2.0}
    result += [product(measured, "naive", n, ms, block) for (n, block), ms in blocks.items()]
    (section,) = where_it_pays(run_of(result))
    assert [line[2] for line in section.cells] == ["2.00 ±1.9 %", "4.00 ±1.9 %"]


@pytest.mark.parametrize("kernels", [("cpu", "naive"), ("cpu", "cpu"), ("naive", "naive")])
def test_without_several_sizes_on_both_devices_there_is_no_table(measured: Measured, kernels: tuple[str, str]) -> None:
    sizes = (16, 16) if kernels == ("cpu", "naive") else (16, 32)
    run = run_of([product(measured, kernel, n, 1.0) for kernel, n in zip(kernels, sizes, strict=True)])
    assert where_it_pays(run) == []
    assert [section.heading for section in tables(run)] == [section.heading for section in sections(run)]


@pytest.mark.filterwarnings("ignore::smembench.model.errors.Dropped")
def test_with_its_copies_a_gpu_adds_one_to_a_hundred_thousand_numbers_slower_than_the_cpu() -> None:
    """The stored run of an H200, by the intervals in cases.csv, for its samples are not stored."""
    *_, section = tables(load(ROOT / "results/reference/20261130T151325Z-concepts"))
    speedups = {line[0]: line[2:] for line in section.cells}
    assert speedups["100000"] == ["0.102 ±7.3 %", "0.29 ±6.6 %", "4.8 ±7.4 %"]
    assert section.sentence.endswith("addOneDevice from 100000 on; not faster at the largest: addOnePageable.")


@pytest.mark.parametrize(
    ("sizes", "beginning"),
    [
        ({1024: 4.0, 1000: 1.0}, "cpu: 3.7 times as long per operation as at 1000×1000×1000"),
        ({1024: 4.0, 1000: 1.0, 1010: 2.0}, "cpu: 1.9 times as long per operation as at 1010×1010×1010"),
        ({1024: 4.0, 512: 0.1}, ""),  # too far away
        ({1024: 4.0, 2048: 8.0}, ""),  # which has the same
        ({1024: 1.0, 1000: 0.931}, ""),  # the same per operation
        ({1024: 4.0}, ""),
    ],
)
def test_a_stride_that_slows_the_cpus_baseline_is_told_from_two_measured_rows(
    measured: Measured, sizes: dict[int, float], beginning: str
) -> None:
    shown = sections(run_of([product(measured, "cpu", n, ms) for n, ms in sizes.items()]))
    notes = [note for section in shown for note in section.notes if "per operation" in note]
    assert [note.partition(":")[0] + ":" + note.split(":")[1] for note in notes] == ([beginning] if beginning else [])
    assert notes == [note for note in shown[0].notes if "4096 bytes apart" in note]
