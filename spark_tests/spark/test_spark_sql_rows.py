"""Statements that change rows: INSERT, DELETE, UPDATE, MERGE, TRUNCATE."""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, ParseException
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from icebergds import Catalog, Table, load_catalog, register
from icebergds.errors import (
    IcebergError,
    InvalidDataError,
    InvalidFilterError,
    InvalidOptionError,
    InvalidStatementError,
    NoSuchTableError,
    UnsupportedFeatureError,
)

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]

_SCHEMA = "id bigint, name string, day date"
_FIRST, _SECOND, _THIRD = (dt.date(2024, 1, number) for number in (1, 2, 3))
_ROWS = [(1, "a", _FIRST), (2, "b", _FIRST), (3, "c", _SECOND), (4, None, None)]


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Iterator[SparkSession]:
    session = spark.newSession()
    session.conf.set("spark.icebergpy.catalog.lake.warehouse", str(tmp_path))
    session.conf.set("spark.sql.shuffle.partitions", "1")
    register(session, sql=True)
    yield session
    register(session)


@pytest.fixture
def catalog(lake: SparkSession, tmp_path: Path) -> Catalog:
    found = load_catalog("lake", warehouse=str(tmp_path))
    found.create_namespace("db")
    return found


@pytest.fixture
def table(catalog: Catalog, lake: SparkSession) -> Table:
    """The table `lake.db.t` with `_ROWS`, partitioned by day."""
    created = catalog.create_table("db.t", _SCHEMA, partition_spec="day")
    created.append(lake.createDataFrame(_ROWS, _SCHEMA).coalesce(1))
    return created


@pytest.fixture
def other(catalog: Catalog, lake: SparkSession) -> Table:
    """The table `lake.db.u` with ids 2, 3 and 9."""
    created = catalog.create_table("db.u", "id bigint, name string, day date")
    rows = [(2, "B", _SECOND), (3, "C", _SECOND), (9, "I", _THIRD)]
    created.append(lake.createDataFrame(rows, _SCHEMA).coalesce(1))
    return created


@pytest.mark.parametrize("escaped", ["false", "true"])
def test_values_of_parameters_are_no_text_of_statements(
    lake: SparkSession, table: Table, escaped: str
) -> None:
    lake.conf.set("spark.sql.parser.escapedStringLiterals", escaped)
    before = rows_of(table)
    lake.sql("DELETE FROM lake.db.t WHERE id >= 0 -:n AND name = 'none'", args={"n": -1})
    assert rows_of(table) == before
    name = "${env:HOME} it's \\ ${spark.app.name}"
    lake.sql("UPDATE lake.db.t SET name = ? WHERE id = 1", args=[name])
    assert [row[1] for row in rows_of(table) if row[0] == 1] == [name]


def rows_of(table: Table, branch: str | None = None) -> list[tuple[Any, ...]]:
    found = table.refresh().scan(branch=branch).to_arrow().to_pylist()
    return sorted((tuple(row.values()) for row in found), key=lambda row: (row[0] or 0, str(row)))


def operations(table: Table) -> list[str | None]:
    return [snapshot.operation for snapshot in table.refresh().snapshots()]


def views_of(session: SparkSession) -> list[str]:
    return [row.viewName for row in session.sql("SHOW VIEWS").collect()]


def leaves_as_it_was(table: Table) -> tuple[str, list[tuple[Any, ...]]]:
    return table.refresh().metadata_location, rows_of(table)


def test_rows_are_inserted_by_position_list_and_name(lake: SparkSession, table: Table) -> None:
    lake.sql("INSERT INTO lake.db.t VALUES (5, 'e', DATE '2024-01-03'), (6, NULL, NULL)")
    lake.sql("INSERT INTO TABLE lake.db.t (day, ID) VALUES (DATE '2024-01-03', 7)")
    lake.sql("INSERT INTO lake.db.t BY NAME SELECT 'h' AS name, 8 AS id")
    assert rows_of(table)[4:] == [
        (5, "e", _THIRD),
        (6, None, None),
        (7, None, _THIRD),
        (8, "h", None),
    ]


