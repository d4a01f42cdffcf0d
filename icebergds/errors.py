"""Every error icebergds raises, one small tree.

IcebergError
├── NotFoundError                 table, metadata, snapshot, ref, file
│   ├── NoSuchTableError
│   ├── NoSuchNamespaceError
│   ├── NoSuchSnapshotError
│   └── MissingFileError
├── AlreadyExistsError
├── NamespaceNotEmptyError
├── FormatError                   what is stored cannot be right
│   ├── InvalidMetadataError
│   ├── CorruptFileError
│   └── UnsupportedFeatureError
├── InvalidOptionError            what the user asked for cannot be right
│   └── InvalidFilterError
├── InvalidDataError
├── AlreadyCommittedError         a transaction that the table has
├── CommitConflictError           retryable
├── ValidationError               a conflict with what the operation read: final
└── CommitStateUnknownError       outcome_unknown
"""

from __future__ import annotations


class IcebergError(Exception):
    """Base of all errors of this package."""

    @property
    def retryable(self) -> bool:
        """Whether the same call may succeed on fresh metadata."""
        return False

    @property
    def outcome_unknown(self) -> bool:
        """Whether the change may have landed although the call failed."""
        return False


class NotFoundError(IcebergError):
    """Something that was named does not exist."""


class NoSuchTableError(NotFoundError):
    """No table at this location or under this identifier."""


class NoSuchNamespaceError(NotFoundError):
    """The catalog has no such namespace."""


class NoSuchSnapshotError(NotFoundError):
    """The table has no such snapshot, branch or tag."""


class MissingFileError(NotFoundError):
    """A file that metadata names is not there."""


class AlreadyExistsError(IcebergError):
    """The target of a creation is already there."""


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


class InvalidDataError(IcebergError):
    """Values that the table's schema does not admit."""


class AlreadyCommittedError(IcebergError):
    """The table has this write of an application already, or a later one."""


class CommitConflictError(IcebergError):
    """Another commit changed what this one was based on."""

    @property
    def retryable(self) -> bool:
        return True


class ValidationError(IcebergError):
    """A concurrent commit changed what this operation had read; trying again does not help."""


class CommitStateUnknownError(IcebergError):
    """A commit failed in a way that does not tell whether it landed."""

    @property
    def outcome_unknown(self) -> bool:
        return True
