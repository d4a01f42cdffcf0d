"""Variants have one hash however they are encoded, and different ones different hashes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from effort import examples
from hypothesis import given, strategies as st
from oracles.variant_reference import Variant, encode, encode_metadata, names_of, same
from strategies.variants import CONTAINERS, VARIANTS, like

from icebergds.formats.arrow.types import to_arrow
from icebergds.scan.read.row_fingerprints import Fingerprinter
from icebergds.scan.read.variant_hashes import hash_variants
from icebergds.spec.types import VARIANT, NestedField


def column(*rows: dict[str, bytes] | None) -> pa.StructArray:
    return pa.array(rows, to_arrow(VARIANT))


def row(variant: Variant | None, **how: Any) -> dict[str, bytes] | None:
    if variant is None:
        return None
    names = how.pop("names", None) or sorted(names_of(variant))
    return {"metadata": encode_metadata(names, 2), "value": encode(variant, names, **how)}


def hashes(*rows: dict[str, bytes] | None) -> list[int | None]:
    found = hash_variants(column(*rows), 7)
    assert found is not None
    (lane,) = found.lanes
    valid = np.ones(len(rows), np.bool_) if found.valid is None else found.valid
    return [int(each) if known else None for each, known in zip(lane, valid, strict=True)]


@st.composite
def _encoded(draw: st.DrawFn) -> tuple[list[Variant | None], list[dict[str, bytes] | None]]:
    first = draw(CONTAINERS)
    variants = [first, *draw(st.lists(st.none() | st.just(first) | like(first) | VARIANTS))]
    rows = []
    for variant in variants:
        names = draw(st.permutations(sorted({*names_of(variant), "a", "unused"})))
        rows.append(row(variant, names=names, wide=draw(st.booleans())))
    return variants, rows


@examples(400)
@given(_encoded())
def test_variants_have_equal_hashes_exactly_if_they_are_the_same(
    encoded: tuple[list[Variant | None], list[dict[str, bytes] | None]],
) -> None:
    variants, rows = encoded
    found = hashes(*rows)
    for left, a in zip(variants, found, strict=True):
        for right, b in zip(variants, found, strict=True):
            assert (a == b) == (same(left) == same(right))


@pytest.mark.parametrize(
    "variants",
    [
        [("int8", 5), ("int16", 5), ("int32", 5), ("int64", 5)],
        [("decimal4", (15, 1)), ("decimal8", (150, 2)), ("decimal16", (15 * 10**20, 21))],
        [("double", math.nan), ("double", -math.nan)],
    ],
)
def test_equal_numbers_have_one_hash(variants: list[Variant]) -> None:
    assert len(set(hashes(*map(row, variants)))) == 1
    assert len(set(hashes(*[row(("array", [v])) for v in variants]))) == 1


def test_numbers_of_different_types_have_different_hashes() -> None:
    zeros: list[Variant] = [("int8", 0), ("decimal4", (0, 0)), ("double", 0.0), ("double", -0.0)]
    others: list[Variant] = [("float", 0.0), ("date", 0), ("time", 0), ("boolean", False)]
    too_long = ("decimal16", (10**38, 0))
    also = ("decimal16", (10**38 + 1, 0))
    assert len(set(hashes(*map(row, [*zeros, *others, too_long, also])))) == 10


def test_what_is_not_a_variant_is_the_same_only_as_the_same_bytes() -> None:
    damaged = {"metadata": encode_metadata([]), "value": b"\xff"}
    assert hash_variants(column(damaged), 7) is None
    fingerprinter = Fingerprinter.of([NestedField(1, "v", VARIANT, False)])
    rows = [damaged, damaged, row(("int8", 1)), None]
    found = fingerprinter.fingerprints([column(*rows)], len(rows))
    assert found.high[0] == found.high[1]
    assert len(set(found.high.tolist())) == 3
