"""What explain says of a whole launch: reads of each element, registers, and the roof it hits."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from itertools import product as iterate
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from ladder import TILED
from programs import case_of, cuda_kernel
from smembench.devices import cuda_description
from smembench.explain.analysis import Explanation, explain
from smembench.explain.record import to_dict
from smembench.explain.roof import ARITHMETIC, MEMORY, ON_CHIP, Work, lowest, on_chip_share, ridge, roofs
from smembench.model.case import BY_COLUMNS, Block, Case
from smembench.model.device import DeviceInfo
from smembench.model.errors import UsageError
from smembench.studies.explain import cases as cases_of
from smembench.studies.explain import target
from smembench.toolchains import machine_code as machine_codes
from smembench.toolchains import numba
from smembench.toolchains.machine_code import MachineCode, machine_code, opcodes, parse
from smembench.toolchains.register_bank_conflicts import MainLoop
from smembench.views.explain import explanation
from smembench.views.explain_roof import roof
from smembench.views.table import draw
from traces import case

H200 = DeviceInfo(
    name="cuda:0",
    model="NVIDIA H200",
    compute_capability="9.0",
    sm_count=132,
    sm_clock_max_mhz=1980,
    peak_gb_s=4814.3,
)
BARE = DeviceInfo(name="cuda:0", model="unknown", compute_capability="9.0", peak_gb_s=4814.3)
CLIMBED = ("tiled1D", "tiled2D", *TILED, "slicedK12x6")
LEFT_OVER = ("serpentine", "serpentine16x8", "streamK", "slicedK12x6")
REFERENCE = Path(__file__).parents[2] / "results/reference/20261129T121757Z-documents"
LOG = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'tiled' for 'sm_90'
ptxas         .     16 bytes stack frame, 24 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers
info    : used 31 registers, 0 stack
"""


def elf(sections: Mapping[str, bytes]) -> bytes:
    """An ELF-64 file with these sections and nothing else."""
    named = {**sections, ".shstrtab": b"\0".join(name.encode() for name in (*sections, ".shstrtab")) + b"\0"}
    contents, headers, at = b"", b"", 64
    for name, content in named.items():
        place = named[".shstrtab"].index(name.encode())
        headers += struct.pack("<IIQQQQIIQQ", place, 1, 0, 0, at, len(content), 0, 0, 16, 0)
        contents, at = contents + content, at + len(content)
    kind = b"\x7fELF\2\1\1".ljust(16, b"\0")  # 64 bits, lowest byte first
    begin = kind + struct.pack("<HHIQQQIHHHHHH", 2, 190, 1, 0, 0, at, 0, 64, 0, 0, 64, len(named), len(sections))
    return begin + contents + headers


INSTRUCTION, NOP = (struct.pack("<QQ", low, 0) for low in (0x7A0245, 0x7918))
CODE_WITH_LOOP = MachineCode(40, 0, 100, MainLoop(instructions=90, multiply_adds=64, cycles=100))
CODE = elf({".text.tiled": INSTRUCTION * 70 + NOP * 10, ".text.helper": INSTRUCTION * 30, ".nv.info": NOP})
"""100 instructions in two functions."""


def product(kernel: str, block: int, m: int, n: int, k: int, stride: int | None = None) -> Case:
    return Case("matmul", kernel, "cuda:0", "float32", m, n, k, Block(block, block), stride=stride)


explained = cache(explain)


def reads(planned: Case) -> dict[str, float]:
    return {access.array: access.per_element for access in explained(planned).traffic if access.kind == "load"}


