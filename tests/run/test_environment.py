"""What run.json records of the software."""

from __future__ import annotations

import pytest
from cuda.bindings import nvjitlink, nvrtc

from smembench.run.config import from_flags
from smembench.run.environment import differences, versions
from smembench.store.run_json import Description


def test_libraries_that_make_a_gpus_code_are_asked_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise RuntimeError("no libnvJitLink")

    monkeypatch.setattr(nvjitlink, "version", missing)
    monkeypatch.setattr(nvrtc, "nvrtcVersion", lambda: (0, 13, 4))
    assert versions(cuda=True) == {**versions(), "nvrtc": "13.4"}
    assert {"smembench", "python", "numba", "numpy"} <= set(versions())


def test_a_run_from_before_an_axis_existed_goes_on_with_the_same_config() -> None:
    def described(*missing: str, **sweep: list[int]) -> Description:
        config = from_flags({"sweep": [{"problem": "transpose", "n": "8"}]}).model_dump(mode="json")
        (now,) = config["sweep"]
        return Description.model_validate(
            {"config": {**config, "sweep": [{key: now[key] for key in now if key not in missing} | sweep]}}
        )

    assert differences(described("passes"), described()) == []
    assert differences(described("passes"), described(passes=[3])) == ["the configuration differs"]
