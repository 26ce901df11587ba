"""What is read of machine code is what nvdisasm shows, of a few kernels; results/reference/sass.csv has all of them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from cuda.pathfinder import find_nvidia_binary_utility
from disassembly import checks, compared, disassembled

from smembench.kernels import registry
from smembench.toolchains.machine_code import instructions
from smembench.toolchains.registry import toolchain_of
from traces import case

pytestmark = pytest.mark.skipif(
    find_nvidia_binary_utility("nvdisasm") is None, reason="needs nvdisasm: pip install nvidia-cuda-nvdisasm"
)


def code_of(kernel: str, compiler: str, capability: str) -> bytes:
    chosen = replace(case(kernel, "16x16", "float32", n=64), compiler=compiler)
    program = registry.kernel_of(chosen).build(chosen)
    try:
        return toolchain_of(program).machine_code(chosen, program, capability)[1]
    except Exception as error:
        pytest.skip(f"no machine code without NVIDIA's compiler libraries: {error}")


@pytest.mark.parametrize("capability", ["8.0", "9.0", "12.1"])
@pytest.mark.parametrize(
    ("kernel", "compiler"), [("tiled", "numba"), ("tiled", "nvrtc"), ("transposeSmemPad", "numba")]
)
def test_mnemonics_guards_widths_and_targets_are_nvdisasms(kernel: str, compiler: str, capability: str) -> None:
    result = list(compared(capability, code_of(kernel, compiler, capability)))
    assert {check.name for check in result} >= {"mnemonic", "guard", "width"}
    assert [check for check in result if check.here != check.shown] == []


def test_another_instruction_than_the_one_shown_is_noticed() -> None:
    code = code_of("transposeSmemPad", "numba", "9.0")
    words, shown = instructions(code), disassembled(code)
    load = next(place for place, item in enumerate(shown) if item["opcode"] == "LDS")
    low, high = words[load]
    for word, name in (((low ^ 0x1000, high), "guard"), ((low, high ^ 0x200), "width"), ((low ^ 4, high), "mnemonic")):
        differing = {check.name for check in checks("9.0", load, word, shown[load]) if check.here != check.shown}
        assert name in differing
