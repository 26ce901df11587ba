"""The report's HTML: whole, escaped, self-contained, and fit for who cannot see it; what each of its charts shows."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import ROOT, Rows
from smembench.model.case import Block
from smembench.model.sustained import Moment
from smembench.report.charts import THEMES, Chart, file_name, rendered
from smembench.report.contents import contents
from smembench.report.figures.roofline import spread
from smembench.report.page import page
from smembench.report.selection import by_time, whole
from smembench.store.load import load
from smembench.store.run import Run
from smembench.store.run_json import Description
from smembench.store.schema import Row
from smembench.studies.history.read import read_runs
from smembench.studies.probe.sheet import IN_RUN
from smembench.views.limits import limits as limits_of
from smembench.views.sections import sections

H200 = {
    "name": "cuda:0",
    "kind": "cuda",
    "model": "NVIDIA H200",
    "uuid": "GPU-1",
    "compute_capability": "9.0",
    "sm_count": 132,
    "sm_clock_max_mhz": 1980,
    "l2_bytes": 62914560,
    "peak_gb_s": 4814.304,
    "driver": "580.159.04",
}
RUN: dict[str, Any] = {
    "run_id": "20260101T020000Z-nightly",
    "started_at_utc": "2026-01-01T02:00:00+00:00",
    "config": {"name": "nightly", "sweep": [{"problem": "transpose", "n": [512, 4096], "pad": None}]},
    "versions": {"numba": "0.68.0"},
    "devices": [H200, {"name": "cpu", "kind": "cpu"}],
}
LIMITS = ROOT / "results/reference/20261201T004410Z-limits"
SLOWDOWN = ROOT / "results/reference/slowdown"
TRANSPOSES = {"copyGmem": 1.0, "naiveGmem": 4.0, "transposeSmem": 2.0}
HOSTILE = "</td></noscript></svg><script>alert(1)</script>&lt;$x^2$\x1b[31m\x00"
VOID = {"meta", "link", "br", "img", "input", "hr"}


class Page(HTMLParser):
    """What a page holds; fails where a tag is not closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def of(self, tag: str, attribute: str) -> list[str | None]:
        return [result.get(attribute) for name, result in self.attributes if name == tag]


@pytest.fixture(scope="session")
def stored(rows: Rows) -> Run:
    """A run with two sizes, both problems, samples of three rounds, and a failed case."""
    result: list[Row] = []
    samples = {}
    for n in (512, 4096):
        for block in (Block(32, 32), Block(16, 16)):
            kernels = {name: [ms * n / 4096 * wide for wide in (0.99, 1.0, 1.3)] for name, ms in TRANSPOSES.items()}
            kernels["transposeSmemPad"] = []
            result += rows(kernels, n=n, block=block)
        result += rows({"memcpy": [n / 8192]}, n=n, block=None)
        result += rows({"naive": [n / 2048], "tiled": [n / 4096]}, problem="matmul", n=n)
        result += rows({"cpu": [n * 1.0]}, problem="matmul", device="cpu", n=n, block=None)
    for row in result:
        if row.elapsed_ms is not None:
            samples[row.case_id] = {turn: [row.elapsed_ms * (1 + turn / 100), row.elapsed_ms] for turn in range(3)}
    return Run(result, Description.model_validate(RUN), samples, Path("nightly"))


@pytest.fixture(scope="session")
def hostile(stored: Run) -> Run:
    """One size of it with markup in every string that a file can hold."""
    of_size = [row for row in stored.rows if row.n == 4096]
    failed = [replace(row, kernel=HOSTILE, reason=HOSTILE, status="failed") for row in of_size if not row.ok]
    others = [replace(row, kernel=HOSTILE if row.kernel == "copyGmem" else row.kernel) for row in of_size if row.ok]
    run = {**RUN, "devices": [{**H200, "model": HOSTILE}], "host": {"name": HOSTILE}, "versions": {HOSTILE: HOSTILE}}
    return replace(
        stored,
        rows=[*failed, *others],
        description=Description.model_validate({**run, "run_id": HOSTILE, HOSTILE: HOSTILE}),
    )


def html(runs: Sequence[Run]) -> str:
    return page(contents(runs))


@pytest.fixture(scope="session")
def text(stored: Run) -> str:
    return html([stored])


@pytest.fixture(scope="session")
def limits() -> Run:
    """A stored run of 291 cases."""
    return load(LIMITS)


@pytest.fixture(scope="session")
def long(limits: Run) -> str:
    return html([limits])


