"""Encrypted tables in a Hive Metastore, with a key of AWS KMS, of icebergds and of Java Iceberg."""

from __future__ import annotations

import uuid
from pathlib import Path

import pyarrow as pa
import pytest
from hive_server import HiveServer
from java_process import JavaProcess
from moto_server import REGION, MotoServer
from pyspark.sql import SparkSession
from shared_catalog import ROWS, Lake, rows

import icebergds
from icebergds.formats.parquet import page_pruning

pytestmark = pytest.mark.interop

_FORMATS = ("parquet", "avro")


@pytest.fixture
def key(moto: MotoServer) -> str:
    """The id of a master key."""
    from botocore.session import Session

    client = Session().create_client(
        "kms",
        region_name=REGION,
        endpoint_url=moto.endpoint,
        aws_access_key_id="tester",
        aws_secret_access_key="secret",
    )
    return str(client.create_key()["KeyMetadata"]["KeyId"])


@pytest.fixture
def lake(
    locking_metastore: HiveServer, java_in_aws: JavaProcess, moto: MotoServer, tmp_path: Path
) -> Lake:
    identity = uuid.uuid4().hex
    properties = {
        "type": "hive",
        "uri": locking_metastore.uri,
        "warehouse": f"file:{tmp_path}/warehouse",
        "encryption.kms-type": "aws",
        "kms.endpoint": moto.endpoint,
        "client.region": REGION,
    }
    more = {
        "hive.hive2-compatible": "true",
        "client.access-key-id": "tester",
        "client.secret-access-key": "secret",
    }
    lake = Lake(f"lake_{identity}", java_in_aws, properties, more, f"db_{identity}")
    lake.open_in_java(properties)
    lake.ours().create_namespace(lake.database)
    return lake


def _encrypted(key: str, **properties: str) -> dict[str, str]:
    return {"format-version": "3", "encryption.key-id": key, **properties}


def _in_sql(properties: dict[str, str]) -> str:
    return ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())


def _nothing_is_plain(table: icebergds.Table) -> None:
    root = Path(table.location().removeprefix("file:"))
    magic = {
        path: path.read_bytes()[:4]
        for path in root.rglob("*")
        if path.suffix in (".avro", ".parquet", ".puffin", ".orc") and path.name[0] != "."
    }
    assert magic
    assert set(magic.values()) <= {b"AGS1", b"PARE"}


@pytest.mark.parametrize("file_format", _FORMATS)
def test_both_write_to_a_table_that_java_made(lake: Lake, key: str, file_format: str) -> None:
    properties = _encrypted(key, **{"write.format.default": file_format})
    lake.sql(
        f"CREATE TABLE {{db}}.t (id BIGINT, s STRING) USING iceberg PARTITIONED BY (s) "
        f"TBLPROPERTIES ({_in_sql(properties)})"
    )
    _write_in_turn(lake, lake.ours().load_table(lake.table("t")))


@pytest.mark.parametrize("file_format", _FORMATS)
def test_both_write_to_a_table_that_we_made(lake: Lake, key: str, file_format: str) -> None:
    properties = _encrypted(
        key, **{"write.format.default": file_format, "encryption.data-key-length": "32"}
    )
    table = lake.ours().create_table(
        lake.table("t"), ROWS, partition_spec="s", properties=properties
    )
    _write_in_turn(lake, table)


