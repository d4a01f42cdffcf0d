"""Replaces the prefix of a table's paths, and remembers which files are to be copied where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from icebergds.errors import InvalidOptionError
from icebergds.io.fileio import FileIO
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.snapshot import Snapshot
from icebergds.spec.table_properties import PATHS


@dataclass(frozen=True, slots=True)
class MovedPaths:
    """How paths change: those of the table, and those of files that are written for its copy.

    Attributes:
        source, target: the old and the new prefix, without a slash at the end.
        staging: the directory of the files that are written, without a slash at the end.
    """

    source: str
    target: str
    staging: str

    def moved(self, path: str) -> str:
        """The copy's path for a path of the table.

        Raises:
            InvalidOptionError: it does not begin with the source prefix.
        """
        return self.target + self._below(path)

    def staged(self, path: str) -> str:
        """Where the copy's version of a file is written; keeps the names, so that none collide."""
        return self.staging + self._below(path)

    def _below(self, path: str) -> str:
        below = path.removeprefix(self.source)
        if not path.startswith(self.source) or (below and not below.startswith("/")):
            raise InvalidOptionError(
                f"source_prefix = {self.source!r}: the table refers to {path}, which is elsewhere; "
                "give a prefix that all its files have, or copy such files into the table first"
            )
        return below


@dataclass(slots=True)
class CopyPlan:
    """What is written for the copy of a table, and what is to be copied.

    Attributes:
        sources: the locations to copy from, by those to copy to.
        written: the files that were written.
    """

    io: FileIO
    paths: MovedPaths
    sources: dict[str, str] = field(default_factory=dict)
    written: list[str] = field(default_factory=list)

    def add(self, path: str) -> None:
        """Plans to copy a file of the table as it is."""
        self.sources.setdefault(self.paths.moved(path), path)

    def add_written(self, path: str) -> str:
        """Plans to copy a newly written file instead of the table's; returns its location."""
        staged = self.paths.staged(path)
        self.sources[self.paths.moved(path)] = staged
        self.written.append(staged)
        return staged

    def write(self, path: str, data: bytes) -> None:
        """Writes a file that is copied instead of the table's."""
        self.io.write(self.add_written(path), data)


def moved_metadata(metadata: TableMetadata, paths: MovedPaths) -> TableMetadata:
    """Table metadata for the copy.

    Raises:
        InvalidOptionError: a path does not begin with the source prefix.
    """
    return replace(
        metadata,
        location=paths.moved(metadata.location.rstrip("/")),
        properties=_moved_properties(metadata.properties, paths),
        snapshots=tuple(_moved_snapshot(snapshot, paths) for snapshot in metadata.snapshots),
        metadata_log=tuple(
            replace(entry, metadata_file=paths.moved(entry.metadata_file))
            for entry in metadata.metadata_log
        ),
        statistics=tuple(
            replace(file, statistics_path=paths.moved(file.statistics_path))
            for file in metadata.statistics
        ),
        partition_statistics=tuple(
            replace(file, statistics_path=paths.moved(file.statistics_path))
            for file in metadata.partition_statistics
        ),
    )


def _moved_properties(properties: Mapping[str, str], paths: MovedPaths) -> dict[str, str]:
    moved = {name: paths.moved(properties[name]) for name in PATHS if name in properties}
    return {**properties, **moved}


def _moved_snapshot(snapshot: Snapshot, paths: MovedPaths) -> Snapshot:
    listed = snapshot.manifest_list
    return replace(
        snapshot,
        manifest_list=None if listed is None else paths.moved(listed),
        manifests=tuple(map(paths.moved, snapshot.manifests)),
    )
