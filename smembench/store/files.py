"""Files read and written whole, whatever lies at their paths: links, FIFOs and devices too."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from glob import escape
from hashlib import sha256
from itertools import takewhile
from pathlib import Path
from secrets import token_hex

from smembench.model.errors import SmembenchError, UsageError

MOST_BYTES = 2**28
"""The longest file that is read."""
_PART = 2**20


@contextmanager
def refused(what: str, kind: type[SmembenchError] = UsageError) -> Iterator[None]:
    """Raise an error that says ``what`` and why, if the system refuses something in the block."""
    try:
        yield
    except (OSError, UnicodeError) as error:
        raise kind(f"{what} ({getattr(error, 'strerror', None) or error})") from None


def there(path: Path) -> bool:
    """True if there is a file or a folder at a path.

    Raises:
        UsageError: for a path that cannot be looked at: too long, links in a circle, a folder without permission.
    """
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: cannot be read ({getattr(error, 'strerror', None) or error})") from None
    return True


def check_working_directory() -> None:
    """Raise UsageError if the working directory was removed: Numba, for one, compiles nothing without."""
    try:
        Path.cwd()
    except FileNotFoundError:
        raise UsageError("the working directory was removed; change to one that is there") from None


def resolved(path: Path) -> Path:
    """The path without links, itself if there is nothing; raises as ``there``."""
    return path.resolve() if there(path) else path


def read_whole(path: Path, most: int = MOST_BYTES) -> bytes:
    """Read a regular file, or what a FIFO's writer sends.

    Raises:
        OSError: for anything else, for more than ``most`` bytes, and for a FIFO without a writer.
    """
    # Without O_NONBLOCK a FIFO would be waited for.
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as stream:  # noqa: PTH123
        status = os.fstat(stream.fileno())
        mode = status.st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
            raise OSError(errno.EINVAL, "neither a file nor a FIFO", str(path))
        os.set_blocking(stream.fileno(), True)
        # By parts: a read of at most ``most`` bytes takes memory for all of them at once.
        parts = (stream.read(_PART) for _ in range(most // _PART + 2))
        data = b"" if status.st_size > most else b"".join(takewhile(bool, parts))
    if max(len(data), status.st_size) > most:
        raise OSError(errno.EFBIG, f"longer than {most} bytes", str(path))
    if not data and stat.S_ISFIFO(mode):
        raise OSError(errno.ENODATA, "a FIFO without a writer", str(path))
    return data


def checksum(data: bytes) -> str:
    """Checksum of a file for run.json, which reveals edits."""
    return sha256(data).hexdigest()


def write_whole(path: Path, text: str | bytes) -> None:
    """Write a file atomically: to a temporary file beside it, fsync, rename."""
    data = text if isinstance(text, bytes) else text.encode("utf-8", "backslashreplace")
    # Not by tempfile, whose files only their owner can read: results get the usual permissions.
    temporary = path.with_name(f".{path.name[:40]}.{token_hex(4)}")
    try:
        with temporary.open("xb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """The lock of a folder, for reading, changing and writing a file in it: of two at once neither undoes the other.

    It leaves no file behind. Where there is no folder, or its file system has no locks, there is none.
    """
    with ExitStack() as stack:
        with suppress(OSError):
            descriptor = os.open(folder, os.O_RDONLY)
            stack.callback(os.close, descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield


def leftovers(path: Path) -> list[Path]:
    """Temporary files of a ``write_whole`` of this file that was killed."""
    return list(path.parent.glob(f".{escape(path.name[:40])}.????????"))


def sync_folder(folder: Path) -> None:
    """Have a folder's names on disk: a rename or a removal in it is lost in a crash otherwise."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class Output:
    """A file to be written later, checked now: a regular one is replaced whole or appended to, behind a link too.

    A FIFO or a character device is opened now and written through, never replaced.

    Args:
        path: the file.
        force: replace an existing regular file.
        what: the option that names it.
        append: append to a regular file.

    Raises:
        UsageError: for an existing file without ``force``, a folder that is missing or not writable, a FIFO without a
            reader, and what cannot be written through.
    """

    def __init__(self, path: Path, *, force: bool = False, what: str = "--csv", append: bool = False) -> None:
        self._path = path
        self._name = f"{what} {path}"
        self._append = append
        self._opened: int | None = None
        try:
            mode = path.stat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            if path.is_symlink():
                raise UsageError(f"{self._name}: is a link to a file that is not there; name the file") from None
            check_folder(path.parent, self._name)
            return
        except OSError as error:
            raise UsageError(f"{self._name}: cannot be written ({error.strerror})") from None
        if stat.S_ISDIR(mode):
            raise UsageError(f"{self._name}: is a folder; name a file in it")
        # /dev/stdout is a link to whatever the output is, which may be a file that the shell has opened.
        if stat.S_ISREG(mode) and not str(path.absolute()).startswith(("/dev/", "/proc/")):
            if not force and not append:
                raise UsageError(f"{self._name}: already exists; choose another name or add --force")
            self._path = path.resolve()
            check_folder(self._path.parent, self._name)
            if not os.access(self._path, os.W_OK):
                raise UsageError(f"{self._name}: cannot be written ({os.strerror(errno.EACCES)})")
        elif stat.S_ISBLK(mode) or stat.S_ISSOCK(mode):
            raise UsageError(f"{self._name}: is neither a file, a FIFO nor a character device; name another")
        else:
            self._open()

    def _open(self) -> None:
        try:
            # Without O_NONBLOCK a FIFO without a reader would be waited for.
            self._opened = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK | os.O_NOCTTY)
        except OSError as error:
            reason = "nobody reads this FIFO" if error.errno == errno.ENXIO else error.strerror
            raise UsageError(f"{self._name}: cannot be written ({reason})") from None
        os.set_blocking(self._opened, True)

    def write(self, text: str) -> None:
        """Write the text, once.

        Raises:
            SmembenchError: if it cannot be written.
        """
        with refused(f"{self._name}: cannot be written", SmembenchError):
            if self._opened is None and not self._append:
                write_whole(self._path, text)
                return
            # One write, so that lines of two runs do not mix.
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
            descriptor = os.open(self._path, flags, 0o666) if self._opened is None else self._opened
            with open(descriptor, "wb", buffering=0) as stream:  # noqa: PTH123
                data = memoryview(text.encode("utf-8", "backslashreplace"))
                while data:
                    data = data[stream.write(data) or 0 :]
                if self._opened is None:
                    os.fsync(descriptor)


def make_folder(folder: Path, what: str) -> None:
    """Make a folder, and those above it, unless it is there.

    Raises:
        UsageError: if it cannot be made.
    """
    with refused(f"{what}: cannot be made"):
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except FileExistsError:
            raise UsageError(f"{what}: is a file; name a folder") from None


def check_folder(folder: Path, what: str) -> None:
    """Check that a folder exists and is writable, by making a file in it.

    Raises:
        UsageError: if it is not, with the system's reason.
    """
    with refused(f"{what}: {folder} cannot be written"):
        if not folder.is_dir():
            raise UsageError(f"{what}: there is no folder {folder}; make it first")
        tempfile.TemporaryFile(dir=folder).close()
