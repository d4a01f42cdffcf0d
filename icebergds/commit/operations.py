"""Defines what a commit needs of a catalog: load a table and swap its metadata."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Protocol, runtime_checkable

from icebergds.encryption.list_keys import list_keys_of
from icebergds.encryption.table_keys import TableKeys, table_keys
from icebergds.expr.nodes import Expr
from icebergds.io.fileio import FileIO
from icebergds.metrics import MetricsReport, report, reporter_of
from icebergds.spec.labels import NO_LABELS, Labels
from icebergds.spec.manifest import DataFile
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.schema import Schema
from icebergds.spec.updates.requirements import TableRequirement
from icebergds.spec.updates.table_updates import TableUpdate


class ServerPlanner(Protocol):
    """Plans scans of a table on the catalog's server."""

    def plan(
        self, snapshot_id: int, row_filter: Expr, schema: Schema, metadata: TableMetadata
    ) -> list[tuple[DataFile, tuple[DataFile, ...]]]:
        """The data files of a snapshot that may have matching rows, each with its delete files.

        They have no column metrics.

        Args:
            row_filter: bound to `schema`.
            schema: that of the snapshot.

        Raises:
            StorageError: the server does not answer, or has failed.
            InvalidMetadataError: its answer is malformed.
        """
        ...


class ServerReporter(Protocol):
    """Reports scans and commits to the catalog's server."""

    def report(self, made: Callable[[], MetricsReport]) -> None:
        """Makes and sends a report in the background; never fails."""
        ...


@dataclass(frozen=True, slots=True)
class TableState:
    """A table as a catalog loaded it.

    Attributes:
        name: the table's name in messages.
        metadata_location: location of the metadata file, as the catalog gives it; empty if the
            table does not exist yet.
        io: storage that reaches files outside of the table only by locations without `..`.
        planner: plans reads; None: this process plans them from the manifests, as other processes
            always do.
        reporter: gets what this process plans and commits; None: its server is not told.
        labels: what the catalog's server says of it beside the metadata.
        keys: those of an encrypted table, by the key service that came with the storage; None for
            other tables, and without a key service.
    """

    name: str
    metadata_location: str
    metadata: TableMetadata
    io: FileIO
    planner: ServerPlanner | None = field(default=None, compare=False, repr=False)
    reporter: ServerReporter | None = field(default=None, compare=False, repr=False)
    labels: Labels = field(default=NO_LABELS, compare=False, repr=False)
    keys: TableKeys | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        # An existing table's metadata must not decide which locations it may reach.
        directory = self.metadata_location.rpartition("/")[0] or self.metadata.location
        object.__setattr__(self, "io", self.io.of_table(directory.removesuffix("/metadata")))
        if self.io.key_service is not None:
            # Also of a state that another was replaced by, such as after its properties changed.
            keys = table_keys(self.io.key_service, self.metadata, self.name)
            object.__setattr__(self, "keys", keys)
        list_keys = list_keys_of(self.keys, self.metadata, self.name)
        object.__setattr__(self, "io", self.io.with_list_keys(list_keys))

    def __reduce__(self) -> tuple[Any, ...]:
        # The storage is sent without the keys, and gets them again.
        return type(self), tuple(getattr(self, each.name) for each in fields(self))

    def report(self, made: Callable[[], MetricsReport]) -> None:
        """Reports what this process has planned or committed; never fails once that began."""
        report(reporter_of(self.io.properties), made)
        if self.reporter is not None:
            self.reporter.report(made)


@runtime_checkable
class KeepsLastSeen(Protocol):
    """`TableOperations` that keep the state that this process has seen last."""

    def last_seen(self) -> TableState | None:
        """A state that may be old, without asking the catalog; None if there is none."""
        ...


@runtime_checkable
class LoadsParts(Protocol):
    """`TableOperations` whose states may lack what belongs to snapshots without a branch or tag."""

    def refresh_whole(self) -> TableState:
        """Loads the table with all that it refers to. Errors are those of `refresh`."""
        ...


@dataclass(frozen=True, slots=True)
class Change:
    """The requirements and updates that an attempt commits."""

    requirements: Sequence[TableRequirement]
    updates: Sequence[TableUpdate]


@dataclass(frozen=True, slots=True)
class TableCommit:
    """A change of one table, as a part of a commit to several.

    Attributes:
        identifier: the table in its catalog.
        base: the state that the updates were made for.
    """

    identifier: tuple[str, ...]
    base: TableState
    requirements: Sequence[TableRequirement]
    updates: Sequence[TableUpdate]


class TableOperations(Protocol):
    """Refreshes one table and commits to it."""

    @property
    def name(self) -> str:
        """The table's name in messages."""
        ...

    def refresh(self) -> TableState:
        """The table as it is now.

        Raises:
            NoSuchTableError: the table does not exist (any more).
        """
        ...

    def commit(
        self,
        base: TableState,
        requirements: Sequence[TableRequirement],
        updates: Sequence[TableUpdate],
    ) -> TableState:
        """Applies updates to `base` in one atomic swap, if the table is still in that state.

        There are three outcomes: it returns (committed), it raises CommitConflictError or another
        error (not committed: files written for it may be deleted), or it raises
        CommitStateUnknownError.

        Invariant (docs/commit-model.md): NoRowLost, as another swap would drop newer commits.

        Args:
            base: the state from `refresh` that the updates were made for.

        Returns:
            The table after the commit.

        Raises:
            CommitConflictError: another commit came first; refresh and try again.
            CommitStateUnknownError: whether it was committed is not known; delete nothing.
        """
        ...
