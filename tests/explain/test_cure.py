"""The cure of a conflict: what is said of a kernel holds for the kernel that is written so."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from campaign import CAMPAIGN
from smembench import explain_function
from smembench.explain.analysis import explain
from smembench.explain.banks import wavefronts
from smembench.explain.costs import Costs
from smembench.explain.cure import cure_of, cures
from smembench.explain.declared import declared
from smembench.explain.rearranged import asked_of
from smembench.explain.requests import AccessSite, Request
from smembench.explain.tiles import TileAccess
from smembench.explain.trace import SharedArray
from smembench.studies.explain import cases
from smembench.views.explain_cure import cure_lines

COPY = """
#define SIDE 32
__global__ void square(float *out, const float *in) {
    __shared__ float tile[SIDE][SIDE];
    int x = threadIdx.x, y = threadIdx.y;
    tile[y][x] = in[y * 32 + x];
    __syncthreads();
    out[y * 32 + x] = tile[x][y];
}
__global__ void half_a_warp(float *out, const float *in) {
    __shared__ float tile[16][16];
    int x = threadIdx.x, y = threadIdx.y;
    tile ROW(y, x) = in[y * 16 + x];
    __syncthreads();
    out[y * 16 + x] = tile ROW(x, y);
}
__global__ void vectors(float4 *out, const float4 *in) {
    __shared__ float4 tile[32][8];
    int x = threadIdx.x % 8, y = threadIdx.x / 8;
    tile[y][x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = tile[threadIdx.x % 32][threadIdx.x / 32];
}
__global__ void planes(double *out, const double *in) {
    __shared__ double tile[2][16][16];
    int x = threadIdx.x % 16, y = threadIdx.x / 16;
    tile[0][y][x] = in[threadIdx.x];
    tile[1][y][x] = in[threadIdx.x + 256];
    __syncthreads();
    out[threadIdx.x] = tile[0][x][y];
    out[threadIdx.x + 256] = tile[1][x][y];
}
__global__ void shorts(unsigned short *out, const unsigned short *in) {
    __shared__ unsigned short tile[64][64];
    for (int i = threadIdx.x; i < 4096; i += 256) tile[i / 64][i % 64] = in[i];
    __syncthreads();
    for (int i = threadIdx.x; i < 4096; i += 256) out[i] = tile[i % 64][i / 64];
}
__global__ void strided(float *out, const float *in) {
    __shared__ float tile[1024 + 32];
    for (int i = threadIdx.x; i < 1024; i += 256) tile[AT(i)] = in[i];
    __syncthreads();
    out[threadIdx.x] = tile[AT(4 * threadIdx.x)];
}
__global__ void at_launch(float *out, const float *in) {
    int x = threadIdx.x, y = threadIdx.y;
    dynamic[AT(y * 48 + x)] = in[y * 32 + x];
    __syncthreads();
    out[y * 32 + x] = dynamic[AT(x * 48 + y)];
}
__global__ void two_tiles(float *out, const float *in) {
    float *one = dynamic, *other = dynamic + 1024;
    int x = threadIdx.x, y = threadIdx.y;
    one[AT(y * 32 + x)] = in[y * 32 + x];
    other[PADDED(y * 64 + x)] = in[y * 32 + x];
    __syncthreads();
    float found = one[AT(x * 32 + y)];
    found += other[PADDED(x * 64 + y)];
    out[y * 32 + x] = found;
}
__global__ void in_a_row(float *out, const float *in) {
    __shared__ float tile[8][1024];
    for (int i = 0; i < 8; i++) tile[i] PART(threadIdx.x) = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = tile[threadIdx.x / 128] PART(threadIdx.x % 32 * 32);
}
__global__ void gathered(float *out, const int *index) {
    __shared__ float tile[4096];
    for (int i = threadIdx.x; i < 4096; i += 256) tile[i] = i;
    __syncthreads();
    out[threadIdx.x] = tile[index[threadIdx.x]];
}
__global__ void one_word_each(float *out, const float *in) {
    __shared__ float tile[2048];
    for (int i = threadIdx.x; i < 2048; i += 256) tile[i] = in[i];
    __syncthreads();
    float4 four = *(const float4 *)&tile[threadIdx.x * 8];
    out[threadIdx.x] = four.x + four.w;
}
"""
AS_IT_IS = {"AT(i)": "(i)", "PADDED(i)": "(i)", "ROW(r, c)": "[r][c]", "PART(x)": "[x]"}
DYNAMIC = {"at_launch": 8192, "two_tiles": 16384}
"""Bytes of shared memory that a launch adds."""
Explain = Callable[..., Costs]
Kernel = tuple[str, str, int, tuple[int, ...]]


@pytest.fixture
def explained(tmp_path: Path) -> Explain:
    """Explain a kernel of the source above with another declaration, or with its macros defined otherwise."""
    pytest.importorskip("cuda.bindings.nvrtc")

    def explain(
        kernel: Kernel, *, old: str = "", new: str = "", macros: Mapping[str, str] = AS_IT_IS, data: Any = None
    ) -> Costs:
        name, element, count, block = kernel
        defined = "".join(f"#define {macro} {text}\n" for macro, text in (AS_IT_IS | dict(macros)).items())
        path = tmp_path / "copy.cu"
        declarations, *kernels = re.split(r"^(?=__global__)", COPY, flags=re.MULTILINE)
        (source,) = (text for text in kernels if f" {name}(" in text)
        source = "extern __shared__ float dynamic[];\n" * (name in DYNAMIC) + source
        path.write_text(defined + declarations + (source.replace(old, new) if old else source))
        array = f"{element}[{count}]"
        args = (array, array if data is None else data)
        dynamic = DYNAMIC.get(name, 0)
        return explain_function(
            f"{path}:{name}", grid=1, block=block, args=args, shared_bytes=dynamic, capability="9.0"
        )

    return explain


@pytest.mark.parametrize(
    ("kernel", "old", "new", "turns"),
    [
        (("square", "float32", 1024, (32, 32)), "float tile[SIDE][SIDE]", "float tile[SIDE][SIDE + 1]", "32 -> 1"),
        (("vectors", "float32", 1024, (256,)), "float4 tile[32][8]", "float4 tile[32][9]", "32 -> 4"),
        (("planes", "float64", 512, (256,)), "double tile[2][16][16]", "double tile[2][16][17]", "32 -> 2"),
        (
            ("shorts", "uint16", 4096, (256,)),
            "unsigned short tile[64][64]",
            "unsigned short tile[64][66]",
            "32 -> 1",
        ),
    ],
)
def test_the_declaration_that_is_said_has_no_conflicts(
    explained: Explain, kernel: Kernel, old: str, new: str, turns: str
) -> None:
    (line,) = cure_lines(result := explained(kernel))
    assert result.worst() > 1
    assert f'("{new}") makes the loads in line' in line
    assert f"free of conflicts: {turns} wavefronts per request." in line
    written = explained(kernel, old=old, new=new)
    assert (written.worst(), cure_lines(written)) == (1, [])


def test_a_flat_array_is_padded_by_its_index(explained: Explain) -> None:
    kernel: Kernel = "strided", "float32", 1024, (256,)
    (line,) = cure_lines(explained(kernel))
    assert 'a pad of 4 bytes per 128 bytes of tile (element i at "tile[i + i / 32]")' in line
    assert explained(kernel, macros={"AT(i)": "(i) + (i) / 32"}).worst() == 1


def test_dynamic_memory_has_rows_as_long_as_the_steps_between_lanes(explained: Explain) -> None:
    kernel: Kernel = "at_launch", "float32", 1024, (32, 32)
    (line,) = cure_lines(explained(kernel))
    match = re.search(r'element i at "dynamic\[(.*?)\]"', line)
    assert match, line
    assert "free of conflicts: 16 -> 1 wavefronts per request" in line
    assert "4 bytes per 192 bytes of dynamic" in line
    assert explained(kernel, macros={"AT(i)": match[1].replace("i", "(i)")}).worst() == 1


def test_tiles_in_dynamic_memory_have_cures_of_their_own(explained: Explain) -> None:
    kernel: Kernel = "two_tiles", "float32", 1024, (32, 32)
    lines = sorted(cure_lines(explained(kernel)))
    assert len(lines) == 2
    assert 'per 128 bytes of dynamic (element i at "dynamic[i + i / 32]")' in lines[0]
    assert 'per 256 bytes of dynamic+4096 (element i at "(dynamic + 1024)[i + i / 64]")' in lines[1]
    written = {"AT(i)": "(i) + (i) / 32", "PADDED(i)": "(i) + (i) / 64"}
    assert explained(kernel, old="dynamic + 1024", new="dynamic + 1056", macros=written).worst() == 1


def test_tiles_of_the_tma_are_left_as_they_are(explained: Explain) -> None:
    result = explained(("square", "float32", 1024, (32, 32)))
    copied = TileAccess(1, "copy", "in", "tile", 32, 32, 4096)
    (line,) = cure_lines(replace(result, trace=replace(result.trace, tiles={copied: 1})))
    assert line == "Cure: none tried, because the TMA or tensor cores access tile as tiles, too."


def test_a_swizzle_is_named_where_a_pad_would_cost_a_resident_block(explained: Explain) -> None:
    result = explained(("square", "float32", 1024, (32, 32)))
    assert result.occupancy is not None
    scarce = replace(result, occupancy=replace(result.occupancy, room=127))
    assert "a swizzle of tile, element (r, c) at" in cure_lines(scarce)[0]
    assert "a pad of 4 bytes" in cure_lines(replace(result, occupancy=replace(result.occupancy, room=128)))[0]


def test_where_no_pad_is_free_a_swizzle_is(explained: Explain) -> None:
    kernel: Kernel = "half_a_warp", "float32", 256, (16, 16)
    (line,) = cure_lines(explained(kernel))
    match = re.search(r'a swizzle of tile, element \(r, c\) at "tile\[r\]\[(.*?)\]"', line)
    assert match, line
    written = re.sub(r"\b([rc])\b", r"(\1)", match[1])
    assert explained(kernel, macros={"ROW(r, c)": f"[r][{written}]"}).worst() == 1


def test_parts_of_a_row_are_padded_where_its_own_elements_conflict(explained: Explain) -> None:
    kernel: Kernel = "in_a_row", "float32", 1024, (1024,)
    (line,) = cure_lines(explained(kernel))
    assert '("float tile[8][32][33]", column x at "[x / 32][x % 32]")' in line
    parts = {"PART(x)": "[(x) / 32][(x) % 32]"}
    written = explained(kernel, old="float tile[8][1024]", new="float tile[8][32][33]", macros=parts)
    assert written.worst() == 1


def test_vectors_stay_aligned(explained: Explain) -> None:
    (cure,) = cures(explained(("one_word_each", "float32", 2048, (256,))))
    assert cure.best is not None
    assert cure.best.free
    assert cure.pad_bytes % 16 == 0 < cure.pad_bytes


@st.composite
def strided_requests(draw: st.DrawFn) -> list[Request]:
    """Loads and stores of lanes that lie in rows and columns of an array of 8 KiB."""
    result = []
    for line in range(1, draw(st.integers(2, 4))):
        width, kind = draw(st.sampled_from([2, 4, 8, 16])), draw(st.sampled_from(["load", "store"]))
        lanes = draw(st.sampled_from([1, 4, 8, 16, 32]))
        down, across = draw(st.sampled_from([16, 48, 64, 128, 192, 256])), draw(st.sampled_from([1, 2, 4]))
        first = draw(st.integers(0, 8)) * 16
        addresses = [(first + lane % lanes * down + lane // lanes * across * width) % 8192 for lane in range(32)]
        site = AccessSite(line, "shared", kind, "tile", width)
        result.append(Request(site, tuple(at // width * width for at in addresses), draw(st.integers(1, 3))))
    return result


@settings(max_examples=25 * CAMPAIGN)
@given(strided_requests())
def test_a_cure_is_what_the_rules_for_single_requests_say_of_it(requests: list[Request]) -> None:
    array = SharedArray("tile", (8192,), 1, 0)
    cure = cure_of(array, asked_of(requests), None, 1024)
    if cure.best is None:
        return
    total = 0
    for request in requests:
        moved = cure.tile.moved(np.array(request.addresses), cure.best.layout).tolist()
        total += request.weight * wavefronts(moved, request.site.width, request.site.kind)  # refuses unaligned ones
        again: dict[int | None, int | None] = {}
        for before, after in zip(request.addresses, moved, strict=True):
            assert again.setdefault(after, before) == before
    assert total == cure.best.wavefronts < cure.plain.wavefronts


def test_accesses_are_named_by_their_lines() -> None:
    (case,) = cases("sumInterleaved", n=2**13)
    (line,) = cure_lines(explain(case))
    assert "makes the loads and stores in line 38 free of conflicts: 4.75 -> 1 wavefronts per request." in line
    (case,) = cases("setColReadCol")
    (line,) = cure_lines(explain(case))
    assert "makes the stores in line 77 and the loads in line 80 free of conflicts: 32 -> 1" in line


def test_no_cure_is_said_where_data_decide(explained: Explain) -> None:
    index = np.random.default_rng(1).integers(0, 4096, 256).astype(np.int32)
    (line,) = cure_lines(explained(("gathered", "float32", 256, (256,)), data=index))
    assert line.startswith("Cure: no pad of up to 124 bytes per row and no XOR of columns removes a third of")
    assert "the conflicts of all accesses of " in line
    assert "3.38 wavefronts per request of the " in line


def test_declarations_are_read_as_compilers_do(tmp_path: Path) -> None:
    path = tmp_path / "some.cu"
    path.write_text("""
#define A 16 // of A
constexpr int B = A * 2, C = 3;
/* __shared__ float tile[1][1]; */
__shared__ __align__(16) unsigned int one[A][B + 1], tile[2][A / 3];
__shared__ volatile double unknown[N];
__shared__ float tile[4];
__shared__ float square[SIDE][SIDE], padded[B][32 + PAD], neither[SIDE][SIDE + PAD];
__shared__ T typed[2][4];
""")

    def sides(name: str, size: int, line: int = 99) -> tuple[str, tuple[int, ...]] | None:
        result = declared(str(path), name, size, line)
        return None if result is None else (result.type, result.sides)

    assert sides("one", 16 * 33 * 4) == ("unsigned int", (16, 33))
    assert sides("tile", 40) == ("unsigned int", (2, 5))
    assert sides("tile", 16) == ("float", (4,))
    assert sides("tile", 16, line=6) is None
    assert sides("unknown", 64) == ("volatile double", (8,))
    assert sides("square", 144) == ("float", (6, 6))
    assert sides("square", 148) is None
    assert sides("padded", 32 * 33 * 4) == ("float", (32, 33))
    assert sides("neither", 32 * 33 * 4) is None
    assert sides("typed", 64) == ("T", (2, 4))  # of 8 bytes each
    assert sides("typed", 24) is None
    assert declared(str(path.with_suffix(".ptx")), "one", 16 * 33 * 4, 99) is None
