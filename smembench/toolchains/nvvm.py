"""Compile a Numba kernel by NVVM without a GPU, to LTO-IR or PTX with line information.

Numba is changed only while it compiles here. Its lock is taken meanwhile, so that no other thread compiles: a kernel of
the user's is what Numba alone makes of it, before and afterwards.

Numba's own line information also gives NVVM the places of variables, as for a debugger, and with that NVVM orders the
instructions of some kernels otherwise. Lines alone change nothing: the code is what a launch runs. Numba also gives an
inlined helper's lines as the kernel's first if their numbers are smaller, though they are another file's. The column of
such a helper's line is the line of the kernel's file from which it was called; of other lines it is 1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import cache, partial
from itertools import count
from types import SimpleNamespace
from typing import Any

from smembench.kernels.program import MAP_ALIGNMENT, MAP_BYTES
from smembench.toolchains.llvm import in_a_fork, in_place_of_nvvm


def compiled(
    function: Callable[..., None],
    signature: tuple[Any, ...],
    capability: tuple[int | str, ...],
    *,
    at_link_time: bool,
    by_llvm: bool = False,
    unsigned: bool = True,
    **options: Any,
) -> bytes:
    """LTO-IR for the link-time optimiser, or PTX.

    Args:
        signature: Numba's types of the arguments.
        capability: such as (9, 0), or (9, 0, "a").
        by_llvm: whether LLVM makes the PTX, not NVVM.
        unsigned: whether the kernel follows the rule of ``smembench.kernels.intrinsics.unsigned``.
        options: of ``cuda.compile``.

    Raises:
        Exception: a missing library's or the compiler's own.
    """
    from smembench.kernels.numba_cuda import cuda

    output = "ltoir" if at_link_time else "ptx"

    def made() -> bytes:
        maker = in_place_of_nvvm(function.__name__) if by_llvm else nullcontext()
        with compiling(function if unsigned else None), _lines_alone(), _a_device(capability), maker:
            code, _ = cuda.compile(
                function,
                signature,
                device=False,
                abi="numba",
                output=output,
                cc=capability,
                lineinfo=not options.get("debug"),
                **options,
            )
        return code.encode() if isinstance(code, str) else bytes(code)

    return in_a_fork(made) if by_llvm else made()


@contextmanager
def compiling(unsigned: Callable[..., Any] | None = None) -> Iterator[None]:
    """Numba's compiler with this package's intrinsics, and with the rule for ``unsigned`` integers in one kernel.

    Functions and shared arrays are numbered as if what is compiled here had not been: the numbers are in PTX, where the
    names of shared arrays also have the bytes of an element and the sides: ``_cudapy_smem_1_4_32_33``.
    """
    from smembench.kernels.intrinsics.declaration import TensorMapType
    from smembench.kernels.intrinsics.lowering import definitions
    from smembench.kernels.intrinsics.unsigned import applied
    from smembench.kernels.numba_cuda import private

    with private("numba.cuda.core.compiler_lock.global_compiler_lock"):
        context = ready_context()
        cudaimpl, identity = private("numba.cuda.cudaimpl"), private("numba.cuda.core.bytecode.FunctionIdentity")
        lowerings, models = list(definitions()), context.data_model_manager
        context.insert_func_defn(lowerings)
        models.register(TensorMapType, _by_value())
        function, array = next(identity._unique_ids), cudaimpl._unique_smem_id
        identity._unique_ids = count(function)
        usual = cudaimpl._generic_array
        cudaimpl._generic_array = partial(_named_by_shape, usual)
        try:
            with applied(context.typing_context, unsigned) if unsigned else nullcontext():
                yield
        finally:
            identity._unique_ids, cudaimpl._unique_smem_id = count(function), array
            cudaimpl._generic_array = usual
            for _, function, _ in lowerings:
                context._defns.pop(function, None)
            models._handlers.pop(TensorMapType, None)


@cache
def _by_value() -> Any:
    """The data model of parameters that are tensor maps: in CUDA C ``const __grid_constant__ CUtensorMap``.

    The TMA reads them where the launch puts them. For maps in global memory each block would wait for a fence first.
    """
    from llvmlite import ir
    from llvmlite.ir.values import ArgumentAttributes

    from smembench.kernels.numba_cuda import private

    models, cgutils = private("numba.cuda.extending.models"), private("numba.cuda.cgutils")

    class Attributes(ArgumentAttributes):  # type: ignore[misc]
        def _expand(self, name: str, kind: Any) -> Any:
            """Leave the type out where pointers have types: up to capability 9.0, NVVM reads what LLVM 7 wrote."""
            return name if ir.types.ir_layer_typed_pointers_enabled else super()._expand(name, kind)

    class ByValue(models.PrimitiveModel):  # type: ignore[misc,name-defined]
        def __init__(self, manager: Any, kind: Any) -> None:
            super().__init__(manager, kind, ir.ArrayType(ir.IntType(64), MAP_BYTES // 8).as_pointer())

        def from_argument(self, builder: Any, value: Any) -> Any:
            """Mark a parameter as passed by value; kernels use its address."""
            value.attributes = Attributes(("byval",))
            value.attributes.align = MAP_ALIGNMENT
            function, module = value.parent, value.parent.module
            # The first parameter is that of the result, which Numba takes away; NVVM counts the others from 1.
            maps = [place for place, other in enumerate(function.args) if other.type == value.type]
            if function.args[maps[0]] is value:
                places = module.add_metadata([ir.Constant(ir.IntType(32), place) for place in maps])
                marked = module.add_metadata((function, "grid_constant", places))
                cgutils.get_or_insert_named_metadata(module, "nvvm.annotations").add(marked)
            return value

    return ByValue


def _named_by_shape(make: Callable[..., Any], context: Any, builder: Any, **array: Any) -> Any:
    if array["symbol_name"].startswith("_cudapy_smem"):
        size = context.get_abi_sizeof(context.get_data_type(array["dtype"]))
        array["symbol_name"] = "_".join(map(str, (array["symbol_name"], size, *array["shape"])))
    return make(context, builder, **array)


def ready_context() -> Any:
    """Numba's context of the target, with which it can compile.

    numba-cuda looks up a name that NumPy 2.5 took away, ``row_stack``, when it first compiles; it is there meanwhile.
    """
    import numpy as np

    from smembench.kernels.numba_cuda import private

    if missing := not hasattr(np, "row_stack"):
        np.row_stack = np.vstack
    try:
        context = private("numba.cuda.descriptor.cuda_target").target_context
        context.refresh()
    finally:
        if missing:
            del np.row_stack
    return context


@contextmanager
def _a_device(capability: tuple[int | str, ...]) -> Iterator[None]:
    """Tell Numba of a GPU, which it asks for to compile functions for devices, such as NumPy's."""
    from smembench.kernels.numba_cuda import private

    dispatcher: Any = private("numba.cuda.dispatcher")
    usual = dispatcher.get_current_device
    dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=capability[:2])
    try:
        yield
    finally:
        dispatcher.get_current_device = usual


