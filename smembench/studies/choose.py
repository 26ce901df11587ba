"""Choose runs by their day and cases by their id."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from fnmatch import fnmatchcase

from smembench.model.errors import UsageError
from smembench.model.measurement import moment


def day(text: str | None) -> datetime | None:
    """The moment at which a date begins, in UTC if it names no zone; None for None.

    Raises:
        UsageError: for a text that is not a date.
    """
    try:
        return None if text is None else moment(text)
    except ValueError:
        raise UsageError(f"--since {text!r}: write a day as 2026-01-31") from None


def chosen(ids: Collection[str], text: str | None) -> set[str] | None:
    """The ids of cases that contain a text, or match it if it has a ``*``; None, for all, if it is None.

    Raises:
        UsageError: if there are none.
    """
    if text is None:
        return None
    matches = {case_id for case_id in ids if (fnmatchcase(case_id, text) if "*" in text else text in case_id)}
    if not matches:
        raise UsageError(f"--case {text!r}: none of the {len(ids)} cases, such as {min(ids, default='none')}")
    return matches
