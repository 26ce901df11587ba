"""Random arguments, configs, kernel files and interrupts: one line, a documented exit code, no traceback, no hang.

``SMEMBENCH_CAMPAIGN`` multiplies how many are tried.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

import pytest
import typer.main

from campaign import CAMPAIGN, chance
from conftest import ROOT, Program, heed_ctrl_c
from smembench.cli.app import app
from smembench.model.device import Limits
from smembench.model.errors import DeviceUnavailable, UsageError
from smembench.run.config import AXES, Config, Sweep, from_toml
from smembench.run.plan import Plan

CODES = {0, 1, 2, 3, 4, 130}
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
WORDS = """- -- 0 1 8 -1 3.5 1e999 nan 1,2 8:4 ٣ 1:9999 1:9:*2 8x8 0x0 99999x99999 float32 int7 cpu cuda:9 cold last:3
    naiveGmem transpose matmul * × [[[ ' n=8 samples=x good.toml good.toml/x run none fifo loop dangling . ~ {} %s%n
    /dev/null /dev/full /dev/zero $(id) results"""
LONG = ("9" * 30, "9" * 5000, "x" * 100_000, "d" * 256, "/".join(["d" * 200] * 30), "n=" + "[" * 3000)
VALUES = (*WORDS.split(), *LONG, "", "\x1b[31m", "a\nb", "\u202e")
WILD = r"""true -1 0 8 1.5 nan inf [] [8,16] [[8]] [true] {} {a="b"} "" 1979-05-27 "transpose" "matmul" ["cpu"] "8x8"
    "1:9" " "naiveGmem" "\u001b[31m" "cuda:7" "float64" ["warm","cold"] 0x1f 1e400"""
KERNEL = """import sys
from smembench.kernels.program import HostFunction
from smembench.kernels.kernel import Kernel
def build(case):
    print("built")
    def transpose(out, inp, nx, ny):
        out[:] = inp.reshape(int(ny), int(nx)).T.ravel()
    return HostFunction(transpose)
KERNEL = Kernel(problem="transpose", name="mine", kind="cpu", build=build, computes="transpose")
"""
CHANGES = "mine:naiveGmem transpose:transpoze cpu:tpu mine:\\x1b[31m build=build,: HostFunction(:(case,"
WRONG = (
    *("def x(:", "import nothere", "raise SystemExit(0)", "import os; os._exit(0)", 'KERNEL = "hello"', "\0", ""),
    *("KERNELS = None", "import os; os.kill(os.getpid(), 11)", "def f(): f()\nf()", "raise BaseException"),
    *(KERNEL.replace(old, new) for old, new in (change.split(":") for change in CHANGES.split())),
)


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a config, a stored run, links and a FIFO."""
    folder = tmp_path_factory.mktemp("here")
    (folder / "good.toml").write_text('[[sweep]]\nproblem = "transpose"\ndevice = "cpu"\nn = 4\n')
    shutil.copytree(min((ROOT / "results" / "reference").glob("*-documents")), folder / "run")
    (folder / "loop").symlink_to("loop")
    (folder / "dangling").symlink_to("nothing")
    os.mkfifo(folder / "fifo")
    return folder


def check(ran: subprocess.CompletedProcess[str]) -> None:
    """It ended as it should: what it says is one line each, fit for a terminal."""
    message = f"{[word[:200] for word in ran.args]}: {ran.returncode}\n{ran.stderr[-3000:]}"
    assert ran.returncode in CODES, message
    assert not re.search("Traceback|internal error|Exception ignored", ran.stderr), message
    assert not RAW.search(ran.stderr), message
    if ran.returncode == 2:
        assert len([line for line in ran.stderr.splitlines() if line.startswith("smembench: ")]) == 1, message


def arguments(rng: random.Random) -> list[str]:
    """A command with some of its options, and values that some of them do not take; it measures nothing."""
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    name = rng.choice([name for name in commands if name != "baseline"])
    words = [name]
    for option in rng.sample(commands[name].params, min(rng.randrange(5), len(commands[name].params))):
        if set(option.opts) & {"--wait", "--aa", "--measure", "--timing", "--help"}:
            continue
        words += [rng.choice(option.opts)] if option.opts[0].startswith("-") else []
        words += [] if getattr(option, "is_flag", False) else [rng.choice(VALUES)]
    if any("--dry-run" in option.opts for option in commands[name].params):
        words.append("--dry-run")
    return [*words, rng.choice(VALUES)] if rng.random() < 0.2 else words


def test_random_arguments(program: Program, here: Path) -> None:
    rng = chance("arguments")
    for _ in range(15 * CAMPAIGN):
        check(program(*(word for word in arguments(rng) if "\0" not in word), cwd=here))


def toml(rng: random.Random) -> str:
    """A config of some keys, with values of all types."""
    wild = [*WILD.split(), "9" * 19, "9" * 5000, "[" * 3000, f'"{"x" * 1000}"']
    tame = {"problem": '"transpose"', "device": '"cpu"'}
    lines = [f"{key} = {rng.choice(wild)}" for key in rng.sample([*Config.model_fields, "x", "a.b"], rng.randrange(3))]
    for _ in range(rng.randrange(3)):
        keys = rng.sample([*Sweep.model_fields, *AXES, "y"], rng.randrange(6))
        given = {**tame, **{key: rng.choice(wild) for key in keys}}
        lines += [rng.choice(["[[sweep]]"] * 9 + ["[sweep]"]), *(f"{key} = {value}" for key, value in given.items())]
    text = "\n".join(lines)
    cut = rng.randrange(len(text) + 1)
    return text if rng.random() < 0.8 else text[:cut] + rng.choice("\0\x7f\"'[]{}=\n") + text[cut:]


def test_random_configs(tmp_path: Path) -> None:
    rng, names = chance("configs"), {"auto": "cpu", "cpu": "cpu", **{f"cuda:{n}": "cpu" for n in range(10)}}
    taken = 0
    for _ in range(150 * CAMPAIGN):
        path = tmp_path / "random.toml"
        path.write_text(toml(rng))
        try:
            taken += len(list(islice(Plan.of(from_toml(path), names).cases({"cpu": Limits(free_bytes=2**34)}), 50)))
        except (UsageError, DeviceUnavailable):
            continue
        except Exception as error:
            raise AssertionError(path.read_text()[:3000]) from error
    assert taken


def test_every_mistake_of_a_kernel_file_is_one_line_and_the_package_goes_on(program: Program, tmp_path: Path) -> None:
    imported = WRONG[:-1]  # the last one's only mistake is what build returns
    paths = [tmp_path / f"wrong{number}.py" for number, _ in enumerate(imported)]
    for path, text in zip(paths, imported, strict=True):
        path.write_text(text)
    ran = program("list", SMEMBENCH_KERNELS=os.pathsep.join(map(str, paths)))
    check(ran)
    notes = [line for line in ran.stderr.splitlines() if line != "built"]
    assert [str(path) in note for path, note in zip(paths, notes, strict=True)] == [True] * len(paths)
    assert (ran.returncode, "naiveGmem" in ran.stdout) == (0, True)


def kernel_files(rng: random.Random) -> Iterator[str]:
    """Files with known mistakes, then a good one with another word."""
    yield from rng.sample(WRONG, 2 if CAMPAIGN == 1 else len(WRONG))
    for _ in range(2 * CAMPAIGN):
        words = re.split(r"(\W)", KERNEL)
        words[rng.randrange(len(words))] = rng.choice(["", "x", "(", "None", "\n"])
        yield "".join(words)


def test_random_kernel_files(program: Program, here: Path) -> None:
    path = here / "mine.py"
    for text in kernel_files(chance("kernel files")):
        path.write_text(text)
        # The server's children import it themselves: what was imported before is not asked again.
        every = program("transpose", "--device", "cpu", "--n", 4, "--dry-run", cwd=here, SMEMBENCH_KERNELS=path)
        check(every)
        assert every.returncode in (0, 2), text
        assert "built" not in every.stdout
        listed = program("list", cwd=here, SMEMBENCH_KERNELS=path)
        check(listed)
        assert (listed.returncode, "naiveGmem" in listed.stdout) == (0, True), text


COMMANDS = (
    *("list", "--help", "explain transposeSmem", "show run", "tune matmul --n 16 --device cpu --kernel cpu --quick"),
    "transpose --device cpu --n 16,17 --kernel naiveGmem --quick --csv {}/out.csv --force",
)


@pytest.mark.slow
def test_random_interrupts(here: Path, tmp_path: Path) -> None:
    rng = chance("interrupts")
    for number in range(3 * CAMPAIGN):
        words = rng.choice(COMMANDS).format(tmp_path).split()
        with subprocess.Popen(
            [sys.executable, "-m", "smembench", *words],
            cwd=here,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=heed_ctrl_c,
        ) as process:
            time.sleep(rng.uniform(0.05, 4))
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGINT)
            try:
                out, err = process.communicate(timeout=60)
            except subprocess.TimeoutExpired:
                process.kill()
                raise AssertionError(f"{number}: {words} hangs") from None
        if "<frozen site>" in err or process.returncode == -signal.SIGINT:
            continue  # Python had not begun to run the program
        check(subprocess.CompletedProcess(words, process.returncode, out, err))
        assert process.returncode in (0, 130), err
