"""Bad input: the exit code, and one line on stderr that says what is wrong."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Program = Callable[..., subprocess.CompletedProcess[str]]

SWEEP = '[[sweep]]\nproblem = "transpose"\ndevice = "cpu"\nn = 4\n'
LONG = "n" * 256
FILES = {
    "good.toml": SWEEP,
    "typo.toml": f"sampels = 3\n{SWEEP}",
    "typo-in-sweep.toml": f"{SWEEP}blok = 3\n",
    "broken.toml": "[[sweep",
    "taken.csv": "a,b\n1,2\n",
    "list.toml": '[[sweep]]\nproblem = ["transpose"]\n',
    "deep.toml": f"x = {'[' * 3000}",
    "digits.toml": f"seed = {'9' * 5000}\n{SWEEP}",
    "long.toml": f"seed = '{'9' * 200_000}'\n{SWEEP}",
}


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with good and bad files."""
    folder = tmp_path_factory.mktemp("here")
    for name, text in FILES.items():
        (folder / name).write_text(text)
    return folder


def refused(ran: subprocess.CompletedProcess[str], code: int, *words: str) -> None:
    """The run ended with this code and one line on stderr that holds these words."""
    assert (ran.returncode, ran.stdout) == (code, "")
    (line,) = ran.stderr.splitlines()
    assert line.startswith("smembench: ")
    assert [word for word in words if word.lower() not in line.lower()] == []
    assert len(line) < 2500
    assert line.isprintable()


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("transpose --n 0", "--n '0'"),
        ("transpose --n -4", "--n '-4'"),
        ("transpose --n many", "--n 'many'"),
        ("transpose --n 8:4", "--n '8:4'"),
        ("transpose --n 4 --nx 4", "nx and ny"),
        ("matmul --k 1.5", "--k '1.5'"),
        ("matmul --n 100 --stride 99", "stride 99 100"),
        ("transpose --pad-width 0", "--pad-width '0'"),
        ("transpose --block 32", "--block '32'"),
        ("transpose --block 0x4", "--block '0x4'"),
        ("transpose --kernel naiveGem", "--kernel 'naiveGem' naiveGmem?"),
        ("transpose --kernel tiled", "'tiled' transpose"),
        ("transpose --dtype float31", "--dtype 'float31' float32?"),
        ("matmul --dtype int32", "'int32' matmul"),
        ("transpose --cache hot", "--cache 'hot'"),
        ("transpose --device tpu", "--device 'tpu'"),
        ("transpose --samples 1", "--samples 1"),
        ("transpose --samples few", "--samples 'few'"),
        ("explain tiled --n 0", "--n 0"),
        ("transpose --max-seconds 0", "--max-seconds"),
        ("transpose --seed -1", "--seed"),
        ("transpose --sise 4", "--sise"),
        ("transpoze", "'transpoze'"),
        ("matmul --kernel tiled --block 8x4 --device cpu", "nothing to measure"),
        ("transpose --n 1000000000 --device cpu", "memory"),
        ("run", "CONFIG"),
        ("run none.toml", "none.toml no such file"),
        ("run typo.toml", "typo.toml 'sampels' samples?"),
        ("run typo-in-sweep.toml", "typo-in-sweep.toml 'blok' block?"),
        ("run broken.toml", "broken.toml TOML"),
        ("run list.toml", "list.toml problem 'transpose'"),
        ("run deep.toml", "deep.toml TOML"),
        ("run digits.toml", "digits.toml"),
        ("run long.toml", "long.toml seed integer"),
        (f"run good.toml --set n={'[' * 3000}", "n integer"),
        ("run /dev/zero", "/dev/zero"),
        (f"run {LONG}", "name too long"),
        (f"transpose --n {'9' * 5000}", "--n integer"),
        (f"transpose --block {'9' * 5000}x4", "--block"),
        (f"transpose --device cuda:{'9' * 5000}", "--device"),
        ("transpose --sise\x1b[31m", "--sise\\x1b[31m"),
        ("transpose --device cpu --timeout 1e300", "--timeout"),
        (f"transpose --device cpu --csv {LONG}", "--csv name too long"),
        (f"show {LONG}", "name too long"),
        ("show /dev/zero", "/dev/zero"),
        ("run good.toml --set nn=3", "--set 'nn=3'"),
        ("run good.toml --output good.toml/results", "--output good.toml/results"),
        ("transpose --device cpu --csv good.toml/x.csv", "--csv good.toml/x.csv"),
        ("transpose --device cpu --csv taken.csv", "--csv taken.csv --force"),
        ("transpose --device cpu --csv .", "--csv folder"),
        ("show none", "none"),
        ("show taken.csv", "taken.csv column missing"),
    ],
)
def test_wrong_usage_is_refused_before_anything_is_measured(
    program: Program, here: Path, command: str, words: str
) -> None:
    refused(program(*command.split(), cwd=here), 2, *words.split())
    assert {path.name: path.read_text() for path in here.iterdir()} == FILES


@pytest.mark.parametrize("environment", [{}, {"NUMBA_ENABLE_CUDASIM": "1"}], ids=["no GPU", "simulator"])
@pytest.mark.parametrize("device", ["cuda", "cuda:1"])
def test_a_gpu_that_is_not_there_is_its_own_exit_code(
    program: Program, environment: dict[str, str], device: str
) -> None:
    refused(program("transpose", "--device", device, **environment), 4, "device cuda", *environment)
