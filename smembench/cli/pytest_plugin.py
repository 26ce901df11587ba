"""A pytest plugin: the fixture ``gpu_benchmark`` times a kernel, and a regression fails its test.

.. code-block:: python

    def test_scale(gpu_benchmark):
        gpu_benchmark(scale, out, given, 4096, grid=16, block=256, check=reference)

Without a GPU such tests are skipped. ``--smembench-output DIR`` stores the figures of all tests as a run, and
``--smembench-compare RUN`` fails a test whose kernel is slower than in that run, beyond the noise.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

# Nothing else here: pytest loads this module in every run.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from smembench.report.notebook import Result
    from smembench.store.schema import Row

_RESULTS: pytest.StashKey[dict[str, list[Result]]] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("smembench", "times of GPU kernels")
    group.addoption("--smembench-output", metavar="DIR", type=Path, help="Store the figures of gpu_benchmark as a run.")
    group.addoption(
        "--smembench-compare", metavar="RUN", type=Path, help="Fail where a kernel is slower than in this stored run."
    )


def pytest_configure(config: pytest.Config) -> None:
    """Refuse a run and a folder that are none, and to store what several processes measure, of which none has all."""
    against, output = (config.getoption(name) for name in ("--smembench-compare", "--smembench-output"))
    if against is not None and not against.exists():
        raise pytest.UsageError(f"--smembench-compare {against}: there is no such run")
    if output is not None and output.exists() and not output.is_dir():
        raise pytest.UsageError(f"--smembench-output {output}: is no folder; give one")
    if output is not None and getattr(config.option, "numprocesses", None):
        raise pytest.UsageError("--smembench-output: goes without processes of pytest-xdist; give -n 0")
    if against is not None:
        config.option.smembench_compare = against.absolute()  # a test may change the working directory


@pytest.fixture
def gpu_benchmark(request: pytest.FixtureRequest) -> Iterator[Callable[..., Result]]:
    """Time a kernel as ``smembench.time`` does; the case is named after the test."""
    from smembench.devices.cuda_description import why_unusable
    from smembench.model.errors import SmembenchError
    from smembench.report.notebook import Result
    from smembench.studies.time_call import time_call

    if reason := why_unusable():
        pytest.skip(reason)
    results: dict[str, list[Result]] = request.config.stash.setdefault(_RESULTS, {})
    name = re.sub(r"[^\w.\[\]-]+", "_", request.node.name)
    own = results[request.node.nodeid] = []  # anew where a plugin runs a test again

    def measure(kernel: Any, *args: Any, **keys: Any) -> Result:
        again = f".{len(own) + 1}" if own else ""
        named = {"name": f"{name}{again}", **keys}
        if any(named["name"] == row.kernel for row in _rows(results)):
            pytest.fail(f"{named['name']}: was measured before; give this one a name of its own, name=…", pytrace=False)
        try:
            result = Result(time_call(kernel, args, named, wait=True))
        except SmembenchError as error:
            failure = str(error)
        else:
            own.append(result)
            failure = next((f"{row.kernel}: {row.status}: {row.reason}" for row in result.run.failed), "")
        if failure:  # no longer while the error is handled, which pytest would show, too
            pytest.fail(failure, pytrace=False)
        return result

    yield measure
    against = request.config.getoption("--smembench-compare")
    for result in own if against else ():
        _compare(against, result)


def _rows(results: Mapping[str, list[Result]]) -> list[Row]:
    return [row for group in results.values() for result in group for row in result.run.rows]


def _compare(against: Path, result: Result) -> None:
    """Fail the test if a kernel is slower than in a stored run; warn of one that is not compared."""
    from smembench.model.errors import UsageError
    from smembench.report.notebook import Result
    from smembench.store.load import load
    from smembench.studies.compare.verdicts import Verdict

    try:
        compared = Result(load(against)).compare(result)
    except UsageError as error:
        pytest.fail(str(error), pytrace=False)
    apart = [f"{case.case.kernel}: {case.reason}" for case in compared.cases if case.verdict is Verdict.NOT_COMPARABLE]
    for text in (*apart, *(f"{case_id}: {against} has no such case" for case_id in compared.only_new)):
        warnings.warn(pytest.PytestWarning(f"not compared: {text}"), stacklevel=2)
    if compared.regressions:
        pytest.fail("\n".join(map(str, compared.regressions)), pytrace=False)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print the figures, and store them."""
    results = [result for group in config.stash.get(_RESULTS, {}).values() for result in group]
    if not results:
        return
    terminalreporter.section("smembench")
    for result in results:
        terminalreporter.write_line(str(result))
    if (output := config.getoption("--smembench-output")) is not None:
        from smembench.model.errors import UsageError
        from smembench.studies.time_call import store

        try:
            terminalreporter.write_line(f"wrote {store([result.run for result in results], output)}")
        except UsageError as error:
            terminalreporter.write_line(f"nothing was stored: {error}", red=True)
