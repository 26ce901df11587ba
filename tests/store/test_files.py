"""What is written is whole or not there, and what lies at a path is never replaced by something else."""

from __future__ import annotations

import os
import tracemalloc
from contextlib import suppress
from pathlib import Path

import pytest

from smembench.model.errors import SmembenchError, UsageError
from smembench.store.files import Output, read_whole, write_whole


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    write_whole(tmp_path / "cases.csv", "old")
    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_whole(tmp_path / "cases.csv", "new")
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("cases.csv", "old")]


def test_a_written_file_is_readable_like_any_other_and_may_have_the_longest_name(tmp_path: Path) -> None:
    path = tmp_path / ("×" * 127)
    write_whole(path, "×\udc80\n")
    (tmp_path / "plain").touch()
    assert path.stat().st_mode == (tmp_path / "plain").stat().st_mode
    assert path.read_bytes() == "×\\udc80\n".encode()


def test_an_existing_file_is_kept_unless_forced_and_replaced_whole_where_a_link_points(tmp_path: Path) -> None:
    path, link = tmp_path / "cases.csv", tmp_path / "link.csv"
    link.symlink_to(path)
    Output(path).write("old")
    before = path.stat().st_ino
    for name in (path, link):
        with pytest.raises(UsageError, match="already exists"):
            Output(name)
    Output(link, force=True).write("new")
    Output(link, append=True).write("er")
    assert (path.read_text(), link.is_symlink(), path.is_symlink()) == ("newer", True, False)
    assert path.stat().st_ino != before
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("append", [False, True])
def test_a_fifo_is_written_through_and_needs_a_reader(tmp_path: Path, append: bool) -> None:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    with pytest.raises(UsageError, match=f"--csv {path}: .*nobody reads"):
        Output(path, force=True, append=append)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    Output(path, append=append).write("text")
    assert (os.read(reader, 100), os.read(reader, 100), path.is_fifo()) == (b"text", b"", True)
    output = Output(path, append=append)
    os.close(reader)
    with pytest.raises(SmembenchError, match="Broken pipe"):
        output.write("text")


def test_a_device_is_written_through() -> None:
    for name in ("/dev/null", "/dev/full"):
        with suppress(SmembenchError):
            Output(Path(name), force=True).write("text")
        assert Path(name).is_char_device()


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("", "is a folder"),
        ("none/x.csv", "there is no folder"),
        ("file/x.csv", "no folder"),
        ("n" * 256, "File name too long"),
        ("loop", "Too many levels of symbolic links"),
        ("loop/x.csv", "Too many levels of symbolic links"),
        ("dangling", "link to a file that is not there"),
    ],
)
def test_places_that_cannot_be_written(tmp_path: Path, place: str, reason: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "dangling").symlink_to(tmp_path / "nothing")
    with pytest.raises(UsageError, match=f"--csv {tmp_path / place}: .*{reason}"):
        Output(tmp_path / place, force=True)


def test_a_file_takes_only_the_memory_that_it_needs(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    tracemalloc.start()
    try:
        assert read_whole(tmp_path / "file") == b"content"
        assert tracemalloc.get_traced_memory()[1] < 2**23
    finally:
        tracemalloc.stop()


def test_only_files_and_fifos_with_a_writer_are_read_and_none_beyond_the_limit(tmp_path: Path) -> None:
    path, fifo = tmp_path / "file", tmp_path / "fifo"
    path.write_bytes(b"text")
    os.mkfifo(fifo)
    assert read_whole(path, most=4) == b"text"
    for place, reason in ((fifo, "without a writer"), (Path("/dev/zero"), "neither"), (path, "longer than 3")):
        with pytest.raises(OSError, match=reason):
            read_whole(place, most=3)
