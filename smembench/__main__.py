"""``python -m smembench``."""

from smembench.cli.app import main

if __name__ == "__main__":
    main()
