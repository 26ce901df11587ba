"""Journals that were cut, damaged or are written by two: intact lines are kept, and no value changes unnoticed."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from campaign import CAMPAIGN, chance, trials
from smembench.model.errors import Dropped, UsageError
from smembench.store import journal
from smembench.store.journal import Journal
from smembench.store.run_folder import JOURNAL, RUN, to_json
from smembench.store.run_json import Description, StoredConfig

EMPTY = Description(run_id="x", seed=1, config=StoredConfig(), devices=[])
TRIALS = trials(12)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A journal of ``TRIALS``, with a run.json beside it."""
    path = tmp_path / JOURNAL
    (tmp_path / RUN).write_text(to_json(EMPTY.data))
    writer = Journal.create(path, EMPTY)
    for trial in TRIALS:
        writer.append(trial)
    writer.close()
    return path


@contextmanager
def expect_dropped(*, if_: bool, match: str = "") -> Iterator[None]:
    """A warning says what is left out of a journal, if so expected."""
    if not if_:
        yield
        return
    with pytest.warns(Dropped, match=match):
        yield


def test_a_journal_cut_at_every_byte_gives_back_every_whole_trial(path: Path) -> None:
    data = path.read_bytes()
    data = data[: -sum(map(len, data.splitlines(keepends=True)[3:]))]
    ends = [number + 1 for number, sign in enumerate(data) if sign == ord("\n")]
    for length in range(len(data) + 1):
        path.write_bytes(data[:length])
        whole = sum(end <= length for end in ends)
        if not whole:
            with pytest.raises(UsageError, match="nothing to resume"):
                journal.read(path)
            continue
        with expect_dropped(if_=length not in ends, match=f"line {whole + 1}: cut off"):
            writer, contents = Journal.reopen(path)
        assert contents.trials == TRIALS[: whole - 1]
        if length % 50 == 0 or length in ends:
            writer.append(TRIALS[5])
            assert journal.read(path).trials == [*contents.trials, TRIALS[5]]
        writer.close()


def flipped(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]


def _between(data: bytes, rng: random.Random) -> tuple[int, int]:
    begin = rng.randrange(len(data))
    return begin, min(begin + rng.choice([1, 8, 64, 512, 4096]), len(data))


def with_a_hole(data: bytes, rng: random.Random) -> bytes:
    begin, end = _between(data, rng)
    return data[:begin] + data[end:]


def zeroed(data: bytes, rng: random.Random) -> bytes:
    begin, end = _between(data, rng)
    return data[:begin] + bytes(end - begin) + data[end:]


def repeated(data: bytes, rng: random.Random) -> bytes:
    begin, end = _between(data, rng)
    at = rng.choice([end, rng.randrange(len(data))])
    return data[:at] + data[begin:end] + data[at:]


