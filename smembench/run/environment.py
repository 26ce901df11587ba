"""The machine and the software as run.json records them: enough to say why two runs differ."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from itertools import chain
from pathlib import Path

from pydantic import JsonValue

from smembench.kernels.kernel import EXTRA_KERNELS
from smembench.model.device import MEASURED, DeviceInfo
from smembench.model.text import visible
from smembench.model.version import VERSION
from smembench.run.config import Config
from smembench.run.launch_sweep import LaunchSweep
from smembench.run.pseudonym import pseudonym
from smembench.store.files import read_whole
from smembench.store.run_json import ABSENT, Description, Git, Host, StoredConfig
from smembench.toolchains.registry import toolchains
from smembench.toolchains.settings import settings

_PACKAGE = Path(__file__).parents[1]
_PROJECT = "pyproject.toml"
_NOT_ALWAYS = ("git revision", "code")
"""Facts that not every run has."""
_OTHERS = ("pandas", "rich", "typer", "pydantic", "ml_dtypes", "tbb", "icc-rt")
"""Packages besides those of the toolchains; of the last two Numba takes its threads and its vector functions."""


def versions(*, cuda: bool = False) -> dict[str, str]:
    """Versions of Python, smembench and every library that can change a figure.

    With ``cuda`` also those of NVIDIA's libraries that make the GPU's code, however they are installed.
    """
    installed = {"smembench": VERSION, "python": platform.python_version()}
    for library in (*chain.from_iterable(toolchain.packages for toolchain in toolchains()), *_OTHERS):
        with suppress(PackageNotFoundError):
            installed[library] = version(library)
    # Imported modules override metadata: a folder on PYTHONPATH can shadow an installed package.
    for library in ("numba", "numpy"):
        if (module := sys.modules.get(library)) is not None:
            installed[library] = module.__version__
    for toolchain in toolchains() if cuda else ():
        with suppress(Exception):  # a missing library raises its own error
            installed |= toolchain.libraries()
    return installed


def git_revision() -> Git | None:
    """Revision of smembench's own checkout, if it runs from it, and whether tracked files have changes; None elsewhere.

    Another repository may lie around an installation, have a copy in it, or be named by the environment.
    """
    root = _PACKAGE.parent
    own = (f"--git-dir={root / '.git'}", f"--work-tree={root}")
    try:
        if tomllib.loads((root / _PROJECT).read_text())["project"]["name"] != _PACKAGE.name:
            return None
        _git(root, *own, "ls-files", "--error-unmatch", _PROJECT, f"{_PACKAGE.name}/__init__.py")
        return _state(root, *own)
    except (OSError, ValueError, LookupError, TypeError, subprocess.SubprocessError):
        return None


def kernels_revision(config: Config) -> Git | None:
    """The same of the checkout that the kernel files from outside lie in; None if in none, or not all in one."""
    checkouts: dict[str, Path] = {}
    for folder in {path.absolute().parent for path in _kernel_files(config)}:
        try:
            checkouts[_git(folder, "rev-parse", "--show-toplevel")] = folder
        except (OSError, subprocess.SubprocessError):
            return None
    try:
        (folder,) = checkouts.values()
        return _state(folder)
    except (OSError, ValueError, subprocess.SubprocessError):  # several repositories, or one without commits
        return None


def without_git() -> dict[str, str]:
    """This process's environment without what names a repository."""
    return {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}


def _state(folder: Path, *options: str) -> Git:
    changes = _git(folder, *options, "status", "--porcelain", "--untracked-files=no")
    return Git(revision=_git(folder, *options, "rev-parse", "HEAD"), dirty=bool(changes))


def _git(folder: Path, *arguments: str) -> str:
    """The output of git in a folder, whatever repository the environment names."""
    command = ["git", "--no-optional-locks", *arguments]
    return subprocess.run(
        command, cwd=folder, env=without_git(), capture_output=True, text=True, check=True, timeout=10
    ).stdout.strip()


