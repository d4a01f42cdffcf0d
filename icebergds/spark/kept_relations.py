"""Keeps relations of files, for later queries of the same files.

To make a relation, Spark lists its files. Files of tables never change, so a session that reads the
same columns of the same files again gets the same relation, if all of them are still there.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

_MOST_RELATIONS = 64
_MOST_FILES = 10_000


def kept_rows(
    spark: SparkSession, owner: object, key: Hashable, paths: Sequence[str]
) -> DataFrame | None:
    """The rows that `keep_rows` kept; None if they must be read by another relation.

    Args:
        spark: a classic session.
        owner: stands for the settings of the relation, by its identity.
        key: all else that determines the relation.
        paths: of its files, which are local.
    """
    relations = _kept.get(spark)
    kept = None if relations is None else relations.pop(key, None)
    if relations is None or kept is None or kept.owner is not owner or kept.sizes != _sizes(paths):
        return None
    # Spark lists the files again when it is told to refresh; then some may not have been there.
    if kept.index.sizeInBytes() != kept.nbytes:
        return None
    relations[key] = kept
    return DataFrame(kept.rows, spark)


def keep_rows(
    spark: SparkSession, owner: object, key: Hashable, paths: Sequence[str], rows: DataFrame
) -> None:
    """Keeps the rows of a relation, unless its files are many or have changed.

    Args:
        rows: all columns of the relation.

    Other arguments are those of `kept_rows`.
    """
    sizes = _sizes(paths) if len(paths) <= _MOST_FILES else None
    if sizes is None:
        return
    kept: Any = rows._jdf
    index = kept.logicalPlan().relation().location()
    nbytes = index.sizeInBytes()
    if nbytes != sum(sizes):
        return
    relations = _kept.setdefault(spark, {})
    relations[key] = _Kept(owner, kept, index, nbytes, sizes, {})
    while len(relations) > _MOST_RELATIONS or _files_of(relations) > _MOST_FILES:
        relations.pop(next(iter(relations)), None)


def kept_output(
    spark: SparkSession, rows: DataFrame, key: Hashable, make: Callable[[], DataFrame]
) -> DataFrame:
    """Makes columns of rows; only once, if the rows are kept.

    Args:
        rows: those that `kept_rows` or `keep_rows` had.
        key: all that determines the columns.
    """
    # None with Spark Connect, whose frames are no objects of this process.
    relations = _kept.get(spark)
    known: Any = None if relations is None else rows._jdf
    for kept in list((relations or {}).values()):
        if kept.rows is known:
            if key not in kept.outputs:
                kept.outputs[key] = make()._jdf
            return DataFrame(kept.outputs[key], spark)
    return make()


@dataclass(frozen=True, slots=True)
class _Kept:
    """Rows of a relation.

    Attributes:
        owner: as of `kept_rows`.
        rows: a JVM DataFrame.
        index: Spark's index of the files, a JVM object.
        nbytes: the size of all files.
        sizes: of the files, in bytes.
        outputs: JVM DataFrames of columns that are computed from the rows.
    """

    owner: object
    rows: Any
    index: Any
    nbytes: int
    sizes: tuple[int, ...]
    outputs: dict[Hashable, Any]


_kept: weakref.WeakKeyDictionary[SparkSession, dict[Hashable, _Kept]] = weakref.WeakKeyDictionary()


def _files_of(relations: dict[Hashable, _Kept]) -> int:
    return sum(len(each.sizes) for each in list(relations.values()))


def _sizes(paths: Sequence[str]) -> tuple[int, ...] | None:
    """The sizes of local files in bytes; None if one does not exist."""
    try:
        return tuple(os.stat(path).st_size for path in paths)
    except OSError:
        return None
