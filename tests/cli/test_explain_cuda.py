"""``smembench explain kernel.cu:name`` and ``kernel.ptx:name``."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from shutil import which
from typing import Any

import numpy as np
import pytest

from conftest import Program
from smembench import UsageError, conflicts, explain_function
from smembench.toolchains.compile_errors import check_macros
from smembench.views.explain import sentences

pytest.importorskip("cuda.bindings.nvrtc")

NVCC = pytest.mark.skipif(which("nvcc") is None, reason="nvcc is not installed")
SOURCE = """
template <typename T, int SIDE> __global__ void transpose(T *out, const T *in, int n) {
    __shared__ T tile[SIDE][SIDE + PAD];
    int x = blockIdx.x * SIDE + threadIdx.x, y = blockIdx.y * SIDE + threadIdx.y;
    tile[threadIdx.y][threadIdx.x] = in[y * n + x];
    __syncthreads();
    out[(blockIdx.x * SIDE + threadIdx.y) * n + blockIdx.y * SIDE + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}
__global__ void scale(float *x, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= a;
}
"""
LAUNCH = ["--grid", "32x32", "--block", "32x32", "--arg", "float32[1024,1024]", "--arg", "float32[1024,1024]"]

SCALED = ["--grid", "1", "--block", "1", "--arg", "float32[8]", "--arg", "1.5", "--arg", "8", "-D", "PAD=0"]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "mine.cu"
    path.write_text(SOURCE)
    return path


@pytest.mark.parametrize(("pad", "wavefronts"), [(0, 32), (1, 1)])
def test_a_template_is_explained_with_its_names_and_lines(
    program: Program, source: Path, pad: int, wavefronts: float
) -> None:
    ran = program("explain", f"{source}:transpose<float,32>", *LAUNCH, "--arg", "1024", "-D", f"PAD={pad}", "--json")
    assert ran.returncode == 0, ran.stderr
    result = json.loads(ran.stdout)
    (load,) = (item for item in result["shared"] if item["kind"] == "load")
    assert (load["array"], load["line"], load["wavefronts_per_request"]) == ("tile", 7, wavefronts)
    assert result["unmatched_widths"] == []
    assert {item["array"] for item in result["global"]} == {"in", "out"}


def test_ptx_is_explained_as_its_source(program: Program, source: Path, tmp_path: Path) -> None:
    from smembench.toolchains.nvrtc import compile_source

    made = compile_source(SOURCE, source, "9.0", ["scale"], ["-DPAD=0"])
    (tmp_path / "mine.ptx").write_text(made.ptx)
    launch = ["--grid", "8", "--block", "256", "--arg", "float32[2000]", "--arg", "1.5", "--arg", "2000", "--json"]
    by_source = program("explain", f"{source}:scale", *launch, "-DPAD=0")
    by_ptx = program("explain", f"{tmp_path / 'mine.ptx'}:scale", *launch)
    assert by_ptx.returncode == by_source.returncode == 0, by_ptx.stderr
    one, other = (json.loads(ran.stdout)["global"] for ran in (by_source, by_ptx))
    assert [item["sectors_per_request"] for item in one] == [item["sectors_per_request"] for item in other]


@pytest.mark.parametrize(
    ("target", "arguments", "words"),
    [
        ("{path}", ["--grid", "1", "--block", "1"], "name a kernel in it, {path}:NAME; it has scale, transpose"),
        ("{path}:scales", ["--grid", "1", "--block", "1"], "has no kernel 'scales'; it has scale, transpose"),
        ("{path}:scale", [], "give --grid and --block"),
        ("{path}:scale", ["--grid", "1", "--block", "1", "-D", "PAD=0"], "takes (x, a, n), not 0 arguments"),
        ("{path}:transpose<float,PAD>", ["--grid", "1", "--block", "1"], 'identifier "PAD" is undefined'),
        ("{path}:scale", ["--grid", "1", "--block", "2000"], "block 2000: has 2000 along x"),
        ("{path}:scale", ["--grid", "9999999999999", "--block", "1"], "has 9999999999999 along x; a GPU takes at most"),
        (
            "{path}:scale",
            [*SCALED[:-3], "99999999999", "-DPAD=0"],
            "in 4 bytes; give -2147483648 to 4294967295",
        ),
        ("missing.cu:scale", ["--grid", "1", "--block", "1"], "missing.cu: No such file"),
        ("{path}.cubin:scale", ["--grid", "1", "--block", "1"], "mine.cu.cubin: is of a kind that is not read; give "),
        ("{path}.ptx:scale", ["--grid", "1", "--block", "1"], "mine.cu.ptx: this is no PTX: it has no .version and"),
        ("{path}.cu:scale", ["--grid", "1", "--block", "1"], "mine.cu.cu: is no text; give kernel.cu:name or kernel"),
        ("{path}:scale", ["--grid", "1", "--block", "1", "--measure"], "--measure: goes with the package's kernels"),
        ("{path}:scale", [*SCALED, "--best-pad"], "--best-pad: scale in mine.cu: has no loads or stores of shared"),
    ],
)
def test_mistakes_of_the_command_are_one_line(
    program: Program, source: Path, target: str, arguments: list[str], words: str
) -> None:
    for suffix, content in ((".cubin", b"\x7fELF\0"), (".ptx", b"no PTX"), (".cu", b"\x7fELF\0")):
        Path(f"{source}{suffix}").write_bytes(content)
    ran = program("explain", target.format(path=source), *arguments)
    assert (ran.returncode, ran.stdout) == (2, "")
    (line,) = ran.stderr.splitlines()
    assert words.format(path=source) in line


def test_a_structure_and_a_call_of_printf(program: Program, tmp_path: Path) -> None:
    path = tmp_path / "part.cu"
    path.write_text("""struct Part { int n; float value; };
__device__ __noinline__ float half(const float *in, int i) { return in[i] / 2; }
__global__ void set(float *out, Part part) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i == 3) printf("%d\\n", i);
    if (i < part.n) out[i] = part.value;
}
__global__ void halved(float *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = half(out, i);
}
__device__ __noinline__ int steps(int n) { return n < 2 ? n : steps(n - 1) + steps(n - 2); }
__global__ void stepped(float *out) { out[threadIdx.x] = steps(threadIdx.x); }
""")
    np.save(tmp_path / "part.npy", np.array([(200, 1.5)], [("n", "i4"), ("value", "f4")]).view(np.uint8))
    launch = ["--grid", "4", "--block", "64", "--arg", "float32[256]"]
    ran = program("explain", f"{path}:set", *launch, "--arg", tmp_path / "part.npy", "--json")
    assert ran.returncode == 0, ran.stderr
    (store,) = json.loads(ran.stdout)["global"]
    assert (store["line"], store["requests"], store["sectors_per_request"]) == (6, 7, (6 * 4 + 1) / 7)
    number = program("explain", f"{path}:set", *launch, "--arg", "200")
    assert "part: is a structure; give its 8 bytes as a .npy file" in number.stderr
    called = program("explain", f"{path}:halved", *launch, "--json")
    assert called.returncode == 0, called.stderr
    accesses = json.loads(called.stdout)["global"]
    assert [(item["line"], item["kind"], item["requests"]) for item in accesses] == [(10, "load", 8), (10, "store", 8)]
    refused = program("explain", f"{path}:stepped", *launch)
    assert refused.returncode == 2
    assert "stepped, line 13: the call" in refused.stderr


POINTERS = """struct Part { float *out; int n; float value; };
__global__ void set(float *out, Part part) {
    if (threadIdx.x < part.n) part.out[threadIdx.x] = part.value;
    out[threadIdx.x + part.n] = 1;
}
struct Both { float *of[2]; };
__global__ void chosen(float *out, Both both) {
    out[threadIdx.x] = 1;
    both.of[threadIdx.x % 2][threadIdx.x] = 1;
}
"""


@pytest.mark.parametrize(
    ("kernel", "elements", "lines", "mistakes"),
    [("set", 72, {3: "part"}, []), ("set", 71, {3: "part"}, [4]), ("chosen", 64, {9: "both"}, [])],
)
@pytest.mark.parametrize("address", [0, 0x7F0000000230])
def test_pointers_in_a_structure_are_not_followed(
    tmp_path: Path, kernel: str, elements: int, lines: dict[int, str], mistakes: list[int], address: int
) -> None:
    """Whatever their value, for there is no array at it; what a structure's numbers lead to is."""
    (tmp_path / "pointers.cu").write_text(POINTERS)
    part = np.array([(address, 8, 1.5)], [("out", "u8"), ("n", "i4"), ("value", "f4")]).view(np.uint8)
    both = np.full(2, address, "u8").view(np.uint8)
    arguments = (f"float32[{elements}]", part if kernel == "set" else both)
    launch: dict[str, Any] = {"grid": 1, "block": 64, "args": arguments}
    result = explain_function(f"{tmp_path}/pointers.cu:{kernel}", **launch)
    followed = {item.line: item.source for item in result.trace.unfollowed}
    assert followed == {line: f"a pointer in the structure {name}" for line, name in lines.items()}
    assert [item.line for item in result.trace.mistakes] == mistakes
    assert {access.site.array for access in result.memory} == {"out"}


