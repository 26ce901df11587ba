"""README and the pages it leads to: tables are what the commands above them print, figures those of stored runs."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import cache
from math import nan
from pathlib import Path
from statistics import median, quantiles

import documents_tables
import kernels_page
import pytest
from nights.readme import false_nights, worst
from pages import FILLED, KERNELS, PAGES, README, table

from conftest import ROOT, Program, records
from smembench.explain.counters import ALLOWED
from smembench.kernels.matmul.inputs import NORMAL
from smembench.model.case import BY_ROWS
from smembench.model.clauses import time
from smembench.store.load import load
from smembench.store.schema import Row
from smembench.studies.compare.itself import compare_with_itself
from smembench.studies.compilers import measured
from smembench.studies.difference import Ratio, ratio
from smembench.studies.reproduce.judge import CLAIMS
from smembench.views.columns import ratio_text

TEXTS = {path: path.read_text(encoding="utf-8") for path in PAGES}
TEXT = "\n".join(TEXTS.values())
UNFOLDED = " ".join(TEXT.split())


def says(mark: str, figure: str) -> None:
    """Make sure that a page has a figure, and that all pages that have it agree."""
    assert set(re.findall(rf"<!-- {mark} -->(.*?)<!-- end -->", UNFOLDED)) == {figure}


NONE = Ratio(0.0)


def shown(result: Ratio | None) -> str:
    """A ratio as tables show it."""
    return ratio_text(result or NONE)


def span(result: Iterable[Ratio | None]) -> str:
    """The smallest and the largest of some ratios, each with its interval."""
    ratios = sorted(item or NONE for item in result)
    return f"{shown(ratios[0])} to {shown(ratios[-1])}"


@pytest.mark.parametrize(("of", "printed"), FILLED.findall(TEXT), ids=[of for of, _ in FILLED.findall(TEXT)])
def test_a_table_is_what_it_says_it_is_of(of: str, printed: str) -> None:
    assert printed == table(of), "PYTHONPATH=.:.ci python -m pages fills it"


def test_no_line_begins_with_a_mark() -> None:
    """Markdown would take the line as HTML: it would end the paragraph, and show its links and code as they are."""
    assert re.findall(r"^\s*<!-- \S+ -->.+", TEXT, flags=re.MULTILINE) == []


def test_readme_has_tables() -> None:
    assert {"claims", "nights"} < {of for of, _ in FILLED.findall(TEXT)}


def test_what_the_compiler_merged_is_what_explain_prints(program: Program) -> None:
    command, output = re.findall(r"```sh\nsmembench (explain tiled .*)\n```\n\n```\n(.*)\n```", TEXT)[0]
    printed = program(*shlex.split(command)).stdout
    if "registers per thread" not in printed:
        pytest.skip("needs NVIDIA's compiler libraries")
    assert output in " ".join(printed.split())


def test_the_timing_sentence_counts_the_table() -> None:
    agrees = [row["agrees"] for row in records((ROOT / "results/reference/h200-timing-drawn.csv").read_text())]
    says("timing", f"{agrees.count('true')} of {len(agrees)}")


def test_the_sentence_on_foreign_kernels_counts_the_table() -> None:
    agrees = [row["agrees"] for row in records((ROOT / "results/reference/h200-time.csv").read_text())]
    says("foreign", f"{agrees.count('true')} of {len(agrees)}")


def test_the_explain_sentence_counts_the_table() -> None:
    rows = records((ROOT / "results/reference/h200-explain.csv").read_text())
    agrees = [row["agrees"] for row in rows if row["agrees"]]
    says("explain", f"{agrees.count('true')} of {len(agrees)}")
    says("explain-unjudged", str(len(rows) - len(agrees)))
    assert f"over {len({row['case_id'] for row in rows})} combinations of kernel, block, dtype and pad" in UNFOLDED


def test_public_kernels_are_those_of_the_table() -> None:
    rows = records((ROOT / "results/reference/h200-public-kernels.csv").read_text())
    agrees = [row["agrees"] for row in rows if row["agrees"]]
    says("public-figures", f"{agrees.count('true'):,} of {len(agrees):,}")
    says("public-kernels", str(len({(row["language"], row["kernel"]) for row in rows})))


PRINTED = re.findall(
    r"^<!-- prints (smembench .*?) -->\n```\n(.*?)^```\n<!-- end -->", TEXT, flags=re.DOTALL | re.MULTILINE
)


@pytest.mark.parametrize(("command", "shown"), PRINTED, ids=[command for command, _ in PRINTED])
def test_a_command_prints_what_a_page_quotes(program: Program, command: str, shown: str) -> None:
    """Some of its lines, in their order; those on stderr come last."""
    ran = program(*shlex.split(command)[1:])
    printed = iter(line.rstrip() for line in (ran.stdout + ran.stderr).splitlines())
    for line in filter(None, map(str.rstrip, shown.splitlines())):
        assert line in printed


@pytest.mark.parametrize("gpu", ["h200", "h100"])
def test_the_sentence_on_the_ladders_counts_their_tables(gpu: str) -> None:
    """All that are judged agree, as many on both GPUs."""
    names = ("ladder", "transpose-2000", "reduction")
    tables = [ROOT / f"results/reference/{gpu}-explain-{name}.csv" for name in names]
    rows = [row for table in tables for row in records(table.read_text()) if row["agrees"]]
    for row in rows:
        predicted = float(row["predicted"] or "nan")
        assert (row["agrees"] == "true") == (abs(predicted - float(row["counted"])) <= ALLOWED), row
    agree = sum(row["agrees"] == "true" for row in rows)
    says("explain-ladders", f"{agree} of {len(rows)}")


def test_the_sentence_on_odd_sizes_counts_its_table() -> None:
    rows = records((ROOT / "results/reference/h100-explain-odd.csv").read_text())
    agrees = [row["agrees"] for row in rows if row["agrees"]]
    says("explain-odd", f"{agrees.count('true')} of {len(agrees)}")
    assert f"of {len({row['case_id'].split('/')[1] for row in rows})} kernels on the H100" in UNFOLDED


TENSOR = ROOT / "results/reference/20261201T065733Z-tensor"
TENSOR_H100 = ROOT / "results/reference/20261126T162541Z-tensor"
CHARTS = ROOT / "results/reference/charts"
LIMITS = ROOT / "results/reference/20261201T004410Z-limits"
LIMITS_APART = ROOT / "results/reference/20261129T181819Z-limits"
IDENTICAL = sorted((ROOT / "results/reference/slowdown").iterdir())[:8]
LIMITS_H100 = ROOT / "results/reference/20261123T200119Z-limits"
DOCUMENTED = ("copyGmem", "naiveGmem", "transposeSmem", "transposeSmemPad", "naive", "tiled")
LAST = ("serpentine",)


@pytest.mark.parametrize(("mark", "kernels"), [("ports", DOCUMENTED), ("last", LAST)])
def test_the_ports_are_those_of_the_run(mark: str, kernels: tuple[str, ...]) -> None:
    pairs = [pair for pair in measured(load(LIMITS), lambda case: None) if pair.case.kernel in kernels]
    assert {pair.case.kernel for pair in pairs} == set(kernels)
    says(mark, span(pair.ratio for pair in pairs))


def test_what_padding_buys_is_that_of_the_run() -> None:
    run = load(LIMITS)
    (unpadded, padded) = (
        row
        for row in run.rows
        if row.kernel in ("transposeSmem", "transposeSmemPad")
        and (row.n, row.dtype, str(row.block), row.compiler) == (4096, "float32", "32x32", "numba")
    )
    says("padding", shown(ratio(run, unpadded, padded)))


def test_transposes_next_to_the_copy_are_those_of_the_run() -> None:
    """At both sizes that README names, by the copy's digits."""
    result, run = [], load(LIMITS)
    for n in (4096, 16384):
        rows = [row for row in run.rows if (row.problem, row.n, row.m) == ("transpose", n, n)]
        ours = [row for row in rows if row.dtype == "float32" and row.kernel.startswith("transpose")]
        (copy,) = (row for row in rows if row.kernel == "memcpy" and row.dtype == "float32")
        result.append(ratio(run, copy, min((row for row in ours if row.compiler == "numba"), key=time)))
    says("copy", span(result))


