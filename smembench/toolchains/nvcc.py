"""Files of CUDA C++ compiled by nvcc, which takes host code, or else by NVRTC, which does not."""

from __future__ import annotations

import linecache
import re
import subprocess
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory

from smembench.model.errors import UsageError
from smembench.toolchains.compile_errors import OF_ARCHITECTURE, check_macros, first_error
from smembench.toolchains.nvrtc import Compiled, compile_source

_POINTER = "smembench_kernel"
"""A variable that points to the kernel: this instantiates a template, and PTX has the kernel's name beside it."""


def text_of(path: Path) -> str:
    """The text of a source file; what is no UTF-8, as in comments of old files, is replaced.

    Raises:
        OSError: for a file that cannot be read.
        ValueError: for one that is no text.
    """
    linecache.checkcache(str(path))  # its lines are shown, not those of an earlier content
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        text = path.read_text(encoding="utf-8", errors="replace")
        # As Python enters files that it can decode, so that this one is read again when it changes.
        size, time = path.stat().st_size, path.stat().st_mtime
        linecache.cache[str(path)] = size, time, StringIO(text).readlines(), str(path)
    if "\0" in text:
        raise ValueError(f"{path}: is no text")
    return text


def compile_file(path: Path, name: str, capability: str, options: Sequence[str] = ()) -> Compiled:
    """Compile a kernel of a file without a GPU, with the lines of the source: by nvcc if it works here, or by NVRTC.

    Args:
        path: the file; headers beside it are found.
        name: the kernel, a template with its arguments: ``tile<float, 32>``.
        capability: the compute capability, such as 9.0; with instructions such as wgmma code is for 9.0a.
        options: such as ``-DN=4``, which both compilers take.

    Raises:
        UsageError: without either compiler, for what does not compile, with the first error, and for a macro of the
            options that the file defines again.
    """
    try:
        compiled = _compiled(path, name, capability, options)
    except UsageError as error:
        if OF_ARCHITECTURE not in str(error):
            raise
        compiled = _compiled(path, name, f"{capability}a", options)
    check_macros(compiled.log, path, options)
    return compiled


def _compiled(path: Path, name: str, capability: str, options: Sequence[str]) -> Compiled:
    if which("nvcc"):
        with TemporaryDirectory(prefix="smembench-") as folder:
            compiled = _by_nvcc(Path(folder), path, name, capability, options)
        if compiled is not None:
            return compiled
    return compile_source(text_of(path), path, capability, [name], options)


def _by_nvcc(folder: Path, path: Path, name: str, capability: str, options: Sequence[str]) -> Compiled | None:
    """PTX and machine code; None if nvcc itself does not work, as without a host compiler."""
    wrapper, code = folder / "wrapper.cu", folder / "code"
    wrapper.write_text(f'#include "{path.absolute()}"\n__device__ const void *{_POINTER} = (const void *)({name});\n')
    own = [f"-arch=sm_{capability.replace('.', '')}", "-lineinfo", f"-I{path.parent}"]
    files = ["--keep", "--keep-dir", str(folder), "-cubin", "-o", str(code), str(wrapper)]
    ran = subprocess.run(["nvcc", *own, *options, *files], capture_output=True, text=True, check=False)
    if ran.returncode == 0:
        ptx = wrapper.with_suffix(".ptx").read_text()
        entry = re.search(rf"\b{_POINTER} = (?:generic\()?([\w$]+)", ptx)
        return Compiled(ptx, {name: entry[1]} if entry else {}, code.read_bytes(), ran.stderr)
    if error := first_error(ran.stderr + ran.stdout, path, name, str(wrapper)):
        raise UsageError(error)
    return None
