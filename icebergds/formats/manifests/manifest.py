"""Reads and writes manifests as `ManifestEntry` objects (spec: Manifests)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice

from icebergds.formats.manifests.columns_of_entries import entry_columns
from icebergds.formats.manifests.reader import read_manifest_columns
from icebergds.formats.manifests.writer import INHERITED, write_manifest_columns
from icebergds.formats.wrong_counts import WrongCounts
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
    wrong_counts: WrongCounts = WrongCounts.FAIL,
) -> list[ManifestEntry]:
    """Reads every entry of a manifest, with all statistics; for many entries, read columns instead.

    Arguments and errors are those of `read_manifest_columns`.
    """
    return read_manifest_columns(
        io,
        manifest,
        specs,
        schema,
        history=history,
        live_only=live_only,
        wrong_counts=wrong_counts,
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
    """Encodes a manifest of format version 1, 2 or 3.

    Args:
        entries: all with the partition spec `spec`.
        schema: the table's current schema; columns it lacks are looked up in `history`.
        inherit: fields that are null for added files, which inherit them: those of `INHERITED`, or
            `snapshot_id`. Other entries have all of them.
        codec, level: as in `write.manifest.compression-codec` and `-level`, or Avro's names.

    Raises:
        InvalidDataError: a file cannot be listed in such a manifest.
        InvalidOptionError: the codec or its level is not supported.
        UnsupportedFeatureError: manifests cannot store the type of a partition value.
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
    """Splits the entries into parts that take little memory, however wide the table is."""
    remaining = iter(entries)
    while part := list(islice(remaining, _ENTRIES_AT_A_TIME)):
        yield part
