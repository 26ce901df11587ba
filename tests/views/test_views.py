from __future__ import annotations

import io
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from rich.cells import cell_len
from rich.console import Console

from conftest import ROOT, Rows
from smembench.model.case import Block
from smembench.store.load import load
from smembench.store.run import Run
from smembench.store.run_json import Description
from smembench.studies.reproduce.devices import reference
from smembench.studies.reproduce.judge import CLAIMS, Holds
from smembench.studies.reproduce.measures import Here
from smembench.views.break_even import where_it_pays
from smembench.views.columns import Column, milliseconds, number, times
from smembench.views.compilers import of_run
from smembench.views.console import plain
from smembench.views.ladder import ladder
from smembench.views.limits import limits
from smembench.views.markdown import markdown
from smembench.views.records import csv
from smembench.views.reproduce import records, reproduction
from smembench.views.sections import Section, groups, interval, notes, sections, subject
from smembench.views.sentences import sentence
from smembench.views.table import bar_text, draw

RUN = Description.model_validate(
    {
        "devices": [
            {"name": "cpu", "kind": "cpu", "model": "EPYC"},
            {"name": "cuda:0", "kind": "cuda", "model": "H200"},
        ],
        "versions": {"numba": "0.68", "numba-cuda": "0.30", "numpy": "2.4"},
    }
)
TRANSPOSES = {"copyGmem": [1.0] * 3, "naiveGmem": [4.0] * 3, "transposeSmem": [2.5] * 3, "transposeSmemPad": [1.25] * 3}
PRODUCTS = {"cpu": [5e5] * 3, "naive": [2.0] * 3, "tiled": [1.0] * 3}


def drawn(result: list[Section], *, encoding: str = "utf-8", terminal: bool = False, width: int = 80) -> str:
    """What a console writes."""
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding, newline="")
    draw(Console(file=stream, width=width, force_terminal=terminal, highlight=False), result)
    stream.flush()
    return raw.getvalue().decode(encoding)


def on_terminal(result: list[Section], width: int = 80) -> str:
    """What a terminal shows, without its escape codes."""
    return re.sub(r"\x1b\[[0-9;]*m", "", drawn(result, terminal=True, width=width))


def tabulated(section: Section) -> list[dict[str, str]]:
    """The cells of each row by heading."""
    headings = [" ".join(column.heading.split()) for column in section.columns]
    return [dict(zip(headings, line, strict=True)) for line in section.cells]


def some_section(cell: str) -> Section:
    return Section("heading", [Column("kernel", numeric=False), Column("ms")], [[cell, "1"]])


@pytest.fixture
def everything(rows: Rows) -> list[Section]:
    """Sections of both problems with a failed case, over two devices and in blocks with long names."""
    wide = rows({**TRANSPOSES, "naiveGmem": []}, n=10**6, block=Block(1024, 1), pad=1)
    slow = rows({name: [1e5, 1e6] for name in PRODUCTS}, problem="matmul", device="cpu", block=Block(64, 16))
    return sections(Run([*wide, *slow, *rows(PRODUCTS, problem="matmul", pad=10)], RUN))


def test_rows_of_one_size_dtype_and_cache_make_a_section(rows: Rows) -> None:
    cold, small = rows(TRANSPOSES, cache="cold"), rows(TRANSPOSES, n=512)
    result = sections(Run([*rows(TRANSPOSES), *cold, *small, *rows(PRODUCTS, problem="matmul")], RUN))
    assert [section.heading.split(" · ")[1:3] for section in result] == [
        ["matrix transpose 4096×4096 float32", "warm cache"],
        ["matrix transpose 4096×4096 float32", "cold cache"],
        ["matrix transpose 512×512 float32", "warm cache"],
        ["matrix product 4096×4096×4096 float32", "warm cache"],
    ]
    assert result[0].heading.startswith("H200 · ")
    both = [*rows({"cpu": [5.0]}, problem="matmul", device="cpu"), *rows({"naive": [1.0]}, problem="matmul")]
    assert sections(Run(both, RUN))[0].heading.startswith("H200 and EPYC · ")
    assert result[0].heading.endswith(" · numba 0.68, numba-cuda 0.30")