def test_the_limits_are_those_of_the_run() -> None:
    run = load(LIMITS)
    block = TEXT.partition("<!-- limits -->")[2].partition("<!-- end -->")[0]
    lines = re.findall(r"(\d+) \| (\w+), ([\d.]+) (?:TFLOP|GB)/s \| (.*) \|", block)
    assert len(lines) == 11
    for n, kernel, rate, over in lines:
        here = [row for row in run.rows if row.n == row.m == int(n) and row.dtype == "float32"]
        best = min(
            (row for row in here if row.kernel == kernel and row.compiler == "numba"),
            key=lambda row: row.elapsed_ms or 0.0,
        )
        ours = [row for row in here if row.compiler == "numba" and row.kernel not in ("memcpy", "copyGmem")]
        of_problem = [row for row in ours if row.problem == best.problem]
        assert best.elapsed_ms == min(row.elapsed_ms or 0.0 for row in of_problem)
        assert rate == (f"{best.gflop_s / 1e3:.1f}" if best.gflop_s else f"{best.effective_gb_s:.0f}")
        for times_as_fast, name in re.findall(r"([\d.]+ ±[\d.]+ %) × (\w+)", over):
            (other,) = [
                row
                for row in here
                if row.kernel == {"PyTorch": "torch", "cuBLAS": "cublas"}.get(name, name)
                and row.problem == best.problem
            ]
            assert shown(ratio(run, other, best)) == times_as_fast


