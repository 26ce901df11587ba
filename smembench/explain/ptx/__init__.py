"""Explain any CUDA kernel by its PTX: run it on addresses with NumPy, and record every access to memory.

The way: ``costs`` takes a kernel and its arguments; ``parse`` makes a ``program`` of the text, ``needed`` finds what
addresses depend on, ``merged`` what ptxas made wider. ``trace`` asks ``kinds`` which blocks differ, and ``machine``
runs each: ``values`` (``operations``, ``bits``, ``floats``, ``warps``) in ``registers``, ``accesses`` to ``memory``.
"""
