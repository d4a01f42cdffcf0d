"""Names the metadata tables."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from icebergds.errors import InvalidOptionError
from icebergds.suggestions import did_you_mean


class MetadataTable(StrEnum):
    """The metadata tables of a table."""

    ENTRIES = "entries"
    FILES = "files"
    DATA_FILES = "data_files"
    DELETE_FILES = "delete_files"
    HISTORY = "history"
    METADATA_LOG_ENTRIES = "metadata_log_entries"
    SNAPSHOTS = "snapshots"
    REFS = "refs"
    MANIFESTS = "manifests"
    PARTITIONS = "partitions"
    POSITION_DELETES = "position_deletes"
    ALL_DATA_FILES = "all_data_files"
    ALL_DELETE_FILES = "all_delete_files"
    ALL_FILES = "all_files"
    ALL_MANIFESTS = "all_manifests"
    ALL_ENTRIES = "all_entries"

    @property
    def is_of_snapshot(self) -> bool:
        """Whether it shows one snapshot, so that time travel can choose another one."""
        return self in _OF_SNAPSHOT

    @property
    def lists_files(self) -> bool:
        """Whether its rows are the live files of manifests."""
        return self in _FILES

    @property
    def lists_entries(self) -> bool:
        """Whether its rows are the entries of manifests."""
        return self in (MetadataTable.ENTRIES, MetadataTable.ALL_ENTRIES)

    @property
    def is_of_all_snapshots(self) -> bool:
        """Whether it shows what any snapshot has."""
        return self.value.startswith("all_")


_OF_SNAPSHOT = frozenset(
    {
        MetadataTable.ENTRIES,
        MetadataTable.FILES,
        MetadataTable.DATA_FILES,
        MetadataTable.DELETE_FILES,
        MetadataTable.MANIFESTS,
        MetadataTable.PARTITIONS,
        MetadataTable.POSITION_DELETES,
    }
)
_FILES = frozenset(
    {
        MetadataTable.FILES,
        MetadataTable.DATA_FILES,
        MetadataTable.DELETE_FILES,
        MetadataTable.ALL_FILES,
        MetadataTable.ALL_DATA_FILES,
        MetadataTable.ALL_DELETE_FILES,
    }
)


def metadata_table_of(name: Any) -> MetadataTable:
    """The metadata table of a name, in any case.

    Raises:
        InvalidOptionError: there is none.
    """
    if not isinstance(name, str):
        raise InvalidOptionError(f"metadata_table = {name!r}: expected a name, such as 'files'")
    try:
        return MetadataTable(name.lower())
    except ValueError:
        names = [kind.value for kind in MetadataTable]
        near = did_you_mean(name, names, shown=repr)
        hint = f"; {near}" if near else "."
        raise InvalidOptionError(
            f"no metadata table {name!r}{hint} There are {', '.join(names)}"
        ) from None
