"""NVIDIA's libraries that make code for GPUs."""

from __future__ import annotations

from importlib import import_module

_VERSIONS = {"NVRTC": ("nvrtc", "nvrtcVersion"), "NVVM": ("nvvm", "version"), "nvJitLink": ("nvjitlink", "version")}
"""The module of cuda.bindings and its function that returns the version, by library."""


def cuda_libraries() -> dict[str, str]:
    """The version of each library; "" for one that is missing."""
    return {name: _version(module, function) for name, (module, function) in _VERSIONS.items()}


def _version(module: str, function: str) -> str:
    try:
        *_, major, minor = getattr(import_module(f"cuda.bindings.{module}"), function)()
    except Exception:  # each library raises its own
        return ""
    return f"{major}.{minor}"
