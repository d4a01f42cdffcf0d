"""Snapshots, refs and metadata: what happens to a table over time."""

from __future__ import annotations

import time
from typing import Any

from oracles.jvm import Iceberg, IcebergTable
from oracles.registry import table

_COLUMNS = [("id!", "long"), ("part", "string"), ("v", "int")]
_PARTITION = [("part", "identity")]


def _rows(first: int, count: int, parts: int = 2) -> list[dict[str, Any]]:
    return [{"id": i, "part": f"p{i % parts}", "v": i * i} for i in range(first, first + count)]


def _appended(
    iceberg: Iceberg, name: str, batches: int, *, version: int = 2, **properties: str
) -> IcebergTable:
    named = {key.replace("__", ".").replace("_", "-"): value for key, value in properties.items()}
    written = iceberg.create(
        name, _COLUMNS, partition=_PARTITION, version=version, properties=named
    )
    for batch in range(batches):
        written.append(_rows(batch * 6, 6))
    return written


@table("history", "no snapshot")
def no_snapshot(iceberg: Iceberg, name: str) -> IcebergTable:
    return iceberg.create(name, _COLUMNS, partition=_PARTITION)


@table("history", "no snapshot", "v1")
def no_snapshot_v1(iceberg: Iceberg, name: str) -> IcebergTable:
    return iceberg.create(name, _COLUMNS, version=1)


@table("history", "no snapshot", "v3")
def no_snapshot_v3(iceberg: Iceberg, name: str) -> IcebergTable:
    return iceberg.create(name, _COLUMNS, version=3)


@table("history", "snapshot without files")
def empty_append(iceberg: Iceberg, name: str) -> IcebergTable:
    written = iceberg.create(name, _COLUMNS)
    written.java.newAppend().commit()
    return written


@table("history", "file without rows", formats=("orc", "avro"))
def empty_file(iceberg: Iceberg, name: str, file_format: str) -> IcebergTable:
    written = iceberg.create(name, _COLUMNS)
    written.append([], file_format=file_format)
    written.append(_rows(0, 2))
    return written


@table("history", "file without rows that was never written")
def missing_empty_file(iceberg: Iceberg, name: str) -> IcebergTable:
    """Java's Parquet writer makes no file for no rows; a manifest entry without rows is skipped."""
    written = iceberg.create(name, _COLUMNS)
    written.append([])
    written.append(_rows(0, 2))
    return written


@table("history", "v4", refused="'manifest-list', as Java Iceberg 1.12 writes version 4")
def format_version_4(iceberg: Iceberg, name: str) -> IcebergTable:
    written = iceberg.create(name, _COLUMNS, version=4)
    written.append(_rows(0, 6))
    return written


@table("history", "append", "time travel", as_of=True)
def several_appends(iceberg: Iceberg, name: str) -> IcebergTable:
    written = iceberg.create(name, _COLUMNS)
    for batch in range(4):
        written.append(_rows(batch * 6, 6))
        _tick()
    return written


@table("history", "overwrite", "time travel")
def overwrites(iceberg: Iceberg, name: str) -> IcebergTable:
    """Overwrites by filter, of whole partitions and of named files."""
    written = _appended(iceberg, name, 2)
    equal = iceberg.api.expressions.Expressions.equal
    update = written.java.newOverwrite().overwriteByRowFilter(equal("part", "p0"))
    for data_file in written.write([{"id": 100, "part": "p0", "v": 1}]):
        update.addFile(data_file)
    update.commit()
    replace = written.java.newReplacePartitions()
    for data_file in written.write([{"id": 200, "part": "p1", "v": 2}]):
        replace.addFile(data_file)
    replace.commit()
    (old,) = written.append([{"id": 300, "part": "p2", "v": 3}])
    update = written.java.newOverwrite().deleteFile(old)
    for data_file in written.write([{"id": 301, "part": "p2", "v": 4}]):
        update.addFile(data_file)
    update.commit()
    return written