def _write_in_turn(lake: Lake, table: icebergds.Table) -> None:
    for mode in ("delete", "update", "merge"):
        lake.sql(f"ALTER TABLE {{db}}.t SET TBLPROPERTIES ('write.{mode}.mode' = 'merge-on-read')")
    table.refresh().append(rows({1: "a", 2: "b", 3: "c", 10: "a"}))
    lake.both_read("t", {1: "a", 2: "b", 3: "c", 10: "a"})
    lake.sql("INSERT INTO {db}.t VALUES (4, 'a'), (5, 'c'), (11, 'a'), (12, 'c')")
    lake.sql("DELETE FROM {db}.t WHERE id = 1")
    lake.both_read("t", {2: "b", 3: "c", 10: "a", 4: "a", 5: "c", 11: "a", 12: "c"})
    # Deletion vectors of Java's and of ours, of one file.
    table.refresh().upsert(rows({10: "z", 6: "d"}), ["id"])
    lake.both_read("t", {2: "b", 3: "c", 10: "z", 4: "a", 5: "c", 11: "a", 12: "c", 6: "d"})
    lake.sql("UPDATE {db}.t SET s = 'u' WHERE id IN (4, 6)")
    ids = pa.table({"id": pa.array([5], pa.int64())})
    table.refresh().delete_keys(ids, ["id"], options={"write.upsert.mode": "equality-deletes"})
    expected = {2: "b", 3: "c", 10: "z", 4: "u", 11: "a", 12: "c", 6: "u"}
    lake.both_read("t", expected)
    table.refresh().rewrite_data_files(options={"rewrite-all": "true"})
    table.rewrite_manifests()
    lake.both_read("t", expected)
    lake.sql("CALL {c}.system.rewrite_data_files('" + lake.table("t") + "')")
    lake.sql("CALL {c}.system.rewrite_manifests('" + lake.table("t") + "')")
    lake.both_read("t", expected)
    first = table.snapshots()[0].snapshot_id
    assert lake.sql(f"SELECT count(*) FROM {{db}}.t VERSION AS OF {first}") == [[4]]
    assert table.refresh().scan(snapshot_id=first).count() == 4
    table.remove_dangling_deletes()
    assert table.verify(depth="rows").findings == ()
    keys = len(table.metadata.encryption_keys)
    table.expire_snapshots(older_than=table.metadata.last_updated_ms + 1, retain_last=2)
    assert len(table.metadata.encryption_keys) < keys
    lake.both_read("t", expected)
    lake.sql("INSERT INTO {db}.t VALUES (7, 'e')")
    lake.both_read("t", expected | {7: "e"})
    _nothing_is_plain(table)


_Change = tuple[int, str, str]
"""Id, `s`, and what kind of change it is."""


def _triples(found: pa.Table) -> set[_Change]:
    return set(zip(*(column.to_pylist() for column in found.columns), strict=True))


def test_java_streams_and_sees_changes_of_what_we_write(
    spark: SparkSession, lake: Lake, key: str, tmp_path: Path
) -> None:
    # Java's view has no changes by delete files.
    properties = _encrypted(key, **{"write.delete.mode": "copy-on-write"})
    table = lake.ours().create_table(
        lake.table("t"), ROWS, partition_spec="s", properties=properties
    )
    stream = {
        "table": f"{lake.name}.{lake.table('t')}",
        "directory": str(tmp_path / "stream"),
        "options": {
            "streaming-skip-overwrite-snapshots": "true",
            "streaming-skip-delete-snapshots": "true",
        },
    }
    table.append(rows({1: "a", 2: "b", 3: "b"}))
    first = table.metadata.current_snapshot_id
    assert sorted(lake.java.ask("stream", **stream)) == [[1, "a"], [2, "b"], [3, "b"]]
    table.delete("id = 2", spark=spark)
    table.append(rows({4: "a", 5: "c"}))
    table.rewrite_data_files(options={"rewrite-all": "true"})
    table.append(rows({6: "b"}))
    appended = [[1, "a"], [2, "b"], [3, "b"], [4, "a"], [5, "c"], [6, "b"]]
    assert sorted(lake.java.ask("stream", **stream)) == appended
    view = f"changes_{lake.database}"
    lake.sql(
        f"CALL {{c}}.system.create_changelog_view(table => '{lake.table('t')}', "
        f"changelog_view => '{view}', options => map('start-snapshot-id', '{first}'))"
    )
    by_java = {tuple(row) for row in lake.sql(f"SELECT id, s, _change_type FROM {view}")}
    assert by_java == {
        (2, "b", "DELETE"),
        (4, "a", "INSERT"),
        (5, "c", "INSERT"),
        (6, "b", "INSERT"),
    }
    feed = table.changes(first, columns=["id", "s", "_change_type"]).to_arrow()
    assert _triples(feed) == by_java


