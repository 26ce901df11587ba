"""The whole way to the driver without a GPU: command line, worker, Numba, NVRTC, captures, graphs, telemetry."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest
from warp_requests.requests import drawn

from campaign import CAMPAIGN
from conftest import records
from fake_driver.host_code import HostKernel, compile_for_host, port
from fake_driver.process import FEW, FakeDriver, ended
from smembench.model.case import Block, Case

pytestmark = pytest.mark.slow

MEMCPY = ("smembench", "transpose", "--device", "cuda", *FEW, "--kernel", "memcpy", "--csv", "-")
BLOCK = Block(16, 16)
needs_mlir = pytest.mark.skipif(find_spec("numba_cuda_mlir") is None, reason="needs the extra mlir")
by_each_engine = pytest.mark.parametrize("engine", ["numba", pytest.param("mlir", marks=needs_mlir)])
ADD_ONE = """
typedef int T;
constexpr unsigned THREADS = 128;
static void addOne(T *out, const T *in, unsigned n)
{
    unsigned i = blockIdx.x * THREADS + threadIdx.x;
    if (i < n)
        out[i] = in[i] + 1;
}
"""


BY_TRITON = """
typedef float T;
constexpr unsigned SIDE = 16;
static void transpose(T *out, const T *in, unsigned nx, unsigned ny)
{
    unsigned ix = blockIdx.x * SIDE + threadIdx.x % SIDE, iy = blockIdx.y * SIDE + threadIdx.x / SIDE;
    if (ix < nx && iy < ny)
        out[ix * ny + iy] = in[iy * nx + ix];
}
"""


PRODUCT = """
typedef unsigned short T;

static float widened(T bits) { return __builtin_bit_cast(float, bits << 16); }

static T rounded(float value)
{
    unsigned bits = __builtin_bit_cast(unsigned, value);
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
}

// All of it in a launch's first thread.
static void product(T *c, const T *a, const T *b, unsigned m, unsigned n, unsigned k,
                    unsigned lda, unsigned ldb, unsigned ldc)
{
    if (blockIdx.x || blockIdx.y || threadIdx.x || threadIdx.y)
        return;
    for (unsigned row = 0; row < m; ++row)
        for (unsigned col = 0; col < n; ++col) {
            float sum = 0;
            for (unsigned i = 0; i < k; ++i)
                sum += widened(a[row * lda + i]) * widened(b[i * ldb + col]);
            c[row * ldc + col] = rounded(sum);
        }
}
"""
"""The product of matrices in bfloat16, without tensor cores."""

BY_MAPS = (
    PRODUCT
    + """
static void by_maps(T *, const T *, const T *, unsigned m, unsigned n, unsigned k, unsigned, unsigned, unsigned,
                    const void *a, const void *b, const void *c)
{
    const HostMap &of_a = *(const HostMap *)a, &of_b = *(const HostMap *)b, &of_c = *(const HostMap *)c;
    bool inputs = of_a.rows == m && of_a.columns == k && of_b.rows == k && of_b.columns == n;
    if (inputs && of_c.rows == m && of_c.columns == n)
        product((T *)of_c.address, (const T *)of_a.address, (const T *)of_b.address, m, n, k,
                of_a.stride_bytes / sizeof(T), of_b.stride_bytes / sizeof(T), of_c.stride_bytes / sizeof(T));
}
"""
)
"""The same of the matrices that tensor maps describe, if these have the sides that the scalars have."""


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Host forms of the documents' kernels in blocks of 16x16, of the round trip's and of two on tensor cores."""
    square = Case("matmul", "naive", "cuda:0", "float32", 40, 40, 40, BLOCK)
    copy = Case("transpose", "copyGmem", "cuda:0", "float32", 40, 40, None, BLOCK)
    cases = [square, replace(square, kernel="tiled"), copy, replace(copy, kernel="naiveGmem")]
    cases += [replace(copy, kernel="transposeSmem", pad=0), replace(copy, kernel="transposeSmemPad", pad=1)]
    cases += [replace(case, block=Block(32, 32)) for case in cases[-2:]]
    cases += [Case("constant", "constantUniform", "cuda:0", "float32", 1, 1000, None, Block(256, 1))]
    of_matmul = replace(port(replace(square, kernel="tiled")), mangled="14mat_mul_kernel")
    add_one = HostKernel("addOne", "7add_one", ADD_ONE, (128, 1), 2, 1)
    by_triton = HostKernel("transpose", "no kernel by Numba", BY_TRITON, (256, 1), 2, 2)
    on_tensor_cores = HostKernel("product", "9mma_async", PRODUCT, (16, 16), 3, 6)
    by_maps = HostKernel("by_maps", "12wgmma_stored", BY_MAPS, (384, 1), 3, 6, 3)
    others = (of_matmul, add_one, by_triton, on_tensor_cores, by_maps)
    return compile_for_host([*map(port, cases), *others], tmp_path_factory.mktemp("kernels"))