def test_what_two_gpus_of_a_model_differ_by_is_that_of_the_runs() -> None:
    """Of cases with the same machine code."""
    one, other = ({(row.case_id, row.code_hash): time(row) for row in load(run).rows} for run in (LIMITS, LIMITS_APART))
    percent = sorted(100 * abs(one[case] / other[case] - 1) for case in one.keys() & other.keys())
    most = f"by up to {quantiles(percent, n=10, method='inclusive')[-1]:.1f} % in nine of ten"
    says("apart", f"{median(percent):.1f} % in the median, {most} and by {percent[-1]:.1f} % at most")


@pytest.mark.parametrize(("mark", "run"), [("h200", LIMITS), ("h100", LIMITS_H100)])
def test_the_squares_past_cublas_are_those_of_the_run(mark: str, run: Path) -> None:
    """The best kernel in Numba over cuBLAS, at every size."""
    stored = load(run)
    squares = [row for row in stored.rows if row.dtype == "float32" and row.m == row.n == row.k and row.n >= 1000]
    best: dict[int, Row] = {}
    libraries: dict[int, Row] = {}
    for row in squares:
        of = libraries if row.kernel == "cublas" else best
        if row.kernel == "cublas" or row.compiler == "numba":
            of[row.n] = min(row, of.get(row.n, row), key=time)
    ratios = [ratio(stored, libraries[n], row) for n, row in best.items()]
    assert f"Of all {len(ratios)} sizes with m = n = k from {min(best)} to {max(best)}" in UNFOLDED
    says(mark, span(ratios))


@pytest.mark.parametrize(
    ("mark", "n", "slow", "fast"),
    [
        ("packed", 4097, "torch", "wgmmaPacked"),
        ("small", 1024, "torch", "wgmmaStored"),
        ("bf16", 4096, "torch", "wgmmaClustered"),
    ],
)
def test_what_tensor_cores_gain_and_lack_is_that_of_the_run(mark: str, n: int, slow: str, fast: str) -> None:
    result = rows_of(TENSOR, "bfloat16", n, BY_ROWS)
    says(mark, shown(ratio(load(TENSOR), result[slow], result[fast])))


