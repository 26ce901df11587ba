"""``smembench explain`` as users run it."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import pytest

from conftest import DOCUMENTS, Program, records

# A hardware that counts 1 of everything, three launches a case.
NCU = f"""#!{sys.executable}
import json, sys
metrics = sys.argv[sys.argv.index("--metrics") + 1].split(",")
work = json.loads(sys.argv[-1])
print('"Metric Name","Metric Value"')
for _ in range(work["launches"] * len(work["cases"])):
    for metric in metrics:
        print(f'"{{metric}}","1"')
"""


@pytest.fixture
def ncu(tmp_path: Path) -> Path:
    """A folder with an ``ncu`` that needs no GPU."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "ncu").write_text(NCU)
    (folder / "ncu").chmod(0o755)
    return folder


def test_an_explanation_is_a_table_a_sentence_and_a_picture(program: Program) -> None:
    ran = program("explain", "transposesmem")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith("transposeSmem in transpose_smem.py · block 32x32, pad 0 · float32 · 1024")
    for words in ("32-way", "sectors of 32 bytes", "loads take 32.0 times the wavefronts", "Occupancy 100 %"):
        assert words in ran.stdout
    assert len(re.findall(r"\n *\d+  0 \.", ran.stdout)) == 32
    assert "\x1b" not in ran.stdout
    assert max(map(len, ran.stdout.splitlines())) <= 80


def test_json_holds_the_figures(program: Program) -> None:
    ran = program("explain", "transposeSmemPad", "--block", "16x16", "--json", "--n", 512)
    assert (ran.returncode, ran.stderr) == (0, "")
    result = json.loads(ran.stdout)
    assert result["case_id"] == "transpose/transposeSmemPad/cuda:0/numba/float32/512x512/b16x16/pad1/warm"
    assert (result["shared_bytes"], result["threads"]) == (16 * 17 * 4, 256)
    figures = ("kind", "wavefronts_per_request", "ideal_wavefronts_per_request", "conflict_degree", "broadcast")
    assert [[access[figure] for figure in figures] for access in result["shared"]] == [
        ["store", 2, 1, 2, False],
        ["load", 2, 1, 2, False],
    ]
    figures = ("kind", "array", "sectors_per_request", "ideal_sectors_per_request", "efficiency")
    assert [[access[figure] for figure in figures] for access in result["global"]] == [
        ["load", "in", 4, 4, 1],
        ["store", "out", 4, 4, 1],
    ]
    assert result["shared"][0]["source"].startswith("tile[ty, tx] = inp[")
    counted = result["occupancy"].pop("counts_registers")
    assert counted == (result["machine_code"] is not None)
    assert result["source_file"].endswith("transpose_smem.py")
    assert result["occupancy"] == {"blocks_per_sm": 8, "warps_per_sm": 64, "fraction": 1, "limiter": "threads"}
    assert result["arithmetic_intensity_flop_per_byte"] == 0
    assert (result["device"], result["roofs"][0]["peak_per_s"]) == (None, None)


def test_the_roofs_are_those_of_a_stored_run(program: Program) -> None:
    ran = program("explain", "transposeSmem", "--block", "16x16", "--run", DOCUMENTS)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "Roofs of NVIDIA H200, 4096×4096" in ran.stdout
    sentence = "Measured: 0.07150 ms, 1877 GB/s, 39 % of the tightest bound: memory, 4814 GB/s (higher"
    assert sentence in " ".join(ran.stdout.split())
    result = json.loads(program("explain", "transposeSmem", "--block", "32x32", "--run", DOCUMENTS, "--json").stdout)
    assert result["measured_ms"] == pytest.approx(0.1348, abs=1e-4)
    assert result["device"] == "NVIDIA H200"
    assert max(result["roofs"], key=lambda roof: roof["least_ms"])["name"] == "L1 and shared memory"


def test_blocks_share_tiles_as_they_do_on_the_gpu_of_a_stored_run(program: Program) -> None:
    """Without a GPU each of streamK's tiles has a block of its own, and none waits for another."""

    def loaded(*options: str | Path) -> set[str]:
        result = json.loads(program("explain", "streamK", "--block", "16x16", "--n", "300", *options, "--json").stdout)
        return {access["array"] for access in result["global"] if access["kind"] == "load"}

    assert loaded("--cc", "9.0") == {"A", "B"}
    assert loaded("--run", DOCUMENTS) >= {"A", "B", "block_flags"}


def test_sizes_are_those_of_the_problem(program: Program) -> None:
    """Rectangles too; a size that the problem does not have is an error that names the others."""
    product = json.loads(program("explain", "tiled", "--m", "40", "--n", "50", "--k", "70", "--json").stdout)
    assert "/40x70x50/" in product["case_id"]
    transpose = json.loads(program("explain", "naiveGmem", "--nx", "40", "--ny", "50", "--json").stdout)
    assert "/50x40/" in transpose["case_id"]
    wrong = program("explain", "tiled", "--nx", "40")
    assert wrong.returncode == 2
    assert "--nx: matmul has no such size, only --n and --m and --k" in wrong.stderr
    without = program("explain", "h2dPageable", "--n", "100")
    assert (without.returncode, without.stderr) == (2, "smembench: --n: transfer has no such size; leave it out\n")


