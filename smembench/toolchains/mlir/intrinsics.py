"""Intrinsics for numba-cuda-mlir: ``kernels/intrinsics/lowering.py``, with a builder that makes MLIR of its calls.

Its ``cuda.inline_ptx`` would do for some texts alone: it misreads the numbers of operands from the tenth on, gives back
no register that is read and written, and does not keep memory accesses where they are.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Sequence
from functools import cache, partial
from types import FunctionType, SimpleNamespace
from typing import Any, NamedTuple

from llvmlite import ir

from smembench.kernels.intrinsics.declaration import TENSOR_MAP, Intrinsic, types
from smembench.kernels.intrinsics.lowering import lower
from smembench.kernels.numba_cuda import private

_FLOATS: dict[str, ir.Type] = {"f16": ir.HalfType(), "f32": ir.FloatType(), "f64": ir.DoubleType()}
_PREDICATES = {"==": 0, "<": 6, "<=": 7, ">": 8, ">=": 9}
"""Predicates of ``llvm.icmp`` by sign: eq, ult, ule, ugt and uge."""
_DYNAMIC = -(2**31)
"""An index of ``llvm.getelementptr`` that an operand gives."""


class Value(NamedTuple):
    """A value in MLIR, or the values of a tuple, and its type as llvmlite has it."""

    mlir: Any
    type: Any


@cache
def counterpart(intrinsic: Intrinsic) -> Callable[..., Any]:
    """The function that stands for an intrinsic in kernels of numba-cuda-mlir."""
    from numba_cuda_mlir import extending

    function: Any = intrinsic.function
    # Not the function itself, whose type is Numba's.
    copy = FunctionType(function.__code__, function.__globals__, function.__name__, None, function.__closure__)

    def typer(*kinds: Any) -> Any:
        return _theirs(intrinsic.type_of(*map(ours, kinds)))

    def lowering(compiler: Any, target: Any, args: Sequence[Any], kwargs: Any) -> None:
        kinds = [ours(compiler.get_numba_type(arg.name)) for arg in args]
        if types.IntegerLiteral not in intrinsic.arguments:
            kinds = [types.unliteral(kind) for kind in kinds]
        values = [value_of(kind, compiler.load_var(arg)) for kind, arg in zip(kinds, args, strict=True)]
        returned = ours(compiler.get_numba_type(target.name))
        signature = SimpleNamespace(args=kinds, return_type=returned)
        compiler.store_var(target, _given(returned, lower(intrinsic, _CONTEXT, _Builder(), signature, values)))

    typer.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    extending.type_callable(copy)(lambda context: typer)
    lowered_by(copy, lowering)
    return copy


def lowered_by(function: Callable[..., Any], lowering: Callable[..., None]) -> None:
    """Let calls of a function be lowered so."""
    from numba_cuda_mlir import extending
    from numba_cuda_mlir import types as theirs

    extending.lower_builtin(function, theirs.VarArg(theirs.Any))(lowering)
    extending.refresh_registries(include_uninitialized_cuda=False)


def ours(kind: Any) -> Any:
    """Numba's type of the same name, or that of a tensor map; for others an undefined one, which no intrinsic takes."""
    if hasattr(kind, "literal_value"):
        return types.literal(kind.literal_value)
    name = type(kind).__name__
    if name == "Array":
        return types.Array(ours(kind.dtype), kind.ndim, kind.layout)
    if name == "UniTuple":
        return types.UniTuple(ours(kind.dtype), kind.count)
    if name in ("NamedTuple", "NamedUniTuple"):
        return types.NamedTuple([*map(ours, kind)], kind.instance_class)
    known = {"bool": types.boolean, "CUTensorMapStorage*": TENSOR_MAP}
    return known.get(kind.name) or getattr(types, kind.name, types.undefined)


def _theirs(kind: Any) -> Any:
    from numba_cuda_mlir import types as theirs

    if isinstance(kind, types.UniTuple):
        return theirs.UniTuple(_theirs(kind.dtype), kind.count)
    if isinstance(kind, types.Array):
        return theirs.Array(_theirs(kind.dtype), kind.ndim, kind.layout)
    return kind and getattr(theirs, {"bool": "boolean"}.get(kind.name, kind.name), None)


def value_of(kind: Any, given: Any) -> Any:
    """An argument for the builder: arrays and literals as they are, numbers in registers, tensor maps by address."""
    if isinstance(kind, types.Array | types.Literal):
        return given
    if kind == TENSOR_MAP:
        return Value(given, ir.PointerType())
    if isinstance(kind, types.BaseTuple):
        elements = [*map(value_of, kind, given)]
        return Value(elements, elements)
    number = Value(private("numba_cuda_mlir.lowering_utilities.convert")(given, _type(_number_type(kind))), None)
    target = value_type(kind)
    return operation("bitcast", target, number) if kind == types.float16 else number._replace(type=target)


