"""What this package has Numba compile otherwise: lines in machine code, which change nothing else, and tensor maps."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from programs import case_of, cuda_kernel, numba_kernel
from smembench.kernels.intrinsics.declaration import TensorMapType
from smembench.kernels.numba_cuda import cuda
from smembench.model.case import BY_COLUMNS
from smembench.toolchains import numba
from smembench.toolchains.machine_code import instructions
from smembench.toolchains.numba import by_nvvm, link, linked_ptx
from smembench.toolchains.nvvm import ready_context
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


@pytest.mark.parametrize("by_llvm", [False, True])
def test_tensor_maps_are_parameters_that_no_thread_copies(by_llvm: bool) -> None:
    """The TMA reads them where the launch puts them."""
    product = replace(case_of(cuda_kernel("matmul", "wgmmaStored"), 256, 256, 256, "bfloat16"), b_layout=BY_COLUMNS)
    try:
        code = by_nvvm(product, numba_kernel(product), "9.0", by_llvm=by_llvm)
        ptx = code.decode() if by_llvm else linked_ptx(code, "90a")
    except Exception as error:
        pytest.skip(f"no PTX without NVIDIA's compiler libraries: {error}")
    maps = re.findall(r"\.param \.align 64 \.b8 (\w+)\[128\]", ptx)
    assert len(maps) == 3
    assert TensorMapType not in ready_context().data_model_manager._handlers
    assert not re.search(rf"ld\.param\S*\s[^;]*\[(?:{'|'.join(maps)})\b", ptx)
