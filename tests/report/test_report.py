"""The report's HTML: whole, escaped, self-contained, the same each time, and fit for who cannot see it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import Rows
from smembench.model.case import Block
from smembench.report.canvas import COLOURS, Plot, file_name, printable, render, spread
from smembench.report.contents import contents, plots
from smembench.report.figures.sizes import apart, prefixed
from smembench.report.page import page
from smembench.report.selection import by_time, whole
from smembench.store.run import Run
from smembench.store.run_json import Description
from smembench.store.schema import Row

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
TRANSPOSES = {"copyGmem": 1.0, "naiveGmem": 4.0, "transposeSmem": 2.0}
HOSTILE = "</td></svg><script>alert(1)</script>&lt;$x^2$\x1b[31m\x00"
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
        return [found.get(attribute) for name, found in self.attributes if name == tag]


@pytest.fixture(scope="session")
def stored(rows: Rows) -> Run:
    """A run with two sizes, both problems, samples of three rounds, and a failed case."""
    found: list[Row] = []
    samples = {}
    for n in (512, 4096):
        for block in (Block(32, 32), Block(16, 16)):
            kernels = {name: [ms * n / 4096 * wide for wide in (0.99, 1.0, 1.3)] for name, ms in TRANSPOSES.items()}
            kernels["transposeSmemPad"] = []
            found += rows(kernels, n=n, block=block)
        found += rows({"memcpy": [n / 8192]}, n=n, block=None)
        found += rows({"naive": [n / 2048], "tiled": [n / 4096]}, problem="matmul", n=n)
        found += rows({"cpu": [n * 1.0]}, problem="matmul", device="cpu", n=n, block=None)
    for row in found:
        if row.elapsed_ms is not None:
            samples[row.case_id] = {turn: [row.elapsed_ms * (1 + turn / 100), row.elapsed_ms] for turn in range(3)}
    return Run(found, Description.model_validate(RUN), samples, Path("nightly"))


@pytest.fixture(scope="session")
def hostile(stored: Run) -> Run:
    """One size of it with markup in every string that a file can hold."""
    of_size = [row for row in stored.rows if row.n == 4096]
    failed = [replace(row, kernel=HOSTILE, reason=HOSTILE, status="failed") for row in of_size if not row.ok]
    others = [
        replace(row, kernel=HOSTILE if row.kernel == "copyGmem" else row.kernel, dtype=f"float32{HOSTILE}")
        for row in of_size
        if row.ok
    ]
    run = {**RUN, "devices": [{**H200, "model": HOSTILE}], "host": {"name": HOSTILE}, "versions": {HOSTILE: HOSTILE}}
    return replace(
        stored,
        rows=[*failed, *others],
        description=Description.model_validate({**run, "run_id": HOSTILE, HOSTILE: HOSTILE}),
    )


def html(runs: Sequence[Run]) -> str:
    return page(contents(runs), title="smembench report", version="1")


@pytest.fixture(scope="session")
def text(stored: Run) -> str:
    return html([stored])


def test_every_table_has_a_caption_and_every_heading_a_scope(text: str) -> None:
    found = Page(text)
    assert found.tags["table"] == found.tags["caption"] > 10
    assert set(found.of("th", "scope")) == {"col", "row"}
    assert found.tags["h1"] == 1
    assert found.tags["h2"] == 2
    assert found.tags["main"] == found.tags["nav"] == 1


def test_every_figure_says_what_it_is_and_its_marks_their_values(text: str) -> None:
    found = Page(text)
    names = [value for value in found.of("figure", "id") if value]
    assert {name.partition("-")[0] for name in names} == {
        *("documents", "time", "rate", "roofline", "ladder", "samples")
    }
    assert found.tags["svg"] == len(names) == found.tags["desc"]
    assert set(found.of("svg", "role")) == {"img"}
    assert found.of("svg", "aria-labelledby") == [f"{name}-title {name}-desc" for name in names]
    values = [attributes["data-value"] for _, attributes in found.attributes if "data-value" in attributes]
    assert "transposeSmem 16x16, 4096x4096: 2.0000 ms" in values
    assert found.tags["title"] == len(values) + found.tags["svg"] + 1


def test_it_asks_the_network_for_nothing(text: str) -> None:
    assert not re.search(r"https?:|//[a-z]|@import|url\((?!#)", text)
    found = Page(text)
    links = [value for tag in ("a", "use", "image", "link") for value in found.of(tag, "href")]
    assert all(link and link.startswith("#") for link in links)
    ids = [str(attributes["id"]) for _, attributes in found.attributes if "id" in attributes]
    assert len(ids) == len(set(ids))
    clipped = re.findall(r"url\(#([^)]+)\)", text)
    labels = " ".join(str(value) for tag in ("section", "svg") for value in found.of(tag, "aria-labelledby")).split()
    assert {str(link)[1:] for link in links} | set(clipped) | set(labels) <= set(ids)


def test_colours_are_the_pages_own(text: str) -> None:
    drawn = "".join(re.findall(r"<svg.*?</svg>", text, flags=re.DOTALL))
    assert re.findall(r"#[0-9a-f]{6}\b", drawn) == []
    assert {"var(--ink)", "var(--series-0)"} <= set(re.findall(r"var\(--[a-z0-9-]+\)", drawn))
    style = text.partition("</style>")[0]
    for name in set(re.findall(r"var\((--[a-z0-9-]+)\)", text)):
        assert len(re.findall(f"{name}:", style)) >= 2, name  # light and dark


def luminance(colour: str) -> float:
    """Relative luminance (WCAG 2.2)."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_words_and_lines_stand_out_in_light_and_dark(text: str) -> None:
    light, dark, *_ = [dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{6});", part)) for part in text.split(":root")[1:]]
    assert {name: light[name] for name in COLOURS.values()} == {name: colour for colour, name in COLOURS.items()}
    for theme in (light, dark):
        for name in COLOURS.values():
            one, other = sorted(luminance(theme[key]) for key in (name, "paper"))
            assert (other + 0.05) / (one + 0.05) >= (1.2 if name == "line" else 4.5), name


