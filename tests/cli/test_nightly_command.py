"""``smembench run`` night after night and ``smembench baseline``, as users run them."""

from __future__ import annotations

import configparser
import json
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from conftest import DOCUMENTS, ROOT, Program
from smembench.run.shipped import shipped
from smembench.studies.compare import Rules
from smembench.studies.fleet.verdict import Rules as FleetRules
from smembench.studies.nightly import monitoring

READY = ROOT / "configs/nightly"
CONFIG = """
name = "tiny"
samples = 3
rounds = 3
precision = 90
max_seconds = 0.2
warmup = 0
[[sweep]]
problem = "transpose"
kernel = "copyGmem"
device = "cpu"
n = 8
block = "4x4"
"""


def runs(root: Path) -> list[Path]:
    return sorted(path for path in (root / "results").iterdir() if path.is_dir())


def aged(run: Path, day: int) -> Path:
    """A copy of a run as one of an earlier day."""
    run_id = f"202001{day:02}T020000Z-tiny"
    copy = shutil.copytree(run, run.parent / run_id)
    data = json.loads((run / "run.json").read_text())
    data |= {"run_id": run_id, "started_at_utc": f"2020-01-{day:02}T02:00:00+00:00"}
    (copy / "run.json").write_text(json.dumps(data))
    (copy / "cases.csv").write_text((run / "cases.csv").read_text().replace(run.name, run_id))
    return copy


@pytest.mark.slow
def test_nights_are_compared_summarised_told_and_kept(program: Program, tmp_path: Path) -> None:
    (tmp_path / "tiny.toml").write_text(CONFIG)
    night = ("run", tmp_path / "tiny.toml", "--output", tmp_path / "results", "--compare-to", "last")
    json_lines, metrics = tmp_path / "nights.jsonl", tmp_path / "night.prom"
    first = program(*night, "--json-lines", json_lines, "--csv", "-")
    assert first.returncode == 0, first.stderr
    assert "there is no run before it to compare with" in first.stderr
    assert first.stdout.startswith("schema_version,")  # and nothing but CSV
    assert len(first.stdout.splitlines()) == 3
    (run,) = runs(tmp_path)
    old, before = aged(run, 1), aged(run, 2)
    shutil.rmtree(run)
    pinned = program("baseline", "set", old)
    assert (pinned.returncode, pinned.stdout) == (0, "")

    # A busy machine may well be slower, but hardly eleven times.
    second = program(*night, "--threshold", "1000", "--keep", "1", "--json-lines", json_lines, "--openmetrics", metrics)
    assert second.returncode == 0, second.stderr
    assert json.loads((runs(tmp_path)[-1] / "run.json").read_text())["config"]["threshold"] == 1000
    (kept, newest) = runs(tmp_path)
    assert kept == old
    page = (newest / "summary.md").read_text()
    assert page.startswith("# tiny: 2 cases measured")
    for text in (page, second.stdout):
        assert f"compared with last ({before.name}): " in text
        assert f"compared with baseline ({old.name}): " in text
        assert f"{'kept' if second.returncode else 'removed'} {before}" in text
    lines = [json.loads(line) for line in json_lines.read_text().splitlines()]
    assert [line["exit_code"] for line in lines] == [0, second.returncode]
    assert len(lines[1]["elapsed_ms"]) == 2
    assert f'smembench_run_exit_code{{config="tiny"}} {second.returncode}.0\n' in metrics.read_text()
    assert not list(tmp_path.glob(".night.prom*"))


