"""Every operation against what the PTX ISA says of it, written with Python's numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from itertools import product
from math import copysign, cos, inf, isnan, log2, nan, sin, sqrt, tanh
from random import Random
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ptx_numbers as numbers
from ptx_runs import Operand, Value, bits_of, computed, decoded, encoded, is_followed, register_type, same
from smembench.explain.ptx.operations import RULES

SIGNS, SIZES, WIDTHS = "us", (16, 32, 64), (16, 32)


class Case(NamedTuple):
    """An instruction, the types of its operands and results, and what it computes; None where PTX leaves it open."""

    opcode: str
    operands: tuple[str, ...]
    results: tuple[str, ...]
    reference: Callable[..., Any]
    registers: tuple[str, ...] = ()
    targets: str = ""
    more: str = ""

    def __str__(self) -> str:
        return f"{self.opcode}{self.targets and ' '}{self.targets}{self.more} {'-'.join(self.registers)}".strip()


def arithmetic() -> Iterator[Case]:
    for sign, bits in product(SIGNS, SIZES):
        kind = f"{sign}{bits}"
        two, three = (kind, kind), (kind, kind, kind)
        yield Case(f"add.{kind}", two, (kind,), lambda a, b: a + b)
        yield Case(f"sub.{kind}", two, (kind,), lambda a, b: a - b)
        yield Case(f"mul.lo.{kind}", two, (kind,), lambda a, b: a * b)
        yield Case(f"mul.hi.{kind}", two, (kind,), lambda a, b, n=bits: a * b >> n)
        yield Case(f"mad.lo.{kind}", three, (kind,), lambda a, b, c: a * b + c)
        yield Case(f"mad.hi.{kind}", three, (kind,), lambda a, b, c, n=bits: (a * b >> n) + c)
        yield Case(f"div.{kind}", two, (kind,), numbers.divided)
        yield Case(f"rem.{kind}", two, (kind,), numbers.remainder)
        yield Case(f"min.{kind}", two, (kind,), min)
        yield Case(f"max.{kind}", two, (kind,), max)
        yield Case(f"sad.{kind}", three, (kind,), lambda a, b, c: abs(a - b) + c)
        if bits < 64:
            wide = f"{sign}{2 * bits}"
            yield Case(f"mul.wide.{kind}", two, (wide,), lambda a, b: a * b)
            yield Case(f"mad.wide.{kind}", (kind, kind, wide), (wide,), lambda a, b, c: a * b + c)
    for sign, more in product(SIGNS, ("", "24")):
        kind = f"{sign}32"
        if more:

            def low(value: int, kind: str = kind) -> int:
                return numbers.wrapped(kind, value << 8) >> 8

            two, three = (kind, kind), (kind, kind, kind)
            yield Case(f"mul24.lo.{kind}", two, (kind,), lambda a, b, low=low: low(a) * low(b))
            yield Case(f"mul24.hi.{kind}", two, (kind,), lambda a, b, low=low: low(a) * low(b) >> 16)
            yield Case(f"mad24.lo.{kind}", three, (kind,), lambda a, b, c, low=low: low(a) * low(b) + c)
            yield Case(f"mad24.hi.{kind}", three, (kind,), lambda a, b, c, low=low: (low(a) * low(b) >> 16) + c)

    def sat(value: int) -> int:
        return numbers.clamped("s32", value)

    two, three = ("s32", "s32"), ("s32", "s32", "s32")
    yield Case("add.sat.s32", two, ("s32",), lambda a, b: sat(a + b))
    yield Case("sub.sat.s32", two, ("s32",), lambda a, b: sat(a - b))
    yield Case("mad.hi.sat.s32", three, ("s32",), lambda a, b, c: sat((a * b >> 32) + c))
    yield Case(
        "mad24.hi.sat.s32",
        three,
        ("s32",),
        lambda a, b, c: sat(((numbers.wrapped("s32", a << 8) >> 8) * (numbers.wrapped("s32", b << 8) >> 8) >> 16) + c),
    )
    for bits in SIZES:
        yield Case(f"abs.s{bits}", (f"s{bits}",), (f"s{bits}",), abs)
        yield Case(f"neg.s{bits}", (f"s{bits}",), (f"s{bits}",), lambda a: -a)
        yield Case(f"cnot.b{bits}", (f"b{bits}",), (f"b{bits}",), lambda a: int(a == 0))


def _with_predicate(join: Callable[[bool, bool], bool], outcome: int, other: bool) -> tuple[int, bool]:
    return outcome, join(outcome != 0, other)


def of_bits() -> Iterator[Case]:
    for kind in ("b16", "b32", "b64", "pred"):
        for name, function in numbers.BOOLEAN.items():
            yield Case(f"{name}.{kind}", (kind, kind), (kind,), function)
        yield Case(f"not.{kind}", (kind,), (kind,), lambda a, k=kind: not a if k == "pred" else ~a)
        yield Case(f"selp.{kind}", (kind, kind, "pred"), (kind,), lambda a, b, c: a if c else b)
        if kind == "pred":
            continue
        yield Case(f"shl.{kind}", (kind, "u32"), (kind,), lambda a, n, k=kind: numbers.shifted_left(k, a, n))
        for of in "bus":
            shifted = f"{of}{kind[1:]}"
            yield Case(
                f"shr.{shifted}", (shifted, "u32"), (shifted,), lambda a, n, k=shifted: numbers.shifted_right(k, a, n)
            )
    for direction, mode in product("lr", ("wrap", "clamp")):
        yield Case(
            f"shf.{direction}.{mode}.b32",
            ("b32", "b32", "u32"),
            ("b32",),
            lambda a, b, c, left=direction == "l", wrap=mode == "wrap": numbers.funnel(left, wrap, a, b, c),
        )
    for kind in ("u32", "s32", "u64", "s64"):
        yield Case(
            f"bfe.{kind}", (kind, "u32", "u32"), (kind,), lambda *operands, k=kind: numbers.extracted(k, *operands)
        )
        for more in ("", ".shiftamt"):
            yield Case(
                f"bfind{more}.{kind}", (kind,), ("u32",), lambda a, k=kind, m=more: numbers.found_leading(k, bool(m), a)
            )
    for kind in ("b32", "b64"):
        yield Case(
            f"bfi.{kind}", (kind, kind, "u32", "u32"), (kind,), lambda *operands, k=kind: numbers.inserted(k, *operands)
        )
        yield Case(f"brev.{kind}", (kind,), (kind,), lambda a, k=kind: numbers.reversed_bits(k, a))
        yield Case(f"popc.{kind}", (kind,), ("u32",), int.bit_count)
        yield Case(f"clz.{kind}", (kind,), ("u32",), lambda a, k=kind: numbers.leading_zeros(k, a))
    yield Case("prmt.b32", ("b32", "b32", "b32"), ("b32",), numbers.permuted)
    for table in (0x00, 0xFF, 0xCA, 0x96, 0x80):
        yield Case(
            "lop3.b32",
            ("b32", "b32", "b32"),
            ("b32",),
            lambda *operands, t=table: numbers.looked_up(t, *operands),
            more=f", {table}",
        )
    for name, function in numbers.BOOLEAN.items():
        yield Case(
            f"lop3.{name}.b32",
            ("b32", "b32", "b32", "pred"),
            ("b32", "pred"),
            lambda a, b, c, p, f=function: (
                numbers.looked_up(0xE8, a, b, c),
                f(numbers.looked_up(0xE8, a, b, c) != 0, p),
            ),
            targets="%d0|%d1",
            more=", 232",
        )


INTEGER_COMPARISONS = {
    "s": ("eq", "ne", "lt", "le", "gt", "ge"),
    "u": ("eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs"),
    "b": ("eq", "ne"),
}
FLOAT_COMPARISONS = (
    "eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan",
)  # fmt: skip


def comparisons() -> Iterator[Case]:
    kinds = [(f"{sign}{bits}", names) for sign, names in INTEGER_COMPARISONS.items() for bits in SIZES]
    kinds += [(kind, FLOAT_COMPARISONS) for kind in ("f16", "f32", "f64")]
    random = Random(3)
    for kind, names in kinds:
        for name in names:
            joined = random.choice([*numbers.BOOLEAN])
            both, join = (kind, kind), numbers.BOOLEAN[joined]
            yield Case(f"setp.{name}.{kind}", both, ("pred",), lambda a, b, n=name: numbers.compared(n, a, b))
            yield Case(
                f"setp.{name}.{kind}",
                both,
                ("pred", "pred"),
                lambda a, b, n=name: (numbers.compared(n, a, b), not numbers.compared(n, a, b)),
                targets="%d0|%d1",
            )
            yield Case(
                f"setp.{name}.{joined}.{kind}",
                (*both, "pred"),
                ("pred", "pred"),
                lambda a, b, c, n=name, j=join: (
                    j(numbers.compared(n, a, b), c),
                    j(not numbers.compared(n, a, b), c),
                ),
                targets="%d0|%d1",
            )
            result = random.choice(["u32", "s32", "f32"])
            true = 1.0 if result == "f32" else -1
            yield Case(
                f"set.{name}.{result}.{kind}",
                both,
                (result,),
                lambda a, b, n=name, t=true: t if numbers.compared(n, a, b) else type(t)(0),
            )
            yield Case(
                f"set.{name}.{joined}.{result}.{kind}",
                (*both, "pred"),
                (result,),
                lambda a, b, c, n=name, j=join, t=true: t if j(numbers.compared(n, a, b), c) else type(t)(0),
            )
    for kind in ("b16", "u16", "s16", "b32", "u32", "s32", "b64", "u64", "s64", "f32", "f64"):
        for by in ("s32", "f32"):
            yield Case(f"slct.{kind}.{by}", (kind, kind, by), (kind,), lambda a, b, c: a if c >= 0 else b)
    for kind in ("f32", "f64"):
        yield Case(f"selp.{kind}", (kind, kind, "pred"), (kind,), lambda a, b, c: a if c else b)
    yield Case(
        "setp.lt.and.s32",
        ("s32", "s32", "pred"),
        ("pred",),
        lambda a, b, c: a >= b and c,
        targets="_|%d0",
    )
    yield Case(
        "setp.lt.or.s32",
        ("s32", "s32", "pred"),
        ("pred",),
        lambda a, b, c: a < b or c,
        targets="%d0|_",
    )


INTEGERS = tuple(f"{sign}{bits}" for sign in SIGNS for bits in (8, 16, 32, 64))


def conversions() -> Iterator[Case]:
    for source, target in product(INTEGERS, INTEGERS):
        names = [f"b{bits}" for bits in (16, 32, 64) if bits >= bits_of(target)]
        of = [f"b{bits}" for bits in (16, 32, 64) if bits >= bits_of(source)]
        wrapped = partial(numbers.wrapped, target)
        for result, register in sorted({(names[0], of[0]), (names[-1], of[-1])}):
            yield Case(
                f"cvt.{target}.{source}",
                (source,),
                (f"{target}:{result}",),
                wrapped,
                registers=(register,),
            )
        low, high = numbers.limits(target)
        first, last = numbers.limits(source)
        if first < low or last > high:
            yield Case(f"cvt.sat.{target}.{source}", (source,), (target,), lambda a, t=target: numbers.clamped(t, a))
    for source, target, mode in product(("f16", "f32", "f64"), INTEGERS, ("rni", "rzi", "rmi", "rpi")):
        for sat in ("", ".sat") if mode == "rzi" else ("",):
            yield Case(
                f"cvt.{mode}{sat}.{target}.{source}",
                (source,),
                (target,),
                lambda a, s=source, t=target, m=mode: numbers.to_integer(s, t, m, a),
            )
    for source, target, mode in product(INTEGERS, ("f16", "f32", "f64"), ("rn", "rz", "rm", "rp")):
        yield Case(
            f"cvt.{mode}.{target}.{source}",
            (source,),
            (target,),
            lambda a, t=target, m=mode: numbers.rounded(t, Fraction(a), m) if a else 0.0,
        )
    for source, target in (("f32", "f16"), ("f64", "f16"), ("f64", "f32")):
        for mode in ("rn", "rz", "rm", "rp"):
            yield Case(
                f"cvt.{mode}.{target}.{source}",
                (source,),
                (target,),
                lambda a, t=target, m=mode: numbers.rounded(t, Fraction(a), m) if numbers.finite(a) and a else a,
            )
        yield Case(f"cvt.{source}.{target}", (target,), (source,), lambda a: a)
    for kind in ("f16", "f32", "f64"):
        for mode in ("rni", "rzi", "rmi", "rpi"):
            yield Case(
                f"cvt.{mode}.{kind}.{kind}",
                (kind,),
                (kind,),
                lambda a, m=mode: copysign(_whole(m, a), a) if numbers.finite(a) else a,
            )
        yield Case(f"cvt.sat.{kind}.{kind}", (kind,), (kind,), _saturated)


def _whole(mode: str, value: float) -> float:
    down = Fraction(value).numerator // Fraction(value).denominator
    rest = Fraction(value) - down
    up = {
        "rzi": value < 0 and rest > 0,
        "rmi": False,
        "rpi": rest > 0,
        "rni": rest > Fraction(1, 2) or (rest == Fraction(1, 2) and down % 2 == 1),
    }[mode]
    return float(down + up)


def _saturated(value: float) -> float:
    return 0.0 if isnan(value) or value <= 0 else min(value, 1.0)


def _smaller(a: float, b: float) -> float:
    if isnan(a) or isnan(b):
        return b if isnan(a) else a
    return a if (a, copysign(1, a)) < (b, copysign(1, b)) else b


def _larger(a: float, b: float) -> float:
    return -_smaller(-a, -b)


def floats() -> Iterator[Case]:
    for kind in ("f16", "f32", "f64"):
        two, three = (kind, kind), (kind, kind, kind)
        names = ("add", "sub", "mul") if kind == "f16" else ("add", "sub", "mul", "div")
        for name in names:
            yield Case(
                f"{name}.rn.{kind}", two, (kind,), lambda *operands, n=name, k=kind: numbers.of_floats(n, k, *operands)
            )
        for name in ("fma",) if kind == "f16" else ("fma", "mad"):
            yield Case(
                f"{name}.rn.{kind}", three, (kind,), lambda *operands, k=kind: numbers.of_floats("fma", k, *operands)
            )
        if kind != "f64":
            for name in ("add", "sub", "mul", "fma"):
                yield Case(
                    f"{name}.rn.sat.{kind}",
                    three if name == "fma" else two,
                    (kind,),
                    lambda *operands, n=name, k=kind: _saturated(numbers.of_floats(n, k, *operands)),
                )
            for name, function in (("min", _smaller), ("max", _larger)):
                yield Case(
                    f"{name}.NaN.{kind}",
                    two,
                    (kind,),
                    lambda a, b, f=function: nan if isnan(a) or isnan(b) else f(a, b),
                )
        if kind != "f16":
            yield Case(
                f"sqrt.rn.{kind}",
                (kind,),
                (kind,),
                lambda a, k=kind: numbers.rounded(k, Fraction(sqrt(a))) if 0 < a < inf else (nan if a < 0 else a),
            )
            yield Case(f"rcp.rn.{kind}", (kind,), (kind,), lambda a, k=kind: numbers.of_floats("div", k, 1.0, a))
            yield Case(f"copysign.{kind}", two, (kind,), lambda a, b: copysign(b, a))
        yield Case(f"min.{kind}", two, (kind,), _smaller)
        yield Case(f"max.{kind}", two, (kind,), _larger)
        yield Case(f"neg.{kind}", (kind,), (kind,), lambda a: -a)
        yield Case(f"abs.{kind}", (kind,), (kind,), abs)

    def flushed(value: float) -> float:
        return copysign(0.0, value) if abs(value) < 2.0**-126 else value

    for name in ("add", "sub", "mul", "div", "fma"):
        yield Case(
            f"{name}.rn.ftz.f32",
            ("f32",) * (3 if name == "fma" else 2),
            ("f32",),
            lambda *operands, n=name: flushed(numbers.of_floats(n, "f32", *map(flushed, operands))),
        )
    yield Case("abs.ftz.f32", ("f32",), ("f32",), lambda a: abs(flushed(a)))
    yield Case("setp.lt.ftz.f32", ("f32", "f32"), ("pred",), lambda a, b: flushed(a) < flushed(b))
    yield Case("setp.neu.ftz.f32", ("f32", "f32"), ("pred",), lambda a, b: flushed(a) != flushed(b))
    yield Case("slct.ftz.u32.f32", ("u32", "u32", "f32"), ("u32",), lambda a, b, c: a if flushed(c) >= 0 else b)
    yield Case("cvt.rpi.ftz.s32.f32", ("f32",), ("s32",), lambda a: numbers.to_integer("f32", "s32", "rpi", flushed(a)))


CASES = [*arithmetic(), *of_bits(), *comparisons(), *conversions(), *floats()]


def edges(kind: str) -> list[int]:
    """Bits at which rules change."""
    if kind == "pred":
        return [0, 1]
    bits = bits_of(kind)
    if kind[0] == "f":
        wanted = [0.0, -0.0, 1.0, -1.5, 2.5, -0.5, 0.3, inf, -inf, nan, 300.7, -70000.4 if bits > 16 else -6e4]
        wanted += [6e-8 if bits == 16 else 1e-42 if bits == 32 else 1e-310, 4e9 if bits > 16 else 3e4]
        wanted += [] if bits == 16 else [2.0**31, -(2.0**31), 2.0**63, -(2.0**64), 65519.9, 1 + 2.0**-11 + 2.0**-23]
        wanted += [1 + 2.0**-24 + 2.0**-50, 2.0**53 - 1, 3.4028235677973366e38, 2.0**-150] if bits == 64 else []
        return [encoded(kind, value) for value in wanted]
    top = 1 << bits - 1
    return [0, 1, 2, 7, 24, bits - 1, bits, bits + 1, 255, top - 1, top, 2 * top - 1, 2 * top - 3, 0x5A5A & 2 * top - 1]


def check(case: Case, rows: list[tuple[int, ...]], uniform: tuple[bool, ...] = ()) -> None:
    """Run an instruction on rows of bits, of which uniform operands take the first row's."""
    registers = case.registers or tuple(register_type(kind) for kind in case.operands)
    given_as = uniform or (False,) * len(registers)
    rows = [tuple(rows[0][n] if same_for_all else row[n] for n, same_for_all in enumerate(given_as)) for row in rows]
    operands = [
        Operand(kind, [row[number] for row in rows], given_as[number], registers[number])
        for number, kind in enumerate(case.operands)
    ]
    texts = ", ".join(f"%a{number}" for number in range(len(operands)))
    last = ", %a3" if case.more and len(operands) == 4 else ""
    texts = texts.removesuffix(last) + case.more + last
    kinds = [result.partition(":") for result in case.results]
    declared = [register or register_type(kind) for kind, _, register in kinds]
    outcome = computed(f"{case.opcode} {case.targets or '%d0'}, {texts}", operands, declared)
    for row, got in zip(rows, outcome, strict=True):
        values = [decoded(kind, bits) for kind, bits in zip(case.operands, row, strict=True)]
        expected: Value | tuple[Value, ...] | None = case.reference(*values)
        if expected is None:
            continue
        item = expected if isinstance(expected, tuple) else (expected,)
        for (kind, _, _), register, value, bits in zip(kinds, declared, item, got, strict=True):
            wanted = encoded(kind, value, max(bits_of(register), 1))
            assert same(kind, wanted, bits), f"{case}{values}: {bits:#x}, not {wanted:#x}"