def counts(session: SparkSession, statement: str) -> dict[str, int | None]:
    [row] = session.sql(statement).collect()
    return dict(row.asDict())


def _inserted(count: int) -> dict[str, int]:
    return {"num_affected_rows": count, "num_inserted_rows": count}


def _affected(count: int | None) -> dict[str, int | None]:
    return {"num_affected_rows": count}


def test_statements_return_how_many_rows_they_changed(lake: SparkSession, table: Table) -> None:
    t = "lake.db.t"
    assert counts(lake, f"INSERT INTO {t} (id) VALUES (5), (6)") == _inserted(2)
    assert counts(lake, f"INSERT INTO {t} SELECT * FROM {t} WHERE id = 77") == _inserted(0)
    assert counts(lake, f"INSERT INTO {t} REPLACE WHERE id = 6 VALUES (6, 'f', NULL)") == (
        _inserted(1)
    )
    overwrite = f"INSERT OVERWRITE {t} PARTITION (day = DATE '2024-01-02') VALUES (3, 'C')"
    assert counts(lake, overwrite) == _inserted(1)
    assert counts(lake, f"UPDATE {t} SET name = 'x' WHERE id > 4") == _affected(2)
    assert counts(lake, f"UPDATE {t} SET name = 'x' WHERE id > 40") == _affected(0)
    assert counts(lake, f"DELETE FROM {t} WHERE id IN (4, 5, 40)") == _affected(2)
    merge = (
        f"MERGE INTO {t} USING (SELECT explode(array(1, 2, 9)) AS id) s ON t.id = s.id "
        "WHEN MATCHED AND s.id = 1 THEN DELETE WHEN MATCHED THEN UPDATE SET name = 'y' "
        "WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)"
    )
    assert counts(lake, merge) == {
        "num_affected_rows": 3,
        "num_updated_rows": 1,
        "num_deleted_rows": 1,
        "num_inserted_rows": 1,
    }
    assert lake.sql(f"TRUNCATE TABLE {t}").columns == []


@pytest.mark.parametrize(("version", "vectors"), [(3, True), (2, False)])
def test_rows_of_files_that_a_delete_drops_are_counted_if_only_vectors_deleted_some(
    lake: SparkSession, catalog: Catalog, version: int, vectors: bool
) -> None:
    modes = {"format-version": str(version), "write.delete.mode": "merge-on-read"}
    table = catalog.create_table("db.v", _SCHEMA, partition_spec="day", properties=modes)
    table.append(lake.createDataFrame(_ROWS, _SCHEMA).coalesce(1))
    assert counts(lake, "DELETE FROM lake.db.v WHERE id IN (2, 3)") == _affected(2)
    first = "DELETE FROM lake.db.v WHERE day = DATE '2024-01-01'"
    assert counts(lake, first) == _affected(1 if vectors else None)
    table.refresh().append(lake.createDataFrame([(7, "g", _THIRD)], _SCHEMA))
    assert counts(lake, "DELETE FROM lake.db.v WHERE day = DATE '2024-01-03'") == _affected(1)
    table.refresh().append(lake.createDataFrame([(8, "h", _THIRD)], _SCHEMA))
    by_key = {"write.upsert.mode": "equality-deletes"}
    table.delete_keys(pa.table({"id": [8]}), ["id"], options=by_key)
    assert counts(lake, "DELETE FROM lake.db.v WHERE day = DATE '2024-01-03'") == _affected(None)


_OF_ROW = "USING (SELECT 1L AS id) s"


