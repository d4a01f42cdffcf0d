"""Sort orders to and from JSON."""

from __future__ import annotations

from typing import Any

import pytest

from icebergds.errors import InvalidMetadataError
from icebergds.spec.json.sort import sort_order_from_json, sort_order_to_json
from icebergds.spec.sort import NullOrder, SortDirection, SortField, SortOrder
from icebergds.spec.transforms import BucketTransform, IdentityTransform, UnknownTransform

FIELD = {
    "transform": "bucket[4]",
    "source-id": 3,
    "direction": "desc",
    "null-order": "nulls-last",
}


def order(*fields: dict[str, Any], **members: Any) -> dict[str, Any]:
    return {"order-id": 1, "fields": list(fields), **members}


def test_an_order_survives_its_json() -> None:
    obj = order(
        {"transform": "identity", "source-id": 2, "direction": "asc", "null-order": "nulls-first"},
        {**FIELD, "x-field": 1},
        {
            "transform": "zorder",
            "source-ids": [1, 2],
            "direction": "asc",
            "null-order": "nulls-first",
        },
        **{"x-order": [1]},
    )
    read = sort_order_from_json(obj)
    assert read == SortOrder(
        1,
        (
            SortField((2,), IdentityTransform(), SortDirection.ASC, NullOrder.NULLS_FIRST),
            SortField((3,), BucketTransform(4), SortDirection.DESC, NullOrder.NULLS_LAST),
            SortField((1, 2), UnknownTransform("zorder"), SortDirection.ASC, NullOrder.NULLS_FIRST),
        ),
    )
    assert read.is_sorted
    assert sort_order_to_json(read) == obj


def test_the_unsorted_order_has_no_fields() -> None:
    assert not SortOrder().is_sorted
    assert sort_order_to_json(SortOrder()) == {"order-id": 0, "fields": []}


def test_words_may_be_in_capitals() -> None:
    read = sort_order_from_json(order({**FIELD, "direction": "ASC", "null-order": "NULLS-FIRST"}))
    assert read.fields[0].direction is SortDirection.ASC
    assert read.fields[0].null_order is NullOrder.NULLS_FIRST


@pytest.mark.parametrize("name", ["direction", "null-order"])
def test_other_words_are_refused(name: str) -> None:
    with pytest.raises(InvalidMetadataError, match=f"'{name}' of a field of sort order 1"):
        sort_order_from_json(order({**FIELD, name: "sideways"}))
