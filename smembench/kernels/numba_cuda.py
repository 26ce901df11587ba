"""The one place that imports ``numba.cuda``: for kernels, for their types, and for what compiles them.

numba-cuda is in maintenance; a successor with the same dialect is taken up here and nowhere else. ``PRIVATE`` lists
what the package uses of it that it does not document.

It is loaded by the first use of ``cuda``, not by the import: a process that times what NVRTC, Triton or a library made
reads the declarations of kernels, and does without.
"""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Callable
from importlib.metadata import version
from importlib.util import find_spec
from pkgutil import resolve_name
from threading import RLock
from types import ModuleType
from typing import Any, NamedTuple, TypeVar

import numba
import numpy as np
from numba import typeof
from numba.core import config

from smembench.kernels.types import Index
from smembench.model.errors import UsageError
from smembench.model.formats import carried
from smembench.model.install import CUDA, extra

__all__ = [
    "INSTALL",
    "INSTALLED",
    "PRIVATE",
    "SIMULATED",
    "DeviceFunction",
    "Private",
    "cuda",
    "device",
    "int64",
    "number",
    "private",
    "typeof",
    "uint32",
    "uint64",
]

_NAME = "numba.cuda"

DeviceFunction = Callable[..., Any]
"""A function that kernels call, and that ``device``, ``Ptx`` or ``register`` gave a type for Numba."""

Function = TypeVar("Function", bound=DeviceFunction)


_NO_RELEASE = sys.version_info >= (3, 15) or bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
INSTALL = f"it has no release for 3.15 and free-threaded Pythons; {extra('mlir')}" if _NO_RELEASE else CUDA
INSTALLED = find_spec("numba_cuda") is not None
"""Whether numba-cuda is there. Numba has a module of the same name, which it replaces, and which is not used here."""


class _Missing:
    """In the place of ``cuda`` where numba-cuda is not installed: kernels are declared, and not compiled."""

    def __getattr__(self, name: str) -> Any:
        raise UsageError(f"cuda.{name}: numba-cuda is not installed: {INSTALL}")


_loading = RLock()


class _Unloaded(ModuleType):
    """The module ``numba.cuda`` until something of it is used.

    A look at ``__file__`` or another name that every module may have, as ``inspect`` takes at all modules, is no use;
    at ``__path__``, as the import of a submodule takes, it is. ``importlib.util.LazyLoader`` loads for any.
    """

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__path__":
            raise AttributeError(f"module {_NAME!r} has no attribute {name!r}")
        with _loading:  # a second thread waits, and finds what this one loaded
            if "__path__" not in vars(self):
                spec: Any = self.__spec__
                self.__path__ = spec.submodule_search_locations
                spec.loader.exec_module(self)
                self.__class__ = ModuleType  # type: ignore[assignment]
        return object.__getattribute__(self, name)


def _unloaded() -> Any:
    """The module ``numba.cuda``, loaded or not."""
    if not INSTALLED:
        return _Missing()
    if _NAME not in sys.modules:
        spec = find_spec(_NAME)
        assert spec is not None
        module = sys.modules[_NAME] = numba.cuda = _Unloaded(_NAME)
        module.__spec__, module.__file__, module.__package__ = spec, spec.origin, _NAME
        module.__loader__ = spec.loader
    return sys.modules[_NAME]


cuda: Any = _unloaded()

SIMULATED: bool = bool(config.ENABLE_CUDASIM)
"""Whether kernels run in Numba's simulator (NUMBA_ENABLE_CUDASIM=1 at import), one Python thread per CUDA thread."""

# The same casts in the simulator, without the detour over Numba's signatures that takes most of a simulated launch.
_integers: Any = np if SIMULATED else numba
int64: Callable[[Index], Index] = _integers.int64
uint32: Callable[[Index], Index] = _integers.uint32
uint64: Callable[[Index], Index] = _integers.uint64


def number(dtype: str) -> Any:
    """Numba's type of the elements of arrays of a dtype, for shared arrays and for constants."""
    return getattr(numba.types, carried(dtype))


def device(function: Function) -> Function:
    """Make a function callable from kernels, inlined where it is called.

    It stays a plain Python function for the simulator and for traces. To Numba it looks like a
    dispatcher with ``inline="always"``, and so is inlined before anything is compiled: a device function of
    ``cuda.jit`` would need a GPU to compile for. The type is that of the name that remains.
    """
    inlined: Any = function
    inlined.targetoptions, inlined.py_func = {"inline": "always"}, function
    inlined._numba_type_ = numba.types.Dummy("inlined")
    return function


