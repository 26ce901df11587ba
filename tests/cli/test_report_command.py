"""``smembench report`` and ``show --latex`` as users run them, and the report in a browser where there is one."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import DOCUMENTS, ROOT, Program

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@pytest.fixture(scope="module")
def report(program: Program, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a committed run."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    ran = program("report", DOCUMENTS, "-o", path)
    assert (ran.returncode, ran.stdout) == (0, ""), ran.stderr
    assert ran.stderr == f"wrote {path}\n"
    return path


def test_an_existing_report_is_kept(program: Program, report: Path) -> None:
    before = report.stat()
    ran = program("report", DOCUMENTS, "-o", report)
    assert ran.returncode == 2
    assert ran.stderr == f"smembench: -o {report}: is there already and is kept; choose another name or add --force\n"
    assert report.stat() == before


def test_a_report_to_stdout_is_the_same_and_a_run_counts_once(program: Program, report: Path) -> None:
    ran = program("report", DOCUMENTS, DOCUMENTS.parent / ".." / "reference" / DOCUMENTS.name, "-o", "-")
    assert ran.stderr == ""
    assert ran.stdout == report.read_text(encoding="utf-8")


def test_single_figures_by_name(program: Program, tmp_path: Path) -> None:
    ran = program(
        "report", DOCUMENTS, "--png", tmp_path / "png", "--svg", tmp_path / "svg", "--figure", "ladder-m*,roofline-*"
    )
    assert (ran.returncode, ran.stdout) == (0, ""), ran.stderr
    names = {"ladder-matmul-1024x1024x1024-float32-warm", "roofline-cuda-0"}
    for kind, begin in (("png", b"\x89PNG"), ("svg", b"<?xml")):
        files = list((tmp_path / kind).iterdir())
        assert {file.stem for file in files} == names
        assert all(file.suffix == f".{kind}" and file.read_bytes().startswith(begin) for file in files)
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".html"] == []


def test_without_the_extra_the_way_out_is_named(tmp_path: Path) -> None:
    # Modules set to None cannot be imported; find_spec says so too.
    code = "import sys; sys.modules['matplotlib'] = None; from smembench.cli.app import main; main()"
    ran = subprocess.run(
        [sys.executable, "-c", code, "report", str(DOCUMENTS), "-o", str(tmp_path / "report.html")],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert ran.returncode == 2
    assert ran.stderr == 'smembench: report needs matplotlib: pip install "smembench[report]"\n'


def browse(path: Path, profile: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Open a page without a window, and without anything that a browser does for itself."""
    quiet = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync")
    alone = ("--disable-background-networking", "--disable-component-update", f"--user-data-dir={profile}")
    said = ("--enable-logging=stderr", "--v=0", "--window-size=1000,1400")
    return subprocess.run(
        [str(BROWSER), *quiet, *alone, *said, *arguments, path.as_uri()],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=True,
    )


@pytest.mark.skipif(BROWSER is None, reason="there is no Chromium")
def test_a_browser_shows_it_without_a_complaint(report: Path, tmp_path: Path) -> None:
    opened = browse(report, tmp_path / "profile", "--dump-dom")
    assert "CONSOLE" not in opened.stderr
    written = report.read_text(encoding="utf-8")
    for tag in ("table", "caption", "svg", "figure", "details"):
        assert opened.stdout.count(f"<{tag}") == written.count(f"<{tag}") > 2, tag


@pytest.mark.skipif(BROWSER is None, reason="there is no Chromium")
def test_a_browser_draws_it_light_and_dark(report: Path, tmp_path: Path) -> None:
    from matplotlib.image import imread

    brightness = {}
    for mode, flags in (("light", ()), ("dark", ("--force-dark-mode",))):
        picture = tmp_path / f"{mode}.png"
        browse(report, tmp_path / mode, f"--screenshot={picture}", *flags)
        pixels = imread(picture)[..., :3]
        assert pixels.std() > 0.05  # not blank
        brightness[mode] = float(pixels.mean())
    assert brightness["dark"] < 0.4 < 0.7 < brightness["light"]


@pytest.mark.skipif(BROWSER is None, reason="there is no Chromium")
def test_arrow_keys_read_the_values(report: Path, tmp_path: Path) -> None:
    # The page's own policy forbids other scripts, so the copy that is driven has none.
    driven = tmp_path / "driven.html"
    press = (
        "<script>const plot = document.querySelector('.plot'); plot.focus();"
        "for (const key of ['ArrowRight', 'ArrowRight', 'ArrowLeft', 'ArrowLeft'])"
        "{ plot.dispatchEvent(new KeyboardEvent('keydown', {key}));"
        "document.body.append(`[${plot.parentElement.querySelector('.value').textContent}]`); }</script>"
    )
    text = re.sub(r"<meta http-equiv[^>]*>", "", report.read_text(encoding="utf-8"))
    driven.write_text(text.replace("</body>", f"{press}</body>"), encoding="utf-8")
    shown = browse(driven, tmp_path / "profile", "--dump-dom").stdout
    values = re.findall(r'data-value="([^"]*)"', shown.partition("</figure>")[0])
    read = re.findall(r"\[([^\[\]]*)\]", shown.rpartition("</script>")[2])
    assert read == [values[0], values[1], values[0], values[-1]]
