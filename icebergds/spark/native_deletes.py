"""Leaves out the deleted rows of files that Spark's own reader reads.

Each file's deleted positions are a bitmap, as an array of 64-bit words. A broadcast join finds a
row's bitmap by its file and looks at the bit of its position. As an anti join it keeps Spark's
estimate of the size, and conditions and columns are pushed beneath it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, functions as f

from icebergds.formats.deletes.positions import PositionSet
from icebergds.scan.plan.native_columns import NATIVE_PREFIX

_BITS = 64
_PATH = f"{NATIVE_PREFIX}path"
_KEY = f"{NATIVE_PREFIX}key"
_WORDS = f"{NATIVE_PREFIX}words"
_IS_DELETED = (
    f"getbit(get({_WORDS}, int(shiftright(_metadata.row_index, 6))), "
    f"int(_metadata.row_index & {_BITS - 1})) = 1"
)
# Of more files of one size, the join would look at the bitmaps of all for each row.
_MOST_OF_ONE_SIZE = 4
_LISTED_FILE = re.compile(r"path=([^;]*); isDirectory=false; length=(\d+);")


def without_deleted(
    spark: SparkSession,
    rows: DataFrame,
    deleted: Mapping[str, PositionSet],
    sizes: Mapping[str, int] | None,
) -> DataFrame:
    """Rows of Parquet files, read by Spark, without those at deleted positions.

    Args:
        deleted: the positions by the names that Spark has for the files.
        sizes: in bytes, those that Spark has for the files, by the same names; None if unknown.
    """
    table = pa.table(
        {
            _PATH: pa.array(deleted, pa.string()),
            _WORDS: pa.array(map(_words, deleted.values()), pa.list_(pa.int64())),
        }
    )
    # A number is found faster than a path.
    if sizes is not None and max(Counter(sizes.values()).values()) <= _MOST_OF_ONE_SIZE:
        keys = pa.array([sizes[name] for name in deleted], pa.int64())
        bitmaps = spark.createDataFrame(table.append_column(_KEY, keys))
        has_key = f.col("_metadata.file_size") == f.col(_KEY)
    else:
        bitmaps = spark.createDataFrame(table).withColumn(_KEY, f.xxhash64(_PATH))
        has_key = f.xxhash64("_metadata.file_path") == f.col(_KEY)
    # Paths are compared last, and so that they do not become a key of the join, too.
    path, expected = f.col("_metadata.file_path"), f.col(_PATH)
    has_path = f.startswith(path, expected) & f.startswith(expected, path)
    condition = has_key & f.expr(_IS_DELETED) & has_path
    return rows.join(f.broadcast(bitmaps), condition, "left_anti")


def listed_sizes(rows: DataFrame) -> dict[str, int]:
    """The sizes in bytes of the files of a relation of classic Spark, by their paths."""
    plan: Any = rows._jdf.queryExecution().analyzed()
    # One call for all files.
    listing = plan.collectLeaves().head().relation().location().allFiles().mkString("\n")
    return {path: int(size) for path, size in _LISTED_FILE.findall(listing)}


def _words(positions: PositionSet) -> npt.NDArray[np.int64]:
    """A bit for each position up to the last one, the first in the lowest bit of the first word."""
    at = positions.positions()
    if not len(at):
        return np.empty(0, np.int64)
    bits = np.zeros((int(at[-1]) // _BITS + 1) * _BITS, np.bool_)
    bits[at] = True
    return np.packbits(bits, bitorder="little").view("<i8").astype(np.int64)
