"""The pinned runs of a results folder: one per config, by its folder's name, so that the results can be moved."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from smembench.model.errors import UsageError
from smembench.store.csv_files import CASES
from smembench.store.files import locked, refused, resolved, there, write_whole
from smembench.store.load import load, named
from smembench.store.run_folder import RUN, read_description, resume_command, to_json
from smembench.store.run_json import ahead, read_json

BASELINE = "baseline.json"


class _Pinned(BaseModel):
    """The file. Its folders are beside it: a path would break when the results move."""

    model_config = ConfigDict(strict=True)

    schema_version: Literal[1] = 1
    pinned: dict[str, Annotated[str, Field(pattern=r"^[^/]{1,255}$")]]


def pin_command(root: Path) -> str:
    """The command, for a shell, that pins a run of a folder; <run> is a placeholder for its name."""
    return f"smembench baseline set {quote(str(root))}/<run>"


def pin(folder: Path) -> str:
    """Make a complete run the baseline of its config, in ``baseline.json`` beside it; returns the config's name.

    ``DIR/last`` names the newest run of a folder.

    Raises:
        UsageError: for a folder without a complete run, one that cannot be read, one that claims to begin after now,
            and a file that cannot be written.
    """
    folder = resolved(named(folder))
    described = read_description(folder)
    if there(folder / RUN) and not described.complete:  # one that was killed has no cases.csv yet
        raise UsageError(f"{folder}: the run is not complete; continue it with: {resume_command(folder)}")
    name = config_of(folder)
    if name is None:
        raise UsageError(f"{folder} is not a run of smembench; name a folder with {CASES} and {RUN} in it")
    if why := ahead(described.started_at_utc):
        raise UsageError(f"{folder}: {why}: no change would be accepted after it")
    if not load(folder, shown=False).rows:  # every later night would be refused
        raise UsageError(f"{folder}: holds no cases; name a run that measured something")
    with locked(folder.parent):
        _write(folder.parent, {**_read(folder.parent), name: folder.name})
    return name


def unpin(root: Path, name: str | None = None) -> list[str]:
    """Unpin the baseline of one config, or all; returns the names of the configs.

    Raises:
        UsageError: for a file that cannot be read or written.
    """
    with locked(root):
        pinned = _read(root)
        gone = [config for config in pinned if name in (None, config)]
        if gone:
            _write(root, {config: folder for config, folder in pinned.items() if config not in gone})
    return gone


def baselines(root: Path) -> dict[str, Path]:
    """The folders of the pinned runs by the names of their configs.

    Raises:
        UsageError: for a file that cannot be read.
    """
    return {name: root / folder for name, folder in _read(root).items()}


def config_of(folder: Path) -> str | None:
    """The name of the config of the run in a folder; None if the folder holds no run.

    Raises:
        UsageError: for a run.json that is damaged.
    """
    if not there(folder / RUN) or not there(folder / CASES):
        return None
    if not (name := read_description(folder).config.name):
        raise UsageError(f"{folder / RUN}: names no config")
    return name


def _read(root: Path) -> dict[str, str]:
    stored = read_json(root / BASELINE, _Pinned, "remove it and pin again")
    return stored.pinned if stored else {}


def _write(root: Path, pinned: dict[str, str]) -> None:
    with refused(f"{root / BASELINE}: cannot be written"):
        write_whole(root / BASELINE, to_json({"schema_version": 1, "pinned": pinned}))