def test_transposes_of_both_compilers_are_right_and_timed_in_each_cache_mode(
    fake_driver: FakeDriver, kernels: Path
) -> None:
    kernel = ["--kernel", "memcpy,naiveGmem,transposeSmemPad", "--n", "100", "--block", "16x16", "--device", "cuda"]
    command = ["smembench", "transpose", *kernel, "--compiler", "numba,nvrtc", "--cache", "warm,cold,rotated", *FEW]
    listed, _ = ended(fake_driver(*command, "--dry-run", kernels=kernels))
    assert listed.count("rotated  28 copies of its arrays") == 5
    out, _ = ended(fake_driver(*command, "--csv", "-", kernels=kernels))
    result = records(out)
    assert len(result) == 3 * (1 + 2 * 2)  # memcpy has one compiler
    for row in result:
        assert (row["status"], row["verified"], row["max_error"]) == ("ok", "true", "0.0"), row["reason"]
        assert float(row["elapsed_ms"]) > 0
        assert row["throttle_reasons"] == "none"
        assert bool(row["registers"]) == (row["kernel"] != "memcpy")


def test_the_gain_of_a_step_is_measured_in_the_blocks_shown(fake_driver: FakeDriver, kernels: Path) -> None:
    command = ["smembench", "ladder", "transpose", "--diff", "transposeSmemPad", "--n", "100", "--csv", "-", *FEW]
    out, err = ended(fake_driver(*command, kernels=kernels))
    both = {(row["kernel"], row["block_x"], row["status"]) for row in records(out)}
    assert both >= {("transposeSmem", "32", "ok"), ("transposeSmemPad", "32", "ok")}
    assert len(both) == 3  # and the ceiling
    assert "width: 32 -> 33" in err
    assert "gain" in err


@pytest.mark.parametrize(("compiler", "module"), [("mlir", "numba_cuda_mlir"), ("triton", "triton")])
def test_kernels_of_other_toolchains_get_what_they_are_given(
    fake_driver: FakeDriver, kernels: Path, compiler: str, module: str
) -> None:
    command = ["smembench", "compilers", "transpose", "--n", "100", "--block", "16x16", *FEW]
    if find_spec(module) is None:
        pytest.skip(f"needs the extra {compiler}")
    out, _ = ended(fake_driver(*command, "--kernel", "transposeSmemPad", "--csv", "-", kernels=kernels))
    (row,) = (row for row in records(out) if row["compiler"] == compiler)
    assert (row["status"], row["verified"], row["max_error"]) == ("ok", "true", "0.0"), row["reason"]
    assert int(row["registers"]) > 0
    assert float(row["elapsed_ms"]) > 0


def test_every_problem_and_a_kernel_that_does_nothing(fake_driver: FakeDriver, kernels: Path, tmp_path: Path) -> None:
    config = tmp_path / "every.toml"
    config.write_text(
        """
        samples = 3
        rounds = 1
        precision = 90.0
        max_seconds = 1.0
        warmup = 0.0
        sweep = [
            {problem = "matmul", n = 40, block = "16x16", kernel = ["naive", "tiled"], compiler = ["numba", "nvrtc"]},
            {problem = "constant", n = 100000, block = "256x1", kernel = "constantUniform", compiler = "numba,nvrtc"},
            {problem = "transfer", bytes = 4000000},
            {problem = "roundtrip", n = 1000000},
            {problem = "matmul", n = 200, block = "16x16", kernel = ["MatMulKernel", "MatMul"]},
            {problem = "matmul", n = 40, block = "8x8", kernel = ["tiled", "MatMul"]},
        ]
        """
    )
    ended(fake_driver("smembench", "run", config, "--set", "device=cuda", "--output", tmp_path, kernels=kernels), 1)
    (table,) = tmp_path.glob("*/cases.csv")
    result = [row for row in records(table.read_text()) if row["device"] == "cuda:0"]
    nothing = [row for row in result if row["block_x"] == "8"]  # the fake driver has no such kernels and does nothing
    assert [(row["kernel"], row["status"], row["elapsed_ms"], row["gflop_s"]) for row in nothing] == [
        ("tiled", "wrong_result", "", ""),
        ("MatMul", "wrong_result", "", ""),
    ]
    # Large enough that a busy host's calibration of the events stays below a sample.
    assert [row["reason"] for row in result if row not in nothing and row["status"] != "ok"] == []
    assert len(result) == 4 + 2 + 4 + 3 + 2 + 2


