"""Kernel files of the user's, which ``SMEMBENCH_KERNELS`` names: what they declare, or what is wrong with them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import replace
from difflib import get_close_matches
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from reprlib import repr as shortened
from types import ModuleType, NoneType
from typing import Any, get_type_hints

from smembench.kernels.kernel import EXTRA_KERNELS, Kernel, unbuilt
from smembench.kernels.program import Program
from smembench.model.child import child_command
from smembench.model.errors import UsageError
from smembench.model.faults import wanted
from smembench.model.processes import awake, die_with_parent
from smembench.model.text import ended, one_line, place

EXAMINED = "SMEMBENCH_KERNELS_EXAMINED"
"""Files that this process or one above it has imported in a process of their own, without harm."""
_SECONDS = 30.0


def load(path: str) -> list[Kernel]:
    """The kernels of a file, which print to stderr, and whose errors name the file and the line.

    Raises:
        UsageError: with the file, the line and what is wrong.
    """
    if path not in os.environ.get(EXAMINED, "").split(os.pathsep):
        if mistake := _examine(path):
            raise UsageError(mistake)
        os.environ[EXAMINED] = os.pathsep.join(filter(None, (os.environ.get(EXAMINED), path)))
    module = _import(path)
    declared = [item for name in ("KERNEL", "KERNELS") for item in _items(name, getattr(module, name, ()), path)]
    if not declared:
        raise UsageError(f"{EXTRA_KERNELS} {path}: declares no KERNEL and no KERNELS")
    for kernel in declared:
        if mistake := _mistake(kernel):
            raise UsageError(f"{declaration(path)}: {mistake}")
    return [_guarded(kernel, path) for kernel in declared]


def _examine(path: str) -> str:
    """The mistake in a file, from importing it in a process of its own, which it may end; "" for none."""
    with subprocess.Popen(
        child_command("smembench.kernels.files", path, os.getpid()),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C is the parent's to handle
    ) as process:

        def over(seconds: float) -> bool:
            with suppress(subprocess.TimeoutExpired):
                process.wait(seconds)
            return process.returncode is not None

        try:
            if not awake(over, _SECONDS)[0]:
                return f"{EXTRA_KERNELS} {path}: its import did not end within {_SECONDS:g} s"
            assert process.stdout is not None
            os.set_blocking(process.stdout.fileno(), False)  # a process that the file forked may have it open still
            return str(json.loads(process.stdout.read() or ""))
        except ValueError:
            return f"{EXTRA_KERNELS} {path}: the process that imported it {ended(process.returncode)}"
        finally:
            process.kill()


def main() -> None:
    """Import a file, and print what is wrong with it as JSON; whatever it does ends with the parent."""
    die_with_parent(int(sys.argv[2]))
    result = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.environ[EXTRA_KERNELS] = ""
    mistake = ""
    try:
        _import(sys.argv[1])
    except UsageError as error:
        mistake = str(error)
    os.write(result, json.dumps(mistake).encode())
    os._exit(0)


@contextmanager
def importable(file: Path) -> Iterator[None]:
    """Let a user's file import others of its folder, where no library has a module of that name."""
    folder = str(file.resolve().parent)
    added = folder not in sys.path
    sys.path += [folder] * added
    try:
        yield
    finally:
        if added:
            sys.path.remove(folder)


def _import(path: str) -> ModuleType:
    spec = spec_from_file_location(f"smembench_extra_{Path(path).stem}", path)
    if spec is None or spec.loader is None or not os.path.isfile(path):  # noqa: PTH113 - takes any path
        raise UsageError(f"{EXTRA_KERNELS} {path!r}: there is no such Python file")
    module = module_from_spec(spec)
    # Known under its name like any import: Numba and pickle look modules up there.
    sys.modules[spec.name] = module
    try:
        with redirect_stdout(sys.stderr), importable(Path(path)):
            spec.loader.exec_module(module)
    except KeyboardInterrupt:
        raise
    except SyntaxError as error:
        raise UsageError(
            f"{EXTRA_KERNELS} {error.filename or path}, line {error.lineno or 1}: SyntaxError: {error.msg}"
        ) from None
    except BaseException as error:  # SystemExit, too
        raise UsageError(f"{EXTRA_KERNELS} {place(error, str(spec.origin))}: {one_line(error)}") from None
    return module


def _items(name: str, declared: object, path: str) -> list[Kernel]:
    items = declared if isinstance(declared, (list, tuple)) else [declared]
    kernels = [item for item in items if isinstance(item, Kernel)]
    if wrong := [type(item).__name__ for item in items if not isinstance(item, Kernel)]:
        raise UsageError(f"{declaration(path)}: {name}: {wrong[0]} is not a Kernel")
    return kernels


def declaration(path: str) -> str:
    """The file and the line that declares its kernels."""
    lines = Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    numbers = [number for number, line in enumerate(lines, 1) if re.match(r"KERNELS?\b", line)]
    return f"{EXTRA_KERNELS} {path}, line {numbers[-1] if numbers else 1}"


def _mistake(kernel: Kernel) -> str:
    """The mistake in a declaration; "" for none."""
    from pydantic import TypeAdapter, ValidationError

    from smembench.kernels.problems import PROBLEMS

    for field, kind in get_type_hints(Kernel).items():
        try:
            TypeAdapter(kind).validate_python(getattr(kernel, field), strict=True)
        except ValidationError as error:
            fault, value = error.errors(include_url=False)[0], shortened(getattr(kernel, field))
            return f"{field} {value}: should be {wanted(fault) or fault['msg'].removeprefix('Input should be ')}"
    if kernel.build is unbuilt:
        return f"kernel {kernel.name} has no build"
    if kernel.problem not in PROBLEMS:
        near = get_close_matches(kernel.problem, PROBLEMS, n=1, cutoff=0.65)
        hint = f"; did you mean {near[0]}?" if near else ""
        return f"problem {kernel.problem!r}: no such problem{hint} (there are: {', '.join(PROBLEMS)})"
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.+-]*", kernel.name):
        return f"name {kernel.name!r}: give letters, digits and _.+-"
    return ""


def _guarded(kernel: Kernel, path: str) -> Kernel:
    def guard(function: Callable[..., Any], *kinds: Any) -> Callable[..., Any]:
        def called(*values: Any) -> Any:
            try:
                with redirect_stdout(sys.stderr):
                    result = function(*values)
            except (Exception, SystemExit) as error:
                where = place(error, str(Path(path).absolute()))
                raise UsageError(f"{where}: kernel {kernel.name}: {one_line(error)}") from error
            if not isinstance(result, kinds):
                mistake = f"its {function.__name__} returns {type(result).__name__}, not {kinds[0].__name__}"
                raise UsageError(f"{declaration(path)}: kernel {kernel.name}: {mistake}")
            return result

        return called

    return replace(
        kernel,
        build=guard(kernel.build, *Program.__args__),
        unsupported=guard(kernel.unsupported, str, NoneType),
        tile_elements=guard(kernel.tile_elements, int),
        dynamic_elements=guard(kernel.dynamic_elements, int),
        file=path,
    )


if __name__ == "__main__":
    main()
