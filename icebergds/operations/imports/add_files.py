"""Adds existing data files to a table, without moving them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from icebergds.catalog.loaded_table import LoadedTable
from icebergds.commit.add_files import AddFiles
from icebergds.commit.operations import Change, TableOperations, TableState
from icebergds.commit.options import CommitOptions
from icebergds.commit.retry import commit_change
from icebergds.commit.snapshot_commit import commit_snapshot
from icebergds.commit.staging import StagedOperations
from icebergds.commit.transaction import in_one_commit
from icebergds.display import html_result
from icebergds.errors import InvalidOptionError, ValidationError
from icebergds.interrupts import interrupts_released
from icebergds.operations.imports.describe_files import (
    DescribedFile,
    FileTarget,
    describe_files,
)
from icebergds.operations.imports.partitions import parse_partition_filter
from icebergds.operations.imports.source_files import SourceFile
from icebergds.operations.runner import Runner
from icebergds.spec.json.name_mapping import (
    NAME_MAPPING_PROPERTY,
    name_mapping_to_json,
    table_name_mapping,
)
from icebergds.spec.name_mapping import NameMapping, updated_mapping
from icebergds.spec.updates.table_updates import SetProperties


@dataclass(frozen=True, slots=True)
class AddedFiles:
    """What `Table.add_files` did.

    Attributes:
        added_files_count: the number of files that were added.
        changed_partition_count: the number of partitions that they are in.
    """

    added_files_count: int
    changed_partition_count: int

    def _repr_html_(self) -> str:
        return html_result("Added files", self)


@dataclass(frozen=True, slots=True)
class AddFilesRequest:
    """Which files to add.

    Attributes:
        files: the files that were found.
        partition_filter: the partition values of the files to take.
        refuses_duplicates: whether it is an error if the table has one of the files.
        time_zone: the zone of instants in paths.
        defaulted: names of columns whose value is not null in files that lack them.
    """

    files: Sequence[SourceFile]
    partition_filter: Mapping[str, Any] = field(default_factory=dict)
    refuses_duplicates: bool = True
    time_zone: str = "UTC"
    defaulted: frozenset[str] = frozenset()


def add_files(
    table: LoadedTable, request: AddFilesRequest, options: CommitOptions, runner: Runner
) -> tuple[AddedFiles, TableState]:
    """Adds files to a table in one commit, which sets its name mapping if files need one.

    Raises:
        InvalidDataError: a file does not fit the table.
        InvalidOptionError: the partition filter is wrong, or no file is in such a partition.
        MissingFileError: a file does not exist any more.
        AlreadyExistsError: the table has one of the files.
        CorruptFileError, UnsupportedFeatureError, StorageError: a file cannot be read.
        ValidationError: the table's columns were changed meanwhile.
        CommitConflictError, CommitStateUnknownError: as for other commits.
    """
    with interrupts_released():
        described, mapping = _described(table, request, runner)
    files = tuple(each.data_file for each in described)
    added = AddedFiles(len(files), len({file.partition for file in files}))
    return added, _commit(table, described, mapping, request.refuses_duplicates, options)


def check_files(table: LoadedTable, request: AddFilesRequest, runner: Runner) -> None:
    """Reads what `add_files` would read, and changes nothing; errors are those of `add_files`."""
    _described(table, request, runner)


def _described(
    table: LoadedTable, request: AddFilesRequest, runner: Runner
) -> tuple[list[DescribedFile], NameMapping]:
    """The files, and the mapping that gives columns their ids if a file has none."""
    metadata = table.metadata
    stored = table_name_mapping(metadata)
    mapping = updated_mapping(NameMapping(), metadata.schema()) if stored is None else stored
    wanted = parse_partition_filter(
        request.partition_filter, metadata, request.time_zone, table.name
    )
    target = FileTarget(table.io, metadata, mapping, request.time_zone, wanted, request.defaulted)
    described = describe_files(target, request.files, runner)
    if not described:
        raise InvalidOptionError(
            f"partition_filter = {dict(request.partition_filter)!r}: none of the files is in such "
            "a partition"
        )
    return described, mapping


def _commit(
    table: LoadedTable,
    described: Sequence[DescribedFile],
    mapping: NameMapping,
    refuses_duplicates: bool,
    options: CommitOptions,
) -> TableState:
    files = tuple(each.data_file for each in described)
    text = None
    if not all(each.has_own_ids for each in described):
        text = table.metadata.properties.get(NAME_MAPPING_PROPERTY)
        text = text or json.dumps(name_mapping_to_json(mapping))
    action = AddFiles(files, table.metadata.schema(), text, refuses_duplicates)

    def append(operations: TableOperations, base: TableState | None) -> TableState:
        return commit_snapshot(operations, action, options, base).state

    def map_and_append(staged: StagedOperations) -> None:
        if text is not None:
            _set_mapping(staged, text)
        append(staged, None)

    if text in (None, table.metadata.properties.get(NAME_MAPPING_PROPERTY)):
        return append(table.operations, table.state)
    return in_one_commit(table.operations, table.state, map_and_append)[1]


def _set_mapping(staged: StagedOperations, text: str) -> None:
    """Sets the name mapping of a table that has none."""

    def is_set(state: TableState) -> bool:
        return state.metadata.properties.get(NAME_MAPPING_PROPERTY) == text

    def produce(state: TableState) -> Change:
        if is_set(state):
            return Change([], [])
        if NAME_MAPPING_PROPERTY in state.metadata.properties:
            raise ValidationError(
                f"table {state.name}: another commit set its name mapping while the files to add "
                "were read without one; nothing was committed. Add them again"
            )
        return Change([], [SetProperties({NAME_MAPPING_PROPERTY: text})])

    commit_change(staged, produce, is_set)
