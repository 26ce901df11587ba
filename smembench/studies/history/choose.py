"""Which runs and which cases of a history are meant."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from fnmatch import fnmatchcase

from smembench.model.errors import UsageError
from smembench.studies.history.read import Night


def day(text: str | None) -> datetime | None:
    """The moment that a date means, in UTC where it names no zone; None for None.

    Raises:
        UsageError: for a text that is no date.
    """
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"--since {text!r}: write a day as 2026-01-31") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def chosen(nights: Sequence[Night], text: str | None) -> set[str] | None:
    """Ids of the cases a text means; all for None.

    Raises:
        UsageError: when it means none.
    """
    if text is None:
        return None
    ids = {case_id for night in nights for case_id, _ in night.times}
    found = {case_id for case_id in ids if (fnmatchcase(case_id, text) if "*" in text else text in case_id)}
    if not found:
        raise UsageError(f"--case {text!r}: none of the {len(ids)} cases, such as {min(ids)}")
    return found
