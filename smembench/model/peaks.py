"""Peaks of a device: floating-point operations and bytes per second."""

from __future__ import annotations

from smembench.model.data_sheets import DataSheet
from smembench.model.device import DeviceInfo
from smembench.model.formats import FLOAT8, HALVES, NARROW, TF32

# Results per clock and multiprocessor for 32-bit and 64-bit floating-point multiply-add: CUDA C++ Programming Guide,
# "Arithmetic Instructions", table of throughputs by compute capability. That of 10.3, 11.0 and 12.1 is from NVIDIA's
# figures of their only GPUs: 75 TFLOPS in float32 and 1.25 in float64 (HGX B300 data sheet, per GPU), 128 cores per
# multiprocessor (Thor SoC Technical Reference Manual), 6144 cores in 48 (DGX Spark data sheet). None: not published.
_FMA_PER_CLOCK: dict[str, tuple[int, int | None]] = {
    "7.0": (64, 32),
    "7.5": (64, 2),
    "8.0": (64, 32),
    "8.6": (128, 2),
    "8.9": (128, 2),
    "9.0": (128, 64),
    "10.0": (128, 64),
    "10.3": (128, 2),
    "11.0": (128, None),
    "12.0": (128, 2),
    "12.1": (128, None),
}

# The same for products of 16-bit types that tensor cores add up in float32, not sparse: 1024 in NVIDIA A100 Tensor
# Core GPU Architecture (2020), "Third-Generation Tensor Cores"; twice as many in NVIDIA H100 Tensor Core GPU
# Architecture (2022). Of other capabilities products with the same number differ, or no paper says it per clock. By the
# same papers there are half as many of tf32, and twice as many of float8, which 8.0 does not have.
_TENSOR_FMA_PER_CLOCK = {
    "8.0": {**dict.fromkeys(HALVES, 1024), TF32: 512},
    "9.0": {**dict.fromkeys(HALVES, 2048), TF32: 1024, FLOAT8: 4096},
}


def memory_bound_gb_s(bytes_moved: int, info: DeviceInfo) -> float | None:
    """The highest possible effective bandwidth, in 10^9 bytes per second; None if it is unknown.

    At most a cache full of a launch's bytes can stay in the cache from launch to launch; the rest crosses the memory
    bus, at its peak at best. So a launch takes at least (bytes - cache) / peak. For a working set many times the cache
    the bound is the peak itself; a working set within the cache has no bound.
    """
    if info.peak_gb_s is None or info.l2_bytes is None or bytes_moved <= info.l2_bytes:
        return None
    return info.peak_gb_s * bytes_moved / (bytes_moved - info.l2_bytes)


def flops_per_clock(dtype: str, capability: str | None) -> int | None:
    """Floating-point operations per clock and multiprocessor, two per multiply-add; None if they are unknown."""
    if dtype in NARROW:
        tensor = _TENSOR_FMA_PER_CLOCK.get(capability or "", {}).get(dtype)
        return None if tensor is None else 2 * tensor
    rates = _FMA_PER_CLOCK.get(capability or "")
    rate = None if rates is None else {"float32": rates[0], "float64": rates[1]}.get(dtype)
    return None if rate is None else 2 * rate


def peak_gflop_s(dtype: str, info: DeviceInfo) -> float | None:
    """Operations per clock · multiprocessors · highest SM clock, in 10^9 per second; None if one of them is unknown.

    Of a data sheet it is the peak that is printed.
    """
    if isinstance(info, DataSheet):
        printed = info.tflops.get(dtype)
        return None if printed is None else 1e3 * printed
    rate = flops_per_clock(dtype, info.compute_capability)
    if rate is None or info.sm_count is None or info.sm_clock_max_mhz is None:
        return None
    return rate * info.sm_count * info.sm_clock_max_mhz / 1e3