def _given(kind: Any, value: Any) -> Any:
    """The result of an intrinsic, as MLIR has values of this type."""
    return _mlir(operation("bitcast", _number_type(kind), value) if kind == types.float16 else value)


def _number_type(kind: Any) -> ir.Type:
    """The type of a number in MLIR's registers."""
    bits = getattr(kind, "bitwidth", 1)
    return _FLOATS[f"f{bits}"] if isinstance(kind, types.Float) else ir.IntType(bits)


def value_type(kind: Any) -> ir.Type:
    """The type of a number as intrinsics take and give it: as in Numba, a float16 by its bits."""
    return ir.IntType(16) if kind == types.float16 else _number_type(kind)


def _text(kind: ir.Type) -> str:
    """A type of llvmlite as MLIR writes it."""
    if isinstance(kind, ir.PointerType):
        return f"!llvm.ptr<{kind.addrspace}>"
    if isinstance(kind, ir.VectorType):
        return f"vector<{kind.count}x{_text(kind.element)}>"
    if isinstance(kind, ir.ArrayType):
        return f"!llvm.array<{kind.count} x {_text(kind.element)}>"
    if isinstance(kind, ir.LiteralStructType):
        return f"!llvm.struct<({', '.join(map(_text, kind.elements))})>"
    return next((name for name, known in _FLOATS.items() if known == kind), str(kind))


@cache
def _mlir_ir() -> Any:
    """MLIR's bindings, once for all operations."""
    return private("numba_cuda_mlir._mlir.ir")


def _type(kind: ir.Type) -> Any:
    return _mlir_ir().Type.parse(_text(kind))


def operation(name: str, kind: ir.Type | None, *operands: Any, dialect: str = "llvm", **attributes: str) -> Value:
    """An operation, with attributes as MLIR writes them."""
    results = [] if kind is None else [_type(kind)]
    parsed = {key: _mlir_ir().Attribute.parse(text) for key, text in attributes.items()}
    given, regions = [*map(_mlir, operands)], int(name == "mlir.global")
    made = _mlir_ir().Operation.create(f"{dialect}.{name}", results, given, parsed, regions=regions)
    return Value(made.results[0] if results else None, kind)


def compared(sign: str, one: Any, other: Any) -> Value:
    """The result of a comparison of unsigned integers."""
    return operation("icmp", ir.IntType(1), one, other, predicate=f"{_PREDICATES[sign]} : i64")


def assembled(assembly: ir.InlineAsm, args: Sequence[Any]) -> Value:
    """The result of inline assembly."""
    kind = assembly.function_type.return_type
    texts = {"asm_string": json.dumps(assembly.asm), "constraints": json.dumps(assembly.constraint)}
    effects = {"has_side_effects": "unit"} if assembly.side_effect else {}
    return operation("inline_asm", None if isinstance(kind, ir.VoidType) else kind, *args, **texts, **effects)


def _mlir(value: Any) -> Any:
    """A value of the builder in MLIR; a constant or a variable of llvmlite is an operation there."""
    if isinstance(value, ir.GlobalVariable):
        return _address_of(value)
    if not isinstance(value, ir.Constant):
        return value.mlir if isinstance(value, Value) else value
    if isinstance(value.type, ir.VectorType):  # of zeros, or of nothing yet
        return operation("mlir.undef" if "undef" in value.get_reference() else "mlir.zero", value.type).mlir
    number = value.constant if isinstance(value.type, ir.IntType) else f"{value.constant:e}"
    return operation("mlir.constant", value.type, value=f"{number} : {_text(value.type)}").mlir


def _address_of(variable: ir.GlobalVariable) -> Any:
    """The address of a variable, which the module gets once."""
    module = _mlir_ir().InsertionPoint.current.block.owner
    while module.name != "gpu.module":
        module = module.parent
    if variable.name not in _mlir_ir().SymbolTable(module):
        attributes = {
            "sym_name": json.dumps(variable.name),
            "global_type": _text(variable.value_type),
            "addr_space": f"{variable.addrspace} : i32",
            "linkage": f"#llvm.linkage<{variable.linkage or 'external'}>",
            **({"value": "#llvm.zero"} if variable.initializer else {}),
        }
        with _mlir_ir().InsertionPoint.at_block_begin(module.regions[0].blocks[0]):
            operation("mlir.global", None, **attributes, **_aligned(variable.align))
    return operation("mlir.addressof", variable.type, global_name=f"@{variable.name}").mlir


