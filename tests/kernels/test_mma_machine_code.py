"""What the compiler makes of products on tensor cores: matrix instructions, and everything in registers."""

from __future__ import annotations

import pytest

from ladder import matmul as case
from programs import numba_kernel
from smembench.toolchains import numba
from smembench.toolchains.machine_code import MachineCode, parse

pytestmark = pytest.mark.slow


def compiled(name: str, dtype: str, capability: str, n: int = 4096) -> MachineCode:
    if reason := numba.TOOLCHAIN.unavailable():
        pytest.skip(reason)
    log, code = numba.TOOLCHAIN.machine_code(case(name, dtype, n), numba_kernel(case(name, dtype, n)), capability)
    result = parse(log, code)
    assert result is not None
    return result


@pytest.mark.parametrize(
    ("name", "dtype", "capability"),
    [
        ("mmaPlain", "bfloat16", "8.0"),
        ("mmaPadded", "float16", "9.0"),
        ("mmaSwizzled", "bfloat16", "8.0"),
        ("mmaAsync", "float16", "8.0"),
        ("mmaAsync", "bfloat16", "9.0"),
    ],
)
def test_sums_stay_in_registers_and_fragments_come_by_matrices(name: str, dtype: str, capability: str) -> None:
    result = compiled(name, dtype, capability)
    assert (result.spilled_bytes, result.registers <= 128) == (0, True)
    # 2 × 8 products per step along k, with or without both steps written out.
    assert result.kinds["HMMA"] in (16, 32)
    steps = result.kinds["HMMA"] // 16
    assert result.kinds.get("LDSM", 0) == (0 if name == "mmaPlain" else steps * (2 + 4))
    # Of A two vectors per thread and tile, and of B as many; the asynchronous ones of three tiles.
    copies = {kind: result.kinds.get(kind, 0) for kind in ("LDG", "LDGSTS")}
    assert copies == ({"LDG": 0, "LDGSTS": 12} if name == "mmaAsync" else {"LDG": 4, "LDGSTS": 0})
    assert result.kinds["STG"] == 32


def test_nothing_is_spilled_where_rows_are_not_aligned() -> None:
    result = compiled("mmaSwizzled", "float16", "9.0", n=4097)
    assert result.spilled_bytes == 0
    assert result.kinds["HMMA"]
