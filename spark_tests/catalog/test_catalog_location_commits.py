"""Commits to tables named by their location: files, conflicts and storage that fails half way."""

from __future__ import annotations

import gzip
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.table import StaticTable

from icebergds.catalog.filesystem.catalog import FileSystemCatalog
from icebergds.catalog.filesystem.commits import create_at_location, location_operations
from icebergds.catalog.metadata_files import load_from_location
from icebergds.commit.operations import TableOperations, TableState
from icebergds.errors import (
    AlreadyExistsError,
    CommitConflictError,
    CommitStateUnknownError,
    IcebergError,
    InvalidOptionError,
    NoSuchTableError,
    UnsupportedFeatureError,
)
from icebergds.io.fileio import FileIO
from icebergds.spec.json.metadata import serialise_metadata
from icebergds.spec.schema import Schema
from icebergds.spec.types import LONG, NestedField
from icebergds.spec.updates.new_table import new_table_updates
from icebergds.spec.updates.table_updates import SetLocation, SetProperties, TableUpdate

_SCHEMA = Schema((NestedField(1, "id", LONG),))
_GZIP = {"write.metadata.compression-codec": "gzip"}
_SHORT_LOG = {
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "1",
}


# Files.


def test_each_commit_is_the_next_version_and_the_hint_follows(tmp_path: Path) -> None:
    table = _create(tmp_path)
    assert _files(tmp_path) == ["v1.metadata.json", "version-hint.text"]
    assert _hint(tmp_path) == "1"
    _commit(table)
    assert _files(tmp_path) == ["v1.metadata.json", "v2.metadata.json", "version-hint.text"]
    assert _hint(tmp_path) == "2"


def test_compression_starts_with_the_version_after_the_property(tmp_path: Path) -> None:
    table = _create(tmp_path, _GZIP)
    _commit(table)
    _commit(table, {"write.metadata.compression-codec": "none"})
    _commit(table)
    assert _files(tmp_path)[:4] == [
        "v1.metadata.json",
        "v2.gz.metadata.json",
        "v3.gz.metadata.json",
        "v4.metadata.json",
    ]
    packed = (tmp_path / "metadata" / "v2.gz.metadata.json").read_bytes()
    assert gzip.decompress(packed).startswith(b'{"format-version"')


def test_pyiceberg_reads_what_was_committed(tmp_path: Path) -> None:
    table = _create(tmp_path, _GZIP)
    for state in (table.refresh(), _commit(table, {"k": "v"})):
        read = StaticTable.from_metadata(state.metadata_location)
        assert str(read.metadata.table_uuid) == state.metadata.table_uuid
        assert read.schema().column_names == ["id"]
        assert dict(read.properties) == dict(state.metadata.properties)


def test_the_hint_is_not_needed_and_not_trusted(tmp_path: Path) -> None:
    table = _create(tmp_path)
    hint = tmp_path / "metadata" / "version-hint.text"
    hint.write_text("7")
    _commit(table)
    assert _hint(tmp_path) == "2"
    hint.unlink()
    hint.mkdir()
    assert _commit(table).metadata_location.endswith("v3.metadata.json")


def test_metadata_is_deleted_some_commits_after_it_left_the_log(tmp_path: Path) -> None:
    table = _create(tmp_path, _SHORT_LOG)
    for _ in range(29):
        _commit(table)
    versions = [int(name[1:].split(".")[0]) for name in _files(tmp_path) if name[1].isdigit()]
    assert sorted(versions) == list(range(9, 31))


def test_metadata_stays_where_deletion_is_not_asked_for(tmp_path: Path) -> None:
    table = _create(tmp_path, {"write.metadata.previous-versions-max": "1"})
    for _ in range(25):
        _commit(table)
    assert len(_files(tmp_path)) == 27


def test_a_commit_that_changes_nothing_makes_no_version(tmp_path: Path) -> None:
    table = _create(tmp_path)
    base = table.refresh()
    assert table.commit(base, [], []) == base
    assert _files(tmp_path) == ["v1.metadata.json", "version-hint.text"]


