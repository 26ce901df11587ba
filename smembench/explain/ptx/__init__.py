"""Explain any CUDA kernel by its PTX: run it on addresses with NumPy, and record every access to memory.

The way: ``costs`` takes a kernel and its arguments. ``parse`` makes a ``program`` of the text (``statements``,
``body``, ``variables``), ``needed`` finds what addresses depend on, ``merged`` and ``sunk``
what ptxas made of accesses. ``trace`` asks ``kinds`` which blocks differ, and ``machine`` runs each: ``values``
(``operations``, ``bits``, ``floats``, ``warps``) in ``registers``, ``accesses`` to ``memory`` (``content``,
``windows``) as ``records``. ``waits``, ``mbarriers`` and ``spins`` say which threads wait, ``joins`` (``flow``) where
they meet again, ``steady`` which iterations need not be run. ``copy_groups``, ``fragments`` and ``tile_accesses`` have
what more than one thread accesses; ``clusters`` and ``lifetimes`` are of blocks that reach each other's shared memory,
``misplaced`` and ``races`` of mistakes.
``numba_launch`` runs whole launches of Numba kernels on real values, and follows all that is stored.
"""
