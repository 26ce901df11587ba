"""Triton: kernels over tiles in Python, compiled by its own compiler and the ptxas that it brings; needs no GPU."""

from __future__ import annotations

import re
import warnings
from typing import Any

from smembench.kernels.problems import PROBLEMS
from smembench.kernels.program import TritonKernel
from smembench.model.case import Case
from smembench.model.hardware import WARP
from smembench.toolchains.loaded import Loaded
from smembench.toolchains.registry import Refused, Toolchain
from smembench.toolchains.triton_function import built

_TYPES = {"float16": "fp16", "float32": "fp32", "float64": "fp64", "int32": "i32"}


class Triton(Toolchain[TritonKernel]):
    """Takes kernels in Triton's language."""

    name = "triton"
    language = "Triton"
    kind = TritonKernel
    module = "triton"
    packages = ("triton",)
    makers = ("triton",)

    def compile(self, case: Case, program: TritonKernel, capability: str) -> Loaded[TritonKernel]:
        """Compiles at once.

        The kernel has pointers to scratch memory behind the arguments of its source, as many as Triton's version gives
        it; none of ours needs such memory.

        Raises:
            Refused: if a kernel needs it.
        """
        from cuda.core import ObjectCode

        done = compiled(case, program, capability)
        needed = {name: getattr(done.metadata, name, 0) for name in ("global_scratch_size", "profile_scratch_size")}
        if any(needed.values()):
            raise Refused(f"{done.metadata.name} needs scratch memory: {needed}")
        problem = PROBLEMS[case.problem]
        given = len(problem.arrays) + len(problem.scalars(case))
        return Loaded(
            ObjectCode.from_cubin(done.asm["cubin"], name=done.metadata.name),
            done.metadata.name,
            last=(0,) * (_parameters(done.asm["ptx"]) - given),
            dynamic_bytes=done.metadata.shared,
        )

    def machine_code(self, case: Case, program: TritonKernel, capability: str) -> tuple[str, bytes]:
        """Compile by the same call as for a launch. Triton keeps ptxas's report to itself."""
        return "", bytes(compiled(case, program, capability).asm["cubin"])


def compiled(case: Case, program: TritonKernel, capability: str) -> Any:
    """Triton's ``CompiledKernel`` for a compute capability: machine code and PTX in ``asm``, and ``metadata``.

    Triton caches it on disk.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about defaults of a later version
        source = program.source()
        problem = PROBLEMS[case.problem]
        arrays = [f"*{_TYPES[case.dtype]}"] * len(problem.arrays)
        kinds = [*arrays, *["u32"] * len(program.divisible), *["constexpr"] * len(program.constants)]
        # Every array begins at the start of a buffer of its own.
        divisible = (*(True for _ in arrays), *program.divisible)
        types = dict(zip(source.arg_names, kinds, strict=True))
        multiples = [name for name, yes in zip(types, divisible, strict=False) if yes]
        options = {"num_warps": program.block[0] // WARP}
        return built(source, types, program.constants, multiples, capability, options)[0]


def _parameters(ptx: str) -> int:
    """The number of parameters of the kernel in PTX."""
    declared = re.search(r"\.entry[^(]*\(([^)]*)\)", ptx)
    return declared[1].count(".param") if declared else 0


TOOLCHAIN = Triton()
