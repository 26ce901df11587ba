from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from itertools import product
from pathlib import Path
from random import Random
from types import FunctionType

import numpy as np
import pytest

import smembench.kernels
from programs import case_of, dtypes_of, numba_kernel
from smembench.devices.base import OutOfBounds, check_guards
from smembench.devices.select import canonical
from smembench.kernels import registry
from smembench.kernels.access import problem as access
from smembench.kernels.intrinsics import declaration
from smembench.kernels.kernel import Kernel
from smembench.kernels.problems import PROBLEMS
from smembench.kernels.program import CudaCKernel, GpuKernel, NumbaKernel, Program, TritonKernel
from smembench.model.case import DEFAULT_COMPILER, ENGINES, Block, Case
from smembench.model.errors import UsageError
from smembench.studies.reproduce.figures import FIGURES
from smembench.toolchains.kept_code import variant

KERNELS = registry.kernels()
FOLDER = Path(smembench.kernels.__path__[0])
FILES = [
    path
    for kind in ("cuda", "nvrtc", "triton", "peers", "cpu")
    for path in (*FOLDER.glob(f"*/{kind}/*.py"), *FOLDER.glob(f"*/{kind}.py"))
    if path.stem != "__init__" and path.relative_to(FOLDER).parts[0] in PROBLEMS
]


def tiles(kernel: Kernel) -> int:
    """Tiles of float64 that a block of the kernel has."""
    return access.tiles("float64") if kernel.problem == "access" else 1


def test_every_kernel_file_declares_a_kernel_or_a_few_that_differ_by_a_word() -> None:
    modules = [".".join(path.relative_to(FOLDER).with_suffix("").parts) for path in FILES]
    declared = []
    for name in modules:
        module = import_module(f"smembench.kernels.{name}")
        result = [module.KERNEL] if hasattr(module, "KERNEL") else list(module.KERNELS)
        words = {re.split("[A-Z0-9]", kernel.name)[0] for kernel in result}
        assert len(words) == 1 or name.count(".") == 1, (
            "they begin with the same word, unless the file has all of the problem"
        )
        declared += result
    assert sorted(kernel.name for kernel in declared) == sorted(kernel.name for kernel in KERNELS if kernel in declared)
    assert {kernel.compiler for kernel in KERNELS if kernel not in declared} == {*ENGINES} - {DEFAULT_COMPILER}
    assert len({(kernel.problem, kernel.kind, kernel.compiler, kernel.name) for kernel in KERNELS}) == len(KERNELS)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(FOLDER)))
def test_every_kernel_file_begins_with_its_idea(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: f"{k.problem}-{k.kind}-{k.compiler}-{k.name}")
def test_declarations_are_complete(kernel: Kernel) -> None:
    case = case_of(kernel, 256, 256, 256, "float64", None if kernel.default_blocks else Block(8, 8))
    assert kernel.summary
    assert "\n" not in kernel.summary
    assert registry.kernel_of(case) is kernel
    dtypes = PROBLEMS[kernel.problem].dtypes
    sizes = (256, 257) if kernel.problem == "matmul" else (256,)  # wgmmaPacked is for rows like those of 257
    tried = [replace(case, dtype=dtype, m=n, n=n, k=n if case.k else None) for dtype in dtypes for n in sizes]
    assert kernel.peer or any(kernel.refusal(item) is None for item in tried)
    if kernel.pad is not None and not kernel.default_blocks and kernel.compiler != "triton":
        columns = (16 if "Unroll" in kernel.name else 8) + (1 if kernel.pad else 0)
        assert kernel.shared_bytes(case) == tiles(kernel) * 8 * columns * 8


@pytest.mark.parametrize("problem", PROBLEMS)
def test_names_are_the_documents_in_their_order(problem: str) -> None:
    documented = list(dict.fromkeys(figure.kernel for figure in FIGURES if figure.problem == problem))
    assert [name for name in registry.names(problem) if name in documented] == documented


@pytest.mark.parametrize("problem", PROBLEMS)
def test_kernels_are_in_the_order_of_the_ladder_and_peers_after_it(problem: str) -> None:
    assert registry.names(problem) == (*registry.ladder_of(problem), *registry.peers(problem))


@pytest.mark.parametrize("kernel", [kernel for kernel in KERNELS if "Dyn" in kernel.name], ids=lambda k: k.name)
def test_dynamic_shared_memory_is_the_tile(kernel: Kernel) -> None:
    case = replace(case_of(kernel, 5, 7, dtype="float64", block=Block(8, 4)), pad=3 if kernel.pad else 0)
    expected = tiles(kernel) * 4 * (8 + (case.pad or 0)) * 8
    assert numba_kernel(case).dynamic_bytes == kernel.shared_bytes(case) == expected


