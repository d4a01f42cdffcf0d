"""Streams of rows that tests write, a micro-batch at a time."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from icebergds import Table, load_table


class Feed:
    """Files of rows, of which each one is a micro-batch, and the stream that reads them."""

    def __init__(self, spark: SparkSession, directory: Path, schema: str = "id long, name string"):
        self._spark = spark
        self._schema = schema
        self._files = directory / "feed"
        self._files.mkdir(parents=True)
        self._count = 0
        self.checkpoint = directory / "checkpoint"
        self.table = directory / "t"

    def add(self, *rows: tuple[Any, ...]) -> None:
        names = [column.split()[0] for column in self._schema.split(", ")]
        lines = [json.dumps(dict(zip(names, row, strict=True))) for row in rows]
        file = self._files / f"{self._count:05d}.json"
        # A query that runs does not see a part of it: Spark skips names with an underscore.
        partial = file.with_name(f"_{file.name}")
        partial.write_text("\n".join(lines) + "\n")
        # Spark reads them in the order of their age.
        os.utime(partial, (1_700_000_000 + self._count,) * 2)
        partial.rename(file)
        self._count += 1

    def stream(self) -> DataFrame:
        reader = self._spark.readStream.schema(self._schema).option("maxFilesPerTrigger", "1")
        return reader.option("latestFirst", "false").json(str(self._files))

    def run(self, df: DataFrame | None = None, mode: str = "append", **options: str) -> str:
        """Runs the query until it has read all; returns its id."""
        writer = (self.stream() if df is None else df).writeStream.format("icebergpy")
        given = {name.replace("_", "-"): value for name, value in options.items()}
        query = (
            writer.outputMode(mode)
            .options(checkpointLocation=str(self.checkpoint), **given)
            .trigger(availableNow=True)
            .start(str(self.table))
        )
        query.awaitTermination()
        return str(query.id)

    def forget_last_commit(self) -> None:
        """As if the driver had died between the table's commit and that of the checkpoint."""
        commits = self.checkpoint / "commits"
        last = max(int(file.name) for file in commits.iterdir() if file.name.isdigit())
        (commits / str(last)).unlink()
        (commits / f".{last}.crc").unlink(missing_ok=True)

    def loaded(self) -> Table:
        return load_table(self.table)
