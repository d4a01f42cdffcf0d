"""`Table.convert_equality_deletes` as a Spark job."""

from __future__ import annotations

from pathlib import Path

import pytest
from built.api_tables import ids_of, new_table, rows
from built.contents import live_files, unused_files
from pyspark.sql import SparkSession

from icebergds.errors import CorruptFileError
from icebergds.spec.manifest import FileContent

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]


_BY_KEY = {"write.upsert.mode": "equality-deletes"}


@pytest.mark.parametrize("version", [2, 3])
def test_executors_convert(spark: SparkSession, tmp_path: Path, version: int) -> None:
    table = new_table(tmp_path, version=version, properties=_BY_KEY)
    for day in range(3):
        table.append(rows(1, 2, 3 + day, day=day))
    table.delete_keys(rows(2, 4), "id")
    done = table.convert_equality_deletes(options={"split-size": "1"}, spark=spark)
    assert (done.converted_equality_delete_files_count, done.deleted_rows_count) == (1, 4)
    assert ids_of(table) == [1, 1, 1, 3, 5]
    written = {f.file_path for f in live_files(table.location()) if f.content != FileContent.DATA}
    assert len(written) == 3
    assert unused_files(table) == set()


def test_a_failed_job_leaves_no_files(spark: SparkSession, tmp_path: Path) -> None:
    table = new_table(tmp_path, properties=_BY_KEY)
    table.append(rows(1, 2))
    table.append(rows(2, 3, day=1))
    table.delete_keys(rows(2), "id")
    damaged = next(f for f in live_files(table.location()) if f.content is FileContent.DATA)
    Path(damaged.file_path).write_bytes(b"PAR1 nothing PAR1")
    with pytest.raises(CorruptFileError):
        table.convert_equality_deletes(options={"split-size": "1"}, spark=spark)
    assert unused_files(table) == set()
    assert len(table.snapshots()) == 3
