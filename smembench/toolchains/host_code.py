"""The package's kernels for the CPU on disk: what Numba compiled of one is loaded by later processes."""

from __future__ import annotations

import pickle
import sys
from contextlib import suppress
from importlib.metadata import version
from typing import Any

from smembench.toolchains import kept_code
from smembench.toolchains.settings import settings


def keep(function: Any) -> None:
    """Have a function that Numba compiles when it is called read from disk, and written there; others stay as they are.

    Its closure holds numbers, types and modules.
    """
    if hasattr(function, "py_func"):
        function._cache = _Kept(function.py_func)


class _Kept:
    """What Numba asks before and after it compiles a function, in the place of its own cache.

    Without the parts of Numba that are used here, functions are compiled as ever. Two functions of one symbol would be
    one: Numba numbers functions per process and names loops by their address. So nothing is loaded that has a symbol
    of this process, and what is compiled after it gets higher numbers.
    """

    def __init__(self, function: Any) -> None:
        self._function = function

    def load_overload(self, signature: Any, context: Any) -> Any:
        """What was compiled for these types, or None."""
        context.refresh()
        with suppress(Exception):
            from numba.core.bytecode import FunctionIdentity
            from numba.core.compiler import CompileResult

            codegen = context.codegen()
            if content := kept_code.read(self._decides(signature, codegen)):
                symbols, number, reduced = pickle.loads(content)
                if not any(map(codegen._engine.is_symbol_defined, symbols)):
                    while next(FunctionIdentity._unique_ids) < number:
                        pass
                    return CompileResult._rebuild(context, *reduced)
        return None

    def save_overload(self, signature: Any, result: Any) -> None:
        """Write what was compiled for these types."""
        with suppress(Exception):
            from numba.core.bytecode import FunctionIdentity
            from numba.core.serialize import dumps

            defined = [one.name for one in result.library._final_module.functions if not one.is_declaration]
            symbols = [name for name in defined if not name.startswith("NRT_")]  # which are alike in all
            content = dumps((symbols, next(FunctionIdentity._unique_ids), result._reduce()))
            kept_code.write(self._decides(signature, result.codegen), content)

    def _decides(self, signature: Any, codegen: Any) -> object:
        """All that decides the machine code, the CPU and its features included."""
        function = self._function
        closure = [repr(cell.cell_contents) for cell in function.__closure__ or ()]
        made_by = (sys.implementation.cache_tag, *map(version, ("numba", "llvmlite", "numpy")), codegen.magic_tuple())
        of = (function.__module__, function.__qualname__, closure, str(signature))
        return ("cpu", of, made_by, kept_code.sources(), settings())
