"""What run.json records of the machine and the software: enough to say why two runs differ."""

from __future__ import annotations

import platform
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from itertools import chain
from pathlib import Path
from typing import Any

from smembench.model.device import MEASURED, DeviceInfo
from smembench.model.version import VERSION
from smembench.run.config import Config
from smembench.toolchains.registry import toolchains

_OTHERS = ("pandas", "rich", "typer", "pydantic")
"""Packages beside those of the toolchains."""


def versions(*, cuda: bool = False) -> dict[str, str]:
    """Versions of Python, of smembench and of every library that can change a figure.

    With ``cuda`` also of the libraries that make a GPU's code, wherever they come from: without nvJitLink Numba does
    not optimise at link time.
    """
    found = {"smembench": VERSION, "python": platform.python_version()}
    for library in (*chain.from_iterable(toolchain.packages for toolchain in toolchains()), *_OTHERS):
        try:
            found[library] = version(library)
        except PackageNotFoundError:
            continue
    # Imported modules win over metadata: a folder on PYTHONPATH can shadow what is installed.
    for library in ("numba", "numpy"):
        module = sys.modules.get(library)
        if module is not None:
            found[library] = module.__version__
    return found | (_code_makers() if cuda else {})


def _code_makers() -> dict[str, str]:
    """What the toolchains' libraries say of themselves, as far as they are there."""
    found: dict[str, str] = {}
    for toolchain in toolchains():
        with suppress(Exception):  # each raises its own where it finds no library
            found |= toolchain.libraries()
    return found


def git_revision() -> dict[str, Any] | None:
    """Revision of the checkout smembench runs from and whether it has changes; None where there is no git."""
    folder = Path(__file__).parent

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True, timeout=10
        ).stdout.strip()

    try:
        return {"revision": git("rev-parse", "HEAD"), "dirty": bool(git("status", "--porcelain"))}
    except (OSError, subprocess.SubprocessError):
        return None


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What would make two parts of one run incomparable: config, devices, driver, versions."""
    found = []
    if before.get("config") != now.get("config"):
        found.append("the configuration differs")
    for part in ("versions", "devices"):
        old, new = (_flat(run.get(part, {})) for run in (before, now))
        found += [
            f"{key} was {old.get(key)}, is {new.get(key)}"
            for key in dict.fromkeys([*old, *new])
            if old.get(key) != new.get(key)
        ]
    return found


def _flat(part: Any) -> dict[str, Any]:
    """Versions as they are, devices as ``name field``; what is read anew each time, and may differ, is left out."""
    if isinstance(part, dict):
        return part
    return {f"{device['name']} {key}": value for device in part for key, value in device.items() if key not in MEASURED}


def describe_run(
    run_id: str,
    config: Config,
    seed: int,
    devices: Iterable[DeviceInfo],
    *,
    anonymous: bool,
    argv: Sequence[str],
) -> dict[str, Any]:
    """The content of run.json at the start of a run.

    With ``anonymous`` nothing that identifies a machine is kept: host name, UUIDs, arguments, memory sizes of
    the host.
    """
    described = [device.to_dict() for device in devices]
    run: dict[str, Any] = {
        "schema_version": 1,
        "run_id": run_id,
        "started_at_utc": datetime.now(UTC).isoformat(timespec="seconds"),
        "seed": seed,
        "config": config.model_dump(mode="json"),
        "versions": versions(cuda=any(device["kind"] == "cuda" for device in described)),
        "git": git_revision(),
    }
    if anonymous:
        run["devices"] = [
            {k: v for k, v in device.items() if k != "uuid"}
            if device["kind"] == "cuda"
            else {"name": "cpu", "kind": "cpu"}
            for device in described
        ]
        return run
    run["devices"] = described
    run["host"] = {"name": platform.node(), "system": platform.platform()}
    run["argv"] = list(argv)
    return run