@pytest.mark.parametrize(
    ("statement", "logged"),
    [
        ("SELECT nane FROM lake.db.t", 1),
        ("UPDATE lake.db.t SET nane = 'x'", 0),
        ("UPDATE lake.db.t SET name = nane", 0),
        ("DELETE FROM lake.db.t WHERE nane = 'x'", 0),
        (f"MERGE INTO lake.db.t {_OF_ROW} ON t.nane = s.id WHEN MATCHED THEN DELETE", 0),
        (f"MERGE INTO lake.db.t {_OF_ROW} ON t.id = s.id WHEN MATCHED AND nane = 1 THEN DELETE", 0),
        (
            f"MERGE INTO lake.db.t {_OF_ROW} ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET name = nane",
            0,
        ),
        ("INSERT INTO lake.db.t (id, nane) VALUES (1, 'x')", 0),
    ],
)
def test_a_wrong_column_is_said_once_with_those_of_the_table(
    lake: SparkSession, table: Table, statement: str, logged: int
) -> None:
    """PySpark logs the errors that it raises; errors of ours are only raised."""
    records: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = records.append  # type: ignore[method-assign]
    logger = PySparkLogger.getLogger("SQLQueryContextLogger")
    logger.addHandler(handler)
    try:
        with pytest.raises((IcebergError, AnalysisException)) as raised:
            lake.sql(statement)
    finally:
        logger.removeHandler(handler)
    message = str(raised.value)
    assert (len(records), message.lower().count("did you mean")) == (logged, 1)
    hint = message.lower().split("did you mean")[1]
    assert "name" in hint.split("\n")[0]
    assert "icebergds" not in hint


def test_columns_left_out_and_default_get_their_defaults(
    lake: SparkSession, catalog: Catalog
) -> None:
    table = catalog.create_table("db.d", "id bigint", properties={"format-version": "3"})
    with table.update_schema() as update:
        update.add_column("kind", "string", default_value="it's")
        update.add_column("s", "struct<a: int, b: string>")
    lake.sql("INSERT INTO lake.db.d VALUES (1, DEFAULT, named_struct('x', 1, 'y', 'z'))")
    lake.sql("INSERT INTO lake.db.d (id) SELECT 2")
    lake.sql("UPDATE lake.db.d SET s.a = 5, kind = 'own' WHERE d.s.b = 'z'")
    assert rows_of(table) == [(1, "own", {"a": 5, "b": "z"}), (2, "it's", None)]
    lake.sql("UPDATE lake.db.d SET kind = DEFAULT WHERE id = 1")
    assert rows_of(table)[0][1] == "it's"


_DEFAULTS = {
    "boolean": True,
    "int": 123,
    "bigint": 2**40,
    "float": 1.1,
    "double": 22.27,
    "decimal(10, 2)": Decimal("19.25"),
    "string": "it's",
    "date": dt.date(1990, 3, 1),
    "time": dt.time(1, 2, 3),
    "timestamp_ntz": dt.datetime(2020, 1, 1, 5),
    "timestamp": dt.datetime(2020, 1, 1, 5, tzinfo=dt.UTC),
    "timestamp_ns": dt.datetime(2020, 1, 1, 5),
    "timestamptz_ns": dt.datetime(2020, 1, 1, 5, tzinfo=dt.UTC),
    "binary": b"\xf7",
    "fixed[2]": b"\xf7\x00",
    "uuid": "f79c3e09-677c-4bbd-a479-3f349cb785e7",
}


def test_defaults_of_each_type_are_the_same_in_every_statement(
    lake: SparkSession, catalog: Catalog
) -> None:
    lake.conf.set("spark.sql.session.timeZone", "America/New_York")
    table = catalog.create_table("db.d", "id bigint", properties={"format-version": "3"})
    with table.update_schema() as update:
        for at, (kind, value) in enumerate(_DEFAULTS.items()):
            update.add_column(f"c{at}", kind, default_value=value)
    table.append(pa.table({"id": [0]}))
    every = ", ".join(["DEFAULT"] * len(_DEFAULTS))
    lake.sql(f"INSERT INTO lake.db.d VALUES (1, {every})")
    lake.sql("INSERT INTO lake.db.d (id) VALUES (2)")
    lake.sql(
        "MERGE INTO lake.db.d t USING (SELECT 3L AS id) s ON t.id = s.id "
        "WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)"
    )
    source = lake.range(4, 5)
    table.merge(source, ["id"]).when_not_matched_insert({"id": "source.id"}).execute()
    lake.sql("INSERT INTO lake.db.d (id) VALUES (5)")
    for value in ("NULL", "DEFAULT"):
        assigned = ", ".join(f"c{at} = {value}" for at in range(len(_DEFAULTS)))
        lake.sql(f"UPDATE lake.db.d SET {assigned} WHERE id = 5")
    first, *others = table.refresh().scan().to_arrow().sort_by("id").drop(["id"]).to_pylist()
    assert len(others) == 5
    assert all(row == first for row in others)
    assert first["c8"] == dt.time(1, 2, 3)
    assert first["c9"] == dt.datetime(2020, 1, 1, 5)


