"""Reads, writes and changes of rows through Spark Connect; the format is found unregistered."""

from __future__ import annotations

from typing import Any

import pytest
from effort import IS_NIGHTLY, given_seed, rounds
from spark_reads import run_program
from spark_tables import ALL_PEOPLE, LIVE_PEOPLE, people

pytestmark = pytest.mark.spark

Seen = dict[str, Any]
MODES = ["merge-on-read", "copy-on-write"] if IS_NIGHTLY else ["merge-on-read"]
IN_EACH_MODE = pytest.mark.parametrize("mode", MODES)


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    directory = tmp_path_factory.mktemp("connect")
    people(directory / "people")
    table = str(directory / "people")
    programs = rounds("ICEBERGDS_FRAME_PROGRAMS", pull=2, nightly=10)
    return run_program(
        "connect.py",
        *(str(directory), table, "people", ",".join(MODES), str(programs), str(given_seed())),
        directory=directory,
        timeout=3600 if IS_NIGHTLY else 600,
        through_connect=True,
    )


@pytest.fixture
def reads(seen: Seen) -> Seen:
    part: Seen = seen["reads"]
    return part


@pytest.fixture
def changes(seen: Seen) -> Seen:
    part: Seen = seen["row changes"]
    return part


@pytest.fixture
def writes(seen: Seen) -> Seen:
    part: Seen = seen["writes"]
    return part


@pytest.fixture
def evolution(seen: Seen) -> Seen:
    part: Seen = seen["evolution"]
    return part


def test_the_session_is_one_of_connect(seen: Seen) -> None:
    assert seen["session"] == "pyspark.sql.connect.session"


def test_connect_reads_a_table_with_deletes(reads: Seen) -> None:
    assert reads["all"] == LIVE_PEOPLE


def test_connect_travels_in_time(reads: Seen) -> None:
    assert reads["first snapshot"] == ALL_PEOPLE


def test_connect_filters_by_option(reads: Seen) -> None:
    assert reads["option filter"] == [1, 5]


def test_connect_keeps_the_filters_of_one_load_apart(reads: Seen) -> None:
    """`all` is read from the same load, later."""
    assert reads["union of filters"] == [1, 5]
    assert reads["all"] == LIVE_PEOPLE


def test_connect_reads_a_temporary_view(reads: Seen) -> None:
    assert reads["view"] == [4, 5, 6, 7, 8, 9]


def test_connect_scans_with_the_time_zone_of_the_session(reads: Seen) -> None:
    assert reads["scan"] == [1, 2]


def test_connect_scans_a_table_named_relative_to_the_client(reads: Seen) -> None:
    assert reads["scan of a relative path"] == LIVE_PEOPLE


def test_connect_leaves_files_without_deletes_to_spark(reads: Seen) -> None:
    native = {"by spark": 2, "first snapshot": ALL_PEOPLE, "current": LIVE_PEOPLE}
    assert reads["native scan"] == native


@pytest.mark.parametrize(
    ("case", "error", "detail"),
    [
        ("missing table", "icebergds.errors.NoSuchTableError", "/nowhere/metadata"),
        ("missing column", "icebergds.errors.InvalidOptionError", "did you mean name"),
        ("bad filter", "icebergds.errors.InvalidFilterError", "nmae"),
    ],
)
def test_errors_of_reads_are_ours(reads: Seen, case: str, error: str, detail: str) -> None:
    assert error in reads[case]
    assert detail in reads[case]


def test_connect_creates_and_appends(writes: Seen) -> None:
    assert writes["appended"] == [0, 1, 2, 3, 4]


def test_connect_appends_from_threads_and_through_tables(writes: Seen) -> None:
    assert writes["appended again"] == [0, 1, 2, 3, 4, 5, 6]
    assert writes["overwritten"] == [9]


def test_errors_of_writes_are_ours(writes: Seen) -> None:
    assert "icebergds.errors.InvalidDataError" in writes["unknown column"]
    assert "cannot store every value" in writes["null"]


def test_writers_of_registered_sessions_of_connect_are_ours(writes: Seen) -> None:
    assert writes["front door"] == {
        "columns": "id4",
        "partitions": ["part"],
        "owner": "me",
        "named": [0, 1, 2, 7],
        "v2": [0, 10, 11],
        "v2 partitions": ["at_day", "id_bucket"],
        "exists": writes["front door"]["exists"],
    }
    assert "errorifexists" in writes["front door"]["exists"]


