"""Groups the files that Spark's own Parquet reader reads alike, by one relation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from icebergds.scan.plan.files import PlannedFile
from icebergds.scan.plan.lacked_columns import LackedColumns
from icebergds.scan.plan.native import NativeRule


@dataclass(frozen=True, slots=True)
class FileGroup:
    """Files that are read alike.

    Attributes:
        lacked: the values of columns in those of the files that lack them.
        have_deletes: whether positions of the files are deleted.
    """

    files: Sequence[PlannedFile]
    lacked: LackedColumns
    have_deletes: bool


def group_files(rule: NativeRule, files: Sequence[PlannedFile]) -> list[FileGroup]:
    """Groups files that the rule allows."""
    by_key: dict[tuple[LackedColumns, bool], list[PlannedFile]] = defaultdict(list)
    for file in files:
        lacked = rule.lacked_columns(file) or ()
        by_key[lacked, bool(file.deletes.position_deletes)].append(file)
    return [FileGroup(some, *key) for key, some in by_key.items()]
