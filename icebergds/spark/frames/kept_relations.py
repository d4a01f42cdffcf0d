"""Keeps Spark's relations of whole loads, for later loads of the same snapshot.

A snapshot never changes, so neither does the plan to read it: a session that loads a table again,
as for a temporary view, gets a relation of the same files. Every load still reads the table's
metadata, and checks that the files exist.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from icebergds.io.locations import is_local
from icebergds.scan.plan.files import PlannedFile
from icebergds.spark.frames.table_load import TableLoad
from icebergds.spark.known_files import ListedFiles
from icebergds.spark.parquet_relation import SessionById, session_by_id

_MOST_LOADS = 32
_MOST_FILES = 256


@dataclass(frozen=True, slots=True)
class KeptRelation:
    """All rows of a load.

    Attributes:
        relation: a JVM object; its columns are those of the load, in the same order.
        has_names: whether they have the same names.
    """

    relation: Any
    has_names: bool


def kept_relation(spark: SparkSession, load: TableLoad) -> KeptRelation | None:
    """The rows of a load; None if it must be planned.

    Args:
        spark: a classic session.
    """
    kept_loads = _kept.get(spark)
    if kept_loads is None or not _may_be_kept(load):
        return None
    name = _name(load)
    kept = kept_loads.pop(name, None)
    if kept is None or kept.read != _read(load) or kept.sizes != _sizes(kept.paths):
        return None
    if kept.session is not session_by_id(spark, is_local=True):
        return None
    relation = kept.files.relation(spark)
    if relation is None:
        return None
    kept_loads[name] = kept
    return KeptRelation(relation, kept.has_names)


def keep_relation(
    spark: SparkSession, load: TableLoad, files: Sequence[PlannedFile], rows: KeptRelation
) -> None:
    """Keeps the files of a relation that has all rows of a load.

    Args:
        spark: a classic session.
        files: the files of the relation.
    """
    if len(files) > _MOST_FILES or not _may_be_kept(load):
        return
    resolve = load.state.io.resolve
    paths = tuple(resolve(file.entry.data_file.file_path) for file in files)
    if not all(map(is_local, paths)) or (sizes := _sizes(paths)) is None:
        return
    kept_loads = _kept.setdefault(spark, {})
    session = session_by_id(spark, is_local=True)
    listed = ListedFiles.of(spark, session.session, rows.relation)
    if listed.nbytes == sum(sizes):
        kept = _Kept(_read(load), session, paths, sizes, listed, rows.has_names)
        kept_loads[_name(load)] = kept
    for oldest in list(kept_loads)[:-_MOST_LOADS]:
        kept_loads.pop(oldest, None)


@dataclass(frozen=True, slots=True)
class _Kept:
    """What is kept of a load.

    Attributes:
        read: the result of `_read`.
        session: the JVM session to which its relations belong.
        paths, sizes: of its files; sizes in bytes.
        files: the files, for Spark.
        has_names: as in `KeptRelation`.
    """

    read: tuple[object, ...]
    session: SessionById
    paths: tuple[str, ...]
    sizes: tuple[int, ...]
    files: ListedFiles
    has_names: bool


_kept: weakref.WeakKeyDictionary[SparkSession, dict[Any, _Kept]] = weakref.WeakKeyDictionary()


def _sizes(paths: Sequence[str]) -> tuple[int, ...] | None:
    """The sizes of local files in bytes; None if one does not exist."""
    try:
        return tuple(os.stat(path).st_size for path in paths)
    except OSError:
        return None


def _may_be_kept(load: TableLoad) -> bool:
    """Whether planning again gives the same files, and no metrics reporter misses it."""
    state = load.state
    is_plain = state.planner is None and state.reporter is None and state.io.vended is None
    return load.is_native and is_plain and state.metadata.table_uuid is not None


def _name(load: TableLoad) -> tuple[str, int | None]:
    snapshot = load.snapshot
    return load.state.metadata_location, None if snapshot is None else snapshot.snapshot_id


def _read(load: TableLoad) -> tuple[object, ...]:
    """All that determines which rows and columns a load has, and how they are read."""
    metadata = load.state.metadata
    version = metadata.table_uuid, metadata.last_updated_ms, load.snapshot
    # As text, because 0.0 == -0.0 and 1 == True.
    row_filter = repr(load.plan.row_filter)
    return *version, row_filter, load.options, load.schema, load.plan
