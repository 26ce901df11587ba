"""Commands that install what is missing, alike in every message."""


def extra(name: str) -> str:
    """The command that installs an extra of the package, such as ``report``."""
    return f"pip install 'smembench[{name}]'"


CUDA = f"{extra('cu13')} (cu12 with a CUDA 12 driver)"
"""The installation of NVIDIA's compiler libraries: NVRTC, NVVM and nvJitLink."""
