"""Lists the delete files of a snapshot."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from icebergds.formats.manifests.reader import read_manifest_columns
from icebergds.formats.manifests.side_by_side import manifest_decoders, reading_ahead
from icebergds.formats.wrong_counts import WrongCounts
from icebergds.io.fileio import FileIO
from icebergds.scan.plan.files import all_manifests
from icebergds.spec.manifest import ManifestContent, ManifestEntry, ManifestFile
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.snapshot import Snapshot


def live_deletes(io: FileIO, metadata: TableMetadata, snapshot: Snapshot) -> list[ManifestEntry]:
    """The delete files and deletion vectors of a snapshot, with all metrics.

    Raises:
        MissingFileError: the manifest list or a manifest does not exist.
        CorruptFileError: one is damaged.
        UnsupportedFeatureError: one is encrypted.
    """
    manifests, wrong_counts = all_manifests(io, snapshot, WrongCounts.FAIL)

    deletes = [m for m in manifests if m.content is ManifestContent.DELETES]
    io = reading_ahead(io, deletes)

    def read(manifest: ManifestFile) -> list[ManifestEntry]:
        return read_manifest_columns(
            io,
            manifest,
            metadata.specs_by_id,
            metadata.schema(),
            history=metadata.schema_history,
            wrong_counts=wrong_counts,
        ).entries()

    with ThreadPoolExecutor(manifest_decoders(deletes)) as pool:
        return [entry for found in pool.map(read, deletes) for entry in found]
