"""Kernels of other libraries: planned with --peers or by name, skipped with the way to install what is missing."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from smembench.case import Case
from smembench.config import from_flags
from smembench.devices.base import Limits
from smembench.kernels import registry
from smembench.kernels.peers import needs
from smembench.plan import Planned, plan

FREE = {"cuda:0": Limits(free_bytes=2**34), "cpu": Limits(free_bytes=2**34)}


def planned(problem: str, **sweep: object) -> list[Planned]:
    config = from_flags({"sweep": [{"problem": problem, "n": 64, "block": "16x16", "device": "cuda", **sweep}]})
    return plan(config, FREE, {"cuda:0": "cuda:0"})


@pytest.mark.parametrize(("problem", "names"), [("transpose", ("cupy", "torch")), ("matmul", ("cublas", "torch"))])
def test_peers_run_beside_the_others_when_asked_for(problem: str, names: tuple[str, ...]) -> None:
    without, with_peers = planned(problem), planned(problem, peers=True)
    assert registry.peers(problem) == names
    assert with_peers[: len(without)] == without
    assert tuple(item.case.kernel for item in with_peers[len(without) :]) == names
    assert all(item.case.compiler == item.case.kernel for item in with_peers[len(without) :])


def test_a_peer_is_planned_by_name_whatever_the_compiler() -> None:
    (cublas,) = [item for item in planned("matmul", kernel="naive,cublas", compiler="nvrtc") if item.case.block is None]
    assert cublas.case.kernel == "cublas"
    assert bool(cublas.skip) == (find_spec("cupy") is None)


def test_a_missing_package_is_named_with_the_way_to_install_it() -> None:
    case = Case("transpose", "cupy", "cuda:0", "float32", 8, 8)
    assert needs("no_such_package", "its-wheel")(case) == "no_such_package is not installed: pip install its-wheel"
    assert needs("numpy", "numpy")(case) is None
