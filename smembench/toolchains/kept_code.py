"""Disk cache of the package's compiled kernels, because compilers take seconds for a large one.

The folder ``smembench`` in ``$XDG_CACHE_HOME``, or in ``~/.cache``, has a file per kernel, and an empty one per solved
exercise. Any of them may be deleted, and a damaged one is made anew.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from smembench.kernels import registry
from smembench.kernels.program import GpuKernel, Program
from smembench.model.case import Case
from smembench.model.user_folders import user_folder
from smembench.toolchains.registry import Toolchain
from smembench.toolchains.settings import settings

_MOST = 1000
"""Files that are kept; of more the oldest are deleted."""
_BETWEEN = b"\0"
_CHECKSUM_BYTES = sha256().digest_size


def kept(
    case: Case, toolchain: Toolchain[Any], decides: object, compiled: Callable[[], tuple[str, bytes]]
) -> tuple[str, bytes]:
    """A compiler's report and code for a case: what is on disk, or else what ``compiled`` returns, which is written.

    Nothing is kept of kernels in the user's files, which may import others.

    Args:
        decides: all that decides the code beside the package's sources and the versions of what compiles.

    Raises:
        Exception: what ``compiled`` and ``toolchain.libraries`` raise.
    """
    if registry.kernel_of(case).file:
        return compiled()
    made_by = (toolchain.name, [*map(_version, toolchain.packages)], toolchain.libraries())
    all_decides = (decides, sources(), made_by, settings())
    if (content := read(all_decides)) is not None:
        report, _, code = content.partition(_BETWEEN)
        return report.decode(), code
    log, code = compiled()
    log = log.rstrip("\0")  # nvJitLink's report ends like a string in C
    write(all_decides, log.encode() + _BETWEEN + code)
    return log, code


def read(decides: object) -> bytes | None:
    """What was written under this name, all that decides it; None if it is not there, or damaged."""
    with suppress(OSError, RuntimeError):  # or there is no home
        data = _path(decides).read_bytes()
        checksum, content = data[:_CHECKSUM_BYTES], data[_CHECKSUM_BYTES:]
        if sha256(content).digest() == checksum:
            return content
    return None


def write(decides: object, content: bytes) -> None:
    """Write a file that ``read`` returns under this name; nothing where none can be written."""
    with suppress(OSError, RuntimeError):
        _write(_path(decides), sha256(content).digest() + content)


def variant(case: Case, program: Program, capability: str) -> tuple[object, ...]:
    """The parameters that decide a program's machine code, beside its source."""
    chosen = program.variant if isinstance(program, GpuKernel) else ""
    tile = (case.block, case.pad, case.stride, case.parameters, case.b_layout, chosen)
    return (case.problem, case.kernel, case.compiler, case.dtype, *tile, capability)


def noted(fact: object, *, note: bool = False) -> bool:
    """True if a fact was noted before, or is now; False where nothing can be kept."""
    with suppress(OSError, RuntimeError):
        path = _path(fact)
        if note:
            _write(path, b"")
        return path.exists()
    return False


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


@cache
def sources() -> str:
    """A digest of the files that kernels and the compilers' options are made of."""
    package = Path(__file__).parents[1]
    digest = sha256()
    for room in ("model", "kernels", "toolchains"):
        for path in sorted((package / room).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _path(decides: object) -> Path:
    return user_folder("XDG_CACHE_HOME", ".cache") / sha256(repr(decides).encode()).hexdigest()


def _write(path: Path, content: bytes) -> None:
    """Write a file whole, and delete the oldest if there are many."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        file.write(content)
    try:
        Path(file.name).replace(path)
    except OSError:
        Path(file.name).unlink()
        raise
    for old in sorted(path.parent.iterdir(), key=lambda entry: entry.stat().st_mtime)[:-_MOST]:
        old.unlink(missing_ok=True)