@table("history", "delete", "time travel")
def metadata_deletes(iceberg: Iceberg, name: str) -> IcebergTable:
    written = _appended(iceberg, name, 3)
    expressions = iceberg.api.expressions.Expressions
    written.java.newDelete().deleteFromRowFilter(expressions.equal("part", "p1")).commit()
    written.append(_rows(50, 4))
    written.java.newDelete().deleteFromRowFilter(expressions.alwaysTrue()).commit()
    written.append(_rows(60, 2))
    return written


@table("history", "everything deleted")
def emptied(iceberg: Iceberg, name: str) -> IcebergTable:
    written = _appended(iceberg, name, 2)
    always = iceberg.api.expressions.Expressions.alwaysTrue()
    written.java.newDelete().deleteFromRowFilter(always).commit()
    return written


@table("history", "rollback", "time travel", as_of=True)
def rolled_back(iceberg: Iceberg, name: str) -> IcebergTable:
    written = _appended(iceberg, name, 2)
    second = written.snapshot_id()
    _tick()
    written.append(_rows(90, 3))
    _tick()
    written.java.manageSnapshots().rollbackTo(second).commit()
    _tick()
    written.append(_rows(40, 2))
    return written


@table("history", "branch", "tag", "evolution", "time travel")
def branches_and_tags(iceberg: Iceberg, name: str) -> IcebergTable:
    """Refs that saw other schemas, and a branch with rows of its own."""
    written = iceberg.create(name, _COLUMNS)
    written.append(_rows(0, 4))
    first = written.snapshot_id()
    written.java.manageSnapshots().createTag("first", first).createBranch("audit", first).commit()
    written.evolve(("renameColumn", "v", "square"), ("addColumn", "w", iceberg.type("string")))
    files = written.write([{"id": 50, "part": "p0", "square": 2500, "w": "audit"}])
    written.commit_files(written.java.newAppend().toBranch("audit"), files)
    written.append([{"id": 60, "part": "p1", "square": 3600, "w": "main"}])
    tagged = written.snapshot_id()
    manage = written.java.manageSnapshots()
    manage.createTag("release 1.0/ü", tagged).createBranch("same as main", tagged).commit()
    written.evolve(("deleteColumn", "part"))
    return written


@table("history", "write-audit-publish", "cherry-pick", "time travel")
def cherry_picked(iceberg: Iceberg, name: str) -> IcebergTable:
    written = _appended(iceberg, name, 1)
    staged = written.java.newAppend().stageOnly().set("wap.id", "audit-1")
    written.commit_files(staged, written.write(_rows(70, 2)))
    staged_id = max(written.java.snapshots(), key=lambda s: s.timestampMillis()).snapshotId()
    written.append(_rows(80, 2))
    written.java.manageSnapshots().cherrypick(staged_id).commit()
    written.commit_files(written.java.newAppend().stageOnly(), written.write(_rows(95, 1)))
    return written


@table("history", "expired snapshots", "time travel")
def expired_snapshots(iceberg: Iceberg, name: str) -> IcebergTable:
    written = _appended(iceberg, name, 5)
    keep_from = _milliseconds() + 1000
    written.java.expireSnapshots().expireOlderThan(keep_from).retainLast(2).commit()
    written.append(_rows(60, 2))
    return written


@table("history", "manifests merged")
def merged_manifests(iceberg: Iceberg, name: str) -> IcebergTable:
    return _appended(iceberg, name, 7, commit__manifest__min_count_to_merge="3")


@table("history", "manifests rewritten", "position deletes")
def rewritten_manifests(iceberg: Iceberg, name: str) -> IcebergTable:
    written = iceberg.create(name, _COLUMNS, partition=_PARTITION)
    files = [written.append(_rows(batch * 6, 6)) for batch in range(4)]
    written.row_delta(deletes=[written.position_deletes([(files[0][0], [0])])])
    written.call("rewrite_manifests", "use_caching => false")
    written.append(_rows(50, 2))
    return written


