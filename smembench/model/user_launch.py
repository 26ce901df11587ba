"""A kernel of the user's and how it is launched and checked, with every size in numbers."""

from __future__ import annotations

from dataclasses import dataclass

UNCHECKED = "none"
"""The check of a launch whose results nobody checks."""


@dataclass(frozen=True, slots=True)
class UserLaunch:
    """A kernel in a file, or a Python function that enqueues work, with a launch as the command line writes it.

    Arguments are named by their place, counted from 0, or by the kernel's own name for them.

    Attributes:
        target: ``path.cu:name``, ``path.ptx:name``, ``path.cubin:name`` or ``path.py:name``.
        arguments: in the kernel's order, ``float32[1024,1024]``, ``1024`` or ``x.npy``; Triton's constants by name.
        grid, block, cluster: blocks, threads and blocks per cluster along up to three axes; empty where the kernel, or
            the function, decides.
        shared_bytes: dynamic shared memory.
        cooperative: whether all blocks have to be resident at once.
        carveout: the share of L1 and shared memory that is shared memory, in percent; None for the driver's choice.
        options: of the compiler, such as ``-DN=4``.
        outputs: arguments that are written whole or in part, and not read.
        restored: arguments that are read and written; each launch finds what the first one found.
        resets: arguments that each launch finds filled with a number, and that number, such as ``("3", "0")``.
        scratch: arguments that are written, and that nobody checks.
        check: ``path.py:function``, another target of the same run, or ``UNCHECKED``.
        rtol, atol: tolerances of the check; None for those of the type.
        array_bytes: of each array with its guards, in order.
        saved_bytes: at most, of copies of what each launch finds in arrays that are restored.
        bytes, flops: per launch.
    """

    target: str
    arguments: tuple[str, ...] = ()
    grid: tuple[int, ...] = ()
    block: tuple[int, ...] = ()
    cluster: tuple[int, ...] = ()
    shared_bytes: int = 0
    cooperative: bool = False
    carveout: int | None = None
    options: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    restored: tuple[str, ...] = ()
    resets: tuple[tuple[str, str], ...] = ()
    scratch: tuple[str, ...] = ()
    check: str = UNCHECKED
    rtol: float | None = None
    atol: float | None = None
    array_bytes: tuple[int, ...] = ()
    saved_bytes: int = 0
    bytes: int = 1
    flops: int = 0
