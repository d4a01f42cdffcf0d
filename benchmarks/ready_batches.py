"""A Python data source whose batches are ready: what Spark takes for any source, at least."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

TASKS = 4
BATCH_SIZE = 65_536


def ready_batches(
    spark: SparkSession, file: str, columns: Sequence[str], rows: int
) -> Callable[[], DataFrame]:
    """A load of as many rows, the first batch of a Parquet file again and again."""
    name = f"ready{len(columns)}"
    schema = spark.read.parquet(file).select(*columns).schema

    # Defined here, so that they are pickled with the source, which tasks cannot import.
    class Reader(DataSourceReader):
        def partitions(self) -> list[InputPartition]:
            return [InputPartition(number) for number in range(TASKS)]

        def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
            import pyarrow.parquet as pq

            batch = next(pq.ParquetFile(file).iter_batches(BATCH_SIZE, columns=list(columns)))
            for first in range(0, rows // TASKS, BATCH_SIZE):
                yield batch.slice(0, rows // TASKS - first)

    class Source(DataSource):
        @classmethod
        def name(cls) -> str:
            return name

        def schema(self) -> object:
            return schema

        def reader(self, schema: object) -> DataSourceReader:
            return Reader()

    spark.dataSource.register(Source)
    return lambda: spark.read.format(name).load()