def test_a_transpose_shows_times_bandwidth_and_share_of_the_copy(rows: Rows) -> None:
    times_ms = {"memcpy": [0.5], "copyGmem": [1.0], "transposeSmem": [1.9, 2.0, 2.1]}
    _, copy, shared = tabulated(sections(Run(rows(times_ms)))[0])
    assert shared == {
        "kernel": "transposeSmem",
        "block": "32x32",
        "elapsed ms": "2.00",
        "95 % CI": "±5.0 %",
        "GB/s": "67.1",
        "% of copyGmem": "50",
        "✓": "✓",
    }
    assert copy["% of copyGmem"] == "100.0"


def test_pads_are_shown_where_there_are_any(rows: Rows) -> None:
    (section,) = sections(Run([*rows({"transposeSmem": [2.0]}, pad=0), *rows({"transposeSmemPad": [2.0]}, pad=1)]))
    assert [line["block"] for line in tabulated(section)] == ["32x32", "32x32 +1"]
    assert [bar.label for bar in section.bars] == ["transposeSmem 32x32", "transposeSmemPad 32x32 +1"]


def test_a_product_shows_speed_ups_and_where_each_ran(rows: Rows) -> None:
    cpu = rows({"cpu": [1000.0]}, problem="matmul", device="cpu", block=None)
    (section,) = sections(Run([*cpu, *rows({"naive": [2.0], "tiled": [1.0]}, problem="matmul")]))
    lines = tabulated(section)
    assert [line["on"] for line in lines] == ["cpu", "cuda:0", "cuda:0"]
    assert [line["vs naive"] for line in lines] == ["", "1.00×", "2.0×"]
    assert [line["GFLOP/s"] for line in lines] == ["140", "69000", "140000"]


def test_a_failed_case_is_a_row_without_figures_and_a_note(rows: Rows) -> None:
    (section,) = sections(Run(rows({"copyGmem": [1.0] * 30, "naiveGmem": []})))
    assert [cell for cell in section.cells[1] if cell] == ["naiveGmem", "32x32", "failed"]
    assert [note for note in section.notes if "naiveGmem" in note] == [
        "naiveGmem 32x32: failed: LaunchError: out of luck"
    ]
    assert [bar.label for bar in section.bars] == ["copyGmem 32x32"]


@pytest.mark.parametrize(
    ("show", "value", "text"),
    [
        (milliseconds, 1234.56, "1234.6"),
        (milliseconds, 0.1234, "0.1234"),
        (milliseconds, 0.01234, "0.01234"),
        (number, 1234.5, "1234"),
        (number, 99.96, "100.0"),
        (number, 1.005, "1.00"),
        (number, None, ""),
        (times, 12.34, "12.3×"),
        (times, None, ""),
    ],
)
def test_numbers(show: Callable[[float | None], str], value: float | None, text: str) -> None:
    assert show(value) == text


@pytest.mark.parametrize(
    ("naive", "shared", "claim"),
    [
        ([4.0] * 3, [2.0] * 3, "Through shared memory the transpose is 2.000 times (±0.01 %) as fast as naiveGmem."),
        ([2.0] * 3, [4.0] * 3, "is slower than naiveGmem: it takes 2.000 times (±0.01 %) as long."),
        ([1.0, 2.0, 3.0], [1.0, 1.9, 3.0], "is not distinguishable from naiveGmem."),
        ([400.0] * 3, [1.0] * 3, "is 400.0 times (±0.01 %) as fast as naiveGmem."),
        ([1.0, 1.01, 1.02], [1.0, 1.01, 1.02], "is as fast as naiveGmem within 3.1 %."),
        ([400.0], [1.0], "is not compared with naiveGmem: too few samples."),
        ([4.0], [], ""),
    ],
)
def test_a_difference_is_claimed_only_where_noise_would_not_make_it(
    rows: Rows, naive: list[float], shared: list[float], claim: str
) -> None:
    text = sentence(Run(rows({"naiveGmem": naive, "transposeSmem": shared})))
    assert text.endswith(claim)
    assert bool(text) == bool(claim)


