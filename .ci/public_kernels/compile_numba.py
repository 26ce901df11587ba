"""Compile the kernels of numba.toml, of an installed package, to the PTX and the machine code that Numba launches."""

import ast
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from functions import source
from launches import given

from smembench.launches.array_argument import ArrayArgument
from smembench.toolchains.nvvm import compiled

CAPABILITY = (9, 0)


def compile_numba(number: int, kernel: dict[str, Any], build: Path) -> str:
    """Compile a kernel to ``NUMBER.ptx``, ``.cubin`` and ``.entry``; why it cannot be, or ""."""
    with mock.patch("numba.cuda.dispatcher.get_current_device") as device:  # what device functions are compiled for
        device.return_value.compute_capability = CAPABILITY
        try:
            function, types = _typed(number, kernel, build)
            code = compiled(function, types, CAPABILITY, at_link_time=True, unsigned=False)
            for form in ("ptx", "cubin"):
                (build / f"{number}.{form}").write_bytes(_linked(code, form, kernel.get("cooperative", False)))
        except Exception as error:  # the compiler's own
            return f"{kernel['name']}: {' '.join(str(error).split())[:300]}"
    (name,) = re.findall(r"\.entry ([\w$]+)", (build / f"{number}.ptx").read_text())
    (build / f"{number}.entry").write_text(name)
    return ""


def _typed(number: int, kernel: dict[str, Any], build: Path) -> tuple[Any, Any]:
    """A kernel's function, and the types of its arguments: its decorator's, else those of contiguous arrays."""
    package = find_spec(kernel["file"].split("/")[0])
    assert package is not None
    assert package.origin is not None
    file = Path(package.origin).parent.parent / kernel["file"]
    (tree,) = ast.parse(source(file, kernel["name"])).body
    assert isinstance(tree, ast.FunctionDef)
    decorators, tree.decorator_list = tree.decorator_list, []
    used = (source(file, name) for name in kernel.get("with", ()))
    lines = ["from numba import cuda", *kernel.get("before", ()), *used]
    written = build / f"{number}.py"
    written.write_text("\n".join([*lines, ast.unparse(tree), ""]))
    names: dict[str, Any] = {"__name__": f"kernel_{number}"}
    exec(compile(written.read_text(), str(written), "exec"), names)
    signatures = [ast.unparse(item.args[0]) for item in decorators if isinstance(item, ast.Call) and item.args]
    if text := kernel.get("types") or next(iter(signatures), None):
        return names[tree.name], eval(text, names)
    return names[tree.name], tuple(map(_type, given(kernel)))


def _type(argument: Any) -> Any:
    """Numba's type of an argument."""
    from numba.cuda import types
    from numba.cuda.np.numpy_support import from_dtype

    if isinstance(argument, ArrayArgument):
        return types.Array(from_dtype(argument.dtype), len(argument.shape), "C")
    return from_dtype(np.asarray(argument).dtype)


def _linked(code: bytes, form: str, cooperative: bool) -> bytes:
    """What is linked for a launch; the barrier of the grid is in a library of NVIDIA's, as machine code."""
    from cuda.core import Linker, LinkerOptions, ObjectCode
    from numba.cuda.cudadrv.libs import get_cudalib

    options = LinkerOptions(
        arch="sm_90", link_time_optimization=True, ptx=form == "ptx" or None, lineinfo=True, no_cache=True
    )
    objects = [ObjectCode.from_ltoir(code)]
    if cooperative and form == "cubin":
        objects.append(ObjectCode.from_library(get_cudalib("cudadevrt", static=True)))
    return bytes(Linker(*objects, options=options).link(form).code).rstrip(b"\0" if form == "ptx" else b"")
