"""A pytest plugin: the fixture ``gpu_benchmark`` times a kernel, and a regression fails its test.

.. code-block:: python

    def test_scale(gpu_benchmark):
        gpu_benchmark(scale, out, given, 4096, grid=16, block=256, check=reference)

Without a GPU such tests are skipped. ``--smembench-output DIR`` stores the figures of all tests as a run, and
``--smembench-compare RUN`` fails a test whose kernel is slower than in that run, beyond the noise.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

# Nothing else here: pytest loads this module in every run.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from smembench.report.notebook import Result

_RESULTS: pytest.StashKey[list[Result]] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("smembench", "times of GPU kernels")
    group.addoption("--smembench-output", metavar="DIR", type=Path, help="Store the figures of gpu_benchmark as a run.")
    group.addoption(
        "--smembench-compare", metavar="RUN", type=Path, help="Fail where a kernel is slower than in this stored run."
    )


def pytest_configure(config: pytest.Config) -> None:
    """Refuse to store what processes of pytest-xdist measure, of which none has all."""
    if config.getoption("--smembench-output") is not None and getattr(config.option, "numprocesses", None):
        raise pytest.UsageError(
            "--smembench-output: goes without processes of pytest-xdist; leave -n out, or give -n 0"
        )


@pytest.fixture
def gpu_benchmark(request: pytest.FixtureRequest) -> Iterator[Callable[..., Result]]:
    """Time a kernel as ``smembench.time`` does; the case is named after the test."""
    from smembench.devices.cuda import why_unusable
    from smembench.report.notebook import Result
    from smembench.studies.time_call import time_call

    if reason := why_unusable():
        pytest.skip(reason)
    results: list[Result] = request.config.stash.setdefault(_RESULTS, [])
    name = re.sub(r"[^\w.\[\]-]+", "_", request.node.name)
    own: list[Result] = []

    def measure(kernel: Any, *args: Any, **keys: Any) -> Result:
        again = f".{len(own) + 1}" if own else ""
        result = Result(time_call(kernel, args, {"name": f"{name}{again}", **keys}))
        own.append(result)
        results.append(result)
        for row in result.run.failed:
            pytest.fail(f"{row.kernel}: {row.status}: {row.reason}", pytrace=False)
        return result

    yield measure
    against = request.config.getoption("--smembench-compare")
    for result in own if against else ():
        compared = _stored(against).compare(result)
        if compared.regressions:
            pytest.fail("\n".join(map(str, compared.regressions)), pytrace=False)


def _stored(path: Path) -> Result:
    from smembench.report.notebook import Result
    from smembench.store.load import load

    return Result(load(path))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print the figures, and store them."""
    results = config.stash.get(_RESULTS, [])
    if not results:
        return
    terminalreporter.section("smembench")
    for result in results:
        terminalreporter.write_line(str(result))
    if (output := config.getoption("--smembench-output")) is not None:
        from smembench.studies.time_call import store

        terminalreporter.write_line(f"wrote {store([result.run for result in results], output)}")