def test_the_whole_ladder_in_words(rows: Rows) -> None:
    transposes, products = sentence(Run(rows(TRANSPOSES))), sentence(Run(rows(PRODUCTS, problem="matmul")))
    for phrase in (
        "1.600 times (±0.01 %) as fast as naiveGmem",
        "2.000 times (±0.01 %) as fast as trans",
        "80 % of the fastest copyGmem",
    ):
        assert phrase in transposes
    for phrase in ("2.000 times (±0.01 %) as fast as naive", "500000 times (±0.01 %) as fast as the triple loop"):
        assert phrase in products
    assert sentence(Run(rows({"copyGmem": []}))) == ""


def test_the_programming_guides_kernels_are_compared_with_tiled_and_with_the_cpu(rows: Rows) -> None:
    guide = {**PRODUCTS, "MatMulKernel": [1.25] * 3, "MatMul": [1000.0] * 3}
    text = sentence(Run(rows(guide, problem="matmul")))
    assert "MatMulKernel 32x32 is slower than tiled: it takes 1.250 times (±0.01 %) as long" in text
    assert text.endswith("MatMul is 500.0 times (±0.01 %) as fast as the triple loop on one CPU thread.")


def test_markdown_keeps_every_cell_in_its_place() -> None:
    assert markdown([some_section("a|b\nc")]) == "heading\n\n| kernel | ms |\n| :--- | ---: |\n| a\\|b<br>c | 1 |\n"


def rendered(text: str) -> tuple[list[str], set[str]]:
    """The texts of a Markdown page, a line or cell each, and the types of its tokens."""
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    texts, types = [], set()
    for token in parser.parse(text):
        types.add(token.type)
        if token.type == "inline":
            types |= {child.type for child in token.children or ()}
            parts = (
                "\n" if child.type in ("softbreak", "html_inline") else child.content for child in token.children or ()
            )
            texts.append("".join(parts))
    return texts, types


HOSTILE = [
    "<script>alert(1)</script>",
    "<!-- x",
    "a & b &lt; &#60; <b>",
    "`code` ``x``",
    "*a* **b** _c_ __d__ ~~e~~ snake_case a*b*c",
    "[x](javascript:alert(1)) ![x](y) [x]: http://x",
    "\\* \\| a|b \\<b>",
    "# no heading",
    "> no quotation",
    "- no list",
    "1. no list",
    "---",
    "===",
    "| a | b |",
    "$x^2$",
]


@given(st.one_of(st.sampled_from(HOSTILE), st.text("<>&`*_~[]()!#+-=|\\:;$ ab1.x/", max_size=20)))
def test_markdown_shows_any_text_as_it_is(text: str) -> None:
    """Only a cell's own line break is a tag."""
    text = " ".join(text.split()) or "x"
    section = Section(text, [Column(text, numeric=False), Column("ms")], [[text, "1"]], sentence=text, notes=[text])
    texts, types = rendered(markdown([section]))
    assert texts == [text, text, "ms", text, "1", text, text]
    assert types <= {
        *("inline", "text", "text_special", "paragraph_open", "paragraph_close", "entity"),
        *("bullet_list_open", "bullet_list_close", "list_item_open", "list_item_close"),
        *(f"{part}_{end}" for part in ("table", "thead", "tbody", "tr", "th", "td") for end in ("open", "close")),
    }


def test_a_line_break_in_a_stored_text_begins_nothing_new() -> None:
    text = "a\n# b\n\n- c"
    section = Section(text, [Column("kernel", numeric=False)], [[text]], notes=[text])
    texts, types = rendered(markdown([section]))
    assert texts == ["a # b  - c", "kernel", "a\n# b\n\n- c", "a # b  - c"]
    assert "heading_open" not in types


def test_markdown_tables_are_rectangular(everything: list[Section]) -> None:
    for table in markdown(everything).split("\n\n"):
        assert len({line.count(" | ") for line in table.splitlines() if line.startswith("| ")}) <= 1


@given(st.floats(0, 1), st.integers(8, 80))
def test_bars_are_as_long_as_their_fraction(fraction: float, width: int) -> None:
    fine, coarse = bar_text(fraction, width, fine=True), bar_text(fraction, width, fine=False)
    part = {"": 0, "█": 8}.get(fine[-1:]) or " ▏▎▍▌▋▊▉█".index(fine[-1:] or " ")
    assert 8 * max(len(fine) - 1, 0) + part == pytest.approx(8 * fraction * width, abs=0.5)
    assert set(fine[:-1]) <= {"█"}
    assert coarse == "#" * len(coarse)
    assert len(coarse) == pytest.approx(fraction * width, abs=0.5)


