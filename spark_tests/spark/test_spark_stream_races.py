"""Batches of a query are committed while others replace the files that they are in."""

from __future__ import annotations

import threading
from pathlib import Path

import pyarrow as pa
import pytest
from built.contents import live_files
from built.replace_files import ReplaceFiles
from pyspark.sql import SparkSession
from spark_changes import expected, rows_of
from spark_feeds import Feed
from spark_writes import create

from icebergds import Table, load_table
from icebergds.catalog.address import TableAddress
from icebergds.commit.snapshot_commit import commit_snapshot
from icebergds.errors import ValidationError
from icebergds.operations.write.append_overwrite import prepare_write
from icebergds.operations.write.options import parse_write_options
from icebergds.spec.manifest import FileContent
from icebergds.write.task import write_batches

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]


class Compactor(threading.Thread):
    """Puts all rows of a table into one file, again and again."""

    def __init__(self, location: Path) -> None:
        super().__init__()
        self._location = location
        self._ended = threading.Event()
        self.rounds = 0

    def run(self) -> None:
        while not self._ended.wait(0.05):
            table = load_table(self._location)
            files = [f for f in live_files(self._location) if f.content is FileContent.DATA]
            try:
                if len(files) > 1 and load_table(self._location).metadata == table.metadata:
                    self._replace(table, files)
                    self.rounds += 1
            except ValidationError:
                pass  # A batch deleted rows of the files by their positions meanwhile.

    def end(self) -> None:
        self._ended.set()
        self.join()

    def _replace(self, table: Table, files: list) -> None:
        head = table.current_snapshot()
        assert head is not None
        rows: pa.Table = table.scan().to_arrow()
        options = parse_write_options({"path": str(self._location)})
        write, _ = prepare_write(options, rows.schema, table.schema(), overwrite=False)
        added = write_batches(write.plan, rows.to_batches(), partition_id=0, attempt_id=0)
        operations = TableAddress(str(self._location)).operations()
        number = head.sequence_number
        replaced = ReplaceFiles(tuple(files), tuple(added), head.snapshot_id, number)
        commit_snapshot(operations, replaced)


@pytest.mark.parametrize(
    "options", [{}, {"write_operation": "upsert", "upsert_keys": "id"}], ids=["append", "upsert"]
)
def test_batches_and_compactions_lose_and_double_nothing(
    spark: SparkSession, tmp_path: Path, options: dict[str, str]
) -> None:
    feed = Feed(spark, tmp_path)
    create(spark.createDataFrame([], "id long, name string"), feed.table)
    batches = [[(row_id, f"{batch}") for row_id in range(batch, batch + 4)] for batch in range(8)]
    for rows in batches:
        feed.add(*rows)
    compactor = Compactor(feed.table)
    compactor.start()
    try:
        feed.run(**options)
    finally:
        compactor.end()
    added = [row for rows in batches for row in rows]
    assert rows_of(feed.loaded()) == expected([*dict(added).items()] if options else added)
    assert compactor.rounds > 0
