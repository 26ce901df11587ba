"""``smembench report`` and ``show --latex`` as users run them, and the report in a browser where there is one."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from conftest import DOCUMENTS, ROOT, Program
from smembench.report.charts import THEMES

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


browser = pytest.mark.skipif(BROWSER is None, reason="there is no Chromium")
NIGHTS = sorted((ROOT / "results/reference/slowdown").iterdir())[-4:]


@pytest.fixture(scope="module")
def report(program: Program, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a committed run."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    ran = program("report", DOCUMENTS, "-o", path)
    assert (ran.returncode, ran.stdout) == (0, ""), ran.stderr
    assert ran.stderr == f"wrote {path}\n"
    return path


@pytest.fixture(scope="module")
def nights(program: Program, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a folder of runs."""
    path = tmp_path_factory.mktemp("nights") / "report.html"
    program("report", NIGHTS[0].parent, "-o", path)
    return path


def test_an_existing_report_is_kept(program: Program, report: Path) -> None:
    before = report.stat()
    ran = program("report", DOCUMENTS, "-o", report)
    assert ran.returncode == 2
    assert ran.stderr == f"smembench: -o {report}: already exists; choose another name or add --force\n"
    assert report.stat() == before


def test_a_report_to_stdout_is_the_same_and_a_run_counts_once(program: Program, report: Path) -> None:
    ran = program("report", DOCUMENTS, DOCUMENTS.parent / ".." / "reference" / DOCUMENTS.name, "-o", "-")
    assert ran.stderr == ""
    assert ran.stdout == report.read_text(encoding="utf-8")


def test_single_figures_by_name(program: Program, tmp_path: Path) -> None:
    ran = program(
        "report", DOCUMENTS, "--png", tmp_path / "png", "--svg", tmp_path / "svg", "--figure", "rate-*1024x*,roofline-*"
    )
    assert (ran.returncode, ran.stdout) == (0, ""), ran.stderr
    names = {"rate-matmul-1024x1024x1024-float32-warm", "roofline-cuda-0"}
    for kind, begin in (("png", b"\x89PNG"), ("svg", b"<svg")):
        files = list((tmp_path / kind).iterdir())
        assert {file.stem for file in files} == names
        assert all(file.suffix == f".{kind}" and file.read_bytes().startswith(begin) for file in files)
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".html"] == []