def test_a_cluster_is_given_or_the_kernels_own(program: Program, tmp_path: Path) -> None:
    path = tmp_path / "ring.cu"
    path.write_text("""__global__ void SIZE ring(float *out) {
    __shared__ float mine[64];
    mine[threadIdx.x] = threadIdx.x;
    __cluster_barrier_arrive();
    __cluster_barrier_wait();
    unsigned other = (__clusterRelativeBlockRank() + 1) % __clusterSizeInBlocks();
    out[blockIdx.x * 64 + threadIdx.x] = ((float *)__cluster_map_shared_rank(mine, other))[threadIdx.x];
    __cluster_barrier_arrive();
    __cluster_barrier_wait();
}
""")
    launch = ["--grid", "8", "--block", "64", "--arg", "float32[512]", "--json"]
    given = program("explain", f"{path}:ring", *launch, "-D", "SIZE=", "--cluster", "2")
    own = program("explain", f"{path}:ring", *launch, "-D", "SIZE=__cluster_dims__(4)")
    for ran in (given, own):
        assert ran.returncode == 0, ran.stderr
        result = json.loads(ran.stdout)
        (load,), (store,) = result["distributed"], result["shared"]
        assert (load["line"], load["kind"], load["bytes"], load["requests"]) == (7, "load", 8 * 64 * 4, 16)
        assert (store["kind"], store["wavefronts_per_request"]) == ("store", 1)
    wrong = program("explain", f"{path}:ring", *launch, "-D", "SIZE=__cluster_dims__(4)", "--cluster", "2")
    assert (wrong.returncode, "cluster 2: ring is compiled for clusters of 4x1x1" in wrong.stderr) == (2, True)


