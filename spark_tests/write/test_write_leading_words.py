"""Integers that stand for sort keys: never lower for a greater key."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from effort import examples
from hypothesis import given, strategies as st
from strategies.every_type import SCALARS

from icebergds.spec.schema import Schema
from icebergds.spec.sort import NullOrder, SortDirection, SortField, SortOrder
from icebergds.spec.transforms import IdentityTransform
from icebergds.spec.types import BINARY, LONG, STRING, NestedField
from icebergds.testing.rows import record_batch
from icebergds.write.rows.ranges import are_exact, leading_words_of
from icebergds.write.rows.sorting import KeyColumn, plan_order, sorted_indices

_WITH_PREFIXES = st.builds(
    lambda prefix, text: prefix + text,
    st.sampled_from(["", "/a/long/common/prefix/", "/a/long/common/prefiy/", "/a/long/common\0"]),
    st.text("ab\0\U0001f600", max_size=12),
)


@st.composite
def keys(draw: st.DrawFn) -> list[KeyColumn]:
    """The columns to compare rows by of one or two columns of any types."""
    values = {**SCALARS, STRING: _WITH_PREFIXES, BINARY: _WITH_PREFIXES.map(str.encode)}
    types = draw(st.lists(st.sampled_from(list(values)), min_size=1, max_size=2))
    fields = tuple(NestedField(at, f"c{at}", kind) for at, kind in enumerate(types, 1))
    order = SortOrder(
        1,
        tuple(
            SortField(
                (field.field_id,),
                IdentityTransform(),
                draw(st.sampled_from(SortDirection)),
                draw(st.sampled_from(NullOrder)),
            )
            for field in fields
        ),
    )
    rows = draw(st.lists(st.tuples(*(st.none() | values[kind] for kind in types)), max_size=12))
    planned = plan_order(order, Schema(fields), table="t")
    assert planned is not None
    return planned.columns(record_batch(Schema(fields), rows))


@examples(400)
@given(keys(), st.data())
def test_integers_follow_the_order_of_any_keys(
    columns: list[KeyColumn], data: st.DataObject
) -> None:
    rows = len(columns[0].values)
    some = data.draw(st.lists(st.integers(0, rows - 1))) if rows else []
    leading = leading_words_of([column.take(pa.array(some, pa.int64())) for column in columns])
    order = np.asarray(sorted_indices(columns))
    words = leading.of(columns).take(order)
    assert (words[1:] >= words[:-1]).all()
    if are_exact(columns):
        (values,) = (c.values.to_pylist() for c in columns if c.values.type != "bool")
        assert len(set(words.tolist())) == len(set(values))


def test_a_common_prefix_is_left_out() -> None:
    schema = Schema((NestedField(1, "a", STRING),))
    order = SortOrder(
        1, (SortField((1,), IdentityTransform(), SortDirection.ASC, NullOrder.NULLS_FIRST),)
    )
    planned = plan_order(order, schema, table="t")
    assert planned is not None
    rows = record_batch(schema, [(f"https://example.org/items/{at:05}",) for at in range(1000)])
    columns = planned.columns(rows)
    assert len(np.unique(leading_words_of(columns).of(columns))) == 1000


@pytest.mark.parametrize("with_null", [False, True])
def test_whole_numbers_are_exact_without_nulls(with_null: bool) -> None:
    schema = Schema((NestedField(1, "a", LONG),))
    order = SortOrder(
        1, (SortField((1,), IdentityTransform(), SortDirection.DESC, NullOrder.NULLS_LAST),)
    )
    planned = plan_order(order, schema, table="t")
    assert planned is not None
    rows = [(1,), (2,), *([(None,)] if with_null else [])]
    assert are_exact(planned.columns(record_batch(schema, rows))) is not with_null