def test_every_rule_has_a_case() -> None:
    approximate = {"cos", "ex2", "lg2", "rsqrt", "sin", "tanh"}
    assert {case.opcode.partition(".")[0] for case in CASES} | approximate == set(RULES)


ROOTS = sorted({case.opcode.partition(".")[0] for case in CASES})


@pytest.mark.parametrize("root", ROOTS)
def test_an_operation_is_that_of_the_ptx_isa_at_edges(root: str) -> None:
    for case in CASES:
        if case.opcode.partition(".")[0] == root:
            rows = list(product(*map(edges, case.operands)))
            check(case, rows if len(rows) <= 60 else Random(1).sample(rows, 60))


def rows_of(case: Case) -> st.SearchStrategy[list[tuple[int, ...]]]:
    registers = case.registers or tuple(register_type(kind) for kind in case.operands)
    columns = [
        st.one_of(st.integers(0, (1 << bits_of(register)) - 1), st.sampled_from(edges(kind)))
        for kind, register in zip(case.operands, registers, strict=True)
    ]
    return st.lists(st.tuples(*columns), min_size=1, max_size=6)


@given(data=st.data())
@settings(max_examples=200)
def test_an_operation_is_that_of_the_ptx_isa_anywhere_and_for_uniform_registers(data: st.DataObject) -> None:
    case = data.draw(st.sampled_from(CASES))
    rows = data.draw(rows_of(case))
    check(case, rows, data.draw(st.tuples(*[st.booleans()] * len(case.operands))))