def test_a_macro_that_the_file_defines_again_is_refused(program: Program, tmp_path: Path) -> None:
    """What -D gives would silently be the file's own."""
    path = tmp_path / "own.cu"
    define, kernel = "#define WIDTH 32\n", "__global__ void scale(float *x) { x[threadIdx.x] *= WIDTH; }\n"
    path.write_text(define + kernel)
    launch = [f"{path}:scale", "--grid", "1", "--block", "32", "--arg", "float32[32]"]
    ran = program("explain", *launch, "-D", "WIDTH=64")
    (line,) = ran.stderr.splitlines()
    assert ran.returncode == 2
    assert line.endswith("own.cu, line 1: defines WIDTH again, which makes -DWIDTH=64 void; put #ifndef WIDTH before "
                         "this line and #endif after it")  # fmt: skip
    assert program("explain", *launch, "-D", "WIDTH=32").returncode == 0  # the same value
    path.write_text(f"#ifndef WIDTH\n{define}#endif\n{kernel}")
    assert program("explain", *launch, "-D", "WIDTH=64").returncode == 0


def test_a_macro_defined_again_in_the_log_of_nvcc() -> None:
    log = '/tmp/own.cu:3:9: warning: "WIDTH" redefined\n/tmp/own.cu(9): warning #177-D: variable "DEPTH" was declared'
    check_macros(log, Path("/tmp/own.cu"), ["-DDEPTH=4", "-Iheaders"])
    with pytest.raises(UsageError, match=r"^/tmp/own\.cu, line 3: defines WIDTH again, which makes -DWIDTH void"):
        check_macros(log, Path("/tmp/own.cu"), ["-DWIDTH"])


def test_python_explains_a_file_too(source: Path) -> None:
    launch: dict[str, Any] = {
        "grid": (32, 32),
        "block": (32, 32),
        "args": ("float32[1024,1024]", "float32[1024,1024]", 1024),
    }
    kernel = f"{source}:transpose<float,32>"
    assert conflicts(kernel, **launch, options=["-DPAD=1"]) == 1
    assert conflicts(kernel, **launch, options=["-DPAD=0"]) == 32
    with pytest.raises(UsageError, match="-DPAD=0: goes with a kernel in"):
        conflicts(lambda x: x, **launch, options=["-DPAD=0"])