def test_partition_gives_columns_their_values(lake: SparkSession, table: Table) -> None:
    lake.sql("INSERT INTO lake.db.t PARTITION (day = '2024-01-03') VALUES (5, 'e')")
    lake.sql("INSERT INTO lake.db.t PARTITION (day) VALUES (6, 'f', DATE '2024-01-03')")
    lake.sql("INSERT INTO lake.db.t PARTITION (day = NULL) (name, id) VALUES ('g', 7)")
    assert rows_of(table)[4:] == [(5, "e", _THIRD), (6, "f", _THIRD), (7, "g", None)]


def test_insert_overwrite_replaces_the_partition_that_it_names(
    lake: SparkSession, table: Table
) -> None:
    lake.sql(
        "INSERT OVERWRITE lake.db.t PARTITION (day = '2024-01-01') "
        "SELECT id + 10, name FROM lake.db.t WHERE day = DATE '2024-01-01'"
    )
    lake.sql("INSERT OVERWRITE lake.db.t PARTITION (day = NULL) VALUES (14, 'null')")
    assert rows_of(table) == [
        (3, "c", _SECOND),
        (11, "a", _FIRST),
        (12, "b", _FIRST),
        (14, "null", None),
    ]


def test_insert_overwrite_replaces_all_rows_or_partitions_as_the_session_says(
    lake: SparkSession, table: Table
) -> None:
    lake.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    lake.sql("INSERT OVERWRITE lake.db.t VALUES (5, 'e', DATE '2024-01-01')")
    assert [row[0] for row in rows_of(table)] == [3, 4, 5]
    lake.conf.set("spark.sql.sources.partitionOverwriteMode", "static")
    lake.sql("INSERT OVERWRITE TABLE lake.db.t SELECT * FROM lake.db.t WHERE id = 5")
    assert rows_of(table) == [(5, "e", _FIRST)]


def test_replace_where_replaces_the_rows_of_a_condition(lake: SparkSession, table: Table) -> None:
    lake.sql("INSERT INTO lake.db.t REPLACE WHERE day IS NULL OR t.id = 1 (SELECT 8, 'h', NULL)")
    assert [row[0] for row in rows_of(table)] == [2, 3, 8]


def test_conditions_of_replaced_rows_have_icebergs_functions(
    lake: SparkSession, table: Table
) -> None:
    lake.sql(
        "INSERT INTO lake.db.t REPLACE WHERE lake.system.truncate(2, t.id) = 2 AND t.id > 2 "
        "SELECT 8, 'h', NULL"
    )
    assert [row[0] for row in rows_of(table)] == [1, 2, 4, 8]


def test_rows_of_common_tables_and_of_a_leading_from_are_inserted(
    lake: SparkSession, table: Table, other: Table
) -> None:
    lake.sql(
        "WITH c AS (SELECT * FROM lake.db.u WHERE id = 9) INSERT INTO lake.db.t "
        "WITH d AS (SELECT id + 1, name, day FROM c) SELECT * FROM d"
    )
    lake.sql("FROM lake.db.u INSERT INTO lake.db.t SELECT id + 20, name, day WHERE id = 9")
    assert rows_of(table)[4:] == [(10, "I", _THIRD), (29, "I", _THIRD)]


def test_rows_are_deleted_under_every_name_of_the_table(lake: SparkSession, table: Table) -> None:
    lake.sql("DELETE FROM lake.db.t AS x WHERE x.id = 1 AND day = DATE '2024-01-01'")
    lake.sql("DELETE FROM lake.db.t WHERE lake.db.t.id = 2 AND db.t.name = 'b' AND t.id = 2 -- all")
    assert [row[0] for row in rows_of(table)] == [3, 4]


