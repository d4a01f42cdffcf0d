"""Leaves out the deleted rows of files that Spark's own reader reads.

Each file's deleted positions become a bitmap, as an array of 64-bit words. A filter finds a row's
bitmap by its file and tests the bit of its position. The bitmaps come from a sub-query, not from
a join: Spark keeps its size estimate and the ids of columns, and pushes conditions and columns to
the files. Spark appends later conditions to the same filter and evaluates them in order, so
none fails for a deleted row.

If the bitmaps are too large to be sent with every task, or belong to too many files, they are
broadcast, and an anti join drops the deleted rows; conditions are then evaluated beneath it.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, functions as f

from icebergds.formats.deletes.positions import PositionSet
from icebergds.scan.plan.native_columns import NATIVE_PREFIX
from icebergds.spark.jvm import Private, with_private

_BITS = 64
_SLOTS = f"{NATIVE_PREFIX}slots"
_PATH = f"{NATIVE_PREFIX}path"
_KEY = f"{NATIVE_PREFIX}key"
_WORDS = f"{NATIVE_PREFIX}words"
# Every task gets its own copy.
_MOST_BYTES_OF_FILTER = 32 << 20
# Each takes 8 bytes.
_MOST_SLOTS = 1 << 20
# With more files of one size, the join would test all of their bitmaps for each row.
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
        deleted: the positions of all files, by Spark's names of the files.
        sizes: Spark's sizes of the files in bytes, by the same names; None if unknown.
    """
    words = {name: _words(positions) for name, positions in deleted.items()}
    if sum(each.nbytes for each in words.values()) <= _MOST_BYTES_OF_FILTER:
        # A number is found faster than a path.
        numbers = [] if sizes is None else [sizes[name] for name in words]
        is_by_size = len(set(numbers)) == len(words)
        keys = numbers if is_by_size else [zlib.crc32(name.encode()) for name in words]
        slots = _slot_count(keys)
        if slots is not None:
            key = f.col("_metadata.file_size") if is_by_size else _checksum_of_path()
            return rows.where(_is_live(spark, list(words.values()), keys, slots, key))
    return _anti_joined(spark, rows, words, sizes)


def _slot_count(keys: Sequence[int]) -> int | None:
    """A divisor that gives each key its own remainder; None if no small one does."""
    numbers = np.array(keys, np.int64)
    count = len(keys)
    while count <= _MOST_SLOTS:
        if len(np.unique(numbers % count)) == len(numbers):
            return count
        count += 1 + count // 32
    return None


def _checksum_of_path() -> Column:
    return f.crc32(f.col("_metadata.file_path").cast("binary"))


def _is_live(
    spark: SparkSession,
    words: Sequence[npt.NDArray[np.int64]],
    keys: Sequence[int],
    slots: int,
    key: Column,
) -> Column:
    """Whether the bit of a row is not set.

    Args:
        words: the bitmap of each file.
        keys: a number for each file, in the same order; its remainder is the slot of the bitmap.
        slots: the divisor.
        key: the number of a row's file.
    """
    bitmaps: list[npt.NDArray[np.int64] | None] = [None] * slots
    for number, each in zip(keys, words, strict=True):
        bitmaps[number % slots] = each
    table = pa.table({_SLOTS: pa.array([bitmaps], pa.list_(pa.list_(pa.int64())))})
    at = f.lit(0) if slots == 1 else (key % slots).cast("int")
    bitmap = f.get(spark.createDataFrame(table).scalar(), at)
    position = f.col("_metadata.row_index")
    word = f.get(bitmap, f.shiftright(position, 6).cast("int"))
    bit = f.getbit(word, position.bitwiseAND(f.lit(_BITS - 1)).cast("int"))
    # There are no words behind the last deleted position.
    return f.coalesce(bit, f.lit(0).cast("byte")) == f.lit(0)


def _anti_joined(
    spark: SparkSession,
    rows: DataFrame,
    words: Mapping[str, npt.NDArray[np.int64]],
    sizes: Mapping[str, int] | None,
) -> DataFrame:
    table = pa.table(
        {
            _PATH: pa.array(words, pa.string()),
            _WORDS: pa.array(list(words.values()), pa.list_(pa.int64())),
        }
    )
    if sizes is not None and max(Counter(sizes.values()).values()) <= _MOST_OF_ONE_SIZE:
        keys = pa.array([sizes[name] for name in words], pa.int64())
        bitmaps = spark.createDataFrame(table.append_column(_KEY, keys))
        has_key = f.col("_metadata.file_size") == f.col(_KEY)
    else:
        bitmaps = spark.createDataFrame(table).withColumn(_KEY, f.xxhash64(_PATH))
        has_key = f.xxhash64("_metadata.file_path") == f.col(_KEY)
    # Paths are compared last, in a form that does not become a join key.
    path, expected = f.col("_metadata.file_path"), f.col(_PATH)
    has_path = f.startswith(path, expected) & f.startswith(expected, path)
    is_deleted = (
        f"getbit(get({_WORDS}, int(shiftright(_metadata.row_index, 6))), "
        f"int(_metadata.row_index & {_BITS - 1})) = 1"
    )
    condition = has_key & f.expr(is_deleted) & has_path
    return rows.join(f.broadcast(bitmaps), condition, "left_anti")


def listed_sizes(rows: DataFrame) -> dict[str, int]:
    """The sizes in bytes of the files of a classic Spark relation, by their paths.

    Empty if Spark does not say.
    """

    def listing() -> str:
        plan: Any = rows._jdf.queryExecution().analyzed()
        # One call for all files.
        text = plan.collectLeaves().head().relation().location().allFiles().mkString("\n")
        return str(text)

    listed = with_private(Private.SCANS, listing, str)
    return {path: int(size) for path, size in _LISTED_FILE.findall(listed)}


def _words(positions: PositionSet) -> npt.NDArray[np.int64]:
    """A bit for each position up to the last one, the first in the lowest bit of the first word."""
    at = positions.positions()
    if not len(at):
        return np.empty(0, np.int64)
    bits = np.zeros((int(at[-1]) // _BITS + 1) * _BITS, np.bool_)
    bits[at] = True
    return np.packbits(bits, bitorder="little").view("<i8").astype(np.int64)