@pytest.mark.parametrize(
    ("encoding", "shown"), [("utf-8", "3×3 · 4² ± 1 … ☃"), ("ascii", "3x3 | 4^2 +- 1 ... ?"), ("latin-1", "3×3")]
)
def test_signs_that_an_encoding_lacks_become_ascii(encoding: str, shown: str) -> None:
    console = Console(file=io.TextIOWrapper(io.BytesIO(), encoding=encoding))
    text = "3×3" if encoding == "latin-1" else "3×3 · 4² ± 1 … ☃"
    assert plain(console, text) == shown


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_nothing_is_wider_than_the_screen(everything: list[Section], encoding: str) -> None:
    lines = drawn(everything, encoding=encoding).splitlines()
    assert [line for line in lines if cell_len(line) > 80] == []
    assert any("transposeSmemPad" in line for line in lines)


def test_a_pipe_gets_no_escape_codes_and_a_terminal_does(everything: list[Section]) -> None:
    assert "\x1b" not in drawn(everything)
    assert "\x1b[1m" in drawn(everything, terminal=True)


def test_text_of_cells_is_not_taken_for_markup() -> None:
    assert "[red]x[/]" in drawn([some_section("[red]x[/]")])


def test_the_documents_stand_beside_what_was_measured(rows: Rows) -> None:
    result = rows({**TRANSPOSES, "naiveGmem": []}, block=Block(16, 16))
    other = rows({kernel: [2 * elapsed_ms[0]] for kernel, elapsed_ms in TRANSPOSES.items()}, block=Block(32, 32))
    samples = {row.case_id: {0: TRANSPOSES[row.kernel] * 6} for row in result if row.ok}
    figures, slides, *others = reproduction(Run([*result, *other], RUN, samples), why=True)
    copy, naive, *_ = figures.cells
    assert [column.heading for column in figures.columns] == [
        *("kernel", "Tesla M2090", "Tesla K40", "here, 16x16", "here, 32x32")
    ]
    assert copy[2] == "0.758 ms\n177.15 GB/s\n100 % of copy"
    assert copy[3].startswith("1.0000 ms\n134.2 GB/s\n")
    assert copy[4].startswith("2.0000 ms\n")
    assert naive[3] == "failed"
    assert naive[4].startswith("8.0000 ms\n")
    assert figures.notes == ["naiveGmem: failed: LaunchError: out of luck"]
    claims = {line["it says"].partition("\n")[0]: line for line in reversed(tabulated(slides))}
    assert claims["copyGmem is faster than naiveGmem"]["here"] == "no time in this run"
    padded = claims["transposeSmemPad is faster than transposeSmem"]
    assert padded["here"].startswith("yes\n2.00×\n")
    assert padded["it says"].endswith("1.10× Tesla M2090, 1.04× Tesla K40\nassumed: 4096×4096, blocks of 16x16")
    assert slides.sentence.startswith("21 claims: 7 hold, 2 do not, ")
    assert slides.notes == ["5 claims are about cases that are not in this run; smembench reproduce has them all"]
    assert len(others) == 2, "the programming guide and the blog"


def test_without_a_gpu_the_answers_of_a_stored_run_stand_beside(rows: Rows) -> None:
    here = rows(TRANSPOSES, block=Block(16, 16), device="cpu")
    samples = {row.case_id: {0: [row.elapsed_ms or 0.0] * 6} for row in here}
    run = Run(here, RUN, samples)
    gpu = reference()
    assert gpu is not None
    _, alone, *_ = reproduction(run, why=True)
    _, slides, *_ = reproduction(run, reference=gpu, why=True)
    headings = [column.heading for column in slides.columns]
    assert headings == ["where", "it says", "here", "NVIDIA H200", "why"]
    assert [column.heading for column in alone.columns] == ["where", "it says", "here", "why"]
    claims = {line["it says"].partition("\n")[0]: line for line in reversed(tabulated(slides))}
    assert claims["shared memory's bandwidth is more than 10 times DRAM's"]["here"] == "needs a GPU"
    assert claims["transposeSmem is faster than naiveGmem"]["here"] == "needs a GPU"
    assert claims["transposeSmem is faster than naiveGmem"]["NVIDIA H200"].startswith("yes\n1.8")
    answers = [(one["device"], one["holds"], one["found"]) for one in records([Here(run, "cpu")], gpu)]
    assert answers[0] == ("EPYC", None, "needs a GPU")
    assert ("NVIDIA H200", Holds.NO, "8.18×") in answers
    assert len(answers) == 2 * sum(map(len, CLAIMS.values()))
    assert {one["device"] for one in records([Here(run, "cpu")])} == {"EPYC"}
    assert slides.notes[-1] == f"what needs a GPU is answered by the stored run {gpu.run.id}, on NVIDIA H200"
    assert alone.notes[-1] == "H200 answers for the GPU-only claims: results/reference/documents.md in the repository"


