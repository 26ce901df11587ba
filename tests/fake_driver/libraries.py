"""The fake driver's libraries, and the environment of a process that finds them in the place of NVIDIA's."""

from __future__ import annotations

import os
from pathlib import Path

from cuda.pathfinder import find_nvidia_header_directory

from fake_driver.host_code import COMPILER, HERE, compile_library

SYSTEM = os.defpath.split(os.pathsep)
"""Folders of the system's commands."""


def why_not() -> str | None:
    """What is missing to build them, or None."""
    if COMPILER is None:
        return "needs g++"
    return None if _headers() else "needs cuda.h, which the extra cu13 brings"


def _headers() -> str | None:
    result: str | None = find_nvidia_header_directory("cudart")
    return result


def build(folder: Path) -> None:
    """Compile both libraries into a folder."""
    includes = [Path(_headers() or "")]
    driver = compile_library(HERE / "driver.cpp", folder / "libcuda.so.1", includes)
    (folder / "libcuda.so").symlink_to(driver.name)  # the name that Numba asks for first
    compile_library(HERE / "nvml.cpp", folder / "libnvidia-ml.so.1", includes)


def environment(folder: Path, **settings: object) -> dict[str, str]:
    """This process's environment with the libraries of a folder in front, and the fake driver's settings by name.

    Temporary files go into the folder unless the environment has another, and this process's GPUs are its own. NVRTC
    compiles files, in a fraction of nvcc's time, unless nvcc lies among the system's commands.
    """
    hidden = {"NUMBA_ENABLE_CUDASIM", "CUDA_VISIBLE_DEVICES"}
    kept = {name: value for name, value in os.environ.items() if name not in hidden}
    paths = os.pathsep.join(filter(None, (str(folder), os.environ.get("LD_LIBRARY_PATH"))))
    folders = os.environ["PATH"].split(os.pathsep)
    commands = [item for item in folders if item in SYSTEM or not Path(item, "nvcc").exists()]
    given = {f"{'' if name in hidden else 'FAKE_DRIVER_'}{name.upper()}": str(item) for name, item in settings.items()}
    own = {"TMPDIR": str(folder), "FAKE_DRIVER_SERIAL": str(os.getpid())}
    return own | kept | {"LD_LIBRARY_PATH": paths, "PATH": os.pathsep.join(commands)} | given
