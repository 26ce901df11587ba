"""What run.json records of the software, and of a machine that stays anonymous."""

from __future__ import annotations

from pathlib import Path

import pytest
from cuda.bindings import nvjitlink, nvrtc

from smembench.model.device import DeviceInfo
from smembench.run.config import from_flags
from smembench.run.environment import describe_run, differences, versions
from smembench.run.pseudonym import pseudonym
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


def test_an_anonymous_run_tells_gpus_apart_and_names_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def described(uuid: str) -> Description:
        info = DeviceInfo.model_validate({"name": "cuda:0", "model": "NVIDIA H200", "uuid": uuid})
        return describe_run(
            "run", from_flags({"sweep": [{"problem": "transpose", "n": "8"}]}), 1, [info], anonymous=True, argv=[]
        )

    def told(uuid: str) -> str:
        return described(uuid).identity("cuda:0")

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "here"))
    here = [told(f"GPU-{number}") for number in range(4)]
    assert len({*here, ""}) == 5
    assert told("GPU-1") == here[1]
    assert "GPU-1" not in described("GPU-1").model_dump_json()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "elsewhere"))
    assert told("GPU-1") not in here
    monkeypatch.setenv("XDG_STATE_HOME", "/proc/none")
    assert told("GPU-1") == ""


def test_a_damaged_salt_tells_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert pseudonym("GPU-1")
    (salt,) = (path for path in tmp_path.rglob("*") if path.is_file())
    salt.write_bytes(b"")
    assert pseudonym("GPU-1") is None