def test_sub_matrices_are_explained(program: Program) -> None:
    result = json.loads(program("explain", "naive", "--block", "8x8", "--stride", "1028", "--json").stdout)
    assert "/1024x1024x1024/s1028/" in result["case_id"]
    dense = json.loads(program("explain", "naive", "--block", "8x8", "--json").stdout)
    by_array, by_array_dense = (
        {access["array"]: access["sectors_per_request"] for access in explained["global"]}
        for explained in (result, dense)
    )
    assert by_array["B"] > by_array_dense["B"]
    assert by_array["A"] == by_array_dense["A"]
    assert [(item["array"], item["accesses_per_element"]) for item in result["traffic"]] == [
        *(("C", 1), ("A", 1024), ("B", 1024)),
    ]


def test_the_best_pad(program: Program) -> None:
    ran = program("explain", "transposeSmemPad", "--block", "16x16", "--best-pad")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "No pad up to 31 is free of conflicts; pad 2 has the fewest." in " ".join(ran.stdout.split())
    ran = program("explain", "transposeSmemDyn", "--best-pad")
    assert ran.stdout.splitlines()[-1] == "The smallest pad free of conflicts is 1."
    ran = program("explain", "tiled", "--block", "16x16", "--n", "64", "--best-pad")
    assert ran.stdout.splitlines()[1:] == ["shared0 has no bank conflicts. shared1 has no bank conflicts."]


def test_the_best_swizzle(program: Program) -> None:
    ran = program("explain", "transposeSmem", "--block", "16x16", "--best-swizzle")
    assert (ran.returncode, ran.stderr) == (0, "")
    lines = [line.split() for line in ran.stdout.splitlines()]
    assert ["plain", "shared0[r,", "c]", "8.00", "1.00", "1024"] in lines
    assert ["swizzle", "shared0[r,", "c", "^", "r]", "1.00", "1.00", "1024"] in lines
    assert "The swizzle is free of conflicts; no pad is." in ran.stdout
    ran = program("explain", "tiled", "--block", "16x16", "--n", "64", "--best-swizzle")
    assert ran.stdout.splitlines()[1:] == ["shared0 has no bank conflicts. shared1 has no bank conflicts."]


def test_a_prediction_that_the_counters_contradict_is_a_failure(program: Program, ncu: Path, tmp_path: Path) -> None:
    path = tmp_path / "compared.csv"
    ran = program(
        *("explain", "copyGmem,naiveGmem", "--measure", "--block", "32x32,16x16", "--csv", path),
        PATH=f"{ncu}{os.pathsep}{os.environ['PATH']}",
    )
    assert (ran.returncode, "differ from the hardware's counters" in ran.stderr) == (1, True)
    assert "4 cases" in ran.stdout
    assert "0 of " in ran.stdout
    rows = records(path.read_text())
    assert list(rows[0]) == ["case_id", "figure", "predicted", "counted", "agrees"]
    assert len({row["case_id"] for row in rows}) == 4
    sectors = [row for row in rows if row["figure"] == "sectors per global load"]
    assert [(row["predicted"], row["counted"], row["agrees"]) for row in sectors] == [("4.0", "1.0", "false")] * 4


def test_an_existing_csv_is_kept(program: Program, ncu: Path, tmp_path: Path) -> None:
    path = tmp_path / "taken.csv"
    path.write_text("mine\n")
    ran = program("explain", "copyGmem", "--measure", "--csv", path, PATH=f"{ncu}{os.pathsep}{os.environ['PATH']}")
    assert (ran.returncode, ran.stdout, path.read_text()) == (2, "", "mine\n")
    assert len(ran.stderr.splitlines()) == 1


def test_a_layout_without_a_kernel(program: Program) -> None:
    ran = program("explain", "--layout", "lane % 16 * 64 + lane // 16 * 8", "--itemsize", 2, "--vector", 8)
    assert (ran.returncode, ran.stderr) == (0, "")
    lines = ran.stdout.splitlines()
    assert ["load", "32", "4", "8-way"] in [line.split() for line in lines]
    assert "Bank conflict: load of tile, lanes 0 to 7" in lines
    assert 'element i at "tile[i + i // 64 * 8]"' in " ".join(" ".join(lines[-2:]).split())
    assert max(map(len, lines)) <= 80
    both = json.loads(program("explain", "--layout", "lane * 32", "--store", "lane", "--row", 32, "--json").stdout)
    assert [access["wavefronts"] for access in both["accesses"]] == [32, 1]
    assert (both["cure"]["pad_bytes"], both["cure"]["free"]) == (4, True)


def test_the_roofs_of_a_gpu_that_is_not_here(program: Program) -> None:
    ran = program("explain", "tiled", "--gpu", "l4")
    text = " ".join(ran.stdout.split())
    assert "Roofs of NVIDIA L4, 1024×1024×1024" in text
    assert "arithmetic 2.15 GFLOP 30300 GFLOP/s" in text
    assert "Peaks by NVIDIA L4 Tensor Core GPU data sheet (2023)" in text
    unknown = " ".join(program("explain", "tiled", "--gpu", "b200").stdout.split())
    assert "Which roof limits it is not known: not all peaks are on the data sheet." in unknown


@pytest.mark.parametrize(
    ("kernel", "following"),
    [
        ("transposeSmem", "smembench explain transposeSmemPad --block 32x32"),
        (
            "transposeSmem --dtype float16",
            "smembench explain transposeSmemPad --pad-width 2 --block 32x32 --dtype float16",
        ),
        ("transposeSmem --block 16x16", "smembench explain transposeSwizzled --block 16x16"),
        ("naiveGmem", "smembench ladder transpose --diff transposeSmem"),
        ("transposePaired", ""),
    ],
)
def test_an_explanation_ends_with_the_next_command(program: Program, kernel: str, following: str) -> None:
    *_, last = program("explain", *kernel.split(), "--n", "256").stdout.splitlines()
    assert last.removeprefix("next: ") == following if following else not last.startswith("next: ")