def test_the_server_reads_and_writes_what_only_it_reaches(writes: Seen) -> None:
    seen = writes["by the server"]
    assert seen["rows"] == [4, 5, 50]
    assert "is out of reach" in seen["no table"]
    assert "does not exist" in seen["no table to write"]


def test_connect_hands_on_catalogs_of_the_session(writes: Seen) -> None:
    assert writes["catalog"] == [0, 1]
    assert writes["batches"] == "2147483647"


def test_registration_warns_of_what_connect_keeps_secret(writes: Seen) -> None:
    [warning] = writes["warnings"]
    assert "catalog lake has no s3.secret-access-key" in warning
    assert "(PYICEBERG_CATALOG__LAKE__S3__SECRET_ACCESS_KEY)" in warning
    assert "known to the server alone" not in warning


@IN_EACH_MODE
def test_connect_changes_rows(changes: Seen, mode: str) -> None:
    assert changes[mode]["rows"] == [
        [1, None],
        [3, "n3c"],
        [6, "n6"],
        [7, "N7"],
        [8, "x"],
        [50, "new"],
    ]
    assert changes[mode]["counts"] == [
        [0, 0, 2, 0],
        [0, 0, 1, 0],
        [0, 2, 0, 0],
        [0, 1, 0, 0],
        [1, 1, 2, 0],
        [0, 2, 0, 0],
    ]


def test_connect_applies_a_stream_of_changes_once(changes: Seen) -> None:
    assert changes["streamed"] == [[1, "new"], [2, "n2"], [7, "added"]]


@IN_EACH_MODE
def test_errors_of_statements_are_ours(changes: Seen, mode: str) -> None:
    seen = changes[mode]
    assert seen["unresolved"].startswith("InvalidFilterError: delete: condition")
    assert "not deterministic" in seen["random"]
    assert "row of the source" in seen["twice"]


def test_connect_makes_tables_of_those_of_spark(seen: Seen) -> None:
    imports = seen["imports"]
    assert imports["rows"] == [[i, "2026-01-01"] for i in range(3)]
    assert (imports["files"] > 0, imports["migrated"]) == (True, [0, 1, 2])
    assert (imports["backup"], imports["is there"]) == (None, False)
    assert "no table imported" in imports["missing"]


def test_frames_of_connect_have_rows_and_lineage_of_plain_spark(seen: Seen) -> None:
    assert seen["frames"]["different"] == []


def test_frames_of_connect_leave_files_out_by_their_conditions(seen: Seen) -> None:
    frames = seen["frames"]
    assert frames["class"] == "ConnectFrame"
    assert frames["other class"] == "DataFrame"
    # One of all is of deletes by key, which apply to the file of partition 2.
    assert frames["files"] == [7, 1]
    assert frames["by Columns"] == 2
    assert frames["by computed columns"] == 10
    assert frames["schema"] == "struct<id:bigint,s:string>"


def test_aggregates_of_connect_have_the_rows_and_names_of_reading(seen: Seen) -> None:
    found = seen["aggregates"]
    assert found["different"] == []
    assert found["joined"] == 40
    assert found["keys are kept"] == [2] * 4


def test_metadata_answers_aggregates_of_connect_without_data_files(seen: Seen) -> None:
    assert seen["aggregates"]["read"] == []
    assert seen["aggregates"]["count"] == [20, 0]


def test_aggregates_of_connect_can_be_ordered_by_columns_of_the_load(seen: Seen) -> None:
    assert seen["aggregates"]["lineage"] == ["2025-01-02", "2025-01-01"]


def test_first_rows_of_connect_are_those_of_all_and_read_only_their_files(seen: Seen) -> None:
    assert seen["aggregates"]["first"] == []
    top_fails, all_fail = seen["aggregates"]["fail without older files"]
    assert (top_fails, all_fail) == (False, True)


def test_frames_of_connect_leave_deleted_rows_out_in_files_that_spark_reads(seen: Seen) -> None:
    assert seen["frames"]["deleted"] == []
    assert seen["frames"]["not deleted"] == 60
    assert seen["frames"]["files with deletes"] == 1


def test_connect_reads_defaults_and_widened_numbers_with_the_reader_of_spark(seen: Seen) -> None:
    assert seen["frames"]["defaults"] == [["1.50", "new"]]
    assert seen["frames"]["defaults are read by Spark"] == 2


def test_connect_prunes_by_text_as_the_session_reads_it(seen: Seen) -> None:
    assert seen["frames"]["text"] == {
        "l = 9007199254740993D": [[1, 2], [1, 2]],
        "f = '0.1'": [[2], [2]],
        "f = 16777217": [[3], [3]],
        'b = "c"': [[2], [2]],
        r"b = 'x\y'": [[3], [3]],
    }


