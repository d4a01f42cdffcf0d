"""Documents that are parsed once, and cannot be changed."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest
from built.metadata import new_table

from icebergds.errors import InvalidMetadataError
from icebergds.spec.json.metadata import parse_metadata, remember_metadata, serialise_metadata
from icebergds.spec.json.recent_documents import RecentDocuments
from icebergds.spec.read_only import ReadOnlyDict
from icebergds.spec.snapshot import Snapshot


class Parsed:
    """Counts what is parsed."""

    def __init__(self, most_bytes: int) -> None:
        self.recent: RecentDocuments[str] = RecentDocuments(most_bytes)
        self.parsed: list[bytes] = []

    def get(self, data: bytes, limit: int | None = None) -> str:
        def parse() -> str:
            self.parsed.append(data)
            return data.decode(errors="replace")

        return self.recent.get(data, limit, parse)


def test_equal_bytes_are_parsed_once() -> None:
    found = Parsed(100)
    assert [found.get(b"one"), found.get(bytes(bytearray(b"one"))), found.get(b"two")] == [
        "one",
        "one",
        "two",
    ]
    assert found.parsed == [b"one", b"two"]
    assert found.recent.find(b"two", None) == "two"
    assert found.recent.find(b"three", None) is None


def test_the_least_recently_used_make_room() -> None:
    found = Parsed(7)
    for data in (b"one", b"two", b"one", b"six", b"one", b"two"):
        found.get(data)
    assert found.parsed == [b"one", b"two", b"six", b"two"]


def test_a_large_document_is_not_kept() -> None:
    found = Parsed(2)
    assert [found.get(b"one"), found.get(b"one")] == ["one", "one"]
    assert found.parsed == [b"one", b"one"]


def test_compressed_documents_count_decompressed() -> None:
    found = Parsed(100)
    for _ in range(2):
        found.get(b"\x1f\x8b" + bytes(6))
    assert len(found.parsed) == 2


def test_another_limit_is_checked_again() -> None:
    found = Parsed(100)
    found.get(b"one", 5)
    found.get(b"one", 2)
    assert found.parsed == [b"one", b"one"]


def test_a_shared_dictionary_cannot_be_changed() -> None:
    shared = ReadOnlyDict({"a": 1})
    for change in (
        lambda: shared.update(b=2),
        lambda: shared.pop("a"),
        lambda: shared.setdefault("b", 2),
        lambda: shared.__setitem__("a", 2),
        lambda: shared.__delitem__("a"),
        shared.clear,
    ):
        with pytest.raises(TypeError, match="cannot be changed"):
            change()
    assert shared == {"a": 1}
    assert pickle.loads(pickle.dumps(shared)) == shared
    assert {**shared, "b": 2} == {"a": 1, "b": 2}


def test_written_metadata_is_not_parsed_when_it_is_read() -> None:
    metadata = new_table()
    data = serialise_metadata(metadata) + b" \t"
    remember_metadata(data, metadata)
    assert parse_metadata(data, "its file") is metadata


def test_compressed_metadata_is_not_remembered_so_that_its_size_is_checked() -> None:
    metadata = new_table()
    data = serialise_metadata(metadata, compress=True)
    remember_metadata(data, metadata, 10)
    with pytest.raises(InvalidMetadataError, match="max-metadata-bytes"):
        parse_metadata(data, "its file", 10)


def test_metadata_cannot_be_changed() -> None:
    given = {"a": "b"}
    metadata = replace(new_table(), properties=given)
    snapshot = Snapshot(1, 2, summary=given)
    for mapping in (metadata.properties, snapshot.summary):
        with pytest.raises(TypeError, match="cannot be changed"):
            mapping["a"] = "c"  # type: ignore[index]
    assert given == {"a": "b"}
