"""Prunes a table by the values of a small table that it is joined with (dynamic pruning).

In `fact JOIN dim ON fact.day = dim.day WHERE dim.holiday`, only the days of holidays matter. If the
files of one table differ in the values of the column, and little of the other is to be read, its
values are read while the query is planned.
"""

from __future__ import annotations

import logging
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from icebergds.errors import IcebergError
from icebergds.expr.bind import bind
from icebergds.expr.bounds import decode_bounds
from icebergds.expr.names import quote_name, resolve
from icebergds.expr.nodes import FALSE, TRUE, Expr, Operation, Predicate, and_
from icebergds.operations.read.few_rows import batches_of
from icebergds.operations.read.planned_scan import PlannedScan, plan_scan
from icebergds.operations.read.snapshot_read import resolve_read
from icebergds.spec.manifest import DataFile
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
# Limits for what is read while planning; higher if a condition chooses the rows.
_MOST_ROWS = 200_000
_MOST_BYTES = 32 << 20
# Where bounds may tell files apart, but neither partitions nor the order do, what is read must be
# smaller by this factor.
_SMALLER = 10
# Fewer files are not worth it, and to compare the bounds of more takes too long.
_FEWEST_FILES, _MOST_FILES = 4, 20_000
# Of a table whose values are read.
_MOST_PLANNED = 2_000
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
    if not isinstance(small.source, NamedTable) or not isinstance(pruned.source, NamedTable):
        return None
    if _total(pruned, "total-data-files") < _FEWEST_FILES:
        return None
    is_chosen = condition is not TRUE
    is_arranged = _is_arranged_by(pruned.source, field)
    # A large table is not even planned for this.
    if not (is_chosen or (is_arranged and _is_small(small))):
        return None
    if not 0 <= _total(small, "total-data-files") <= _MOST_PLANNED:
        return None
    state = small.source.table._state
    assert small.schema is not None, "it has the column"
    scan = plan_scan(
        state,
        small.options,
        for_native=False,
        rechecked=condition,
        columns=small.schema.select([by.field_id]),
    )
    size = _size(scan, is_chosen=is_chosen)
    if size is None:
        return None
    if not is_arranged:
        is_far_smaller = _SMALLER * size <= _total(pruned, "total-files-size")
        if not is_far_smaller or not _bounds_differ(pruned, field):
            return None
    values = _values(scan, equality.by_column)
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


def _is_arranged_by(source: NamedTable, field: NestedField) -> bool:
    """Whether a table is partitioned or sorted by a column, so that files differ in its values."""
    metadata = source.table.metadata
    partitioned = {each for spec in metadata.partition_specs for each in spec.source_ids}
    order = metadata.sort_order().fields
    return field.field_id in partitioned or bool(order and order[0].source_id == field.field_id)


def _is_small(relation: Relation) -> bool:
    """Whether a table is cheap to read as a whole."""
    rows, size = _total(relation, "total-records"), _total(relation, "total-files-size")
    return 0 <= rows <= _MOST_ROWS and 0 <= size <= _MOST_BYTES


def _bounds_differ(relation: Relation, field: NestedField) -> bool:
    """Whether a value is within the bounds of less than half of a table's files, on average."""
    source = relation.source
    assert isinstance(source, NamedTable), "it is a table"
    state = source.table._state
    snapshot, _ = resolve_read(relation.options, state.metadata, state.name)
    if snapshot is None or _total(relation, "total-data-files") > _MOST_FILES:
        return False
    key = (state.metadata.table_uuid, snapshot.snapshot_id, field.field_id)
    known = _differ.get(key)
    if known is None:
        scan = plan_scan(
            state, relation.options, for_native=False, stats_of=frozenset({field.field_id})
        )
        known = _tell_apart(field, [file.entry.data_file for file in scan.files])
        while len(_differ) >= _MOST_KNOWN:
            _differ.pop(next(iter(_differ)), None)
        _differ[key] = known
    return known


# By the table, the snapshot and the column.
_differ: dict[tuple[str | None, int, int], bool] = {}
_MOST_KNOWN = 256


def _tell_apart(field: NestedField, files: Sequence[DataFile]) -> bool:
    found = [
        decode_bounds(
            field.field_type,
            file.lower_bounds.get(field.field_id),
            file.upper_bounds.get(field.field_id),
            True,
            file.file_format,
        )
        for file in files
    ]
    bounds = [(each.lower, each.upper) for each in found if None not in (each.lower, each.upper)]
    unknown = len(found) - len(bounds)
    lowest, highest = sorted(low for low, _ in bounds), sorted(high for _, high in bounds)
    # The files that begin at or before where one begins, without those that end before it.
    within = sum(bisect_right(lowest, low) - bisect_left(highest, low) for low, _ in bounds)
    return bool(bounds) and within / len(bounds) + unknown < len(found) / 2


def _size(scan: PlannedScan, *, is_chosen: bool) -> int | None:
    """The bytes of the files of a scan; None if they are many, or have many rows.

    Args:
        is_chosen: whether a condition chooses the rows.
    """
    files = [file.entry.data_file for file in scan.files]
    factor = 4 if is_chosen else 1
    rows, size = (
        sum(file.record_count for file in files),
        sum(file.file_size_in_bytes for file in files),
    )
    return size if rows <= factor * _MOST_ROWS and size <= factor * _MOST_BYTES else None


def _total(relation: Relation, name: str) -> int:
    """A total from the summary of the snapshot that is read; -1 if it is not known."""
    source = relation.source
    if not isinstance(source, NamedTable) or relation.schema is None:
        return -1
    state = source.table._state
    snapshot, _ = resolve_read(relation.options, state.metadata, state.name)
    text = "" if snapshot is None else snapshot.summary.get(name, "")
    return int(text) if text.isdecimal() else -1


def _values(scan: PlannedScan, path: Path) -> pa.Array | None:
    """The distinct values of the column of a scan; None if there are too many rows."""
    found: list[pa.Array] = []
    rows = 0
    for batch in batches_of(scan):
        rows += batch.num_rows
        if rows > _MOST_ROWS:
            return None
        column = batch.column(0)
        for _ in path[1:]:
            column = pc.struct_field(column, [0])
        found.append(pc.unique(column))
    return pc.unique(pa.chunked_array(found or [pa.array([])])).drop_null()