HOST = """#include <cstdio>
#include <vector>
namespace mine {
template <typename T, int SIDE> __global__ void turn(T *out, const T *in) {
    __shared__ T tile[SIDE][SIDE];
    tile[threadIdx.y][threadIdx.x] = in[threadIdx.y * SIDE + threadIdx.x];
    __syncthreads();
    out[threadIdx.y * SIDE + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}
}
namespace { __global__ void fill(float *x) { x[threadIdx.x * STEP] = 1; } }
int main() {
    std::vector<float> x(256);
    mine::turn<double, 16><<<1, dim3(16, 16)>>>((double *)nullptr, (double *)nullptr);
    fill<<<1, 32>>>(nullptr);
    std::printf("%zu", x.size());
}
"""


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    path = tmp_path / "whole.cu"
    path.write_text(HOST)
    return path


def arrays(*shapes: str) -> list[str]:
    return [word for shape in shapes for word in ("--arg", shape)]


@NVCC
@pytest.mark.parametrize(("types", "dtype", "wavefronts"), [("float,16", "float32", 8), ("double, 16", "float64", 32)])
def test_nvcc_takes_host_code_and_the_template_that_is_asked_for(
    program: Program, whole: Path, types: str, dtype: str, wavefronts: float
) -> None:
    launch = ["--grid", 1, "--block", "16x16", *arrays(f"{dtype}[16,16]", f"{dtype}[16,16]")]
    ran = program("explain", f"{whole}:mine::turn<{types}>", *launch, "-DSTEP=1", "--json")
    assert ran.returncode == 0, ran.stderr
    result = json.loads(ran.stdout)
    (load,) = (item for item in result["shared"] if item["kind"] == "load")
    assert (load["line"], load["wavefronts_per_request"]) == (8, wavefronts)
    assert result["unmatched_widths"] == []
    assert {item["array"] for item in result["global"]} == {"in", "out"}


@NVCC
def test_nvcc_gets_the_options_and_finds_headers(program: Program, whole: Path, tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "step.h").write_text("#define STEP 8\nstatic_assert(__cplusplus == 202002L);\n")
    whole.write_text("#include <step.h>\n" + HOST)
    options = ["-I", str(tmp_path / "own"), "--std", "c++20", "--json"]
    ran = program("explain", f"{whole}:fill", "--grid", 1, "--block", 32, *arrays("float32[256]"), *options)
    assert ran.returncode == 0, ran.stderr
    (store,) = json.loads(ran.stdout)["global"]
    assert (store["line"], store["sectors_per_request"]) == (12, 32)


@NVCC
@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("fill", [], 'whole.cu, line 11: identifier "STEP" is undefined'),
        ("turn<float,8>", ["-DSTEP=1"], 'whole.cu: turn<float,8>: identifier "turn" is undefined; give a kernel'),
        ("turns", ["-DSTEP=1"], "whole.cu: has no kernel 'turns'; it has fill, turn"),
        (
            "main",
            ["-DSTEP=1"],
            "is undefined in device code; give a kernel and types with their namespaces; it has fill, turn",
        ),
        ("mine::turn", ["-DSTEP=1"], "give the template's arguments, as in tile<float,32>; it has fill, turn"),
        ("mine::turn<double,512>", ["-DSTEP=1"], "uses too much shared data"),
    ],
)
def test_what_nvcc_does_not_compile_is_one_line(
    program: Program, whole: Path, name: str, options: list[str], words: str
) -> None:
    ran = program("explain", f"{whole}:{name}", "--grid", 1, "--block", 32, *options)
    assert (ran.returncode, ran.stdout) == (2, "")
    (line,) = ran.stderr.splitlines()
    assert words in line


@pytest.mark.parametrize(("begin", "words"), [(0, "line 1: there is no cstdio here"), (2, "line 10: is host code")])
def test_without_nvcc_host_code_is_to_be_cut_out(
    program: Program, whole: Path, tmp_path: Path, begin: int, words: str
) -> None:
    whole.write_text("\n".join(HOST.splitlines()[begin:]).replace("std::vector<float> x(256);", "int x[9];"))
    ran = program("explain", f"{whole}:fill", "--grid", 1, "--block", 32, "-DSTEP=1", PATH=tmp_path)
    assert ran.returncode == 2
    (line,) = ran.stderr.splitlines()
    assert words in line
    assert "install nvcc, which takes them" in line


