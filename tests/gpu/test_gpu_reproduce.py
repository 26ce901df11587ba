"""What the documents' claims need of a GPU beside a run."""

from __future__ import annotations

import pytest

from conftest import Measured
from smembench.devices.cuda_description import why_unusable
from smembench.store.run import Run
from smembench.store.run_json import Description
from smembench.studies.reproduce.devices import probed

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(bool(why_unusable()), reason=str(why_unusable()))]


@pytest.mark.untimed
def test_latencies_of_shared_and_global_memory_are_measured(measured: Measured) -> None:
    (here,) = probed(Run.of(Description(), [measured("copyGmem", [1.0])]))
    shared, memory = (here.latency[name] for name in ("shared memory", "global memory"))
    assert 10 < shared[1] <= shared[0] <= shared[2] < memory[1] <= memory[0] <= memory[2] < 5000
