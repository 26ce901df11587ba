"""Accesses to the shared memory of a block that may not have begun, or may have ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from smembench.explain.mistakes import CLUSTER_SYNCS, Mistake, thread
from smembench.explain.ptx.records import Record, Traced
from smembench.explain.ptx.registers import Mask
from smembench.explain.ptx.windows import WINDOW
from smembench.explain.requests import NOWHERE

_VERBS = {"load": "loads", "store": "stores", "atomic": "updates"}


def out_of_life(traced: Traced, block: int, name: Callable[[Record], str]) -> Iterator[Mistake]:
    """The mistakes of a cluster; ``block`` is the threads of a block, ``name`` gives the array of an access.

    A block has begun when a thread has passed a barrier of the cluster. It has not ended if it waits for something that
    comes after the access: for a barrier of the cluster, or for one in shared memory that another block completes.
    """
    ends = traced.order.reshape(-1, block).max(axis=1) // CLUSTER_SYNCS

    def mistake(record: Record, who: Mask, why: str) -> Mistake:
        first = int(np.argmax(who))
        text = (
            f"{thread(np.int64(first), block)} {_VERBS[record.kind]} an element of {name(record)} of block "
            f"{record.addresses[first] // WINDOW - 1}, which {why}"
        )
        return Mistake(record.instruction.called_from.line, "barrier", text)

    for record in traced.records:
        if record.space != "distributed":
            continue
        active, times = record.addresses != NOWHERE, record.order // CLUSTER_SYNCS
        ranks = np.clip(record.addresses // WINDOW - 1, 0, len(ends) - 1)
        if (early := active & (times == 0)).any():
            yield mistake(record, early, "may not have begun: no barrier of the cluster comes before")
        if (late := active & (times >= ends[ranks])).any():
            yield mistake(record, late, "may have ended: it waits for nothing that comes after")
