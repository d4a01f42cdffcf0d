"""Applies updates of sort orders: adds, sets the default (spec: Sorting)."""

from __future__ import annotations

from dataclasses import replace

from icebergds.errors import InvalidMetadataError
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.schema import Schema
from icebergds.spec.sort import SortOrder
from icebergds.spec.transforms import UnknownTransform
from icebergds.spec.updates.transform_rules import check_source_columns


def add_sort_order(metadata: TableMetadata, order: SortOrder) -> tuple[TableMetadata, int]:
    """Adds a sort order; returns the metadata and the order's id, 0 if it is unsorted.

    Raises InvalidMetadataError if it does not fit the current schema.
    """
    same = next((known for known in metadata.sort_orders if known.fields == order.fields), None)
    if same is not None:
        return metadata, same.order_id
    if not order.is_sorted:
        added = SortOrder()
    else:
        check_sort_order(order, metadata.schema())
        for field in order.fields:
            if isinstance(field.transform, UnknownTransform):
                raise InvalidMetadataError(
                    f"the sort order's transform {field.transform} is unknown"
                )
        highest = max((known.order_id for known in metadata.sort_orders), default=0)
        added = replace(order, order_id=highest + 1)
    return replace(metadata, sort_orders=(*metadata.sort_orders, added)), added.order_id


def set_default_sort_order(metadata: TableMetadata, order_id: int) -> TableMetadata:
    """Sets the default sort order.

    Raises InvalidMetadataError if there is no such order.
    """
    if order_id == metadata.default_sort_order_id:
        return metadata
    known = sorted(order.order_id for order in metadata.sort_orders)
    if order_id not in known:
        raise InvalidMetadataError(
            f"sort order {order_id} cannot be the default: the table has only sort orders {known}"
        )
    return replace(metadata, default_sort_order_id=order_id)


def check_sort_order(order: SortOrder, schema: Schema) -> None:
    """Raises InvalidMetadataError if a sort order does not fit a schema."""
    for position, field in enumerate(order.fields, 1):
        what = f"field {position} of the sort order"
        check_source_columns(field.source_ids, field.transform, schema, what)
