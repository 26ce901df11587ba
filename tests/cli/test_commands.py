"""The program as users run it: what it prints where, what it writes, and how it ends."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from typer.testing import CliRunner

from campaign import CAMPAIGN
from conftest import DOCUMENTS, NIGHTLY, QUICK, ROOT, Program, records
from smembench import __version__
from smembench.cli.app import app
from smembench.store.schema import COLUMNS, SAMPLE_COLUMNS
from smembench.studies.doctor.installation import examine
from smembench.toolchains.registry import compilers, names
from smembench.views import doctor

CONFIG = """
samples = 3
rounds = 1
precision = 90
max_seconds = 0.2
warmup = 0
seed = 7
[[sweep]]
problem = "transpose"
kernel = "copyGmem"
device = "cpu"
n = 8
block = "16x16"
[[sweep]]
problem = "matmul"
kernel = "cpu"
device = "cpu"
n = "4:8:*2"
"""


@pytest.fixture(scope="module")
def stored(program: Program, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished run of ``CONFIG``."""
    folder = tmp_path_factory.mktemp("stored")
    (folder / "tiny.toml").write_text(CONFIG)
    ran = program("run", folder / "tiny.toml", "--output", folder / "results")
    assert ran.returncode == 0, ran.stderr
    (run,) = (folder / "results").iterdir()
    assert str(run) in ran.stderr
    return run


def test_version(program: Program) -> None:
    assert program("--version").stdout == f"smembench {__version__}\n"


@pytest.mark.parametrize("arguments", [("--help",), ("run", "--help")])
def test_help_loads_no_library_of_numbers(program: Program, arguments: tuple[str, ...]) -> None:
    loaded = program(*arguments, PYTHONPROFILEIMPORTTIME=1).stderr
    modules = {line.rpartition("|")[2].strip() for line in loaded.splitlines()}
    assert "smembench" in modules
    assert not modules & {"numba", "numpy", "pandas", "cuda.bindings", "cuda.core", "vl_convert"}


def test_every_command_has_help(program: Program) -> None:
    shown = program("--help").stdout
    assert "Exit codes" in shown
    commands = re.findall(r"^│ (\w+)  ", shown, flags=re.MULTILINE)
    assert {"explain", "ladder", "transfer", "report"} <= set(commands)
    for command in commands:
        shown = CliRunner().invoke(app, [command, "--help"], prog_name="smembench").stdout
        assert f"smembench {command}" in shown
        assert "Examples:" in shown or command in ("list", "doctor", "baseline")


@pytest.mark.parametrize("command", ["", "transpose", "matmul", "explain", "ladder", "run", "compare", "fleet run"])
def test_help_is_a_page_and_help_all_describes_every_option(program: Program, command: str) -> None:
    page, everything = (program(*command.split(), option) for option in ("--help", "--help-all"))
    assert len(page.stdout.splitlines()) <= 60
    assert "[[" not in page.stdout
    assert "[default" not in page.stdout + everything.stdout
    if command:
        assert "--json" in page.stdout
        assert "Print JSON instead of tables." not in page.stdout
        assert "Print JSON instead of tables." in everything.stdout


def test_the_help_names_every_compiler(program: Program) -> None:
    shown = program("transpose", "--help").stdout
    assert [name for name in names() if name not in shown] == []


def test_help_breaks_its_lines_where_the_screen_ends_and_nowhere_else(program: Program) -> None:
    lines = [line.strip() for line in program("run", "--help").stdout.splitlines()]
    begin = next(place for place, line in enumerate(lines) if line.startswith("Each trial"))
    paragraph = lines[begin : lines.index("", begin)]
    assert all(len(f"{line} {after.split()[0]}") > 78 for line, after in pairwise(paragraph))


def test_variants_of_kernels_are_folded_and_gpus_come_first(program: Program) -> None:
    lines = program("list", "kernels").stdout.splitlines()
    transposes = lines[: lines.index(next(line for line in lines if line.startswith("matmul:")))]
    assert transposes[1].split()[:2] == ["cuda", "memcpy"]
    assert "transposeSmemUnrollPad" in transposes[-1]
    assert transposes[-1].startswith("  and variants: ")
    assert any(line.split()[:2] == ["cuda", "transposeSmemPad"] for line in transposes)
    assert not any(line.split()[:2] == ["cuda", "transposeSmemDyn"] for line in transposes)
    every = json.loads(program("list", "kernels", "--json").stdout)["kernels"]
    assert {"transposeSmemDyn", "setRowReadRowDynPad"} <= {kernel["kernel"] for kernel in every}