def test_whole_files_are_deleted_by_metadata(lake: SparkSession, table: Table) -> None:
    lake.sql("DELETE FROM lake.db.t AS x WHERE x.day = DATE '2024-01-01' /* a comment */")
    lake.sql("TRUNCATE TABLE lake.db.t")
    assert rows_of(table) == []
    assert operations(table) == ["append", "delete", "delete"]


@pytest.mark.parametrize(
    ("condition", "left"),
    [
        ("id IN (SELECT id FROM lake.db.u)", [1, 4]),
        ("id NOT IN (SELECT id FROM lake.db.u)", [2, 3]),
        ("name NOT IN (SELECT name FROM lake.db.t)", [1, 2, 3, 4]),
        ("EXISTS (SELECT * FROM lake.db.u v WHERE v.id = db.t.id AND v.day = t.day)", [1, 2, 4]),
        ("NOT EXISTS (SELECT 1 FROM lake.db.u WHERE db.u.id = db.t.id) AND id < 4", [2, 3, 4]),
        ("id = (SELECT max(id) FROM lake.db.t) OR id < (SELECT min(id) FROM lake.db.u)", [2, 3]),
        ("(id, day) IN (SELECT id, day FROM lake.db.u)", [1, 2, 4]),
        ("day = DATE '2024-01-01' AND id IN (SELECT id FROM names)", [2, 3, 4]),
    ],
)  # fmt: skip
def test_rows_are_deleted_by_sub_queries(
    lake: SparkSession, table: Table, other: Table, condition: str, left: list[int]
) -> None:
    lake.range(2).createOrReplaceTempView("names")
    lake.sql(f"DELETE FROM lake.db.t WHERE {condition}")
    assert [row[0] for row in rows_of(table)] == left
    assert views_of(lake) == ["names"]
    lake.catalog.dropTempView("names")


def test_common_tables_and_what_is_given_beside_the_text_are_known_in_conditions(
    lake: SparkSession, table: Table, other: Table
) -> None:
    lake.sql(
        "WITH c AS (SELECT id FROM lake.db.u), d (y) AS (SELECT max(id) - 6 FROM c) "
        "DELETE FROM lake.db.t WHERE id IN (SELECT y FROM d) OR id = (SELECT min(c.id) FROM c)"
    )
    assert [row[0] for row in rows_of(table)] == [1, 4]
    lake.sql("DELETE FROM lake.db.t WHERE id IN (SELECT id FROM {df})", df=lake.range(2))
    lake.sql("UPDATE lake.db.t SET name = :name WHERE id = :id", {"name": "it's", "id": 4})
    assert rows_of(table) == [(4, "it's", None)]


def test_rows_are_updated_by_values_of_the_row_and_of_sub_queries(
    lake: SparkSession, table: Table, other: Table
) -> None:
    lake.sql(
        "UPDATE lake.db.t AS x SET x.name = (SELECT max(u.name) FROM lake.db.u WHERE u.id = x.id), "
        "day = CASE WHEN x.day = DATE '2024-01-01' THEN day + 1 ELSE day END "
        "WHERE x.id IN (SELECT id FROM lake.db.u) OR x.day IS NULL"
    )
    lake.sql("UPDATE lake.db.t SET name = concat(t.name, '!') WHERE db.t.id = 1")
    assert rows_of(table) == [
        (1, "a!", _FIRST),
        (2, "B", _SECOND),
        (3, "C", _SECOND),
        (4, None, None),
    ]


def test_every_clause_of_a_merge(lake: SparkSession, table: Table, other: Table) -> None:
    lake.sql(
        "MERGE INTO lake.db.t USING lake.db.u ON lake.db.t.id = u.id "
        "WHEN MATCHED AND lake.db.u.id = 2 THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET t.name = CASE WHEN u.id = 3 THEN 'three' END "
        "WHEN NOT MATCHED BY TARGET AND u.id > 9 THEN INSERT * "
        "WHEN NOT MATCHED THEN INSERT (id, name, day) VALUES (u.id, DEFAULT, u.day) "
        "WHEN NOT MATCHED BY SOURCE AND day IS NULL THEN UPDATE SET name = 'gone' "
        "WHEN NOT MATCHED BY SOURCE THEN DELETE"
    )
    assert rows_of(table) == [(3, "three", _SECOND), (4, "gone", None), (9, None, _THIRD)]