def populate(array: Any, data: Value, shape: Sequence[Any], **others: Any) -> None:
    """Let an array be of elements one behind the other; strides are counted in elements here, not in bytes."""
    wide, pointer = ir.IntType(64), ir.IntType(8).as_pointer()
    sides = ir.ArrayType(wide, len(shape))
    descriptor = ir.LiteralStructType([pointer, pointer, wide, sides, sides])
    made = operation("mlir.undef", descriptor)
    for place, part in (("0", data), ("1", data), ("2", wide(0)), ("3, 0", *shape), ("4, 0", wide(1))):
        made = operation("insertvalue", descriptor, made, part, position=f"array<i64: {place}>")
    memref = _mlir_ir().Type.parse(f"memref<?x{_text(data.type.pointee)}, strided<[?], offset: ?>>")
    cast = _mlir_ir().Operation.create("builtin.unrealized_conversion_cast", [memref], [made.mlir])
    array._getvalue = lambda: cast.result


def _data(kind: Any, builder: Any, array: Any, field: str) -> Value:
    pointer = private("numba_cuda_mlir.lowering_utilities.memref_data_pointer")(array)
    return Value(pointer, value_type(kind.dtype).as_pointer())


class _Models:
    """The models of arrays by type, of which only the address of the data is read."""

    def __getitem__(self, kind: Any) -> Any:
        return SimpleNamespace(get=partial(_data, kind))


_CONTEXT = SimpleNamespace(
    data_model_manager=_Models(),
    get_dummy_value=lambda: None,
    get_value_type=value_type,
    get_data_type=value_type,
    make_array=lambda kind: lambda context, builder: SimpleNamespace(),
    populate_array=populate,
    get_constant=lambda kind, number: value_type(kind)(int(number)),
    make_tuple=lambda builder, kind, values: tuple(_given(kind.dtype, value) for value in values),
)
"""The part of Numba's compiler that the lowering uses."""


class _Builder:
    """llvmlite's builder, as far as intrinsics use it.

    Attributes:
        module: has the variables of a call, until their addresses are asked for.
    """

    def __init__(self) -> None:
        self.module = ir.Module()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """A cast to the type that is given, or arithmetic, by the same name."""

        def made(first: Any, *others: Any) -> Any:
            if others and isinstance(others[0], ir.Type):
                return first if first.type == others[0] else operation(name, others[0], first)
            return operation(name.rstrip("_"), first.type, first, *others)

        return made

    def bitcast(self, value: Any, kind: ir.Type) -> Value:
        same = _text(value.type) == _text(kind)  # pointers have no pointee in MLIR
        return Value(_mlir(value), kind) if same else operation("bitcast", kind, value)

    def fma(self, *factors: Any) -> Value:
        return operation("fma", factors[0].type, *factors, dialect="math")

    def select(self, condition: Any, one: Any, other: Any) -> Value:
        return operation("select", one.type, condition, one, other)

    def icmp_unsigned(self, sign: str, one: Any, other: Any) -> Value:
        return compared(sign, one, other)

    def gep(self, pointer: Any, indices: Sequence[Any]) -> Value:
        element = _text(pointer.type.pointee)
        taken = {"elem_type": element, "rawConstantIndices": f"array<i32: {_DYNAMIC}>"}
        return operation("getelementptr", pointer.type, pointer, *indices, **taken)

    def load(self, pointer: Any, align: int | None = None) -> Value:
        return operation("load", pointer.type.pointee, pointer, **_aligned(align))

    def store(self, value: Any, pointer: Any, align: int | None = None) -> None:
        operation("store", None, value, pointer, **_aligned(align))

    def extract_value(self, struct: Any, index: int) -> Any:
        if isinstance(struct.mlir, list):
            return struct.mlir[index]
        return operation("extractvalue", struct.type.elements[index], struct, position=f"array<i64: {index}>")

    def insert_element(self, vector: Any, element: Any, lane: Any) -> Value:
        return operation("insertelement", vector.type, vector, element, lane)

    def extract_element(self, vector: Any, lane: Any) -> Value:
        return operation("extractelement", vector.type.element, vector, lane)

    def call(self, assembly: ir.InlineAsm, args: Sequence[Any]) -> Value:
        return assembled(assembly, args)


def _aligned(align: int | None) -> dict[str, str]:
    return {} if align is None else {"alignment": f"{align} : i64"}
