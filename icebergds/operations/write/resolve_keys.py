"""Deletes the rows that a change by key replaces by their positions, if they are cheap to find.

The tasks of a change write its keys as equality delete files, which readers compare with their rows
until somebody converts them. If few bytes of key columns have to be read to find the rows, the
commit deletes them by position instead: by deletion vectors from format version 3.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from icebergds.catalog.loaded_table import LoadedTable
from icebergds.commit.base import CommitBase
from icebergds.commit.file_selection import file_key
from icebergds.commit.new_snapshot import NewSnapshot
from icebergds.commit.options import NothingToCommitError
from icebergds.commit.row_delta import RowDelta
from icebergds.commit.workspace import Workspace
from icebergds.display import size_text
from icebergds.errors import InvalidOptionError, ValidationError
from icebergds.formats.deletes.key_hash import Hashes
from icebergds.operations.write.key_resolver import KeyResolver, Resolved
from icebergds.operations.write.options import WriteOptions
from icebergds.operations.write.row_change_options import WriteOperation
from icebergds.operations.write.row_counts import (
    COUNTS_KEYS,
    KEYS_DELETED_BY,
    summary_of_counts,
)
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.reserved import ROW_ID
from icebergds.spec.table_properties import UPSERT_MODE, UPSERT_RESOLVE_LIMIT_BYTES
from icebergds.write.changes.keyed_delta import ReplacedRows


class UpsertMode(StrEnum):
    """How changes by key delete rows (`write.upsert.mode`)."""

    EQUALITY_DELETES = "equality-deletes"
    POSITIONS = "positions"
    AUTO = "auto"


def upsert_mode(metadata: TableMetadata, chosen: str | None) -> UpsertMode:
    """How a change by key deletes rows: as chosen, or as the table's property says."""
    return UpsertMode(chosen or UPSERT_MODE.of(metadata.properties))


def keeps_row_ids(table: LoadedTable, options: WriteOptions, incoming: Iterable[str]) -> bool:
    """Whether a change by key looks up the rows that it replaces before it writes, for their ids.

    Args:
        incoming: the names of the columns of rows that can be computed twice.
    """
    change, metadata = options.row_change, table.metadata
    if change is None or change.operation is WriteOperation.DELETE or metadata.format_version < 3:
        return False
    names = (*incoming, *(field.name for field in metadata.schema().fields))
    # A file cannot have two columns of the name.
    if metadata.head_of(options.branch) is None or ROW_ID.name in map(str.lower, names):
        return False
    return upsert_mode(metadata, change.mode) is not UpsertMode.EQUALITY_DELETES


def resolves(
    resolver: KeyResolver, mode: UpsertMode, branch: str, limit: int | None
) -> tuple[bool, str]:
    """Whether a change deletes rows by position, and why.

    Args:
        limit: in bytes; None for that of the table, or the default one, which `POSITIONS` ignores.

    Raises:
        InvalidOptionError: rows are to be deleted by position, which would read more.
        ValidationError: they are, and a data file is listed twice.
    """
    given = resolver.limit(limit)
    if mode is UpsertMode.EQUALITY_DELETES or (mode is UpsertMode.POSITIONS and given is None):
        return mode is UpsertMode.POSITIONS, UPSERT_MODE.name
    most = given or resolver.default_limit
    try:
        found, what = resolver.cost(branch, most)
    except ValidationError as error:
        if mode is UpsertMode.POSITIONS:
            raise
        return False, str(error)
    if found > most and mode is UpsertMode.POSITIONS:
        raise InvalidOptionError(
            f"table {resolver.table}: finding the rows by key would read {what}, more than "
            f"{UPSERT_RESOLVE_LIMIT_BYTES.name} allows ({size_text(most)}); raise it, or set "
            f"{UPSERT_MODE.name} to auto"
        )
    return found <= most, f"{what}, limit {size_text(most)}"


@dataclass(frozen=True, slots=True)
class FoundRows:
    """The rows that a change by key replaces, or why they were not looked up.

    Attributes:
        resolver: None if equality deletes delete them.
        reason: for the snapshot's summary; empty if there are no keys.
        replaced: the rows whose ids the new rows get; None if they have ids of their own.
    """

    resolver: KeyResolver | None = None
    reason: str = ""
    replaced: ReplacedRows | None = None


@dataclass(slots=True)
class DeleteResolvedKeys:
    """Adds the data files of a change by key, and deletes by position the rows it replaces.

    Attributes:
        delta: without the deletes of these rows.
        counts: what the tasks have counted; real numbers replace them as far as they are known.
        deleted: hashes of the keys that a changelog deletes.
        reason: for the snapshot's summary.
        replaced: the rows whose ids the new rows have got; None if they have ids of their own.
    """

    resolver: KeyResolver
    delta: RowDelta
    counts: Mapping[str, int]
    deleted: Hashes
    reason: str
    replaced: ReplacedRows | None = None
    _found: Resolved | None = None

    def produce(self, work: Workspace, base: CommitBase) -> NewSnapshot:
        """Finds the rows, and writes the manifests.

        Raises:
            NothingToCommitError: the first attempt finds no row to delete, and has none to add.

        Other errors are those of `RowDelta.produce` and `KeyResolver.resolve`.
        """
        found = self.resolver.resolve(base)
        given = None if self.replaced is None else self.replaced.without(self.deleted).row_ids
        if given is not None and not self.resolver.has_rows(base, given):
            # Another row may have one of these ids now, or the row is gone.
            raise ValidationError(
                f"table {base.name}: another commit changed rows that this change by key replaces, "
                "and whose row ids the new rows have got; repeat the operation"
            )
        is_first, self._found = self._found is None, found
        delta = replace(
            self.delta,
            deletes=(*self.delta.deletes, *found.deletes),
            replaced=(*self.delta.replaced, *found.replaced),
            attempt=(
                frozenset(map(file_key, found.deletes)),
                frozenset(map(file_key, found.replaced)),
            ),
        )
        if is_first and not (delta.files or delta.deletes):
            raise NothingToCommitError(base.state)
        new = delta.produce(work, base)
        counts = summary_of_counts(_real_counts(self.counts, found, self.deleted), None)
        if found.keys is None:
            counts[COUNTS_KEYS] = "true"
        return replace(new, changes={**new.changes, **counts, KEYS_DELETED_BY: self.reason})

    def settle(self) -> None:
        """Deletes what the committed attempt does not use."""
        self.resolver.clean_up(() if self._found is None else self._found.deletes)


def _real_counts(counted: Mapping[str, int], found: Resolved, deleted: Hashes) -> Mapping[str, int]:
    """The counts of a change whose rows were found."""
    if found.keys is None:
        return counted
    if "upserted" not in counted:
        return {"deleted": found.rows}
    updated = len(found.keys) - int(np.isin(found.keys, deleted, assume_unique=True).sum())
    inserted = counted.get("inserted", 0) + counted["upserted"] - updated
    # Several rows of a key become one.
    more = {"deleted": found.rows - updated} if found.rows > updated else {}
    return {"inserted": inserted, "updated": updated, **more}