def test_a_merge_of_queries_with_schema_evolution(
    lake: SparkSession, table: Table, other: Table
) -> None:
    lake.sql(
        "WITH c AS (SELECT * FROM lake.db.u WHERE id < 9) "
        "MERGE WITH SCHEMA EVOLUTION INTO lake.db.t "
        "USING (SELECT id, name, 'new' AS more FROM c) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET *"
    )
    assert rows_of(table) == [
        (1, "a", _FIRST, None),
        (2, "B", _FIRST, "new"),
        (3, "C", _SECOND, "new"),
        (4, None, None, None),
    ]


def test_a_table_may_forbid_schema_evolution(lake: SparkSession, table: Table) -> None:
    table.set_properties({"write.spark.auto-schema-evolution.enabled": "false"})
    lake.sql(
        "MERGE WITH SCHEMA EVOLUTION INTO lake.db.t "
        "USING (SELECT id, name, day, 'new' AS more FROM lake.db.t WHERE id = 1) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET *"
    )
    assert rows_of(table) == _ROWS


def test_tables_of_the_same_name_are_told_apart_in_a_merge(
    lake: SparkSession, catalog: Catalog, table: Table
) -> None:
    catalog.create_namespace("staging")
    catalog.create_table("staging.t", _SCHEMA)
    lake.sql("INSERT INTO lake.staging.t VALUES (1, 'A', NULL)")
    lake.sql(
        "MERGE INTO lake.db.t USING lake.staging.t ON lake.db.t.id = staging.t.id "
        "WHEN MATCHED THEN UPDATE SET name = lake.staging.t.name"
    )
    assert rows_of(table)[0] == (1, "A", _FIRST)


def test_a_row_that_two_rows_change_is_an_error(
    lake: SparkSession, table: Table, other: Table
) -> None:
    before = leaves_as_it_was(table)
    with pytest.raises(InvalidDataError, match="changed by more than one row"):
        lake.sql(
            "MERGE INTO lake.db.t USING (SELECT 1 AS k UNION ALL SELECT 1) ON k = id "
            "WHEN MATCHED THEN UPDATE SET name = 'x'"
        )
    assert leaves_as_it_was(table) == before


def test_branches_are_written_by_their_names(lake: SparkSession, table: Table) -> None:
    with table.manage_snapshots() as snapshots:
        snapshots.create_branch("b")
    lake.sql("INSERT INTO lake.db.t.branch_b VALUES (5, 'e', NULL)")
    lake.sql("UPDATE lake.db.t.branch_b SET name = 'f' WHERE branch_b.id = 5")
    lake.sql("DELETE FROM lake.db.t.branch_b WHERE day = DATE '2024-01-01'")
    assert rows_of(table, "b") == [(3, "c", _SECOND), (4, None, None), (5, "f", None)]
    assert rows_of(table) == _ROWS


def test_writes_to_be_audited_go_where_the_session_says(lake: SparkSession, table: Table) -> None:
    table.set_properties({"write.wap.enabled": "true"})
    lake.conf.set("spark.wap.branch", "audit")
    assert lake.sql("SELECT * FROM lake.db.t").count() == len(_ROWS)
    lake.sql("INSERT INTO lake.db.t VALUES (5, 'e', NULL)")
    lake.sql("DELETE FROM lake.db.t WHERE day = DATE '2024-01-01'")
    assert [row[0] for row in rows_of(table, "audit")] == [3, 4, 5]
    ids = "SELECT id FROM lake.db.{} ORDER BY id"
    assert [row[0] for row in lake.sql(ids.format("t")).collect()] == [3, 4, 5]
    assert [row[0] for row in lake.sql(ids.format("t.branch_main")).collect()] == [1, 2, 3, 4]
    lake.conf.set("spark.wap.id", "7")
    with pytest.raises(InvalidOptionError, match=r"spark\.wap\.id .* spark\.wap\.branch"):
        lake.sql("INSERT INTO lake.db.t VALUES (6, 'f', NULL)")
    lake.conf.unset("spark.wap.branch")
    lake.sql("INSERT INTO lake.db.t VALUES (6, 'f', NULL)")
    assert rows_of(table) == _ROWS
    assert table.snapshots()[-1].summary["wap.id"] == "7"