class _Line(int):
    """A line of a helper in another file, and the line of the kernel's from which it was ``called``."""

    called: int

    def __new__(cls, line: int, called: int) -> _Line:
        value = super().__new__(cls, line)
        value.called = called
        return value

    def __reduce__(self) -> tuple[Any, ...]:
        return _Line, (int(self), self.called)


@contextmanager
def _lines_alone() -> Iterator[None]:
    from smembench.kernels.numba_cuda import private

    builder: Any = private("numba.cuda.debuginfo.CUDADIBuilder")
    lowering: Any = private("numba.cuda.lowering")
    lower, assign = lowering.CUDALower, private("numba.cuda.core.ir.assign_types")
    context = private("numba.cuda.target.CUDATargetContext")
    inliner: Any = private("numba.cuda.core.inline_closurecall")
    worker = inliner.InlineWorker

    class Lines(builder):  # type: ignore[misc]
        def mark_variable(self, *described: Any, **more: Any) -> None:
            """Leave a variable out."""

        update_variable = mark_variable

        def _di_location(self, line: int) -> Any:
            """Look up a location here first: llvmlite's look-up costs more than what it is for."""
            at = {"line": line, "column": getattr(line, "called", 1), "scope": self.subprograms[-1]}
            made, key = self.__dict__.setdefault("_made", {}), (line, at["column"], id(at["scope"]))
            if key not in made:
                made[key] = self.module.add_debug_info("DILocation", at)
            return made[key]

    inline = worker.inline_ir

    def inlining(self: Any, caller: Any, block: Any, i: int, callee: Any, *more: Any, **named: Any) -> Any:
        call = block.body[i].loc.line
        others = callee.loc.filename != caller.loc.filename
        for statement in (statement for one in callee.blocks.values() for statement in one.body if others):
            statement.loc = statement.loc.with_lineno(_Line(statement.loc.line, getattr(call, "called", call)))
        # Without types the callee was made for this call alone, and its two copies take a seventh of a compilation.
        copying, made_for_this = inliner.copy, named.get("arg_typs") is None
        inliner.copy = SimpleNamespace(deepcopy=lambda block: block) if made_for_this else copying
        try:
            return inline(self, caller, block, i, callee, *more, **named)
        finally:
            inliner.copy = copying

    def find_singly_assigned(self: Any) -> None:
        """Count the assignments of all variables at once: Numba reads a block again for each of its variables."""
        blocks = self.func_ir.blocks
        assigned = Counter(one.target.name for block in blocks.values() for one in block.find_insts(assign))
        use_defs = lowering.compute_use_defs(blocks)
        elsewhere = set().union(*use_defs.usemap.values(), lowering.must_use_alloca(blocks))
        self._singly_assigned_vars = {name for name, n in assigned.items() if n == 1 and name not in elsewhere}
        self._blk_local_varmap = {}

    usual = context.DIBuilder
    context.DIBuilder = Lines
    lower._find_singly_assigned_variable = find_singly_assigned
    lower._adjust_line_if_prologue = lambda _, line: line
    worker.inline_ir = inlining
    try:
        yield
    finally:
        context.DIBuilder, worker.inline_ir = usual, inline
        del lower._adjust_line_if_prologue, lower._find_singly_assigned_variable
