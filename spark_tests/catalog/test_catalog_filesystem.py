"""Tables found by location, and by identifier in a directory of tables."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path

import pytest
from built.tables import TableBuilder

from icebergds.api.table import load_table
from icebergds.catalog.filesystem.catalog import FileSystemCatalog
from icebergds.catalog.metadata_files import find_newest_metadata, load_from_location
from icebergds.errors import (
    InvalidMetadataError,
    InvalidOptionError,
    NoSuchTableError,
    UnsupportedFeatureError,
)
from icebergds.io.fileio import FileIO
from icebergds.spec.json.metadata import serialise_metadata
from icebergds.spec.schema import Schema
from icebergds.spec.types import LONG, NestedField

_SCHEMA = Schema((NestedField(1, "id", LONG),))
_UUID = "8f1b3c2a-0d4e-4f5a-9b6c-7d8e9fa0b1c2"
_OTHER = "12345678-1111-2222-3333-444444444444"


# Which metadata file is the newest.


@pytest.mark.parametrize(
    ("files", "newest"),
    [
        (["v1.metadata.json"], "v1.metadata.json"),
        (["v9.metadata.json", "v10.metadata.json"], "v10.metadata.json"),
        (["v2.metadata.json", "v3.gz.metadata.json"], "v3.gz.metadata.json"),
        (["v2.metadata.json", "v3.metadata.json.gz"], "v3.metadata.json.gz"),
        (
            [f"00009-{_UUID}.metadata.json", f"00010-{_OTHER}.metadata.json"],
            f"00010-{_OTHER}.metadata.json",
        ),
        ([f"00001-{_UUID}.gz.metadata.json"], f"00001-{_UUID}.gz.metadata.json"),
        (["v3.metadata.json", f"00004-{_UUID}.metadata.json"], f"00004-{_UUID}.metadata.json"),
        (["v5.metadata.json", f"00004-{_UUID}.metadata.json"], "v5.metadata.json"),
    ],
)
def test_the_highest_version_is_the_newest(
    tmp_path: Path, files: Sequence[str], newest: str
) -> None:
    assert _newest(tmp_path, files) == newest


@pytest.mark.parametrize(
    "other",
    [
        "v7.metadata.json.crc",
        ".v7.metadata.json.crc",
        "v7.metadata.json.tmp",
        "snap-7-1-x.avro",
        "v7.json",
        "vx.metadata.json",
        "v\u0667.metadata.json",
        # What a commit by rename leaves where it fails; all of its first part may be digits.
        f"{_OTHER}.metadata.json",
        f"{_OTHER}.gz.metadata.json",
    ],
)
def test_other_files_are_no_metadata(tmp_path: Path, other: str) -> None:
    assert _newest(tmp_path, ["v1.metadata.json", other]) == "v1.metadata.json"


@pytest.mark.parametrize("hint", [None, "1", "9", "nonsense", "", b"\xff\xfe"])
def test_the_hint_does_not_count_where_versions_tell(
    tmp_path: Path, hint: str | bytes | None
) -> None:
    assert _newest(tmp_path, ["v1.metadata.json", "v2.metadata.json"], hint) == "v2.metadata.json"


@pytest.mark.parametrize(
    ("hint", "newest"),
    [
        ("3", "v3.metadata.json"),
        ("v3", "v3.metadata.json"),
        ("v3.metadata.json", "v3.metadata.json"),
        (f"00003-{_UUID}", f"00003-{_UUID}.metadata.json"),
        (f"00003-{_UUID}.metadata.json\n", f"00003-{_UUID}.metadata.json"),
    ],
)
def test_the_hint_decides_between_files_of_one_version(
    tmp_path: Path, hint: str, newest: str
) -> None:
    files = ["v3.metadata.json", f"00003-{_UUID}.metadata.json", f"00003-{_OTHER}.metadata.json"]
    assert _newest(tmp_path, files, hint) == newest


@pytest.mark.parametrize("hint", [None, "2", "nonsense", b"\xff"])
def test_two_files_of_the_highest_version_are_refused(
    tmp_path: Path, hint: str | bytes | None
) -> None:
    files = [f"00003-{_UUID}.metadata.json", f"00003-{_OTHER}.metadata.json", "v2.metadata.json"]
    with pytest.raises(InvalidMetadataError, match=rf"claim version 3 \(00003-{_OTHER}.*{_UUID}"):
        _newest(tmp_path, files, hint)


def test_a_plain_file_and_its_compressed_twin_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidMetadataError, match="2 metadata files"):
        _newest(tmp_path, ["v3.metadata.json", "v3.gz.metadata.json"], "3")


@pytest.mark.parametrize("files", [[], ["version-hint.text"], ["snap-1.avro"]])
def test_a_directory_without_metadata_is_no_table(tmp_path: Path, files: Sequence[str]) -> None:
    with pytest.raises(NoSuchTableError, match="table mine: no metadata file"):
        _newest(tmp_path, files)


def test_a_location_without_a_metadata_directory_is_no_table(tmp_path: Path) -> None:
    with pytest.raises(NoSuchTableError, match=str(tmp_path / "nowhere")):
        load_from_location(FileIO(), str(tmp_path / "nowhere"))


# Loading.


@pytest.mark.parametrize("suffix", ["", "/"])
def test_a_table_is_loaded_by_its_root(tmp_path: Path, suffix: str) -> None:
    table = _table(tmp_path / "t")
    state = load_from_location(FileIO(), str(table.location) + suffix)
    assert state.metadata_location == table.metadata_location
    assert state.metadata == table.metadata
    assert state.name == str(table.location) + suffix


def test_a_table_is_loaded_as_one_of_its_metadata_files_says(tmp_path: Path) -> None:
    table = _table(tmp_path / "t")
    before = table.metadata_location
    table.commit(table.data_file([(2,)]))
    assert load_table(before).scan().to_arrow().num_rows == 1
    assert load_table(table.metadata_location).scan().to_arrow().num_rows == 2


@pytest.mark.parametrize("name", ["v7.gz.metadata.json", "v7.metadata.json.gz", "v7.metadata.json"])
def test_compressed_metadata_is_known_by_its_bytes(tmp_path: Path, name: str) -> None:
    table = _table(tmp_path / "t")
    compressed = gzip.compress(serialise_metadata(table.metadata))
    path = table.location / "metadata" / name
    path.write_bytes(compressed)
    assert load_from_location(FileIO(), str(table.location)).metadata_location == str(path)
    assert load_table(str(path)).scan().to_arrow().num_rows == 1


def test_a_metadata_file_that_is_not_there_is_no_table(tmp_path: Path) -> None:
    missing = str(tmp_path / "v1.metadata.json")
    with pytest.raises(NoSuchTableError, match=missing):
        load_from_location(FileIO(), missing)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\x1f\x8b", b'{"format-version": 2}'])
def test_damaged_metadata_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "v1.metadata.json"
    path.write_bytes(content)
    with pytest.raises(InvalidMetadataError, match=str(path)):
        load_from_location(FileIO(), str(path))


def test_later_format_versions_are_refused(tmp_path: Path) -> None:
    table = _table(tmp_path / "t")
    newer = serialise_metadata(table.metadata).replace(b'"format-version":2', b'"format-version":4')
    path = table.location / "metadata" / "v9.metadata.json"
    path.write_bytes(newer)
    with pytest.raises(UnsupportedFeatureError, match=r"v9\.metadata\.json.*version 4"):
        load_from_location(FileIO(), str(table.location))


@pytest.mark.parametrize(
    "name", ["with space", "p%20q", "100%", "t#1?x=y", "\u00fcber \u6771\u4eac", "a+b&c", "[x]{y}"]
)
def test_paths_are_taken_as_they_are_written(tmp_path: Path, name: str) -> None:
    table = _table(tmp_path / name / "t")
    for path in (str(table.location), f"file://{table.location}", f"file:{table.location}"):
        assert load_table(path).scan().to_arrow().num_rows == 1
    table.commit(table.position_deletes({_path_of(table): [0]}))
    assert load_table(str(table.location)).scan().to_arrow().num_rows == 0


def test_relative_locations_start_at_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _table(tmp_path / "db" / "t")
    monkeypatch.chdir(tmp_path)
    assert load_table("db/t").scan().to_arrow().num_rows == 1
    assert load_table("./db/t").scan().to_arrow().num_rows == 1


def test_a_table_that_was_moved_is_loaded_through_a_location_map(tmp_path: Path) -> None:
    table = _table(tmp_path / "old")
    moved = tmp_path / "new"
    table.location.rename(moved)
    location_map = {str(table.location): str(moved)}
    for path in (moved, table.location):
        found = load_table(str(path), location_map=location_map).scan().to_arrow()
        assert found.num_rows == 1
    with pytest.raises(NoSuchTableError, match="looked for at"):
        load_table("s3://b/t", location_map={"s3://b/": f"{tmp_path}/"})


# The catalog that is a directory.


@pytest.mark.parametrize("suffix", ["", "/"])
@pytest.mark.parametrize("identifier", [("t",), ("db", "t"), ("a", "b", "t")])
def test_identifiers_are_directories(
    tmp_path: Path, identifier: tuple[str, ...], suffix: str
) -> None:
    table = _table(tmp_path.joinpath(*identifier))
    state = _catalog(tmp_path, suffix).load(identifier)
    assert state.metadata_location == table.metadata_location
    assert state.name == ".".join(("local", *identifier))


def test_an_unknown_table_is_named_with_the_nearest(tmp_path: Path) -> None:
    _table(tmp_path / "db" / "events")
    catalog = _catalog(tmp_path)
    with pytest.raises(NoSuchTableError, match=r"table local\.db\.event:.*mean db\.events\?"):
        catalog.load(("db", "event"))
    with pytest.raises(NoSuchTableError, match=r"table local\.db\.orders:(?!.*did you mean)"):
        catalog.load(("db", "orders"))
    with pytest.raises(NoSuchTableError, match=r"table local\.dx\.events:(?!.*did you mean)"):
        catalog.load(("dx", "events"))


@pytest.mark.parametrize("identifier", [("",), ("db", ""), ("", "t"), ("db/t",), ("..", "a/b")])
def test_what_is_no_identifier_is_refused(tmp_path: Path, identifier: tuple[str, ...]) -> None:
    with pytest.raises(InvalidOptionError, match="is not an identifier"):
        _catalog(tmp_path).load(identifier)


def _newest(tmp_path: Path, files: Sequence[str], hint: str | bytes | None = None) -> str:
    directory = tmp_path / "metadata"
    directory.mkdir()
    for file in files:
        (directory / file).write_text("{}")
    if hint is not None:
        content = hint if isinstance(hint, bytes) else hint.encode()
        (directory / "version-hint.text").write_bytes(content)
    found = find_newest_metadata(FileIO(), str(tmp_path), "mine")
    assert found.startswith(f"{directory}/")
    return found.removeprefix(f"{directory}/")


def _table(location: Path) -> TableBuilder:
    """A table of one row."""
    table = TableBuilder(location, _SCHEMA)
    table.commit(table.data_file([(1,)]))
    return table


def _path_of(table: TableBuilder) -> str:
    found = load_table(str(table.location)).scan(columns="_file").to_arrow()
    return str(found["_file"][0])


def _catalog(warehouse: Path, suffix: str = "") -> FileSystemCatalog:
    return FileSystemCatalog("local", str(warehouse) + suffix, FileIO())
