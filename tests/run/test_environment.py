"""What run.json records of the software."""

from __future__ import annotations

import pytest
from cuda.bindings import nvjitlink, nvrtc

from smembench.run.environment import versions


def test_libraries_that_make_a_gpus_code_are_asked_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise RuntimeError("no libnvJitLink")

    monkeypatch.setattr(nvjitlink, "version", missing)
    monkeypatch.setattr(nvrtc, "nvrtcVersion", lambda: (0, 13, 4))
    assert versions(cuda=True) == {**versions(), "nvrtc": "13.4"}
    assert {"smembench", "python", "numba", "numpy"} <= set(versions())


def test_versions_stand_in_the_order_of_the_stored_files() -> None:
    every = "smembench python numba numba-cuda llvmlite numpy cuda-bindings cuda-core nvidia-nvvm cupy-cuda13x torch"
    known = [*every.split(), "pandas", "rich", "typer", "pydantic", "nvjitlink", "nvrtc"]
    found = list(versions(cuda=True))
    assert found == [name for name in known if name in found]
