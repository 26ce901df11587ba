"""Rounds, extra rounds, failures and interruptions, on a worker that is made up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest

from smembench.devices.base import GUARD_BYTES
from smembench.model.case import Case
from smembench.model.errors import DeviceUnavailable
from smembench.model.measurement import Conditions, Status, Trial
from smembench.model.sustained import Moment
from smembench.run.plan import Planned
from smembench.run.runner import Runner
from smembench.run.stop_rule import MAX_EXTRA_ROUNDS, StopRule
from smembench.run.trial import Request
from smembench.run.worker import Worker, WorkerFailed, WorkerTimeout

CASES = [Case("transpose", kernel, "cuda:0", "float32", 64, 64) for kernel in ("copyGmem", "naiveGmem", "memcpy")]
SAMPLES = (1.0,) * 10


class FakeWorker(Worker):
    """Answers each request with ``answer(request)``, and remembers it."""

    def __init__(self, answer: Callable[[Request], Trial], log: list[Request]) -> None:
        self.answer = answer
        self.log = log
        self.closed = False
        self.partial: Trial | None = None

    def run(self, request: Request, timeout: float) -> Trial:
        self.log.append(request)
        return self.answer(request)

    def stop(self) -> None:
        request = self.log[-1]
        self.partial = Trial(request.case, request.round, Status.OK, "now", samples=(9.0,))

    def wait_stopped(self, timeout: float) -> Trial | None:
        return self.partial

    def close(self) -> None:
        self.closed = True


def steady(request: Request) -> Trial:
    return Trial(request.case, request.round, Status.OK, "now", samples=SAMPLES[: request.samples], seconds=0.1)


def runner(
    answer: Callable[[Request], Trial] = steady, *, rule: StopRule | None = None, planned: list[Planned] | None = None
) -> tuple[Runner, list[Request], list[FakeWorker]]:
    log: list[Request] = []
    hired = [FakeWorker(answer, log)]

    def hire() -> FakeWorker:
        hired.append(FakeWorker(answer, log))
        return hired[-1]

    rules = {kind: rule or StopRule() for kind in ("cuda", "cpu")}
    return Runner(planned or [Planned(case) for case in CASES], rules, 1, 5.0, hired[0], hire), log, hired


def test_every_case_has_one_trial_per_round_in_changing_order() -> None:
    subject, log, _ = runner()
    trials = list(subject.run())
    assert [trial.round for trial in trials] == [0] * 3 + [1] * 3 + [2] * 3
    assert Counter(trial.case for trial in trials) == dict.fromkeys(CASES, 3)
    assert len({tuple(request.case for request in log[start : start + 3]) for start in (0, 3, 6)}) > 1


def test_only_cases_that_did_not_converge_get_extra_rounds() -> None:
    def answer(request: Request) -> Trial:
        noisy = request.case is CASES[0] and request.round < 4
        return replace(steady(request), samples=(1.0, 3.0) * 5 if noisy else SAMPLES * 8)

    subject, _, _ = runner(answer)
    extra = [(trial.case, trial.round) for trial in subject.run() if trial.round >= 3]
    assert extra[:2] == [(CASES[0], 3), (CASES[0], 4)]
    assert {case for case, _ in extra} == {CASES[0]}


def test_a_case_that_never_converges_ends_all_the_same() -> None:
    subject, _, _ = runner(lambda request: replace(steady(request), samples=(1.0, 3.0) * 5))
    assert max(trial.round for trial in subject.run()) == 3 + MAX_EXTRA_ROUNDS - 1


@pytest.mark.parametrize("throttled", [False, True])
def test_extra_rounds_grow_unless_the_device_was_throttled(throttled: bool) -> None:
    """Longer ones would be slower; it was throttled in the first round alone, which a resumed run knows, too."""

    def answer(request: Request) -> Trial:
        hot = throttled and request.round == 0
        state = Conditions(throttle_reasons="sw_power_cap" if hot else "none")
        return replace(steady(request), samples=(1.0, 3.0) * 5, conditions=state)

    subject, log, _ = runner(answer)
    done = [trial for trial in subject.run() if trial.round < 4]
    sizes = {request.round: request.samples for request in log}
    assert [sizes[round_] for round_ in range(6)] == ([10] * 6 if throttled else [10, 10, 10, 20, 40, 80])
    resumed, log, _ = runner(answer)
    for _ in resumed.run(done):
        pass
    assert {request.round: request.samples for request in log} == {at: sizes[at] for at in sizes if at >= 4}


def test_loads_follow_all_rounds_once_per_case_and_a_resumed_run_makes_those_that_are_missing() -> None:
    batch = Moment(6.0, 100, 60.0)

    def answer(request: Request) -> Trial:
        if request.case is CASES[1]:
            return replace(steady(request), status=Status.FAILED, samples=())
        return replace(steady(request), samples=(), moments=(batch,)) if request.sustained else steady(request)

    rule = StopRule(sustained=6.0)
    subject, log, _ = runner(answer, rule=rule)
    trials = list(subject.run())
    loads = [request for request in log if request.sustained]
    assert [request.sustained for request in log[: -len(loads)]] == [0.0] * (len(log) - len(loads))
    assert {request.case for request in loads} == {CASES[0], CASES[2]}
    assert {request.round for request in loads} == {3}
    resumed, log, _ = runner(answer, rule=rule)
    (last,) = resumed.run(trials[:-1])
    assert (last.case, last.round, [request.sustained for request in log]) == (loads[-1].case, 4, [6.0])


def test_sampling_time_ends_a_case_too() -> None:
    subject, _, _ = runner(lambda request: replace(steady(request), samples=(1.0, 3.0) * 5, seconds=10.0))
    assert max(trial.round for trial in subject.run()) == 2


@pytest.mark.parametrize(
    ("error", "status"),
    [(WorkerTimeout("no answer"), Status.TIMEOUT), (WorkerFailed("illegal address"), Status.FAILED)],
)
def test_a_failure_is_a_trial_and_a_fresh_worker_goes_on(error: Exception, status: Status) -> None:
    def answer(request: Request) -> Trial:
        if request.case is CASES[1]:
            raise error
        return steady(request)

    subject, log, hired = runner(answer)
    trials = list(subject.run())
    failed = [trial for trial in trials if trial.case is CASES[1]]
    assert [(trial.status, trial.reason, trial.round) for trial in failed] == [(status, str(error), 0)]
    assert Counter(trial.case for trial in trials if trial.status is Status.OK) == {CASES[0]: 3, CASES[2]: 3}
    assert len(hired) == 2
    assert len(log) == len(trials)


def test_a_device_that_stays_dead_ends_the_run_and_keeps_what_was_measured() -> None:
    def answer(request: Request) -> Trial:
        if request.round == 1:
            raise WorkerFailed("gone")
        return steady(request)

    log: list[Request] = []

    def dead() -> FakeWorker:
        raise DeviceUnavailable("device cuda: gone")

    rules = {kind: StopRule() for kind in ("cuda", "cpu")}
    subject = Runner([Planned(case) for case in CASES], rules, 1, 5.0, FakeWorker(answer, log), dead)
    run = subject.run()
    trials = [next(run) for _ in range(4)]
    with pytest.raises(DeviceUnavailable, match="gone"):
        next(run)
    assert [trial.status for trial in trials] == [Status.OK] * 3 + [Status.FAILED]


def test_an_interruption_brings_back_what_the_trial_had() -> None:
    def answer(request: Request) -> Trial:
        if request.round == 1:
            raise KeyboardInterrupt
        return steady(request)

    subject, _, hired = runner(answer)
    kept: list[Trial] = []
    with pytest.raises(KeyboardInterrupt):
        kept.extend(subject.run())
    assert [trial.samples for trial in kept[len(CASES) :]] == [(9.0,)]
    subject.close()
    assert hired[0].closed


def test_a_resumed_run_does_what_was_left_and_nothing_twice() -> None:
    subject, _, _ = runner()
    whole = list(subject.run())
    for kept in range(len(whole) + 1):
        again, _, _ = runner()
        rest = list(again.run(whole[:kept]))
        assert {(v.case, v.round) for v in whole[:kept]} | {(v.case, v.round) for v in rest} == {
            (v.case, v.round) for v in whole
        }
        assert len(rest) == len(whole) - kept


def test_a_case_the_plan_skips_is_a_row_and_never_run() -> None:
    planned = [Planned(CASES[0]), Planned(CASES[1], skip="needs a square block")]
    subject, log, _ = runner(planned=planned)
    trials = list(subject.run())
    assert [(v.case, v.reason) for v in trials if v.status is Status.SKIPPED] == [(CASES[1], "needs a square block")]
    assert {request.case for request in log} == {CASES[0]}


def test_begin_counts_the_trials() -> None:
    seen: list[tuple[int, int]] = []
    subject, _, _ = runner()
    list(subject.run(begin=lambda case, number, of: seen.append((number, of))))
    assert seen == [(number, 9) for number in range(1, 10)]


def test_every_request_says_what_the_largest_case_of_its_device_needs() -> None:
    small, large = replace(CASES[0], m=64, n=64), replace(CASES[0], m=128, n=256)
    skipped = Planned(replace(CASES[0], n=4096), skip="too large")
    subject, log, _ = runner(planned=[Planned(small), Planned(large), skipped])
    list(subject.run())
    assert {request.memory for request in log} == {(4 * 128 * 256 + 2 * GUARD_BYTES, 4 * 128 * 256)}