def test_a_claim_is_one_line_of_a_terminal() -> None:
    gpu = reference()
    assert gpu is not None
    for section in reproduction(gpu.run, [gpu])[2:]:
        lines = drawn([section], width=80).splitlines()
        assert len(lines) <= 3 + len(section.cells) + 2  # the heading, the columns' names, and how many hold
        assert len({tuple(cells) for cells in section.cells}) == len(section.cells)
    slides = tabulated(reproduction(gpu.run, [gpu])[2])
    assert (slides[1]["holds"], slides[1]["here"]) == ("undecided", "30.18×")
    assert slides[-11]["it says"] == "transposeSmemPad is faster than transposeSmem, 16x16"


def test_only_what_the_documents_measured_stands_beside_them(rows: Rows) -> None:
    here, other, larger = (
        {kernel: [factor * elapsed_ms] * 6 for kernel, (elapsed_ms, *_) in TRANSPOSES.items()} for factor in (1, 3, 4)
    )
    result = [
        *rows(larger, block=Block(16, 16), n=8192),
        *rows(here, block=Block(16, 16)),
        *(replace(row, compiler="nvrtc") for row in rows(other, block=Block(16, 16))),
        *rows(other, block=Block(16, 16), device="cpu"),
    ]
    samples = {row.case_id: {0: [row.elapsed_ms or 0.0] * 6} for row in result}
    gpu, cpu, *claims = reproduction(Run(result, RUN, samples), why=True)
    for section, device, factor in ((gpu, "H200", 1), (cpu, "EPYC", 3)):
        assert section.heading.startswith(f"{device} · ")
        assert [line[0] for line in section.cells] == list(TRANSPOSES)
        assert section.cells[0][3].startswith(f"{factor * TRANSPOSES['copyGmem'][0]:.4f} ms\n")
    assert {section.heading.split(" · ")[0] for section in claims} == {"H200"}, "a GPU's claims, if there is one"
    assert "yes\n4.00×" in claims[0].cells[2][2]
    assert reproduction(Run(rows(larger, n=8192), RUN)) == []


def test_rows_of_two_devices_have_names_of_their_own(rows: Rows) -> None:
    here = rows({"memcpy": [1.0] * 3, "copyGmem": [1.0] * 3})
    (section,) = sections(Run([*here, *rows({"memcpy": [], "copyGmem": [2.0] * 3}, device="cpu")], RUN))
    assert [bar.label for bar in section.bars] == [
        "memcpy 32x32 on cuda:0",
        "copyGmem 32x32 on cuda:0",
        "copyGmem 32x32 on cpu",
    ]
    assert section.notes == ["memcpy 32x32 on cpu: failed: LaunchError: out of luck"]


def test_a_table_without_lines_is_left_out() -> None:
    empty = replace(some_section("x"), cells=[], sentence="Nothing to see.")
    heading = empty.columns[0].heading
    assert heading not in drawn([empty])
    assert markdown([empty]) == f"{empty.heading}\n\nNothing to see.\n"


def test_one_sample_has_no_interval(rows: Rows) -> None:
    (section,) = sections(Run(rows({"copyGmem": [1.0], "naiveGmem": [1.0, 1.0, 1.0]})))
    assert [line["95 % CI"] for line in tabulated(section)] == ["", "±0.0 %"]


def test_the_interval_covers_what_differs_between_rounds(rows: Rows) -> None:
    (row,) = rows({"memcpy": [1.0] * 9})
    assert interval(replace(row, precision=0.001, uncertainty=0.02)) == "±2.0 %"
    assert interval(replace(row, precision=0.001, uncertainty=None)) == "±0.1 %"  # stored before the column