def test_products_on_tensor_cores_are_measured_on_each_distribution(fake_driver: FakeDriver, kernels: Path) -> None:
    kernel = ("--kernel", "mmaAsync", "--dtype", "bfloat16", "--n", "136", "--block", "16x16", "--device", "cuda:0")
    inputs = ("--inputs", "normal,integers,zeros", "--csv", "-")
    out, _ = ended(fake_driver("smembench", "matmul", *kernel, *inputs, *FEW, kernels=kernels))
    result = {row["inputs"]: row for row in records(out)}
    assert set(result) == {"normal", "integers", "zeros"}
    for distribution, row in result.items():
        assert (row["status"], row["verified"]) == ("ok", "true"), row["reason"]
        assert (float(row["max_error"]) == 0.0) == (distribution == "zeros")
        assert f"/inputs={distribution}/" in row["case_id"]


@by_each_engine
def test_tiles_are_copied_by_the_maps_of_a_launch(fake_driver: FakeDriver, kernels: Path, engine: str) -> None:
    """They are those of this case's matrices, and follow the scalars."""
    kernel = ("--kernel", "wgmmaStored", "--dtype", "bfloat16", "--m", "100", "--n", "144", "--k", "200")
    command = ("smembench", "matmul", "--device", "cuda", *FEW, *kernel, "--compiler", engine, "--csv", "-")
    out, _ = ended(fake_driver(*command, kernels=kernels))
    (row,) = records(out)
    assert (row["compiler"], row["status"], row["verified"]) == (engine, "ok", "true"), row["reason"]


@by_each_engine
def test_the_host_fills_constant_memory_by_its_name(fake_driver: FakeDriver, kernels: Path, engine: str) -> None:
    kernel = ("--kernel", "constantUniform", "--n", "1000", "--block", "256x1", "--compiler", engine)
    out, _ = ended(
        fake_driver("smembench", "constant", "--device", "cuda", *FEW, *kernel, "--csv", "-", kernels=kernels)
    )
    (row,) = (row for row in records(out) if row["kernel"] == "constantUniform")
    assert (row["compiler"], row["status"], row["verified"]) == (engine, "ok", "true"), row["reason"]


def test_kernels_with_tensor_maps_are_launched_and_without_a_host_form_found_wrong(
    fake_driver: FakeDriver, tmp_path: Path
) -> None:
    """Their maps, more shared memory than unasked, and every argument: the driver refuses nothing."""
    sizes = {
        ("wgmmaClustered", "float8_e4m3"): 144,
        ("wgmma", "tf32"): 144,
        ("wgmmaPacked", "bfloat16"): 145,
    }
    if CAMPAIGN > 1:  # a launch that stores by a map is that of the test above
        sizes |= {("wgmmaClustered", "bfloat16"): 144, ("wgmmaStored", "float8_e4m3"): 144}
    config = tmp_path / "maps.toml"
    config.write_text(
        "samples = 3\nrounds = 1\nprecision = 90.0\nmax_seconds = 1.0\nwarmup = 0.0\n"
        + "".join(
            f"[[sweep]]\nproblem = 'matmul'\ndevice = 'cuda'\nkernel = '{kernel}'\ndtype = '{dtype}'\n"
            f"m = 100\nn = {n}\nb_layout = 'columns'\n"
            for (kernel, dtype), n in sizes.items()
        )
    )
    ended(fake_driver("smembench", "run", config, "--output", tmp_path), 1)
    (table,) = tmp_path.glob("*/cases.csv")
    result = records(table.read_text())
    assert {(row["kernel"], row["dtype"]): int(row["n"]) for row in result} == sizes
    for row in result:
        assert (row["status"], row["b_layout"]) == ("wrong_result", "columns")
        assert row["reason"] == f"{100 * int(row['n'])} entries are NaN or infinite"


def test_a_matrix_that_a_kernel_does_not_copy_is_refused(fake_driver: FakeDriver) -> None:
    odd = ("--kernel", "wgmma", "--dtype", "bfloat16", "--n", "100")
    _, err = ended(fake_driver("smembench", "matmul", "--device", "cuda", *FEW, *odd), 2)
    assert "wgmma copies tiles by the TMA, which needs rows of a multiple of 8 elements, not 100" in err


