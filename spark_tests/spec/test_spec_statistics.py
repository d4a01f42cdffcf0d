"""Statistics files and encryption keys to and from JSON."""

from __future__ import annotations

from typing import Any

import pytest

from icebergds.errors import InvalidMetadataError
from icebergds.spec.json.encryption import encrypted_key_from_json, encrypted_key_to_json
from icebergds.spec.json.statistics import (
    partition_statistics_file_from_json,
    partition_statistics_file_to_json,
    statistics_file_from_json,
    statistics_file_to_json,
)

BLOB = {
    "type": "apache-datasketches-theta-v1",
    "snapshot-id": 7,
    "sequence-number": 1,
    "fields": [1, 2],
    "properties": {"ndv": "3"},
    "x-blob": 1,
}
STATISTICS = {
    "snapshot-id": 7,
    "statistics-path": "s3://b/stats.puffin",
    "file-size-in-bytes": 100,
    "file-footer-size-in-bytes": 40,
    "blob-metadata": [BLOB],
    "key-metadata": "aWNlYmVyZw==",
    "x-file": {"a": 1},
}
KEY = {
    "key-id": "k1",
    "encrypted-key-metadata": "aWNlYmVyZwo=",
    "encrypted-by-id": "k0",
    "properties": {"a": "b"},
    "x-key": 1,
}


def test_a_statistics_file_survives_its_json() -> None:
    assert statistics_file_to_json(statistics_file_from_json(STATISTICS)) == STATISTICS


def test_a_blob_of_a_later_kind_is_kept() -> None:
    obj = {**STATISTICS, "blob-metadata": [{**BLOB, "type": "histogram-v9"}]}
    assert statistics_file_from_json(obj).blob_metadata[0].blob_type == "histogram-v9"
    assert statistics_file_to_json(statistics_file_from_json(obj)) == obj


def test_a_partition_statistics_file_survives_its_json() -> None:
    obj = {"snapshot-id": 7, "statistics-path": "p", "file-size-in-bytes": 1, "x-file": 1}
    assert partition_statistics_file_to_json(partition_statistics_file_from_json(obj)) == obj


def test_an_encryption_key_survives_its_json() -> None:
    key = encrypted_key_from_json(KEY)
    assert key.encrypted_key_metadata == b"iceberg\n"
    assert encrypted_key_to_json(key) == KEY


def test_an_encryption_key_does_not_show_itself() -> None:
    assert "iceberg" not in repr(encrypted_key_from_json(KEY))


@pytest.mark.parametrize("text", ["not base64!", "aWNlYmVyZwo", "é"])
def test_a_key_that_is_not_base64_is_refused(text: str) -> None:
    with pytest.raises(InvalidMetadataError, match="of encryption key 'k1' is not base64"):
        encrypted_key_from_json({**KEY, "encrypted-key-metadata": text})


@pytest.mark.parametrize("name", ["statistics-path", "blob-metadata", "file-footer-size-in-bytes"])
def test_what_a_statistics_file_lacks_is_named(name: str) -> None:
    obj: dict[str, Any] = {**STATISTICS, name: None}
    with pytest.raises(InvalidMetadataError, match=f"'{name}'"):
        statistics_file_from_json(obj)