def test_each_missing_nvidia_library_has_the_one_command_that_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise RuntimeError("no such library")

    for function in ("nvrtc.nvrtcVersion", "nvvm.version", "nvjitlink.version"):
        monkeypatch.setattr(f"cuda.bindings.{function}", missing)
    lines = doctor.lines(examine())
    for library in ("NVRTC", "NVVM", "nvJitLink"):
        place = lines.index(f"--   {library}: not found")
        assert lines[place + 1] == "       fix: pip install 'smembench[cu13]' (cu12 with a CUDA 12 driver)"


def test_spellings_of_other_tools_are_taken(program: Program) -> None:
    planned = program(
        "matmul", "--size", 64, "--dtype", "fp32,bf16", "--kernel", "naive", "--device", "cpu", "--dry-run"
    )
    assert planned.returncode == 0
    assert {line.split("/")[4] for line in planned.stdout.splitlines()} == {"float32", "bfloat16"}
    assert {line.split("/")[5] for line in planned.stdout.splitlines()} == {"64x64x64"}
    assert "h200" in program("list", "gpus").stdout


def test_csv_to_stdout_is_nothing_but_csv(program: Program) -> None:
    axes = ("--m", 5, "--k", 6, "--n", 7, "--stride", 9, "--dtype", "float64", "--cache", "cold")
    ran = program("matmul", *axes, "--kernel", "cpu", "--device", "cpu", *QUICK, "--csv", "-")
    assert ran.returncode == 0, ran.stderr
    (row,) = records(ran.stdout)
    assert tuple(row) == COLUMNS
    assert row["case_id"] == "matmul/cpu/cpu/numba/float64/5x6x7/s9/cold"
    assert (row["status"], row["verified"]) == ("ok", "true")
    assert float(row["elapsed_ms"]) > 0
    assert "cpu" in ran.stderr


def test_a_table_goes_to_stdout_and_an_existing_csv_is_replaced_when_forced(program: Program, tmp_path: Path) -> None:
    path = tmp_path / "cases.csv"
    path.write_text("mine\n")
    case = ("--n", 8, "--kernel", "copyGmem", "--block", "4x4", "--device", "cpu")
    ran = program("transpose", *case, *QUICK, "-q", "--csv", path, "--force")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "copyGmem" in ran.stdout
    assert "\x1b" not in ran.stdout
    assert max(map(len, ran.stdout.splitlines())) <= 80
    assert [row["kernel"] for row in records(path.read_text())] == ["memcpy", "copyGmem"]


def test_without_a_gpu_auto_runs_on_the_cpu_and_says_so(program: Program) -> None:
    ran = program("transpose", "--dry-run")
    assert ran.returncode == 0
    assert "no GPU is usable, so this runs on the CPU" in ran.stderr
    assert all("/cpu/" in line for line in ran.stdout.splitlines())