def test_without_the_extra_the_way_out_is_named(tmp_path: Path) -> None:
    # Modules set to None cannot be imported; find_spec says so too.
    code = "import sys; sys.modules['vl_convert'] = None; from smembench.cli.app import main; main()"
    ran = subprocess.run(
        [sys.executable, "-c", code, "report", str(DOCUMENTS), "-o", str(tmp_path / "report.html")],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert ran.returncode == 2
    assert ran.stderr == "smembench: report needs vl_convert: pip install 'smembench[report]'\n"


def test_a_folder_of_runs_is_read_whole(program: Program, tmp_path: Path) -> None:
    folder = tmp_path / "results"
    for night in NIGHTS:
        shutil.copytree(night, folder / "nights" / night.name)
    (folder / "nights" / NIGHTS[0].name / "cases.csv").write_text("torn")
    ran = program("report", folder, "-o", tmp_path / "report.html")
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr.startswith(f"skipped {folder / 'nights' / NIGHTS[0].name}")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert all(night.name in text for night in NIGHTS[1:])
    assert "over 3 runs" in text


def test_of_what_a_star_gives_only_runs_are_read(program: Program, tmp_path: Path) -> None:
    results = tmp_path / "results"
    shutil.copytree(NIGHTS[0], results / NIGHTS[0].name)
    (results / "accepted.json").write_text('{"accepted": []}')
    (results / "nightly.jsonl").write_text("{}\n")
    (results / "nights.csv").write_text("a,b\n1,2\n")
    (results / "charts").mkdir()
    shutil.copytree(NIGHTS[0], results / "zcopy")
    every = sorted(results.iterdir())
    made = program("report", *every, "-o", tmp_path / "report.html")
    assert made.returncode == 0, made.stderr
    assert [line.partition(":")[0] for line in made.stderr.splitlines()[:-1]] == [
        f"skipped {results / name}" for name in ("accepted.json", "charts", "nightly.jsonl", "nights.csv", "zcopy")
    ]
    for paths in (["accepted.json"], ["accepted.json", "charts"], [NIGHTS[0].name, "typo"]):
        refused = program("report", *(results / path for path in paths), "-o", tmp_path / "other.html")
        assert (refused.returncode, len(refused.stderr.splitlines()[-1:])) == (2, 1), refused.stderr


def test_each_gpu_of_a_report_is_compared_with_its_own_earlier_run(program: Program, tmp_path: Path) -> None:
    ran = program("report", ROOT / "results/reference/two-gpus", "-o", tmp_path / "report.html")
    assert ran.returncode == 0, ran.stderr
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert [f"-fleet on {gpu}" in page for gpu in ("cuda:0", "cuda:1")] == [True, True]


def test_a_folder_without_runs_is_refused_in_one_line(program: Program, tmp_path: Path) -> None:
    ran = program("report", tmp_path, "-o", tmp_path / "report.html")
    assert (ran.returncode, ran.stderr.count("\n")) == (2, 1)
    assert str(tmp_path) in ran.stderr


def browse(path: Path, profile: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Open a page without a window, and without anything that a browser does for itself; give it time to draw."""
    quiet = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync")
    alone = ("--disable-background-networking", "--disable-component-update", f"--user-data-dir={profile}")
    output = ("--enable-logging=stderr", "--v=0", "--virtual-time-budget=20000", "--dump-dom")
    return subprocess.run(
        [str(BROWSER), *quiet, *alone, *output, *arguments, path.as_uri()],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=True,
    )


def drive(report: Path, folder: Path, script: str, *arguments: str, library: str = "") -> Any:
    """What an asynchronous function with this body returns in the page, once its first chart is drawn."""
    # The page's own policy forbids other scripts, so the copy that is driven has none.
    text = re.sub(r"<meta http-equiv[^>]*>", "", report.read_text(encoding="utf-8"))
    waits = (
        "const pause = (ms) => new Promise((done) => setTimeout(done, ms));"
        "while (!document.querySelector('.plot svg, #banks rect')) await pause(50);"
    )
    result = "document.body.append(Object.assign(document.createElement('pre'), {id: 'found', textContent}));"
    driven = folder / "driven.html"
    called = f"(async () => {{ {waits} {script} }})().catch(String)"
    run = f"{called}.then((value) => {{ const textContent = JSON.stringify(value); {result} }})"
    begin, _, end = text.rpartition("</body>")
    driven.write_text(f"{begin}<script>{library}</script><script>{run}</script></body>{end}", encoding="utf-8")
    shown = browse(driven, folder / "profile", *arguments)
    (value,) = re.findall(r'<pre id="found">(.*?)</pre>', shown.stdout, flags=re.DOTALL)
    return json.loads(unescape(value))


@browser
def test_a_browser_shows_it_without_a_complaint(report: Path, tmp_path: Path) -> None:
    opened = browse(report, tmp_path / "profile")
    assert "CONSOLE" not in opened.stderr
    assert opened.stdout.count("<svg") >= 1
    assert opened.stdout.count("<figure") > 5


@browser
@pytest.mark.parametrize("mode", ["light", "dark"])
def test_a_browser_draws_it_light_and_dark(report: Path, tmp_path: Path, mode: str) -> None:
    flags = ("--force-dark-mode",) if mode == "dark" else ()
    script = """
        const parts = [document.body, document.querySelector('.plot svg')];
        return parts.map((part) => getComputedStyle(part).backgroundColor);
    """
    paper = THEMES[mode]["paper"]
    assert drive(report, tmp_path, script, *flags) == 2 * [
        f"rgb({', '.join(str(part) for part in bytes.fromhex(paper[1:]))})"
    ]


@browser
def test_a_table_sorts_and_filters_and_explains_its_columns(nights: Path, tmp_path: Path) -> None:
    script = """
        const table = [...document.querySelectorAll('table')].find((one) => one.tBodies[0].rows.length >= 8);
        const button = [...table.tHead.querySelectorAll('button')].find((one) => one.closest('th.number'));
        const place = button.closest('th').cellIndex;
        const column = () => [...table.tBodies[0].rows].map((row) => row.cells[place].textContent);
        button.click();
        const up = column();
        const sorted = button.closest('th').ariaSort;
        button.click();
        const down = column();
        const filter = table.closest('.scroll').previousElementSibling?.querySelector('input');
        const first = table.tBodies[0].rows[0].cells[0].textContent;
        let left = null;
        if (filter) {
          filter.value = first;
          filter.dispatchEvent(new Event('input'));
          left = [...table.tBodies[0].rows].filter((row) => !row.hidden).map((row) => row.textContent.includes(first));
        }
        const explained = document.querySelector('th [aria-describedby]');
        explained.focus();
        explained.dispatchEvent(new Event('focus'));
        const tip = document.getElementById('tip');
        const said = [tip.hidden, tip.textContent];
        dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape'}));
        return {up, down, sorted, left, rows: table.tBodies[0].rows.length, said, after: tip.hidden};
    """
    result = drive(nights, tmp_path, script)
    numbers = [float(text) for text in result["up"] if re.match(r"[\d.]+", text)]
    assert numbers == sorted(numbers)
    assert len(numbers) > 1
    assert [text for text in result["down"] if text] == [text for text in result["up"] if text][::-1]
    assert result["sorted"] == "ascending"
    assert 0 < len(result["left"]) < result["rows"]
    assert all(result["left"])
    assert result["said"][0] is False
    assert len(result["said"][1]) > 20
    assert result["after"] is True


@browser
def test_a_history_zooms_and_its_charts_are_saved(nights: Path, tmp_path: Path) -> None:
    script = """
        const figure = document.getElementById('history');
        const labels = () => [...figure.querySelectorAll('svg text')].map((text) => text.textContent).join(' ');
        const before = labels();
        const plot = figure.querySelector('svg .background');
        const {left, top, width, height} = plot.getBoundingClientRect();
        const where = {clientX: left + width / 2, clientY: top + height / 2, bubbles: true, cancelable: true};
        const wheel = (ctrlKey) => plot.dispatchEvent(new WheelEvent('wheel', {...where, deltaY: -400, ctrlKey}));
        wheel(false);
        await pause(300);
        const scrolled = labels();
        wheel(true);
        await pause(300);
        const zoomed = labels();
        const saved = [];
        HTMLAnchorElement.prototype.click = function () { saved.push([this.download, this.href.slice(0, 10)]); };
        for (const button of figure.querySelectorAll('[data-save]')) { button.click(); await pause(1000); }
        return {kept: before === scrolled, zoomed: before !== zoomed, saved};
    """
    result = drive(nights, tmp_path, script)
    assert (result["kept"], result["zoomed"]) == (True, True)
    assert [name for name, _ in result["saved"]] == ["history.svg", "history.png"]
    assert all(link.startswith(("blob:", "data:")) for _, link in result["saved"])


@browser
@pytest.mark.parametrize("width", [400, 1280])
@pytest.mark.parametrize("kind", ["report", "explanation"])
def test_it_fits_narrow_screens_and_axe_finds_nothing(
    kind: str, width: int, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """With AXE, the path of axe-core's axe.min.js, it also looks for violations of WCAG 2.1 AA."""
    script = """
        for (const part of document.querySelectorAll('details')) part.open = true;
        await pause(2000);
        const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa'];
        const run = globalThis.axe ? (await axe.run({runOnly: tags})).violations.map((one) => one.id) : [];
        return [document.documentElement.scrollWidth - innerWidth, run];
    """
    library = Path(os.environ["AXE"]).read_text(encoding="utf-8") if "AXE" in os.environ else ""
    beyond, violations = drive(
        request.getfixturevalue(kind), tmp_path, script, f"--window-size={width},900", library=library
    )
    assert beyond <= 0
    assert violations == []


@pytest.fixture(scope="module")
def explanation(program: Program, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page that explains a padded transpose."""
    path = tmp_path_factory.mktemp("explain") / "banks.html"
    ran = program("explain", "transposeSmemPad", "--block", "32x32", "--pad-width", 0, "--html", path)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", f"wrote {path}\n")
    return path


def test_an_explanation_is_one_file_of_every_pad(program: Program, explanation: Path) -> None:
    text = explanation.read_text(encoding="utf-8")
    assert not re.search(r"(src|href)=\"(?!#)", text)
    assert len(text) < 200_000
    assert "What the columns mean" not in text
    (data,) = re.findall(r'<script type="application/json" id="steps">(.*?)</script>', text)
    pads = {int(pad): accesses[1] for pad, accesses in json.loads(data)["pads"].items()}
    assert {pad: len(load["waves"]) for pad, load in pads.items()} == {0: 32, 1: 1, 2: 2, 3: 1, 4: 4}
    assert {pad: load["columns"] for pad, load in pads.items()} == {pad: 32 + pad for pad in range(5)}
    ran = program("explain", "transposeSmemPad", "--html", explanation)
    assert ran.returncode == 2
    assert "--force" in ran.stderr


def test_an_explanation_opens_where_there_is_something_to_step_through(program: Program, tmp_path: Path) -> None:
    path = tmp_path / "banks.html"
    program("explain", "transposeSmemPad", "--block", "32x32", "--html", path)
    text = path.read_text(encoding="utf-8")
    (data,) = re.findall(r'<script type="application/json" id="steps">(.*?)</script>', text)
    steps = json.loads(data)
    assert max(len(access["waves"]) for access in steps["pads"][str(steps["pad"])]) == 32
    assert "move Pad to 1" in text
    assert "<span hidden>" not in text


@pytest.mark.parametrize("pad", [0, 2])
def test_the_wavefronts_of_a_page_are_those_of_the_figures(program: Program, explanation: Path, pad: int) -> None:
    text = explanation.read_text(encoding="utf-8")
    (data,) = re.findall(r'<script type="application/json" id="steps">(.*?)</script>', text)
    drawn = json.loads(data)["pads"][str(pad)]
    explained = program("explain", "transposeSmemPad", "--block", "32x32", "--pad-width", pad, "--json")
    figures = ("kind", "source", "wavefronts_per_request", "ideal_wavefronts_per_request")
    assert [(access["kind"], access["source"], len(access["waves"]), access["ideal"]) for access in drawn] == [
        tuple(access[figure] for figure in figures) for access in json.loads(explained.stdout)["shared"]
    ]
    for access in drawn:
        assert sorted(lane for lanes in access["waves"] for lane in lanes) == list(range(32))
        for lanes in access["waves"]:
            words = {word for lane in lanes for word in access["words"][lane]}
            assert len({word % 32 for word in words}) == len(words)


def test_a_kernel_without_shared_memory_has_no_banks_to_draw(program: Program, tmp_path: Path) -> None:
    ran = program("explain", "naiveGmem", "--html", tmp_path / "banks.html")
    assert (ran.returncode, list(tmp_path.iterdir())) == (2, [])
    assert "no thread of naiveGmem accesses shared memory" in ran.stderr


@browser
def test_an_explanation_steps_through_wavefronts_and_pads(explanation: Path, tmp_path: Path) -> None:
    script = """
        const of = (id) => document.getElementById(id);
        const lines = () => document.querySelectorAll('#banks line').length;
        const seen = [of('said').textContent];
        of('next').click();
        seen.push(of('said').textContent, lines());
        of('play').click();
        await pause(1000);
        of('play').click();
        await pause(1000);
        seen.push(of('said').textContent, of('play').textContent);
        of('pad').value = 1;
        of('pad').dispatchEvent(new Event('input'));
        seen.push(of('said').textContent, lines(), of('next').disabled, of('waves').rows.length);
        return seen;
    """
    first, second, lane, played, play, padded, lanes, last, rows = drive(explanation, tmp_path, script)
    assert first.startswith("Wavefront 1 of 32")
    assert second.startswith("Wavefront 2 of 32")
    assert "bank 0 serves the load of lane 1" in second
    assert (played.split(" of")[0], play) == ("Wavefront 3", "▶ Play")
    assert padded.startswith("Wavefront 1 of 1")
    assert (lane, lanes, last, rows) == (1, 32, True, 1)