def test_each_of_two_gpus_gets_its_own_work(fake_driver: FakeDriver, kernels: Path) -> None:
    command = ["smembench", "transpose", "--n", "40", "--block", "16x16", *FEW, "--kernel", "naiveGmem", "--csv", "-"]
    out, _ = ended(fake_driver(*command, "--device", "cuda:0,cuda:1", kernels=kernels, devices=2))
    assert {(row["device"], row["status"]) for row in records(out)} == {("cuda:0", "ok"), ("cuda:1", "ok")}


def test_the_gpu_tests_that_ask_for_no_speed_pass(fake_driver: FakeDriver, kernels: Path) -> None:
    chosen = "registers or kind_of_memory or (timed_copies and (1- or 1000-))"
    chosen += " or (own_coefficients and float32 and Uniform)"
    tests = ["tests/gpu/test_gpu.py", "tests/gpu/test_gpu_concepts.py"]
    out, _ = ended(fake_driver("pytest", "-q", "-p", "no:cacheprovider", *tests, "-k", chosen, kernels=kernels))
    assert "skipped" not in out


def test_doctor_describes_the_fake_driver(fake_driver: FakeDriver) -> None:
    out, _ = ended(fake_driver("smembench", "doctor"))
    assert "fake driver, no GPU, compute capability 9.0, 1 GiB" in out
    assert "driver: fake, CUDA" in out
    assert "clocks, temperature and power are recorded" in out
    for library in ("NVRTC", "NVVM", "nvJitLink"):
        assert f"ok   {library}: " in out
    assert "sudo nvidia-smi -i 0 --lock-gpu-clocks=MHZ" in out
    assert "--reset-gpu-clocks undoes it" in out


# Runs the child, and counts what is predicted, but for the first request of each part.
NCU = f"""#!{sys.executable}
import subprocess, sys
from warp_requests.requests import drawn, part
subprocess.run(sys.argv[sys.argv.index("off") + 1 :], check=True)
seed, count, _, what, _ = sys.argv[-5:]
print('"Metric Name","Metric Value"')
for number, request in enumerate(part(drawn(int(seed), int(count), (9, 0)), what)):
    for metric in sys.argv[sys.argv.index("--metrics") + 1].split(","):
        print(f'"{{metric}}","{{request.predicted + (number == 0)}}"')
"""


def test_random_requests_are_counted(fake_driver: FakeDriver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    path = tmp_path / "requests.csv"
    _, err = ended(fake_driver("warp_requests", path), 1)
    assert err.splitlines()[-1].startswith("warp_requests: ncu (Nsight Compute) is not on the PATH")
    (tmp_path / "ncu").write_text(NCU)
    (tmp_path / "ncu").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    out, err = ended(fake_driver("warp_requests", "--requests", 40, "--seed", 7, path), 1)
    assert err.startswith("random requests of --seed 7 under ncu\n0 of 94: loads and stores of shared memory\n")
    assert "random requests of one warp, seed 7" in out
    assert "load, 4 bytes, permuted: " in out
    result = records(path.read_text())
    lanes = [tuple(row[f"lane{lane}"] for lane in range(32)) for row in result]
    assert lanes == [tuple("" if a is None else str(a) for a in item.addresses) for item in drawn(7, 40, (9, 0))]
    assert sum(row["kind"] in ("load", "store") and int(row["width_bytes"]) > 2 for row in result) == 42


@pytest.mark.parametrize(
    ("settings", "reasons"),
    [
        ({"throttled_from": 2, "throttled_to": 2}, "none"),  # once, after the first batch of samples
        ({}, "hw_slowdown"),
    ],
)
def test_samples_under_throttling_are_taken_again_or_the_row_says_so(
    fake_driver: FakeDriver, settings: dict[str, int], reasons: str
) -> None:
    out, _ = ended(fake_driver(*MEMCPY, "--n", "40", throttled=0x8, **settings))
    (row,) = records(out)
    assert (row["status"], row["throttle_reasons"]) == ("ok", reasons)
    assert int(row["samples"]) >= 3
    assert int(row["samples_discarded"]) > 0


def test_a_bandwidth_over_the_peak_is_a_failure(fake_driver: FakeDriver) -> None:
    out, _ = ended(fake_driver(*MEMCPY, "--n", "1000", memory_mhz=1), 1)
    (row,) = records(out)
    assert row["status"] == "failed"
    assert "no launch can exceed" in row["reason"]
    assert row["elapsed_ms"] == row["effective_gb_s"] == ""
