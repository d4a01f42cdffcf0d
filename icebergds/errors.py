"""Defines every error that icebergds raises.

IcebergError
├── NotFoundError                 table, metadata, snapshot, ref, file
│   ├── NoSuchTableError
│   ├── NoSuchViewError
│   ├── NoSuchFunctionError
│   ├── NoSuchNamespaceError
│   ├── NoSuchSnapshotError
│   └── MissingFileError
├── AlreadyExistsError
├── NamespaceNotEmptyError
├── FormatError                   stored metadata or files break the specification
│   ├── InvalidMetadataError
│   ├── CorruptFileError
│   └── UnsupportedFeatureError
├── InvalidOptionError            a wrong option or argument
│   ├── InvalidFilterError
│   └── InvalidStatementError     SQL that is not a statement, or of something that is not there
├── InvalidDataError
├── AlreadyCommittedError         the write is already in the table
├── CommitConflictError           retryable
├── ValidationError               conflict with what the operation read; not retryable
├── CommitStateUnknownError       outcome_unknown
├── MaintenanceError              steps of `Table.maintain` failed, others are done
└── StorageError                  also an OSError
    └── RestError                 of a REST catalog's server, with its status
"""

from __future__ import annotations

from typing import Any


class IcebergError(Exception):
    """Base of all errors of this package."""

    @property
    def retryable(self) -> bool:
        """Whether the same call may succeed after reloading the table's metadata."""
        return False

    @property
    def outcome_unknown(self) -> bool:
        """Whether the change may have been committed although the call failed."""
        return False


class NotFoundError(IcebergError):
    """Something that was named does not exist."""


class NoSuchTableError(NotFoundError):
    """No table at this location or under this identifier."""


class NoSuchViewError(NotFoundError):
    """The catalog has no view under this identifier."""


class NoSuchFunctionError(NotFoundError):
    """The catalog has no function under this identifier."""


class NoSuchNamespaceError(NotFoundError):
    """The catalog has no such namespace."""


class NoSuchSnapshotError(NotFoundError):
    """The table has no such snapshot, branch or tag."""


class MissingFileError(NotFoundError):
    """A file that metadata refers to does not exist."""


class AlreadyExistsError(IcebergError):
    """What was to be created already exists."""


class NamespaceNotEmptyError(IcebergError):
    """A namespace that still has tables or namespaces cannot be dropped."""


class FormatError(IcebergError):
    """Stored bytes or metadata do not follow the specification."""


class InvalidMetadataError(FormatError):
    """Table metadata contradicts the specification or itself."""


class CorruptFileError(FormatError):
    """A manifest, data, delete or Puffin file is truncated or damaged."""


class UnsupportedFeatureError(FormatError):
    """A format version, type or encoding that this version does not read."""


class InvalidOptionError(IcebergError):
    """An option or argument is unknown, malformed or contradicts another."""


class InvalidFilterError(InvalidOptionError):
    """A filter cannot be parsed, bound or used."""


class InvalidStatementError(InvalidOptionError):
    """A statement of SQL cannot be parsed, or asks for what is not supported."""


class InvalidDataError(IcebergError):
    """Values that do not fit the table's schema."""


class AlreadyCommittedError(IcebergError):
    """The table already has this write of the application, or a later one."""


class CommitConflictError(IcebergError):
    """Another commit changed what this one was based on."""

    @property
    def retryable(self) -> bool:
        return True


class ValidationError(IcebergError):
    """A concurrent commit changed what this operation had read; retrying does not help."""


class CommitStateUnknownError(IcebergError):
    """A commit failed, and it is unknown whether it was applied."""

    @property
    def outcome_unknown(self) -> bool:
        return True


class MaintenanceError(IcebergError):
    """Steps of `Table.maintain` failed; the others were done all the same.

    Attributes:
        report: the `MaintenanceReport` of all steps. Its `failed` steps have their errors. None if
            the error comes from another process.
    """

    def __init__(self, message: str, report: Any = None) -> None:
        super().__init__(message, report)
        self.report = report

    def __str__(self) -> str:
        return str(self.args[0])

    @property
    def retryable(self) -> bool:
        found = self._errors()
        return bool(found) and all(isinstance(e, IcebergError) and e.retryable for e in found)

    @property
    def outcome_unknown(self) -> bool:
        return any(isinstance(e, IcebergError) and e.outcome_unknown for e in self._errors())

    def _errors(self) -> list[object]:
        return [] if self.report is None else [step.error for step in self.report.failed]


class StorageError(IcebergError, OSError):
    """A storage or a catalog's database failed: no space, no permission, an I/O or network error.

    Unless `outcome_unknown` is set, nothing was committed. The error of the storage is the cause.

    Args:
        reason: why it failed; the whole message, without an operation.
        operation: what was done, such as `writing a manifest`.
        location: the file or directory, as the caller named it; or the database.
        errno: the error number of the operating system, if it has one.

    Attributes:
        outcomes: what became of the statement: that nothing was changed, which files were deleted.
    """

    def __init__(
        self, reason: str, *, operation: str = "", location: str = "", errno: int | None = None
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.operation = operation
        self.location = location
        self.errno = errno
        self.outcomes: tuple[str, ...] = ()

    def __str__(self) -> str:
        what = f"{self.operation} {self.location} failed: " if self.operation else ""
        return "; ".join((what + self.reason, *self.outcomes))

    def __reduce__(self) -> tuple[object, ...]:
        # An OSError is pickled without its number.
        return type(self), self.args, {**self.__dict__, "errno": self.errno}

    def add_outcome(self, outcome: str) -> None:
        """Adds what became of the statement, unless the message already says it."""
        if outcome not in self.outcomes:
            self.outcomes = (*self.outcomes, outcome)
