from __future__ import annotations

import os
from pathlib import Path
from pwd import getpwuid

import pytest

from smembench.model.user_folders import user_folder

ACCOUNT = getpwuid(os.getuid()).pw_dir


@pytest.mark.parametrize(
    ("environment", "folder"),
    [
        ({"XDG_CACHE_HOME": "/c", "HOME": "/h"}, "/c/smembench"),
        ({"XDG_CACHE_HOME": "c", "HOME": "/h"}, "/h/.cache/smembench"),
        ({"XDG_CACHE_HOME": "", "HOME": "/h"}, "/h/.cache/smembench"),
        ({"HOME": "/h"}, "/h/.cache/smembench"),
        ({"HOME": "h"}, f"{ACCOUNT}/.cache/smembench"),
        ({"HOME": ""}, f"{ACCOUNT}/.cache/smembench"),
        ({}, f"{ACCOUNT}/.cache/smembench"),
    ],
)
def test_a_folder_is_absolute_wherever_the_environment_points(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], folder: str
) -> None:
    for name in ("XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert user_folder("XDG_CACHE_HOME", ".cache") == Path(folder)


def test_an_account_without_a_home_has_no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "")
    monkeypatch.setattr(os, "getuid", lambda: 2**31 - 7)
    with pytest.raises(RuntimeError, match="no home"):
        user_folder("XDG_UNSET_HOME", ".cache")