class Private(NamedTuple):
    """A name of numba-cuda, or of numba-cuda-mlir, that its documentation does not promise.

    Attributes:
        name: with its module, as ``pkgutil.resolve_name`` takes it.
        need: what it is used for.
        breaks: what happens here when it is gone or means something else.
    """

    name: str
    need: str
    breaks: str


_CONTEXT = "numba.cuda.descriptor.cuda_target.target_context"
_TYPING = "numba.cuda.descriptor.cuda_target.typing_context"
_RULE = "the rule of unsigned integers in kernels", "in silence: indices have 64 bits, and kernels are slower"
_EMITS = "intrinsics emit LLVM IR", "no intrinsic compiles"
_LINES = "line information that changes no code", "no kernel compiles, or lines are those of another file"
_QUICK = "compilation in two thirds of the time", "no kernel compiles"
_BY_MLIR = "compilation by numba-cuda-mlir", "no kernel compiles by mlir"
_NUMBERS = "machine code that does not depend on what was compiled before", "machine code differs from run to run"

PRIVATE: tuple[Private, ...] = (
    Private("numba.cuda.core.compiler_lock.global_compiler_lock", "one compilation at a time", "no kernel compiles"),
    Private("numba.cuda.descriptor.cuda_target", "the compiler's tables of types and lowerings", "no kernel compiles"),
    Private(f"{_CONTEXT}.refresh", "Numba's own rules come before this package's", "no kernel compiles"),
    Private(f"{_CONTEXT}.insert_func_defn", "lowerings of intrinsics", "no intrinsic compiles"),
    Private(f"{_CONTEXT}._defns", "taking the lowerings back", "users' kernels compile with this package's rules"),
    Private(f"{_CONTEXT}.data_model_manager._handlers", "taking the model of tensor maps back", "no kernel compiles"),
    *(
        Private(f"{_CONTEXT}.{method}", *_EMITS)
        for method in (
            "make_array",
            "populate_array",
            "data_model_manager",
            "make_tuple",
            "get_function",
            "get_constant",
        )
    ),
    *(Private(f"{_CONTEXT}.{method}", *_EMITS) for method in ("get_value_type", "get_data_type", "get_dummy_value")),
    *(
        Private(f"numba.cuda.{name}", "tensor maps as parameters", "no kernel that copies by the TMA compiles")
        for name in (
            "extending.models.PrimitiveModel",
            "cgutils.get_or_insert_named_metadata",
        )
    ),
    Private("numba.cuda.typing.templates.CallableTemplate", "types of intrinsics", "no intrinsic compiles"),
    Private("numba.cuda.typing.typeof.typeof_impl", "a function's type is its _numba_type_", "no intrinsic compiles"),
    Private("numba.cuda.typing.templates.AbstractTemplate", *_RULE),
    Private("numba.cuda.typing.templates.AttributeTemplate", *_RULE),
    Private("numba.cuda.typing.templates.signature", *_RULE),
    Private("numba.cuda.types.ext_types.dim3", *_RULE),
    *(
        Private(f"{_TYPING}.{attribute}", *_RULE)
        for attribute in ("_attributes", "callstack", "resolve_value_type", "resolve_function_type")
    ),
    *(Private(f"{_TYPING}.{method}", *_RULE) for method in ("_remove_global", "insert_global")),
    Private("numba.cuda.debuginfo.CUDADIBuilder.mark_variable", *_LINES),
    Private("numba.cuda.debuginfo.CUDADIBuilder.update_variable", *_LINES),
    Private("numba.cuda.debuginfo.CUDADIBuilder._di_location", *_LINES),
    Private("numba.cuda.core.inline_closurecall.InlineWorker.inline_ir", *_LINES),
    Private("numba.cuda.lowering.CUDALower._adjust_line_if_prologue", *_LINES),
    Private("numba.cuda.target.CUDATargetContext.DIBuilder", *_LINES),
    Private("numba.cuda.core.inline_closurecall.copy.deepcopy", *_QUICK),
    Private("numba.cuda.core.ir.assign_types", *_QUICK),
    *(
        Private(f"numba.cuda.lowering.{name}", *_QUICK)
        for name in ("CUDALower._find_singly_assigned_variable", "compute_use_defs", "must_use_alloca")
    ),
    Private("numba.cuda.core.bytecode.FunctionIdentity._unique_ids", *_NUMBERS),
    Private("numba.cuda.cudaimpl._unique_smem_id", *_NUMBERS),
    Private("numba.cuda.cudaimpl._generic_array", "PTX with the shapes of shared arrays", "nothing is explained"),
    Private(
        "numba.cuda.core.untyped_passes.InlineInlinables",
        "functions of `device`, which look like a dispatcher with inline, are inlined",
        "no kernel with such a function compiles",
    ),
    Private(
        "numba.cuda.dispatcher.CUDADispatcher",
        "the options and the Python function of a user's kernel (targetoptions, py_func)",
        "in silence: it is explained as compiled without its options",
    ),
    Private(
        "numba.cuda.dispatcher.get_current_device",
        "device functions compile without a GPU, too",
        "kernels with functions of NumPy are explained only where there is a GPU",
    ),
    *(
        Private(
            f"numba.cuda.cudadrv.{name}", "LLVM makes PTX where NVVM is missing", "explain needs NVIDIA's compilers"
        )
        for name in ("nvvm.NVVM", "nvvm.compile_ir", "nvrtc.get_arch_option")
    ),
    Private("numba.cuda.compile", "LTO-IR and PTX with the array ABI", "in silence: kernels read and write elsewhere"),
    *(
        Private(f"numba_cuda_mlir.{name}", *_BY_MLIR)
        for name in (
            "compiler.compile_cubin",
            "descriptor.mlir_target",
            "errors.InternalCompilerError",
            "errors.UserFacingInternalCompilerError",
            "numba_cuda.core.errors.NumbaError",
            "install_registry.register_lowering",
            "numba_cuda.core.compiler_lock.global_compiler_lock",
            "numba_cuda.types.ext_types.dim3",
            "tools._cached_cc",
        )
    ),
    *(
        Private(f"numba_cuda_mlir.{name}", *_RULE)
        for name in (
            "descriptor.mlir_target.target_context._defns",
            "descriptor.mlir_target.typing_context._attributes",
            "descriptor.mlir_target.typing_context.resolve_value_type",
            "numba_cuda.types.unliteral",
            "numba_cuda.typing.templates.AbstractTemplate",
            "numba_cuda.typing.templates.AttributeTemplate",
            "numba_cuda.typing.templates.signature",
        )
    ),
    *(
        Private(f"numba_cuda_mlir.{name}", "intrinsics emit MLIR", "kernels with intrinsics are refused by mlir")
        for name in (
            "_mlir.ir.Attribute.parse",
            "_mlir.ir.InsertionPoint.at_block_begin",
            "_mlir.ir.Operation.create",
            "_mlir.ir.SymbolTable",
            "_mlir.ir.Type.parse",
            "lowering_utilities.convert",
            "lowering_utilities.memref_data_pointer",
            "mlir_lowering.MLIRLower.get_numba_type",
            "mlir_lowering.MLIRLower.load_var",
            "mlir_lowering.MLIRLower.store_var",
        )
    ),
)
"""What is used of numba-cuda, and of numba-cuda-mlir, beyond their documentation.

tests/kernels/test_numba_cuda.py asks an installation for it.
"""


def private(name: str) -> Any:
    """The object with a name of ``PRIVATE``, or a module or class in front of one, in the installed package.

    Raises:
        UsageError: if it is not installed, and in the simulator, which lacks it.
        ImportError: that says what is missing, and for what, if this version does not have it.
    """
    package, install = ("numba-cuda", INSTALL) if name.startswith(_NAME) else ("numba-cuda-mlir", extra("mlir"))
    if find_spec(package.replace("-", "_")) is None:
        raise UsageError(f"{name}: {package} is not installed: {install}")
    entry = next(entry for entry in PRIVATE if f"{entry.name}.".startswith(f"{name}."))
    try:
        with _loading:  # a second thread would find the module half loaded
            return resolve_name(name)
    except (ImportError, AttributeError) as error:
        if SIMULATED and name.startswith(_NAME):
            raise UsageError(
                "NUMBA_ENABLE_CUDASIM is set, and Numba's simulator compiles no kernel; unset it"
            ) from None
        raise ImportError(f"{package} {version(package)} has no {name}, which is for {entry.need}: {error}") from error
