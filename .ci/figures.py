"""Figures of README and its pages again, by pandas alone, from the stored CSVs: ``python .ci/figures.py``.

Nothing of smembench is imported, so that a mistake of its own is none of this. Ratios are compared to the digits that
the pages show; ``UNCOVERED`` says what is not computed here, and why.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path

import pandas as pd

ROOT = Path(__file__).parents[1]
REFERENCE = ROOT / "results/reference"
PAGES = [ROOT / "README.md", REFERENCE / "README.md", *sorted((ROOT / "smembench").glob("**/README.md"))]
LIMITS, LIMITS_H100 = "20261201T004410Z-limits", "20261123T200119Z-limits"
LIMITS_APART = "20261129T181819Z-limits"
TENSOR, TENSOR_H100 = "20261201T065733Z-tensor", "20261126T162541Z-tensor"
RAGGED, DOCUMENTS = "20261201T125528Z-ragged", "20261129T121757Z-documents"
IDENTICAL = sorted(path.name for path in (REFERENCE / "slowdown").iterdir())[:8]
SQUARES = (1023, 1024, 1025, 1153, 1536, 2048, 4095, 4096, 8192)
FALSE = "last:7: false nights"
DOCUMENTED = ["copyGmem", "naiveGmem", "transposeSmem", "transposeSmemPad", "naive", "tiled"]
LAST = ["serpentine"]
LADDERS = [f"h200-explain-{name}.csv" for name in ("ladder", "transpose-2000", "reduction")]
LIBRARIES = ["cublas", "torch", "cupy"]

RELATIONS = {
    "% of memcpy": (100.0, "memcpy", []),
    "% of copyGmem": (100.0, "copyGmem", ["block"]),
    "vs CPU": (1.0, "cpu", []),
    "vs naive": (1.0, "naive", ["block"]),
}
"""Columns of tables that relate a case to another one: a factor, the other's kernel, and what both have in common."""
UNCOVERED = {
    "aa": "verdicts of the comparison, which are no figures of a CSV",
    "aa-seen": "what the comparison would detect, by its own estimator",
    "claims-count": "counts sentences of a page, which no CSV has",
    "covered": "intervals over rounds, by smembench's own estimator",
    "claims": "of claims only transposes against each other are computed here",
    "nights": "the lines that sum several models; those of one model are computed here",
    "worst-nights": "the name of its model; its share is in the table of nights",
}
"""Marked figures that are not computed here. Nor are half-widths behind ±, and the table of probe, which is JSON."""


@cache
def cases(run: str) -> pd.DataFrame:
    """The ok cases of a stored run; ``ms`` is the median of their samples where these are stored."""
    result = pd.read_csv(REFERENCE / run / "cases.csv", low_memory=False).query("status == 'ok'")
    result["ms"] = result.elapsed_ms
    if (samples := REFERENCE / run / "samples.csv").is_file():
        result["ms"] = result.case_id.map(pd.read_csv(samples).groupby("case_id").elapsed_ms.median())
    sides = result[["m", "k", "n", "block_x", "block_y"]].astype("Int64").astype("string")
    result["size"] = sides.m + "x" + sides.k.add("x").fillna("") + sides.n
    result["block"] = (sides.block_x + "x" + sides.block_y).fillna("")
    for name, (factor, kernel, apart) in RELATIONS.items():
        key = ["problem", "dtype", "size", "cache", *apart]
        others = result[result.kernel == kernel].groupby(key).agg(other=("ms", "min"))
        result[name] = factor * result.join(others, on=key).other / result.ms
    return result


def ends(ratios: Sequence[float] | pd.Series[float]) -> list[float]:
    """The smallest and the largest."""
    return [min(ratios), max(ratios)]


def counted(name: str) -> list[float]:
    """How many rows of a table that are judged agree, and how many there are."""
    judged = pd.concat([pd.read_csv(path).agrees.dropna() for path in sorted(REFERENCE.glob(name))])
    return [int((judged.astype(str).str.lower() == "true").sum()), len(judged)]


def unjudged(name: str) -> int:
    """How many rows of a table are not judged."""
    return int(pd.read_csv(REFERENCE / name).agrees.isna().sum())


def ports(kernels: Sequence[str]) -> list[float]:
    """Times of ports in CUDA C over those of the same cases in Numba."""
    rows = cases(LIMITS)[lambda run: run.kernel.isin(kernels)]
    key = ["kernel", "dtype", "size", "block", "pad", "cache", "inputs", "b_layout"]
    by = {name: group.set_index(key).ms for name, group in rows.fillna({"pad": -1, "block": ""}).groupby("compiler")}
    return ends((by["nvrtc"] / by["numba"]).dropna())


