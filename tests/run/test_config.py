from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from smembench.model.case import Block
from smembench.model.errors import UsageError
from smembench.run.config import Config, Sweep, from_data, from_flags, from_stored, from_toml

LAUNCH = '[[sweep]]\nkernel = "mine.cu:add"\n'
SWEEPS = '[[sweep]]\nproblem = "transpose"\n[[sweep]]\nproblem = "matmul"\n'


def read(folder: Path, text: str, *overrides: str) -> Config:
    path = folder / "night.toml"
    path.write_text(text, encoding="utf-8")
    return from_toml(path, overrides)


def flags(**sweep: Any) -> Sweep:
    (result,) = from_flags({"sweep": [{"problem": "transpose", **sweep}]}).sweep
    assert isinstance(result, Sweep)
    return result


def test_defaults(tmp_path: Path) -> None:
    config = read(tmp_path, '[[sweep]]\nproblem = "transpose"')
    assert (config.name, config.seed) == ("night", None)
    assert config.sweep == (Sweep(problem="transpose"),)
    sweep = config.sweep[0]
    assert (sweep.device, sweep.dtype, sweep.cache, sweep.pad_width) == (("auto",), ("float32",), ("warm",), (1,))
    assert (sweep.kernel, sweep.n, sweep.block, sweep.pad) == ((), (), (), None)


@pytest.mark.parametrize(
    ("line", "field", "value"),
    [
        ("n = 512", "n", (512,)),
        ("n = [512, 1024]", "n", (512, 1024)),
        ('n = "512:2048:*2"', "n", (512, 1024, 2048)),
        ('n = [8, "16:18"]', "n", (8, 16, 17, 18)),
        ('block = "32x32,16x8"', "block", (Block(32, 32), Block(16, 8))),
        ('block = ["32x32", "16x8"]', "block", (Block(32, 32), Block(16, 8))),
        ('cache = "WARM,cold"', "cache", ("warm", "cold")),
        ('device = ["cuda", "cuda:0", "cpu"]', "device", ("cuda:0", "cpu")),
        ("pad = true", "pad", True),
        ("pad_width = [1, 2]", "pad_width", (1, 2)),
    ],
)
def test_every_axis_takes_values_lists_and_ranges(tmp_path: Path, line: str, field: str, value: object) -> None:
    assert getattr(read(tmp_path, f'[[sweep]]\nproblem = "transpose"\n{line}').sweep[0], field) == value


@pytest.mark.parametrize("config", sorted(Path(__file__).parents[2].glob("configs/*.toml")), ids=lambda path: path.stem)
def test_the_configs_of_the_project_are_valid(config: Path) -> None:
    assert from_toml(config).name == config.stem


def test_flags_and_files_mean_the_same(tmp_path: Path) -> None:
    values = {"n": "8:32:*2", "block": "4x4", "pad_width": "1,2", "device": "cuda"}
    lines = "\n".join(f'{key} = "{value}"' for key, value in values.items())
    assert flags(**values) == read(tmp_path, f'[[sweep]]\nproblem = "transpose"\n{lines}').sweep[0]


@pytest.mark.parametrize(
    ("override", "transpose_n", "matmul_n", "samples"),
    [
        ("samples=50", (), (), 50),
        ("n=64", (64,), (64,), 30),
        ("n = 64:256:*2", (64, 128, 256), (64, 128, 256), 30),
        ("n=[8, 9]", (8, 9), (8, 9), 30),
        ("matmul.n=64", (), (64,), 30),
    ],
)
def test_overrides(
    tmp_path: Path, override: str, transpose_n: tuple[int, ...], matmul_n: tuple[int, ...], samples: int
) -> None:
    config = read(tmp_path, f"samples = 30\n{SWEEPS}", override)
    sides = [sweep.n for sweep in config.sweep if isinstance(sweep, Sweep)]
    assert (*sides, config.samples) == (transpose_n, matmul_n, samples)


