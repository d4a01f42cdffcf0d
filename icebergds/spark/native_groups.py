"""Groups the files that Spark's own Parquet reader reads alike, by one relation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pyspark.sql import SparkSession

from icebergds.scan.plan.files import PlannedFile
from icebergds.scan.plan.native import NativeRule
from icebergds.scan.plan.native_columns import LackedColumns
from icebergds.scan.plan.native_keys import KeyScope, KeyScopes, deletes_of
from icebergds.scan.read_plan import ReadPlan
from icebergds.spark.session import is_connect
from icebergds.spark.stored_files import FoundBy, StoredNames, found_by
from icebergds.spec.manifest import DataFile
from icebergds.spec.reserved import MAX_TABLE_FIELD_ID

# Spark plans each group separately.
_MOST_GROUPS = 16
_Key: TypeAlias = tuple[LackedColumns, StoredNames | None, bool, KeyScope | None]


@dataclass(frozen=True, slots=True)
class FileGroup:
    """Files that are read alike.

    Attributes:
        lacked: the values of columns in files that lack them.
        names: of the columns in all files; None to find them as in files with field ids.
        have_deletes: whether positions of the files are deleted.
        key_deletes: the equality deletes that apply to all files.
    """

    files: Sequence[PlannedFile]
    lacked: LackedColumns
    names: StoredNames | None
    have_deletes: bool
    key_deletes: Sequence[DataFile]


def group_files(
    spark: SparkSession, plan: ReadPlan, rule: NativeRule, files: Sequence[PlannedFile]
) -> tuple[list[FileGroup], list[PlannedFile]]:
    """Groups files that the rule allows; also returns those that Spark cannot read."""
    by_key: dict[_Key, list[PlannedFile]] = defaultdict(list)
    unread: list[PlannedFile] = []
    scopes = KeyScopes(files)

    def is_global(delete: DataFile) -> bool:
        return plan.specs[delete.spec_id].is_unpartitioned

    for file, found in zip(files, _found_by(spark, plan, files), strict=True):
        lacked = rule.lacked_columns(file)
        if found is None or lacked is None:
            unread.append(file)
        else:
            scope = scopes.of(file, is_global=is_global)
            by_key[lacked, found.names, bool(file.deletes.position_deletes), scope].append(file)
    groups = [FileGroup(some, *key[:3], deletes_of(some)) for key, some in by_key.items()]
    groups.sort(key=_size, reverse=True)
    unread.extend(file for group in groups[_MOST_GROUPS:] for file in group.files)
    return groups[:_MOST_GROUPS], unread


def _size(group: FileGroup) -> int:
    return sum(file.entry.data_file.file_size_in_bytes for file in group.files)


def _found_by(
    spark: SparkSession, plan: ReadPlan, files: Sequence[PlannedFile]
) -> Sequence[FoundBy | None]:
    if plan.name_mapping is None:
        return [FoundBy(None)] * len(files)
    stored = [field for field in plan.columns.fields if field.field_id <= MAX_TABLE_FIELD_ID]
    data_files = [file.entry.data_file for file in files]
    return found_by(plan, data_files, stored, by_id=not is_connect(spark))