def squares(run: str) -> list[float]:
    """The best kernel in Numba over cuBLAS at each size of square products in float32."""
    rows = cases(run).query("dtype == 'float32' and m == n and n == k and n >= 1000")
    library = rows[rows.kernel == "cublas"].groupby("n").ms.min()
    ours = rows[(rows.compiler == "numba") & ~rows.kernel.isin(LIBRARIES)].groupby("n").ms.min()
    return ends(library / ours)


def products(run: str) -> pd.Series[float]:
    """PyTorch's time over the best wgmma step's, by element type, size and layout of B, with normal inputs."""
    rows = cases(run).query("inputs == 'normal' and compiler != 'nvrtc' and n not in (1025, 4097)")
    key = ["dtype", "n", "b_layout"]
    ours = rows[rows.kernel.str.contains("wgmma")].groupby(key).ms.min()
    return (rows[rows.kernel == "torch"].set_index(key).ms / ours).dropna().sort_values()


def over(run: str, n: int, slow: str, fast: str) -> list[float]:
    """How many times as fast a product in bfloat16 with B by rows is as another."""
    chosen = f"dtype == 'bfloat16' and n == {n} and b_layout == 'rows' and inputs == 'normal' and compiler != 'nvrtc'"
    ms = cases(run).query(chosen).set_index("kernel").ms
    return [ms[slow] / ms[fast]]


def ragged() -> list[float]:
    """PyTorch's time over wgmmaClustered's at ragged sizes."""
    ms = cases(RAGGED).set_index(["kernel", "size", "b_layout"]).ms
    return ends((ms["torch"] / ms["wgmmaClustered"]).dropna())


def copied() -> list[float]:
    """The fastest transpose over memcpy at both sizes that README names."""
    rows = cases(LIMITS).query("problem == 'transpose' and dtype == 'float32' and m == n and n in (4096, 16384)")
    ours = rows[(rows.compiler == "numba") & rows.kernel.str.startswith("transpose")].groupby("n").ms.min()
    return ends(rows[rows.kernel == "memcpy"].set_index("n").ms / ours)


def padding() -> list[float]:
    """What one column of padding gains in blocks of 32×32."""
    chosen = "n == 4096 and dtype == 'float32' and block == '32x32' and compiler == 'numba'"
    ms = cases(LIMITS).query(chosen).set_index("kernel").ms
    return [ms["transposeSmem"] / ms["transposeSmemPad"]]


def covered() -> list[float]:
    """The share, in percent, of intervals of samples that contain the median of identical runs."""
    runs = pd.concat([cases(f"slowdown/{name}") for name in IDENTICAL])
    centre = runs.groupby("case_id").elapsed_ms.transform("median")
    return [100 * float(((runs.elapsed_ms - centre).abs() <= runs.elapsed_ms * runs.precision).mean())]


def together() -> list[float]:
    """The largest difference, in percent, between two GPUs at once and each alone."""
    result = []
    for fleet in (REFERENCE / "two-gpus").glob("*-fleet"):
        runs = [pd.read_csv(path) for path in fleet.glob("*/*/cases.csv")]
        result.append(pd.concat(runs).assign(alone=len(runs) == 1))
    ms = pd.concat(result).groupby(["alone", "case_id"]).elapsed_ms.median()
    return [100 * float((ms[False] / ms[True] - 1).abs().max())]


def limits() -> list[float]:
    """Of each line of the table: the size, the rate of the best kernel, and what it is over."""
    result: list[float] = []
    rows = cases(LIMITS).query("dtype == 'float32' and m == n")
    ours = rows[(rows.compiler == "numba") & ~rows.kernel.isin([*LIBRARIES, "memcpy", "copyGmem"])]
    for problem, sizes, unit in (("matmul", SQUARES, "flops"), ("transpose", (4096, 16384), "bytes")):
        for n in sizes:
            here = rows[(rows.problem == problem) & (rows.n == n)].set_index("kernel")
            best = ours[(ours.problem == problem) & (ours.n == n)].nsmallest(1, "ms").iloc[0]
            others = ["cublas"] if problem == "matmul" else ["memcpy", "torch"]
            scale = 1e9 if unit == "flops" else 1e6
            result += [n, best[unit] / best.ms / scale, *(here.ms[other] / best.ms for other in others)]
    return result


def nights(*models: str, asked: str = FALSE) -> list[float]:
    """The share of nights, in percent, of these models."""
    counts = pd.read_csv(REFERENCE / "nights.csv").groupby(["model", "asked"]).sum()
    return [100 * counts.yes[model, asked] / counts.of[model, asked] for model in models]


