"""What run.json records of the software, and of a machine that stays anonymous."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from cuda.bindings import nvjitlink, nvrtc

from smembench.model.device import DeviceInfo
from smembench.run import environment as environments
from smembench.run.config import from_flags
from smembench.run.environment import describe_run, differences, versions
from smembench.run.pseudonym import pseudonym
from smembench.store.run_json import Description, Git
from smembench.studies.compare.comparability import environment
from smembench.toolchains.settings import settings as settings_of_compilers


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


def test_settings_are_recorded_and_named_where_they_differ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def described(**settings: str) -> Description:
        with monkeypatch.context() as patch:
            for name, value in settings.items():
                patch.setenv(name, value)
            config = from_flags({"sweep": [{"problem": "transpose", "n": "8"}]})
            return describe_run("run", config, 1, [], anonymous="NUMBA_CUDA_DRIVER" in settings, argv=[])

    monkeypatch.chdir(tmp_path)
    for name in settings_of_compilers():
        monkeypatch.delenv(name)
    plain, forced = described(NUMBA_CACHE_DIR="/cache"), described(CUDA_FORCE_PTX_JIT="1")
    assert plain.environment == {}
    assert forced.environment == {"CUDA_FORCE_PTX_JIT": "1"}
    assert differences(described(), plain) == []
    assert differences(plain, forced) == ["CUDA_FORCE_PTX_JIT was absent, is 1"]
    (named,) = environment([plain], [forced])
    assert (named.what, named.new) == ("CUDA_FORCE_PTX_JIT", "1")
    assert "/me/" not in described(NUMBA_CUDA_DRIVER="/me/libcuda.so").model_dump_json()


def git(folder: Path, *arguments: str) -> str:
    options = ("-c", "user.name=name", "-c", "user.email=mail")
    ran = subprocess.run(["git", "-C", str(folder), *options, *arguments], check=True, capture_output=True, text=True)
    return ran.stdout.strip()


def test_a_revision_is_that_of_the_own_checkout_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def made(folder: Path, name: str) -> Path:
        package = folder / "smembench"
        package.mkdir(parents=True)
        (package / "__init__.py").touch()
        (folder / "pyproject.toml").write_text(f'[project]\nname = "{name}"\n')
        return package

    def committed(folder: Path) -> str:
        git(folder, "init", "-q")
        git(folder, "add", "-A")
        git(folder, "commit", "-q", "-m", "one")
        return git(folder, "rev-parse", "HEAD")

    own, other = made(tmp_path / "own", "smembench"), made(tmp_path / "other", "theirs")
    revision, foreign = committed(own.parent), committed(other.parent)
    inside = made(tmp_path / "other/venv/lib/site-packages", "smembench")
    for variable in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.setenv(variable, str(tmp_path / "other/.git"))
    result = []
    for package in (own, other, inside, made(tmp_path / "none", "smembench")):
        monkeypatch.setattr(environments, "_PACKAGE", package)
        result.append(environments.git_revision())
    assert result == [Git(revision=revision, dirty=False), None, None, None]
    assert foreign != revision

    monkeypatch.setattr(environments, "_PACKAGE", own)
    (own / "untracked.py").touch()
    assert environments.git_revision() == result[0]
    (own / "__init__.py").write_text("changed = True")
    assert environments.git_revision() == Git(revision=revision, dirty=True)


def test_the_data_of_a_launch_is_part_of_what_was_measured(tmp_path: Path) -> None:
    for name in ("scale.cu", "x.npy", "y.npy"):
        (tmp_path / name).write_text(name)
    given = [f"{tmp_path}/x.npy", f"y=bfloat16 {tmp_path}/y.npy", "float32[4]", f"{tmp_path}/none.npy"]
    config = from_flags({"sweep": [{"kernel": f"{tmp_path}/scale.cu:scale", "arg": given}]})

    def deciding() -> dict[str, str]:
        return describe_run("run", config, 1, [], anonymous=False, argv=[]).deciding

    before = deciding()
    assert {"kernel file scale.cu", "data file x.npy", "data file y.npy"} <= {*before}
    (tmp_path / "y.npy").write_text("other values")
    assert {name for name, text in deciding().items() if text != before[name]} == {"data file y.npy"}


def test_an_anonymous_run_tells_gpus_apart_and_names_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def described(uuid: str) -> Description:
        info = DeviceInfo.model_validate({"name": "cuda:0", "model": "NVIDIA H200", "uuid": uuid})
        return describe_run(
            "run", from_flags({"sweep": [{"problem": "transpose", "n": "8"}]}), 1, [info], anonymous=True, argv=[]
        )

    def identity(uuid: str) -> str:
        return described(uuid).identity("cuda:0")

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "here"))
    here = [identity(f"GPU-{number}") for number in range(4)]
    assert len({*here, ""}) == 5
    assert identity("GPU-1") == here[1]
    assert "GPU-1" not in described("GPU-1").model_dump_json()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "elsewhere"))
    assert identity("GPU-1") not in here
    monkeypatch.setenv("XDG_STATE_HOME", "/proc/none")
    assert identity("GPU-1") == ""


def test_a_damaged_salt_tells_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert pseudonym("GPU-1")
    (salt,) = (path for path in tmp_path.rglob("*") if path.is_file())
    salt.write_bytes(b"")
    assert pseudonym("GPU-1") is None


def test_a_run_of_kernels_of_ones_own_has_their_repositorys_revision(tmp_path: Path) -> None:
    def of(*files: str) -> Git | None:
        sweep = {
            "problem": "time",
            "kernel": [f"{tmp_path / file}:scale" for file in files],
            "grid": "1",
            "block": "32",
        }
        return environments.kernels_revision(from_flags({"sweep": [sweep]}))

    for folder in ("mine/kernels", "none", "empty"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "scale.cu").touch()
    git(tmp_path / "empty", "init", "-q")
    assert of("mine/kernels/scale.cu") is None
    git(tmp_path / "mine", "init", "-q")
    git(tmp_path / "mine", "add", "-A")
    git(tmp_path / "mine", "commit", "-q", "-m", "one")
    revision = git(tmp_path / "mine", "rev-parse", "HEAD")
    assert of("mine/kernels/scale.cu") == Git(revision=revision, dirty=False)
    (tmp_path / "mine/kernels/scale.cu").write_text("changed")
    assert of("mine/kernels/scale.cu") == Git(revision=revision, dirty=True)
    assert of("mine/kernels/scale.cu", "none/scale.cu") is None
    assert of("empty/scale.cu") is None
