"""A lesson's count: wrong results are counted, and a run that fails is no right one."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from smembench.cli.lesson import lesson
from smembench.kernels import registry
from smembench.model.case import Case
from smembench.model.device import Limits
from smembench.model.errors import SmembenchError
from smembench.model.measurement import Status, Trial
from smembench.run import session, worker
from smembench.run.trial import Request
from smembench.run.worker import WorkerFailed


class FakeWorker:
    """A GPU on which the kernel without a barrier is wrong every other time, and none takes 2048 threads."""

    def __init__(self, names: Sequence[str]) -> None:
        assert list(names) == ["cuda:0"]
        self.limits = {"cuda:0": Limits(free_bytes=2**30, max_threads=1024)}

    def run(self, request: Request, timeout: float) -> Trial:
        if request.case.m == 13:
            raise WorkerFailed("the launch failed")
        return Trial(request.case, request.round, _status(request.case, request.seed), "")

    def close(self) -> None:
        """Nothing to let go of."""


def _status(case: Case, seed: int) -> Status:
    return Status.WRONG_RESULT if case.kernel.endswith("NoBarrier") and seed % 2 else Status.OK


@pytest.fixture(autouse=True)
def a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(registry.EXTRA_KERNELS, "")
    monkeypatch.setattr(worker, "Worker", FakeWorker)
    monkeypatch.setattr(session, "uuid_of", lambda name: None)


def test_wrong_results_are_counted_for_each_block(capsys: pytest.CaptureFixture[str]) -> None:
    lesson("barrier", runs=5, n=64, block="32x32,16x16", device="cuda")
    *lines, last = capsys.readouterr().out.splitlines()
    assert [line.split(maxsplit=1) for line in lines] == [
        ["transposeSmem", "32x32: wrong in 0 of 5 runs"],
        ["transposeSmem", "16x16: wrong in 0 of 5 runs"],
        ["transposeSmemNoBarrier", "32x32: wrong in 2 of 5 runs"],
        ["transposeSmemNoBarrier", "16x16: wrong in 2 of 5 runs"],
    ]
    assert "Only the barrier makes it right every time" in last


@pytest.mark.parametrize(
    ("n", "block", "words"),
    [(13, "32x32", "transposeSmem 32x32, run 1: the launch failed"), (64, "64x32", "block 64x32: 2048 threads")],
)
def test_a_run_that_fails_ends_the_lesson(n: int, block: str, words: str) -> None:
    with pytest.raises(SmembenchError, match=words):
        lesson("barrier", runs=5, n=n, block=block, device="cuda")