@pytest.mark.parametrize(("rounds", "noted"), [(1, True), (2, True), (3, False)])
def test_an_interval_of_few_rounds_is_noted(rows: Rows, rounds: int, noted: bool) -> None:
    (row,) = rows({"memcpy": [1.0] * 9})
    result = notes([replace(row, rounds=rounds, within_cache=None)])
    assert any("fewer than three rounds" in note for note in result) == noted


def test_an_interval_from_before_it_covered_rounds_is_noted(rows: Rows) -> None:
    """A CSV by itself, without the samples that would tell."""
    (row,) = rows({"memcpy": [1.0] * 9})
    for uncertainty, noted in ((None, True), (0.02, False)):
        result = notes([replace(row, rounds=3, uncertainty=uncertainty, within_cache=None)])
        assert any("that of samples alone" in note for note in result) == noted


def test_a_column_that_says_nothing_is_left_out(rows: Rows) -> None:
    without, with_block = (
        sections(Run(rows({"copyGmem": [1.0, 1.1, 1.2]}, block=block)))[0] for block in (None, Block(8, 8))
    )
    headings = [[column.heading for column in section.columns] for section in (without, with_block)]
    assert ["block" in names for names in headings] == [False, True]
    assert {"kernel", "elapsed ms", "95 % CI", "✓"} <= set(headings[0])
    assert all(len(line) == len(headings[0]) for line in without.cells)


def test_a_row_of_a_table_stays_on_one_line_in_a_pipe_and_is_folded_on_a_terminal() -> None:
    cells = [["transposeSmemPad" * 3, "x" * 60, "1.5"], ["copyGmem", "y", "2.25"]]
    columns = [Column("kernel", numeric=False), Column("what", numeric=False), Column("ms")]
    section = Section(heading="wide", columns=columns, cells=cells)
    assert any(all(cell in line for cell in cells[0]) for line in drawn([section]).splitlines())
    shown = drawn([section], terminal=True).splitlines()
    assert not any(all(cell in line for cell in cells[0]) for line in shown)


STORED = ("20261129T121757Z-documents", "20261201T004410Z-limits", "20261201T124959Z-nightly")
WORDS = st.text("abc123 ./", max_size=24).map(str.strip)
VIEWS = {"all": sections, "documents": reproduction, "ladder": ladder, "limits": limits, "compilers": of_run}


@cache
def stored(run: str) -> Run:
    return load(ROOT / "results/reference" / run)


@pytest.mark.parametrize("run", STORED)
@pytest.mark.parametrize("view", VIEWS)
def test_a_terminal_of_any_width_breaks_no_name_and_no_number(run: str, view: str) -> None:
    result = VIEWS[view](stored(run))
    for width in (80, 100, 200):
        shown = on_terminal(result, width)
        assert max(map(cell_len, shown.splitlines()), default=0) <= width
        words = {word for section in result for line in section.cells for cell in line[:1] for word in cell.split()}
        assert not [word for word in words if word not in shown.split()]
        if width == 200:
            continue
        figures = {word for section in result for line in section.cells for cell in line for word in cell.split()}
        wide = {
            word
            for section in result
            for line in section.cells
            for cell, column in zip(line, section.columns, strict=True)
            if column.wide
            for word in cell.split()
        }
        assert not [word for word in figures - wide if word not in shown]


@given(
    st.lists(
        st.lists(st.text("abc123 ./", max_size=24).map(str.strip), min_size=9, max_size=9), min_size=1, max_size=4
    ),
    st.lists(st.booleans(), min_size=9, max_size=9),
)
def test_what_does_not_fit_moves_below_and_nothing_is_lost(cells: list[list[str]], numeric: list[bool]) -> None:
    columns = [Column(f"column{place}", numeric=number) for place, number in enumerate(numeric)]
    shown = on_terminal([Section("heading", columns, cells)])
    words = {word for line in cells for cell in line for word in cell.split()}
    assert not [word for word in words if word not in shown.replace(":", " ").replace(";", " ").split()]