def charts(runs: Sequence[Run]) -> dict[str, Chart]:
    result = contents(runs).charts
    assert len({chart.name for chart in result}) == len(result)
    return {chart.name: chart for chart in result}


def of_key(part: object, key: str) -> Iterator[Any]:
    """Every value of a key in JSON."""
    if isinstance(part, dict):
        yield from [part[key]] if key in part else []
        part = list(part.values())
    for one in part if isinstance(part, list) else []:
        yield from of_key(one, key)


def values(chart: Chart) -> set[str]:
    """What the marks of a chart say."""
    return {label for label in of_key(json.loads(chart.json), "says") if isinstance(label, str)}


def kinds(runs: Sequence[Run]) -> set[str]:
    return {name.partition("-")[0] for name in charts(runs)}


def test_every_table_has_a_caption_and_every_heading_a_scope(text: str) -> None:
    result = Page(text)
    assert result.tags["table"] == result.tags["caption"] > 10
    assert set(result.of("th", "scope")) == {"col", "row"}
    assert result.tags["h1"] == result.tags["main"] == result.tags["nav"] == 1


@pytest.mark.parametrize("name", ["text", "long"])
def test_every_chart_has_a_table_twin(name: str, request: pytest.FixtureRequest, stored: Run, limits: Run) -> None:
    page_text: str = request.getfixturevalue(name)
    every = contents([stored if name == "text" else limits]).charts
    assert Page(page_text).of("figure", "id") == [chart.name for chart in every]
    captions = re.findall(r"<caption>(.*?)</caption>", page_text)
    for chart in every:
        assert chart.data.cells, chart.name
        assert chart.data.heading.replace("&", "&amp;").replace("'", "&#39;") in captions, chart.name


def test_it_asks_the_network_for_nothing(text: str) -> None:
    result = Page(text)
    assert not re.search(r"url\(|@import", text.partition("</style>")[0])
    links = [
        value for _, attributes in result.attributes for name, value in attributes.items() if name in ("src", "href")
    ]
    assert all(link and link.startswith("#") for link in links)
    ids = [str(attributes["id"]) for _, attributes in result.attributes if "id" in attributes]
    assert len(ids) == len(set(ids))
    named = ("aria-labelledby", "aria-describedby")
    labels = [value for _, attributes in result.attributes for name, value in attributes.items() if name in named]
    assert {str(link)[1:] for link in links} | set(map(str, labels)) <= set(ids)