@pytest.mark.parametrize("root", ROOTS)
def test_an_operation_of_uniform_registers_alone_is_the_same(root: str) -> None:
    random = Random(2)
    for case in CASES:
        if case.opcode.partition(".")[0] == root:
            check(case, [tuple(random.choice(edges(kind)) for kind in case.operands)], (True,) * len(case.operands))


def test_lop3_with_every_table() -> None:
    random = Random(0)
    for table in range(256):  # with each a kernel of its own
        case = Case(
            "lop3.b32",
            ("b32", "b32", "b32"),
            ("b32",),
            lambda *operands, t=table: numbers.looked_up(t, *operands),
            more=f", {table:#x}",
        )
        check(case, [tuple(random.getrandbits(32) for _ in range(3)) for _ in range(4)])


@pytest.mark.parametrize(
    ("opcode", "function"),
    [
        ("cos.approx.f32", cos),
        ("sin.approx.f32", sin),
        ("ex2.approx.f32", lambda a: 2.0**a),
        ("lg2.approx.f32", lambda a: log2(abs(a) + 1)),
        ("rsqrt.approx.f32", lambda a: 1 / sqrt(abs(a) + 1)),
        ("tanh.approx.f32", tanh),
    ],
)
def test_approximations_are_near(opcode: str, function: Callable[[float], float]) -> None:
    values = [-3.1, -1.0, -0.25, 0.0, 0.5, 1.0, 2.75]
    inner = [abs(value) + 1 for value in values] if opcode[:2] in ("lg", "rs") else values
    outcome = computed(f"{opcode} %d0, %a0", [Operand("f32", [encoded("f32", value) for value in inner])], ["f32"])
    for value, (bits,) in zip(values, outcome, strict=True):
        assert decoded("f32", bits) == pytest.approx(function(value), rel=1e-5, abs=1e-6)


