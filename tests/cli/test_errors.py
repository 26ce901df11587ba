"""Bad input: the exit code, and one line on stderr that says what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import DOCUMENTS, NIGHTLY, ROOT, Program
from smembench.store.schema import COLUMNS

SWEEP = '[[sweep]]\nproblem = "transpose"\ndevice = "cpu"\nn = 4\n'
LONG = "n" * 256
FILES = {
    "good.toml": SWEEP,
    "typo.toml": f"sampels = 3\n{SWEEP}",
    "typo-in-sweep.toml": f"{SWEEP}blok = 3\n",
    "other-size.toml": '[[sweep]]\nproblem = "access"\nnx = 4\n',
    "broken.toml": "[[sweep",
    "taken.csv": "a,b\n1,2\n",
    "heading.csv": f"{','.join(COLUMNS)}\n",
    "table.toml": '[sweep]\nproblem = "transpose"\n',
    "empty.toml": "",
    "folder-name.toml": f'name = "a/b"\n{SWEEP}',
    "list.toml": '[[sweep]]\nproblem = ["transpose"]\n',
    "deep.toml": f"x = {'[' * 3000}",
    "digits.toml": f"seed = {'9' * 5000}\n{SWEEP}",
    "long.toml": f"seed = '{'9' * 200_000}'\n{SWEEP}",
}
PLACES = {"documents": DOCUMENTS, "nightly": NIGHTLY, "root": ROOT}

REFUSED = [
    # sizes, names and other values of an axis
    ("transpose --n many", "--n 'many'"),
    ("transpose --n 4 --nx 4", "smembench: n 4 and nx 4: n stands for a square matrix; give either n, or nx and ny"),
    ("transpose --n 1000000000 --device cpu", "memory"),
    ("matmul --n 100 --stride 99", "stride 99 100"),
    ("transpose --pad-width 0", "--pad-width '0'"),
    ("transpose --no-pad --pad-width 2", "--no-pad and --pad-width 2: give one of them"),
    ("transpose --block 32y", "--block '32y'"),
    ("transpose --kernel naiveGem", "--kernel 'naiveGem' naiveGmem?"),
    ("transpose --kernel tiled", "'tiled' transpose"),
    ("matmul --dtype int32", "'int32' element type matmul"),
    ("transpose --cache hot", "--cache 'hot'"),
    ("transpose --device TPU", "--device 'TPU': no such device"),
    ("matmul --kernel tiled --block 8x4 --device cpu", "nothing to measure"),
    ("access --device cpu", "not on cpu"),
    ("access --passes 0", "below the least allowed value 1"),
    ("access --dtype float16", "there are: int32, float32, int64, float64"),
    ("transfer --kernel h2dPinned --device cpu", "kernel 'h2dPinned' runs only on a GPU, not on cpu"),
    ("transfer --bytes 1022", "bytes 1022: not a whole number of int32 elements; use a multiple of 4"),
    ("transfer --kernel addone --bytes 8", "--bytes 8: is for hostCopy, h2dPageable,"),
    ("transfer --kernel h2d", "--kernel 'h2d': no such transfer kernel; did you mean h2dPinned?"),
    ("constant --compiler gcc", "--compiler 'gcc': no such compiler"),
    # sampling, and what Typer refuses
    ("transpose --samples 1", "--samples 1"),
    ("transpose --samples few", "--samples 'few'"),
    ("transpose --warmup 99999999h", "smembench: --warmup 99999999h: give 60 s or less"),
    ("transpose --timeout parsecs", "smembench: --timeout 'parsecs' is not a duration; write 10, 10s, 500ms or 2min"),
    ("run quick --precision 200%", "smembench: --precision 200%: give a number below 100 %"),
    ("run quick --threshold -1", "smembench: --threshold -1: give 0 or more"),
    ("run good.toml --samples 1", "smembench: --samples 1: give 3 or more"),
    ("run good.toml --samples 5 --set samples=1", "good.toml with --set samples=1: samples 1:"),
    ("transpose --max-seconds 0", "--max-seconds"),
    ("transpose --seed -1", "--seed"),
    ("transpose --sise 4", "--sise"),
    ("transpoze", "'transpoze'"),
    # files
    ("run", "CONFIG"),
    ("run none.toml", "none.toml no such file"),
    ("run typo.toml", "typo.toml 'sampels' samples?"),
    ("run typo-in-sweep.toml", "typo-in-sweep.toml 'blok' block?"),
    ("run other-size.toml", "access has no size nx; it has passes, n"),
    ("run broken.toml", "broken.toml TOML"),
    ("run good.toml --set nn=3", "--set 'nn=3'"),
    ("run good.toml --output good.toml/results", "--output good.toml/results"),
    ("transpose --device cpu --csv good.toml/x.csv", "--csv good.toml/x.csv"),
    ("transpose --device cpu --csv taken.csv", "--csv taken.csv --force"),
    ("transpose --device cpu --csv .", "--csv folder"),
    ("show none", "none"),
    ("show taken.csv", "taken.csv column missing"),
    ("show heading.csv", "heading.csv: holds no cases"),
    ("matmul --n 32 --kernel cpu --device cpu --sustained 1h --dry-run", "sustained only on a GPU, not on cpu"),
    ("tune transpose --device cpu --objective energy", "--objective energy: only on a GPU, not on cpu"),
    ("tune transpose --device cpu --objective energy --dry-run", "--objective energy: only on a GPU, not on cpu"),
    ("run --resume nowhere -o else", "--output else: --resume nowhere continues in that folder; give one of them"),
    ("fleet run --resume nowhere -o else", "--output else: --resume nowhere continues in that folder"),
    ("bisect --resume nowhere -o else", "--resume nowhere: --output"),
    ("run --decide nowhere -o else", "--decide nowhere: --output"),
    ("run --resume nowhere --threshold 5", "--threshold 5: belongs to CONFIG or --compare-to"),
    ("run good.toml --max-minutes 3", "--max-minutes 3: belongs to --decide RUN"),
    ("run --resume nowhere", "--resume nowhere: there is no such folder"),
    ("run --resume .", "--resume .: holds no journal.jsonl; name the folder of a run that was cut off"),
    ("run --resume {documents}", "the run is complete; start a new run instead"),
    ("run --resume {root}/results/reference/notes/last", "notes holds no run"),
    ("run good.toml --keep 3 --output good.toml", "--output good.toml: is a file; name a folder"),
    ("report {documents} --svg good.toml", "--svg good.toml: is a file; name a folder"),
    ("report {documents} --png good.toml/x", "--png good.toml/x: cannot be made (Not a directory)"),
    *(
        (f"{command}=", f"smembench: {command.split()[-1]} '': is empty; give a path, such as . for")
        for command in (
            "run good.toml --output",
            "fleet run good.toml --device cpu --output",
            "tune transpose --device cpu --output",
            "report {documents} --svg",
            "bisect --resume",
            "transpose --csv",
        )
    ),
    ("show {nightly} --compilers", "has nothing that --compilers shows"),
    ("show {nightly} --limits --case *memcpy*", "with --case '*memcpy*': has nothing that --limits shows"),
    ("show {nightly} --limits --ladder", "--ladder and --limits: give one of them"),
    ("show {documents} --latex --markdown", "--markdown --latex: give one"),
    ("baseline set .", "is not a run of smembench"),
    ("run table.toml", "table.toml: sweep {'problem': 'transpose'}: write [[sweep]] above problem"),
    ("run empty.toml", "empty.toml: 'sweep' is missing; write [[sweep]]"),
    ("run folder-name.toml", "name 'a/b': give letters, digits and"),
    ("run good.toml --set sweep=3", "no such key"),
    ("run good.toml --set rounds=2.5", "rounds 2.5: give a whole number"),
    ("run good.toml --max-seconds -5", "smembench: --max-seconds -5: give a number above 0"),
    # what is far too long or never ends
    ("run list.toml", "list.toml problem 'transpose'"),
    ("run deep.toml", "deep.toml TOML"),
    ("run digits.toml", "digits.toml"),
    ("run long.toml", "long.toml seed whole number"),
    (f"run good.toml --set n={'[' * 3000}", "n integer"),
    ("run /dev/zero", "/dev/zero"),
    (f"run {LONG}", "name too long"),
    (f"transpose --n {'9' * 5000}", "--n integer"),
    (f"transpose --block {'9' * 5000}x4", "--block"),
    (f"transpose --device cuda:{'9' * 5000}", "--device"),
    ("transpose --sise\x1b[31m", "--sise\\x1b[31m"),
    ("transpose --device cpu --timeout 1e300", "--timeout"),
    (f"transpose --device cpu --csv {LONG}", "--csv name too long"),
    (f"show {LONG}", "name too long"),
    ("show /dev/zero", "/dev/zero"),
    # compare
    ("compare", "give BASE and NEW"),
    ("compare baseline", "baseline: give NEW, too"),
    ("compare last:7", "smembench compare last:7 results/<run>"),
    ("show {root}/results/reference/notes/last", "notes holds no run"),
    ("compare {nightly} nowhere", "nowhere: there is no such file or folder"),
    ("compare {nightly} {root}/README.md", "README.md: not a cases.csv"),
    ("compare {nightly} {documents},", "there is no such file or folder"),
    ("compare {nightly} {root}/results", "results: holds no cases.csv"),
    ("show {root}/results/reference/two-gpus/20261125T013946Z-fleet", "smembench fleet show compares a fleet"),
    ("compare {nightly} {documents},{documents}", "is given twice on one side"),
    ("compare {nightly} {documents} --threshold nan", "--threshold 'nan' is not a percentage"),
    ("compare {nightly} {documents} --across driver", "there are: device"),
    ("compare {nightly} {documents} --fail-on maybe", "'maybe' for '--fail-on': 'maybe' is not one of"),
    ("compare {nightly} {documents} --json --markdown", "--json and --markdown: give one"),
    ("compare {nightly} {documents} --runs 3", "--runs: belongs to --aa"),
    ("compare {nightly} {documents} --anonymous", "--anonymous: belongs to --aa"),
    ("compare {nightly} --aa good.toml", "compares with itself"),
    ("compare --aa good.toml --runs 1", "--runs 1: give 2 or more"),
    ("compare --aa nowhere.toml --runs 2", "nowhere.toml: there is no such file"),
    ("compare --aa {nightly} --runs 2", "--runs: belongs to --aa CONFIG"),
    ("compare --aa {nightly}", "--aa: give 2 or more runs"),
    ("compare --aa {nightly} --fail-on never", "--fail-on: belongs to BASE and NEW"),
    ("compare --aa {nightly} --all", "--all: belongs to BASE and NEW"),
    # history
    ("history .", "holds no run"),
    ("history nowhere", "there is no such folder"),
    ("history {root}/pyproject.toml", "pyproject.toml: is a file; name the folder that holds the runs"),
    ("history {root}/results/reference --since soon", "--since 'soon': write a day as 2026-01-31"),
    ("history {root}/results/reference --since 2030-01-01", "holds no run since 2030-01-01"),
    ("history {root}/results/reference --threshold 0", "--threshold 0: give a percentage above 0"),
    ("history {root}/results/reference --threshold nan", "--threshold 'nan' is not a percentage"),
    # explain
    ("explain transposSmem", "kernel 'transposSmem' transposeSmem? (the most similar of"),
    ("explain memcpy", "memcpy library's"),
    ("explain tiled --n 0", "--n 0"),
    ("explain tiled --block 32x16", "tiled square 32x16"),
    ("explain transposeSmem --block 64x32", "--block 64x32 1024 threads"),
    ("explain sumVectorized --block 128", "--block 128x128 1024 threads 128x1"),
    ("explain sumVectorized --block 48x1", "sumVectorized power of two 32 48x1"),
    ("explain transposeSmemPad --pad-width -1", "--pad-width '-1'"),
    ("explain copyGmem --stride 5000", "--stride 5000 copyGmem"),
    ("explain naive --stride 100", "--stride 100 1024"),
    ("explain naive --run nowhere", "nowhere"),
    ("explain naive --run {documents} --cc 9.0", "--cc --run"),
    ("explain transposeSmem --cc 3.0", "3.0 9.0"),
    ("explain transposeSmem,copyGmem", "2 cases --measure"),
    ("explain wgmma --block 32x32", "--block 32x32: wgmma has no block to choose"),
    ("explain wgmma --cc 8.0", "wgmma: needs compute capability 9.0 8.0; give --cc 9.0"),
    ("explain wgmma --gpu B200", "wgmma: needs compute capability 9.0 10.0; give --cc 9.0"),
    ("explain mmaAsync --cc 7.5", "mmaAsync: needs compute capability 8.0 or later 7.5; give --cc 8.0"),
    ("explain heuristic --dtype float8_e4m3 --b-layout rows", "float8_e4m3 only with B by columns"),
    ("explain naive --best-pad", "--best-pad naive has no loads or stores of shared memory"),
    ("explain naive --best-swizzle", "--best-swizzle naive has no loads or stores of shared memory"),
    ("explain transposeSmem --row 32", "--row 32: goes with --best-pad or --best-swizzle"),
    ("explain transposeSmem --best-swizzle --row 32", "--row 32: shared0 has rows of its own"),
    ("explain transposeSmem --best-pad --row 32", "--row 32: shared0 has rows of its own"),
    ("explain transposeSmem --best-swizzle --best-pad", "--best-pad and --best-swizzle: give one"),
    ("explain transposeSmemPad --best-pad --measure", "--measure and --best-pad"),
    ("transfer --size 4", "--size; give --bytes or --n"),
    ("list --size 4", "No such option: --size"),
    ("explain naive --cc hopper", "'hopper' is not a compute capability; write 9.0 or sm_90"),
    ("explain naive --gpu geforce", "--gpu geforce: is not among v100, t4, a100 rtx4090 h100 --cc"),
    ("explain naive --gpu l4 --measure", "--gpu and --measure: counters are those of the GPU here"),
    ("explain naive --gpu l4 --run {documents}", "--gpu and --run: give one"),
    ("explain", "KERNEL: name a kernel --layout"),
    ("explain naive --layout lane", "naive: --layout replaces a kernel"),
    ("explain --layout lane/2", "--layout 'lane/2' Div //"),
    ("explain --store lane**2", "--store 'lane**2' Pow"),
    ("explain --layout lane --cc 9.0", "--cc: goes with a kernel, not with --layout"),
    ("explain --layout lane --best-pad", "--best-pad: goes with a kernel, not with --layout"),
    ("explain --layout lane --itemsize 3", "itemsize 3, vector 1: are 3 bytes per lane"),
    ("explain naive --vector 2", "--vector: goes with --layout or --store"),
    ("explain transposeSmem --csv x.csv", "--csv x.csv --measure"),
    ("explain transposeSmem --measure", "ncu PATH toolkit"),
    # the other commands
    ("ladder sort", "ladder 'sort' transpose, matmul"),
    ("ladder matmul --dtype int32", "--dtype 'int32' float64"),
    ("ladder sort --diff tiled", "ladder 'sort' transpose, matmul"),
    ("ladder matmul --diff tilled", "--diff 'tilled' tiled?"),
    ("ladder matmul --diff copyGmem", "--diff 'copyGmem' naive, tiled"),
    ("ladder matmul --diff naive", "--diff naive: is the first step of the ladder; give tiled"),
    ("ladder matmul --diff naive,tiled,tiled1D", "3 steps; give one, or two"),
    ("ladder matmul --diff tiled --n 512,1024", "--n 512,1024: 2 sizes; give one"),
    ("ladder matmul --diff tiled --dtype float32,float64", "--dtype float32,float64: give one"),
    ("ladder matmul --diff tiled --device cpu", "--device cpu"),
    ("ladder matmul --diff tiled --csv x.csv --run {documents}", "--csv x.csv: nothing is measured with --run"),
    ("ladder matmul --diff tiled1D --run {documents}", "no case of both tiled and tiled1D"),
    ("ladder matmul --run {documents}", "--run goes with --diff; show --ladder"),
    ("lesson barier", "did you mean 'barrier'?"),
    ("lesson --json barrier", "--json: give it after barrier"),
    ("lesson solve pading", "did you mean padding?"),
    ("lesson solve --hint", "--hint: name an exercise"),
    ("lesson solve --csv x.csv", "--csv x.csv: a grade has lines"),
    ("lesson barrier --runs 0", "--runs"),
    ("lesson reuse --json --markdown", "--json and --markdown: give one"),
    ("lesson reuse --csv .", "is a folder"),
    ("lesson reuse --device tpu", "'tpu'"),
    ("tune sort", "tune 'sort': no such problem with kernels to choose from"),
    ("tune matmul --kernel tild --device cpu", "did you mean tiled?"),
    ("tune transpose --kernel copyGmem --device cpu", "none of them is a candidate"),
    ("tune transpose --device cpu --samples 0 --dry-run", "smembench: --samples 0: give 3 or more"),
    ("fleet run good.toml --device cpu --dry-run -o good.toml/x", "--output good.toml/x: cannot be made"),
    ("tune transpose -o /no/such/best.toml", "--output /no/such/best.toml: there is no folder /no/such"),
    ("compilers matmul --static --kernel serpentine --block 8x7", "not 8x7"),
    ("baseline show nowhere", "nowhere: there is no such folder"),
    ("baseline clear nowhere", "nowhere: there is no such folder"),
    ("run quick --set samples=abc", "quick.toml --set samples=abc: samples 'abc'"),
    ("compilers --static --export x.pdf", "--export x.pdf: its suffix is none of .csv, .json, .md, .tex, .html"),
    ("show {documents} --export table", "--export table: its suffix is none of .csv"),
    ("show {documents} --json --export -.md", "--json and --export -.md: give one"),
    ("explain transposeSmem --export x.csv", "--export x.csv --measure"),
    ("explain transposeSmem --export x.pdf", "--export x.pdf: its suffix is none of .json, .md"),
    ("compare {nightly} {documents} --export taken.csv", "--export taken.csv --force"),
    ("history . --export nowhere/x.csv", "--export nowhere/x.csv: there is no folder"),
    ("list --export x.md", "--export x.md: .json"),
    ("compilers --static --dry-run", "--dry-run: --static"),
    ("compilers --static --cc 1.0", "--cc 1.0: NVIDIA's compilers here know 9.0"),
    ("lesson --csv x.csv", "--csv x.csv: goes with a lesson's name"),
    ("doctor --csv x.csv", "--csv x.csv: goes with --timing"),
    ("transpose 64 --csv x.json --export ./x.json", "--csv x.json --export x.json: one file"),
    ("compilers sort", "PROBLEM 'sort': no such problem with ports"),
    ("compilers --kernel transposeSmemDyn", "no such kernel with a port"),
    ("compilers --block 2048x1 --static", "block 2048x1"),
    ("report", "Missing argument"),
    ("report nowhere", "nowhere"),
    ("report {documents} --figure x", "--figure x: chooses what --png and --svg write; give one of them"),
    ("report {documents} --png . --figure rooflin", "no such figure; did you mean roofline-cuda-0?"),
    ("report {documents} -o .", "is a folder; name a file in it"),
    ("report {documents} -o no/report.html", "there is no folder"),
]

UNAVAILABLE = [
    ("transpose --device cuda:1", "device cuda:1:"),
    ("ladder transpose --device cuda", "device cuda doctor"),
    ("lesson barrier --device cuda", "device cuda --device cpu"),
    ("compilers", "--static compares the machine code without a GPU"),
    ("access --dry-run", "only on a GPU smembench explain needs none"),
    ("transfer --kernel d2hPageable", "only on a GPU, and none is usable"),
    ("constant --kernel constantUniform", "only on a GPU, and none is usable"),
    ("transpose --kernel transposeSwizzled --dry-run", "transpose: the chosen kernels run only on a GPU"),
]


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with good and bad files."""
    folder = tmp_path_factory.mktemp("here")
    for name, text in FILES.items():
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize(
    ("code", "command", "words"),
    [*((2, *refused) for refused in REFUSED), *((4, *unavailable) for unavailable in UNAVAILABLE)],
    ids=lambda value: str(value)[:40],
)
def test_one_line_says_why_and_nothing_is_written(
    program: Program, here: Path, code: int, command: str, words: str
) -> None:
    ran = program(*command.format(**PLACES).split(), cwd=here, PATH=here)
    assert (ran.returncode, ran.stdout) == (code, "")
    (line,) = ran.stderr.splitlines()
    assert line.startswith("smembench: ")
    assert [word for word in words.split() if word.lower() not in line.lower()] == []
    assert len(line) < 2500
    assert line.isprintable()
    assert {path.name: path.read_text() for path in here.iterdir()} == FILES


def test_the_simulator_is_no_gpu(program: Program) -> None:
    ran = program("transpose", "--device", "cuda", NUMBA_ENABLE_CUDASIM=1)
    assert (ran.returncode, ran.stdout) == (4, "")
    (line,) = ran.stderr.splitlines()
    assert "NUMBA_ENABLE_CUDASIM" in line


def test_what_the_simulator_does_not_compile_is_not_numbas_version(program: Program, tmp_path: Path) -> None:
    ran = program("explain", "copyGmem", NUMBA_ENABLE_CUDASIM=1, XDG_CACHE_HOME=tmp_path)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == (
        "smembench: NUMBA_ENABLE_CUDASIM is set, and Numba's simulator compiles no kernel; unset it\n"
    )