@pytest.mark.parametrize(
    ("block", "m", "n", "k", "stride"),
    [(32, 1024, 1024, 1024, None), (16, 2048, 512, 96, 2051), (8, 1000, 500, 700, 1003), (8, 33, 65, 17, None)],
)
def test_the_programming_guides_count_of_reads(block: int, m: int, n: int, k: int, stride: int | None) -> None:
    """A B.width times and B A.height times; in shared memory a block's width of times less."""
    assert reads(product("naive", block, m, n, k, stride)) == pytest.approx({"A": n, "B": m})
    tiled = reads(product("tiled", block, m, n, k, stride))
    assert tiled == pytest.approx({"A": -(-n // block), "B": -(-m // block)})


def test_steps_that_are_copied_ahead_of_the_loop_load_what_others_do() -> None:
    """mmaPlain copies none ahead; the last step along k has 16 columns of A instead of 32. Rows begin at sectors."""
    ahead, none = (
        explain(case_of(cuda_kernel("matmul", kernel), 144, 144, 208, "bfloat16", Block(16, 16)))
        for kernel in ("mmaAsync", "mmaPlain")
    )
    assert ahead.sectors("load") == pytest.approx(none.sectors("load"))
    assert sum(load.requests for load in ahead.loads) == sum(load.requests for load in none.loads)


@pytest.mark.parametrize(
    ("m", "k", "n", "counted_sectors", "counted_requests"),
    [
        (1024, 1000, 1024, 1091584, 64768),
        (1000, 1024, 1000, 1091584, 64768),
        (1000, 1000, 1000, 1132000, 64000),
    ],
)
def test_copies_past_the_l1_move_as_many_sectors_as_an_h200_counted(
    m: int, k: int, n: int, counted_sectors: int, counted_requests: int
) -> None:
    """Rows of 1000 elements are 2000 bytes, so that every other begins in the middle of a sector."""
    result = explain(case_of(cuda_kernel("matmul", "mmaAsync"), m, n, k, "bfloat16", Block(16, 16)))
    assert sum(load.sectors for load in result.loads) == counted_sectors
    assert sum(load.requests for load in result.loads) == counted_requests


def test_lanes_that_skip_a_store_make_the_next_with_the_others() -> None:
    """As in going through all stores of tiled2D, whose results lie a block apart, at edges inside a warp."""
    side, stores = 155, []
    for row0, col0, warp, i, j in iterate((0, 128), (0, 128), range(8), range(8), range(8)):
        places = [(row0 + 2 * warp + lane // 16 + 16 * i, col0 + lane % 16 + 16 * j) for lane in range(32)]
        stores.append({(row * side + col) // 8 for row, col in places if row < side and col < side})
    made = [len(sectors) for sectors in stores if sectors]
    result = explain(case_of(cuda_kernel("matmul", "tiled2D"), side, side, 8, block=Block(16, 16)))
    (store,) = (access for access in result.memory if access.site.kind == "store")
    assert store.requests == len(made)
    assert store.of_all == pytest.approx(sum(made))


def counted(result: Explanation) -> list[float]:
    """The figures of all accesses, in the order of the source."""
    shared = [(access.requests, access.wavefronts, access.ideal, access.broadcast) for access in result.shared]
    memory = [(access.requests, access.sectors, access.ideal, access.efficiency) for access in result.memory]
    return [figure for figures in (*shared, *memory) for figure in figures]


def test_a_transpose_reads_and_writes_each_element_once() -> None:
    for kernel in ("copyGmem", "transposeSmem", "transposeSmemUnrollPad"):
        traffic = explain(case(kernel, n=200)).traffic
        assert [(access.array, access.kind, access.per_element) for access in traffic] == [
            ("out", "store", 1),
            ("in", "load", 1),
        ]


def test_a_broadcast_is_many_reads_and_one_request() -> None:
    (_, a, b) = explain(product("naive", 32, 64, 64, 64)).traffic
    warps = 64 * 64 / 32
    assert (a.requests, a.sectors, a.bytes, a.wavefronts) == (warps * 64, warps * 64, 32 * warps * 64, warps * 64)
    assert (b.requests, b.sectors) == (warps * 64, 4 * warps * 64)


def test_wide_elements_take_more_wavefronts_than_requests() -> None:
    out, inp = explain(case("copyGmem", dtype="float64", n=64)).traffic
    assert (inp.requests, inp.wavefronts) == (out.requests, out.wavefronts) == (128, 256)


def test_what_a_launch_has_to_do() -> None:
    tiled, smem = explained(case("tiled")).work, explained(case("transposeSmem")).work
    steps, warps = 4096 / 32, 4096 * 4096 / 32
    # Each step of a tile: two stores to it, 32 times two loads, and two global loads; in the end one store.
    assert tiled == Work("float32", 3 * 4096 * 4096 * 4, warps * (steps * (2 + 64 + 2) + 1), 2 * 4096**3)
    assert smem == Work("float32", 2 * 4096 * 4096 * 4, warps * (1 + 32 + 2), 0)


@pytest.mark.parametrize(
    ("kernel", "name", "ms"),
    [
        ("copyGmem", MEMORY, 0.02788),
        ("transposeSmem", ON_CHIP, 0.07021),
        ("transposeSmemPad", MEMORY, 0.02788),
        ("naive", ON_CHIP, 16.4352),
        ("tiled", ON_CHIP, 17.4622),
    ],
)
def test_the_roof_a_kernel_hits(kernel: str, name: str, ms: float) -> None:
    hit = lowest(roofs(explained(case(kernel)).work, H200))
    assert hit is not None
    assert hit[0].name == name
    assert hit[1] == pytest.approx(ms, rel=1e-3)


def test_roofs_are_by_the_peaks_of_the_device() -> None:
    work = Work("float32", memory_bytes=4814300, wavefronts=132, flops=66908160)
    result = roofs(work, H200)
    assert [limit.name for limit in result] == [MEMORY, ON_CHIP, ARITHMETIC]
    assert [limit.amount for limit in result] == [4814300, 128 * 132, 66908160]
    assert [limit.peak for limit in result] == pytest.approx([4814.3e9, 128 * 132 * 1980e6, 66908.16e9])
    assert [limit.milliseconds for limit in roofs(work, H200)] == pytest.approx([1e-3, 1e3 / 1980e6, 1e-3])
    assert ridge("float32", H200) == pytest.approx(66908.16 / 4814.3)


def test_a_roof_is_named_only_where_every_peak_is_known() -> None:
    work = explained(case("tiled")).work
    assert [limit.milliseconds is None for limit in roofs(work, BARE)] == [False, True, True]
    assert lowest(roofs(work, BARE)) is lowest(roofs(work, None)) is None
    assert ridge("float32", BARE) is None
    assert [limit.name for limit in roofs(Work("int32", 8, 0, 0), BARE)] == [MEMORY]


@given(st.integers(0, 2**40), st.integers(0, 2**40), st.integers(0, 2**40))
def test_the_roof_that_is_hit_takes_longest(memory_bytes: int, wavefronts: int, flops: int) -> None:
    result = roofs(Work("float32", memory_bytes, wavefronts, flops), H200)
    hit = lowest(result)
    assert (hit is None) == (not result)
    if hit is not None:
        assert hit[1] == max(limit.milliseconds or 0 for limit in result)


def test_the_share_of_arithmetic_that_loads_leave_needs_no_device() -> None:
    work = Work("float32", 1, wavefronts=10, flops=320)
    assert on_chip_share(work, "9.0") == 32 / 256
    assert on_chip_share(work, "8.0") == 32 / 128
    assert on_chip_share(replace(work, dtype="float64"), "9.0") == 32 / 128
    assert on_chip_share(replace(work, flops=10**6), "9.0") == 1
    unknown = (on_chip_share(work, "3.0"), on_chip_share(work, None), on_chip_share(replace(work, flops=0), "9.0"))
    assert unknown == (None, None, None)


def test_the_figures_of_a_compilers_report() -> None:
    assert parse(LOG, CODE) == MachineCode(40, 24, 100)
    assert parse(LOG.replace("24 bytes spill stores, ", ""), CODE) == MachineCode(40, 0, 100)
    assert parse("nothing of the kind", CODE) is None
    assert opcodes(CODE) == [0x245] * 100
    kinds = {"BRA": 0x947, "LDS": 0x984, "FFMA": 0x223, "IADD": 0x235, "HFMA2": 0x435, "0x1ff": 0x1FF}
    code = elf({".text.tiled": NOP.join(struct.pack("<QQ", opcode, 0) * 2 for opcode in kinds.values())})
    assert getattr(parse(LOG, code), "kinds", None) == dict.fromkeys(kinds, 2)
    assert opcodes(elf({".data": b"x" * 32})) == []


def test_a_kernel_is_compiled_once_for_all_sizes_and_for_each_layout_of_b(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def link(code: bytes, architecture: str, *, at_link_time: bool) -> tuple[str, bytes]:
        asked.append(architecture)
        return LOG, CODE

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(machine_codes, "_compiled", {})
    monkeypatch.setattr(numba.TOOLCHAIN, "libraries", dict)
    monkeypatch.setattr(numba, "by_nvvm", lambda *arguments: b"")
    monkeypatch.setattr(numba, "link", link)
    for n in (64, 128, 4096):
        assert machine_code(case("tiled", n=n), "9.0") == MachineCode(40, 24, 100)
    assert machine_code(case("tiled", "16x16"), "8.0") == MachineCode(40, 24, 100)
    assert machine_code(case("memcpy"), "9.0") is None
    assert asked == ["90", "80"]
    by_rows = case_of(cuda_kernel("matmul", "wgmma"), 64, 64, 64, "bfloat16")
    for entry in (by_rows, replace(by_rows, n=128), replace(by_rows, b_layout=BY_COLUMNS)):
        assert machine_code(entry, "9.0") == MachineCode(40, 24, 100)
    assert asked == ["90", "80", "90a", "90a"]
    asked.clear()
    monkeypatch.setattr(machine_codes, "_compiled", {})  # as in another process
    assert machine_code(case("tiled"), "9.0") == MachineCode(40, 24, 100)
    assert asked == []
    monkeypatch.setattr(numba.TOOLCHAIN, "libraries", lambda: {"nvjitlink": "another"})
    monkeypatch.setattr(machine_codes, "_compiled", {})
    assert machine_code(case("tiled"), "9.0") == MachineCode(40, 24, 100)
    assert asked == ["90"]


def test_without_a_compiler_registers_are_not_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*arguments: Any) -> str:
        raise RuntimeError("no libnvrtc")

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(machine_codes, "_compiled", {})
    monkeypatch.setattr(numba.TOOLCHAIN, "libraries", dict)
    monkeypatch.setattr(numba, "by_nvvm", missing)
    assert machine_code(case("tiled"), "9.0") is None


@pytest.mark.parametrize(
    ("code", "phrases"),
    [
        (MachineCode(40, 0, 100), ["1 block or 32 of 64 warps", "limited by registers, at 40 registers"]),
        (MachineCode(40, 24, 100), ["40 registers per thread and 24 bytes of local memory"]),
        (CODE_WITH_LOOP, ["90 instructions, 64 of them multiply-adds", "10 of which are register bank", "64 %"]),
    ],
)
def test_an_explanation_says_what_registers_cost(code: MachineCode, phrases: list[str]) -> None:
    sentence = explanation(explained(case("tiled"), "9.0", code))[-1].sentence
    assert [words for words in phrases if words not in sentence] == []


def drawn(kernel: str, capability: str, device: DeviceInfo | None, dtype: str = "float32") -> str:
    stream = io.StringIO()
    section = roof(explained(case(kernel, dtype=dtype)), capability, device)
    draw(Console(file=stream, width=200, highlight=False), [section])
    return " ".join(stream.getvalue().split())


def test_the_roofs_of_a_round_trip_are_those_of_its_kernel() -> None:
    text = drawn("addOnePinned", "9.0", H200, dtype="int32")
    assert "memory 32.8 kB 4814 GB/s" in text
    assert "the copies between host and device, which are timed too, have none" in text
    assert "copies" not in drawn("addOneDevice", "9.0", H200, dtype="int32")


@pytest.mark.parametrize(
    ("kernel", "sizes", "dtype"),
    [
        ("transposeSmem", (4096, 4096, None), "float32"),
        ("naive", (1024, 1024, 1024), "float32"),
        ("addOnePinned", (1, 100_000, None), "int32"),
        ("setRowReadRow", (256, 24576, None), "int32"),
    ],
)
def test_without_sizes_a_kernel_is_explained_as_its_command_measures_it(
    kernel: str, sizes: tuple[int | None, ...], dtype: str
) -> None:
    (result,) = cases_of(kernel)
    assert (result.m, result.n, result.k, result.dtype) == (*sizes, dtype)


def test_roofs_of_a_device_as_a_table() -> None:
    table = drawn("tiled", "9.0", H200)
    assert "memory 201.3 MB 4814 GB/s 0.04182 L1 and shared memory 584.2 GB 33454 GB/s 17.4622" in table
    assert "arithmetic 137.4 GFLOP 66908 GFLOP/s 2.0541 Tightest bound: L1 and shared memory, 7871" in table
    assert "682.7 FLOP per compulsory byte, the ridge 13.9" in table
    assert "Tightest bound: memory" in drawn("copyGmem", "9.0", H200)


def test_roofs_without_a_device_say_what_is_needed() -> None:
    text = drawn("tiled", "8.0", None)
    assert "least ms" not in text
    assert "limits this kernel to 23.5 % of the arithmetic peak (compute capability 8.0)" in text
    assert "--run" in text


def test_the_roofs_are_of_the_gpu_of_a_run(tmp_path: Path) -> None:
    device, capability = target(REFERENCE)
    assert device is not None
    assert (device.model, device.sm_count, capability) == ("NVIDIA H200", 132, "9.0")
    (tmp_path / "cases.csv").write_text((REFERENCE / "cases.csv").read_text())
    (tmp_path / "run.json").write_text(json.dumps({"devices": [{"name": "cpu", "kind": "cpu"}]}))
    with pytest.raises(UsageError, match=r"--run .*: its run\.json names no GPU"):
        target(tmp_path)


@pytest.mark.parametrize(
    ("of_gpu", "given", "meant"),
    [("8.6", None, "8.6"), ("6.1", None, None), (None, None, "9.0"), (None, "8.0", "8.0")],
)
def test_the_capability_is_that_of_the_device(
    of_gpu: str | None, given: str | None, meant: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu = H200.model_copy(update={"compute_capability": of_gpu}) if of_gpu else None
    monkeypatch.setattr(cuda_description, "gpu_info", lambda index: gpu)
    assert target(capability=given) == (gpu, meant)


def test_an_explanation_as_json() -> None:
    result = json.loads(json.dumps(to_dict(explained(case("tiled"), "9.0", CODE_WITH_LOOP), "9.0", H200)))
    assert result["machine_code"] == {
        "registers_per_thread": 40,
        "spilled_bytes": 0,
        "instructions": 100,
        "main_loop": {"instructions": 90, "multiply_adds": 64, "cycles": 100, "share_of_arithmetic_peak": 0.64},
    }
    assert result["occupancy"]["counts_registers"] is True
    assert result["device"] == "NVIDIA H200"
    assert result["ridge_flop_per_byte"] == pytest.approx(13.9, rel=1e-2)
    assert result["on_chip_share_of_arithmetic_peak"] == pytest.approx(0.1176, rel=1e-3)
    assert [(item["array"], item["kind"], item["accesses_per_element"]) for item in result["traffic"]] == [
        ("C", "store", 1),
        ("A", "load", 128),
        ("B", "load", 128),
    ]
    assert [(item["name"], item["unit"], item["least_ms"]) for item in result["roofs"]] == [
        (MEMORY, "B", pytest.approx(0.04182, rel=1e-3)),
        (ON_CHIP, "B", pytest.approx(17.4622, rel=1e-3)),
        (ARITHMETIC, "FLOP", pytest.approx(2.0541, rel=1e-3)),
    ]
    bare = to_dict(explained(case("copyGmem")), None, None)
    assert (bare["machine_code"], bare["occupancy"], bare["device"], bare["ridge_flop_per_byte"]) == (None,) * 4
