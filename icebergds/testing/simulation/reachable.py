"""Finds the files that a table needs, and those that its directory has.

Written for the simulation alone, so that it does not repeat a mistake of what removes files.
"""

from __future__ import annotations

import re

from icebergds.commit.operations import TableState
from icebergds.formats.manifests.manifest import read_manifest
from icebergds.formats.manifests.manifest_list import read_snapshot_manifests
from icebergds.io.fileio import FileIO

_OTHERS = re.compile(r"/(version-hint\.text|\.[^/]+\.crc)$")


def files_of(state: TableState) -> set[str]:
    """The resolved locations of all files that the table's metadata names."""
    io, metadata = state.io, state.metadata
    found = {state.metadata_location, *(entry.metadata_file for entry in metadata.metadata_log)}
    found |= {statistics.statistics_path for statistics in metadata.statistics}
    found |= {statistics.statistics_path for statistics in metadata.partition_statistics}
    read: set[str] = set()
    for snapshot in metadata.snapshots:
        found.add(snapshot.manifest_list or "")
        for manifest in read_snapshot_manifests(io, snapshot):
            if manifest.manifest_path in read:
                continue
            read.add(manifest.manifest_path)
            specs, schema = metadata.specs_by_id, metadata.schema()
            entries = read_manifest(io, manifest, specs, schema, live_only=True)
            found |= {entry.data_file.file_path for entry in entries}
    return {io.resolve(location) for location in (found | read) - {""}}


def stored_files(state: TableState) -> set[str]:
    """The resolved locations of all files in the table's directory that are its own.

    Not the version hint, and no checksums, which a server adds that writes by Hadoop's client.
    """
    listed = FileIO.list_recursively(state.io, state.metadata.location)
    found = {path for each in listed for path in each.files["location"].to_pylist()}
    return {path for path in found if not _OTHERS.search(path)}
