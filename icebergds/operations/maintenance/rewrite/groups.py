"""Rewrites groups of data files by tasks of a runner."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from icebergds.catalog.loaded_table import LoadedTable
from icebergds.formats.arrow.types import schema_to_arrow
from icebergds.operations.maintenance.rewrite.options import RewriteOptions
from icebergds.operations.maintenance.rewrite.plan import FileGroup
from icebergds.operations.maintenance.rewrite.task import RewritePlan, rewrite_files
from icebergds.operations.runner import Runner
from icebergds.operations.write.append_overwrite import plan_rows
from icebergds.operations.write.cleanup import delete_files_of_write
from icebergds.operations.write.options import WriteOptions
from icebergds.operations.write.position_changes import written_schema
from icebergds.scan.plan.splits import SplitOptions
from icebergds.scan.plan.task_groups import pack_files
from icebergds.scan.read_plan import ReadPlan
from icebergds.scan.tasks import ScanTaskGroup
from icebergds.spec.json.name_mapping import table_name_mapping
from icebergds.spec.manifest import DataFile
from icebergds.write.rows.matching import plan_matching


@dataclass(frozen=True, slots=True)
class RewrittenGroup:
    """A group of data files, and the new files with their rows.

    Attributes:
        written: what each task wrote, in the order of its rows.
        is_shuffled: whether tasks wrote rows that others have read.
    """

    group: FileGroup
    plan: RewritePlan
    written: Sequence[Sequence[DataFile]]
    is_shuffled: bool = False

    @property
    def files(self) -> list[DataFile]:
        """All new files."""
        return [file for files in self.written for file in files]

    @property
    def keeps_order(self) -> bool:
        """Whether each task wrote rows in the order in which it read them."""
        return not self.is_shuffled and self.group.keeps_order


class GroupRewriter(Protocol):
    """Rewrites a group of files; deletes the new ones if that fails."""

    def __call__(
        self, table: LoadedTable, plan: RewritePlan, group: FileGroup
    ) -> RewrittenGroup: ...


def plan_rewrite(
    table: LoadedTable, write: WriteOptions, options: RewriteOptions, spec_id: int
) -> RewritePlan:
    """Plans how tasks read and write rows.

    Args:
        spec_id: the partition spec of the new files.

    Raises:
        InvalidOptionError: table properties are malformed.
        UnsupportedFeatureError: the table has a feature that cannot be written.
    """
    metadata = table.metadata
    schema = written_schema(metadata)
    matching = plan_matching(schema_to_arrow(schema), schema, table=table.name)
    # Rows keep the order of their files.
    as_read = replace(
        write, target_file_size=options.max_new_file_size, use_table_distribution=False
    )
    read = ReadPlan(
        io=table.io,
        columns=schema,
        table_schema=metadata.schema(),
        specs=metadata.specs_by_id,
        name_mapping=table_name_mapping(metadata),
    )
    return RewritePlan(
        read, plan_rows(as_read, table.state, matching, metadata.specs_by_id[spec_id])
    )


def rewrite_group(
    runner: Runner, table: LoadedTable, plan: RewritePlan, group: FileGroup
) -> RewrittenGroup:
    """Writes the rows of a group to new files, in their order; deletes them if that fails.

    Raises:
        CorruptFileError, MissingFileError: a data or delete file is damaged or missing.
        StorageError: a file cannot be read or written.
    """
    own = plan.renamed()
    tasks = tasks_of(table, group)
    written = runner.run(partial(rewrite_files, own), tasks, partial(discard_files_of, own))
    return RewrittenGroup(group, own, written)


def tasks_of(table: LoadedTable, group: FileGroup) -> Iterator[ScanTaskGroup]:
    """What each task of `rewrite_group` reads: the same each time for the same group."""
    metadata = table.metadata
    splits = SplitOptions(split_size=group.split_size, lookback=1, file_open_cost=0)
    return pack_files(group.files, metadata, metadata.schema(), splits)


def discard_files_of(plan: RewritePlan) -> int:
    """Deletes the files of a plan's tasks; returns how many there were. Never raises."""
    write = plan.write
    return delete_files_of_write(write.io, write.locations.data_location, write.operation_id)
