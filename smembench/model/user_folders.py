"""Folders of the user, by the XDG Base Directory Specification, which ignores relative paths."""

from __future__ import annotations

import os
from pathlib import Path
from pwd import getpwuid


def user_folder(variable: str, beneath_home: str) -> Path:
    """The folder ``smembench`` in the one that a variable names, or in that beneath the home.

    An empty or relative HOME counts as none, and the home is then that of the user's account: for Path.home() an empty
    one is the root.

    Raises:
        RuntimeError: for an account without a home.
    """
    given, home = (Path(os.environ.get(name, "")) for name in (variable, "HOME"))
    if given.is_absolute():
        return given / "smembench"
    if not home.is_absolute():
        try:
            home = Path(getpwuid(os.getuid()).pw_dir)
        except KeyError:
            raise RuntimeError("the account has no home") from None
    return home / beneath_home / "smembench"