def test_the_policy_allows_the_one_script(text: str) -> None:
    import base64
    import hashlib

    (script,) = re.findall(r"<script>(.*?)</script>", text, flags=re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    (policy,) = [str(attributes["content"]) for _, attributes in Page(text).attributes if "http-equiv" in attributes]
    assert policy == f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"


def test_a_page_of_three_hundred_cases_can_be_sent_by_mail(long: str) -> None:
    assert len(long.encode()) < 5e6


def test_what_is_folded_is_text_until_it_is_opened(long: str) -> None:
    """With a script the parser takes a noscript element for text: thousands of cases cost nothing to open."""
    folded = re.findall(r"<details.*?<noscript>(.*?)</noscript>", long, flags=re.DOTALL)
    whole, opened = Page(long), Page(re.sub(r"<noscript>.*?</noscript>", "", long, flags=re.DOTALL))
    parts = [Page(part) for part in folded]
    assert opened.tags["summary"] == len(parts) > 50
    assert sum(part.tags["tr"] for part in parts) > 2 * opened.tags["tr"]
    assert opened.tags["tr"] + sum(part.tags["tr"] for part in parts) == whole.tags["tr"]


def luminance(colour: str) -> float:
    """Relative luminance (WCAG 2.2)."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_words_and_lines_stand_out_in_light_and_dark(text: str) -> None:
    assert set(THEMES["light"]) == set(THEMES["dark"]) >= set(re.findall(r"var\(--([a-z]+-?\d?)\)", text))
    for theme in THEMES.values():
        for name in set(theme) - {"paper", "raised"}:
            one, other = sorted(luminance(theme[key]) for key in (name, "paper"))
            assert (other + 0.05) / (one + 0.05) >= (1.2 if name == "line" else 4.5), name


def test_strings_from_files_are_escaped_everywhere(hostile: Run) -> None:
    text = html([hostile])
    result = Page(text)
    assert result.tags["script"] == len(result.of("figure", "id")) + 1
    assert "<script>alert(1)" not in text
    assert text.count("&lt;script&gt;alert(1)") > 10
    shown = text.partition("<script>")[0]
    assert "\x1b" not in shown
    assert "\x00" not in shown
    assert "$x^2$" in "".join(result.text)
    for spec in re.findall(r'<script type="application/json">(.*?)</script>', text, flags=re.DOTALL):
        assert "\x1b" not in json.dumps(json.loads(spec), ensure_ascii=False)


def test_the_first_screen_says_what_was_found(limits: Run) -> None:
    top = contents([limits]).headline
    assert top.title == "NVIDIA H200: limits"
    assert top.facts.startswith("2026-12-01 · 322 cases of matrix transpose")
    assert len(top.sentences) == 3
    assert (
        "1.002 ±0.8 % to 1.36 ±1.6 % of the speed of cublas at 34 sizes; at 22 of them it is streamK"
        in top.sentences[0]
    )
    assert top.chart is not None
    assert "streamK 16x16, 1536×1536×1536: 1.256 ±0.2 % times as fast as cublas" in values(top.chart)


def test_what_moved_comes_before_what_is(nights: list[Run], stored: Run) -> None:
    assert contents(nights[:2]).chapters[0].heading == "What changed"
    (chapter, _) = contents([stored]).chapters
    assert [topic.heading for topic in chapter.topics] == [
        *("Over sizes", "Rooflines", "The documents' figures", "Every case", "Environment")
    ]


def test_columns_are_explained(long: str) -> None:
    heads = re.findall(r'class="number ?w?i?d?e?"><button type="button"(.*?)>(.*?)</button>', long)
    unexplained = {heading for described, heading in heads if "aria-describedby" not in described}
    assert len(heads) > 100
    assert {word for word in unexplained if not re.search(r"\d+×\d+|Tesla|machine|here| ms$|^over|H200", word)} == set()


def of_users(rows: Rows, name: str, size: int, *, device: str = "cuda:0") -> list[Row]:
    """Two kernels of a user's, unchecked, at a size of this name and one of TILE."""
    result = []
    n, others = (size, "/TILE=8") if name == "n" else (1, f"/{name}={size}/TILE=8")
    for kernel, ms in {"scale.cu:scale": 1.0, "twice.cu:twice": 2.0}.items():
        (row,) = rows({"copyGmem": [ms, ms, ms]}, device="cuda:0")
        case_id = f"time/{kernel}/{device}/cuda/float32/1x{n}{others}/b128x1/warm"
        own = replace(row, problem="time", kernel=kernel, device=device, compiler="cuda", case_id=case_id)
        result.append(replace(own, m=1, n=n, block_x=128, block_y=1, verified=False))
    return result


@pytest.mark.parametrize("name", ["n", "count"])
def test_kernels_of_a_user_are_drawn_over_the_size_that_they_were_swept_over(rows: Rows, name: str) -> None:
    swept = [row for size in (1024, 2048, 4096) for row in of_users(rows, name, size)]
    report = contents([Run(swept)])
    (chart,) = [one for one in report.charts if one.name.startswith("sizes-")]
    assert {x["title"] for x in of_key(json.loads(chart.json), "x")} == {name}
    assert [column.title for column in chart.data.columns][1] == f"{name} 1024"
    (every,) = next(topic for topic in report.topics if topic.heading == "Every case").sections
    assert [line[:2] for line in every.cells][1] == ["twice.cu:twice 128x1", f"{name} 1024, TILE 8"]
    assert all(any(line[place] for line in every.cells) for place in range(len(every.columns)))
    assert report.headline.sentences[-1].startswith("No output was checked;")
    assert "1x1024" not in Page(page(report)).text


def test_a_topic_whose_chart_is_the_first_screens_is_left_out(rows: Rows) -> None:
    swept = [row for size in (1024, 2048) for row in of_users(rows, "n", size)]
    report = contents([Run(swept)])
    assert report.headline.chart is not None
    assert report.headline.chart.name.startswith("sizes-")
    assert "Over sizes" not in [topic.heading for topic in report.topics]


def test_devices_stay_apart_in_charts_and_tables_on_a_narrow_screen_too(rows: Rows) -> None:
    devices, sizes = ("cuda:0", "cuda:1"), (1024, 2048)
    swept = [row for device in devices for size in sizes for row in of_users(rows, "n", size, device=device)]
    report = contents([Run(swept)])
    over = [chart for chart in report.charts if chart.name.startswith("sizes-")]
    assert sorted(chart.title.rpartition(", ")[2] for chart in over) == [*devices]
    (every,) = next(topic for topic in report.topics if topic.heading == "Every case").sections
    (on,) = [place for place, column in enumerate(every.columns) if column.title == "on"]
    assert not every.columns[on].wide
    assert {line[on] for line in every.cells} == {*devices}
    for chart in report.charts:
        if chart.name.startswith("rate-"):
            assert len({label.rpartition(": ")[0] for label in values(chart)}) == 4


def test_a_bare_csv_is_enough(stored: Run) -> None:
    bare = Run(stored.rows, path=Path("cases.csv"))
    assert kinds([bare]) == {"documents", "sizes", "rate"}
    assert "No roofline of cuda:0: the run does not record its peaks." in Page(html([bare])).text


def test_a_run_in_which_nothing_succeeded_is_a_report_too(stored: Run) -> None:
    failed = [row for row in stored.rows if not row.ok]
    result = Page(html([replace(stored, rows=failed)]))
    assert result.tags["figure"] == 0
    assert any("failed: LaunchError: out of luck" in text for text in result.text)


def test_the_rooflines_hold_every_kernel_under_the_devices_roof(stored: Run) -> None:
    roof, bandwidth = (charts([stored])[name] for name in ("roofline-cuda-0", "bandwidth-cuda-0"))
    on_gpu = [row for row in stored.rows if row.ok and row.device == "cuda:0"]
    assert len(roof.data.cells) + len(bandwidth.data.cells) == len(on_gpu)
    assert len(values(roof)) == len(roof.data.cells)
    assert "4814 GB/s of memory, 66908 GFLOP/s float32" in roof.caption
    (tiled,) = [line for line in roof.data.cells if line[:2] == ["tiled 32x32", "4096×4096×4096"]]
    # 2·4096³ FLOP over 3·4096²·4 bytes, in 1 ms, under the arithmetic roof.
    assert tiled[4:] == ["682.7", "137439 GFLOP/s", "205"]
    (copy,) = [line for line in bandwidth.data.cells if line[:2] == ["copyGmem 32x32", "4096×4096"]]
    assert copy[4:] == ["134.2 GB/s", "3"]


def test_a_ladder_says_the_gain_over_the_best_so_far(stored: Run, rows: Rows) -> None:
    times = {"memcpy": 1.0, "naiveGmem": 8.0, "transposeSmem": 4.0, "transposeSmemPad": 5.0, "transposeCoarsened": 2.0}
    longer = rows({kernel: [ms] * 3 for kernel, ms in times.items()}, pad=1)
    (chart,) = [one for name, one in charts([replace(stored, rows=longer)]).items() if name.startswith("ladder-")]
    assert chart.name == "ladder-transpose-4096x4096-float32-warm"
    assert [line[0].split()[0] for line in chart.data.cells] == [
        "naiveGmem",
        "transposeSmem",
        "transposeCoarsened",
        "memcpy",
        "transposeSmemPad",
    ]
    gains = {label.partition(" ")[0]: label.rpartition(", ")[2] for label in values(chart) if "±" in label}
    assert gains == {
        "transposeSmem": "2.000 ±0.01 %",
        "transposeSmemPad": "0.800 ±0.01 %",
        "transposeCoarsened": "2.000 ±0.01 %",
    }
    marked = [item["case"] for items in of_key(chart.spec, "values") for item in items if item.get("role") == "best"]
    assert marked == ["transposeCoarsened 32x32 +1"]


def test_the_documents_gains_stand_beside_this_devices_without_its_ports(stored: Run) -> None:
    labels = values(charts([stored])["documents-transpose"])
    assert {"transposeSmem on Tesla K40: 1.69× naiveGmem", "transposeSmem on NVIDIA H200: 2.00× naiveGmem"} <= labels
    ports = [replace(row, compiler="nvrtc", elapsed_ms=9.0) for row in stored.rows if row.device == "cuda:0" and row.ok]
    both = replace(stored, rows=[*stored.rows, *ports])
    assert values(charts([both])["documents-transpose"]) == labels


def test_the_data_sheet_in_a_runs_folder_is_part_of_its_report(limits: Run, tmp_path: Path) -> None:
    shutil.copy(ROOT / "results/reference/h200-probe.json", tmp_path / IN_RUN)
    (topic,) = (
        topic
        for chapter in contents([replace(limits, path=tmp_path)]).chapters
        for topic in chapter.topics
        if topic.heading == "The data sheet"
    )
    assert topic.text[0].startswith("NVIDIA H200 · compute capability 9.0")
    assert topic.sections[0].heading.startswith("latency")
    assert [chart.name for chart in topic.charts] == ["latency"]
    assert {part.heading.partition(":")[0] for part in topic.folded} >= {"conflicts", "bandwidth", "clusters"}
    assert "The data sheet" not in str(contents([limits]))


def test_kernels_over_sizes_stand_beside_the_copy(stored: Run) -> None:
    chart = charts([stored])["sizes-transpose-float32-warm-cache-cuda-0-aligned"]
    assert "naiveGmem 16x16, 512×512: 0.125 ±2.1 % times as fast as memcpy" in values(chart)
    assert [column.heading for column in chart.data.columns] == ["kernel", "512×512", "4096×4096"]
    assert ["transposeSmem", "0.250 ±2.1 %", "0.250 ±2.2 %"] in chart.data.cells


def test_aligned_and_ragged_sizes_are_apart_on_the_same_axes(limits: Run) -> None:
    both = [charts([limits])[f"sizes-matmul-float32-warm-cache-cuda-0-{shape}"] for shape in ("aligned", "ragged")]
    sides = [{int(column.heading.partition("×")[0]) for column in chart.data.columns[1:]} for chart in both]
    assert {1024, 4096} <= sides[0] <= {side for side in sides[0] if side % 32 == 0}
    assert {1023, 1025, 2049} <= sides[1]
    scales = [[scale["domain"] for scale in of_key(json.loads(chart.json), "scale")] for chart in both]
    assert {json.dumps(domain) for domain in scales[0]} == {json.dumps(domain) for domain in scales[1]}


@pytest.mark.parametrize(("dtype", "distribution"), [("float32", ""), ("bfloat16", "inputs-uniform-")])
def test_kernels_over_sizes_say_how_inputs_are_distributed_unless_all_of_the_type_are_uniform(
    stored: Run, rows: Rows, dtype: str, distribution: str
) -> None:
    times = {"naive": [2.0] * 3, "tiled": [1.0] * 3}
    products = [row for n in (512, 1024) for row in rows(times, problem="matmul", n=n)]
    uniform = [replace(row, dtype=dtype, inputs="uniform", case_id=f"{row.case_id}/{dtype}") for row in products]
    names = charts([replace(stored, rows=uniform, samples={})])
    assert f"sizes-matmul-{dtype}-{distribution}warm-cache-cuda-0-aligned" in names, [*names]


def test_products_of_few_rows_stand_beside_a_read_of_as_many_bytes_as_b_has() -> None:
    run = load(ROOT / "results/reference/20261201T062759Z-decode")
    of_8192 = [row for row in run.rows if (row.k, row.n) == (8192, 8192) or row.kernel == "readGmem"]
    name = "sizes-matmul-bfloat16-inputs-normal-B-by-columns-rotated-cache-cuda-0"
    chart = charts([replace(run, rows=of_8192)])[f"{name}-8192-8192-aligned"]
    assert '"type":"line"' in chart.json
    assert '"type":"line"' not in charts([run])[f"{name}-aligned"].json  # products of different shapes
    assert [column.heading.partition("×")[0] for column in chart.data.columns[1:]] == [
        *("1", "2", "4", "8", "16", "32", "48", "64", "96", "128", "256")
    ]
    torch = [row for row in of_8192 if row.m == 16 and row.case.b_layout == "columns" and row.kernel == "torch"]
    (ms,) = [row.elapsed_ms or 0 for row in torch if row.dtype == "bfloat16"]
    (read,) = [row.elapsed_ms or 0 for row in of_8192 if row.kernel == "readGmem" and row.n == 8192 * 8192 // 2]
    (share,) = [cells[5] for cells in chart.data.cells if cells[0] == "torch"]
    assert float(share.split()[0]) == pytest.approx(read / ms, abs=0.005)


def test_sizes_that_would_be_one_dot_have_no_chart(limits: Run) -> None:
    of_transposes = {name for name in charts([limits]) if name.startswith("sizes-transpose-float32")}
    assert of_transposes == {"sizes-transpose-float32-warm-cache-cuda-0-aligned"}  # 4096 and 16384; not 4095 and 4097


def test_the_axis_of_a_ratio_has_its_one(stored: Run) -> None:
    """Here every kernel is slower than the driver's copy."""
    (chart,) = [one for name, one in charts([stored]).items() if name.startswith("sizes-transpose-float32")]
    (domain,) = {tuple(y["scale"]["domain"]) for y in of_key(json.loads(chart.json), "y")}
    assert domain[0] < 1 < domain[1]


def test_a_strip_says_how_wide_its_samples_spread(stored: Run) -> None:
    chart = charts([stored])["samples-transpose-4096x4096-float32-warm"]
    assert (
        "naiveGmem 16x16: median 4.0000 ms, quartiles 4.0000 to 4.0300, all 4.0000 to 4.0800, 6 samples in 3 rounds"
        in values(chart)
    )
    assert ["naiveGmem 16x16", "6", "3", "4.0000", "4.0000", "4.0000", "4.0300", "4.0800"] in chart.data.cells


def test_a_load_is_a_line_over_its_seconds(stored: Run) -> None:
    row = next(row for row in stored.rows if row.ok and row.kernel == "naiveGmem")
    loaded = replace(row, burst_ms=1.0, burst_uncertainty=0.01, steady_ms=1.25, steady_uncertainty=0.01, energy_mj=5.0)
    moments = [Moment(second, 1000, 1.0 + second / 40, 1980 - second, 40 + second, 700.0) for second in range(1, 11)]
    run = replace(stored, rows=[loaded], moments={row.case_id: moments})
    (topic,) = (topic for topic in contents([run]).topics if topic.heading == "Under load")
    assert topic.sections[0].heading.endswith("sustained load of 10 s")
    assert topic.sections[0].cells[0][1:4] == ["1.000 ±1.0 %", "1.250 ±1.0 %", "1979–1970"]
    chart = charts([run])["under-load"]
    (line,) = json.loads(chart.json)["layer"]
    assert [point["times"] for point in line["data"]["values"]][-1] == 1.25
    assert rendered(chart, "png").startswith(b"\x89PNG")
    assert not any(topic.heading == "Under load" for topic in contents([stored]).topics)


def test_a_single_chart_is_a_titled_picture_on_white(stored: Run) -> None:
    chart = charts([stored])["rate-transpose-4096x4096-float32-warm"]
    svg = rendered(chart, "svg")
    assert b"#ffffff" in svg
    assert b"var(" not in svg
    assert chart.title.encode() in svg
    assert rendered(chart, "png").startswith(b"\x89PNG")


def test_every_chart_of_the_committed_runs_can_be_drawn(limits: Run) -> None:
    drawn = {
        chart.name.partition("-")[0]: chart
        for run in (limits, load(SLOWDOWN / "20261122T220754Z-slowdown"))
        for chart in contents([run]).charts
    }
    for chart in drawn.values():
        assert rendered(chart, "svg").count(b"<path") > 4, chart.name


def again(stored: Run, day: int, **changes: Any) -> Run:
    run = {**stored.description.data, "started_at_utc": f"2026-01-{day:02}T02:00:00+00:00", "run_id": f"day {day}"}
    rows = [replace(row, run_id=f"day {day}") for row in stored.rows]
    return replace(stored, rows=rows, description=Description.model_validate(run | changes))


def shown(runs: Sequence[Run]) -> list[tuple[str, str | None]]:
    return [(one.id, None if before is None else before.id) for one, before in whole(by_time(runs))]


def test_the_newest_of_a_configuration_is_shown_whole(stored: Run) -> None:
    first, second, third = (again(stored, day) for day in (1, 2, 3))
    other = again(stored, 4, devices=[{**H200, "model": "A100"}])
    fewer = replace(third, rows=third.rows[:1])
    assert shown([third, first, second]) == [("day 3", "day 2")]
    assert shown([first, other]) == [("day 1", None), ("day 4", None)]
    assert shown([first, fewer]) == [("day 3", "day 1")]


def test_without_a_configuration_a_run_is_replaced_by_one_with_all_its_cases(stored: Run) -> None:
    first, second = (again(stored, day, config={}) for day in (1, 2))
    part = replace(second, rows=second.rows[:1])
    assert shown([first, second]) == [("day 2", "day 1")]
    assert shown([first, part]) == [("day 1", None), ("day 2", None)]


@pytest.fixture(scope="session")
def nights(stored: Run) -> list[Run]:
    """Eight runs of the transposes, naiveGmem a quarter slower in the last four."""
    result = []
    for day in range(1, 9):
        run = again(stored, day)
        rows, samples = [], {}
        for row in (row for row in run.rows if row.problem == "transpose" and row.ok and row.n == 4096):
            slower = (1.25 if row.kernel == "naiveGmem" and day > 4 else 1.0) * (1 + day % 3 / 1000)
            rows.append(replace(row, elapsed_ms=(row.elapsed_ms or 0.0) * slower))
            samples[row.case_id] = {
                turn: [slower * value * (1 + turn / 1000) for value in stored.samples[row.case_id][0]]
                for turn in range(5)
            }
        result.append(replace(run, rows=rows, samples=samples))
    return result


def test_two_runs_are_compared(nights: list[Run]) -> None:
    report = contents([nights[4], nights[3]])
    (comparison,) = report.chapters[0].topics
    assert "against day 4: 2 slower" in report.headline.sentences[0]
    assert any(line[:2] == ["slower", "naiveGmem 16x16 4096x4096"] for line in comparison.sections[-1].cells)
    chart = report.headline.chart
    assert chart is not None
    assert any(re.match(r"naiveGmem 16x16 4096x4096: slower, \+25\.\d %, \+2\d", value) for value in values(chart))
    assert len(chart.data.cells) == len(nights[0].rows)


def test_runs_that_cannot_be_compared_are_not_called_the_same(stored: Run) -> None:
    unnamed = [again(stored, day, devices=[{**H200, "uuid": None}]) for day in (1, 2)]
    sentence = contents(unnamed).headline.sentences[0]
    assert sentence == "Of 24 cases against day 1: 24 not comparable."


def test_many_runs_have_a_history(nights: list[Run]) -> None:
    report = contents(nights)
    assert "2 unaccepted slowdowns in 7 cases over 8 runs" in report.headline.sentences[0]
    assert "since day 5" in report.headline.sentences[0]
    chart = report.headline.chart
    assert chart is not None
    labels = values(chart)
    assert any(value.endswith("from day 5 on") and "+2" in value for value in labels)
    assert {value.partition(" ")[0] for value in labels} == {"naiveGmem"}
    assert [line[0] for line in chart.data.cells] == [f"day {day}" for day in range(1, 9)]


def dots_of(history: Chart) -> list[dict[str, Any]]:
    layers: Any = history.spec["layer"]
    result: list[dict[str, Any]] = layers[-1]["data"]["values"]
    return result


def test_revisions_are_points_in_the_order_in_which_they_were_measured(nights: list[Run]) -> None:
    """The last of a checkout with changes; a run without a revision is in the chart of runs only."""
    states = [("f", False), ("f", False), ("a", False), ("a", False), ("a", True), ("a", True), ("a", True), None]
    gits = [state and {"revision": 40 * state[0], "dirty": state[1]} for state in states]
    runs = [
        replace(run, description=Description.model_validate({**run.description.data, "git": git}))
        for run, git in zip(nights, gits, strict=True)
    ]
    by_run, by_revision = (charts(runs)[name] for name in ("history", "history-by-revision"))
    names = ["f" * 12, "a" * 12, "a" * 12 + "+"]
    assert len(by_run.data.cells) == 8
    assert [line[0] for line in by_revision.data.cells] == names
    assert by_revision.data.columns[0].title == "revision"
    assert {dot["at"] for dot in dots_of(by_revision)} == {*names}
    assert all(x["sort"] == names for x in of_key(json.loads(by_revision.json), "x"))
    place = [column.title for column in by_revision.data.columns].index(by_run.data.columns[1].title)
    times = [float(line[1]) for line in by_run.data.cells]
    medians = [fmean(times[:2]), fmean(times[2:4]), sorted(times[4:7])[1]]
    assert [float(line[place]) for line in by_revision.data.cells] == pytest.approx(medians, rel=1e-4)


def test_each_gpu_of_a_revision_has_its_name() -> None:
    """Runs of two GPUs by turns: the newest of a revision has one of them."""
    runs, _ = read_runs([ROOT / "results/reference/two-gpus"])
    of_three = [
        replace(run, description=Description.model_validate({**run.description.data, "git": {"revision": 40 * name}}))
        for run, name in zip(runs, "aaaabbbbcccc", strict=True)
    ]
    drawn = charts(of_three)
    lines = {name: {dot["case"] for dot in dots_of(drawn[name])} for name in ("history", "history-by-revision")}
    assert {line.rpartition(" on ")[2] for line in lines["history-by-revision"]} == {"cuda:0", "cuda:1"}
    assert lines["history-by-revision"] == lines["history"]


def test_each_gpu_has_its_own_lines_and_the_counts_of_runs_agree() -> None:
    """Of twelve runs of two GPUs, two pairs began in the same second and have one id."""
    runs, _ = read_runs([ROOT / "results/reference/two-gpus"])
    report = contents(runs)
    history = next(chart for chart in report.charts if chart.name == "history")
    dots = dots_of(history)
    lines = {dot["case"] for dot in dots}
    assert len(lines) == 6
    assert all(line.endswith((" on cuda:0", " on cuda:1")) for line in lines)
    for line in lines:
        moments = [dot["at"] for dot in dots if dot["case"] == line]
        assert len(moments) == len(set(moments)) == 6
    assert len(history.data.cells) == len(runs) == 12
    assert " · 12 runs · 20 cases " in report.headline.facts
    assert report.headline.sentences[0] == "No unaccepted slowdowns in 20 cases over 12 runs."
    (overview,) = report.chapters[-1].topics[0].sections
    assert len({cells[0] for cells in overview.cells}) == 12
    assert not any("no case in common" in text for topic in report.chapters[0].topics for text in topic.text)


def test_runs_of_two_gpus_with_one_name_stay_apart(stored: Run) -> None:
    """As of two hosts: each has a cuda:0 of the same model."""

    def run(day: int, uuid: str, factor: float) -> Run:
        described = {
            **RUN,
            "run_id": f"run{day}",
            "started_at_utc": f"2026-01-{day:02}T02:00:00+00:00",
            "devices": [{**H200, "uuid": uuid}],
        }
        rows = [
            replace(row, run_id=f"run{day}", elapsed_ms=row.elapsed_ms and factor * row.elapsed_ms)
            for row in stored.rows
        ]
        return replace(stored, rows=rows, samples={}, description=Description.model_validate(described))

    runs = [run(day, f"GPU-{1 + day % 2}", 1 + day % 2) for day in range(1, 11)]
    report = contents(runs)
    assert report.headline.sentences[0].startswith("No unaccepted slowdowns in ")
    history = next(chart for chart in report.charts if chart.name == "history")
    assert {dot["case"].rpartition(" on ")[2] for dot in dots_of(history)} == {
        "cuda:0 GPU-1",
        "cuda:0 GPU-2",
    }
    on = {chart.caption.rpartition(" on ")[2] for chart in report.charts if chart.name.startswith("roofline")}
    assert on == {"cuda:0 GPU-1.", "cuda:0 GPU-2."}
    assert [topic.heading for topic in report.chapters[0].topics[1:]] == [
        "Against run7 on cuda:0 GPU-2",
        "Against run8 on cuda:0 GPU-1",
    ]


def test_two_gpus_of_one_run_are_not_compared_with_each_other(stored: Run) -> None:
    twice = [
        replace(
            row,
            device="cuda:1",
            case_id=row.case_id.replace("/cuda:0/", "/cuda:1/"),
            elapsed_ms=row.elapsed_ms and row.elapsed_ms / 2,
        )
        for row in stored.rows
        if row.device == "cuda:0"
    ]
    described = {**RUN, "devices": [H200, {**H200, "name": "cuda:1", "uuid": "GPU-2"}]}
    both = Run([*stored.rows, *twice], Description.model_validate(described))
    titles = [chart.title for chart in contents([both]).charts]
    assert [title for title in titles if titles.count(title) > 1] == []
    sentence = next(section.sentence for section in sections(both) if "transpose" in section.heading)
    one, other = sentence.removeprefix("On cuda:0: ").split(" On cuda:1: ")
    assert one == other
    (limit,) = (section for section in limits_of(both) if "transpose" in section.heading)
    on = [column.title for column in limit.columns].index("on")
    assert [cells[on] for cells in limit.cells] == ["cuda:0", "cuda:1"] * 2


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12).map(sorted), st.floats(0.001, 0.08))
def test_labels_are_apart_and_below_the_top(places: list[float], gap: float) -> None:
    result = spread(places, gap, 1.0)
    assert len(result) == len(places)
    assert all(after - before >= gap - 1e-9 for before, after in pairwise(result))
    assert result[-1] <= 1 + 1e-9
    # The labels' least squares: the fit at each place is the largest of the smallest means around it.
    free = [place - number * gap for number, place in enumerate(places)]
    for number, place in enumerate(result):
        ends = range(number + 1, len(free) + 1)
        fit = max(min(fmean(free[first:end]) for end in ends) for first in range(number + 1))
        assert place == pytest.approx(min(fit, 1.0 - (len(free) - 1) * gap) + number * gap, abs=1e-9)


@pytest.mark.parametrize(
    ("name", "expected"), [("roofline-cuda:0", "roofline-cuda-0"), ("../../etc", "etc"), ("<>", "chart")]
)
def test_names_are_file_names(name: str, expected: str) -> None:
    assert file_name(name) == expected


def test_a_dark_screens_page_is_printed_in_dark_ink(text: str) -> None:
    """Browsers leave out backgrounds: what is light on a dark screen would not be seen on paper."""
    style = text.partition("<style>")[2].partition("</style>")[0]
    assert re.findall(r"@media ([^{]*prefers-color-scheme: dark[^{]*) {", style) == [
        "screen and (prefers-color-scheme: dark)"
    ]
    printed = dict(re.findall(r'\[fill="(.*?)"\] {fill: (.*?)}', style))
    assert printed == dict(zip(THEMES["dark"].values(), THEMES["light"].values(), strict=True))
