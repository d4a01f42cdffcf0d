"""Position delete files and deletion vectors."""

from __future__ import annotations

from typing import Any

from oracles.jvm import Iceberg, IcebergTable
from oracles.registry import ALL_FORMATS, table

_COLUMNS = [("id!", "long"), ("part", "string"), ("v", "string")]
_PARTITION = [("part", "identity")]


def _rows(first: int, count: int, parts: int = 1) -> list[dict[str, Any]]:
    return [
        {"id": i, "part": f"p{i % parts}", "v": f"value {i}"} for i in range(first, first + count)
    ]


@table("position deletes", "file granularity", formats=ALL_FORMATS)
def position_deletes_by_file(iceberg: Iceberg, name: str, file_format: str) -> IcebergTable:
    written = iceberg.create(name, _COLUMNS, partition=_PARTITION)
    files = written.append(_rows(0, 40, 4), file_format=file_format)
    for data_file, positions in zip(files, ([0], [9], [0, 1, 2, 8], range(10)), strict=True):
        delete = written.position_deletes([(data_file, positions)], file_format=file_format)
        written.row_delta(deletes=[delete])
    # A second delete of the same file, one position twice.
    again = written.position_deletes([(files[0], [0, 5])], file_format=file_format)
    written.row_delta(deletes=[again])
    return written


@table("position deletes", "partition granularity", formats=ALL_FORMATS)
def position_deletes_by_partition(iceberg: Iceberg, name: str, file_format: str) -> IcebergTable:
    written = iceberg.create(name, _COLUMNS, partition=_PARTITION)
    first = written.append(_rows(0, 20, 2), file_format=file_format)
    second = written.append(_rows(20, 20, 2), file_format=file_format)
    deletes = [
        written.position_deletes([(first[0], [0, 3]), (second[0], [1])], file_format=file_format),
        written.position_deletes([(first[1], [9]), (second[1], [0, 9])], file_format=file_format),
    ]
    written.row_delta(deletes=deletes)
    return written


@table("position deletes", "unpartitioned")
def position_deletes_of_several_files(iceberg: Iceberg, name: str) -> IcebergTable:
    written = iceberg.create(name, _COLUMNS)
    files = [written.append(_rows(10 * i, 10))[0] for i in range(4)]
    pairs = [(data_file, [i, 9 - i]) for i, data_file in enumerate(files[:3])]
    written.row_delta(deletes=[written.position_deletes(pairs)])
    written.append(_rows(40, 5))
    return written


@table("position deletes", "data and delete files of all formats mixed")
def position_deletes_of_mixed_formats(iceberg: Iceberg, name: str) -> IcebergTable:
    written = iceberg.create(name, _COLUMNS)
    files = [
        written.append(_rows(10 * i, 10), file_format=file_format)[0]
        for i, file_format in enumerate(ALL_FORMATS)
    ]
    for shift, file_format in enumerate(ALL_FORMATS):
        pairs = [(data_file, [shift, 5 + shift]) for data_file in files]
        written.row_delta(deletes=[written.position_deletes(pairs, file_format=file_format)])
    return written


@table("position deletes", "committed with their data")
def position_deletes_of_same_commit(iceberg: Iceberg, name: str) -> IcebergTable:
    written = iceberg.create(name, _COLUMNS)
    files = written.write(_rows(0, 10))
    written.row_delta(rows=files, deletes=[written.position_deletes([(files[0], [2, 3])])])
    return written


@table("position deletes", "of a file that is gone")
def position_deletes_left_over(iceberg: Iceberg, name: str) -> IcebergTable:
    written = iceberg.create(name, _COLUMNS)
    gone = written.append(_rows(0, 5))
    kept = written.append(_rows(5, 5))
    pairs = [(gone[0], [0, 1]), (kept[0], [4])]
    written.row_delta(deletes=[written.position_deletes(pairs)])
    written.java.newDelete().deleteFile(gone[0]).commit()
    return written


@table("position deletes", "several row groups", "splits")
def position_deletes_across_row_groups(iceberg: Iceberg, name: str) -> IcebergTable:
    written = iceberg.create(name, _COLUMNS, properties=SMALL_ROW_GROUPS)
    files = written.append(_rows(0, 1000))
    positions = [0, 1, 99, 100, 101, 500, 998, 999, *range(300, 420)]
    written.row_delta(deletes=[written.position_deletes([(files[0], positions)])])
    return written


SMALL_ROW_GROUPS = {
    "write.parquet.row-group-size-bytes": "2048",
    "write.parquet.page-size-bytes": "512",
    "write.parquet.row-group-check-min-record-count": "50",
    "write.parquet.row-group-check-max-record-count": "50",
    "write.parquet.dict-size-bytes": "512",
    "read.split.target-size": "4096",
    "read.split.open-file-cost": "1",
}


@table("position deletes", "Spark", "merge on read", "v2")
def spark_merge_on_read_v2(iceberg: Iceberg, name: str) -> IcebergTable:
    return _spark_changes(iceberg, name, 2, "merge-on-read")


