"""ALTER TABLE on tables of our catalogs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.errors import ParseException
from pyspark.sql import SparkSession

from icebergds import Catalog, Table, load_catalog, register
from icebergds.errors import (
    AlreadyExistsError,
    InvalidMetadataError,
    InvalidOptionError,
    InvalidStatementError,
    NoSuchNamespaceError,
    NoSuchSnapshotError,
    NoSuchTableError,
    UnsupportedFeatureError,
)
from icebergds.spec.snapshot import SnapshotRef

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]

DAY, HOUR, MINUTE = 86_400_000, 3_600_000, 60_000
Alter = Callable[[str], None]


@pytest.fixture
def lake(front: SparkSession, tmp_path: Path) -> Catalog:
    """The catalog `lake` of the session, with the namespace `db`."""
    properties = {"uri": f"sqlite:///{tmp_path}/lake.db", "warehouse": str(tmp_path / "lake")}
    for name, value in properties.items():
        front.conf.set(f"spark.icebergpy.catalog.lake.{name}", value)
    register(front, sql=True)
    catalog = load_catalog("lake", **properties)
    catalog.create_namespace("db")
    return catalog


@pytest.fixture
def table(lake: Catalog) -> Table:
    """A table of format version 3 without rows."""
    return lake.create_table(
        "db.t",
        "id bigint NOT NULL, s string, st struct<x: int, y: array<struct<z: int>>>, ts timestamp, "
        "f float, d decimal(5, 2)",
        properties={"format-version": "3"},
    )


@pytest.fixture
def alter(front: SparkSession, table: Table) -> Iterator[Alter]:
    """Runs `ALTER TABLE lake.db.t ...`, and sees that it is one commit."""

    def altered(text: str, commits: int = 1) -> None:
        before = len(table.refresh().metadata.metadata_log)
        assert front.sql(f"ALTER TABLE lake.db.t {text}").collect() == []
        assert len(table.refresh().metadata.metadata_log) == before + commits

    return altered


@pytest.fixture
def refused(front: SparkSession, table: Table) -> Callable[[str, type[Exception], str], None]:
    """Runs `ALTER TABLE lake.db.t ...`, and sees that it fails and changes nothing."""

    def failing(text: str, error: type[Exception], words: str) -> None:
        before = table.refresh().metadata_location
        with pytest.raises(error, match=words):
            front.sql(f"ALTER TABLE lake.db.t {text}")
        assert table.refresh().metadata_location == before

    return failing


Refused = Callable[[str, type[Exception], str], None]


def columns(table: Table) -> list[str]:
    return [f"{field.name} {field.field_type}" for field in table.schema().fields]


def terms(table: Table) -> list[tuple[str, str]]:
    return [(field.name, str(field.transform)) for field in table.spec().fields]


def order(table: Table) -> list[str]:
    names = table.schema().paths_by_id
    return [
        f"{'.'.join(names[f.source_ids[0]])} {f.transform} {f.direction} {f.null_order}"
        for f in table.sort_order().fields
    ]


def add_rows(front: SparkSession, table: Table) -> list[int]:
    """Two snapshots, whose ids are returned."""
    for number in (1, 2):
        front.sql(f"INSERT INTO lake.db.t SELECT {number}, 'a', null, null, 1, 1")
    return [snapshot.snapshot_id for snapshot in table.refresh().snapshots()]


def test_columns_are_added_where_they_are_to_be(table: Table, alter: Alter) -> None:
    alter("ADD COLUMN p int COMMENT 'it''s p' FIRST")
    alter(
        "ADD COLUMNS (q map<string, int> AFTER id, st.w string, st.y.element.v double FIRST, "
        "r int DEFAULT 1 + 2)"
    )
    alter("ADD COLUMNS a int, `b c` array<int> DEFAULT NULL")
    assert columns(table) == [
        "p int",
        "id long",
        "q map<string, int>",
        "s string",
        "st struct<7: x: int, 8: y: list<struct<16: v: double, 10: z: int>>, 15: w: string>",
        "ts timestamptz",
        "f float",
        "d decimal(5, 2)",
        "r int",
        "a int",
        "b c list<int>",
    ]
    fields = {field.name: field for field in table.schema().fields}
    assert fields["p"].doc == "it's p"
    assert (fields["r"].initial_default, fields["r"].write_default) == (3, 3)


def test_required_columns_are_added_with_a_default_alone(
    table: Table, alter: Alter, refused: Refused
) -> None:
    alter("ADD COLUMN k bigint NOT NULL DEFAULT 7")
    assert table.schema().fields[-1].required
    refused("ADD COLUMN l bigint NOT NULL", InvalidOptionError, "'l' cannot be added as required")
    refused("ADD COLUMN m int DEFAULT 'x'", InvalidStatementError, "m: the default 'x' is no value")


def test_columns_are_dropped(table: Table, alter: Alter, refused: Refused) -> None:
    alter("DROP COLUMN st.y")
    alter("DROP COLUMNS (f, D)")
    alter("DROP COLUMNS IF EXISTS nope, ts")
    alter("DROP COLUMN IF EXISTS nope", commits=0)
    assert columns(table) == ["id long", "s string", "st struct<7: x: int>"]
    refused("DROP COLUMN ss", InvalidOptionError, "there is no column 'ss'")


def test_columns_are_renamed(table: Table, alter: Alter, refused: Refused) -> None:
    alter("RENAME COLUMN S TO `s 2`")
    alter("RENAME COLUMN st.y.element.z TO zz")
    assert columns(table)[1:3] == [
        "s 2 string",
        "st struct<7: x: int, 8: y: list<struct<10: zz: int>>>",
    ]
    refused("RENAME COLUMN st.xx TO a", InvalidOptionError, "there is no column 'st.xx'")
    refused("RENAME COLUMN id TO f", InvalidOptionError, "'f' already exists")


def test_several_columns_are_changed_together(table: Table, alter: Alter) -> None:
    alter(
        "ALTER COLUMN f TYPE double, d TYPE decimal(9, 2), s COMMENT 'c', ts FIRST, "
        "st.x AFTER y, id DROP NOT NULL"
    )
    assert columns(table) == [
        "ts timestamptz",
        "id long",
        "s string",
        "st struct<8: y: list<struct<10: z: int>>, 7: x: int>",
        "f double",
        "d decimal(9, 2)",
    ]
    assert table.schema().fields[1].optional
    assert table.schema().fields[2].doc == "c"


def test_one_column_is_changed_in_each_way(table: Table, alter: Alter) -> None:
    alter("ALTER COLUMN f TYPE double COMMENT 'wide'")
    alter("ALTER f AFTER id")
    alter("CHANGE COLUMN f COMMENT 'c'")
    alter("CHANGE COLUMN d D decimal(7, 2) COMMENT 'as in Hive' FIRST")
    alter("ALTER COLUMN s SET DEFAULT concat('a', 'b')")
    assert columns(table)[:3] == ["d decimal(7, 2)", "id long", "f double"]
    assert [field.doc for field in table.schema().fields[:3]] == ["as in Hive", None, "c"]
    assert [f.write_default for f in table.schema().fields if f.name == "s"] == ["ab"]
    alter("ALTER COLUMN s DROP DEFAULT")
    assert [f.write_default for f in table.schema().fields if f.name == "s"] == [None]


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("ALTER COLUMN s SET NOT NULL", InvalidOptionError, "cannot become required"),
        ("ALTER COLUMN s TYPE int", InvalidOptionError, "from string to int"),
        ("ALTER COLUMN st TYPE struct<x: bigint>", InvalidOptionError, "'st' cannot change"),
        ("ALTER COLUMN it TYPE int", InvalidOptionError, "no column 'it'"),
        ("ALTER COLUMN s TYPE bigintt", InvalidOptionError, "did you mean bigint"),
        ("ALTER COLUMN s AFTER x", InvalidOptionError, "no column 'x'"),
        ("ALTER COLUMN s SET DEFAULT now()", UnsupportedFeatureError, "column s: the default"),
        ("ALTER COLUMN st SET DEFAULT 1", Exception, "st"),
        ("CHANGE COLUMN s s2 string", UnsupportedFeatureError, "RENAME COLUMN"),
        ("CHANGE COLUMN s s string NOT NULL", UnsupportedFeatureError, "NOT NULL"),
        ("REPLACE COLUMNS (a int FIRST)", UnsupportedFeatureError, "FIRST"),
        ("ADD COLUMN c int PRIMARY KEY", UnsupportedFeatureError, "PRIMARY KEY"),
    ],
)
def test_changes_of_columns_that_are_refused(
    refused: Refused, text: str, error: type[Exception], words: str
) -> None:
    refused(text, error, words)


def test_a_change_that_fails_undoes_those_before_it(refused: Refused) -> None:
    refused("ALTER COLUMN f TYPE double, s TYPE int", InvalidOptionError, "string to int")


def test_all_columns_are_replaced(table: Table, alter: Alter) -> None:
    alter("REPLACE COLUMNS (id bigint COMMENT 'new', z string)")
    assert [(f.field_id, f.name, f.doc) for f in table.schema().fields] == [
        (11, "id", "new"),
        (12, "z", None),
    ]


def test_names_of_columns_have_the_case_of_the_session(
    front: SparkSession, table: Table, refused: Refused
) -> None:
    front.conf.set("spark.sql.caseSensitive", "true")
    refused("RENAME COLUMN S TO s2", InvalidOptionError, "there is no column 'S'")


def test_properties_are_set_and_removed(table: Table, alter: Alter, refused: Refused) -> None:
    alter("SET TBLPROPERTIES ('a' = 'b', 'write.format.default' = 'orc', n = 1)")
    assert {"a": "b", "write.format.default": "orc", "n": "1"}.items() <= table.properties.items()
    alter("UNSET TBLPROPERTIES ('a', write.format.default)")
    alter("UNSET TBLPROPERTIES IF EXISTS ('nope', n)")
    assert not {"a", "write.format.default", "n"} & table.properties.keys()
    refused("SET TBLPROPERTIES ('write.format.default' = 'csv')", InvalidOptionError, "csv")
    refused("SET TBLPROPERTIES ('sort-order' = 'id')", UnsupportedFeatureError, "WRITE ORDERED BY")
    refused(
        "SET TBLPROPERTIES ('identifier-fields' = 'id')",
        UnsupportedFeatureError,
        "SET IDENTIFIER FIELDS",
    )
    refused("SET TBLPROPERTIES ('owner' = 'me')", ParseException, "owner")


def test_the_format_version_is_a_property(front: SparkSession, lake: Catalog) -> None:
    front.sql("CREATE TABLE lake.db.v (id int)")
    front.sql("ALTER TABLE lake.db.v SET TBLPROPERTIES ('format-version' = '3', 'a' = 'b')")
    table = lake.load_table("db.v")
    assert table.metadata.format_version == 3
    assert table.properties["a"] == "b"
    assert "format-version" not in table.properties
    with pytest.raises(InvalidMetadataError, match="downgraded to 2"):
        front.sql("ALTER TABLE lake.db.v SET TBLPROPERTIES ('format-version' = '2')")


def test_the_location_is_set(table: Table, alter: Alter, tmp_path: Path) -> None:
    alter(f"SET LOCATION '{tmp_path}/elsewhere'")
    assert table.location() == f"{tmp_path}/elsewhere"
    alter(f"SET TBLPROPERTIES ('location' = '{tmp_path}/back', 'a' = 'b')")
    assert table.location() == f"{tmp_path}/back"
    assert table.properties["a"] == "b"
    assert "location" not in table.properties


def test_the_current_snapshot_is_set_by_properties(
    front: SparkSession, table: Table, alter: Alter, refused: Refused
) -> None:
    first, second = add_rows(front, table)
    alter(f"SET TBLPROPERTIES ('current-snapshot-id' = '{first}', 'a' = 'b')")
    assert table.metadata.current_snapshot_id == first
    assert table.properties["a"] == "b"
    alter(f"SET TBLPROPERTIES ('cherry-pick-snapshot-id' = '{second}')")
    assert table.metadata.current_snapshot_id == second
    refused("SET TBLPROPERTIES ('current-snapshot-id' = '1')", NoSuchSnapshotError, "snapshot 1")
    refused("SET TBLPROPERTIES ('current-snapshot-id' = 'x')", InvalidOptionError, "'x'")
    refused(
        f"SET TBLPROPERTIES ('current-snapshot-id' = '{first}', "
        f"'cherry-pick-snapshot-id' = '{second}')",
        InvalidOptionError,
        "one after the other",
    )


def test_partition_fields_are_added_replaced_and_dropped(
    table: Table, alter: Alter, refused: Refused
) -> None:
    alter("ADD PARTITION FIELD bucket(16, id)")
    alter("ADD PARTITION FIELD days(ts) AS of_day")
    alter("ADD PARTITION FIELD truncate(`s`, 4)")
    alter("ADD PARTITION FIELD f AS fraction")
    assert terms(table) == [
        ("id_bucket_16", "bucket[16]"),
        ("of_day", "day"),
        ("s_trunc_4", "truncate[4]"),
        ("fraction", "identity"),
    ]
    # By its own name, by the column and by the transform.
    alter("DROP PARTITION FIELD of_day")
    alter("DROP PARTITION FIELD f")
    alter("DROP PARTITION FIELD truncate(s, 4)")
    alter("REPLACE PARTITION FIELD bucket(16, id) WITH bucket(8, id) AS shard")
    assert terms(table) == [("shard", "bucket[8]")]
    alter("REPLACE PARTITION FIELD shard WITH hours(ts)")
    assert terms(table) == [("ts_hour", "hour")]
    refused("DROP PARTITION FIELD ts_our", InvalidOptionError, "'ts_our'")
    refused("ADD PARTITION FIELD days(id)", InvalidOptionError, "day does not apply")
    refused("ADD PARTITION FIELD days(it)", InvalidOptionError, "it does not exist")


def test_the_write_order_is_set_with_its_distribution(
    table: Table, alter: Alter, refused: Refused
) -> None:
    def mode() -> str | None:
        return table.properties.get("write.distribution-mode")

    alter("WRITE LOCALLY ORDERED BY s")
    assert (order(table), mode()) == (["s identity asc nulls-first"], None)
    alter("WRITE ORDERED BY s DESC, bucket(4, id) ASC NULLS LAST, st.x NULLS LAST")
    assert order(table) == [
        "s identity desc nulls-last",
        "id bucket[4] asc nulls-last",
        "st.x identity asc nulls-last",
    ]
    assert mode() == "range"
    alter("WRITE DISTRIBUTED BY PARTITION LOCALLY ORDERED BY (id, ts DESC)")
    assert order(table) == ["id identity asc nulls-first", "ts identity desc nulls-last"]
    assert mode() == "hash"
    alter("WRITE UNORDERED")
    assert (order(table), mode()) == ([], "none")
    alter("WRITE ORDERED BY id DISTRIBUTED BY PARTITION")
    assert (order(table), mode()) == (["id identity asc nulls-first"], "hash")
    alter("WRITE DISTRIBUTED BY PARTITION")
    assert (order(table), mode()) == ([], "hash")
    refused("WRITE ORDERED BY zorder(id, s)", InvalidOptionError, "zorder")
    refused("WRITE ORDERED BY it", InvalidOptionError, "it does not exist")


def test_identifier_fields_are_set_and_dropped(
    table: Table, alter: Alter, refused: Refused
) -> None:
    alter("ADD COLUMN k bigint NOT NULL DEFAULT 0")
    alter("SET IDENTIFIER FIELDS ID, k")
    assert table.schema().identifier_field_ids == (1, 11)
    alter("DROP IDENTIFIER FIELDS id")
    assert table.schema().identifier_field_ids == (11,)
    refused("DROP IDENTIFIER FIELDS id", InvalidOptionError, "id is not .*there are k")
    refused("SET IDENTIFIER FIELDS s", InvalidMetadataError, "optional")
    refused("SET IDENTIFIER FIELDS it", InvalidOptionError, "'it'")


def test_branches_are_created_moved_and_dropped(
    front: SparkSession, table: Table, alter: Alter, refused: Refused
) -> None:
    first, second = add_rows(front, table)
    alter("CREATE BRANCH b")
    assert table.refs()["b"].snapshot_id == second
    alter("CREATE BRANCH IF NOT EXISTS b AS OF VERSION 1", commits=0)
    refused("CREATE BRANCH b", AlreadyExistsError, "'b' exists")
    alter(
        f"CREATE OR REPLACE BRANCH b AS OF VERSION {first} RETAIN 7 DAYS "
        "WITH SNAPSHOT RETENTION 2 SNAPSHOTS 3 HOURS"
    )
    kept = table.refs()["b"]
    assert kept == SnapshotRef(first, kept.ref_type, 2, 3 * HOUR, 7 * DAY)
    alter("REPLACE BRANCH b WITH SNAPSHOT RETENTION 5 MINUTES")
    assert table.refs()["b"] == SnapshotRef(second, kept.ref_type, 2, 5 * MINUTE, 7 * DAY)
    alter(
        f"CREATE OR REPLACE BRANCH `b-2` AS OF VERSION {first} WITH SNAPSHOT RETENTION 4 SNAPSHOTS"
    )
    assert table.refs()["b-2"] == SnapshotRef(first, kept.ref_type, 4)
    alter("DROP BRANCH b")
    alter("DROP BRANCH IF EXISTS b", commits=0)
    refused("DROP BRANCH b", NoSuchSnapshotError, "no branch 'b'")
    refused("REPLACE BRANCH b", NoSuchSnapshotError, "no branch 'b'")
    refused("DROP BRANCH main", InvalidOptionError, "main")
    refused("CREATE BRANCH c AS OF VERSION 17", NoSuchSnapshotError, "no snapshot 17")


def test_tags_are_created_moved_and_dropped(
    front: SparkSession, table: Table, alter: Alter, refused: Refused
) -> None:
    first, second = add_rows(front, table)
    alter(f"CREATE TAG t AS OF VERSION {first} RETAIN 365 DAYS")
    tag = table.refs()["t"]
    assert (tag.ref_type, tag.snapshot_id, tag.max_ref_age_ms) == ("tag", first, 365 * DAY)
    alter("REPLACE TAG t RETAIN 1 HOURS")
    assert table.refs()["t"].snapshot_id == second
    assert table.refs()["t"].max_ref_age_ms == HOUR
    alter("CREATE TAG IF NOT EXISTS t", commits=0)
    alter("CREATE OR REPLACE TAG u")
    refused("CREATE TAG u", AlreadyExistsError, "'u' exists")
    refused("DROP BRANCH u", InvalidOptionError, "'u' is a tag")
    alter("DROP TAG u")
    alter("DROP TAG IF EXISTS u", commits=0)
    assert table.refs().keys() == {"main", "t"}


def test_a_branch_of_a_table_without_rows_has_a_snapshot_of_its_own(
    front: SparkSession, table: Table, alter: Alter, refused: Refused
) -> None:
    alter("CREATE BRANCH b RETAIN 3 DAYS")
    assert table.refs().keys() == {"b"}
    assert table.refs()["b"].max_ref_age_ms == 3 * DAY
    assert front.table("lake.db.t.branch_b").count() == 0
    refused("CREATE TAG t", NoSuchSnapshotError, "no snapshot yet")
    refused("REPLACE BRANCH b", NoSuchSnapshotError, "none yet")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ADD PARTITION FIELD", "expected a column"),
        ("ADD PARTITION FIELD days(", "at its end"),
        ("ADD PARTITION FIELD days(ts) TO d", "end of the statement at 'TO'"),
        ("REPLACE PARTITION FIELD a b", "expected WITH at 'b'"),
        ("WRITE", "expected DISTRIBUTED BY PARTITION"),
        ("WRITE ORDERED BY", "expected columns"),
        ("WRITE ORDERED BY id UNORDERED", "at 'UNORDERED'"),
        ("SET IDENTIFIER FIELDS", "expected the name of a column"),
        ("CREATE BRANCH", "expected the name of the branch"),
        ("CREATE BRANCH b AS OF x", "expected VERSION at 'x'"),
        ("CREATE BRANCH b AS OF VERSION x", "expected the id of a snapshot at 'x'"),
        ("CREATE BRANCH b RETAIN 7 WEEKS", "expected DAYS, HOURS, MINUTES at 'WEEKS'"),
        ("CREATE TAG t WITH SNAPSHOT RETENTION 1 DAYS", "end of the statement at 'WITH'"),
        ("DROP TAG", "expected the name of the tag"),
    ],
)
def test_statements_of_icebergs_extensions_say_what_was_expected(
    refused: Refused, text: str, expected: str
) -> None:
    refused(text, InvalidStatementError, expected)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nonsense", "'nonsense'"),
        ("ADD nonsense", "'nonsense'"),
        ("ADD COLUMN x", "end of input"),
        ("ADD COLUMN x int y", "'y'"),
        ("ALTER COLUMN s", "requires a TYPE"),
        ("SET LOCATION", "end of input"),
        ("RENAME TO a b", "'b'"),
    ],
)
def test_spark_says_what_is_malformed_in_its_statements(
    refused: Refused, text: str, words: str
) -> None:
    refused(text, ParseException, words)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("ADD PARTITION (id = 1)", "ADD PARTITION"),
        ("ADD IF NOT EXISTS PARTITION (id = 1) LOCATION 'x'", "ADD IF NOT EXISTS PARTITION"),
        ("DROP PARTITION (id = 1)", "DROP PARTITION"),
        ("DROP IF EXISTS PARTITION (id = 1) PURGE", "DROP IF EXISTS PARTITION"),
        ("PARTITION (id = 1) RENAME TO PARTITION (id = 2)", "PARTITION"),
        ("RECOVER PARTITIONS", "RECOVER PARTITIONS"),
        ("SET SERDE 'x'", "SET SERDE"),
        ("SET SERDEPROPERTIES ('a' = 'b')", "SET SERDEPROPERTIES"),
        ("CLUSTER BY (id)", "CLUSTER BY"),
        ("DEFAULT COLLATION UTF8_LCASE", "DEFAULT COLLATION"),
        ("ADD CONSTRAINT c PRIMARY KEY (id)", "CONSTRAINT c"),
        ("DROP CONSTRAINT c", "DROP CONSTRAINT"),
    ],
)
def test_statements_of_other_tables_are_refused_by_name(
    refused: Refused, text: str, named: str
) -> None:
    refused(text, UnsupportedFeatureError, named)


def test_tables_are_renamed_within_their_catalog(
    front: SparkSession, lake: Catalog, table: Table
) -> None:
    lake.create_namespace("other")
    front.sql("ALTER TABLE lake.db.t RENAME TO u")
    front.sql("ALTER TABLE lake.db.u RENAME TO other.v")
    front.sql("ALTER TABLE lake.other.v RENAME TO lake.db.w")
    assert lake.list_tables("db") == [("db", "w")]
    with pytest.raises(NoSuchNamespaceError, match="nowhere"):
        front.sql("ALTER TABLE lake.db.w RENAME TO nowhere.w")
    front.conf.set("spark.icebergpy.catalog.pond.warehouse", "/nowhere")
    register(front, sql=True)
    with pytest.raises(UnsupportedFeatureError, match="another catalog, pond"):
        front.sql("ALTER TABLE lake.db.w RENAME TO pond.db.w")


def test_only_tables_are_altered(front: SparkSession, table: Table) -> None:
    for name, error, words in (
        ("t.branch_main", InvalidStatementError, "leave out branch_main"),
        ("t.files", InvalidStatementError, "metadata tables"),
        ("tt", NoSuchTableError, r"did you mean db\.t"),
    ):
        with pytest.raises(error, match=words):
            front.sql(f"ALTER TABLE lake.db.{name} ADD COLUMN x int")


def test_tables_of_spark_are_altered_by_spark(front: SparkSession, lake: Catalog) -> None:
    front.sql("CREATE TABLE local (id int) USING parquet")
    try:
        front.sql("ALTER TABLE local ADD COLUMN s string")
        assert front.table("local").columns == ["id", "s"]
        with pytest.raises(ParseException, match="WRITE"):
            front.sql("ALTER TABLE local WRITE UNORDERED")
    finally:
        front.sql("DROP TABLE local")
