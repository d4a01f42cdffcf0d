"""Makes the tables of `maintenance.py`, and says what they hold."""

from __future__ import annotations

import os
import sys
import time
import uuid
from collections.abc import Hashable, Iterator
from pathlib import Path

import numpy as np
from maintenance_manifests import create_table
from pyspark.sql import SparkSession, functions as f
from write import source

from icebergds import Table, load_table
from icebergds.catalog.filesystem.commits import create_at_location, location_operations
from icebergds.commit.data_files import Overwrite
from icebergds.commit.options import CommitOptions
from icebergds.commit.row_delta import RowDelta
from icebergds.commit.snapshot_commit import commit_snapshot
from icebergds.expr.nodes import TRUE
from icebergds.formats.data_file.write_properties import WriteProperties
from icebergds.formats.deletes.positions import PositionSet
from icebergds.io.fileio import FileIO
from icebergds.spec.manifest import DataFile, DataFileRef, FileContent, FileFormat
from icebergds.spec.schema import Schema
from icebergds.spec.types import LONG, NestedField
from icebergds.spec.updates.new_table import new_table_updates
from icebergds.write.deletes.position_deletes import FilePositions
from icebergds.write.deletes.row_deletes import DeleteSettings, write_deletes
from icebergds.write.files import TaskAttempt
from icebergds.write.locations import FileNames, LocationProvider

sys.path.append(str(Path(__file__).parents[1] / "spark_tests"))

from built.contents import live_files

DATA_FILES = 200
_POSITION_DELETES = 20
_MANY_POSITION_DELETES = 500
_DELETE_FILE_SIZE = 64 * 1024 * 1024


def make_table(
    spark: SparkSession,
    directory: Path,
    rows: int,
    location: Path,
    version: int = 2,
    files: int = DATA_FILES,
) -> Table:
    """Creates a table of many small files, in which deletes are merged on read."""
    source(spark, directory, rows).repartition(files).write.format("icebergpy").mode(
        "append"
    ).options(
        **{
            "create": "true",
            "format-version": str(version),
            "distribution-mode": "none",
            "table-property.write.delete.mode": "merge-on-read",
            "table-property.write.delete.granularity": "partition",
        }
    ).save(str(location))
    return load_table(location)


def make_with_vectors(spark: SparkSession, directory: Path, rows: int, location: Path) -> None:
    """With deletion vectors of 10 % of the rows of each file."""
    make_table(spark, directory, rows, location, 3).delete("pmod(id, 10) = 3")


def make_with_positions(spark: SparkSession, directory: Path, rows: int, location: Path) -> None:
    """With position deletes of 10 % of the rows of each file."""
    table = make_table(spark, directory, rows, location)
    spark.conf.set("spark.sql.shuffle.partitions", "1")
    for number in range(_POSITION_DELETES):
        table.delete(f"pmod(id, {10 * _POSITION_DELETES}) = {number}")
    spark.conf.unset("spark.sql.shuffle.partitions")


def make_with_many_positions(
    spark: SparkSession, directory: Path, rows: int, location: Path
) -> None:
    """With position deletes of 10 % of the rows, each file of a few rows of every data file."""
    table = make_table(spark, directory, rows, location)
    metadata = table.metadata
    schema, specs = metadata.schema(), metadata.specs_by_id
    settings = DeleteSettings(
        metadata.format_version,
        "partition",
        FileFormat.PARQUET,
        _DELETE_FILE_SIZE,
        WriteProperties.of(metadata.properties, schema, metadata.sort_order()),
    )
    locations = LocationProvider.of(metadata.location, metadata.properties)
    data_files, operation_id = live_files(location), str(uuid.uuid4())
    deletes: list[DataFile] = []
    for number in range(_MANY_POSITION_DELETES):
        found = [
            FilePositions(
                DataFileRef(file.file_path, file.spec_id, file.partition), PositionSet.of(at)
            )
            for file in data_files
            if len(at := np.arange(number, file.record_count, 10 * _MANY_POSITION_DELETES))
        ]
        if found:
            names = FileNames(number, 0, operation_id)
            attempt = TaskAttempt(table.io, locations, names, schema)
            deletes += write_deletes(attempt, found, settings, specs)
    _commit(location, RowDelta((), tuple(deletes)))


def make_with_keys(
    spark: SparkSession,
    directory: Path,
    rows: int,
    location: Path,
    version: int = 2,
    files: int = DATA_FILES,
) -> None:
    """With as many equality keys as a tenth of the rows, half of which occur."""
    table = make_table(spark, directory, rows, location, version, files)
    keys = spark.range(0, 20 * (rows // 10), 20, 2)
    table.delete_keys(keys, ["id"])


def make_snapshots(count: int, files: int, location: Path) -> None:
    """Creates a table that each snapshot overwrote with its share of some empty files."""
    schema = Schema((NestedField(1, "id", LONG),))
    updates = new_table_updates(schema, location=str(location), format_version=2, properties={})
    create_at_location(FileIO(), str(location), updates, "db.expire")
    data = location / "data"
    data.mkdir()
    for number in range(count):
        added = tuple(_empty_files(data / f"{number:05}", files // count))
        _commit(location, Overwrite(added, TRUE))


def _empty_files(prefix: Path, count: int) -> Iterator[DataFile]:
    for number in range(count):
        path = Path(f"{prefix}-{number:05}-{uuid.uuid4()}.parquet")
        path.touch()
        yield DataFile(
            content=FileContent.DATA,
            file_path=str(path),
            file_format=FileFormat.PARQUET,
            spec_id=0,
            partition=(),
            record_count=1,
            file_size_in_bytes=1000,
        )


def _commit(location: Path, action: Overwrite | RowDelta) -> None:
    operations = location_operations(FileIO(), str(location), f"db.{location.name}")
    commit_snapshot(operations, action, CommitOptions())


def make_orphans(files: int, manifests: int, location: Path) -> None:
    """Creates a table of empty files, and as many besides that no snapshot refers to."""
    create_table(str(location), manifests, files // 2, root=str(location))
    old = time.time() - 30 * 86_400
    paths = [Path(path) for path in live_paths(location)]
    for path in [*paths, *(path.with_suffix(".orphan") for path in paths)]:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        os.utime(path, (old, old))


def rows_of(spark: SparkSession, with_java: bool, location: Path, _: object = None) -> Hashable:
    """The number of rows, and a sum of hashes of all their values."""
    if with_java:
        rows = spark.table(f"java.db.{location.name}")
    else:
        rows = spark.read.format("icebergpy").load(str(location))
    hashes = f.xxhash64(*rows.columns).cast("decimal(20, 0)")
    return tuple(rows.agg(f.count("*"), f.sum(hashes)).first() or ())


def snapshots_and_files(location: Path, _: object = None) -> Hashable:
    """The kept snapshots, and how many files the table has besides versions of its metadata."""
    ids = frozenset(snapshot.snapshot_id for snapshot in load_table(location).metadata.snapshots)
    files = [path for suffix in ("parquet", "avro") for path in location.rglob(f"*.{suffix}")]
    return ids, len(files)


def live_paths(location: Path, _: object = None) -> frozenset[str]:
    """The data files of the current snapshot."""
    return frozenset(file.file_path for file in live_files(location))