def test_connect_prunes_by_text_as_the_session_reads_it_when_a_job_runs(seen: Seen) -> None:
    """The last number of each is that of the files; escapes are left to Spark if it has others."""
    assert seen["frames"]["text later"] == {
        "t < timestamp'1970-01-01 01:00:00'": [[0, 1, 2, 3], [0, 1], [0, 1, 2, 3]],
        r"s = 'x\\y'": [[0, 1], [1, 4], [0, 1]],
        's = "s"': [[0, 1, 2, 3, 4], [2, 1], [0, 1, 2, 3, 4]],
    }


def test_connect_does_not_prune_by_dates_if_the_session_compares_their_text(seen: Seen) -> None:
    """The last number of each is that of the files."""
    assert seen["frames"]["dates"] == [[0, 1], [0, 2, 3]]


def test_connect_prunes_by_the_columns_that_are_read(seen: Seen) -> None:
    assert seen["frames"]["columns that differ by case"] == {
        "n,A": [0, 1, 2, 3],
        "n,a": [3],
    }


def test_connect_reads_itself_if_the_session_has_another_reader_of_parquet(seen: Seen) -> None:
    assert seen["frames"]["another reader of Parquet"] == [0, 3, 5, 6, 8]


def test_connect_reads_files_without_the_columns_of_their_partitions(seen: Seen) -> None:
    """Those that have field ids, and those whose columns are found by a name mapping."""
    expected = [
        [
            "[1, 'x', 7, 1.0]",
            "[2, None, 7, nan]",
            "[3, 'x', 8, 1.0]",
            "[4, None, 8, nan]",
            "[5, 'x', None, 1.0]",
            "[6, None, None, nan]",
            "[9, 'x', 7, None]",
        ],
        ["[1, 'x', 7, 1.0]", "[2, None, 7, nan]", "[9, 'x', 7, None]"],
        ["[5, 'x', None, 1.0]", "[6, None, None, nan]"],
        ["[1, 'x', 7, 1.0]", "[3, 'x', 8, 1.0]", "[5, 'x', None, 1.0]", "[9, 'x', 7, None]"],
        ["[2, None, 7, nan]", "[4, None, 8, nan]"],
        ["[2, None, 7, nan]", "[4, None, 8, nan]", "[6, None, None, nan]"],
    ]
    assert seen["frames"]["partition values"] == expected
    assert seen["frames"]["mapped names"] == expected
    assert seen["frames"]["files of partitions"] == [4, 4]


def test_connect_finds_nan_in_files_that_spark_reads(seen: Seen) -> None:
    assert seen["frames"]["NaN"] == [1, 1]
    assert seen["frames"]["NaN is read by Spark"] == 1


def test_tables_are_shaped_through_connect(evolution: Seen) -> None:
    names = ["part", "id", "day", "s", "d"]
    assert [field.split(": ")[1] for field in evolution["columns"].split(", ")] == names
    assert (evolution["updated"], evolution["deleted"]) == (1, 1)


def test_a_transaction_of_dataframes_is_one_commit_through_connect(evolution: Seen) -> None:
    assert evolution["rows"] == [
        {"id": 2, "part": 1, "s": None},
        {"id": 3, "part": 0, "s": None},
        {"id": 9, "part": 1, "s": "nine!"},
        {"id": 10, "part": 1, "s": "nine"},
    ]
    assert evolution["refs"] == ["done", "main"]


def test_metadata_tables_are_read_through_connect(evolution: Seen) -> None:
    assert evolution["rows by files"] == 4
    assert sum(evolution["partition"]) == 3


def test_columns_of_connect_are_filters_of_scans(evolution: Seen) -> None:
    assert evolution["by column"] == [3, 9, 10]
    assert evolution["counted by column"] == 3


def test_statements_change_rows(seen: Seen) -> None:
    assert seen["sql rows"] == {
        "insert": [[1, "a", "x"], [2, "b", "x"], [3, "c", "y"]],
        "overwrite": [[1, "a", "x"], [2, "b", "x"], [4, None, "y"]],
        "delete": [[1, "a", "x"], [2, "b", "x"]],
        "update": [[1, "a", "x"], [2, "x", "x"]],
        "merge": [[1, "a", "x"], [2, "matched", "x"], [3, None, None]],
        "replace using": [[3, None, None], [4, "d", "x"], [5, "e", "z"]],
        "replace on": [[3, None, None], [4, "d", "x"], [4, "f", "x"]],
        "malformed": "ParseException",
        "too few": "InvalidDataError",
        "wrong key": "InvalidFilterError",
        "merge into": [[4, "d4", "x"], [4, "f4", "x"], [5, None, None]],
        "truncate": [],
        "views": [],
    }


