"""Choose the runs and cases of a history."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from fnmatch import fnmatchcase

from smembench.model.errors import UsageError
from smembench.model.measurement import moment
from smembench.studies.history.read import Night


def day(text: str | None) -> datetime | None:
    """The moment at which a date begins, in UTC if it names no zone; None for None.

    Raises:
        UsageError: for a text that is not a date.
    """
    try:
        return None if text is None else moment(text)
    except ValueError:
        raise UsageError(f"--since {text!r}: write a day as 2026-01-31") from None


def chosen(nights: Sequence[Night], text: str | None) -> set[str] | None:
    """Ids of the cases that contain a text, or match it if it has a ``*``; None, for all, if it is None.

    Raises:
        UsageError: if there are none.
    """
    if text is None:
        return None
    ids = {case_id for night in nights for case_id, _ in night.times}
    found = {case_id for case_id in ids if (fnmatchcase(case_id, text) if "*" in text else text in case_id)}
    if not found:
        raise UsageError(f"--case {text!r}: none of the {len(ids)} cases, such as {min(ids)}")
    return found
