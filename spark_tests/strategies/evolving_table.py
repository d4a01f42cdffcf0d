"""Tables that are shaped and filled at random by their public verbs, and a plain model of them."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
from hypothesis import strategies as st

from icebergds import Table, load_catalog
from icebergds.formats.arrow.types import schema_to_arrow
from icebergds.spec.schema import Schema
from icebergds.spec.snapshot import MAIN_BRANCH, RefType

_T = TypeVar("_T")
Draw = Callable[[st.SearchStrategy[_T]], _T]
ModelRow = dict[int, Any]

_DAY = datetime.date(2026, 1, 1)
# By the type as text: values, and the wider type with what becomes of a value.
_VALUES: dict[str, list[Any]] = {
    "int": [0, 1, -7, 2**31 - 1],
    "long": [0, 5, 2**40],
    "float": [0.5, -2.0],
    "double": [0.25, 1e300],
    "string": ["", "a", "Ünïcode"],
    "decimal(9, 2)": [Decimal("1.50"), Decimal("-3.25")],
    "decimal(12, 2)": [Decimal("1.50"), Decimal("1234567890.12")],
    "date": [_DAY, datetime.date(1969, 12, 31)],
    "timestamp": [datetime.datetime(2026, 1, 1, 12), datetime.datetime(1969, 12, 31)],
}
_WIDER = {"int": "long", "float": "double", "decimal(9, 2)": "decimal(12, 2)"}
_WIDER_V3 = {**_WIDER, "date": "timestamp"}
# As text of Spark's SQL.
_SQL = {"long": "bigint", "timestamp": "timestamp_ntz"}
_TRANSFORMS = {
    "int": ["identity", "bucket[2]", "truncate[3]"],
    "long": ["identity", "bucket[2]", "truncate[3]"],
    "string": ["identity", "bucket[2]", "truncate[1]"],
    "decimal(9, 2)": ["bucket[2]", "identity"],
    "decimal(12, 2)": ["bucket[2]", "identity"],
    "date": ["month", "day", "identity", "bucket[2]"],
    "timestamp": ["day", "hour", "month"],
}
_NAMES = ("a", "b", "c", "d", "e")


class EvolvingTable:
    """A table under change, and the rows that it should have, by column id.

    Each branch and tag has rows of its own. The column `id` is never changed.
    """

    def __init__(self, draw: Draw[Any], warehouse: Path, name: str, version: int) -> None:
        self._draw = draw
        catalog = load_catalog("lake", warehouse=str(warehouse))
        catalog.create_namespace_if_not_exists("db")
        formats = st.sampled_from(["parquet", "parquet", "orc", "avro"])
        properties = {"format-version": str(version), "write.format.default": draw(formats)}
        self.table = catalog.create_table(
            f"db.{name}", "id bigint NOT NULL, a int, s struct<x: int>", properties=properties
        )
        self.rows: dict[str, list[ModelRow]] = {MAIN_BRANCH: []}
        self._next_id = 0

    def step(self) -> None:
        """One change: of the schema, the layout, the references, or rows."""
        steps = [self._append] * 3 + [self._delete, self._add, self._drop, self._rename]
        steps += [self._promote, self._move, self._partition, self._reference, self._transact]
        self._one_of(steps)(self.table)

    def expected(self, ref: str = MAIN_BRANCH) -> list[dict[str, Any]]:
        """The rows of a branch by the columns that the table has now, of a tag by its own."""
        fields = self._schema_of(ref).fields
        rows = [
            {field.name: _shown(field, row.get(field.field_id)) for field in fields}
            for row in self.rows[ref]
        ]
        return sorted(rows, key=lambda row: row["id"])

    def found(self, ref: str = MAIN_BRANCH) -> list[dict[str, Any]]:
        """The rows that a scan finds, in order of `id`."""
        of = {} if ref == MAIN_BRANCH else {str(self.table.refs()[ref].ref_type): ref}
        if self.table.current_snapshot() is None and not of:
            return []
        return sorted(self.table.scan(**of).to_arrow().to_pylist(), key=lambda row: row["id"])

    def _schema_of(self, ref: str) -> Schema:
        metadata = self.table.metadata
        known = metadata.refs.get(ref)
        if known is None or known.ref_type is RefType.BRANCH:
            return metadata.schema()
        schema_id = metadata.snapshots_by_id[known.snapshot_id].schema_id
        assert schema_id is not None
        return metadata.schema_by_id(schema_id)

    # Rows.

    def _append(self, table: Table) -> None:
        schema = table.schema()
        new: list[dict[str, Any]] = []
        for _ in range(self._draw(st.integers(1, 3))):
            row: dict[str, Any] = {"id": self._next_id}
            self._next_id += 1
            for field in schema.fields:
                if field.name == "id":
                    continue
                kind = str(field.field_type)
                if kind in _VALUES:
                    row[field.name] = self._one_of([*_VALUES[kind], None])
                else:
                    inner = field.field_type.fields  # type: ignore[union-attr]
                    row[field.name] = {
                        f.name: self._one_of([*_VALUES[str(f.field_type)], None]) for f in inner
                    }
            new.append(row)
        table.append(pa.Table.from_pylist(new, schema_to_arrow(schema)))
        for row in new:
            self.rows[MAIN_BRANCH].append(
                {field.field_id: _stored(field, row.get(field.name)) for field in schema.fields}
            )

    def _delete(self, table: Table) -> None:
        ids = [row[1] for row in self.rows[MAIN_BRANCH]]
        if not ids or table.metadata.format_version == 1:
            return
        gone = self._draw(st.lists(st.sampled_from(ids), unique=True, max_size=3))
        if gone:
            table.delete_keys(pa.table({"id": pa.array(gone, pa.int64())}), keys=["id"])
            rows = self.rows[MAIN_BRANCH]
            self.rows[MAIN_BRANCH] = [row for row in rows if row[1] not in gone]

    # Columns.

    def _add(self, table: Table) -> None:
        known = {field.name for field in table.schema().fields}
        names = [name for name in _NAMES if name not in known]
        kind = self._one_of(list(_VALUES))
        if "s" in known and self._rarely():
            inner = table.schema().find_field(table.schema().ids_by_name["s"])
            assert inner is not None
            taken = {f.name for f in inner.field_type.fields}  # type: ignore[union-attr]
            free = [name for name in ("x", "y", "z") if name not in taken]
            if free:
                update = table.update_schema()
                update.add_column(f"s.{free[0]}", _SQL.get(kind, kind)).commit()
            return
        if not names:
            return
        value = None
        if table.metadata.format_version == 3 and self._draw(st.booleans()):
            value = self._one_of(_VALUES[kind])
        name = self._one_of(names)
        table.update_schema().add_column(name, _SQL.get(kind, kind), default_value=value).commit()
        field_id = table.schema().find_id(name)
        assert field_id is not None
        for rows in self.rows.values():
            for row in rows:
                row[field_id] = value

    def _drop(self, table: Table) -> None:
        names = self._free_columns(table)
        if names:
            table.update_schema().delete_column(self._one_of(names)).commit()

    def _rename(self, table: Table) -> None:
        known = [field.name for field in table.schema().fields if field.name not in ("id", "s")]
        free = [name for name in _NAMES if name not in known]
        if len(known) > 1 and self._draw(st.booleans()):
            one, other = known[:2]
            update = table.update_schema().rename_column(one, "swap")
            update.rename_column(other, one).rename_column("swap", other).commit()
        elif known and free:
            table.update_schema().rename_column(self._one_of(known), self._one_of(free)).commit()

    def _promote(self, table: Table) -> None:
        wider = _WIDER_V3 if table.metadata.format_version == 3 else _WIDER
        parts = [part for spec in table.metadata.partition_specs for part in spec.fields]
        # The values of their partitions would be others.
        fixed = {
            part.source_id for part in parts if str(part.transform) in ("identity", "bucket[2]")
        }
        fields = [
            field
            for field in table.schema().fields
            if str(field.field_type) in wider
            and not (str(field.field_type) == "date" and field.field_id in fixed)
        ]
        if fields:
            field = self._one_of(fields)
            kind = wider[str(field.field_type)]
            table.update_schema().update_column(field.name, _SQL.get(kind, kind)).commit()

    def _move(self, table: Table) -> None:
        names = [field.name for field in table.schema().fields]
        one, other = self._draw(st.permutations(names))[:2] if len(names) > 1 else ("id", "id")
        if one != other:
            table.update_schema().move_after(one, other).move_first("id").commit()

    # Layout, references and transactions.

    def _partition(self, table: Table) -> None:
        update = table.update_spec()
        live = [part.name for part in table.spec().fields if str(part.transform) != "void"]
        for name in live:
            if self._draw(st.booleans()):
                update.remove_field(name)
        fields = [f for f in table.schema().fields if str(f.field_type) in _TRANSFORMS]
        if fields and self._draw(st.booleans()):
            field = self._one_of(fields)
            transform = self._one_of(_TRANSFORMS[str(field.field_type)])
            name = f"p{field.field_id}_{transform.split('[')[0]}"
            if name not in live:
                update.add_field(field.name, transform, name)
        update.commit()

    def _reference(self, table: Table) -> None:
        if table.current_snapshot() is None:
            return
        name = f"r{len(self.rows)}"
        manage = table.manage_snapshots()
        if self._draw(st.booleans()):
            manage.create_tag(name).commit()
        else:
            manage.create_branch(name).commit()
        self.rows[name] = [dict(row) for row in self.rows[MAIN_BRANCH]]

    def _transact(self, table: Table) -> None:
        with table.transaction() as tx:
            for _ in range(self._draw(st.integers(1, 3))):
                self._one_of([self._append, self._add, self._rename, self._delete])(tx)

    def _free_columns(self, table: Table) -> list[str]:
        used = {part.source_id for part in table.spec().fields if str(part.transform) != "void"}
        return [
            field.name
            for field in table.schema().fields
            if field.field_id not in used and field.name != "id"
        ]

    def _rarely(self) -> bool:
        return bool(self._draw(st.integers(0, 3)) == 0)

    def _one_of(self, items: Sequence[Any]) -> Any:
        return self._draw(st.sampled_from(list(items)))


def _stored(field: Any, value: Any) -> Any:
    """A value as the model keeps it: structs by the ids of their fields."""
    if isinstance(value, dict):
        return {inner.field_id: value.get(inner.name) for inner in field.field_type.fields}
    return value


def _shown(field: Any, value: Any) -> Any:
    """A value as a scan gives it, in the column's present type."""
    if isinstance(value, dict):
        return {inner.name: value.get(inner.field_id) for inner in field.field_type.fields}
    is_date = isinstance(value, datetime.date) and not isinstance(value, datetime.datetime)
    if is_date and str(field.field_type) == "timestamp":
        return datetime.datetime.combine(value, datetime.time())
    return value
