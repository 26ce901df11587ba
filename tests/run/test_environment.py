"""What run.json records of the software."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from smembench.run import environment
from smembench.run.environment import versions


def test_libraries_that_make_a_gpus_code_are_asked_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    def library(name: str) -> Any:
        if name.endswith("nvjitlink"):
            raise RuntimeError("no libnvJitLink")
        return SimpleNamespace(nvrtcVersion=lambda: (0, 13, 4))

    monkeypatch.setattr(environment, "import_module", library)
    assert versions(cuda=True) == {**versions(), "nvrtc": "13.4"}
    assert {"smembench", "python", "numba", "numpy"} <= set(versions())