def test_strings_from_files_are_escaped_everywhere(hostile: Run) -> None:
    text = html([hostile])
    found = Page(text)
    assert found.tags["script"] == 1
    assert text.count("alert(1)") == text.count("&lt;script&gt;alert(1)") > 20
    assert "\x1b[31m" not in "".join(re.findall(r"<svg.*?</svg>", text, flags=re.DOTALL))
    assert "$x^2$" in "".join(found.text)


def test_the_policy_allows_the_one_script(text: str) -> None:
    import base64
    import hashlib

    (script,) = re.findall(r"<script>(.*?)</script>", text, flags=re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    (policy,) = [str(attributes["content"]) for _, attributes in Page(text).attributes if "http-equiv" in attributes]
    assert policy == f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"


def test_a_bare_csv_is_enough(stored: Run) -> None:
    found = Page(html([Run(stored.rows, path=Path("cases.csv"))]))
    names = {str(name).partition("-")[0] for name in found.of("figure", "id")}
    assert names == {"documents", "time", "rate", "ladder"}
    assert "No roofline of cuda:0: the run does not record its peaks." in found.text


def test_a_run_in_which_nothing_succeeded_is_a_report_too(stored: Run) -> None:
    failed = [row for row in stored.rows if not row.ok]
    found = Page(html([replace(stored, rows=failed)]))
    assert found.tags["svg"] == 0
    assert any("failed: LaunchError: out of luck" in text for text in found.text)


def named(runs: Sequence[Run], name: str) -> Plot:
    (found,) = [plot for plot in plots(contents(runs)) if plot.name == name]
    return found


def values(plot: Plot) -> set[str]:
    return set(render(plot, "svg", titled=False)[1].values())


def test_the_roofline_holds_every_kernel_under_the_devices_roof(stored: Run) -> None:
    plot = named([stored], "roofline-cuda-0")
    assert plot.data is not None
    on_gpu = [row for row in stored.rows if row.ok and row.device == "cuda:0"]
    assert len(values(plot)) == len(plot.data.cells) == len(on_gpu)
    assert "4814 GB/s of memory, 66908 GFLOP/s float32" in plot.caption
    (tiled,) = [line for line in plot.data.cells if line[:2] == ["tiled 32x32", "4096x4096x4096"]]
    # 2·4096³ FLOP over 3·4096²·4 bytes, in 1 ms, under the arithmetic roof.
    assert tiled[4:] == ["682.7", "137439 GFLOP/s", "205"]
    (copy,) = [line for line in plot.data.cells if line[:2] == ["copyGmem 32x32", "4096x4096"]]
    assert copy[4:] == ["0.00", "134.2 GB/s", "3"]


def test_no_number_beside_an_axis_is_a_formula(stored: Run) -> None:
    # All rates within a decade: the places between powers of ten must not be labelled as formulas.
    near = [row for row in stored.rows if row.problem == "matmul" and row.n == 4096]
    svg, _ = render(named([replace(stored, rows=near)], "roofline-cuda-0"), "svg", titled=False)
    assert b"mathdefault" not in svg
    assert b">100000<" in svg


def test_a_run_with_more_steps_than_the_documents_has_its_ladder(stored: Run, rows: Rows) -> None:
    assert not [plot.name for plot in plots(contents([stored])) if plot.name.startswith("ladder-steps")]
    kernels = ("memcpy", "naiveGmem", "transposeSmem", "transposeSmemPad", "transposeCoarsened", "transposeVectorized")
    longer = rows({kernel: [8.0 - place] * 3 for place, kernel in enumerate(kernels)}, pad=1)
    (topic,) = [topic for topic in contents([replace(stored, rows=longer)])[1].topics if topic.heading == "Ladders"]
    assert [line[0].split()[0] for line in topic.sections[0].cells] == [*kernels[1:], "memcpy"]
    assert "naiveGmem 32x32 +1: 19.2 GB/s" in values(topic.plots[0])
    assert topic.plots[0].name == "ladder-steps-transpose-4096x4096-float32-warm"


def test_numbers_below_an_axis_have_room_beside_each_other() -> None:
    assert apart([512, 1024, 2048, 4096, 8192, 16384], 7) == [512, 1024, 2048, 4096, 8192, 16384]
    assert apart([4095, 4096, 4097, 16384], 7) == [4095, 16384]
    assert apart([1024 * 4**power for power in range(11)], 7) == [1024 * 16**power for power in range(6)]
    assert [prefixed(count) for count in (8, 1024, 8000, 65536, 80_000_000, 2**30)] == [
        *("8", "1Ki", "8k", "64Ki", "80M", "1Gi")
    ]


def test_the_documents_gains_stand_beside_this_devices_without_its_ports(stored: Run) -> None:
    said = values(named([stored], "documents-transpose"))
    assert {"transposeSmem on Tesla K40: 1.69× naiveGmem", "transposeSmem on NVIDIA H200: 2.00× naiveGmem"} <= said
    ports = [replace(row, compiler="nvrtc", elapsed_ms=9.0) for row in stored.rows if row.device == "cuda:0" and row.ok]
    both = replace(stored, rows=[*stored.rows, *ports])
    assert values(named([both], "documents-transpose")) == said


def test_a_line_over_sizes_is_a_block(stored: Run) -> None:
    plot = named([stored], "time-transpose-cuda-0-float32-warm")
    assert "naiveGmem 32x32, 512x512: 0.5000 ms" in values(plot)
    assert plot.data is not None
    assert [column.heading for column in plot.data.columns] == ["case", "512x512", "4096x4096"]
    assert ["memcpy", "0.06250", "0.5000"] in plot.data.cells


def test_a_strip_says_how_wide_its_samples_spread(stored: Run) -> None:
    plot = named([stored], "samples-transpose-4096x4096-float32-warm")
    assert (
        "naiveGmem 16x16: median 4.0000 ms, quartiles 4.0000 to 4.0300, all 4.0000 to 4.0800, 6 samples in 3 rounds"
        in values(plot)
    )
    assert plot.data is not None
    assert ["naiveGmem 16x16", "6", "3", "4.0000", "4.0000", "4.0000", "4.0300", "4.0800"] in plot.data.cells


def test_a_single_figure_is_a_picture_on_white(stored: Run) -> None:
    plot = named([stored], "ladder-transpose-4096x4096-float32-warm")
    svg, _ = render(plot, "svg", titled=True)
    assert b"#ffffff" in svg
    assert plot.title.encode() in svg
    png, _ = render(plot, "png", titled=True)
    assert png.startswith(b"\x89PNG")


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
    found = []
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
        found.append(replace(run, rows=rows, samples=samples))
    return found


def test_two_runs_are_compared(nights: list[Run]) -> None:
    _, comparison = contents([nights[4], nights[3]])[0].topics
    assert comparison.heading == "day 5 against day 4"
    assert any(line[:2] == ["slower", "naiveGmem 16x16 4096x4096"] for line in comparison.sections[-1].cells)
    (plot,) = comparison.plots
    assert any(re.match(r"naiveGmem 16x16 4096x4096: slower, \+25\.\d %, \+2\d", value) for value in values(plot))
    assert plot.data is not None
    assert len(plot.data.cells) == len(nights[0].rows)


def test_many_runs_have_a_history(nights: list[Run]) -> None:
    _, _, history = contents(nights)[0].topics
    (plot,) = history.plots
    said = values(plot)
    assert any(value.endswith("from day 5 on") and value.startswith("+2") for value in said)
    assert {value.partition(" ")[0] for value in said if " ms" in value} == {"naiveGmem"}
    assert plot.data is not None
    assert [line[0] for line in plot.data.cells] == [f"day {day}" for day in range(1, 9)]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12).map(sorted), st.floats(0.001, 0.08))
def test_labels_are_apart_and_below_the_top(places: list[float], gap: float) -> None:
    found = spread(places, gap)
    assert len(found) == len(places)
    assert all(after - before >= gap - 1e-9 for before, after in pairwise(found))
    assert found[-1] <= 1 + 1e-9
    if all(after - before >= gap for before, after in pairwise(places)):
        assert found == pytest.approx(places, abs=1e-9)


@pytest.mark.parametrize(
    ("name", "expected"), [("roofline-cuda:0", "roofline-cuda-0"), ("../../etc", "etc"), ("<>", "figure")]
)
def test_names_are_file_names(name: str, expected: str) -> None:
    assert file_name(name) == expected


@given(st.text())
def test_any_text_becomes_text_of_xml(text: str) -> None:
    from xml.etree import ElementTree

    element = ElementTree.Element("text")
    element.text = printable(text).replace("\r", "")
    assert ElementTree.fromstring(ElementTree.tostring(element, encoding="unicode")).text in (element.text, None)
