"""Strategies of variants, in the form of `oracles.variant_reference`."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from oracles.variant_reference import PRECISIONS, Variant

NAMES = st.sampled_from(["a", "b", "aa", "B", "", "ü", "\ue000", "\U0001f600", "value", "x" * 300])
LONGS = st.integers(-(2**63), 2**63 - 1)
_SCALES = st.sampled_from([0, 2])


def _decimals(name: str) -> st.SearchStrategy[Variant]:
    largest = 10 ** PRECISIONS[name] - 1
    return st.tuples(st.just(name), st.tuples(st.integers(-largest, largest), _SCALES))


def of_type(name: str, values: st.SearchStrategy[Any]) -> st.SearchStrategy[Variant]:
    """Variants of a type."""
    return st.tuples(st.just(name), values)


SCALARS = st.one_of(
    of_type("null", st.none()),
    of_type("boolean", st.booleans()),
    of_type("int8", st.integers(-128, 127)),
    of_type("int16", st.integers(-(2**15), 2**15 - 1)),
    of_type("int32", st.integers(-(2**31), 2**31 - 1)),
    of_type("int64", LONGS),
    of_type("float", st.floats(width=32, allow_nan=False)),
    of_type("double", st.floats(allow_nan=False)),
    *map(_decimals, PRECISIONS),
    of_type("date", st.integers(-(2**31), 2**31 - 1)),
    of_type("time", st.integers(0, 86_400_000_000 - 1)),
    *(
        of_type(name, LONGS)
        for name in ("timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns")
    ),
    of_type("string", st.text(max_size=5) | st.integers(60, 70).map("x".__mul__)),
    of_type("binary", st.binary(max_size=5)),
    of_type("uuid", st.binary(min_size=16, max_size=16)),
)


def containers(inner: st.SearchStrategy[Variant]) -> st.SearchStrategy[Variant]:
    """Arrays and objects of some variants."""
    arrays = of_type("array", st.lists(inner, max_size=4))
    return arrays | of_type("object", st.dictionaries(NAMES, inner, max_size=5))


VARIANTS = st.recursive(SCALARS, containers, max_leaves=12)
CONTAINERS = containers(VARIANTS)


def like(variant: Variant) -> st.SearchStrategy[Variant]:
    """Variants of the same structure, in part."""
    match variant:
        case ("object", fields):
            each = {name: st.deferred(lambda v=inner: like(v)) for name, inner in fields.items()}
            same = st.fixed_dictionaries({}, optional=each)
            more = st.dictionaries(NAMES, SCALARS, max_size=1)
            shape = of_type("object", st.tuples(more, same).map(lambda parts: parts[0] | parts[1]))
        case ("array", elements):
            element = st.sampled_from(elements) if elements else SCALARS
            shape = of_type("array", st.lists(element.flatmap(like), max_size=3))
        case (("int8" | "int16" | "int32" | "int64"), _):
            shape = SCALARS.filter(lambda v: v[0].startswith("int"))
        case (name, _):
            shape = SCALARS.filter(lambda v: v[0] == name) | st.just(variant)
    return shape | shape | shape | st.just(("null", None)) | SCALARS
