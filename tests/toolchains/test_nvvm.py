"""Line information in machine code: it is there, and the code is what a launch by Numba has without it."""

from __future__ import annotations

from typing import Any

import pytest

from programs import numba_kernel
from smembench.kernels.numba_cuda import cuda
from smembench.toolchains import numba
from smembench.toolchains.machine_code import instructions
from smembench.toolchains.numba import by_nvvm, link
from smembench.toolchains.source_lines import source_lines
from traces import case


@pytest.mark.parametrize(
    ("kernel", "block", "dtype"),
    [
        ("transposeVectorized", "8x8", "float32"),
        ("mmaAsync", "16x16", "bfloat16"),
        ("tiled1D", "64x8", "float32"),
        ("mmaSwizzled", "16x16", "bfloat16"),
    ],
)
def test_code_with_lines_is_the_code_of_a_launch(
    monkeypatch: pytest.MonkeyPatch, kernel: str, block: str, dtype: str
) -> None:
    """Most of these kernels' code is another with Numba's own line information."""
    chosen, compile_ = case(kernel, block, dtype, n=64), cuda.compile

    def without_lines(*given: Any, **options: Any) -> Any:
        return compile_(*given, **options | {"lineinfo": False})

    result = []
    monkeypatch.setattr(numba, "kept", lambda case, toolchain, decides, made: made())
    for compiled in (compile_, without_lines):
        monkeypatch.setattr(cuda, "compile", compiled)
        try:
            result.append(link(by_nvvm(chosen, numba_kernel(chosen), "9.0"), "90", at_link_time=True)[1])
        except Exception as error:
            pytest.skip(f"no machine code without NVIDIA's compiler libraries: {error}")
    lined, plain = result
    words = instructions(plain)
    assert instructions(lined) == words
    assert len({*source_lines(lined, len(words))}) > len({*source_lines(plain, len(words))})