@pytest.mark.parametrize(
    "instruction",
    [
        "add.cc.s32 %r, %a0, %a0",
        "prmt.b32.f4e %r, %a0, %a0, %a0",
        "prmt.b32.rc16 %r, %a0, %a0, %a0",
        "add.u16x2 %r, %a0, %a0",
        "max.s16x2 %r, %a0, %a0",
        "add.rz.f32 %r, %a0, %a0",
        "fma.rm.f32 %r, %a0, %a0, %a0",
        "fma.rn.relu.f16 %r, %a0, %a0, %a0",
        "max.xorsign.abs.f32 %r, %a0, %a0",
        "max.f32 %r, %a0, %a0, %a0",
        "cvt.rn.relu.f16.f32 %r, %a0",
        "cvt.pack.sat.u8.s32.b32 %r, %a0, %a0, %a0",
        "cvt.rna.tf32.f32 %r, %a0",
        "add.rn.bf16 %r, %a0, %a0",
        "fma.rn.f16x2 %r, %a0, %a0, %a0",
        "szext.clamp.u32 %r, %a0, %a0",
        "bmsk.clamp.b32 %r, %a0, %a0",
        "dp4a.u32.u32 %r, %a0, %a0, %a0",
    ],
)
def test_what_is_not_followed_is_unknown_and_never_wrong(instruction: str) -> None:
    assert not is_followed(instruction, [Operand("b32", [1])], [])