def apart() -> list[float]:
    """Percent by which the same machine code differs between two H200s: in the median, in nine of ten, and at most."""
    one, other = (cases(run).set_index(["case_id", "code_hash"]).elapsed_ms for run in (LIMITS, LIMITS_APART))
    percent = 100 * (one / other - 1).abs().dropna()
    return [percent.median(), percent.quantile(0.9), percent.max()]


def thousand() -> list[float]:
    """The CPU's time over naive's at 1000×1000."""
    rows = cases(DOCUMENTS).query("problem == 'matmul' and n == 1000")
    return [rows[rows.kernel == "cpu"].ms.min() / rows[(rows.kernel == "naive") & (rows.block == "32x32")].ms.min()]


FIGURES: dict[str, Callable[[], Sequence[float]]] = {
    "timing": lambda: counted("h200-timing-drawn.csv"),
    "foreign": lambda: counted("h200-time.csv"),
    "explain": lambda: counted("h200-explain.csv"),
    "explain-unjudged": lambda: [unjudged("h200-explain.csv")],
    "ladders-unjudged": lambda: [sum(map(unjudged, LADDERS))],
    "odd-unjudged": lambda: [unjudged("h100-explain-odd.csv")],
    "explain-odd": lambda: counted("h100-explain-odd.csv"),
    "explain-ladders": lambda: [*map(sum, zip(*map(counted, LADDERS), strict=True))],
    "public-figures": lambda: counted("h200-public-kernels.csv"),
    "public-kernels": lambda: [len(pd.read_csv(REFERENCE / "h200-public-kernels.csv").groupby(["language", "kernel"]))],
    "ports": lambda: ports(DOCUMENTED),
    "last": lambda: ports(LAST),
    "padding": padding,
    "copy": copied,
    "h200": lambda: squares(LIMITS),
    "h100": lambda: squares(LIMITS_H100),
    "best": lambda: ends(products(TENSOR)),
    "best-h100": lambda: ends(products(TENSOR_H100)),
    "most": lambda: [products(TENSOR).iloc[1]],
    "most-h100": lambda: [products(TENSOR_H100).iloc[1]],
    "bf16": lambda: over(TENSOR, 4096, "torch", "wgmmaClustered"),
    "small": lambda: over(TENSOR, 1024, "torch", "wgmmaStored"),
    "packed": lambda: over(TENSOR, 4097, "torch", "wgmmaPacked"),
    "ragged": ragged,
    "covered-alone": covered,
    "together": together,
    "false-nights": lambda: nights("N1p"),
    "apart": apart,
    "power": lambda: over(TENSOR, 4096, "cublas", "torch"),
    "limits": limits,
    "thousand": thousand,
}
_MARKED = re.compile(r"<!-- ([\w-]+) -->([^<]*?)<!-- end -->")
_FILLED = re.DOTALL | re.MULTILINE
_SHOWN = re.compile(r"^<!-- smembench show results/reference/(\S+)[^\n]*-->\n(.*?)^<!-- end -->$", _FILLED)
_LADDER = re.compile(r"^<!-- ladder (\S+) (\S+) (\S+) (\S+) -->\n(.*?)^<!-- end -->$", _FILLED)
_CLAIM = re.compile(r"\| (\w+) is faster than (\w+)[^|]*blocks of (\d+x\d+) \| [\w ]+: ([\d.]+)×")


def pages() -> str:
    """The text of all pages."""
    return "\n".join(page.read_text(encoding="utf-8") for page in PAGES)


def wrong(text: str) -> Iterator[str]:
    """Each figure of a text that the CSVs do not have, or that nothing here computes."""
    for mark, shown in sorted(set(_MARKED.findall(" ".join(text.split())))):
        if mark in FIGURES:
            yield from _differs(mark, shown, FIGURES[mark]())
        elif mark not in UNCOVERED:
            yield f"{mark}: {shown} is neither computed here nor said not to be"
    documents = cases(DOCUMENTS).query("n == 4096 and dtype == 'float32' and compiler == 'numba'")
    ms = documents.groupby(["kernel", "block"]).ms.min()
    for fast, slow, block, shown in _CLAIM.findall(text):
        yield from _differs(f"{fast} over {slow} {block}", shown, [ms[slow, block] / ms[fast, block]])
    for model, shown in re.findall(r"^\| ([^:|]+): [^|]* \| ([\d.]+) % of \d+ \|$", text, re.MULTILINE):
        yield from _differs(f"false nights of {model}", shown, nights(model))
    for run, block in _SHOWN.findall(text):
        yield from _table(run, block)
    for problem, run, dtype, size, block in _LADDER.findall(text):
        yield from _ladder(problem, run, dtype, size, block)