@pytest.mark.parametrize(("run", "mark"), [(TENSOR, ""), (TENSOR_H100, "-h100")])
def test_the_best_steps_are_those_of_the_run(run: Path, mark: str) -> None:
    """Of products with normal inputs whose rows the TMA takes."""
    shapes = {(row.dtype, row.n, row.b_layout) for row in load(run).rows if row.n not in (1025, 4097)}
    stored = load(run)
    every = ((n, rows_of(run, dtype, n, b_layout)) for dtype, n, b_layout in shapes)
    fastest = ((n, rows["torch"], min((rows[name] for name in rows if "wgmma" in name), key=time)) for n, rows in every)
    ratios = sorted((result, n) for n, torch, row in fastest if (result := ratio(stored, torch, row)))
    (_, at), (second, _), *_, (most, _) = ratios
    assert f"for {len(ratios)} of {len(shapes)} combinations of size, type and layout of B" in UNFOLDED
    says(f"best{mark}", span(result for result, _ in ratios))
    assert f"{shown(most)}<!-- end --> of PyTorch's speed, lowest at {at}³" in UNFOLDED
    says(f"most{mark}", shown(second))


def rows_of(run: Path, dtype: str, n: int, b_layout: str) -> dict[str, Row]:
    """By kernel, of products with normal inputs."""
    rows = [row for row in load(run).rows if (row.dtype, row.n, row.b_layout) == (dtype, n, b_layout)]
    return {row.kernel: row for row in rows if row.inputs == NORMAL and row.compiler != "nvrtc"}


def test_the_ratios_at_ragged_sizes_are_those_of_the_run() -> None:
    run = load(ROOT / "results/reference/20261201T125528Z-ragged")
    rows: dict[tuple[object, ...], dict[str, Row]] = {}
    for row in run.rows:
        rows.setdefault((row.m, row.n, row.k, row.b_layout), {})[row.kernel] = row
    ratios = [ratio(run, item["torch"], item["wgmmaClustered"]) for item in rows.values()]
    assert len(ratios) == 12
    says("ragged", span(ratios))


def test_how_far_the_same_library_differs_is_that_of_the_run() -> None:
    result = rows_of(TENSOR, "bfloat16", 4096, BY_ROWS)
    says("power", shown(ratio(load(TENSOR), result["cublas"], result["torch"])))


def test_the_runs_against_themselves_have_no_false_verdict() -> None:
    runs = [load(path) for path in IDENTICAL]
    result = compare_with_itself(runs)
    says("aa", f"{result.false} of {result.judged}")
    says("aa-seen", ", ".join(f"{name} {100 * share:.3g} %" for name, _, share in result.classes))
    assert (result.false, result.pairs) == (0, 28)


@pytest.mark.parametrize(("mark", "column"), [("covered", "uncertainty"), ("covered-alone", "precision")])
def test_as_many_intervals_contain_the_median_of_identical_runs_as_readme_says(mark: str, column: str) -> None:
    times, widths = defaultdict[str, list[float]](list), defaultdict[str, list[float]](list)
    for row in (row for path in IDENTICAL for row in load(path).rows):
        times[row.case_id].append(row.elapsed_ms or nan)
        widths[row.case_id].append(getattr(row, column))
    covered = [
        abs(time - median(times[case])) <= time * width
        for case in times
        for time, width in zip(times[case], widths[case], strict=True)
    ]
    says(mark, f"{100 * sum(covered) / len(covered):.0f} %")


def test_two_gpus_at_once_are_as_fast_as_each_alone() -> None:
    together, alone = defaultdict[str, list[float]](list), defaultdict[str, list[float]](list)
    for fleet in sorted((ROOT / "results/reference/two-gpus").glob("*-fleet")):
        runs = [load(path.parent) for path in fleet.glob("*/*/run.json")]
        for row in (row for run in runs for row in run.rows):
            (together if len(runs) == 2 else alone)[row.case_id].append(row.elapsed_ms or nan)
    assert {len(times) for times in (*together.values(), *alone.values())} == {3}
    worst = max(abs(median(times) / median(alone[case]) - 1) for case, times in together.items())
    assert together.keys() == alone.keys()
    assert worst < 0.005
    says("together", f"{100 * worst:.2f}")


def test_false_nights_are_those_of_the_study() -> None:
    says("false-nights", false_nights())
    says("worst-nights", worst())


