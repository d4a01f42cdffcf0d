"""Sketches are those of the library that the specification refers to, which reads them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from icebergds.operations.statistics.table_stats import value_hashes
from icebergds.operations.statistics.theta_sketch import (
    NOMINAL_ENTRIES,
    AlphaSketch,
    ThetaSketch,
    merge_sketches,
)
from icebergds.spec.types import LONG

datasketches = pytest.importorskip("datasketches", reason="datasketches is not installed")


def _sketch(values: range | list[int], at_a_time: int = 1000) -> ThetaSketch:
    sketch = AlphaSketch()
    for start in range(0, len(values), at_a_time):
        part = pa.array(values[start : start + at_a_time], pa.int64())
        sketch.update(value_hashes(LONG, part))
    return sketch.compact()


def _read(sketch: ThetaSketch) -> Any:
    return datasketches.compact_theta_sketch.deserialize(sketch.to_bytes())


@given(st.lists(st.integers(-3, 3) | st.integers(-(2**63), 2**63 - 1), max_size=30))
def test_few_values_are_counted_exactly_with_the_hashes_of_the_library(values: list[int]) -> None:
    theirs = datasketches.update_theta_sketch()
    for value in values:
        theirs.update(value)
    sketch = _sketch(values, at_a_time=7)
    assert sketch.estimate == len(set(values)) == _read(sketch).get_estimate()
    assert list(_read(sketch)) == sorted(theirs)
    assert _read(sketch).is_empty() == (not values)


@pytest.mark.parametrize("count", [NOMINAL_ENTRIES, NOMINAL_ENTRIES + 1, 200_000])
def test_many_values_are_estimated_as_the_library_reads_it(count: int) -> None:
    sketch = _sketch(range(count), at_a_time=30_000)
    assert sketch.estimate == pytest.approx(count, rel=0.05)
    assert _read(sketch).is_estimation_mode() == (count > NOMINAL_ENTRIES)
    assert _read(sketch).get_estimate() == pytest.approx(sketch.estimate, rel=1e-12)
    assert _read(sketch).theta64 == sketch.theta
    assert list(_read(sketch)) == sketch.hashes.tolist()


def test_values_that_come_again_change_no_sketch() -> None:
    once, twice = _sketch(range(20_000)), _sketch([*range(20_000), *range(20_000)])
    assert (once.theta, once.hashes.tolist()) == (twice.theta, twice.hashes.tolist())


@pytest.mark.parametrize("counts", [(0, 0), (0, 5), (3000, 3000), (10, 30_000), (9000, 30_000)])
def test_merged_sketches_are_the_union_of_the_library(counts: tuple[int, int]) -> None:
    first, second = _sketch(range(counts[0])), _sketch(range(50_000, 50_000 + counts[1]))
    union = datasketches.theta_union()
    union.update(_read(first))
    union.update(_read(second))
    for merged in (merge_sketches([first, second]), merge_sketches([second, first])):
        assert list(_read(merged)) == sorted(union.get_result())
        assert merged.theta == union.get_result().theta64
    assert len(merged.hashes) <= NOMINAL_ENTRIES


def test_a_hash_of_zero_is_left_out() -> None:
    sketch = AlphaSketch()
    sketch.update(np.array([0, 7], np.uint64))
    assert sketch.compact().hashes.tolist() == [7]