def test_where_nvcc_does_not_work_nvrtc_compiles(program: Program, source: Path, tmp_path: Path) -> None:
    nvcc = tmp_path / "nvcc"
    nvcc.write_text("#!/bin/sh\necho 'nvcc fatal : Failed to preprocess host compiler properties.' >&2\nexit 1\n")
    nvcc.chmod(0o755)
    launch = ["--grid", 1, "--block", 32, *arrays("float32[32]"), "--arg", 1, "--arg", 32]
    ran = program("explain", f"{source}:scale", *launch, "-DPAD=0", PATH=tmp_path)
    assert ran.returncode == 0, ran.stderr


def test_a_kernel_in_a_file_that_is_included_has_its_lines(program: Program, tmp_path: Path) -> None:
    (tmp_path / "kernels.cuh").write_text("\n\n__global__ void fill(float *x) {\n    x[threadIdx.x] = 1;\n}\n")
    (tmp_path / "main.cu").write_text('#include "kernels.cuh"\n__global__ void other() {}\n')
    launch = ["--grid", 1, "--block", 32, *arrays("float32[32]")]
    for path in (None, tmp_path):  # by nvcc, if it is there, and by NVRTC
        variables = {} if path is None else {"PATH": path}
        ran = program("explain", f"{tmp_path}/main.cu:fill", *launch, "--json", **variables)
        assert ran.returncode == 0, ran.stderr
        result = json.loads(ran.stdout)
        assert (result["source_file"], result["global"][0]["line"]) == (str(tmp_path / "kernels.cuh"), 4)
        assert result["global"][0]["array"] == "x"


def test_a_name_needs_no_space_before_it_and_a_comment_may_follow(program: Program, tmp_path: Path) -> None:
    path = tmp_path / "tight.cu"
    path.write_text("__global__ void fill(float*x, float *y /* unused */) { x[threadIdx.x] = 1; }")
    ran = program("explain", f"{path}:fill", "--grid", 1, "--block", 32, *arrays("float32[32]", "float32[1]"), "--json")
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["global"][0]["array"] == "x"


@pytest.mark.parametrize("path", [None, "/nowhere"])
def test_comments_of_any_encoding_and_long_lines(program: Program, tmp_path: Path, path: str | None) -> None:
    """By nvcc, if it is there, and by NVRTC."""
    text = f"// längst\n__global__ void fill(float *x) {{\n x[threadIdx.x] = 0{'+1.f' * 9000}; // größer\n}}\n"
    (tmp_path / "old.cu").write_text(text, encoding="latin-1")
    variables = {} if path is None else {"PATH": path}
    ran = program("explain", f"{tmp_path}/old.cu:fill", "--grid", 1, "--block", 32, *arrays("float32[32]"), **variables)
    assert ran.returncode == 0, ran.stderr
    assert "3     x[threadIdx.x] = 0+1.f" in ran.stdout
    assert 50 < ran.stdout.count("+1.f") < 100


DYNAMIC = """extern __shared__ float dyn[];
__global__ void pairs(float *x) {
    for (int i = threadIdx.x; i < 128; i += 32) dyn[i] = i;
    __syncthreads();
    x[threadIdx.x] = dyn[2 * threadIdx.x];
}
__global__ void fixed(float *x) {
    __shared__ float tile[4096];
    tile[threadIdx.x] = threadIdx.x;
    __syncwarp();
    x[threadIdx.x] = tile[31 - threadIdx.x];
}
__global__ void bare(float *x) { x[threadIdx.x] = 1; }
"""


@pytest.mark.parametrize(
    ("kernel", "shared_bytes", "code", "words"),
    [
        ("pairs", 0, 1, ["has 0 bytes; give its dynamic part by --shared-bytes", "number: bank of words in conflict"]),
        ("pairs", 256, 1, ["stores 4 bytes at byte 256 of shared memory, which has 256 bytes"]),
        ("pairs", 512, 0, ["512 bytes of shared memory", "32 blocks"]),
        ("fixed", 0, 0, ["16384 bytes of shared memory", "13 blocks or 13 of 64 warps"]),
        ("fixed", 50000, 0, ["66384 bytes of shared memory", "3 blocks or 3 of 64 warps"]),
        ("fixed", 216064, 0, ["232448 bytes of shared memory", "1 block or 1 of 64 warps"]),
        ("bare", 50000, 0, ["50000 bytes of shared memory", "4 blocks or 4 of 64 warps"]),
        ("fixed", 216065, 2, ["a block has 0 to 232448 bytes of shared memory on 9.0, not 232449"]),
        ("fixed", 10**12, 2, ["not 1000000016384"]),
    ],
)
def test_dynamic_shared_memory_counts_whether_or_not_it_is_accessed(
    program: Program, tmp_path: Path, kernel: str, shared_bytes: int, code: int, words: list[str]
) -> None:
    (tmp_path / "dynamic.cu").write_text(DYNAMIC)
    launch = ["--grid", 1, "--block", 32, *arrays("float32[32]"), "--shared-bytes", shared_bytes]
    ran = program("explain", f"{tmp_path}/dynamic.cu:{kernel}", *launch)
    assert ran.returncode == code, ran.stderr
    text = " ".join((ran.stdout or ran.stderr).split())
    assert [word for word in words if word not in text] == []
    assert "TMA" not in text


