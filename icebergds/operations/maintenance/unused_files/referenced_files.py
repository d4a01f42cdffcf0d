"""Lists all files that a table's metadata refers to, as Arrow arrays."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

from icebergds.catalog.metadata_files import VERSION_HINT
from icebergds.commit.operations import TableState
from icebergds.formats.manifests.manifest_list import read_snapshot_manifests
from icebergds.formats.manifests.reader import MANIFEST_READERS, read_manifest_columns
from icebergds.formats.wrong_counts import WrongCounts
from icebergds.spec.manifest import ManifestFile
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
    with ThreadPoolExecutor(MANIFEST_READERS) as pool:
        manifests: dict[str, ManifestFile] = {}
        for listed in pool.map(lambda s: read_snapshot_manifests(state.io, s), metadata.snapshots):
            manifests.update((manifest.manifest_path, manifest) for manifest in listed)
        lists = (snapshot.manifest_list for snapshot in metadata.snapshots)
        yield pa.array(
            [
                *metadata_files(state),
                f"{metadata_directory(metadata.location)}/{VERSION_HINT}",
                *(file.statistics_path for file in metadata.statistics),
                *(file.statistics_path for file in metadata.partition_statistics),
                *(path for path in lists if path is not None),
                *manifests,
            ],
            pa.string(),
        )

        def files_in(manifest: ManifestFile) -> pa.StringArray:
            return read_manifest_columns(
                state.io,
                manifest,
                metadata.specs_by_id,
                metadata.schema(),
                history=metadata.schema_history,
                stats_ids=frozenset(),
                wrong_counts=wrong_counts,
            ).file_path

        yield from pool.map(files_in, manifests.values())


def metadata_files(state: TableState) -> list[str]:
    """The table's metadata file, and the earlier ones in its log."""
    return [
        state.metadata_location,
        *(entry.metadata_file for entry in state.metadata.metadata_log),
    ]
