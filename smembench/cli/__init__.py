"""The command line, a file per command: options, one call to a study, one to a view, and the exit code.

Heavy imports (Numba, NumPy, Pydantic, Rich's tables) happen inside the commands, to keep ``--help`` quick.
"""