BOUNDED = """__global__ void __launch_bounds__(128) most(float *x) { x[threadIdx.x] = 1; }
"""
EXACT = """.version 8.0
.target sm_90
.address_size 64
.visible .entry exact() .reqntid 32, 4 { ret; }
"""


def test_a_block_that_a_kernel_is_not_compiled_for_is_refused(program: Program, tmp_path: Path) -> None:
    (tmp_path / "mine.cu").write_text(BOUNDED)
    (tmp_path / "mine.ptx").write_text(EXACT)
    most = ["explain", f"{tmp_path}/mine.cu:most", "--grid", 1, *arrays("float32[1024]")]
    assert program(*most, "--block", "32x4").returncode == 0
    ran = program(*most, "--block", 256)
    assert ran.returncode == 2
    assert "block 256: most is compiled for at most 128 threads (__launch_bounds__), not 256" in ran.stderr
    exact = ["explain", f"{tmp_path}/mine.ptx:exact", "--grid", 1]
    assert program(*exact, "--block", "32x4").returncode == 0
    ran = program(*exact, "--block", 128)
    assert ran.returncode == 2
    assert "block 128: exact is compiled for blocks of 32x4x1 (.reqntid)" in ran.stderr


@pytest.mark.parametrize("capability", ["8.0", "8.9", "9.0"])
def test_lines_of_machine_code_are_known_on_every_capability(tmp_path: Path, capability: str) -> None:
    (tmp_path / "mine.cu").write_text("""__global__ void halo(float *out, const float *in, int n) {
    __shared__ float tile[66];
    int i = threadIdx.x;
    if (i >= n) return;
    tile[i + 1] = in[i + 1];
    if (i == 0) tile[0] = in[0];
    if (i == 63) tile[65] = in[65];
    __syncthreads();
    out[i] = tile[i] + tile[i + 2];
}
""")
    args = ("float32[64]", "float32[66]", 64)
    result = explain_function(f"{tmp_path}/mine.cu:halo", grid=1, block=96, args=args, capability=capability)
    assert result.idle == {"store": 2}  # one of two warps in either branch
    assert result.code is not None
    assert {op.line for op in result.code.lined if op.access.space == "shared"} == {5, 6, 7, 9}


def test_each_access_to_constant_memory_has_its_own_sentence(program: Program, tmp_path: Path) -> None:
    (tmp_path / "mine.cu").write_text("""__constant__ float weights[32];
__global__ void weigh(float *x, int k) {
    float sum = weights[k];
    sum += weights[threadIdx.x / 4];
    sum += weights[k + 1];
    x[threadIdx.x] = sum;
}
""")
    launch = ["--grid", 1, "--block", 32, *arrays("float32[32]"), "--arg", 3]
    ran = program("explain", f"{tmp_path}/mine.cu:weigh", *launch)
    assert ran.returncode == 0, ran.stderr
    text = " ".join(ran.stdout.split())
    assert "Each request to constant memory in lines 3 and 5 is a broadcast." in text
    assert "Each request to constant memory in line 4 is split into 8." in text


def test_kernels_of_one_name_in_ptx_are_told_apart(program: Program, tmp_path: Path) -> None:
    from smembench.toolchains.nvrtc import compile_source

    source = "template <typename T> __global__ void fill(T *x) { x[threadIdx.x] = 1; }"
    made = compile_source(source, tmp_path / "mine.cu", "9.0", ["fill<float>", "fill<double>"])
    (tmp_path / "mine.ptx").write_text(made.ptx)
    launch = ["--grid", 1, "--block", 32, *arrays("float64[32]")]
    ran = program("explain", f"{tmp_path}/mine.ptx:fill", *launch)
    assert ran.returncode == 2
    assert "mine.ptx: has 2 kernels fill: give one of _Z4fillI" in ran.stderr
    ran = program("explain", f"{tmp_path}/mine.ptx:{made.names['fill<double>']}", *launch, "--json")
    assert json.loads(ran.stdout)["global"][0]["sectors_per_request"] == 8


