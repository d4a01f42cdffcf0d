"""Any two snapshots of random tables differ by the rows that the model says."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from effort import examples
from hypothesis import HealthCheck, given, strategies as st
from strategies.random_tables import RandomTable
from strategies.table_model import comparable, output, rows_of

from icebergds import load_table
from icebergds.expr.names import quote_name
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.schema import Schema
from icebergds.spec.types import (
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
    is_scalar,
)

_Row = tuple[Any, ...]
_Condition = tuple[str | None, Callable[[Any], bool], NestedField | None]


@examples(160, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.data())
def test_two_snapshots_differ_by_the_rows_of_the_model(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as directory:
        is_wide = data.draw(st.booleans())
        made = RandomTable(data.draw, Path(directory) / "t", is_wide=is_wide)
        for _ in range(data.draw(st.integers(2, 8))):
            made.step()
        metadata = made.builder.metadata
        if not metadata.snapshots:
            return
        table = load_table(str(made.builder.location))
        ids = [data.draw(st.sampled_from(metadata.snapshots)).snapshot_id for _ in range(2)]
        schemas = [_schema_of(metadata, each) for each in ids]
        conditions = [data.draw(_conditions(schema)) for schema in schemas]
        old, new = (
            table.scan(condition[0], snapshot_id=each)
            for each, condition in zip(ids, conditions, strict=True)
        )
        both = {field.field_id for field in schemas[0].fields}
        shared = [_newest(f, metadata.schema()) for f in schemas[1].fields if f.field_id in both]
        if not shared:
            return
        before, after = (
            Counter(_rows(made, each, condition, shared))
            for each, condition in zip(ids, conditions, strict=True)
        )
        by = data.draw(st.lists(st.sampled_from([f.name for f in shared]), unique=True))
        found = old.diff(new, by=by)
        assert found.removed is not None
        assert found.added is not None
        assert found.changed_before is not None
        changed = found.changed_before.num_rows
        assert found.removed.num_rows + changed == (before - after).total()
        assert found.added.num_rows + changed == (after - before).total()
        keys = [at for at, field in enumerate(shared) if field.name in by]
        assert changed == _paired(before - after, after - before, keys)


def _conditions(schema: Schema) -> st.SearchStrategy[_Condition]:
    """A filter as text, what it does with a value, and its column."""
    columns = [f for f in schema.fields if is_scalar(f.field_type)]
    every: _Condition = (None, lambda value: True, None)
    if not columns:
        return st.just(every)
    column = st.sampled_from(columns)
    return st.just(every) | column.flatmap(
        lambda f: st.sampled_from(
            [
                (f"{quote_name((f.name,))} IS NULL", lambda value: value is None, f),
                (f"{quote_name((f.name,))} IS NOT NULL", lambda value: value is not None, f),
            ]
        )
    )


def _schema_of(metadata: TableMetadata, snapshot_id: int) -> Schema:
    found = metadata.snapshots_by_id[snapshot_id].schema_id
    return metadata.schema() if found is None else metadata.schema_by_id(found)


def _newest(field: NestedField, current: Schema) -> NestedField:
    """The field with the types that it and what is in it were promoted to."""

    def newest(inner: NestedField) -> NestedField:
        found = current.find_field(inner.field_id)
        kind: IcebergType = inner.field_type if found is None else found.field_type
        match inner.field_type:
            case StructType(fields=fields):
                kind = StructType(tuple(map(newest, fields)))
            case ListType() | MapType():
                # Elements are not promoted by random tables.
                kind = inner.field_type
        return replace(inner, field_type=kind)

    return newest(field)


def _rows(
    made: RandomTable, snapshot_id: int, condition: _Condition, columns: Sequence[NestedField]
) -> Iterator[_Row]:
    """The rows of a snapshot by the model, as values that can be compared and counted."""
    state, facts = made.states[snapshot_id], made.facts
    _, holds, tested = condition
    for row in rows_of(state, facts):
        is_meant = tested is None or holds(output(row, tested, state, facts))
        if is_meant and not row.is_deleted:
            yield tuple(_frozen(output(row, each, state, facts)) for each in columns)


def _frozen(value: Any) -> Any:
    match value:
        case list() | tuple():
            return tuple(map(_frozen, value))
        case dict():
            return tuple((key, _frozen(each)) for key, each in value.items())
    return comparable(value)


def _paired(removed: Counter[_Row], added: Counter[_Row], keys: Sequence[int]) -> int:
    """How many keys are unique on each side, and on both."""
    if not keys:
        return 0
    sides = [Counter(tuple(row[k] for k in keys) for row in s.elements()) for s in (removed, added)]
    return sum(number == 1 and sides[1][key] == 1 for key, number in sides[0].items())