@table("history", "data files rewritten", "position deletes", "equality deletes")
def compacted(iceberg: Iceberg, name: str) -> IcebergTable:
    """Compaction at the old sequence number, with an equality delete that came after it."""
    written = iceberg.create(name, _COLUMNS)
    files = [written.append(_rows(batch * 6, 6))[0] for batch in range(4)]
    written.row_delta(deletes=[written.position_deletes([(files[0], [0, 1]), (files[2], [5])])])
    written.row_delta(deletes=[written.equality_deletes(["id"], [{"id": 8}])])
    written.call("rewrite_data_files", "options => map('rewrite-all', 'true')")
    written.row_delta(deletes=[written.equality_deletes(["id"], [{"id": 9}])])
    written.append(_rows(30, 3))
    return written


@table("history", "data files rewritten", "row lineage", "v3")
def compacted_v3(iceberg: Iceberg, name: str) -> IcebergTable:
    written = iceberg.create(name, _COLUMNS, version=3)
    files = [written.append(_rows(batch * 6, 6))[0] for batch in range(3)]
    written.deletion_vectors([(files[1], [0, 5])])
    written.call("rewrite_data_files", "options => map('rewrite-all', 'true')")
    written.append(_rows(30, 3))
    return written


@table("history", "position deletes rewritten")
def rewritten_position_deletes(iceberg: Iceberg, name: str) -> IcebergTable:
    written = iceberg.create(name, _COLUMNS)
    files = [written.append(_rows(batch * 6, 6))[0] for batch in range(3)]
    for data_file in files:
        written.row_delta(deletes=[written.position_deletes([(data_file, [1, 4])])])
    return written.call("rewrite_position_delete_files", "options => map('rewrite-all', 'true')")


@table("history", "v1", "v2", "v3", "upgrade", "time travel")
def upgraded_step_by_step(iceberg: Iceberg, name: str) -> IcebergTable:
    written = _appended(iceberg, name, 2, version=1)
    written.set(format_version="2")
    files = written.append(_rows(20, 4))
    written.row_delta(
        deletes=[
            written.position_deletes([(files[0], [0])]),
            written.equality_deletes(["v"], [{"v": 4}, {"v": 16}], partition_of=_rows(0, 1)[0]),
        ]
    )
    written.set(format_version="3")
    files = written.append(_rows(30, 4))
    written.deletion_vectors([(files[0], [1])])
    return written


@table("history", "v1", "snapshot id inheritance")
def inherited_snapshot_ids_v1(iceberg: Iceberg, name: str) -> IcebergTable:
    return _appended(
        iceberg, name, 3, version=1, compatibility__snapshot_id_inheritance__enabled="true"
    )


@table("history", "gzip metadata", "time travel")
def gzip_metadata(iceberg: Iceberg, name: str) -> IcebergTable:
    return _appended(iceberg, name, 3, write__metadata__compression_codec="gzip")


@table("history", "old metadata files deleted")
def short_metadata_log(iceberg: Iceberg, name: str) -> IcebergTable:
    return _appended(
        iceberg,
        name,
        5,
        write__metadata__previous_versions_max="1",
        write__metadata__delete_after_commit__enabled="true",
    )


@table("history", "table replaced", "time travel")
def replaced_table(iceberg: Iceberg, name: str) -> IcebergTable:
    written = _appended(iceberg, name, 1)
    return written.sql(
        "CREATE OR REPLACE TABLE {t} USING iceberg PARTITIONED BY (bucket(2, k)) "
        "AS SELECT id AS k, cast(id AS string) AS part FROM range(5)"
    )


@table("history", "statistics files", "sort order", "identifier fields", "comments")
def well_described(iceberg: Iceberg, name: str) -> IcebergTable:
    written = _appended(iceberg, name, 1)
    written.sql("ALTER TABLE {t} WRITE ORDERED BY part, v DESC")
    written.java.updateSchema().setIdentifierFields(["id"]).updateColumnDoc(
        "v", "a square"
    ).commit()
    written.append(_rows(40, 4))
    return written.call("compute_table_stats").call("compute_partition_stats")


def _tick() -> None:
    """Lets the clock move, so that every snapshot has its own timestamp."""
    start = _milliseconds()
    while _milliseconds() <= start + 1:
        time.sleep(0.001)


def _milliseconds() -> int:
    return time.time_ns() // 1_000_000