@pytest.mark.parametrize("options", [[], ["--kernel", "naiveGmem"], ["--nx", "8:340", "--ny", "8:340"]])
def test_a_dry_run_on_the_cpu_begins_without_numba_and_numpy(options: list[str]) -> None:
    """Their import takes most of a second; a million cases are printed one by one."""
    dry = [sys.executable, "-X", "importtime", "-m", "smembench", "transpose", "--device", "cpu", "--dry-run"]
    with subprocess.Popen([*dry, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        imported = {line.rpartition(b"|")[2].strip().decode() for line in process.stderr}
    assert process.returncode == 0
    assert "smembench.run.plan" in imported
    assert not imported & {"numba", "numpy", "scipy", "pandas"}


def test_a_dry_run_measures_and_writes_nothing(program: Program, tmp_path: Path) -> None:
    (tmp_path / "tiny.toml").write_text(CONFIG)
    ran = program(
        "run", "tiny.toml", "--set", "n=16", "--output", "results", "--csv", "x.csv", "--dry-run", cwd=tmp_path
    )
    assert ran.returncode == 0
    assert [line for line in ran.stdout.splitlines() if "/memcpy/" not in line] == [
        "transpose/copyGmem/cpu/numba/float32/16x16/b16x16/warm",
        "matmul/cpu/cpu/numba/float32/16x16x16/warm",
    ]
    assert "nothing was measured" in ran.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["tiny.toml"]


def test_a_run_leaves_cases_samples_and_its_circumstances(stored: Path) -> None:
    assert sorted(path.name for path in stored.iterdir()) == ["cases.csv", "run.json", "samples.csv"]
    cases = records((stored / "cases.csv").read_text())
    samples = records((stored / "samples.csv").read_text())
    assert tuple(cases[0]) == COLUMNS
    assert tuple(samples[0]) == SAMPLE_COLUMNS
    assert [row["kernel"] for row in cases] == ["memcpy", "copyGmem", "cpu", "cpu"]
    for row in cases:
        of_case = [sample for sample in samples if sample["case_id"] == row["case_id"]]
        assert len(of_case) == int(row["samples"]) >= 3
        assert min(float(sample["elapsed_ms"]) for sample in of_case) == float(row["elapsed_ms_min"])
    run = json.loads((stored / "run.json").read_text())
    assert {row["run_id"] for row in [*cases, *samples]} == {run["run_id"]} == {stored.name}
    assert (run["schema_version"], run["seed"], run["complete"], run["config"]["name"]) == (1, 7, True, "tiny")
    assert run["argv"][0] == "run"
    assert run["devices"][0]["kind"] == "cpu"
    assert run["versions"].keys() >= {"python", "numba", "numpy", "smembench"}


def test_an_anonymous_run_names_no_machine_but_tells_one_from_another(program: Program, tmp_path: Path) -> None:
    (tmp_path / "tiny.toml").write_text(CONFIG)
    arguments = ("--set", "kernel=memcpy", "--set", "problem=transpose", "--set", "n=4", "--anonymous")
    states = {"one": tmp_path / "a", "again": tmp_path / "a", "other": tmp_path / "b", "none": tmp_path / "tiny.toml"}
    uuids, messages = {}, {}
    for output, state in states.items():
        ran = program("run", "tiny.toml", *arguments, "--output", output, cwd=tmp_path, XDG_STATE_HOME=str(state))
        assert ran.returncode == 0
        (path,) = (tmp_path / output).glob("*/run.json")
        run = json.loads(path.read_text())
        assert run.keys().isdisjoint({"host", "argv"})
        (device,) = run["devices"]
        uuids[output], messages[output] = device.pop("uuid", None), ran.stderr
        assert device == {"name": "cpu", "kind": "cpu"}
    assert uuids["one"] == uuids["again"] != uuids["other"]
    assert re.fullmatch(r"anonymous-[0-9a-f]{16}", uuids["one"])
    assert (uuids["none"], "does not say on which device" in messages["none"]) == (None, True)
    (salt,) = (path for path in (tmp_path / "a").rglob("*") if path.is_file())
    assert salt.stat().st_mode & 0o777 == 0o600


def test_a_stored_run_is_shown_without_a_device(program: Program, stored: Path) -> None:
    shown = program("show", stored)
    assert (shown.returncode, shown.stderr) == (0, "")
    for words in ("matrix transpose 8×8", "matrix product 4×4×4", "copyGmem", "✓"):
        assert words in shown.stdout
    assert program("show", stored / "cases.csv").stdout.count("✓") == shown.stdout.count("✓")


@pytest.mark.parametrize("run", ["20261201T124959Z-nightly", "20261201T004410Z-limits", "20261126T162541Z-tensor"])
def test_a_run_of_many_tables_is_summarised_on_a_screen(program: Program, run: str) -> None:
    path = ROOT / "results/reference" / run
    summary, tables = program("show", path).stdout, program("show", path, "--tables").stdout
    assert len(summary.splitlines()) <= 60 < len(tables.splitlines())
    assert all(
        words in " ".join(summary.split()) for words in ("were checked before timing", "fastest kernel per size")
    )
    count = int(summary.split("tables: smembench show")[0].split()[-1])
    assert tables.count("\n\n") + 1 >= count > 3
    assert "█" not in summary + tables  # bars are for terminals


def test_the_command_for_all_tables_of_some_cases_names_these(program: Program) -> None:
    shown = program("show", NIGHTLY, "--case", "transpose/*Smem*").stdout
    command = shlex.split(shown.partition("tables: smembench ")[2])
    assert command == ["show", str(NIGHTLY), "--case", "transpose/*Smem*", "--tables"]
    assert program(*command).returncode == 0


def test_a_stored_run_in_other_forms(program: Program) -> None:
    lines = program("show", DOCUMENTS, "--tables", "--markdown").stdout.splitlines()
    assert lines[2].startswith("| kernel | block | elapsed ms |")
    assert lines[3].startswith("| :--- | :--- | ---: |")
    assert {"| copyGmem", "| naiveGmem"} <= {line.split(" | ")[0] for line in lines[4:]}
    typeset = program("show", DOCUMENTS, "--tables", "--latex").stdout
    assert typeset.count(r"\begin{tabular}") == typeset.count(r"\end{tabular}") == 10
    assert r"\caption{NVIDIA H200 $\cdot$ matrix transpose 4096$\times$4096 float32" in typeset
    beside = program("show", DOCUMENTS, "--documents", "--why").stdout
    for words in ("Tesla K40", "177.15 GB/s", "it says", "568.871 ms", "21 claims"):
        assert words in beside
    claims = json.loads(program("show", DOCUMENTS, "--documents", "--json").stdout)["claims"]
    (summary,) = (claim for claim in claims if claim["where"] == "6. Summary")
    assert (summary["holds"], summary["found"], round(summary["value"], 2)) == ("no", "1.38×", 1.38)


def test_a_run_that_was_cut_off_says_so(program: Program, tmp_path: Path) -> None:
    cut = tmp_path / DOCUMENTS.name
    shutil.copytree(DOCUMENTS, cut)
    about = json.loads((cut / "run.json").read_text())
    (cut / "run.json").write_text(json.dumps(about | {"complete": False}))
    shown, whole = (program("show", path, "--tables") for path in (cut, DOCUMENTS))
    assert (shown.returncode, shown.stdout) == (0, whole.stdout)
    assert shown.stderr == f"{cut}: the run was cut off; this is what was measured until then\n"
    assert whole.stderr == ""


def test_a_stored_run_is_shown_in_part(program: Program) -> None:
    shown = program("show", DOCUMENTS, "--case", "transpose/*/b32x32/*", "--json")
    kernels = [case["kernel"] for case in json.loads(shown.stdout)["cases"]]
    assert kernels == ["copyGmem", "naiveGmem", "transposeSmem", "transposeSmemPad"]
    pays = program("show", DOCUMENTS, "--break-even", "--case", "addOne", "--markdown").stdout
    assert pays.startswith("NVIDIA H200 and cpu · add one, with and without copies int32: where the GPU begins to pay")
    assert pays.count("begins to pay") == 1
    nothing = program("show", DOCUMENTS, "--break-even", "--case", "transpose/")
    assert (nothing.returncode, "has nothing that --break-even shows" in nothing.stderr) == (2, True)
    unknown = program("show", DOCUMENTS, "--case", "transposed")
    assert (unknown.returncode, "none of the 43 cases" in unknown.stderr) == (2, True)


def test_reproduce_plans_the_documents_cases(program: Program) -> None:
    ran = program("reproduce", "--device", "cpu", "--dry-run")
    assert ran.returncode == 0
    kernels = [line.split("/")[1] for line in ran.stdout.splitlines()]
    assert list(dict.fromkeys(kernels)) == [
        *("memcpy", "copyGmem", "naiveGmem", "transposeSmem", "transposeSmemPad"),
        *("cpu", "naive", "tiled"),
        *("globalUniform", "hostCopy", "addOne"),
    ]
    for words, count in (
        ("4096x4096/b16x16", 4),
        ("4096x4096/b32x32", 4),
        ("1024x1024x1024", 5),
        ("1000x1000x1000", 2),
    ):
        assert ran.stdout.count(words) == count


def test_list_and_doctor_say_what_there_is(program: Program) -> None:
    listed, examined = program("list"), program("doctor")
    assert set(program("list", "configs").stdout.splitlines()) < set(listed.stdout.splitlines())
    assert (listed.returncode, examined.returncode) == (0, 0)
    for words in ("transposeSmemPad", "matmul: matrix product", "no GPU: "):
        assert words in listed.stdout
    for words in ("numba-cuda: ", "--   GPU: ", "fix: ", "CPU: "):
        assert words in examined.stdout
    output = program("list", "compilers").stdout
    for toolchain in compilers():
        assert f"{toolchain.name} " in output
        for text in (output, examined.stdout):
            assert (toolchain.install in text) != toolchain.installed, "what is not installed is named"


as_the_one_before = pytest.mark.skipif(CAMPAIGN == 1, reason="as the one before: SMEMBENCH_CAMPAIGN=2 runs it")
ASCII = {"PYTHONIOENCODING": "ascii"}
C_LOCALE = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@pytest.mark.parametrize(
    ("command", "environment", "words"),
    [
        (("show", DOCUMENTS), ASCII, "copyGmem"),
        (("show", DOCUMENTS), C_LOCALE, "copyGmem"),
        (("list",), ASCII, "copyGmem"),
        (("doctor",), ASCII, "CPU: "),
        (("explain", "transposeSmemPad", "--block", "16x16"), ASCII, "transposeSmemPad"),
    ],
    ids=["show", "show in C", "list", "doctor", "explain"],
)
def test_plain_ascii(program: Program, command: tuple[object, ...], environment: dict[str, str], words: str) -> None:
    ran = program(*command, **environment)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.isascii()
    assert words in ran.stdout


@pytest.mark.parametrize("command", ["--help", "list", "transpose --dry-run --device cpu --n 64"])
def test_a_reader_that_is_gone_is_no_error(command: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "smembench", *command.split()],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert process.stdout is not None
    process.stdout.close()  # before it has begun
    _, err = process.communicate(timeout=60)
    assert (process.returncode, [line for line in err.splitlines() if "nothing was measured" not in line]) == (0, [])


def test_a_size_without_an_option_and_the_forms_of_a_result(program: Program, tmp_path: Path) -> None:
    measured = ("transpose", "1k", "--device", "cpu", "--kernel", "memcpy", "-q", *QUICK)
    ran = program(*measured, "--json", "--export", tmp_path / "cases.md")
    assert (ran.returncode, ran.stderr) == (0, "")
    (case,) = json.loads(ran.stdout)["cases"]
    assert (case["kernel"], case["n"], case["status"]) == ("memcpy", 1024, "ok")
    assert "| memcpy |" in (tmp_path / "cases.md").read_text()


@pytest.mark.parametrize(
    ("words", "offered", "others"),
    [
        ("ladder ", {"transpose", "matmul", "reduction"}, {"constant", "access"}),
        pytest.param("tune ", {"transpose", "matmul", "reduction"}, {"constant", "access"}, marks=as_the_one_before),
        ("compilers matmul,", {"matmul,transpose", "matmul,constant"}, {"matmul,access"}),
        ("explain ", {"transposeSmem", "sumSequential"}, {"cpu", "cublas", "interchanged"}),
    ],
)
def test_completion_offers_what_the_command_takes(
    program: Program, words: str, offered: set[str], others: set[str]
) -> None:
    completed = program(_SMEMBENCH_COMPLETE="complete_bash", COMP_WORDS=f"smembench {words}", COMP_CWORD=2)
    result = set(completed.stdout.split())
    assert (offered <= result, result & others) == (True, set())


def test_python_m_is_called_by_the_name_that_its_completion_needs(program: Program) -> None:
    assert "Usage: smembench run" in program("run", "--help").stdout
    assert (
        program(_SMEMBENCH_COMPLETE="complete_bash", COMP_WORDS="smembench run night", COMP_CWORD=2).stdout
        == "nightly\n"
    )
    in_bash = f"'{sys.executable}' -m smembench --show-completion; true"  # a last command would take bash's place
    shown = subprocess.run(["bash", "-c", in_bash], capture_output=True, text=True, cwd=ROOT, check=False)
    assert "_SMEMBENCH_COMPLETE=complete_bash" in shown.stdout, shown.stderr


def test_without_a_command_the_help_is_shown(program: Program) -> None:
    ran, group = program(), program("baseline")
    assert (ran.returncode, ran.stderr) == (group.returncode, group.stderr) == (0, "")
    assert "Understand" in ran.stdout
    assert "Unpin" in group.stdout
    assert "<bool>" not in ran.stdout + program("transpose", "--help").stdout


def test_a_config_of_the_package_runs_anywhere_by_its_name(program: Program, tmp_path: Path) -> None:
    ran = program("run", "quick", "--dry-run", cwd=tmp_path)
    assert (ran.returncode, "transpose/copyGmem/" in ran.stdout) == (0, True), ran.stderr
    mistyped = program("run", "nigthly", cwd=tmp_path)
    assert (mistyped.returncode, "did you mean nightly?" in mistyped.stderr) == (2, True)


def test_a_run_that_skips_everything_is_no_success(program: Program) -> None:
    ran = program("matmul", 512, "--kernel", "cpu", "--device", "cpu", "--max-seconds", "1ms", "-q")
    assert (ran.returncode, "skipped" in ran.stdout) == (1, True)
    assert ran.stderr.startswith("smembench: nothing was measured")


@pytest.mark.parametrize("command", [("show", DOCUMENTS), ("--help",)])
def test_a_terminal_of_unknown_width_is_no_reason_to_print_nothing(
    program: Program, command: tuple[object, ...]
) -> None:
    usual, unknown = (program(*command, COLUMNS=columns) for columns in ("80", "0"))
    assert (unknown.returncode, unknown.stdout) == (0, usual.stdout)
