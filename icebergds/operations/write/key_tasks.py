"""Changes rows by key in a task that must order them or refuse duplicate keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from icebergds.errors import InvalidDataError
from icebergds.operations.write.cleanup import delete_files
from icebergds.write.changes.deltas import DeltaFiles
from icebergds.write.changes.keyed_delta import KeyedDeltaPlan, write_keyed_delta


def write_distinct(
    plan: KeyedDeltaPlan,
    keys: str,
    batches: Iterable[pa.RecordBatch],
    *,
    partition_id: int,
    attempt_id: int,
) -> DeltaFiles:
    """Upserts rows whose keys must be distinct, because no order says which of two rows wins."""
    rows = 0

    def counted() -> Iterator[pa.RecordBatch]:
        nonlocal rows
        for batch in batches:
            rows += batch.num_rows
            yield batch

    delta = write_keyed_delta(plan, counted(), partition_id=partition_id, attempt_id=attempt_id)
    distinct = delta.counts["upserted"]
    if distinct < rows:
        delete_files(plan.write.io, delta.all_files)
        raise InvalidDataError(
            f"table {plan.write.matching.table}: {rows} rows to upsert have only {distinct} "
            f"different keys ({keys}); drop the duplicates, or set "
            "option('upsert-order-by', '<column>') or order_by= to a column whose greatest value "
            "wins"
        )
    return delta


def write_ordered(
    plan: KeyedDeltaPlan,
    order_by: str,
    extra: str | None,
    is_ordered: bool,
    batches: Iterable[pa.RecordBatch],
    *,
    partition_id: int,
    attempt_id: int,
) -> DeltaFiles:
    """Applies changes in the order of a column, which is not written if it is `extra`."""
    ordered = batches if is_ordered else _sorted(batches, order_by)
    rows = ordered if extra is None else (batch.drop_columns([extra]) for batch in ordered)
    return write_keyed_delta(plan, rows, partition_id=partition_id, attempt_id=attempt_id)


def _sorted(batches: Iterable[pa.RecordBatch], order_by: str) -> list[pa.RecordBatch]:
    """Sorts the rows of a task by a column as Spark does: nulls first, NaN last, stable."""
    given = list(batches)
    if not given:
        return []
    table = pa.Table.from_batches(given)
    values = table[order_by]
    is_nan = pc.is_nan(values) if pa.types.is_floating(values.type) else pc.is_null(values)
    ranks = {
        "valid": pc.is_valid(values),
        "nan": pc.and_not(is_nan, pc.is_null(values)).fill_null(False),
        "value": values,
    }
    order = pc.sort_indices(pa.table(ranks), sort_keys=[(name, "ascending") for name in ranks])
    ordered: list[pa.RecordBatch] = table.take(order).to_batches()
    return ordered