@pytest.mark.parametrize(
    "kernel",
    [kernel for kernel in KERNELS if kernel.kind == "cuda" and not kernel.peer],
    ids=lambda k: f"{k.problem}-{k.compiler}-{k.name}",
)
def test_a_launch_gives_the_dynamic_memory_that_is_declared(kernel: Kernel) -> None:
    sizes, blocks = (256, 257, 4504), kernel.default_blocks or PROBLEMS[kernel.problem].default_blocks or (None,)
    every = product(sizes, dtypes_of(kernel), blocks)
    cases = (case_of(kernel, n, n, n, dtype, block) for n, dtype, block in every)
    taken = [case for case in cases if kernel.refusal(case) is None]
    for case in taken:
        program = kernel.build(case)
        dynamic_bytes = program.dynamic_bytes if isinstance(program, GpuKernel) else 0
        assert kernel.shared_bytes(case) - dynamic_bytes == kernel.static_bytes(case) >= 0
    assert taken


SIDES = (1, 3, 8, 9, 16, 17, 33, 64, 100, 128, 129, 256, 384, 1000, 1024, 1025, 3072, 4096, 4100, 8192, 16384, 65536)
BLOCKS = (Block(8, 8), Block(16, 8), Block(16, 16), Block(32, 8), Block(32, 16), Block(32, 32))


def of_random_sizes(kernel: Kernel, count: int) -> Iterator[Case]:
    """Cases that a kernel takes, so many drawn of each element type and layout of B."""
    random, problem = Random(count), PROBLEMS[kernel.problem]
    blocks = (*kernel.default_blocks, *problem.default_blocks, *BLOCKS)
    for dtype, b_layout in [*product(dtypes_of(kernel), kernel.b_layouts)] * count:
        m, n, k = random.choices(SIDES, k=3)
        stride = random.choice((None, max(n, k) + random.choice((0, 1, 4, 16)))) if kernel.strided else None
        case = case_of(kernel, m, n, k, dtype, random.choice(blocks), stride)
        pad = random.choice((1, 2, 4)) if kernel.pad else case.pad
        parameters = random.choice(problem.combinations({}))
        case = replace(case, pad=pad, parameters=parameters, b_layout=b_layout)
        if not kernel.refusal(case) and not problem.unsupported(case):
            yield case


def decides(value: object, seen: dict[int, int]) -> object:
    """All that decides the code of a value: of a function what it closes over, too, and of an intrinsic its PTX."""
    if isinstance(value, FunctionType):
        if id(value) in seen:
            return seen[id(value)]
        seen[id(value)] = len(seen)
        table = [(line.emits, line.constant) for line in declaration.TABLE if line.function is value]
        cells = tuple(cell.cell_contents for cell in value.__closure__ or ())
        code = value.__code__
        return (
            code.co_filename,
            code.co_firstlineno,
            *(decides(one, seen) for one in (cells, value.__defaults__, table)),
        )
    if isinstance(value, (tuple, list)):
        return (type(value), *(decides(one, seen) for one in value))
    if isinstance(value, declaration.Ptx):
        return (value.text, repr(value.operands))
    return decides(value.__wrapped__, seen) if hasattr(value, "__wrapped__") else repr(value)


def code_of(program: Program) -> object:
    """All that decides the machine code of a program."""
    if isinstance(program, NumbaKernel):
        launch = (program.launch_bounds, program.constant, len(program.tensor_maps))
        return (decides(program.function, {}), launch)
    if isinstance(program, TritonKernel):
        return (program.source, program.constants, program.divisible, program.block)
    assert isinstance(program, CudaCKernel)
    return (program.source, program.entry)


@pytest.mark.parametrize(
    "kernel",
    [one for one in KERNELS if one.kind == "cuda" and not (one.peer or one.library or one.compiler in ENGINES[1:])],
    ids=lambda k: f"{k.problem}-{k.compiler}-{k.name}",
)
def test_programs_that_share_compiled_code_have_equal_code(kernel: Kernel) -> None:
    codes: dict[tuple[object, ...], object] = {}
    for case in of_random_sizes(kernel, 30):
        program = kernel.build(case)
        code = code_of(program)
        assert codes.setdefault(variant(case, program, "9.0"), code) == code, case.id
    assert codes


def test_what_no_file_declares_is_not_found() -> None:
    assert registry.find("transpose", "copyGmem", "tpu") is None
    with pytest.raises(LookupError, match="no cpu kernel 'sort' for transpose"):
        registry.kernel_of(Case("transpose", "sort", "cpu", "float32", 1, 1))


@pytest.mark.parametrize(
    ("written", "name"),
    [("auto", "auto"), (" CPU ", "cpu"), ("cuda", "cuda:0"), ("CUDA:01", "cuda:1"), ("cuda:12", "cuda:12")],
)
def test_names_of_devices(written: str, name: str) -> None:
    assert canonical(written) == name


@pytest.mark.parametrize("written", ["", "gpu", "cuda:", "cuda:-1", "cuda:x", "cpu:0"])
def test_other_names_are_no_devices(written: str) -> None:
    with pytest.raises(UsageError, match=f"device {written!r}: no such device"):
        canonical(written)


def test_a_byte_changed_beside_the_output_is_found() -> None:
    for side, place in product((0, 1), (0, -1)):
        guards = np.full((2, 8), 0xFF, np.uint8)
        check_guards(*guards)
        guards[side, place] = 0xFE
        with pytest.raises(OutOfBounds, match=("before", "after")[side]):
            check_guards(*guards)