def test_the_first_night_makes_the_folder_that_its_files_are_in(program: Program, tmp_path: Path) -> None:
    (tmp_path / "tiny.toml").write_text(CONFIG.replace("copyGmem", "memcpy"))
    night = ("run", "tiny.toml", "--output", "new/results", "--json-lines", "new/results/nights.jsonl")
    assert program(*night, "--dry-run", cwd=tmp_path).returncode == 0
    assert not (tmp_path / "new").exists()
    first = program(*night, cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    assert len((tmp_path / "new/results/nights.jsonl").read_text().splitlines()) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--keep", "0"), "--keep 0: keep at least 1"),
        (("--compare-to", "last:0"), "last:0: give a number"),
        (("--compare-to", "nowhere"), "--compare-to: nowhere: there is no such"),
        (("--openmetrics", "night.txt"), "--openmetrics night.txt: "),
        (("--json-lines", "nowhere/nights.jsonl"), "--json-lines nowhere/nights.jsonl: there is no folder"),
        (("--output", "tiny.toml/runs"), "--output tiny.toml/runs: cannot be made"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_a_dry_run_refuses_what_the_first_night_would(
    program: Program, tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    (tmp_path / "tiny.toml").write_text(CONFIG)
    for really in ((), ("--dry-run",)):
        refused = program("run", "tiny.toml", *options, *really, cwd=tmp_path)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert refused.stderr.startswith(f"smembench: {message}")
        assert list(tmp_path.iterdir()) == [tmp_path / "tiny.toml"]


def test_a_night_that_fails_says_so_on_stderr(program: Program, tmp_path: Path) -> None:
    (tmp_path / "tiny.toml").write_text(CONFIG.replace("copyGmem", "wrong"))
    night = ("run", "tiny.toml", "--compare-to", "last", "--output", "results")
    ran = program(*night, cwd=tmp_path, SMEMBENCH_KERNELS=ROOT / "tests/faults/kernels/cpu_faults.py")
    headline = "tiny: 1 failed, 1 case measured; no earlier run to compare with"
    assert ran.returncode == 1
    assert headline in ran.stdout.splitlines()
    assert headline in ran.stderr.splitlines()


def test_baselines_are_set_shown_and_cleared(program: Program, tmp_path: Path) -> None:
    (empty := tmp_path / "my results").mkdir()
    assert f"no baseline; pin one with: smembench baseline set '{empty}'/" in program("baseline", "show", empty).stderr
    run = Path(shutil.copytree(DOCUMENTS, tmp_path / DOCUMENTS.name))
    cases = (run / "cases.csv").read_text()
    (run / "cases.csv").write_text(cases[:-60])
    refused = program("baseline", "set", run)
    assert (refused.returncode, "cases.csv, line" in refused.stderr) == (2, True), refused.stderr
    (run / "cases.csv").write_text(cases)
    for named in (run, run.parent / "last"):
        assert f"{run.name} is now the baseline of documents" in program("baseline", "set", named).stderr
    assert program("baseline", "show", tmp_path).stdout == f"documents\t{run}\n"
    run.rename(tmp_path / "elsewhere")
    assert program("baseline", "show", tmp_path).stdout == f"documents\t{run}\tno longer exists\n"
    assert "no longer pinned: documents" in program("baseline", "clear", tmp_path).stderr
    assert "nothing was pinned" in program("baseline", "clear", tmp_path).stderr


def test_all_commands_that_compare_have_one_default_threshold(program: Program) -> None:
    shown = {
        command: program(*command.split(), "--help-all", COLUMNS="200").stdout
        for command in ("run", "compare", "history", "fleet show")
    }
    result = {
        command: re.search(r"--threshold .*?default: (?:the config's threshold, or )?([\d.]+)\)", text, re.DOTALL)
        for command, text in shown.items()
    }
    assert {command: match and match[1] for command, match in result.items()} == dict.fromkeys(result, "0.5")
    assert Rules().threshold == FleetRules().threshold == 0.005


def test_the_ready_files_use_options_that_exist(program: Program) -> None:
    helped = program("run", "--help-all", COLUMNS="200").stdout
    for file in ("smembench.service", "crontab", "github-actions.yml"):
        text = re.sub(r"\\?\n\s+(?=--)", " ", (READY / file).read_text())
        (command,) = re.findall(r"bin/smembench (run .*?)(?: >>.*)?$", text, flags=re.MULTILINE)
        options = [word for word in shlex.split(command) if word.startswith("--")]
        assert {"--wait", "--compare-to", "--keep"} <= set(options)
        assert shlex.split(command)[1] in shipped()
        assert [option for option in options if option not in helped] == []


def test_the_ready_files_keep_nights_apart_from_the_committed_runs(program: Program) -> None:
    """Among these are nights of a slowdown, for which a weekly history would fail for ever."""
    for file in ("smembench.service", "crontab", "github-actions.yml"):
        words = shlex.split((READY / file).read_text().replace("\\\n", ""), comments=True)
        root = words[words.index("--output") + 1]
        assert root in ("$RESULTS", "/var/lib/smembench/results")
        assert words[words.index("--json-lines") + 1] == f"{root}/nightly.jsonl"
        assert [words[place + 1] for place, word in enumerate(words) if word == "history"] in ([], [root])
    assert program("history", "results", "--fail-on-change").returncode == 3


def test_the_ready_units_are_what_systemd_reads() -> None:
    def unit(name: str) -> configparser.ConfigParser:
        parser = configparser.ConfigParser(interpolation=None, delimiters="=")
        parser.optionxform = str  # type: ignore[assignment,method-assign]
        parser.read(READY / name)
        return parser

    service, timer = unit("smembench.service"), unit("smembench.timer")
    assert service["Service"]["Type"] == "oneshot"
    assert Path(service["Service"]["ExecStart"].split()[0]).is_absolute()
    assert timer["Timer"]["OnCalendar"] == "*-*-* 02:00"
    assert timer["Install"]["WantedBy"] == "timers.target"


def test_cron_mails_the_end_of_a_night_that_did_not_end_well(tmp_path: Path) -> None:
    text = (READY / "crontab").read_text().replace("/opt/smembench", str(tmp_path))
    (program := tmp_path / ".venv/bin/smembench").parent.mkdir(parents=True)
    for line in re.findall(r"^\d+ \d+ \* \* \S+ (.*)$", text, flags=re.MULTILINE):
        for code in (0, 3):
            program.write_text(f"#!/bin/sh\nseq 400; echo slower >&2; exit {code}\n")
            program.chmod(0o755)
            mail = subprocess.run(
                ["sh", "-c", line], env={"RESULTS": str(tmp_path), "PATH": os.defpath}, capture_output=True
            )
            expected = [*map(str, range(362, 401)), "slower"] if code else []
            assert mail.stdout.decode().splitlines() == expected, line
            assert mail.stderr == b""


def rules() -> dict[str, dict[str, Any]]:
    """The alerts by name."""
    yaml = pytest.importorskip("yaml")
    (group,) = yaml.safe_load((READY / "alerts.yml").read_text())["groups"]
    return {rule["alert"]: rule for rule in group["rules"]}


def test_the_alerts_are_about_gauges_of_a_run_and_their_labels(program: Program, tmp_path: Path) -> None:
    (tmp_path / "tiny.toml").write_text(CONFIG.replace("copyGmem", "memcpy"))
    metrics = tmp_path / "night.prom"
    for _ in range(2):
        night = program(
            "run", "tiny.toml", "--compare-to", "last", "--openmetrics", metrics, "--threshold", 900, cwd=tmp_path
        )
        assert night.returncode == 0, night.stderr
    gauges = {family.name: family.samples for family in text_string_to_metric_families(metrics.read_text())}
    for name, rule in rules().items():
        (asked,) = {*re.findall(r"\bsmembench_\w+", rule["expr"])}
        assert asked in monitoring.GAUGES
        labels = {*re.findall(r"\$labels\.(\w+)", " ".join(rule["annotations"].values()))} - {"instance"}
        assert labels <= gauges[asked][0].labels.keys(), name
    assert "26 * 3600" in rules()["SmembenchMissing"]["expr"]


def test_promtool_takes_the_alerts_and_they_fire(tmp_path: Path) -> None:
    if (promtool := shutil.which("promtool")) is None:
        pytest.skip("needs promtool, which comes with Prometheus")
    shutil.copy(READY / "alerts.yml", tmp_path)
    labels = 'config="nightly",device="cuda:0",uuid="GPU-1",model="H200"'
    series = {
        f'smembench_slower_cases{{{labels},compared_with="last:7"}}': "0x60 2x2000",
        f"smembench_throttled_cases{{{labels}}}": "0x60 1x2000",
        'smembench_run_started_timestamp_seconds{config="nightly"}': "0x2000",
    }
    fires = {"30m": {}, "2h": {"SmembenchSlower": 2, "SmembenchThrottled": 1}}
    tests = {
        "rule_files": ["alerts.yml"],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [{"series": name, "values": values} for name, values in series.items()],
                "promql_expr_test": [
                    {
                        "expr": f'count(ALERTS{{alertstate="firing",alertname="{name}"}})',
                        "eval_time": at,
                        "exp_samples": [{"labels": "{}", "value": 1}] if name in fires[at] else [],
                    }
                    for at in fires
                    for name in rules()
                ]
                + [
                    {
                        "expr": 'count(ALERTS{alertstate="firing",alertname="SmembenchMissing"})',
                        "eval_time": "28h",
                        "exp_samples": [{"labels": "{}", "value": 1}],
                    }
                ],
            },
            {
                "interval": "1m",
                "input_series": [],
                "promql_expr_test": [
                    {
                        "expr": 'count(ALERTS{alertstate="firing",alertname="SmembenchAbsent"})',
                        "eval_time": "2h",
                        "exp_samples": [{"labels": "{}", "value": 1}],
                    }
                ],
            },
        ],
    }
    (tmp_path / "tests.yml").write_text(json.dumps(tests))  # which is YAML, too
    for command in (("check", "rules", "alerts.yml"), ("test", "rules", "tests.yml")):
        ran = subprocess.run([promtool, *command], cwd=tmp_path, capture_output=True, text=True, timeout=60)
        assert ran.returncode == 0, ran.stdout + ran.stderr
