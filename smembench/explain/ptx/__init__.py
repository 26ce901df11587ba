"""Explain any CUDA kernel by its PTX: parse it, run it on addresses with NumPy, and record every access to memory."""
