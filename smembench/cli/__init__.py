"""The command line: parses, calls, sets the exit code, nothing else.

Heavy imports (Numba, NumPy, Pydantic, Rich's tables) happen inside the commands, so that ``--help`` is quick.
"""
