"""Reads and writes sort orders as JSON (spec: Appendix C, Sort Orders)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from icebergds.spec.json.fields import keyword, required, typed, unknown_members
from icebergds.spec.json.partition import (
    source_ids_from_json,
    source_ids_to_json,
    transform_from_json,
)
from icebergds.spec.sort import NullOrder, SortDirection, SortField, SortOrder


def sort_order_from_json(obj: Mapping[str, Any]) -> SortOrder:
    """Parses a sort order from its JSON object.

    Raises InvalidMetadataError if it is malformed. Unknown transforms are kept.
    """
    order_id = required(obj, "order-id", int, "a sort order")
    where = f"sort order {order_id}"
    fields = tuple(
        _field_from_json(typed(member, dict, f"a field of {where}"), f"a field of {where}")
        for member in required(obj, "fields", list, where)
    )
    return SortOrder(order_id, fields, unknown_members(obj, _ORDER_MEMBERS))


def sort_order_to_json(order: SortOrder) -> dict[str, Any]:
    """The JSON object of a sort order."""
    return {
        "order-id": order.order_id,
        "fields": [_field_to_json(field) for field in order.fields],
        **order.unknown,
    }


_ORDER_MEMBERS = frozenset({"order-id", "fields"})
_FIELD_MEMBERS = frozenset({"transform", "source-id", "source-ids", "direction", "null-order"})


def _field_from_json(obj: Mapping[str, Any], where: str) -> SortField:
    source_ids = source_ids_from_json(obj, where)
    return SortField(
        source_ids=source_ids,
        transform=transform_from_json(required(obj, "transform", str, where), source_ids),
        direction=keyword(obj, "direction", SortDirection, where),
        null_order=keyword(obj, "null-order", NullOrder, where),
        unknown=unknown_members(obj, _FIELD_MEMBERS),
    )


def _field_to_json(field: SortField) -> dict[str, Any]:
    return {
        "transform": str(field.transform),
        **source_ids_to_json(field.source_ids),
        "direction": field.direction.value,
        "null-order": field.null_order.value,
        **field.unknown,
    }
