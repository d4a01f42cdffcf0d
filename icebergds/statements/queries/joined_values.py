"""Prunes a table by the values of a small table that it is joined with (dynamic pruning).

In `fact JOIN dim ON fact.day = dim.day WHERE dim.holiday`, only the days of holidays matter. If one
table is partitioned or sorted by the column and the other is small, the small table's values are
read while the query is planned.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from icebergds.errors import IcebergError
from icebergds.expr.bind import bind
from icebergds.expr.names import quote_name, resolve
from icebergds.expr.nodes import FALSE, TRUE, Expr, Operation, Predicate, and_, relaxed
from icebergds.expr.sql_text import sql_text
from icebergds.operations.read.snapshot_read import resolve_read
from icebergds.spec.schema import Schema
from icebergds.spec.types import (
    DATE,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMPTZ,
    DecimalType,
    NestedField,
)
from icebergds.statements.names.tables import NamedTable
from icebergds.statements.queries.analysis import Equality, Path
from icebergds.statements.queries.relations import Relation

_LOG = logging.getLogger(__name__)
# Limits for the table that is read while planning.
_MOST_ROWS = 200_000
_MOST_BYTES = 32 << 20
# Fewer files are not worth it.
_FEWEST_FILES = 4
# More values are compared by their range only.
_MOST_VALUES = 1000
_TYPES = (INT, LONG, DATE, STRING, TIMESTAMP, TIMESTAMPTZ)


def with_joined_values(
    relations: Sequence[Relation], conditions: Mapping[int, Expr], equalities: Sequence[Equality]
) -> dict[int, Expr]:
    """Adds to the conditions of relations what the values of small tables imply.

    Args:
        conditions: by the number of the relation.
    """
    found = dict(conditions)
    for each in equalities:
        said = _said(relations, conditions, each)
        if said is not None:
            found[each.number] = and_(found.get(each.number, TRUE), said)
    return found


def _said(
    relations: Sequence[Relation], conditions: Mapping[int, Expr], equality: Equality
) -> Expr | None:
    pruned, small = relations[equality.number], relations[equality.by]
    field, by = _field(pruned, equality.column), _field(small, equality.by_column)
    if field is None or by is None:
        return None
    if field.field_type not in _TYPES and not isinstance(field.field_type, DecimalType):
        return None
    if field.field_type != by.field_type or pruned.schema is None:
        return None
    condition = conditions.get(equality.by, TRUE)
    if not _is_arranged_by(pruned, field) or not _is_small(small, is_chosen=condition is not TRUE):
        return None
    values = _values(small, equality.by_column, condition)
    if values is None:
        return None
    name = quote_name(equality.column)
    _LOG.info(
        "table %s: only %d values of %s matter, which %s has",
        pruned.name,
        len(values),
        name,
        small.name,
    )
    try:
        return _among(values, name, pruned.schema)
    except (OverflowError, ValueError):
        # Python cannot represent these dates or times.
        return None


def _among(values: pa.Array, name: str, schema: Schema) -> Expr:
    if not len(values):
        return FALSE
    if len(values) <= _MOST_VALUES:
        return bind(Predicate(Operation.IN, name, tuple(values.to_pylist())), schema, False)
    ends = pc.min_max(values).as_py()
    low = Predicate(Operation.GT_EQ, name, (ends["min"],))
    return bind(and_(low, Predicate(Operation.LT_EQ, name, (ends["max"],))), schema, False)


def _field(relation: Relation, path: Path) -> NestedField | None:
    source = relation.source
    if relation.schema is None or relation.reference.suffix.is_sampled:
        return None
    if isinstance(source, NamedTable) and source.metadata_table is not None:
        return None
    try:
        return resolve(quote_name(path), relation.schema, case_sensitive=False)
    except IcebergError:
        return None


def _is_arranged_by(relation: Relation, field: NestedField) -> bool:
    """Whether a table is partitioned or sorted by a column, so that files differ in its values."""
    source = relation.source
    if not isinstance(source, NamedTable) or _total(relation, "total-data-files") < _FEWEST_FILES:
        return False
    metadata = source.table.metadata
    partitioned = {each for spec in metadata.partition_specs for each in spec.source_ids}
    order = metadata.sort_order().fields
    return field.field_id in partitioned or bool(order and order[0].source_id == field.field_id)


def _is_small(relation: Relation, *, is_chosen: bool) -> bool:
    """Whether a table is cheap to read; the limits are higher if a condition filters its rows."""
    factor = 4 if is_chosen else 1
    rows, size = _total(relation, "total-records"), _total(relation, "total-files-size")
    return 0 <= rows <= factor * _MOST_ROWS and 0 <= size <= factor * _MOST_BYTES


def _total(relation: Relation, name: str) -> int:
    """A total from the summary of the snapshot that is read; -1 if it is not known."""
    source = relation.source
    if not isinstance(source, NamedTable) or relation.schema is None:
        return -1
    state = source.table._state
    snapshot, _ = resolve_read(relation.options, state.metadata, state.name)
    text = "" if snapshot is None else snapshot.summary.get(name, "")
    return int(text) if text.isdecimal() else -1


def _values(relation: Relation, path: Path, condition: Expr) -> pa.Array | None:
    """The distinct values of a column in the rows that match a condition; None if too many."""
    source = relation.source
    assert isinstance(source, NamedTable), "it is a table"
    assert relation.schema is not None, "it is read by its schema"
    scan = source.table.scan(
        filter=None if condition is TRUE else sql_text(relaxed(condition), relation.schema),
        columns=[quote_name(path)],
        options=relation.given,
    )
    found: list[pa.Array] = []
    rows = 0
    for batch in scan.to_arrow_batch_reader():
        rows += batch.num_rows
        if rows > _MOST_ROWS:
            return None
        column = batch.column(0)
        for _ in path[1:]:
            column = pc.struct_field(column, [0])
        found.append(pc.unique(column))
    return pc.unique(pa.chunked_array(found or [pa.array([])])).drop_null()