@pytest.mark.parametrize("path", [None, "/nowhere"])
def test_instructions_of_one_architecture_are_compiled_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str | None
) -> None:
    """By nvcc, if it is there, and by NVRTC."""
    from smembench.toolchains.nvcc import compile_file

    if path is not None:
        monkeypatch.setenv("PATH", path)
    source = tmp_path / "fenced.cu"
    source.write_text('__global__ void fenced() { asm volatile("FENCE;"); }')
    with pytest.raises(UsageError, match=r"fenced.cu: ptxas: "):
        compile_file(source, "fenced", "9.0")
    source.write_text(source.read_text().replace("FENCE", "wgmma.fence.sync.aligned"))
    made = compile_file(source, "fenced", "9.0")
    assert ".target sm_90a" in made.ptx
    assert made.code


def test_kernels_are_listed_whatever_stands_before_their_names(program: Program, tmp_path: Path) -> None:
    path = tmp_path / "many.cu"
    path.write_text("""__global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(32 * (2 + 1), 4) one(float *x) {}
template <int N> static __global__ inline void two(int) {}
__global__ __launch_bounds__(32)
void
three(int) {}
extern "C" __global__ void four () {}
""")
    ran = program("explain", f"{path}:five", "--grid", 1, "--block", 32)
    assert "has no kernel 'five'; it has four, one, three, two" in ran.stderr
    ran = program("explain", f"{path}:four", "--grid", 1, "--block", 32)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("task", ["--best-pad", "--best-swizzle"])
def test_the_best_layouts_of_a_kernel_in_a_file(program: Program, source: Path, task: str) -> None:
    target = f"{source}:transpose<float,32>"
    ran = program("explain", target, *LAUNCH, "--arg", "1024", "-D", "PAD=0", task, "--json")
    assert ran.returncode == 0, ran.stderr
    result = json.loads(ran.stdout)
    if task == "--best-pad":
        assert result["best"] == {"tile": 1}
        assert [(item["pad"], item["load_conflict"], item["shared_bytes"]) for item in result["pads"]] == [
            (0, 32, 4096),
            (1, 1, 4224),
        ]
    else:
        swizzle = next(item for item in result["layouts"] if item["layout"] == "swizzle")
        assert (swizzle["load_conflict"], swizzle["element"]) == (1, "tile[r * 32 + (c ^ r)]")


def test_the_rows_of_a_flat_array_may_be_given(program: Program, source: Path) -> None:
    target = f"{source}:transpose<float,32>"
    launch = [*LAUNCH, "--arg", "1024", "-D", "PAD=0", "--best-pad", "--json"]
    rows = json.loads(program("explain", target, *launch, "--row", "64").stdout)
    assert rows["best"] == {"tile": None}
    assert {item["row_elements"] for item in rows["pads"]} == {64}
    assert min(item["load_conflict"] for item in rows["pads"]) == 2


def test_an_explanation_ends_with_the_cure_and_with_the_command_that_times_the_same_launch(
    program: Program, source: Path
) -> None:
    launch = [*LAUNCH, "--arg", "1024"]
    ran = program("explain", f"{source}:transpose<float,32>", *launch, "-D", "PAD=0")
    *lines, last = ran.stdout.splitlines()
    text = " ".join(" ".join(lines).split())
    assert text.endswith("makes the loads in line 7 free of conflicts: 32 -> 1 wavefronts per request.")
    assert "Cure: a pad of 4 bytes per 128 bytes of tile" in text
    assert max(map(len, lines)) <= 80
    command, *arguments = shlex.split(last.removeprefix("next: "))
    assert (command, arguments[0]) == ("smembench", "time")
    again = program(*arguments)
    assert again.returncode == 4
    assert text[: text.index("line source")].strip() in " ".join(again.stdout.split())
    assert "Cure" not in program("explain", f"{source}:transpose<float,32>", *launch, "-D", "PAD=1").stdout


