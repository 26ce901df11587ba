"""Nights of a real GPU: the same code twice is no change, and a kernel that gets a bank conflict is slower."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from smembench.devices.cuda_description import why_unusable

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(bool(why_unusable()), reason=str(why_unusable()))]

KERNEL = Path(__file__).parent / "kernels" / "own_tile.py"
CONFIG = Path(__file__).parent / "slowdown.toml"


def smembench(*arguments: object, pad: int) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "smembench", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "SMEMBENCH_KERNELS": str(KERNEL), "OWN_TILE_PAD": str(pad)},
        check=False,
    )


def test_a_real_slowdown_is_seen_and_nothing_else(tmp_path: Path) -> None:
    nights: list[Path] = []
    for number, pad in enumerate((1, 1, 0)):
        run = smembench("run", CONFIG, "--output", tmp_path / str(number), pad=pad)
        assert run.returncode == 0, run.stderr
        nights += (tmp_path / str(number)).iterdir()
    first, second, conflicted = nights

    unchanged = smembench("compare", first, second, pad=1)
    assert unchanged.returncode == 0, unchanged.stdout

    changed = smembench("compare", second, conflicted, "--json", pad=0)
    assert changed.returncode == 3, changed.stdout + changed.stderr
    verdicts = {case["case_id"]: case["verdict"] for case in json.loads(changed.stdout)["cases"]}
    slower = {case for case, verdict in verdicts.items() if verdict == "slower"}
    assert {case for case in slower if "/ownTile/" not in case} == set()
    assert any("b32x32" in case for case in slower), verdicts