def test_relative_locations_become_absolute_in_metadata(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    io = FileIO()
    _create(tmp_path / "t")
    _commit(location_operations(io, "t/", "t"))
    entries = load_from_location(io, "t").metadata.metadata_log
    assert [e.metadata_file for e in entries] == [f"{tmp_path}/t/metadata/v1.metadata.json"]


# What is refused.


def test_tables_of_another_catalog_are_not_changed(tmp_path: Path) -> None:
    table = _create(tmp_path / "db" / "t")
    metadata = tmp_path / "db" / "t" / "metadata"
    name = "00002-8f1b3c2a-0d4e-4f5a-9b6c-7d8e9fa0b1c2.metadata.json"
    (metadata / "v1.metadata.json").rename(metadata / name)
    with pytest.raises(UnsupportedFeatureError, match="belongs to a catalog"):
        _commit(table)
    with pytest.raises(UnsupportedFeatureError, match="written by another catalog"):
        FileSystemCatalog("lake", str(tmp_path), FileIO()).drop(("db", "t"))
    assert _files(tmp_path / "db" / "t") == [name, "version-hint.text"]


@pytest.mark.parametrize(
    ("updates", "error", "message"),
    [
        ([SetLocation("/elsewhere")], UnsupportedFeatureError, "location cannot be set"),
        (
            [SetProperties({"write.metadata.path": "/m"})],
            UnsupportedFeatureError,
            r"write\.metadata\.path cannot be set",
        ),
        (
            [SetProperties({"write.metadata.compression-codec": "zstd"})],
            InvalidOptionError,
            "'zstd', expected one of none, gzip",
        ),
    ],
)
def test_what_such_a_table_cannot_have_is_refused(
    tmp_path: Path, updates: list[TableUpdate], error: type[Exception], message: str
) -> None:
    table = _create(tmp_path)
    with pytest.raises(error, match=message):
        table.commit(table.refresh(), [], updates)
    assert _files(tmp_path) == ["v1.metadata.json", "version-hint.text"]


def test_a_table_is_created_where_its_metadata_says(tmp_path: Path) -> None:
    updates = new_table_updates(_SCHEMA, location=str(tmp_path / "elsewhere"))
    with pytest.raises(InvalidOptionError, match="elsewhere"):
        create_at_location(FileIO(), str(tmp_path / "t"), updates, "t")
    assert os.listdir(tmp_path) == []


def test_a_metadata_file_is_no_table_to_change(tmp_path: Path) -> None:
    location = _create(tmp_path).refresh().metadata_location
    with pytest.raises(InvalidOptionError, match="is a metadata file"):
        location_operations(FileIO(), location, "t")


def test_a_table_is_not_created_on_another_catalogs(tmp_path: Path) -> None:
    (tmp_path / "metadata").mkdir()
    (tmp_path / "metadata" / "00000-x.metadata.json").write_text("{}")
    with pytest.raises(AlreadyExistsError):
        _create(tmp_path)


def test_a_dropped_table_is_registered_again(tmp_path: Path) -> None:
    catalog = FileSystemCatalog("lake", str(tmp_path), FileIO())
    created = _create(tmp_path / "db" / "t").refresh()
    kept = tmp_path / "kept.metadata.json"
    kept.write_bytes(Path(created.metadata_location).read_bytes())
    with pytest.raises(AlreadyExistsError):
        catalog.register(("db", "t"), str(kept))
    catalog.drop(("db", "t"))
    assert catalog.register(("db", "t"), str(kept)).metadata == created.metadata
    assert catalog.load(("db", "t")).metadata == created.metadata


def test_dropping_removes_the_metadata_files_alone(tmp_path: Path) -> None:
    catalog = FileSystemCatalog("lake", str(tmp_path), FileIO())
    table = _create(tmp_path / "t", _GZIP)
    _commit(table)
    others = ["snap-1.avro", "1-m0.avro", "statistics.puffin"]
    for name in others:
        (tmp_path / "t" / "metadata" / name).touch()
    catalog.drop(("t",))
    assert _files(tmp_path / "t") == sorted(others)


def test_damaged_metadata_can_be_dropped(tmp_path: Path) -> None:
    _create(tmp_path / "t")
    (tmp_path / "t" / "metadata" / "v2.metadata.json").write_text("{")
    catalog = FileSystemCatalog("lake", str(tmp_path), FileIO())
    assert catalog.drop(("t",)) is None
    assert os.listdir(tmp_path) == []


# Storage that fails half way.


@dataclass(frozen=True)
class _FaultyIO(FileIO):
    """Lets something happen around the exclusive creation of a file."""

    before: Callable[[], Any] = lambda: None
    after: Callable[[], Any] = lambda: None

    def create(self, location: str, data: bytes) -> None:
        self.before()
        super().create(location, data)
        self.after()


def _fail(error: Exception) -> Callable[[], None]:
    def fail() -> None:
        raise error

    return fail


@pytest.mark.parametrize(
    "error", [TimeoutError("no answer"), AlreadyExistsError("exists"), RuntimeError("client")]
)
def test_a_commit_whose_answer_was_lost_is_found_to_have_landed(
    tmp_path: Path, error: Exception
) -> None:
    _create(tmp_path)
    table = _faulty(tmp_path, after=_fail(error))
    assert _commit(table, {"k": "v"}).metadata.properties["k"] == "v"
    assert load_from_location(FileIO(), str(tmp_path)).metadata.properties["k"] == "v"
    assert _hint(tmp_path) == "2"


@pytest.mark.parametrize("error", [TimeoutError("no answer"), RuntimeError("client")])
def test_a_request_that_may_still_arrive_is_unknown(tmp_path: Path, error: Exception) -> None:
    _create(tmp_path)
    with pytest.raises(CommitStateUnknownError, match=r"v2\.metadata\.json.*(no answer|client)"):
        _commit(_faulty(tmp_path, before=_fail(error)))
    updates = new_table_updates(_SCHEMA, location=str(tmp_path / "new"))
    io = _FaultyIO(before=_fail(error))
    with pytest.raises(CommitStateUnknownError):
        create_at_location(io, str(tmp_path / "new"), updates, "new")


def test_a_refused_request_was_not_committed(tmp_path: Path) -> None:
    _create(tmp_path)
    with pytest.raises(IcebergError, match=r"read only; nothing was committed") as raised:
        _commit(_faulty(tmp_path, before=_fail(PermissionError("read only"))))
    assert not raised.value.outcome_unknown
    assert _files(tmp_path) == ["v1.metadata.json", "version-hint.text"]


def test_an_answer_lost_while_another_commit_landed_is_a_conflict(tmp_path: Path) -> None:
    other = _create(tmp_path)

    def lose() -> None:
        # The same change at the same time: only the bytes tell whose it is.
        _commit(other, {"k": "v"})
        raise TimeoutError("no answer")

    with pytest.raises(CommitConflictError):
        _commit(_faulty(tmp_path, before=lose), {"k": "v"})


def test_an_equal_commit_that_came_first_is_a_conflict(tmp_path: Path) -> None:
    other = _create(tmp_path)
    table = _faulty(tmp_path, before=lambda: _commit(other, {"k": "v"}))
    with pytest.raises(CommitConflictError, match="another commit"):
        _commit(table, {"k": "v"})


def test_a_commit_held_up_while_its_version_came_and_went_is_a_conflict(tmp_path: Path) -> None:
    other = _create(tmp_path, _SHORT_LOG)

    def overtake() -> None:
        for i in range(30):
            _commit(other, {"i": str(i)})
        assert not (tmp_path / "metadata" / "v2.metadata.json").exists()

    with pytest.raises((CommitConflictError, CommitStateUnknownError)):
        _commit(_faulty(tmp_path, before=overtake), {"mine": "1"})
    found = load_from_location(FileIO(), str(tmp_path)).metadata
    assert found.properties["i"] == "29"
    assert "mine" not in found.properties


def test_a_version_of_another_writers_log_is_taken_back(tmp_path: Path) -> None:
    other = _create(tmp_path)
    metadata = tmp_path / "metadata"

    def overtake() -> None:
        # As a writer does that deletes at once what left the log.
        time.sleep(0.005)
        _commit(other, {"i": "1"})
        _commit(other, {"i": "2", **_SHORT_LOG})
        _commit(other, {"i": "3"})
        (metadata / "v2.metadata.json").unlink()

    with pytest.raises(CommitConflictError, match="already at version 4"):
        _commit(_faulty(tmp_path, before=overtake), {"mine": "1"})
    assert not (metadata / "v2.metadata.json").exists()
    assert load_from_location(FileIO(), str(tmp_path)).metadata.properties["i"] == "3"


@pytest.mark.parametrize("log_length", ["1", "100"])
def test_a_commit_that_others_built_upon_has_landed(tmp_path: Path, log_length: str) -> None:
    other = _create(tmp_path, {**_SHORT_LOG, "write.metadata.previous-versions-max": log_length})

    def build_upon() -> None:
        for i in range(5):
            _commit(other, {"i": str(i)})

    _commit(_faulty(tmp_path, after=build_upon), {"mine": "1"})
    found = load_from_location(FileIO(), str(tmp_path)).metadata
    assert (found.properties["mine"], found.properties["i"]) == ("1", "4")


def test_a_writer_that_compresses_otherwise_is_no_second_truth(tmp_path: Path) -> None:
    _create(tmp_path)
    first = (tmp_path / "metadata" / "v1.metadata.json").read_bytes()
    twin = tmp_path / "metadata" / "v2.gz.metadata.json"
    table = _faulty(tmp_path, before=lambda: twin.write_bytes(gzip.compress(first)))
    with pytest.raises(CommitConflictError, match="other files of version 2"):
        _commit(table)
    assert load_from_location(FileIO(), str(tmp_path)).metadata_location == str(twin)


def test_a_table_dropped_under_a_commit_stays_dropped(tmp_path: Path) -> None:
    _create(tmp_path / "t")
    catalog = FileSystemCatalog("lake", str(tmp_path), FileIO())
    table = _faulty(tmp_path / "t", before=lambda: catalog.drop(("t",)))
    with pytest.raises(CommitConflictError, match="was dropped"):
        _commit(table)
    with pytest.raises(NoSuchTableError):
        catalog.load(("t",))


@dataclass(frozen=True)
class _InterruptedIO(FileIO):
    """Lets something happen before a file is deleted."""

    before: Callable[[str], Any] = lambda location: None

    def delete(self, location: str) -> None:
        self.before(location)
        super().delete(location)


def test_a_commit_under_a_drop_is_dropped_too(tmp_path: Path) -> None:
    table = _create(tmp_path / "t")
    committed = []

    def commit_once(location: str) -> None:
        if location.endswith("v1.metadata.json") and not committed:
            committed.append(_commit(table))

    FileSystemCatalog("lake", str(tmp_path), _InterruptedIO(before=commit_once)).drop(("t",))
    assert len(committed) == 1
    assert os.listdir(tmp_path) == []


def test_a_table_made_again_in_the_same_millisecond_is_another(tmp_path: Path) -> None:
    table = _create(tmp_path)
    base = table.refresh()
    other = replace(base.metadata, table_uuid="8f1b3c2a-0d4e-4f5a-9b6c-7d8e9fa0b1c2")
    Path(base.metadata_location).write_bytes(serialise_metadata(other))
    with pytest.raises(CommitConflictError):
        table.commit(base, [], [SetProperties({"k": "v"})])


def test_a_table_created_under_a_creation_wins(tmp_path: Path) -> None:
    location = str(tmp_path / "t")
    updates = new_table_updates(_SCHEMA, location=location)
    # The same updates: the tables would be equal but for the file.
    io = _FaultyIO(before=lambda: create_at_location(FileIO(), location, updates, "t"))
    with pytest.raises(AlreadyExistsError):
        create_at_location(io, location, updates, "t")


def _create(location: Path, properties: dict[str, str] | None = None) -> TableOperations:
    updates = new_table_updates(_SCHEMA, location=str(location), properties=properties or {})
    create_at_location(FileIO(), str(location), updates, "mine")
    return location_operations(FileIO(), str(location), "mine")


def _faulty(
    location: Path,
    before: Callable[[], Any] = lambda: None,
    after: Callable[[], Any] = lambda: None,
) -> TableOperations:
    return location_operations(_FaultyIO(before=before, after=after), str(location), "mine")


def _commit(table: TableOperations, properties: dict[str, str] | None = None) -> TableState:
    base = table.refresh()
    count = str(len(base.metadata.metadata_log)) + base.metadata_location
    return table.commit(base, [], [SetProperties(properties or {"count": count})])


def _files(location: Path) -> list[str]:
    return sorted(os.listdir(location / "metadata"))


def _hint(location: Path) -> str:
    return (location / "metadata" / "version-hint.text").read_text()