def test_the_roofs_of_a_gpu_by_its_data_sheet(program: Program, source: Path) -> None:
    launch = [*LAUNCH, "--arg", "1024", "-D", "PAD=1", "--gpu", "RTX 4090"]
    ran = program("explain", f"{source}:transpose<float,32>", *launch)
    text = " ".join(ran.stdout.split())
    assert "Roofs of NVIDIA GeForce RTX 4090" in text
    assert "A launch takes at least 0.00832 ms, by the roof of memory." in text  # 8 MiB at 1008 GB/s
    assert "Occupancy 67 %: 1 block or 32 of 48 warps" in text  # of compute capability 8.9
    result = json.loads(program("explain", f"{source}:transpose<float,32>", *launch, "--cc", "9.0", "--json").stdout)
    assert (result["device"], result["occupancy"]["warps_per_sm"]) == ("NVIDIA GeForce RTX 4090", 64)
    assert [roof["name"] for roof in result["roofs"]] == ["memory", "L1 and shared memory"]


def test_lines_are_those_of_the_file_as_it_is_now(tmp_path: Path) -> None:
    """Of one in another encoding than UTF-8, too, after which it was saved in UTF-8."""
    path = tmp_path / "mine.cu"
    for before, value in ((b"// caf\xe9\n", 1), (b"//\n//\n", 22), (b"", 333)):
        path.write_bytes(before + b"__global__ void k(float *x) { x[threadIdx.x] = %d; }\n" % value)
        explained = explain_function(f"{path}:k", grid=1, block=32, args=["float32[32]"])
        assert f"x[threadIdx.x] = {value};" in repr(explained)


def test_atomics_that_the_compiler_adds_up_in_a_warp_are_one(tmp_path: Path) -> None:
    """With the vote of the first; of numbers in float32, and of those that are exchanged, each lane makes its own."""
    path = tmp_path / "mine.cu"
    path.write_text("""__global__ void add(int *ones, int *all, float *sums,
        int *last, int *bins, const int *a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    atomicAdd(ones, 1);
    atomicAdd(all, a[i]);
    atomicAdd(sums, (float)i);
    atomicExch(last, i);
    atomicMax(&bins[i % 4], i);
}
""")
    args = ["int32[1]", "int32[1]", "float32[1]", "int32[1]", "int32[4]", "int32[1000]", 1000]
    explained = explain_function(f"{path}:add", grid=4, block=256, args=args)
    made = {one.array: (one.accesses, one.together) for one in explained.traffic if one.kind == "atomic"}
    each = (1000, 32)
    assert made == {"ones": (32, 1), "all": (32, 1), "sums": each, "last": each, "bins": (1000, 8)}
    text = " ".join(sentences(explained))
    assert "Merged by the compiler: atomics of a request on one element are one (ones, line 5)." in text
    assert "Every global load and store is fully coalesced." in text


def test_a_share_that_rounds_to_all_is_all(tmp_path: Path) -> None:
    """5000 of 5024 bytes: the table has 100 %."""
    path = tmp_path / "mine.cu"
    path.write_text("""__global__ void copy(char *out, const char *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i];
}
""")
    explained = explain_function(f"{path}:copy", grid=20, block=256, args=["int8[5000]", "int8[5000]", 5000])
    assert "Every global access is fully coalesced." in sentences(explained)


def test_a_pad_of_one_byte(tmp_path: Path) -> None:
    path = tmp_path / "mine.cu"
    path.write_text("""__global__ void every(char *out, const char *in, int n) {
    extern __shared__ char some[];
    some[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = some[threadIdx.x * 8 % n];
}
""")
    args = ["int8[256]", "int8[256]", 256]
    explained = explain_function(f"{path}:every", grid=1, block=256, args=args, shared_bytes=512)
    assert "a pad of 1 byte per 32 bytes of some" in repr(explained)


def test_a_load_that_two_branches_share_has_the_line_that_uses_it(tmp_path: Path) -> None:
    """The compiler gives it no line."""
    path = tmp_path / "mine.cu"
    path.write_text("""__global__ void scan(int *b, const int *a) {
    __shared__ int s[2][256];
    int t = threadIdx.x, from = 0;
    s[0][t] = a[t];
    __syncthreads();
    for (int d = 1; d < 256; d *= 2) {
        if (t >= d)
            s[1 - from][t] = s[from][t] + s[from][t - d];
        else
            s[1 - from][t] = s[from][t];
        from = 1 - from;
        __syncthreads();
    }
    b[t] = s[from][t];
}
""")
    explained = explain_function(f"{path}:scan", grid=1, block=256, args=["int32[256]", "int32[256]"])
    assert {item.site.line for item in explained.shared if item.site.kind == "load"} == {8, 14}
