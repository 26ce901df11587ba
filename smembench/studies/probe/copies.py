"""Copies from global to shared memory: by registers, asynchronous (cp.async) and in bulk (cp.async.bulk).

A thread's cp.async moves 4, 8 or 16 bytes past its registers, from compute capability 8.0 on. From 9.0 on one thread
starts a copy of any size in bulk, and an mbarrier counts its bytes (PTX ISA, "Asynchronous copy"). The data lie in the
L2. They are read past the L1, except by cp.async of 4 and 8 bytes, which reads lines that the L1 lacks.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from smembench.kernels.device_memory import to_device
from smembench.kernels.program import CudaCKernel
from smembench.model.measurement import Status
from smembench.studies.probe.copies_c import SOURCE
from smembench.studies.probe.figure import Figure, verify

if TYPE_CHECKING:
    from smembench.studies.probe.bench import Bench

CAPABILITY = (8, 0)

_BULK = (9, 0)
"""The least compute capability with copies in bulk."""
_KIB = 1024
_RING, _STAGE = 64 * _KIB, 16 * _KIB
"""Sizes of the source, in bytes."""
_THREADS = 1024
_VECTOR, _PER_THREAD = 16, {"async4": 4, "async8": 8}
"""Bytes that a thread copies at once, and where it copies fewer."""
_STAGES = 512
"""Stages per launch whose bandwidth is measured."""
_COPIES = 256
"""Copies per launch whose latency is measured, each from another address."""
_REGION = 2**21
"""Bytes that one SM copies from: more than its L1 holds."""
_SEED = 1
_UNTIL = "mean over addresses in the L2, until all threads of the block see the data"
_IN_FLIGHT = f"from the L2, {_RING // _KIB} KiB in flight"
_PUBLISHED = "about 170 more than a load (Luo et al. 2024, H800)"

_WAYS = {
    "plain": "load and store",
    "async4": "cp.async of 4 bytes",
    "async8": "cp.async of 8 bytes",
    "async16": "cp.async of 16 bytes",
    "bulk": "cp.async.bulk",
}
_LATENCIES = (
    *((way, 128) for way in _WAYS),
    *((way, size * _KIB) for size in (2, 16) for way in ("plain", "async16", "bulk")),
    ("bulk", _RING),
)
"""Ways to copy, and bytes per copy."""
_RATES = (
    *((way, _STAGE, False) for way in _WAYS),
    ("bulk", 128, False),
    ("bulk", _KIB, False),
    *((way, _STAGE, True) for way in ("plain", "async16", "bulk")),
)
"""Ways to copy, bytes that one thread starts at once, and whether all SMs copy."""


def figures(bench: Bench) -> Iterator[Figure]:
    """Latency by way and size, then bandwidth of one SM by itself and of all together."""
    words = max(_REGION, bench.sms * _RING) // 4
    source = to_device(np.random.default_rng(_SEED).integers(0, 2**32, words, np.uint32))
    has_bulk = bench.capability >= _BULK
    for way, size in _LATENCIES:
        if way != "bulk" or has_bulk:
            samples = bench.trials(partial(_latency, bench, source, way, size))
            name = f"{_WAYS[way]}: latency of {_bytes(size)}"
            yield Figure.of(name, "cycles", samples, _UNTIL, _PUBLISHED if way == "bulk" else None)
    for way, size, everywhere in _RATES:
        if way != "bulk" or has_bulk:
            samples = bench.trials(partial(_bandwidth, bench, source, way, size, bench.sms if everywhere else 1))
            pieces = f" of {_bytes(size)}" if way == "bulk" else ""
            where = "all SMs together" if everywhere else "one SM by itself"
            method = f"{_IN_FLIGHT}, by one thread" if way == "bulk" else f"{_IN_FLIGHT}, by {_THREADS} threads"
            yield Figure.of(f"{_WAYS[way]}{pieces}: {where}", "B/clk/SM", samples, method)
    if not has_bulk:
        yield Figure.missing(_WAYS["bulk"], Status.SKIPPED, "not on this device: needs compute capability 9.0")


def _latency(bench: Bench, source: Any, way: str, size: int) -> float:
    """Cycles of a copy of the given bytes; the mean over a launch's copies.

    Raises:
        Unverified: if other data arrived than were copied.
    """
    copies = min(_COPIES, _REGION // size)
    threads = min(size // _PER_THREAD.get(way, _VECTOR), _THREADS)
    program = CudaCKernel(SOURCE, f"latency_{way}_{size}", grid=(1, 1), block=(threads, 1), dynamic_bytes=_RING)
    *cycles, wrong = bench.launch(program, source, copies, _REGION // copies, out=(np.int64, copies + 1))
    verify(f"the number of threads that saw wrong data from {_WAYS[way]}", int(wrong), 0)
    return float(np.mean(cycles))


def _bandwidth(bench: Bench, source: Any, way: str, size: int, sms: int) -> float:
    """Bytes per clock and SM; the mean over the SMs."""
    program = CudaCKernel(SOURCE, f"rate_{way}_{size}", grid=(sms, 1), block=(_THREADS, 1), dynamic_bytes=_RING)
    region = _REGION if sms == 1 else _RING
    out = bench.launch(program, source, region, _STAGES, out=(np.int64, 2 * sms))
    cycles, wrong = out.reshape(-1, 2).T
    verify(f"the number of threads that saw wrong data from {_WAYS[way]}", int(wrong.sum()), 0)
    return float((_STAGES * _STAGE / cycles).mean())


def _bytes(size: int) -> str:
    return f"{size // _KIB} KiB" if size >= _KIB else f"{size} B"
