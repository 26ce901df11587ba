"""Compile the kernels of triton.toml, from folders of packages, by Triton's own compiler for a launch's arguments."""

import re
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np
from functions import source
from launches import given, sides

from smembench.launches.array_argument import ArrayArgument

WARP = 32
TYPES = {"float16": "fp16", "float32": "fp32", "float64": "fp64", "bool": "i1"}
"""Triton's names of types; integers are i32, u8 and the like."""


def compile_triton(number: int, kernel: dict[str, Any], sources: Path, build: Path) -> str:
    """Compile a kernel to ``NUMBER.ptx``, ``.cubin``, ``.entry`` and ``.shared_bytes``; why it cannot be, or ""."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    try:
        function = _function(number, kernel, sources, build)
        types, constants, divisible = _specialised(function, kernel)
        done = triton.compile(
            ASTSource(function, types, constants, {(place,): [["tt.divisibility", 16]] for place in divisible}),
            target=GPUTarget("cuda", 90, WARP),
            options={"num_warps": sides(kernel["block"])[0] // WARP, "num_stages": kernel.get("stages", 3)},
        )
    except Exception as error:  # the compiler's own
        return f"{kernel['name']}: {' '.join(str(error).split())[-300:]}"
    if done.metadata.global_scratch_size or done.metadata.profile_scratch_size:
        return f"{kernel['name']}: needs scratch memory"
    for form in ("ptx", "cubin"):
        content = done.asm[form]
        (build / f"{number}.{form}").write_bytes(content.encode() if isinstance(content, str) else content)
    (build / f"{number}.shared_bytes").write_text(str(done.metadata.shared))
    (build / f"{number}.entry").write_text(done.metadata.name)
    return ""


def _function(number: int, kernel: dict[str, Any], sources: Path, build: Path) -> Any:
    """A kernel as a function of Triton's, from a file of its own with what it calls."""
    file = kernel["file"]
    paths = [item if ":" in item else f"{file}:{item}" for item in [*kernel.get("with", ()), kernel["name"]]]
    lines = ["import triton", "import triton.language as tl", *kernel.get("before", ())]
    for path in paths:
        folder, _, name = path.partition(":")
        text = source(sources / folder, name, _kept)
        lines.append(text if text.startswith("@") or path != paths[-1] else f"@triton.jit\n{text}")
    written = build / f"{number}.py"
    written.write_text("\n".join([*lines, ""]))
    specification = spec_from_file_location(f"kernel_{number}", written)
    assert specification is not None
    assert specification.loader is not None
    module = module_from_spec(specification)
    sys.modules[module.__name__] = module
    specification.loader.exec_module(module)
    return getattr(module, kernel["name"])


def _kept(decorator: str) -> bool:
    """Whether a function needs a decorator; others tune it or launch it."""
    return decorator.startswith(("triton.jit", "tl.constexpr"))


def _specialised(function: Any, kernel: dict[str, Any]) -> tuple[dict[str, str], dict[str, Any], list[int]]:
    """Types by parameter, values of constants, and the places of arguments that 16 divides, as for a launch."""
    import triton.language as tl

    constants = {
        name: eval(value, {"tl": tl}) if isinstance(value, str) else value
        for name, value in kernel.get("constants", {}).items()
    }
    for parameter in function.params:
        if parameter.is_constexpr and parameter.has_default:
            constants.setdefault(parameter.name, parameter.default)
    passed = [parameter for parameter in function.params if parameter.name not in constants]
    types = dict.fromkeys(constants, "constexpr")
    divisible = []
    for parameter, argument in zip(passed, given(kernel), strict=True):
        types[parameter.name] = kernel.get("types", {}).get(parameter.name) or _type(argument)
        integer = isinstance(argument, int | np.integer) and not isinstance(argument, bool)
        aligned = isinstance(argument, ArrayArgument) or (integer and argument % 16 == 0)
        if aligned and not parameter.do_not_specialize:
            divisible.append(function.arg_names.index(parameter.name))
    return {name: types[name] for name in function.arg_names}, constants, divisible


def _type(argument: Any) -> str:
    """Triton's type of an argument."""
    if isinstance(argument, ArrayArgument):
        return f"*{_name(argument.dtype)}"
    if isinstance(argument, bool):
        return "i1"
    return _name(argument.dtype) if isinstance(argument, np.generic) else "i32"


def _name(dtype: np.dtype[Any]) -> str:
    return TYPES.get(dtype.name) or re.sub(r"(u?)int(\d+)", lambda match: f"{match[1] or 'i'}{match[2]}", dtype.name)
