"""Metadata that other implementations wrote."""

from __future__ import annotations

import json
import re
import zlib
from typing import Any

import pytest
from corpus import corpus_dir, corpus_tables
from spec_vectors import cases

from icebergds.errors import IcebergError
from icebergds.spec.json.metadata import (
    metadata_from_json,
    metadata_to_json,
    parse_metadata,
    serialise_metadata,
)

TABLES = sorted({table["metadata"] for table in corpus_tables()})
VERDICTS = [case for case in cases("metadata_json_files") if (corpus_dir() / case["file"]).exists()]
_HEX = re.compile(r"([0-9a-fA-F]{2})+")
READ_THOUGH_JAVA_DOES_NOT = {
    # Version 1 requires `schema`, which says what is current; Java wants `current-schema-id`.
    "TableMetadataV1SchemasWithoutCurrentId.json",
    # Drafts of version 3 knew no `added-rows`, which reading does not need.
    "TableMetadataV3WithPartitionStatistics.json",
}


@pytest.mark.parametrize("path", TABLES)
def test_tables_of_others_are_read_and_written_without_loss(path: str) -> None:
    data = (corpus_dir() / path).read_bytes()
    metadata = parse_metadata(data, path)
    assert parse_metadata(serialise_metadata(metadata), path) == metadata
    before, after = _document(data), metadata_to_json(metadata)
    for name in before.keys() - _said_elsewhere(before):
        assert _contains(after.get(name), before[name]), name


@pytest.mark.parametrize("path", TABLES)
def test_nothing_is_made_up_when_metadata_is_written_again(path: str) -> None:
    written = metadata_to_json(parse_metadata((corpus_dir() / path).read_bytes(), path))
    assert metadata_to_json(metadata_from_json(written, path)) == written


@pytest.mark.parametrize("case", VERDICTS, ids=[case["file"] for case in VERDICTS])
def test_verdicts_are_those_of_java(case: dict[str, Any]) -> None:
    path = corpus_dir() / case["file"]
    if "error" in case and path.name not in READ_THOUGH_JAVA_DOES_NOT:
        with pytest.raises(IcebergError, match=path.name):
            parse_metadata(path.read_bytes(), case["file"])
        return
    metadata = parse_metadata(path.read_bytes(), case["file"])
    if "result" in case:
        assert metadata.format_version == case["format_version"]
        assert metadata.current_snapshot_id == case["current_snapshot_id"]
        assert metadata.current_schema_id == case["schema_id"]
        assert len(metadata.schema().fields) == case["fields"]
        assert metadata.default_spec_id == case["spec_id"]
        assert len(metadata.snapshots) == case["snapshots"]


def _document(data: bytes) -> dict[str, Any]:
    return json.loads(zlib.decompress(data, 31) if data[:2] == b"\x1f\x8b" else data)


def _said_elsewhere(before: dict[str, Any]) -> set[str]:
    """Members whose content another one repeats; readers and Java then ignore them."""
    restated = {"schema": "schemas", "partition-spec": "partition-specs"}
    return {old for old, new in restated.items() if new in before}


def _contains(after: Any, before: Any) -> bool:
    """Whether everything that was said is said, perhaps together with defaults."""
    if before in (None, [], {}, -1):
        return after in (None, [], {}, -1)
    match before:
        case dict():
            return all(_contains(after.get(name), member) for name, member in before.items())
        case list():
            return len(after) == len(before) and all(map(_contains, after, before))
        case str():
            # Bytes are read in either case and written in lower.
            return after == (before.lower() if _HEX.fullmatch(before) else before)
        case _:
            return after == before