def test_what_moves_below_names_the_line_that_it_is_of() -> None:
    """Two blocks of a kernel are told apart, although the check of each does not fit."""
    columns = [Column(title, numeric=title == "ms") for title in ("kernel", "block", "ms", "✓")]
    cells = [["copyGmem", "16x16", "0.1234", "✓"], ["copyGmem", "32x32", "0.1234", "wrong"]]
    shown = on_terminal([Section("heading", columns, cells)], 24)
    for _, block, _, sign in cells:
        (line,) = (line for line in shown.splitlines() if line.endswith(sign))
        assert line.startswith(f"copyGmem {block}:")


@pytest.mark.parametrize(
    ("samples", "how"),
    [
        (1, "too few for an interval: 1 sample"),
        (2, "too few for an interval: 2 samples"),
        (11, "±4.0 % from 11"),
    ],
)
def test_a_case_that_did_not_converge_names_its_interval_if_it_has_one(rows: Rows, samples: int, how: str) -> None:
    (row,) = rows({"memcpy": [1.0] * samples})
    (note,) = notes([replace(row, converged=False, precision=0.04, within_cache=None)])
    assert f"not converged ({how}" in note


@pytest.mark.parametrize("run", ["20261126T162541Z-tensor", "20261201T004410Z-limits"])
def test_no_two_lines_of_the_limits_are_of_the_same_conditions(run: str) -> None:
    for section in limits(load(ROOT / "results/reference" / run)):
        best = [column.title for column in section.columns].index("best")
        conditions = [tuple(cells[:best]) for cells in section.cells]
        assert len(conditions) == len(set(conditions)), section.heading


def test_the_limits_say_which_of_their_times_were_disturbed(rows: Rows) -> None:
    small, large = (rows({"copyGmem": [2.0] * 3, "transposeSmem": [1.0] * 3, "memcpy": [0.5] * 3}, n=n) for n in (8, 9))
    large[1:] = [replace(row, throttle_reasons="sw_power_cap") for row in large[1:]]
    small[0] = replace(small[0], throttle_reasons="hw_thermal_slowdown")  # not shown, and so not said
    (section,) = limits(Run([*small, *large], RUN))
    assert section.notes == [
        "transposeSmem 32x32 9×9, memcpy 32x32 9×9: the GPU throttled while they were measured (sw_power_cap)"
    ]


def test_where_a_gpu_pays_says_which_times_have_not_converged(rows: Rows) -> None:
    cpu = [row for n in (8, 9) for row in rows({"cpu": [5e5] * 9}, problem="matmul", device="cpu", n=n, block=None)]
    slow, fast = (rows({"naive": [time] * 9}, problem="matmul", n=n)[0] for n, time in ((8, 3.0), (9, 2.0)))
    fast = replace(fast, precision=0.028, converged=False)
    (section,) = where_it_pays(Run([*cpu, slow, fast], RUN))
    assert section.notes == ["naive 32x32 9×9×9: not converged (±2.8 % from 9 samples)"]


def test_products_whose_b_lies_otherwise_have_tables_of_their_own(rows: Rows) -> None:
    by_rows = rows(PRODUCTS, problem="matmul", n=512)
    by_columns = [replace(row, b_layout="columns") for row in by_rows]
    result = groups([*by_rows, *by_columns])
    assert result == [by_rows, by_columns]
    assert [subject(group[0]) for group in result] == [
        f"matrix product 512×512×512 float32{how} · warm cache" for how in ("", ", B by columns")
    ]


@pytest.mark.parametrize(
    ("dtype", "inputs", "distribution"),
    [("float32", "uniform", ""), ("float32", "zeros", ", inputs zeros")]
    + [("bfloat16", inputs, f", inputs {inputs}") for inputs in ("normal", "uniform", "zeros")],
)
def test_a_table_says_how_inputs_are_distributed_unless_all_of_the_type_are_uniform(
    rows: Rows, dtype: str, inputs: str, distribution: str
) -> None:
    row = replace(rows(PRODUCTS, problem="matmul", n=512)[0], dtype=dtype, inputs=inputs)
    assert subject(row) == f"matrix product 512×512×512 {dtype}{distribution} · warm cache"


def test_no_records_are_an_empty_csv() -> None:
    assert csv([]) == ""
    assert csv([{"name": "a", "share": 0.5, "known": None, "ok": True}]) == "name,share,known,ok\na,0.5,,true\n"