def with_lines_moved(data: bytes, rng: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    one, other = rng.sample(range(len(lines)), 2)
    lines.insert(other, rng.choice([lines[one], lines.pop(one)]))
    return b"".join(lines)


@pytest.mark.parametrize("damage", [flipped, with_a_hole, zeroed, repeated, with_lines_moved])
@pytest.mark.filterwarnings("ignore::smembench.model.errors.Dropped")
def test_intact_lines_are_kept_and_nothing_else(path: Path, damage: Callable[[bytes, random.Random], bytes]) -> None:
    whole = path.read_bytes()
    rng = chance(damage.__name__)
    for _ in range(40 * CAMPAIGN):
        data, damages = whole, rng.choice([1, 1, 3])
        for _ in range(damages):
            data = damage(data, rng)
        path.write_bytes(data)
        kept = [old == new for old, new in zip(whole.split(b"\n"), data.split(b"\n"), strict=False)]
        intact = [*kept[:-1], False].index(False)
        try:
            contents = journal.read(path)
        except UsageError:
            contents = None
        assert contents or not intact
        if contents:
            assert all(one and one[0].startswith("unknown") for one in contents.description.resumed_with_differences)
            assert contents.description.model_copy(update={"resumed_with_differences": []}) == EMPTY
            numbers = [TRIALS.index(trial) for trial in contents.trials]
            assert len(set(numbers)) == len(numbers)
            missing = len(set(whole.splitlines()[1:]) - set(data.splitlines()))
            # Of lines that were moved or follow a gap, which line they continue may be unknown.
            assert len(numbers) >= len(TRIALS) - missing - 3 * damages


def test_a_damaged_line_is_named_and_costs_no_other_trial(path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    for begin, end in ((b"0.1", b"0.2"), (b'"crc32"', b'"crc92"'), (b'"visit"', b'"resumed"')):
        damaged = lines[7].replace(begin, end)
        path.write_bytes(b"".join([*lines[:7], damaged, *lines[8:]]))
        with pytest.warns(Dropped, match=r"line 8: damaged: its? .* lines dropped: 1, trials used: 11$"):
            contents = journal.read(path)
        assert contents.trials == [*TRIALS[:6], *TRIALS[7:]]
        unknown = [["unknown: line 8 of journal.jsonl was damaged"]] if b"resumed" in damaged else []
        assert contents.description.resumed_with_differences == unknown


def test_a_journal_with_a_damaged_line_is_continued_and_keeps_what_follows(path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    damaged = b"".join([*lines[:7], lines[7].replace(b"0.1", b"0.2"), *lines[8:]])
    path.write_bytes(damaged)
    with pytest.warns(Dropped, match="line 8"):
        writer, _ = Journal.reopen(path)
    writer.append(TRIALS[6])
    writer.close()
    assert path.read_bytes().startswith(damaged)
    with pytest.warns(Dropped, match="lines dropped: 1, trials used: 12"):
        assert journal.read(path).trials == [*TRIALS[:6], *TRIALS[7:], TRIALS[6]]


def without_checksums(path: Path) -> list[bytes]:
    """The lines of a journal as older versions wrote them."""
    return [b"{" + line[len(b'{"crc32": "00000000", ') :] for line in path.read_bytes().splitlines(keepends=True)]


def test_a_journal_of_an_older_version_is_read_and_continued_with_checksums(path: Path) -> None:
    path.write_bytes(b"".join(without_checksums(path)[:4]))
    writer, contents = Journal.reopen(path)
    assert contents.trials == TRIALS[:3]
    writer.append(TRIALS[3])
    writer.append(TRIALS[4])
    writer.close()
    assert journal.read(path).trials == TRIALS[:5]
    path.write_bytes(path.read_bytes().replace(b"0.142", b"0.143"))
    with pytest.warns(Dropped, match="line 6: damaged"):
        assert journal.read(path).trials == TRIALS[:4]


def test_of_two_trials_of_a_case_and_round_one_counts(path: Path) -> None:
    """Two processes of an older version could write one journal."""
    lines = without_checksums(path)
    path.write_bytes(b"".join([*lines[:3], *lines[1:3], lines[3]]))
    with pytest.warns(Dropped, match="count once: 2$"):
        assert journal.read(path).trials == TRIALS[:3]


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ('"samples": [0.3333333333333333]', '"samples": ["0.3"]', "visit.samples[0]: should be a number"),
        ('"samples": [0.3333333333333333]', '"samples": [NaN]', "visit.samples[0]: should be "),
        ('"samples": [0.3333333333333333]', '"samples": [-1.0]', "visit.samples[0]: should be 1e-09 or more"),
        ('"samples": [0.3333333333333333]', '"samples": [1e-320]', "visit.samples[0]: should be 1e-09 or more"),
        ('"round": 0', '"round": "0"', "visit.round: should be a whole number"),
        ('"round": 0', f'"round": {"9" * 5000}', "it is not JSON"),
        ('"m": 8', '"m": 1e400', "visit.case.m: should be "),
        ('"m": 8', f'"m": {2**70}', "visit.case.m: should be a number below"),
        ('"visit"', '"vist"', "it has no checksum"),
    ],
)
def test_a_line_that_is_no_trial_is_left_out(path: Path, old: str, new: str, fault: str) -> None:
    head, first, second = without_checksums(path)[:3]
    assert old in first.decode()
    path.write_bytes(head + first.decode().replace(old, new).encode() + second)
    with pytest.warns(Dropped) as warned:
        assert journal.read(path).trials == [TRIALS[1]]
    assert f"line 2: damaged: {fault}" in str(warned[0].message)
    assert len(str(warned[0].message)) < len(str(path)) + 400


def test_another_schema_version_is_refused(path: Path) -> None:
    lines = without_checksums(path)
    path.write_bytes(lines[0].replace(b'"run": {', b'"run": {"schema_version": 2, ') + lines[1])
    with pytest.raises(UsageError, match=r"line 1: damaged: run\.schema_version: should be 1, not 2"):
        journal.read(path)


def test_a_journal_has_one_writer(path: Path) -> None:
    writer, _ = Journal.reopen(path)
    with pytest.raises(UsageError, match="another process is writing this run"):
        Journal.reopen(path)
    writer.append(replace(TRIALS[0], round=50))
    assert len(journal.read(path).trials) == 13  # reading needs no lock
    writer.close()
    Journal.reopen(path)[0].close()


def test_a_trial_is_not_written_to_a_journal_that_was_removed(path: Path) -> None:
    writer, _ = Journal.reopen(path)
    path.unlink()
    with pytest.raises(FileNotFoundError):
        writer.append(TRIALS[0])
    writer.close()
