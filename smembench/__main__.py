"""``python -m smembench``, which takes Ctrl-C and SIGTERM before it imports what takes long."""

from __future__ import annotations

import sys

if __name__ == "__main__" and not sys.flags.safe_path:
    del sys.path[0]  # the working directory, whose files would be imported in place of the library's

import gc
import os

from smembench.model import interrupts


def main() -> None:
    """Run the command line; an import that fails is one line, too."""
    interrupts.install()
    if os.environ.get("COLUMNS", "1").strip("0") == "":
        del os.environ["COLUMNS"]  # an unknown width, as for the shell and shutil; Rich would print nothing
    gc.set_threshold(1_000_000)  # imports and traces are no garbage; looking for it took a tenth of the time
    try:
        from smembench.cli.app import main as run

        run()
    except KeyboardInterrupt:
        code, said = interrupts.exit_code(), "interrupted"
    except (OSError, ImportError) as error:
        code, said = 2, str(error)
    else:
        return
    finally:
        gc.freeze()  # or Python, at its end, looks for garbage in all that was imported: 0.2 to 0.3 s with Numba
    print(f"smembench: {said}", file=sys.stderr)
    sys.exit(code)


if __name__ == "__main__":
    main()
