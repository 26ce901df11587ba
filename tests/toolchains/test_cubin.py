"""What an object file tells of its kernel, against ptxas's report of the same code."""

from __future__ import annotations

import pytest

from programs import case_of, cuda_c_kernel
from smembench.kernels import registry
from smembench.toolchains.cubin import entry, usage
from smembench.toolchains.machine_code import parse
from smembench.toolchains.registry import toolchain_of


@pytest.mark.parametrize(("problem", "name"), [("transpose", "transposeSmemPad"), ("matmul", "serpentine")])
def test_a_file_says_what_ptxas_reported(problem: str, name: str) -> None:
    kernel = registry.find(problem, name, "cuda", "nvrtc")
    assert kernel
    case = case_of(kernel, 128, 128, 128)
    program = cuda_c_kernel(case)
    try:
        log, code = toolchain_of(program).machine_code(case, program, "9.0")
    except Exception as error:
        pytest.skip(str(error))
    reported, recorded = parse(log, code), parse("", code)
    assert recorded == reported
    assert recorded
    assert usage(code) == (recorded.registers, recorded.spilled_bytes)
    assert entry(code) == name
    assert parse("no report of registers", code) is None