def test_tables_are_defined_with_sql_through_connect(seen: Seen) -> None:
    defined = seen["definitions"]
    assert defined["result"] == [[], []]
    assert defined["defaults"] == [None, "it's", 1704067200000000]
    assert defined["rows"] == [[0, "x", 2], [1, "x", 2], [2, "x", 2]]
    assert (defined["references"], defined["order"]) == (["done", "main"], ["desc"])
    assert defined["errors"] == [
        "ParseException",
        "InvalidStatementError",
        "UnsupportedFeatureError",
    ]
    assert defined["left"] == []


def test_tables_and_views_are_described_in_sql_through_connect(seen: Seen) -> None:
    others = ("catalog", "changes")
    results = {key: each for key, each in seen["sql of views"].items() if key not in others}
    plan = results.pop("EXPLAIN SELECT * FROM t WHERE name = 'b'")[0][0]
    assert plan.startswith("== Physical Plan ==\n")
    assert "files      1 of 2 kept" in plan
    assert results == {
        "USE views.db": [],
        "SHOW CURRENT NAMESPACE": [["views", "db"]],
        "SELECT current_catalog(), current_schema()": [["views", "db"]],
        "CREATE VIEW pairs (i COMMENT 'x', n) AS SELECT id, name FROM t": [],
        "SELECT * FROM pairs ORDER BY i": [[1, "a"], [2, "b"]],
        "DESCRIBE pairs": [["i", "bigint", "x"], ["n", "string", ""]],
        "SHOW VIEWS LIKE 'pairs'": [["db", "pairs", False]],
        "DESCRIBE t id": [["col_name", "id"], ["data_type", "bigint"], ["comment", "NULL"]],
        "DESCRIBE QUERY SELECT id FROM t": [["id", "bigint", None]],
        "CREATE TEMPORARY VIEW seen (a) AS SELECT id FROM t": [],
        "CREATE VIEW w AS SELECT * FROM seen": "InvalidStatementError",
        "SHOW NAMESPACES IN nope": "NoSuchNamespaceError",
        "DESCRIBE nope": "NoSuchTableError",
        "CACHE TABLE cached AS SELECT id FROM t WHERE id > 1": [],
        "SELECT * FROM cached": [[2]],
        "CACHE TABLE t": [],
        "SELECT * FROM t ORDER BY id": [[1, "a"], [2, "b"], [3, "c"]],
        "SELECT id, _change_type, _commit_version FROM t CHANGES FROM VERSION 2": [
            [3, "insert", 2]
        ],
        "SELECT a FROM seen ORDER BY a": [[1], [2], [3]],
        "CREATE OR REPLACE TEMPORARY VIEW seen AS SELECT 7 AS a": [],
        "SELECT max(a) FROM seen": [[7]],
    }


FEED = ["id", "name", "_change_type", "_commit_version", "_commit_timestamp"]


def test_readers_of_connect_have_changes(seen: Seen) -> None:
    assert seen["sql of views"]["changes"] == {
        "batch": [[3, "c", "insert", 2]],
        "stream": [True, FEED],
        "queried": [True, FEED],
        "named": True,
    }


def test_the_catalog_of_a_session_of_connect_knows_our_tables(seen: Seen) -> None:
    assert seen["sql of views"]["catalog"] == {
        "current": ["views", "db"],
        "databases": ["db"],
        "exists": [True, False],
        "tables": [[name, "views", ["db"], None, "MANAGED", False] for name in ("made", "t")],
        "temporary": True,
        "columns": [
            ["id", None, "bigint", True, False, False, False],
            ["name", None, "string", True, True, False, False],
        ],
        "made": ["id"],
        "cached": [True, None, False],
        "of Spark": ["default", False],
    }


def test_procedures_and_functions_are_called(seen: Seen) -> None:
    called = seen["procedures"]
    assert called["moved"] == [[True]]
    assert called["ancestors"] == [["snapshot_id", "timestamp"], 1]
    assert (called["upserted"], called["changes"], called["procedures"]) == (1, 3, 27)
    assert called["computed"] == ["1969-12-31", "12", "-10"]
    assert "is of type decimal(2,1), expected BIGINT" in called["type"]
    assert "did you mean calls.system.ancestors_of" in called["unknown"]
    assert called["syntax"].startswith("ParseException")
    assert "(line 1, pos 31)" in called["syntax"]
    assert "EXPLAIN" not in called["syntax"]
