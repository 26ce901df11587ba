"""Count random requests: ``PYTHONPATH=.:.ci python -m warp_requests [--requests N] [--seed S] FILE.csv``.

It needs a GPU and Nsight Compute. Exit code 1 means that a count contradicts a rule of ``explain``; on Ctrl-C what was
counted is kept.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from pathlib import Path
from random import SystemRandom

from smembench.devices.cuda_description import gpu_info, why_unusable
from smembench.model.errors import SmembenchError
from smembench.model.text import number_of
from smembench.run.session import locked
from smembench.store.files import Output
from smembench.views.records import csv
from smembench.views.table import drawn
from warp_requests.counting import Counted, compare, failures
from warp_requests.tables import request_records, sections


def main() -> None:
    """Count, print the tables and write each request with its count.

    Raises:
        SmembenchError: without a GPU, NVRTC or ncu, on Ctrl-C, and for a count that contradicts a rule.
    """
    parser = ArgumentParser(prog="warp_requests", description=__doc__)
    parser.add_argument("--requests", type=int, default=1000, help="how many, besides a few of other instructions")
    parser.add_argument("--seed", type=int, default=SystemRandom().randrange(10**6))
    parser.add_argument("file", type=Path)
    given = parser.parse_args()
    output = Output(given.file)
    result: list[Counted] = []
    interrupted = False
    with locked(["cuda:0"]):
        info = gpu_info(0)  # without a context, which would share the GPU with what is counted
        if info is None:
            raise SmembenchError(f"device cuda: {why_unusable()}")
        print(f"random requests of --seed {given.seed} under ncu", file=sys.stderr)
        try:
            result.extend(compare(given.seed, given.requests, info.compute_capability or "", _progress))
        except KeyboardInterrupt:
            interrupted = True
    output.write(csv(request_records(result)))
    print(drawn(sections(result, info, given.seed)))
    if interrupted:
        raise SmembenchError(f"interrupted: {len(result)} requests were counted")
    if wrong := failures(result):
        raise SmembenchError(f"{number_of(len(wrong), 'request')} not counted as predicted")


def _progress(what: str, done: int, of: int) -> None:
    if done % 100 == 0:
        print(f"{done} of {of}: {what}", file=sys.stderr)


if __name__ == "__main__":
    try:
        main()
    except SmembenchError as error:
        sys.exit(f"warp_requests: {error}")