def test_pages_of_java_are_read_alone(
    lake: Lake, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_pruning, "_MIN_BYTES", 0)
    monkeypatch.setattr(page_pruning, "_MIN_GAP", 1)
    properties = _encrypted(key, **{"write.parquet.page-row-limit": "100"})
    lake.sql(
        "CREATE TABLE {db}.t (id BIGINT, s STRING) USING iceberg "
        f"TBLPROPERTIES ({_in_sql(properties)})"
    )
    lake.sql(
        "INSERT INTO {db}.t SELECT id, IF(id % 5 = 0, NULL, concat('s', id % 7)) FROM range(3000)"
    )
    table = lake.ours().load_table(lake.table("t"))
    written = [(n, None if n % 5 == 0 else f"s{n % 7}") for n in range(3000)]
    for condition, first, last in (
        ("id = 1234", 1234, 1234),
        ("id between 950 and 1301", 950, 1301),
        ("id >= 2990", 2990, 2999),
    ):
        found = table.scan(row_filter=condition).to_arrow().sort_by("id")
        pairs = list(zip(*(column.to_pylist() for column in found.columns), strict=True))
        assert pairs == written[first : last + 1]


def test_java_reads_our_files_if_pages_of_version_2_are_asked_for(lake: Lake, key: str) -> None:
    properties = _encrypted(key, **{"write.parquet.page-version": "v2"})
    table = lake.ours().create_table(lake.table("t"), ROWS, properties=properties)
    table.append(rows({1: "a", 2: "b"}))
    lake.both_read("t", {1: "a", 2: "b"})


def test_all_types_of_java_are_read(lake: Lake, key: str) -> None:
    lake.sql(
        "CREATE TABLE {db}.t (b BOOLEAN, i INT, l BIGINT, f FLOAT, d DOUBLE, n DECIMAL(20, 3), "
        "day DATE, ts TIMESTAMP, ntz TIMESTAMP_NTZ, s STRING, bin BINARY, "
        "st STRUCT<a: INT, b: STRING>, a ARRAY<INT>, m MAP<STRING, BIGINT>) USING iceberg "
        f"TBLPROPERTIES ({_in_sql(_encrypted(key))})"
    )
    lake.sql(
        "INSERT INTO {db}.t SELECT id % 2 = 0, CAST(id AS INT), id, id / 2, id / 3, id / 7, "
        "date_add(DATE '2020-01-01', CAST(id AS INT)), timestamp_millis(id * 1000), "
        "CAST(timestamp_millis(id) AS TIMESTAMP_NTZ), IF(id = 3, NULL, concat('s', id)), "
        "CAST(concat('b', id) AS BINARY), named_struct('a', CAST(id AS INT), 'b', concat('x', id)),"
        " array(CAST(id AS INT), 1), map('k', id) FROM range(100)"
    )
    lake.sql("CREATE TABLE {db}.plain USING iceberg AS SELECT * FROM {db}.t")
    ours = lake.ours()
    encrypted = ours.load_table(lake.table("t"))
    found = encrypted.scan().to_arrow().sort_by("l")
    plain = ours.load_table(lake.table("plain")).scan().to_arrow().sort_by("l")
    assert found.num_rows == 100
    assert found.to_pylist() == plain.to_pylist()
    some = encrypted.scan(row_filter="l > 90 and s is not null").to_arrow()
    assert some.num_rows == 9
    lake.sql("ALTER TABLE {db}.t RENAME COLUMN s TO renamed")
    lake.sql("ALTER TABLE {db}.t ADD COLUMN added INT")
    lake.sql("ALTER TABLE {db}.t ALTER COLUMN i TYPE BIGINT")
    lake.sql("DELETE FROM {db}.t WHERE l < 50")
    evolved = encrypted.refresh().scan(columns=["l", "i", "renamed", "added"]).to_arrow()
    assert sorted(evolved["l"].to_pylist()) == list(range(50, 100))
    assert evolved["added"].null_count == 50
    assert len(encrypted.inspect.files()) >= 1
    _nothing_is_plain(encrypted)
