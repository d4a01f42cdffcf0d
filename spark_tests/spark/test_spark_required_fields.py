"""Changes of tables whose optional columns have required parts: fields, elements, values of maps.

A null is refused if it reaches a required part, and only then, whatever the types of a query say
(Java Iceberg refuses such merges by the types: apache/iceberg#16246).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession, functions as f
from spark_changes import COPY_ON_WRITE, MERGE_ON_READ, arrow, leaves_as_it_was, rows_of
from sql_sessions import lake_session

from icebergds import Schema, Table, load_catalog
from icebergds.errors import InvalidDataError
from icebergds.operations.write.row_counts import RowCounts
from icebergds.spec.types import INT, LONG, STRING, ListType, MapType, NestedField, StructType

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]


def _struct(field_id: int) -> StructType:
    return StructType((NestedField(field_id, "a", INT, True), NestedField(field_id + 1, "b", INT)))


_DEEP = StructType((NestedField(50, "in", ListType(51, _struct(52), True)),))
SCHEMA = Schema(
    (
        NestedField(1, "id", LONG),
        NestedField(2, "name", STRING),
        NestedField(3, "struct", _struct(10)),
        NestedField(4, "list", ListType(20, _struct(21), False)),
        NestedField(5, "map", MapType(30, STRING, 31, _struct(32), False)),
        NestedField(6, "elements", ListType(40, INT, True)),
        NestedField(7, "items", MapType(41, STRING, 42, INT, True)),
        NestedField(8, "deep", MapType(43, STRING, 44, _DEEP, True)),
    )
)
_PAIR = "struct<a: int, b: int>"
SOURCE = (
    f"id long, name string, struct {_PAIR}, list array<{_PAIR}>, map map<string, {_PAIR}>, "
    f"elements array<int>, items map<string, int>, deep map<string, struct<in: array<{_PAIR}>>>"
)
EMPTY = (None,) * 6

# A value for each column with nothing in its required part, in SQL, and how the part is named.
NULLS = {
    "struct": ("named_struct('a', nullif({0}, {0}), 'b', 1)", "struct.a"),
    "list": ("array(named_struct('a', nullif({0}, {0}), 'b', 1))", "list.element.a"),
    "map": ("map('k', named_struct('a', nullif({0}, {0}), 'b', 1))", "map.value.a"),
    "elements": ("array(1, nullif({0}, {0}))", "elements.element"),
    "items": ("map('k', nullif({0}, {0}))", "items.value"),
    "deep": (
        "map('k', named_struct('in', array(named_struct('a', nullif({0}, {0}), 'b', 1))))",
        "deep.value.in.element.a",
    ),
}


def row(row_id: int, name: str, a: int) -> tuple[Any, ...]:
    pair = {"a": a, "b": None}
    deep = {"k": {"in": [pair]}}
    return row_id, name, pair, [pair, None], {"k": pair, "n": None}, [a], {"k": a}, deep


@pytest.fixture(params=[MERGE_ON_READ, COPY_ON_WRITE])
def lake(
    spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest
) -> tuple[SparkSession, Table]:
    """A session, and the table `lake.db.t` with a row of values, and one of nulls."""
    session = lake_session(spark, tmp_path)
    modes = {f"write.{verb}.mode": request.param for verb in ("delete", "update", "merge")}
    conf = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "schema_version": "v1"}
    catalog = load_catalog("lake", **conf, warehouse=str(tmp_path / "lake"))
    table = catalog.create_table("db.t", SCHEMA, properties=modes)
    table.append(arrow([row(1, "one", 1), (2, "two", *EMPTY), row(3, "three", 3)], SCHEMA))
    return session, table


def source_of(session: SparkSession, *rows: tuple[Any, ...]) -> DataFrame:
    return session.createDataFrame(list(rows), SOURCE).coalesce(1)


def found(table: Table) -> list[dict[str, Any]]:
    """All rows by id; maps as dictionaries."""
    names = [field.name for field in SCHEMA.fields]
    return [dict(zip(names, map(_plain, each), strict=False)) for each in rows_of(table)]


def _plain(value: Any) -> Any:
    match value:
        case [(str(), _), *_]:
            return {key: _plain(of_key) for key, of_key in value}
        case list():
            return [_plain(each) for each in value]
        case dict():
            return {key: _plain(of_key) for key, of_key in value.items()}
        case _:
            return value


def expected(*rows: tuple[Any, ...]) -> list[dict[str, Any]]:
    return [dict(zip([x.name for x in SCHEMA.fields], each, strict=True)) for each in rows]


def test_every_clause_of_a_merge_writes_parts_that_may_be_null_by_their_types(
    lake: tuple[SparkSession, Table],
) -> None:
    session, table = lake
    source = source_of(
        session,
        *(row(1, "whole", 10), (2, "name", *EMPTY), row(3, "gone", 3), row(4, "new", 4)),
        *((5, "nulls", *EMPTY), row(6, "chosen", 6)),
    )
    counts = (
        table.merge(source, "target.id = source.id")
        .when_matched_delete("source.name = 'gone'")
        .when_matched_update_all("source.name = 'whole'")
        .when_matched_update({"name": "source.name"})
        .when_not_matched_insert({"id": "source.id", "list": "source.list"}, "source.id = 6")
        .when_not_matched_insert_all()
        .execute()
    )
    assert counts == RowCounts(inserted=3, updated=2, deleted=1)
    chosen = (6, None, None, row(6, "", 6)[3], None, None, None, None)
    nulls = [(2, "name", *EMPTY), row(4, "new", 4), (5, "nulls", *EMPTY), chosen]
    assert found(table) == expected(row(1, "whole", 10), *nulls)


def test_merges_of_sql_write_them_too(lake: tuple[SparkSession, Table]) -> None:
    session, table = lake
    source_of(session, row(1, "whole", 10), row(4, "new", 4)).createOrReplaceTempView("source")
    session.sql(
        """
        MERGE INTO lake.db.t USING source ON t.id = source.id
        WHEN MATCHED THEN UPDATE SET *
        WHEN NOT MATCHED THEN INSERT *
        WHEN NOT MATCHED BY SOURCE AND struct IS NULL THEN DELETE
        WHEN NOT MATCHED BY SOURCE THEN UPDATE SET
          struct.b = 7, elements = array(if(id > 0, 30S, null)), name = null
        """
    )
    pair, name = {"a": 3, "b": 7}, None
    kept = (3, name, pair, *row(3, "", 3)[3:5], [30], *row(3, "", 3)[6:])
    assert found(table) == expected(row(1, "whole", 10), kept, row(4, "new", 4))


def test_updates_cast_values_to_them(lake: tuple[SparkSession, Table]) -> None:
    session, table = lake
    session.sql(
        """
        UPDATE lake.db.t SET struct = named_struct('a', if(id > 0, 5S, null), 'b', 6S),
          elements = array(if(id > 0, 7S, null)), items = map('k', if(id > 0, 8S, null)),
          deep = map('k', named_struct('in', array(
            named_struct('a', if(id > 0, 9S, null), 'b', 1))))
        WHERE id = 2
        """
    )
    two = (2, "two", {"a": 5, "b": 6}, None, None, [7], {"k": 8}, {"k": {"in": [{"a": 9, "b": 1}]}})
    assert found(table) == expected(row(1, "one", 1), two, row(3, "three", 3))


def test_inserts_and_upserts_write_them(lake: tuple[SparkSession, Table]) -> None:
    session, table = lake
    source_of(session, row(4, "new", 4)).createOrReplaceTempView("source")
    session.sql("INSERT INTO lake.db.t SELECT * FROM source")
    session.table("source").withColumn("id", f.lit(5)).writeTo("lake.db.t").append()
    table.refresh().upsert(source_of(session, row(2, "again", 2), (3, "x", *EMPTY)), ["id"])
    changed = [row(2, "again", 2), (3, "x", *EMPTY), row(4, "new", 4), row(5, "new", 4)]
    assert found(table) == expected(row(1, "one", 1), *changed)


def test_merges_that_add_a_column_write_them(lake: tuple[SparkSession, Table]) -> None:
    session, table = lake
    source = source_of(session, row(1, "whole", 10)).withColumn("more", f.struct(f.lit(1)))
    merge = table.merge(source, "target.id = source.id").with_schema_evolution()
    merge.when_matched_update_all().execute()
    assert found(table)[0] == expected(row(1, "whole", 10))[0]


def test_a_null_that_reaches_a_required_part_is_refused_by_its_name(
    lake: tuple[SparkSession, Table],
) -> None:
    session, table = lake
    source = source_of(session, (9, "new", *EMPTY))
    for column, (value, part) in NULLS.items():
        merge = table.merge(source, "target.id = source.id").when_not_matched_insert(
            {"id": "source.id", column: value.format("cast(source.id as int)")}
        )
        refused = f"column '{part}' of table lake.db.t is required, but 1 of the incoming values"
        assert refused in leaves_as_it_was(table, merge.execute, InvalidDataError)


@pytest.mark.parametrize("column", ["struct", "deep"])
def test_an_update_to_null_in_a_required_part_is_refused_by_its_name(
    lake: tuple[SparkSession, Table], column: str
) -> None:
    session, table = lake
    value, part = NULLS[column]
    message = leaves_as_it_was(
        table,
        lambda: table.update({column: value.format("cast(id as int)")}, "id = 2", spark=session),
        InvalidDataError,
    )
    assert f"column '{part}' of table" in message
