"""A run's folder after kills, on a full disk and with two writers: nothing acknowledged is lost or doubled."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from campaign import CAMPAIGN, CASE, chance, trials
from smembench.model.device import DeviceInfo
from smembench.model.errors import UsageError
from smembench.store import journal
from smembench.store.assemble import assemble
from smembench.store.load import load
from smembench.store.run_folder import JOURNAL, RunFolder, read_description
from smembench.store.run_json import Description, StoredConfig
from smembench.studies.nightly.runs import prune

TRIALS = trials(4)
RUN = Description.model_validate(
    {
        "run_id": "20260101T000000Z-x",
        "started_at_utc": "2026-01-01T00:00:00+00:00",
        "seed": 1,
        "config": {"name": "x", "sweep": [{"problem": "transpose", "kernel": ["memcpy"], "device": ["cpu"]}]},
        "devices": [{"name": "cpu"}],
        "host": {"name": "here"},
    }
)
pytestmark = pytest.mark.filterwarnings("ignore::smembench.model.errors.Dropped")  # a line that is cut off


def go_on(root: Path, acknowledge: Callable[[int], object] = lambda round_: None) -> None:
    """Begin or resume the run, and do the rest of it."""
    path = root / RUN.run_id
    folder = RunFolder.resume(path) if path.exists() else RunFolder.create(root, RUN)
    done = {trial.round for trial in folder.trials}
    try:
        for trial in TRIALS:
            if trial.round not in done:
                folder.append(trial)
                acknowledge(trial.round)
        folder.finish(assemble([CASE], folder.trials, {"cpu": DeviceInfo(name="cpu")}, {"cpu": 1.0}), complete=True)
    finally:
        folder.close()


def kept(root: Path) -> set[float]:
    """Samples of the run as they are read now; none if it has no beginning."""
    try:
        return set(load(root / RUN.run_id).values(CASE.id))
    except UsageError:
        return set()


def check_complete(root: Path) -> None:
    """The run has everything once, and ``--keep`` removes it when it is surplus: nothing else lies in it."""
    folder = root / RUN.run_id
    run = load(folder)
    assert run.complete
    assert sorted(run.values(CASE.id)) == sorted(value for trial in TRIALS for value in trial.samples)
    later = RUN.model_copy(update={"started_at_utc": "2026-01-02T00:00:00+00:00"})
    assert prune(root, later, root / "later", 1, []) == ([f"removed {folder}"], [])


def finish(root: Path) -> None:
    """Do the rest of a run that was cut off, and check it; one without a beginning is begun again."""
    folder = root / RUN.run_id
    begun = (folder / JOURNAL).exists() and b"\n" in (folder / JOURNAL).read_bytes()
    if not begun and not read_description(folder).complete:
        shutil.rmtree(folder, ignore_errors=True)
    if begun or not folder.exists():
        go_on(root)
    check_complete(root)


class Child:
    """A forked process that does some of a run; ``acknowledged`` has the rounds that it said were on disk."""

    def __init__(self, work: Callable[[Callable[[int], object]], None]) -> None:
        self._reader, writer = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            code = 0
            try:
                work(lambda round_: os.write(writer, bytes([round_])))
            except UsageError:
                code = 2
            except BaseException:
                code = 3
            finally:
                os._exit(code)
        os.close(writer)

    def wait(self) -> int:
        """Its exit code, or minus the signal that ended it."""
        _, status = os.waitpid(self.pid, 0)
        with os.fdopen(self._reader, "rb") as stream:
            self.acknowledged = set(stream.read())
        return os.waitstatus_to_exitcode(status)


_CHANGES = ("open", "write", "fsync", "mkdir", "replace", "unlink")
"""Functions of ``os`` that change the disk."""


@contextmanager
def from_call(number: int, fault: Callable[[], None], spared: tuple[str, ...] = ()) -> Iterator[list[str]]:
    """Have ``fault`` happen at a call that changes the disk and at all after it; yields the names of the calls."""
    called: list[str] = []

    def wrapped(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **options: Any) -> Any:
            if name not in spared and (name != "open" or arguments[1] & os.O_CREAT):
                called.append(name)
                if len(called) > number:
                    fault()
            return call(*arguments, **options)

        return counted

    with pytest.MonkeyPatch.context() as patched:
        for name in _CHANGES:
            patched.setattr(os, name, wrapped(name, getattr(os, name)))
        yield called


def calls_of(root: Path, **options: Any) -> int:
    """How many calls of a whole run change the disk."""
    with from_call(1000, lambda: None, **options) as called:
        go_on(root)
    return len(called)


def test_a_full_disk_at_any_write_loses_nothing_acknowledged(tmp_path: Path) -> None:
    def full() -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    for number in range(calls_of(tmp_path / "whole", spared=("unlink",))):
        root = tmp_path / str(number)
        acknowledged: list[int] = []
        with (
            from_call(number, full, spared=("unlink",)),
            pytest.raises((OSError, UsageError), match="No space left"),
        ):
            go_on(root, acknowledged.append)
        assert kept(root) >= {TRIALS[round_].samples[0] for round_ in acknowledged}
        assert all(any(folder.iterdir()) for folder in root.glob("*"))  # a folder without anything is not left behind
        finish(root)


def test_a_kill_at_any_change_of_the_disk_loses_nothing_acknowledged(tmp_path: Path) -> None:
    def kill() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    for number in range(calls_of(tmp_path / "whole")):
        root = tmp_path / str(number)

        def work(acknowledge: Callable[[int], object], number: int = number, root: Path = root) -> None:
            with from_call(number, kill):
                go_on(root, acknowledge)

        child = Child(work)
        assert child.wait() == -signal.SIGKILL
        assert kept(root) >= {TRIALS[round_].samples[0] for round_ in child.acknowledged}
        finish(root)


def test_kills_at_random_moments_lose_nothing_acknowledged(tmp_path: Path) -> None:
    rng, begun = chance("kills"), time.perf_counter()
    go_on(tmp_path / "whole")
    whole = time.perf_counter() - begun
    root, acknowledged, kills = tmp_path / "run", set[int](), 0
    while kills < 10 * CAMPAIGN:
        child = Child(lambda acknowledge: go_on(root, acknowledge))
        time.sleep(rng.uniform(0, whole))
        os.kill(child.pid, signal.SIGKILL)
        code = child.wait()
        assert code in (0, -signal.SIGKILL)
        kills += code != 0
        acknowledged |= child.acknowledged
        assert kept(root) >= {TRIALS[round_].samples[0] for round_ in acknowledged}
        if not acknowledged or not (root / RUN.run_id / JOURNAL).exists() or rng.random() < 0.2:
            finish(root)
            acknowledged = set()


def test_of_two_writers_one_is_refused(tmp_path: Path) -> None:
    rng, refused = chance("writers"), 0
    for number in range(5 * CAMPAIGN):
        root = tmp_path / str(number)
        folder = RunFolder.create(root, RUN)
        folder.append(TRIALS[0])
        folder.close()

        def work(acknowledge: Callable[[int], object], root: Path = root, wait: float = rng.uniform(0, 0.01)) -> None:
            time.sleep(wait)
            go_on(root, acknowledge)

        children = [Child(work) for _ in range(2)]
        codes = sorted(child.wait() for child in children)
        assert codes in ([0, 2], [0, 0])
        # The other comes too late when the run is complete, and finds no journal to go on with.
        refused += codes == [0, 2]
        first, second = (child.acknowledged for child in children)
        assert not first & second
        assert first | second == {trial.round for trial in TRIALS[1:]}
        check_complete(root)
    assert refused


def test_a_run_that_is_written_is_not_removed(tmp_path: Path) -> None:
    """Not even if its run.json says that it is complete, as that of a run that was killed at its very end does."""
    go_on(tmp_path)
    folder = tmp_path / RUN.run_id
    described = (folder / "run.json").read_text()
    shutil.rmtree(folder)
    writer = RunFolder.create(tmp_path, RUN)
    writer.append(TRIALS[0])
    (folder / "run.json").write_text(described)
    later = RUN.model_copy(update={"started_at_utc": "2026-01-02T00:00:00+00:00"})
    assert prune(tmp_path, later, tmp_path / "later", 1, []) == ([], [])
    writer.close()
    assert load(folder).values(CASE.id) == list(TRIALS[0].samples)
    assert prune(tmp_path, later, tmp_path / "later", 1, []) == ([f"removed {folder}"], [])


def test_a_new_file_and_a_rename_are_on_disk_in_their_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda file: synced.append(Path(f"/proc/self/fd/{file}").readlink().name))
    go_on(tmp_path)
    names = [name.split(".")[1] if name.startswith(".") else name for name in synced]
    assert names[:5] == [tmp_path.name, JOURNAL, RUN.run_id, "run", RUN.run_id]
    assert names[-7:] == ["cases", RUN.run_id, "samples", RUN.run_id, "run", RUN.run_id, RUN.run_id]


def test_a_file_is_not_resumed(tmp_path: Path) -> None:
    (file := tmp_path / "run.json").touch()
    with pytest.raises(UsageError, match="is a file; name a run's folder"):
        RunFolder.resume(file)


def test_an_interrupted_run_has_the_order_of_its_plan(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, RUN)
    cases = [replace(CASE, m=16), CASE]
    for case in reversed(cases):
        folder.append(replace(trials(1)[0], case=case))
    folder.finish(assemble(cases, folder.trials, {"cpu": DeviceInfo(name="cpu")}, {"cpu": 1.0}), complete=False)
    assert [row.case_id for row in load(folder.path).rows] == [case.id for case in cases]


def test_the_journal_is_read_wherever_it_is(tmp_path: Path) -> None:
    """After Ctrl-C cases.csv has what was measured until then, and a resumed run that is killed has more."""
    folder = RunFolder.create(tmp_path, RUN)
    folder.append(TRIALS[0])
    infos = {"cpu": DeviceInfo(name="cpu")}
    folder.finish(assemble([CASE], folder.trials, infos, {"cpu": 1.0}), complete=False)
    resumed = RunFolder.resume(folder.path)
    resumed.append(TRIALS[1])
    resumed.close()
    for path in (folder.path, folder.path / "cases.csv"):
        run = load(path)
        assert run.values(CASE.id) == [TRIALS[0].samples[0], TRIALS[1].samples[0]]
        assert not run.complete


@pytest.mark.parametrize("complete", [None, False])
def test_a_flip_in_the_first_line_loses_nothing(tmp_path: Path, complete: bool | None) -> None:
    """run.json has the same, also after Ctrl-C, when it has the run's end too."""
    folder = RunFolder.create(tmp_path, RUN)
    folder.append(TRIALS[0])
    folder.append(TRIALS[1])
    if complete is not None:
        folder.finish(assemble([CASE], folder.trials, {"cpu": DeviceInfo(name="cpu")}, {"cpu": 1.0}), complete=complete)
    folder.close()
    path = folder.path / JOURNAL
    whole = path.read_bytes()
    first = whole.index(b"\n")
    rng = chance("first line")
    for at in [*range(35), *(rng.randrange(first) for _ in range(20))]:
        for flip in (1 << rng.randrange(8), whole[at] ^ ord("\n")):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ flip]) + whole[at + 1 :])
            contents = journal.read(path)
            assert contents.trials == TRIALS[:2]
            assert contents.description == RUN
    resumed = RunFolder.resume(folder.path)
    resumed.append(TRIALS[2])
    resumed.close()
    assert set(load(folder.path).values(CASE.id)) == {trial.samples[0] for trial in TRIALS[:3]}
    (folder.path / "run.json").write_text((folder.path / "run.json").read_text().replace('"seed": 1', '"seed": 2'))
    with pytest.raises(UsageError, match="line 1: damaged"):
        load(folder.path)


