"""Metadata that leads elsewhere than into its table is refused, and nothing is changed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from built.api_tables import DAYS, ids_of, new_table, rows
from built.tables import TableBuilder

import icebergds
from icebergds import Table
from icebergds.errors import (
    CorruptFileError,
    IcebergError,
    InvalidMetadataError,
    InvalidOptionError,
)
from icebergds.spec.manifest import DataFile


def test_a_loop_of_snapshots_is_refused_when_the_table_is_loaded(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows(1))
    table.append(rows(2))
    _edit(table, lambda document: _loop(document["snapshots"]))
    with pytest.raises(InvalidMetadataError, match=f"{table.location()} has snapshots"):
        icebergds.load_table(table.location())


def test_a_data_file_that_leaves_the_table_by_two_dots_is_not_read(tmp_path: Path) -> None:
    outside = TableBuilder(tmp_path / "other", DAYS).data_file([(1, 0, "secret")])
    table = _table_with(tmp_path / "t", outside, "/data/../../other/data/")
    with pytest.raises(InvalidMetadataError, match=r"leaves the table's directory by '\.\.'"):
        ids_of(table)
    assert ids_of(_table_with(tmp_path / "u", outside, "/../other/data/", moved=True)) == [1]


def test_a_data_file_of_another_scheme_is_read_only_if_the_user_allows_it(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path / "db" / "t", DAYS)
    file = builder.data_file([(1, 0, "a")])
    builder.commit(replace(file, file_path=f"local://{file.file_path}"))
    location, allowed = str(builder.location), {"storage-schemes": "local"}
    with pytest.raises(InvalidOptionError, match="'storage-schemes', 'local'"):
        ids_of(icebergds.load_table(location))
    assert ids_of(icebergds.load_table(location, properties=allowed)) == [1]
    lake = icebergds.load_catalog("lake", warehouse=str(tmp_path), **allowed)
    assert ids_of(lake.load_table("db.t")) == [1]


def test_a_table_may_not_allow_a_scheme_itself(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path / "t", DAYS, properties={"storage-schemes": "local"})
    file = builder.data_file([(1, 0, "a")])
    builder.commit(replace(file, file_path=f"local://{file.file_path}"))
    with pytest.raises(InvalidOptionError, match="'storage-schemes', 'local'"):
        ids_of(icebergds.load_table(str(builder.location)))


@pytest.mark.parametrize("member", ["manifest-list", "metadata-file"])
def test_a_file_outside_of_the_table_is_not_purged(tmp_path: Path, member: str) -> None:
    table = new_table(tmp_path / "w")
    table.append(rows(1))
    (precious := tmp_path / "precious").write_text("mine")
    _edit(table, lambda document: _set(document, member, f"{table.location()}/../../../precious"))
    catalog = icebergds.load_catalog("lake", warehouse=str(tmp_path / "w"))
    with pytest.raises(InvalidMetadataError, match="leaves"):
        catalog.purge_table("db.t")
    assert precious.exists()
    assert catalog.table_exists("db.t")


def test_data_is_not_written_where_it_could_not_be_read(tmp_path: Path) -> None:
    path = {"write.data.path": str(tmp_path / "x" / ".." / "data")}
    table = new_table(tmp_path / "w", properties=path)
    with pytest.raises(IcebergError, match="leaves the table's directory"):
        table.append(rows(1))
    assert ids_of(table.refresh()) == []
    assert not (tmp_path / "data").exists()


def test_a_table_made_by_a_location_with_two_dots_is_read_by_every_location(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here := tmp_path / "notebooks").mkdir()
    monkeypatch.chdir(here)
    created = icebergds.load_catalog("lake", warehouse="../lake").create_table("db.t", DAYS)
    assert "/../" in created.location()
    created.append(rows(1))
    for location in ("../lake/db/t", str(tmp_path / "lake" / "db" / "t"), created.location()):
        table = icebergds.load_table(location)
        table.append(rows(2))
        assert 1 in ids_of(table.refresh())
    monkeypatch.chdir("/")
    assert ids_of(icebergds.load_table(str(tmp_path / "lake" / "db" / "t"))) == [1, 2, 2, 2]


def test_compressed_metadata_is_limited_by_an_option(tmp_path: Path) -> None:
    table = new_table(tmp_path, properties={"write.metadata.compression-codec": "gzip"})
    table.append(rows(1))
    table.append(rows(2))
    with pytest.raises(
        InvalidMetadataError, match=r"v3\.gz\.metadata\.json has more than 1000 bytes"
    ):
        icebergds.load_table(table.location(), properties={"max-metadata-bytes": "1000"})
    allowed = icebergds.load_table(table.location(), properties={"max-metadata-bytes": "100000"})
    assert ids_of(allowed) == [1, 2]


def test_manifests_are_limited_by_an_option(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows(1))
    small = icebergds.load_table(table.location(), properties={"max-block-bytes": "100"})
    with pytest.raises(CorruptFileError, match=r"snap-.*\.avro.* more than 100 bytes"):
        ids_of(small)


def _table_with(root: Path, file: DataFile, via: str, *, moved: bool = False) -> Table:
    """A table whose only data file is called by a path through the table's own directory."""
    builder = TableBuilder(root, DAYS)
    path = f"{root}{via}{Path(file.file_path).name}"
    builder.commit(replace(file, file_path=path))
    to = {f"{root}/..": str(root.parent)} if moved else {}
    return icebergds.load_table(str(root), location_map=to)


def _edit(table: Table, change: Callable[[Any], None]) -> None:
    """Changes the newest metadata file of a table, as an attacker would."""
    newest = max(Path(table.location(), "metadata").glob("v*.metadata.json"))
    document = json.loads(newest.read_text())
    change(document)
    newest.write_text(json.dumps(document))


def _loop(snapshots: list[dict[str, Any]]) -> None:
    first, second = snapshots
    first["parent-snapshot-id"] = second["snapshot-id"]


def _set(document: dict[str, Any], member: str, path: str) -> None:
    entries = document["snapshots"] if member == "manifest-list" else document["metadata-log"]
    entries[-1][member] = path
