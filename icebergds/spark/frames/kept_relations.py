"""Keeps the relations that Spark has for whole loads, for later loads of the same snapshot.

A snapshot never changes, so neither does the plan to read it: a session that loads a table again,
as for a temporary view, is given the same files by the same relation. The table's metadata is read
by every load, and a relation is kept only as long as its files are where they were.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from icebergds.errors import IcebergError
from icebergds.io.fileio import FileIO
from icebergds.io.locations import is_local
from icebergds.scan.plan.files import PlannedFile
from icebergds.spark.frames.table_load import TableLoad
from icebergds.spark.parquet_relation import session_by_id
from icebergds.spec.manifest import DataFile

_MOST_LOADS = 32
_MOST_FILES = 256


def kept_relation(spark: SparkSession, load: TableLoad) -> Any:
    """The relation of the JVM for all rows of a load; None if there is none that still holds.

    Args:
        spark: a classic session.
    """
    relations = _relations.get(spark)
    if relations is None or not _may_be_kept(load):
        return None
    name = _name(load)
    kept = relations.get(name)
    if kept is None:
        return None
    is_of_session = kept.session is session_by_id(spark, is_local=True)
    if is_of_session and kept.read == _read(load) and kept.files_are_there():
        # Other threads may have dropped it meanwhile.
        relations[name] = relations.pop(name, kept)
        return kept.relation
    relations.pop(name, None)
    return None


def keep_relation(
    spark: SparkSession, load: TableLoad, files: Sequence[PlannedFile], relation: Any
) -> None:
    """Keeps a relation of the JVM that has all rows of a load.

    Args:
        spark: a classic session.
        files: those of the relation.
    """
    if len(files) > _MOST_FILES or not _may_be_kept(load):
        return
    data_files = tuple(file.entry.data_file for file in files)
    if not all(is_local(load.state.io.resolve(file.file_path)) for file in data_files):
        return
    relations = _relations.setdefault(spark, {})
    session = session_by_id(spark, is_local=True)
    relations[_name(load)] = _Kept(_read(load), session, load.state.io, data_files, relation)
    for oldest in list(relations)[:-_MOST_LOADS]:
        relations.pop(oldest, None)


@dataclass(frozen=True, slots=True)
class _Kept:
    """A relation and what it was made for.

    Attributes:
        read: what `_read` tells of the load.
        session: the session of the JVM to which it belongs.
        io: storage that reaches the files.
    """

    read: tuple[object, ...]
    session: Any
    io: FileIO
    files: tuple[DataFile, ...]
    relation: Any

    def files_are_there(self) -> bool:
        size = self.io.size
        try:
            return all(size(file.file_path) == file.file_size_in_bytes for file in self.files)
        except IcebergError:
            return False


_relations: weakref.WeakKeyDictionary[SparkSession, dict[Any, _Kept]] = weakref.WeakKeyDictionary()


def _may_be_kept(load: TableLoad) -> bool:
    """Whether planning the load anew would lead to the same files, and nobody is told of it."""
    state = load.state
    is_plain = state.planner is None and state.reporter is None and state.io.vended is None
    return load.is_native and is_plain and state.metadata.table_uuid is not None


def _name(load: TableLoad) -> tuple[str, int | None]:
    snapshot = load.snapshot
    return load.state.metadata_location, None if snapshot is None else snapshot.snapshot_id


def _read(load: TableLoad) -> tuple[object, ...]:
    """All that decides which rows and columns a load has, and how they are reached."""
    metadata = load.state.metadata
    version = metadata.table_uuid, metadata.last_updated_ms
    return *version, load.state.io, load.options, load.schema, load.plan.columns
