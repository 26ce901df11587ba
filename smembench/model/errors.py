"""Errors that end a command with one clear line; each carries the exit code of the process."""

FAILED = 1
"""Exit code of a run in which a case failed."""
INTERNAL = 70
"""Exit code of a mistake in this program, EX_SOFTWARE of sysexits.h."""
REGRESSION = 3
"""Exit code of a comparison that found something slower."""
INCOMPARABLE = 5
"""Exit code of a comparison in which nothing could be compared, although there is something to compare with."""


class SmembenchError(Exception):
    """A failure that the user can act on. ``str(error)`` names the value, the reason and the way out."""

    exit_code = 1


class UsageError(SmembenchError):
    """A flag, a configuration or a path that cannot work, found before anything is measured."""

    exit_code = 2


class DeviceUnavailable(SmembenchError):
    """The requested device does not exist or cannot be used."""

    exit_code = 4


class WorkerUnusable(DeviceUnavailable):
    """The process that opens devices fails for a reason of its own, on a device that may be there."""

    exit_code = FAILED


class NothingCompared(SmembenchError):
    """Runs of which nothing can be compared, so that nothing can be found to be slower."""

    exit_code = INCOMPARABLE


class Dropped(UserWarning):
    """Warning: damage or an edit in a file, and the part of it that is used; the command continues."""