def code_hash() -> str:
    """Hash of smembench's own files, which a version or a modified revision does not identify."""
    digest = sha256()
    for path in sorted(_PACKAGE.rglob("*.py")):
        digest.update(f"{path.relative_to(_PACKAGE)}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def kernel_hashes(config: Config) -> dict[str, str]:
    """Hashes of the files that ``SMEMBENCH_KERNELS`` and sweeps name, by file name; files of one name share one."""
    hashes: dict[str, str] = {}
    data = dict.fromkeys(path for sweep in _launches(config) for path in sweep.data)
    for path in (*_kernel_files(config), *map(Path, data)):
        with suppress(OSError):  # a file that cannot be read declares no kernel
            hashes[path.name] = sha256(hashes.get(path.name, "").encode() + read_whole(path)).hexdigest()
    return hashes


def _kernel_files(config: Config) -> list[Path]:
    extra = filter(None, os.environ.get(EXTRA_KERNELS, "").split(os.pathsep))
    named = (path for sweep in _launches(config) for path in sweep.files)
    return [*map(Path, dict.fromkeys([*extra, *named]))]


def _launches(config: Config) -> list[LaunchSweep]:
    return [sweep for sweep in config.sweep if isinstance(sweep, LaunchSweep)]


def differences(begun: Description, here: Description) -> list[str]:
    """Reasons why two parts of a run are incomparable: differences of config, devices, driver, versions and code."""
    differing = [] if _given(begun.config) == _given(here.config) else ["the configuration differs"]
    old, new = _facts(begun), _facts(here)
    names = [name for name in dict.fromkeys([*old, *new]) if name not in _NOT_ALWAYS or (name in old and name in new)]
    values = ((name, old.get(name, ABSENT), new.get(name, ABSENT)) for name in names)
    return differing + [f"{name} was {before}, is {now}" for name, before, now in values if before != now]


def _given(config: StoredConfig) -> StoredConfig:
    """The config's keys on measuring, without the sweeps' empty lists, such as axes of a later version."""
    sweeps = [{key: value for key, value in sweep.items() if value != []} for sweep in config.sweep]
    return config.model_copy(update={"sweep": sweeps, "threshold": None, "decide": 0.0})


def _facts(run: Description) -> dict[str, JsonValue]:
    """Versions, code and devices' properties by name, without those that are measured at each start."""
    devices = {
        f"{device.name} {key}": value
        for device in run.devices
        for key, value in device.known.items()
        if key not in MEASURED
    }
    code = {"git revision": run.git.revision if run.git else "", "code": run.code}
    code = {name: text[:12] for name, text in code.items() if text}
    return {**run.versions, **code, **run.deciding, **devices}


def describe_run(
    run_id: str, config: Config, seed: int, devices: Iterable[DeviceInfo], *, anonymous: bool, argv: Sequence[str]
) -> Description:
    """The content of run.json at the start of a run.

    With ``anonymous`` it has nothing that identifies the machine: no host name, arguments or memory size of the host,
    and pseudonyms in place of UUIDs.
    """
    infos = list(devices)
    description = Description(
        schema_version=1,
        run_id=run_id,
        started_at_utc=datetime.now(UTC).isoformat(timespec="seconds"),
        seed=seed,
        config=StoredConfig.model_validate(config.model_dump(mode="json")),
        versions=versions(cuda=any(info.kind == "cuda" for info in infos)),
        git=git_revision(),
        kernels_git=kernels_revision(config),
        code=code_hash(),
        kernels=kernel_hashes(config),
        environment={name: _unplaced(value) if anonymous else visible(value) for name, value in settings().items()},
        devices=[DeviceInfo.model_validate(_unnamed(info) if anonymous else info.known) for info in infos],
    )
    if anonymous:
        return description
    host = Host(name=platform.node(), system=platform.platform())
    return description.model_copy(update={"host": host, "argv": list(map(visible, argv))})


def _unplaced(value: str) -> str:
    """A setting's value, or a pseudonym of one that may be a path on this machine."""
    return pseudonym(value) or "hidden" if os.sep in value else visible(value)


def _unnamed(info: DeviceInfo) -> dict[str, JsonValue]:
    """Properties that many machines share: of a CPU only name and kind. Its UUID or host becomes a pseudonym."""
    known = info.known if info.kind == "cuda" else {"name": info.name, "kind": info.kind}
    hidden = pseudonym(info.uuid or "" if info.kind == "cuda" else platform.node())
    kept = {key: value for key, value in known.items() if key != "uuid"}
    return kept if hidden is None else {**kept, "uuid": hidden}