def test_changes_are_read_by_a_name(lake: SparkSession, table: Table) -> None:
    lake.sql("DELETE FROM lake.db.t WHERE id = 1")
    query = "SELECT id, _change_ordinal FROM lake.db.t.changes WHERE _change_type = 'DELETE'"
    assert [tuple(row) for row in lake.sql(query).collect()] == [(1, 1)]
    described = [row[0] for row in lake.sql("DESCRIBE lake.db.t.changes").collect()]
    assert described[-3:] == ["_change_type", "_change_ordinal", "_commit_snapshot_id"]
    with pytest.raises(InvalidStatementError, match="only the table and its branches"):
        lake.sql("DELETE FROM lake.db.t.changes")


def test_an_insert_of_a_merge_names_whole_columns(lake: SparkSession, catalog: Catalog) -> None:
    table = catalog.create_table("db.nested", "id bigint, s struct<a: int, b: int>")
    with pytest.raises(InvalidStatementError, match=r"s\.a is a field of a column"):
        lake.sql(
            "MERGE INTO lake.db.nested t USING (SELECT 1L AS id) x ON t.id = x.id "
            "WHEN NOT MATCHED THEN INSERT (id, s.a) VALUES (x.id, 1)"
        )
    assert table.refresh().current_snapshot() is None


def test_what_is_read_is_said_once(lake: SparkSession, table: Table) -> None:
    with pytest.raises(InvalidStatementError, match="give one"):
        lake.sql("SELECT * FROM lake.db.t.at_timestamp_4 TIMESTAMP AS OF '2024-01-01'")


def test_queries_read_the_branch_that_is_audited_once_it_exists(
    lake: SparkSession, table: Table
) -> None:
    def ids(what: str) -> list[int]:
        found = lake.sql(f"SELECT id FROM lake.db.t {what} ORDER BY id")
        return [row[0] for row in found.collect()]

    table.set_properties({"write.wap.enabled": "true"})
    lake.conf.set("spark.wap.branch", "audit")
    assert ids("") == [1, 2, 3, 4]
    lake.sql("INSERT INTO lake.db.t SELECT max(id) + 1, 'e', NULL FROM lake.db.t")
    lake.sql("INSERT INTO lake.db.t SELECT max(id) + 1, 'f', NULL FROM lake.db.t")
    assert ids("") == ids("WITH ('split-size' = '1000')") == [1, 2, 3, 4, 5, 6]
    assert lake.table("lake.db.t").count() == 6
    assert ids("VERSION AS OF 'main'") == ids("TIMESTAMP AS OF now()") == [1, 2, 3, 4]
    lake.conf.unset("spark.wap.branch")
    assert ids("") == [1, 2, 3, 4]


def test_a_misspelt_column_is_compared_with_all_columns_of_the_table(
    lake: SparkSession, table: Table
) -> None:
    with pytest.raises(AnalysisException, match=r"Did you mean .*`name`"):
        lake.sql("SELECT id, nme FROM lake.db.t")


def test_options_of_a_write_follow_the_name(lake: SparkSession, table: Table) -> None:
    lake.sql("INSERT INTO lake.db.t WITH ('snapshot-property.by' = 'me') VALUES (5, 'e', NULL)")
    assert table.refresh().snapshots()[-1].summary["by"] == "me"


