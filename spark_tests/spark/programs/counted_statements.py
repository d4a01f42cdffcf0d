"""Changes tables by statements, each a step that `read_log` counts the reads of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from read_log import step

from icebergds import Catalog, Table

_SCHEMA = pa.schema([("id", pa.int64()), ("part", pa.int32())])
MODES = ("copy-on-write", "merge-on-read")


def see(spark: SparkSession, catalog: Catalog, modes: Sequence[str]) -> dict[str, list[int]]:
    """The ids in a table after each statement, by statement and mode."""
    seen: dict[str, list[int]] = {}
    for mode in modes:
        table = catalog.create_table(
            f"db.{mode.replace('-', '_')}",
            _SCHEMA,
            partition_spec="part",
            properties={f"write.{verb}.mode": mode for verb in ("delete", "update", "merge")},
        )
        _run(spark, table, catalog.name, mode, seen)
    return seen


def _run(
    spark: SparkSession, table: Table, catalog: str, mode: str, seen: dict[str, list[int]]
) -> None:
    def counted(name: str, action: Callable[[], Any]) -> None:
        named = f"{name}, {mode}"
        with step(f"{catalog}: {named}"):
            action()
        seen[named] = sorted(table.scan(columns="id").to_arrow()["id"].to_pylist())

    def frame(*ids: int, part: int) -> Any:
        return spark.createDataFrame([(i, part) for i in ids], "id long, part int")

    def arrow(*ids: int, part: int) -> pa.Table:
        return pa.table({"id": ids, "part": [part] * len(ids)}, schema=_SCHEMA)

    counted("append of Arrow rows", lambda: table.append(arrow(1, 2, 3, part=1)))
    counted("append", lambda: table.append(frame(4, 5, 6, part=2)))
    counted("overwrite", lambda: table.overwrite(frame(7, 8, 9, part=2), "part = 2"))
    dynamic = lambda: table.dynamic_partition_overwrite(frame(10, 11, 12, part=3))  # noqa: E731
    counted("overwrite of partitions", dynamic)
    counted("upsert of Arrow rows", lambda: table.upsert(arrow(12, 13, part=3), ["id", "part"]))
    counted("upsert", lambda: table.upsert(frame(13, 14, part=3), ["id", "part"]))
    counted("delete of rows", lambda: table.delete("id = 2"))
    counted("delete of files", lambda: table.delete("part = 2"))
    counted("update", lambda: table.update({"id": "id + 100"}, "id = 3"))
    merge = table.merge(frame(10, 20, part=3), ["id", "part"])
    merge = merge.when_matched_delete().when_not_matched_insert_all()
    counted("merge", merge.execute)
    counted("overwrite of rows", lambda: table.overwrite(frame(30, part=3), "id < 12"))
