"""Checks that metadata that is remembered after a commit is what reading its file would give."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest

from icebergds.catalog import metadata_writing
from icebergds.catalog.filesystem import commits
from icebergds.spec.json.metadata import (
    metadata_from_json,
    metadata_to_json,
    remember_metadata,
)
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.read_only import ReadOnlyDict


@contextmanager
def checked_remembering() -> Iterator[None]:
    """Checks all metadata that this process remembers meanwhile."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (metadata_writing, commits):
            patch.setattr(module, "remember_metadata", _checked)
        yield


def _checked(data: bytes, metadata: TableMetadata, max_bytes: int | None = None) -> None:
    if not data.startswith(b"\x1f\x8b"):
        read = metadata_from_json(json.loads(data), "what was written")
        assert read == metadata
        assert metadata_to_json(read) == metadata_to_json(metadata)
        _is_read_only(metadata)
    remember_metadata(data, metadata, max_bytes)


def _is_read_only(metadata: TableMetadata) -> None:
    snapshots = [snapshot.summary for snapshot in metadata.snapshots]
    blobs = [blob.properties for file in metadata.statistics for blob in file.blob_metadata]
    keys = [key.properties for key in metadata.encryption_keys]
    shared: list[Mapping[str, object]] = [metadata.properties, metadata.refs, metadata.unknown]
    assert all(isinstance(one, ReadOnlyDict) for one in (*shared, *snapshots, *blobs, *keys))
