"""Sort orders of table metadata: added, made the default (spec: Sorting)."""

from __future__ import annotations

from dataclasses import replace

from icebergds.errors import InvalidMetadataError
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.schema import Schema
from icebergds.spec.sort import SortOrder
from icebergds.spec.transforms import UnknownTransform
from icebergds.spec.updates.transform_rules import check_source_columns


def add_sort_order(metadata: TableMetadata, order: SortOrder) -> tuple[TableMetadata, int]:
    """The table with a sort order, and the id that the order has there: 0 for the unsorted one.

    Raises InvalidMetadataError where the current schema does not admit it.
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
                    f"the sort order's transform {field.transform} is not known"
                )
        highest = max((known.order_id for known in metadata.sort_orders), default=0)
        added = replace(order, order_id=highest + 1)
    return replace(metadata, sort_orders=(*metadata.sort_orders, added)), added.order_id


def set_default_sort_order(metadata: TableMetadata, order_id: int) -> TableMetadata:
    """The table with another default sort order.

    Raises InvalidMetadataError where there is no such order.
    """
    if order_id == metadata.default_sort_order_id:
        return metadata
    known = sorted(order.order_id for order in metadata.sort_orders)
    if order_id not in known:
        raise InvalidMetadataError(
            f"sort order {order_id} cannot be the default: the table has only {known}"
        )
    return replace(metadata, default_sort_order_id=order_id)


def check_sort_order(order: SortOrder, schema: Schema) -> None:
    """Raises InvalidMetadataError where rows of a schema cannot be sorted so."""
    for position, field in enumerate(order.fields, 1):
        what = f"field {position} of the sort order"
        check_source_columns(field.source_ids, field.transform, schema, what)
