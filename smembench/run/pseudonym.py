"""Pseudonyms of devices, for anonymous runs: they distinguish two devices of a machine without naming them."""

from __future__ import annotations

import hashlib
import os
import secrets
import tempfile
from contextlib import suppress
from pathlib import Path

from smembench.model.user_folders import user_folder

_BYTES = 32


def pseudonym(identity: str) -> str | None:
    """A salted hash of a UUID or a host name; None without a state folder that can be written.

    The salt is random, made once per user, readable by that user alone, and never stored with a run: without it, nobody
    can test whether a run was measured on a given device.
    """
    salt = _salt()
    if salt is None or not identity:
        return None
    return f"anonymous-{hashlib.blake2b(identity.encode(), key=salt, digest_size=8).hexdigest()}"


def _salt() -> bytes | None:
    try:
        path = user_folder("XDG_STATE_HOME", ".local/state") / "salt"
        if not path.exists():
            _make(path)
        salt = path.read_bytes()
    except (OSError, RuntimeError):  # a home that is read-only, or none
        return None
    return salt if len(salt) == _BYTES else None


def _make(path: Path) -> None:
    """Write a new salt whole, unless another process was first."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent) as file:  # mode 0600
        file.write(secrets.token_bytes(_BYTES))
        file.flush()
        os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(file.name, path)
