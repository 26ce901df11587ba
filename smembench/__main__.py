"""``python -m smembench``, which takes Ctrl-C before it imports anything that is to be loaded, SIGTERM soon after.

While Python itself starts, Ctrl-C is Python's, which prints a traceback.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # built in, unlike signal
import os
import sys

if __name__ == "__main__" and not sys.flags.safe_path:
    del sys.path[0]  # the working directory, whose files would be imported in place of the library's


def _at_once(number: int, frame: object) -> None:
    """The handler of Ctrl-C until ``interrupts.install``: nothing has begun that could be lost."""
    os.write(2, b"smembench: interrupted\n")
    os._exit(128 + number)


if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
    _signal.signal(_signal.SIGINT, _at_once)

import atexit  # noqa: E402
import gc  # noqa: E402
from contextlib import suppress  # noqa: E402

from smembench.model import interrupts  # noqa: E402


def main() -> None:
    """Run the command line; an import that fails is one line, too."""
    interrupts.install(replaced=_at_once)
    ends: list[int] = []
    atexit.register(_end, ends)  # before all others, and so called after them
    if os.environ.get("COLUMNS", "1").strip("0") == "":
        del os.environ["COLUMNS"]  # an unknown width, as for the shell and shutil; Rich would print nothing
    gc.set_threshold(1_000_000)  # imports and traces are no garbage; looking for it took a tenth of the time
    try:
        from smembench.cli.app import main as run

        run()
    except SystemExit as left:
        ends.append(left.code if isinstance(left.code, int) else 0)
        raise
    except KeyboardInterrupt:
        code, message = interrupts.exit_code(), "interrupted"
    except (OSError, ImportError) as error:
        code, message = 2, str(error)
    else:
        return
    finally:
        if "triton" not in sys.modules:  # whose library names on stderr what is left of it
            gc.freeze()  # or Python, at its end, looks for garbage in all that was imported: 0.2 to 0.3 s with Numba
    print(f"smembench: {message}", file=sys.stderr)
    ends.append(code)
    sys.exit(code)


def _end(codes: list[int]) -> None:
    """The end of an interrupted process, with its exit code.

    Python would repeat the signal where a KeyboardInterrupt has passed through code that was made of text, such as an
    annotation's.
    """
    for code in codes:
        if code in interrupts.EXIT_CODES:
            with suppress(OSError, ValueError):  # closed or full
                sys.stdout.flush()
            os._exit(code)


if __name__ == "__main__":
    main()
