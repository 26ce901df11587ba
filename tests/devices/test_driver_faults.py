"""Errors of the driver, without a GPU: each becomes a row with its reason, and the run goes on as far as it can."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from conftest import assert_failed, held_locks, records
from fake_driver.host_code import HostKernel, compile_for_host, port
from fake_driver.process import FEW, FakeDriver, ended
from smembench.model.case import Block, Case

pytestmark = pytest.mark.slow

TRANSPOSE = ["smembench", "transpose", "--device", "cuda", "--n", "40", "--block", "16x16", *FEW]
FAULTY = Path(__file__).parents[1] / "faults" / "kernels"
OUTSIDE = """
typedef float T;
static void outside(T *out, const T *in, unsigned nx, unsigned ny)
{
    out[nx * ny] = in[0];
}
"""
MEDDLES = """
typedef float T;
static void meddles(T *out, T *in, unsigned nx, unsigned ny)
{
    for (unsigned i = 0; i < nx * ny; ++i)
        out[i % nx * ny + i / nx] = in[i];
    in[0] = 0;
}
"""


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Host forms of copyGmem and of the faulty kernels that need one."""
    copy = Case("transpose", "copyGmem", "cuda:0", "float32", 40, 40, None, Block(16, 16))
    outside = HostKernel("outside", "cuda_outside", OUTSIDE, (1, 1), 2, 2)
    meddles = HostKernel("meddles", "cuda_meddles", MEDDLES, (1, 1), 2, 2)
    return compile_for_host([port(copy), outside, meddles], tmp_path_factory.mktemp("kernels"))


def test_every_faulty_kernel_is_a_row_and_the_others_are_measured(
    fake_driver: FakeDriver, kernels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = {
        "hangs": ("timeout", "no answer within"),
        "illegal": ("failed", "CUDA_ERROR_ILLEGAL_ADDRESS"),
        "wrong": ("wrong_result", "elements differ"),
        "outside": ("wrong_result", "the kernel wrote outside its output"),
        "meddles": ("wrong_result", "the kernel wrote to its input in"),
        "uncompilable": ("failed", "TypingError"),
        "exhausts": ("failed", "CUDA_ERROR_OUT_OF_MEMORY"),
    }
    monkeypatch.setenv("SMEMBENCH_KERNELS", os.pathsep.join(str(FAULTY / f"cuda_{name}.py") for name in expected))
    command = [*TRANSPOSE, "--kernel", ",".join(["copyGmem", *expected]), "--timeout", "3", "--max-seconds", "1"]
    faults = "cuda_hangs 1 0,cuda_illegal 1 700"
    out, _ = ended(fake_driver(*command, "--csv", "-", kernels=kernels, faults=faults), 1)
    result = {row["kernel"]: row for row in records(out)}
    assert_failed(result, expected)
    assert result["copyGmem"]["status"] == result["memcpy"]["status"] == "ok"


def test_an_error_of_any_call_is_the_reason_of_its_row_and_fresh_workers_go_on(
    fake_driver: FakeDriver, kernels: Path, tmp_path: Path
) -> None:
    """Every worker meets the first of these that has not happened yet, at a stage of a trial that it names."""
    expected = {
        "cuMemsetD8Async 1 1": "CUDA_ERROR_INVALID_VALUE: invalid argument",
        "copy_gmem 2 719": "CUDA_ERROR_LAUNCH_FAILED: unspecified launch failure",
        "cuStreamBeginCapture 3 900": "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED: operation not permitted when stream is "
        "capturing",
        "cuEventRecordWithFlags 41 400": "CUDA_ERROR_INVALID_HANDLE: invalid resource handle",
        "cuGraphInstantiateWithFlags 4 2": "CUDA_ERROR_OUT_OF_MEMORY: out of memory",
        "cuGraphLaunch 25 700": "CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered",
    }
    command = [*TRANSPOSE, "--n", "40:45", "--kernel", "copyGmem", "--csv", "-"]
    settings = {"kernels": kernels, "faults": ",".join(expected), "faults_once": tmp_path / "happened"}
    out, _ = ended(fake_driver(*command, **settings), 1)
    result = records(out)
    failed = [row["reason"] for row in result if row["status"] == "failed"]
    assert sorted(failed) == sorted(f"RuntimeError: {reason}" for reason in expected.values())
    assert {row["status"] for row in result} == {"ok", "failed"}


def test_a_gpu_that_is_lost_ends_the_run_and_resume_goes_on(
    fake_driver: FakeDriver, kernels: Path, tmp_path: Path
) -> None:
    config = tmp_path / "lost.toml"
    config.write_text(
        """
        samples = 3
        rounds = 2
        precision = 90.0
        max_seconds = 1.0
        warmup = 0.0
        [[sweep]]
        problem = "transpose"
        kernel = "copyGmem"
        n = [40, 41]
        block = "16x16"
        device = "cuda"
        """
    )
    root = tmp_path / "results"
    lost = {"faults": "copy_gmem 4 719", "faults_once": tmp_path / "lost", "lost": 1}
    _, err = ended(fake_driver("smembench", "run", config, "--output", root, kernels=kernels, **lost), 4)
    (folder,) = root.iterdir()
    assert f"--resume {folder}" in err
    assert not json.loads((folder / "run.json").read_text())["complete"]

    ended(fake_driver("smembench", "run", "--resume", folder, kernels=kernels), 1)
    statuses = [row["status"] for row in records((folder / "cases.csv").read_text())]
    assert sorted(statuses) == ["failed", *["ok"] * 3]
    assert json.loads((folder / "run.json").read_text())["complete"]


def test_a_gpu_that_cannot_be_opened_is_named_with_the_reason(fake_driver: FakeDriver) -> None:
    _, err = ended(fake_driver(*TRANSPOSE, "--kernel", "memcpy", faults="cuGraphLaunch 1 700"), 4)
    assert err.startswith("smembench: cuda:0: RuntimeError: CUDA_ERROR_ILLEGAL_ADDRESS")


def test_without_a_gpu_the_driver_finds_cuda_is_refused_and_auto_is_the_cpu(fake_driver: FakeDriver) -> None:
    _, err = ended(fake_driver(*TRANSPOSE, "--kernel", "memcpy", devices=0), 4)
    assert "CUDA_ERROR_NO_DEVICE" in err
    auto = ["auto" if word == "cuda" else word for word in TRANSPOSE]
    out, _ = ended(fake_driver(*auto, "--kernel", "memcpy", "--csv", "-", devices=0), 0)
    assert {row["device"] for row in records(out)} == {"cpu"}


def test_a_second_run_is_refused_with_the_holder_named(fake_driver: FakeDriver) -> None:
    others = held_locks()
    command = [*TRANSPOSE, "--kernel", "memcpy"]
    first = fake_driver(*command, "--samples", "100000", "--precision", "0.001", "--max-seconds", "60")
    try:
        deadline = time.monotonic() + 60
        while held_locks() <= others:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        _, err = ended(fake_driver(*command), 4)
        assert f"process {first.pid}" in err
    finally:
        first.kill()
        first.communicate()