def _differs(what: str, shown: str, values: Sequence[float]) -> Iterator[str]:
    """Where a text has other numbers than these, to its digits; half-widths are left out."""
    numbers = re.findall(r"(?<![\w.])\d[\d.]*", re.sub(r"±[\d.]+ %", "", re.sub(r"(?<=\d),(?=\d)", "", shown)))
    if [*map(_as, values, numbers)] != numbers or len(values) != len(numbers):
        yield f"{what}: {shown} on the page, {', '.join(f'{value:.5g}' for value in values)} in the CSV"


def _table(run: str, block: str) -> Iterator[str]:
    """Lines with a kernel and a time that no case of the run has, or whose rates, ratios or gain are not its own."""
    names: list[str] = []
    before: list[float] = []
    for line in block.splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if "elapsed ms" in cells:
            names, before = cells, []
        elif cells[:1] == ["size"]:
            names, pays = [], cells
        elif not names and len(cells) > 2 and cells[1][:1].isdigit():
            yield from _pays(run, dict(zip(pays, cells, strict=True)))
        elif names and len(cells) == len(names) and not cells[0].startswith(":"):
            row = dict(zip(names, cells, strict=True))
            kernel, _, of_block = (row.get("kernel") or row["step"]).partition(" ")
            where = row.get("block") or of_block.partition(" ")[0]
            rows = cases(run)[lambda result: result.kernel == kernel]  # noqa: B023 - called at once
            rows = rows[rows.block == where.split(" ")[0]] if where else rows
            rates = {"GB/s": rows.bytes / rows.ms / 1e6, "GFLOP/s": rows.flops / rows.ms / 1e6}
            rates |= {"TFLOP/s": rates["GFLOP/s"] / 1e3, "elapsed ms": rows.ms}
            rates |= {"gain": min(before, default=0.0) / rows.ms, **{name: rows[name] for name in RELATIONS}}
            numbers = {name: re.search(r"[\d.]+", row.get(name, "")) for name in rates}
            printed = {name: number[0] for name, number in numbers.items() if number}
            alike = pd.DataFrame({name: rates[name].map(partial(_as, shown=at)) == at for name, at in printed.items()})
            ms = rows.ms[alike.all(axis=1)]
            if ms.empty:
                yield f"{run}: no case of {kernel} {where} has {printed}"
            elif kernel not in LIBRARIES:
                before.append(ms.min())


def _pays(run: str, row: dict[str, str]) -> Iterator[str]:
    """A line of where a GPU begins to pay: the CPU's time, and the ratios that it has."""
    _, baseline, *kernels = row
    here = cases(run)[lambda result: result["size"].isin([f"1x{row['size']}", row["size"].replace("×", "x")])]
    ms = here.groupby("kernel").ms.min()
    cpu = ms[baseline.removesuffix(" ms")]
    times = [cpu, *(cpu / ms[kernel] for kernel in kernels if row[kernel])]
    yield from _differs(f"{run} {row['size']}", " ".join(row[name] for name in (baseline, *kernels)), times)


def _ladder(problem: str, run: str, dtype: str, size: str, block: str) -> Iterator[str]:
    """Gains of steps: the least time before over the step's."""
    rows = cases(run)[lambda result: (result.problem == problem) & (result.dtype == dtype) & (result["size"] == size)]
    rows = rows[(rows.get("b_layout", "rows") == "rows") & (rows.compiler == "numba")]
    if len(rows.get("inputs", pd.Series()).unique()) > 1:
        rows = rows[rows.inputs == "normal"]
    ms, before = rows.groupby("kernel").ms.min(), list[float]()
    for kernel, gain in re.findall(r"^\| \[(\w+)\].*\| \(?([\d.]*)[^|]*\|$", block, re.MULTILINE):
        if gain:
            yield from _differs(f"{run}: gain of {kernel}", gain, [min(before) / ms[kernel]])
        before.append(ms[kernel])


def _as(value: float, shown: str) -> str:
    """A value with as many digits; of a whole number zeros at the end may stand for digits that are not certain."""
    exact = f"{value:.{len(shown.partition('.')[2])}f}"
    zeros = len(shown) - len(shown.rstrip("0"))
    return exact if exact == shown or "." in shown else f"{round(value, -zeros):.0f}"


if __name__ == "__main__":
    result = list(wrong(pages()))
    print(*result, sep="\n", end="\n" * bool(result))
    print(f"{len(FIGURES)} marked figures, all times in tables of runs; {len(UNCOVERED)} marks are not computed here")
    sys.exit(bool(result))
