"""Lists all files that a table's metadata refers to, as Arrow arrays."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from icebergds.catalog.metadata_files import VERSION_HINT
from icebergds.commit.operations import TableState
from icebergds.formats.wrong_counts import WrongCounts
from icebergds.operations.maintenance.unused_files.reachable_files import (
    content_batches,
    listed_manifests,
    manifest_lists,
    statistics_files,
)
from icebergds.spec.metadata import metadata_directory


def referenced_files(state: TableState, wrong_counts: WrongCounts) -> Iterator[pa.StringArray]:
    """Locations of the files of all snapshots, on branches, tagged or staged, and of metadata.

    These are live data and delete files, manifests, manifest lists, statistics, metadata files in
    the log and the version hint; as they are in the metadata, some more than once.

    Args:
        wrong_counts: what to do about a manifest with another number of files than its list says.

    Raises:
        MissingFileError: a manifest list or a manifest does not exist.
        CorruptFileError: one is damaged.
    """
    metadata = state.metadata
    manifests = listed_manifests(state.io, metadata.snapshots)
    yield pa.array(
        [
            *metadata_files(state),
            f"{metadata_directory(metadata.location)}/{VERSION_HINT}",
            *statistics_files(metadata),
            *manifest_lists(metadata.snapshots),
            *manifests,
        ],
        pa.string(),
    )
    content = content_batches(
        state.io, metadata, manifests.values(), live_only=True, wrong_counts=wrong_counts
    )
    for batch in content:
        yield batch.column("location")


def metadata_files(state: TableState) -> list[str]:
    """The table's metadata file, and the earlier ones in its log."""
    return [
        state.metadata_location,
        *(entry.metadata_file for entry in state.metadata.metadata_log),
    ]