@pytest.mark.parametrize(
    ("text", "overrides", "words"),
    [
        ("= 3", [], ["not valid TOML"]),
        ("samples = 30", [], ["'sweep' is missing"]),
        ("sweep = []", [], ["sweep", "write [[sweep]]"]),
        (f"sample = 30\n{SWEEPS}", [], ["'sample': no such key; did you mean samples?"]),
        (f"{SWEEPS}blok = 3", [], ["'blok' in sweep 2: no such key; did you mean block?"]),
        ("[[sweep]]\nn = 3", [], ["'problem' is missing in sweep 1"]),
        ('[[sweep]]\nproblem = "sort"', [], ["problem in sweep 1 'sort'"]),
        (f"samples = 1\n{SWEEPS}", [], ["samples 1", "give 3 or more"]),
        (f'samples = "many"\n{SWEEPS}', [], ["samples 'many'"]),
        (f"max_seconds = inf\n{SWEEPS}", [], ["max_seconds inf"]),
        (f'name = "../x"\n{SWEEPS}', [], ["name '../x'"]),
        (f'precision = "-1"\n{SWEEPS}', [], ["precision '-1': give a number above 0 %"]),
        (f"precision = nan\n{SWEEPS}", [], [": precision nan is not a percentage; write 0.5"]),
        (f'timeout = "5 parsecs"\n{SWEEPS}', [], [": timeout '5 parsecs' is not a duration; write 10"]),
        (f'warmup = "99999999h"\n{SWEEPS}', [], [": warmup '99999999h': give 60 s or less"]),
        (f"rounds = true\n{SWEEPS}", [], [": rounds true: give a number, not true or false"]),
        (f"seed = false\n{SWEEPS}", [], [": seed false: give a number, not true or false"]),
        (f'{SWEEPS}peers = "yes"', [], [": peers in sweep 2 'yes': give true or false"]),
        (f"{SWEEPS}peers = 1", [], [": peers in sweep 2 1: give true or false"]),
        ("sweep = [3]", [], [": sweep 1 3: write [[sweep]]"]),
        (f"{SWEEPS}n = 64.0", [], ["n 64.0", "a whole number, a string or a list"]),
        (f"{SWEEPS}n = true", [], ["n true"]),
        *(
            (f"{SWEEPS}{key} = []", [], [f": {key} []: give at least one value"])
            for key in ("n", "kernel", "dtype", "block")
        ),
        (f"{SWEEPS}device = []", [], [": device []: give at least one value"]),
        ('[[sweep]]\nproblem = "time"\nkernel = []', [], ["kernel in sweep 1 []: give at least one value"]),
        (f"{LAUNCH}rtol = 'x'", [], [": rtol in sweep 1 'x': give a number"]),
        (f"{LAUNCH}sizes = {{n = []}}", [], [": sizes in sweep 1 {'n': []}: give at least one value"]),
        (f"{LAUNCH}grid = []", [], [": grid in sweep 1 []: give at least one value"]),
        (SWEEPS.replace("transpose", 'transpose"\nn = 4\nnx = "4,5'), [], [": n 4 and nx 4,…: n stands for a square"]),
        (f"{SWEEPS}n = 0", [], ["n '0'", "least allowed"]),
        (f'{SWEEPS}block = "32y"', [], ["block '32y'", "write 32x32"]),
        (f'{SWEEPS}cache = "hot"', [], ["cache 'hot'", "warm, cold"]),
        (f'{SWEEPS}device = "tpu"', [], [": device 'tpu': no such device", "auto, cuda"]),
        (f'{SWEEPS}pad = "maybe"', [], ["pad in sweep 2 'maybe'"]),
        (SWEEPS, ["samples"], ["--set 'samples'", "key=value"]),
        (SWEEPS, ["sampels=3"], ["--set 'sampels=3'", "did you mean samples?"]),
        (SWEEPS, ["matmull.n=3"], ["--set 'matmull.n=3'", "did you mean matmul?"]),
        ('[[sweep]]\nproblem = "matmul"', ["transpose.n=3"], ["--set 'transpose.n=3'", "no sweep of transpose"]),
    ],
)
def test_faults_of_a_file_name_the_key_and_the_value(
    tmp_path: Path, text: str, overrides: list[str], words: list[str]
) -> None:
    with pytest.raises(UsageError) as caught:
        read(tmp_path, text, *overrides)
    message = str(caught.value)
    assert [word for word in words if word not in message] == []
    assert "\n" not in message
    assert overrides or str(tmp_path / "night.toml") in message


def test_what_an_editor_puts_before_the_text_is_no_mistake(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('samples = 5\n[[sweep]]\nproblem = "transpose"\n', encoding="utf-8-sig")
    assert from_toml(path).samples == 5


@pytest.mark.parametrize("line", ["{key} = 1", "[{key}]", "sweep = [{{ {key} = 1 }}]"])
def test_a_key_of_thousands_of_parts_is_refused_at_once(tmp_path: Path, line: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(line.format(key=".".join(["a"] * 20_000)))
    with pytest.raises(UsageError, match=r"mine.toml: not valid TOML: line 1 has over 40 dots"):
        from_toml(path)


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_a_file_in_another_encoding_is_to_be_saved_as_utf_8(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "x.toml"
    path.write_text(f"# größer\n{SWEEPS}", encoding=encoding)
    with pytest.raises(UsageError, match=f"^{path}: not text in UTF-8; save it as UTF-8$"):
        from_toml(path)


def test_a_stored_config_has_empty_lists_for_keys_that_were_not_given() -> None:
    config = from_flags({"sweep": [{"problem": "transpose"}]})
    data = config.model_dump(mode="json")
    assert data["sweep"][0]["n"] == []
    assert from_stored(data) == config
    with pytest.raises(UsageError, match=r"give at least one value"):
        from_data(data)


@pytest.mark.parametrize(("problem", "size"), [("transpose", "k"), ("matmul", "nx")])
def test_sizes_that_a_problem_does_not_have_are_refused(problem: str, size: str) -> None:
    with pytest.raises(UsageError, match=f"{problem} has no size {size}"):
        flags(**{"problem": problem, size: "3"}).sizes()
