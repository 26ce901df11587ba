from __future__ import annotations

import pytest

from conftest import NIGHTLY, Program


@pytest.mark.parametrize(("problem", "kernel"), [("transpose", "transposeSmem"), ("constant", "constantUniform")])
def test_all_codes_without_a_gpu(program: Program, problem: str, kernel: str) -> None:
    done = program("compilers", problem, "--static", "--kernel", kernel, "--block", "16x16")
    if done.returncode == 2:
        assert "pip install 'smembench[cu13]'" in done.stderr
        pytest.skip("needs NVIDIA's compiler libraries")
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith(kernel)]
    assert {"numba", "nvrtc"} <= {line[2] for line in lines}
    assert all(line[-1].isdecimal() for line in lines)


def test_a_port_that_does_not_take_the_size_has_no_figures(program: Program) -> None:
    done = program("compilers", "matmul", "--static", "--kernel", "serpentine", "--n", "130")
    if done.returncode == 2:
        pytest.skip("needs NVIDIA's compiler libraries")
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith("serpentine  ")]
    assert {line[2] for line in lines} == {"numba"}
    note = "Not by CUDA C: serpentine: the CUDA C port of serpentine takes whole vectors only"
    assert note in " ".join(done.stdout.split())


def test_the_best_of_a_stored_run_beside_memcpy(program: Program) -> None:
    done = program("show", NIGHTLY, "--limits", "--markdown")
    assert done.returncode == 0, done.stderr
    assert "| over memcpy |" in done.stdout
