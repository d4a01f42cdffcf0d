"""Manifests as objects, one an entry, read and written (spec: Manifests)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice

from icebergds.formats.manifests.columns_of_entries import entry_columns
from icebergds.formats.manifests.reader import read_manifest_columns
from icebergds.formats.manifests.writer import INHERITED, write_manifest_columns
from icebergds.io.fileio import FileIO
from icebergds.spec.manifest import ManifestContent, ManifestEntry, ManifestFile
from icebergds.spec.partition import PartitionSpec, partition_type
from icebergds.spec.schema import Schema

__all__ = ["INHERITED", "read_manifest", "write_manifest"]

_ENTRIES_AT_A_TIME = 4096


def read_manifest(
    io: FileIO,
    manifest: ManifestFile,
    specs: Mapping[int, PartitionSpec] | None = None,
    schema: Schema | None = None,
    *,
    history: Iterable[Schema] = (),
    live_only: bool = False,
) -> list[ManifestEntry]:
    """Every entry of a manifest, with all statistics; for many entries, read columns instead.

    Arguments and errors are those of `read_manifest_columns`.
    """
    return read_manifest_columns(
        io, manifest, specs, schema, history=history, live_only=live_only
    ).entries()


def write_manifest(
    entries: Iterable[ManifestEntry],
    spec: PartitionSpec,
    schema: Schema,
    *,
    format_version: int,
    content: ManifestContent = ManifestContent.DATA,
    inherit: Collection[str] = INHERITED,
    history: Iterable[Schema] = (),
    codec: str = "deflate",
    level: int | None = None,
) -> bytes:
    """A manifest of format version 1, 2 or 3.

    Args:
        entries: all of the spec `spec`.
        schema: the table's schema at this time; columns it lacks are looked for in `history`.
        inherit: fields that entries of added files leave null: those of `INHERITED`, or
            `snapshot_id`. Other entries hold all of them.
        codec, level: as in `write.manifest.compression-codec` and `-level`; Avro's names too.

    Raises:
        InvalidDataError: a file cannot be listed in such a manifest.
        InvalidOptionError: the codec is not known, or does not have the level.
        UnsupportedFeatureError: a partition value's type cannot be stored.
    """
    partition = partition_type(spec, schema, history)
    return write_manifest_columns(
        (entry_columns(part, spec.spec_id, partition) for part in _parts(entries)),
        spec,
        schema,
        partition=partition,
        format_version=format_version,
        content=content,
        inherit=inherit,
        codec=codec,
        level=level,
    )


def _parts(entries: Iterable[ManifestEntry]) -> Iterator[list[ManifestEntry]]:
    """As many entries at a time as take little memory, however wide the table is."""
    remaining = iter(entries)
    while part := list(islice(remaining, _ENTRIES_AT_A_TIME)):
        yield part