@table("copy on write", "Spark", "v2")
def spark_copy_on_write_v2(iceberg: Iceberg, name: str) -> IcebergTable:
    return _spark_changes(iceberg, name, 2, "copy-on-write")


@table("deletion vectors", "row lineage", "Spark", "merge on read", "v3")
def spark_merge_on_read_v3(iceberg: Iceberg, name: str) -> IcebergTable:
    return _spark_changes(iceberg, name, 3, "merge-on-read")


@table("row lineage", "Spark", "copy on write", "v3")
def spark_copy_on_write_v3(iceberg: Iceberg, name: str) -> IcebergTable:
    return _spark_changes(iceberg, name, 3, "copy-on-write")


def _spark_changes(iceberg: Iceberg, name: str, version: int, mode: str) -> IcebergTable:
    modes = {f"write.{command}.mode": mode for command in ("delete", "update", "merge")}
    written = iceberg.create(
        name, _COLUMNS, version=version, partition=_PARTITION, properties=modes
    )
    written.append(_rows(0, 20, 2))
    written.append(_rows(20, 20, 2))
    written.sql("DELETE FROM {t} WHERE id IN (3, 4, 25, 39)")
    written.sql("UPDATE {t} SET v = concat(v, '!') WHERE id % 10 = 0")
    return written.sql(
        "MERGE INTO {t} USING (SELECT id, 'p1' AS part, 'merged' AS v FROM range(35, 45)) s "
        "ON {t}.id = s.id WHEN MATCHED AND s.id = 36 THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *"
    )


@table("deletion vectors", "v3", formats=ALL_FORMATS)
def deletion_vectors(iceberg: Iceberg, name: str, file_format: str) -> IcebergTable:
    """Two vectors in one Puffin file, then a second commit that replaces one of them."""
    written = iceberg.create(name, _COLUMNS, version=3, partition=_PARTITION)
    files = written.append(_rows(0, 30, 3), file_format=file_format)
    written.deletion_vectors([(files[0], [0, 4]), (files[1], [9])])
    written.deletion_vectors([(files[0], [1, 2]), (files[2], range(10))])
    return written


@table("deletion vectors", "v3", "merged over many commits")
def merged_deletion_vectors(iceberg: Iceberg, name: str) -> IcebergTable:
    written = iceberg.create(
        name, _COLUMNS, version=3, properties={"write.delete.mode": "merge-on-read"}
    )
    written.append(_rows(0, 50))
    for digit in (1, 3, 7):
        written.sql(f"DELETE FROM {{t}} WHERE id % 10 = {digit}")
    return written


@table("deletion vectors", "v3", "positions beyond 65536", "large file", "splits")
def large_file_with_vectors(iceberg: Iceberg, name: str) -> IcebergTable:
    written = iceberg.create(
        name,
        [("id!", "long"), ("v", "int")],
        version=3,
        properties={
            "write.parquet.row-group-size-bytes": "131072",
            "write.parquet.page-row-limit": "1000",
            "write.delete.mode": "merge-on-read",
            "read.split.target-size": "262144",
            "read.split.open-file-cost": "1",
        },
    )
    written.sql("INSERT INTO {t} SELECT id, cast(hash(id) AS int) FROM range(0, 150000, 1, 1)")
    written.sql("DELETE FROM {t} WHERE id BETWEEN 1000 AND 70000 OR id % 1000 = 3 OR id = 149999")
    return written.sql("DELETE FROM {t} WHERE id >= 131000 AND hash(id) % 2 = 0")


@table("deletion vectors", "position deletes", "v3", "upgraded from v2")
def upgraded_with_position_deletes(iceberg: Iceberg, name: str) -> IcebergTable:
    """Position deletes of version 2 stay where no vector replaces them."""
    written = iceberg.create(name, _COLUMNS, partition=_PARTITION)
    files = written.append(_rows(0, 30, 3))
    for data_file in files[:2]:
        written.row_delta(deletes=[written.position_deletes([(data_file, [0, 1])])])
    written.set(format_version="3", write__delete__mode="merge-on-read")
    written.sql("DELETE FROM {t} WHERE id IN (9, 2)")
    written.append(_rows(30, 6, 3))
    return written


@table("deletion vectors", "position deletes", "v3", "upgraded from v2")
def upgraded_with_shared_position_deletes(iceberg: Iceberg, name: str) -> IcebergTable:
    """A vector hides the partition-wide position deletes for its own data file only."""
    written = iceberg.create(name, _COLUMNS)
    files = [written.append(_rows(10 * i, 10))[0] for i in range(3)]
    shared = written.position_deletes([(data_file, [0, 1]) for data_file in files])
    written.row_delta(deletes=[shared])
    written.set(format_version="3")
    # The vector holds what the older deletes hold for this file, as the specification asks.
    written.deletion_vectors([(files[1], [0, 1, 7])])
    return written
