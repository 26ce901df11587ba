"""Where: devices behind one protocol. Only ``cuda_api`` imports ``numba.cuda``."""