def test_all_claims_are_those_of_the_stored_run() -> None:
    everything = documents_tables.ALL.read_text(encoding="utf-8")
    assert everything == documents_tables.everything(), "PYTHONPATH=.:.ci python -m pages fills it"
    says("claims-count", str(sum(map(int, re.findall(r"^(\d+) claims", everything, flags=re.MULTILINE)))))
    (thousand,) = re.findall(r"the same at another size.*? yes<br>(\d+)×", everything)
    says("thousand", thousand)


def test_no_step_is_left_out_of_the_kernels_in_reading_order() -> None:
    assert kernels_page.unnamed(TEXTS[KERNELS]) == set()


LINKS = [(page.parent, link) for page, text in TEXTS.items() for link in re.findall(r"\]\(([^)]+)\)", text)]


@pytest.mark.parametrize(("folder", "link"), LINKS, ids=[link for _, link in LINKS])
def test_links_lead_somewhere(folder: Path, link: str) -> None:
    assert (folder / link.partition("#")[0]).exists()


@pytest.mark.parametrize("page", [page for page in PAGES if page != README], ids=str)
def test_readme_leads_to_every_page(page: Path) -> None:
    assert f"]({page.relative_to(ROOT)})" in TEXTS[README]


def test_a_package_index_gets_no_link_to_a_file_and_the_name_to_install() -> None:
    metadata = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["metadata"]
    text = TEXTS[README]
    for substitution in metadata["hooks"]["fancy-pypi-readme"]["substitutions"]:
        text = re.sub(substitution["pattern"], substitution["replacement"], text)
    assert "](" in TEXTS[README]
    assert "](" not in text
    assert "by `smembench doctor --timing --config .ci/timing.toml`" in text
    assert "pip install smembench &&" in text


@pytest.fixture(scope="module")
def help_of(program: Program) -> Callable[[str], str]:
    """The help of a command, asked for once."""

    @cache
    def of(command: str) -> str:
        helped = program(*command.split(), "--help")
        assert helped.returncode == 0
        return helped.stdout

    return of


@pytest.mark.parametrize("line", re.findall(r"^smembench .*$", TEXT, flags=re.MULTILINE))
def test_examples_are_commands_that_exist(help_of: Callable[[str], str], line: str) -> None:
    words = shlex.split(line, comments=True)
    command = " ".join(words[1:3]) if words[1] in ("fleet", "baseline") else words[1]
    assert [word for word in words if word.startswith("--") and word not in help_of(command)] == []


def test_ci_runs_the_test_command() -> None:
    (command,) = (line for line in README.read_text(encoding="utf-8").splitlines() if line.endswith("--dist worksteal"))
    *install, tests = command.split(" && ")
    run, check = ((ROOT / ".ci" / name).read_text(encoding="utf-8").splitlines() for name in ("run", "check"))
    assert " && ".join(install) in run
    assert f'"$python" -m {tests.removeprefix(".venv/bin/")} "$@"' in check


def test_the_number_of_claims_is_that_of_reproduce() -> None:
    assert f"check {sum(map(len, CLAIMS.values()))} published claims" in README.read_text()


def test_charts_are_those_of_the_runs_that_they_are_drawn_from(program: Program, tmp_path: Path) -> None:
    """By their words and figures; how they are drawn is the library's."""
    notes = (path.read_text(encoding="utf-8") for path in (CHARTS.parent / "notes").glob("*.md"))
    commands = set(re.findall(r"Drawn by `smembench (report [^`]+)`", " ".join(" ".join([TEXT, *notes]).split())))
    for command in commands:
        assert program(*shlex.split(command.replace("--svg charts", f"--svg {tmp_path}")), cwd=ROOT).returncode == 0
    stored = list(CHARTS.glob("*.svg"))
    assert stored
    for chart in stored:
        assert words(tmp_path / chart.name) == words(chart), f"{chart.name} is to be drawn again"


def words(chart: Path) -> list[str]:
    """The text of a chart."""
    return re.findall(r"<text[^>]*>([^<]+)", chart.read_text(encoding="utf-8"))