def test_what_differed_is_stored_even_if_the_run_is_killed_then(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, RUN)
    folder.go_on(["numba was 1, is 2"])
    folder.close()
    resumed = RunFolder.resume(folder.path)
    resumed.append(replace(TRIALS[0]))
    resumed.go_on(["numba was 1, is 3"])
    resumed.close()
    assert load(folder.path).description.resumed_with_differences == [["numba was 1, is 2"], ["numba was 1, is 3"]]


def test_a_killed_runs_cases_are_in_an_order_like_the_plans(tmp_path: Path) -> None:
    """Its journal has them as a round shuffled them."""
    kernels, sizes = ("memcpy", "copyGmem", "naiveGmem"), (8, 16, 100)
    sweep = {"problem": "transpose", "kernel": [*kernels], "device": ["cpu"]}
    run = RUN.model_copy(update={"config": StoredConfig.model_validate({"name": "x", "sweep": [sweep]})})
    planned = [replace(CASE, kernel=kernel, m=n, n=n) for n in sizes for kernel in kernels]
    folder = RunFolder.create(tmp_path, run)
    for case in chance("a round").sample(planned, len(planned)):
        folder.append(replace(TRIALS[0], case=case))
    folder.close()
    assert [row.case.id for row in load(tmp_path / RUN.run_id).rows] == [case.id for case in planned]
