"""Scans of snapshots and tables are compared: columns, files and rows."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from built.tables import TableBuilder
from hypothesis import given, strategies as st
from strategies.every_type import EVERY_TYPE, values_of

from icebergds import (
    Catalog,
    Difference,
    InvalidOptionError,
    NestedField,
    Schema,
    Table,
    load_catalog,
    load_table,
)
from icebergds.formats.arrow.types import schema_to_arrow, to_array
from icebergds.spec.types import DATE, INT, LONG, STRING, TIMESTAMP

_TEXT = NestedField(2, "b", STRING)
_NAMES = ["one", "two", None]
_ROWS = st.lists(st.tuples(st.integers(1, 6), st.sampled_from(_NAMES)), max_size=8)


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    return load_catalog("lake", warehouse=tmp_path)


def rows(pairs: list[tuple[int, str | None]]) -> pa.Table:
    columns = [pa.array(column) for column in zip(*pairs, strict=True)] if pairs else [[], []]
    kinds = [("id", pa.int64()), ("name", pa.string())]
    return pa.table(columns, schema=pa.schema(kinds))


def pairs(table: pa.Table | None) -> Counter[tuple[int, str | None]]:
    assert table is not None
    return Counter((row["id"], row["name"]) for row in table.to_pylist())


def snapshots(table: Table) -> list[int]:
    return [each.snapshot_id for each in table.snapshots()]


@given(before=_ROWS, after=_ROWS)
def test_rows_of_two_tables_differ_as_bags(
    tmp_path_factory: pytest.TempPathFactory,
    before: list[tuple[int, str | None]],
    after: list[tuple[int, str | None]],
) -> None:
    catalog = load_catalog("lake", warehouse=tmp_path_factory.mktemp("lake"))
    tables = []
    for name, given_rows in (("db.a", before), ("db.b", after)):
        table = catalog.create_table(name, "id bigint, name string")
        table.append(rows(given_rows[:3]))
        table.append(rows(given_rows[3:]))
        tables.append(table)
    found = tables[0].scan().diff(tables[1].scan())
    assert pairs(found.removed) == Counter(before) - Counter(after)
    assert pairs(found.added) == Counter(after) - Counter(before)
    assert found.is_same == (Counter(before) == Counter(after))


@given(before=_ROWS, after=_ROWS)
def test_rows_with_the_same_key_are_changed(
    tmp_path_factory: pytest.TempPathFactory,
    before: list[tuple[int, str | None]],
    after: list[tuple[int, str | None]],
) -> None:
    old, new = dict(before), dict(after)
    catalog = load_catalog("lake", warehouse=tmp_path_factory.mktemp("lake"))
    table = catalog.create_table("db.a", "id bigint, name string")
    table.append(rows(list(old.items())))
    table.overwrite(rows(list(new.items())))
    table.append(rows([]))
    first, last = (table.scan(snapshot_id=id) for id in snapshots(table)[:2])
    found = first.diff(last, by="id")
    assert pairs(found.removed) == Counter(i for i in old.items() if i[0] not in new)
    assert pairs(found.added) == Counter(i for i in new.items() if i[0] not in old)
    changed = [id for id in old.keys() & new.keys() if old[id] != new[id]]
    assert pairs(found.changed_before) == Counter((id, old[id]) for id in changed)
    assert pairs(found.changed_after) == Counter((id, new[id]) for id in changed)
    assert found.changed_columns.keys() <= {"name"}
    assert sum(map(sum, found.changed_columns.values())) == len(changed)


def test_files_of_both_are_not_read(catalog: Catalog) -> None:
    table = catalog.create_table("db.a", "id bigint, name string")
    table.append(rows([(1, "one")]))
    (old,) = table.inspect.files()["file_path"].to_pylist()
    table.append(rows([(2, "two")]))
    Path(old).unlink()
    first, last = snapshots(table)
    found = table.scan(snapshot_id=first).diff(table.scan(snapshot_id=last))
    assert pairs(found.added) == Counter([(2, "two")])
    assert (found.files_kept.count, found.files_added.count, found.files_removed.count) == (1, 1, 0)
    assert (found.files_added.rows, found.files_kept.rows) == (1, 1)


def test_a_file_with_other_deletes_is_read(catalog: Catalog) -> None:
    table = catalog.create_table("db.a", "id bigint NOT NULL, name string", identifier_fields="id")
    table.append(rows([(1, "one"), (2, "two"), (3, None)]))
    table.delete_keys(pa.table({"id": [2]}), ["id"])
    first, last = snapshots(table)
    found = table.scan(snapshot_id=first).diff(table.scan(snapshot_id=last))
    assert found.by == ("id",)
    assert pairs(found.removed) == Counter([(2, "two")])
    assert pairs(found.added) == Counter()
    assert (found.files_removed.count, found.files_added.count) == (1, 1)


def test_compaction_changes_files_but_no_row(catalog: Catalog) -> None:
    table = catalog.create_table("db.a", "id bigint, name string")
    for id in range(3):
        table.append(rows([(id, "x")]))
    table.rewrite_data_files(options={"rewrite-all": "true"})
    ids = snapshots(table)
    found = table.scan(snapshot_id=ids[-2]).diff(table.scan(snapshot_id=ids[-1]))
    assert (found.files_removed.count, found.files_added.count) == (3, 1)
    assert found.is_same
    summary = table.scan(snapshot_id=ids[-2]).diff(table.scan(), with_rows=False)
    assert summary.removed is None
    assert not summary.is_same


def test_columns_of_one_table_are_compared_by_their_ids(catalog: Catalog) -> None:
    table = catalog.create_table("db.a", "id int, name string, gone string")
    table.append(pa.table({"id": pa.array([1], pa.int32()), "name": ["one"], "gone": ["x"]}))
    first = table.scan()
    with table.update_schema() as update:
        update.update_column("id", "bigint")
        update.rename_column("name", "title")
        update.delete_column("gone")
        update.add_column("new", "date")
    table.append(
        pa.table(
            {"id": [2], "title": ["two"], "new": [None]}, schema=table.scan().to_arrow().schema
        )
    )
    old = table.scan(snapshot_id=snapshots(table)[0])
    found = old.diff(table.scan())
    assert [(each.name, each.before, each.after) for each in found.columns] == [
        ("gone", "gone string", None),
        ("id", "id int", "id long"),
        ("title", "name string", "title string"),
        ("new", None, "new date"),
    ]
    assert found.added is not None
    assert found.added.to_pylist() == [{"id": 2, "title": "two"}]
    assert found.removed is not None
    assert found.removed.num_rows == 0
    assert first.diff(first).is_same
    assert "0 removed, 1 added" in found._repr_html_()


@given(data=st.data())
@pytest.mark.parametrize("field", EVERY_TYPE.fields, ids=lambda field: field.name)
def test_every_type_is_compared(
    tmp_path_factory: pytest.TempPathFactory, field: NestedField, data: st.DataObject
) -> None:
    values = values_of(field.field_type, field.required)
    value, others = data.draw(values), data.draw(st.lists(values, max_size=2))
    catalog = load_catalog("lake", warehouse=tmp_path_factory.mktemp("lake"))
    version = {"format-version": "3"}
    schema = Schema((field, NestedField(1000, "row", LONG, required=True)))
    tables = []
    for name, some in (("db.a", [value, *others]), ("db.b", [*others, value])):
        table = catalog.create_table(name, schema, properties=version)
        table.append(_table(schema, some))
        tables.append(table)
    assert tables[0].scan().diff(tables[1].scan()).is_same
    tables[1].append(_table(schema, [value]))
    found = tables[0].scan().diff(tables[1].scan())
    assert found.added is not None
    assert found.added.num_rows == 1


def _table(schema: Schema, values: list[Any]) -> pa.Table:
    """Rows of these values, and the same number in each."""
    columns = [to_array(schema.fields[0].field_type, values), pa.array([1] * len(values))]
    return pa.Table.from_arrays(columns, schema=schema_to_arrow(schema))


def test_what_cannot_be_compared_is_refused(catalog: Catalog) -> None:
    table = catalog.create_table("db.a", "id bigint, name string")
    with pytest.raises(InvalidOptionError, match="by = 'ids': not a column that both sides have"):
        table.scan().diff(table.scan(), by="ids")
    with pytest.raises(InvalidOptionError, match="this scan has a limit"):
        table.scan().diff(table.scan(limit=1))
    with pytest.raises(InvalidOptionError, match="diff compares the files of one snapshot"):
        table.changes().diff(table.scan())


def test_a_promoted_column_is_compared_in_both_directions(catalog: Catalog) -> None:
    table = catalog.create_table("db.a", "id int, x float")
    rows = {"id": pa.array([1], pa.int32()), "x": pa.array([0.5], pa.float32())}
    table.append(pa.table(rows))
    with table.update_schema() as update:
        update.update_column("id", "bigint")
        update.update_column("x", "double")
    table.append(pa.table({"id": [2**40], "x": [0.1]}))
    old, new = (table.scan(snapshot_id=id) for id in snapshots(table))
    for found, rows_of in ((old.diff(new), "added"), (new.diff(old), "removed")):
        differing = getattr(found, rows_of)
        assert differing.to_pylist() == [{"id": 2**40, "x": 0.1}]


def test_files_of_both_are_read_if_the_filters_differ(catalog: Catalog) -> None:
    table = catalog.create_table("db.a", "id bigint, name string")
    table.append(rows([(1, "one"), (2, "two")]))
    found = table.scan("id > 1").diff(table.scan())
    assert pairs(found.added) == Counter([(1, "one")])
    assert found.removed is not None
    assert found.removed.num_rows == 0
    # One text may be about two columns: names move.
    with table.update_schema() as update:
        update.rename_column("name", "title").add_column("name", "string")
    table.append(rows([(3, None)]))
    found = table.scan("name IS NOT NULL", snapshot_id=snapshots(table)[0]).diff(
        table.scan("name IS NOT NULL")
    )
    assert found.removed is not None
    assert found.removed.num_rows == 2


@pytest.mark.parametrize("drop", [False, True])
def test_columns_that_were_promoted_or_became_optional_are_compared_at_any_depth(
    catalog: Catalog, drop: bool
) -> None:
    table = catalog.create_table(
        "db.a", "id bigint NOT NULL, f float, s struct<a: int, b: int>, m map<string, int>"
    )

    def append(row: dict[str, Any]) -> None:
        schema = table.scan().to_arrow().schema
        table.append(pa.Table.from_pylist([row], schema=schema))

    append({"id": 1, "f": 0.5, "s": {"a": 1, "b": 1}, "m": [("k", 1)]})
    with table.update_schema() as update:
        for name in ("f", "s.a", "s.b", "m.value"):
            update.update_column(name, "double" if name == "f" else "bigint")
        update.make_column_optional("id")
    large = {"id": None, "f": 0.1, "s": {"a": 2**40, "b": 2**40}, "m": [("k", 2**40)]}
    append(large)
    if drop:
        with table.update_schema() as update:
            update.delete_column("f").delete_column("s.b")
    old, new = (table.scan(snapshot_id=id) for id in snapshots(table))
    for found, rows_of in ((old.diff(new), "added"), (new.diff(old), "removed")):
        assert getattr(found, rows_of).to_pylist() == [large]


def test_keys_and_filters_of_columns_that_were_promoted_since_are_compared(
    tmp_path: Path,
) -> None:
    fields = (NestedField(1, "id", INT), NestedField(2, "at", DATE))
    builder = TableBuilder(tmp_path / "t", Schema(fields), format_version=3)
    first = builder.commit(builder.data_file([(1, 10), (2, 20), (3, 30)]))
    second = builder.commit(builder.equality_deletes(["id", "at"], [(1, 10)]))
    wide = (NestedField(1, "id", LONG), NestedField(2, "at", TIMESTAMP))
    builder.evolve(schema=Schema(wide, 1))
    builder.commit(builder.data_file([(2**40, 10**15)]))
    table = load_table(str(builder.location))
    where = "at < DATE'1970-01-25' AND id < 3"
    old, new = (table.scan(where, snapshot_id=id) for id in (first, second))
    assert [found.num_rows for found in _rows_of(old.diff(new))] == [1, 0]
    assert [found.num_rows for found in _rows_of(new.diff(old))] == [0, 1]
    assert [found.num_rows for found in _rows_of(new.diff(table.scan(where)))] == [0, 0]
    assert [found.num_rows for found in _rows_of(old.diff(table.scan()))] == [1, 2]


def _rows_of(found: Difference) -> tuple[pa.Table, pa.Table]:
    assert found.removed is not None
    assert found.added is not None
    return found.removed, found.added


def test_columns_whose_id_another_type_had_are_not_compared(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path / "t", Schema((NestedField(1, "a", LONG), _TEXT)))
    first = builder.data_file([(1, "x"), (2, "y")])
    builder.commit(first)
    # Some engines give the ids of columns to those of a replaced table that have their names.
    builder.evolve(schema=Schema((NestedField(1, "a", STRING), _TEXT), 1))
    builder.commit(builder.data_file([("1", "x"), ("3", "z")]), removed=[first])
    table = load_table(str(builder.location))
    found = table.scan(snapshot_id=snapshots(table)[0]).diff(table.scan())
    assert found.not_compared == ("a",)
    assert [each.to_pylist() for each in _rows_of(found)] == [[{"b": "y"}], [{"b": "z"}]]


def test_row_ids_that_files_got_by_an_upgrade_are_compared(catalog: Catalog) -> None:
    table = catalog.create_table(
        "db.a", "id bigint, name string", properties={"format-version": "2"}
    )
    table.append(rows([(1, "one")]))
    table.upgrade(3)
    table.append(rows([]))
    table.append(rows([(2, "two")]))
    scans = [
        table.scan(columns="id,_row_id", snapshot_id=id)
        for id in (snapshots(table)[0], snapshots(table)[-1])
    ]
    before, after = ({row["id"]: row["_row_id"] for row in s.to_arrow().to_pylist()} for s in scans)
    assert before == {1: None}
    assert None not in after.values()
    found = scans[0].diff(scans[1], by="id")
    assert list(found.changed_columns) == ["_row_id"]
    assert found.files_kept.count == 0


def test_structs_are_keys_even_if_no_row_differs(catalog: Catalog) -> None:
    table = catalog.create_table("db.a", "s struct<t: string, d: decimal(20, 0), n: bigint>, v int")
    schema = table.scan().to_arrow().schema
    table.append(pa.Table.from_pylist([{"s": {"t": "x", "d": None, "n": 1}, "v": 1}], schema))
    assert table.scan().diff(table.scan(), by="s").is_same


def test_two_tables_without_a_uuid_are_two(tmp_path: Path) -> None:
    tables = []
    for name in ("a", "b"):
        builder = TableBuilder(
            tmp_path / name,
            Schema((NestedField(1, "id" if name == "a" else "x", LONG), NestedField(2, "y", LONG))),
            format_version=1,
        )
        builder.commit(builder.data_file([(1, 2)]))
        metadata = Path(builder.metadata_location)
        kept = {k: v for k, v in json.loads(metadata.read_text()).items() if k != "table-uuid"}
        metadata.write_text(json.dumps(kept))
        tables.append(load_table(str(builder.location)))
    found = tables[0].scan().diff(tables[1].scan())
    assert [(each.before, each.after) for each in found.columns] == [
        ("id long", None),
        (None, "x long"),
    ]


def test_tables_without_a_common_column_are_not_compared(catalog: Catalog) -> None:
    one, other = catalog.create_table("db.a", "id int"), catalog.create_table("db.b", "x int")
    with pytest.raises(InvalidOptionError, match="have no column in common"):
        one.scan().diff(other.scan())
    assert not one.scan().diff(other.scan(), with_rows=False).is_same