@pytest.mark.parametrize(
    ("instruction", "kinds", "values", "results", "expected"),
    [
        ("add.s32 %d0, %a0, -1", ["s32"], [5], ["b32"], [4]),
        ("add.s64 %d0, %a0, -8", ["s64"], [5], ["b64"], [2**64 - 3]),
        ("mul.wide.u32 %d0, %a0, -858993459", ["u32"], [3], ["b64"], [3 * 0xCCCCCCCD]),
        ("mul.wide.s32 %d0, %a0, -3", ["s32"], [2**32 - 2], ["b64"], [6]),
        ("mul.hi.s32 %d0, %a0, 0x80000000", ["s32"], [4], ["b32"], [2**32 - 2]),
        ("and.b32 %d0, %a0, 0xFFU", ["b32"], [0x1234], ["b32"], [0x34]),
        ("and.b16 %d0, %a0, -256", ["b16"], [0x1234], ["b16"], [0x1200]),
        ("setp.gt.s16 %d0, %a0, -1", ["s16"], [0], ["pred"], [1]),
        ("setp.gt.u16 %d0, %a0, -1", ["u16"], [0], ["pred"], [0]),
        ("add.f32 %d0, %a0, 0f3F800000", ["f32"], [0x3F800000], ["f32"], [0x40000000]),
        ("add.f64 %d0, %a0, 0d3FF0000000000000", ["f64"], [0], ["f64"], [0x3FF0000000000000]),
        ("mov.b32 %d0, 0f3F800000", [], [], ["b32"], [0x3F800000]),
        ("mov.f32 %d0, 0f3F800000", [], [], ["f32"], [0x3F800000]),
        ("selp.b32 %d0, -1, 7, %a0", ["pred"], [1], ["b32"], [2**32 - 1]),
        ("sub.s32 %d0, 1, %a0", ["s32"], [3], ["b32"], [2**32 - 2]),
        ("mov.b64 %d0, {%a0, %a1}", ["b32", "b32"], [1, 2], ["b64"], [2 << 32 | 1]),
        ("mov.b64 %d0, {%a0, %a1}", ["f32", "b32"], [0x3F800000, 2], ["f64"], [2 << 32 | 0x3F800000]),
        ("mov.b64 %d0, {%a0, 5}", ["b32"], [1], ["b64"], [5 << 32 | 1]),
        ("mov.b64 {%d0, %d1}, %a0", ["b64"], [2 << 32 | 0x3F800000], ["f32", "b32"], [0x3F800000, 2]),
        ("mov.b64 {_, %d0}, %a0", ["b64"], [2 << 32 | 1], ["b32"], [2]),
        ("mov.b32 {%d0, %d1}, %a0", ["f32"], [0x3F801234], ["b16", "b16"], [0x1234, 0x3F80]),
        ("mov.b64 %d0, {%a0, %a0, %a0, %a1}", ["b16", "b16"], [1, 2], ["b64"], [0x0002000100010001]),
        ("mov.b64 %d0, %a0", ["f64"], [77], ["b64"], [77]),
    ],
)
def test_constants_and_moves(
    instruction: str, kinds: list[str], values: list[int], results: list[str], expected: list[int]
) -> None:
    for alone in (False, True):
        operands = [Operand(kind, [value], alone) for kind, value in zip(kinds, values, strict=True)]
        operands = operands or [Operand("b32", [0])]
        assert computed(instruction, operands, results) == [tuple(expected)]