@pytest.mark.parametrize(
    ("statement", "error", "message"),
    [
        ("INSERT INTO lake.db.t SELECT 1", InvalidDataError, "not enough data columns"),
        ("INSERT INTO lake.db.t SELECT 1, 'a', NULL, 2", InvalidDataError, "too many data columns"),
        ("INSERT INTO lake.db.t (id, name) VALUES (1)", InvalidDataError, "not enough data"),
        ("INSERT INTO lake.db.t (id, ID) SELECT 1, 2", InvalidDataError, "id is given twice"),
        ("INSERT INTO lake.db.t (nme) SELECT 'a'", InvalidStatementError, "did you mean name"),
        ("INSERT INTO lake.db.t BY NAME SELECT 1 AS idd", InvalidDataError, "did you mean 'id'"),
        ("INSERT INTO lake.db.t VALUES ('x', 'a', NULL)", InvalidDataError, "cannot store"),
        (
            "INSERT INTO lake.db.t PARTITION (name = 'x') SELECT 1, NULL",
            InvalidStatementError,
            "non-partition column: name",
        ),
        (
            "INSERT OVERWRITE lake.db.t PARTITION (day = '2024-01-01') IF NOT EXISTS SELECT 1, 'a'",
            UnsupportedFeatureError,
            "IF NOT EXISTS",
        ),
        (
            "FROM lake.db.t INSERT INTO lake.db.t SELECT * INSERT INTO lake.db.t SELECT *",
            UnsupportedFeatureError,
            "several INSERTs",
        ),
        ("INSERT INTO lake.db.t.files SELECT 1", InvalidStatementError, "metadata tables"),
        ("INSERT INTO lake.db.t.branch_b SELECT 1, 'a', NULL", InvalidOptionError, "no branch 'b'"),
        ("INSERT INTO lake.db.t SELEC 1", ParseException, "PARSE_SYNTAX_ERROR"),
        ("DELETE FROM lake.db.tt", NoSuchTableError, r"did you mean db\.t\?"),
        ("DELETE FROM lake.db.t WHERE nope = 1", InvalidFilterError, "UNRESOLVED_COLUMN"),
        ("DELETE FROM lake.db.t WHERE id = 1 ORDER BY id", ParseException, "'ORDER'"),
        ("DELETE FROM lake.db.t WHERE rand() > 0.5", InvalidFilterError, "not deterministic"),
        ("UPDATE lake.db.t SET nme = 'a'", InvalidStatementError, "did you mean name"),
        ("UPDATE lake.db.t SET id = 1, t.id = 2", InvalidStatementError, "id is set twice"),
        ("UPDATE lake.db.t SET id = 'x'", InvalidDataError, "id of table .* is of type long"),
        (
            "MERGE INTO lake.db.t USING lake.db.t s ON t.id = s.id "
            "WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id)",
            ParseException,
            "inserted values|INSERT_VALUE_COUNT",
        ),
        (
            "MERGE INTO lake.db.t USING lake.db.t s ON t.id = s.id WHEN MATCHED THEN DO NOTHING",
            ParseException,
            "'DO'",
        ),
        ("TRUNCATE TABLE lake.db.t PARTITION (day = NULL)", UnsupportedFeatureError, "PARTITION"),
    ],
)
def test_what_is_wrong_is_an_error_before_anything_is_changed(
    lake: SparkSession, table: Table, statement: str, error: type[Exception], message: str
) -> None:
    before = leaves_as_it_was(table)
    with pytest.raises(error, match=message):
        lake.sql(statement)
    assert leaves_as_it_was(table) == before
    assert views_of(lake) == []


def test_tables_of_spark_are_written_with_rows_of_ours(
    lake: SparkSession, table: Table, tmp_path: Path
) -> None:
    lake.sql(f"CREATE TABLE plain (id bigint, name string) USING parquet LOCATION '{tmp_path}/p'")
    try:
        lake.sql("INSERT INTO plain SELECT id, name FROM lake.db.t WHERE id < 3")
        lake.sql("WITH c AS (SELECT * FROM lake.db.t) INSERT INTO plain SELECT id, name FROM c")
        assert lake.table("plain").count() == 6
    finally:
        lake.sql("DROP TABLE plain")
