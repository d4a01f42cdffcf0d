"""A copied table's metadata names files of the original: only a location map lets it be changed."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from built.api_tables import TABLE, create_table, ids_of, new_table, rows, write

from icebergds import Catalog, Table, delete_reachable_files, load_catalog, load_table
from icebergds.errors import InvalidOptionError
from icebergds.operations.write.options import parse_write_options

_FAR_AHEAD_MS = 4_000_000_000_000
_ALL = {"rewrite-all": "true"}

_CHANGES: dict[str, Callable[[Table], object]] = {
    "append": lambda table: table.append(rows(9)),
    "delete_keys": lambda table: table.delete_keys(rows(1).select(["id"]), ["id"]),
    "overwrite": lambda table: table.overwrite(rows(9)),
    "upsert": lambda table: table.upsert(rows(1, 9), ["id"]),
    "delete": lambda table: table.delete("id = 4"),
    "upgrade": lambda table: table.upgrade(3),
    "rewrite_data_files": lambda table: table.rewrite_data_files(options=_ALL),
    "rewrite_manifests": lambda table: table.rewrite_manifests(),
    "rewrite_position_delete_files": lambda table: table.rewrite_position_delete_files(),
    "convert_equality_deletes": lambda table: table.convert_equality_deletes(),
    "remove_dangling_deletes": lambda table: table.remove_dangling_deletes(),
    "maintain": lambda table: table.maintain(expire_older_than=_FAR_AHEAD_MS),
    "expire_snapshots": lambda table: table.expire_snapshots(_FAR_AHEAD_MS, retain_last=1),
    "remove_orphan_files": lambda table: table.remove_orphan_files(),
    "dry remove_orphan_files": lambda table: table.remove_orphan_files(dry_run=True),
}
# Those that need Spark are refused before they look for it.
_REFUSED = {
    **_CHANGES,
    "update": lambda table: table.update({"name": "'x'"}, "id = 1"),
    # It would verify the files of the original.
    "verify": lambda table: table.verify(),
}


@pytest.fixture
def original(tmp_path: Path) -> Path:
    """A table of the ids 1, 3 and 4 that has files that only its history needs."""
    table = new_table(tmp_path)
    table.append(rows(1, 2))
    table.append(rows(3))
    table.append(rows(4))
    table.delete_keys(rows(2).select(["id"]), ["id"])
    return Path(table.location())


@pytest.fixture
def copy(original: Path, tmp_path: Path) -> Path:
    """A copy of the table's directory."""
    shutil.copytree(original, tmp_path / "copy")
    for path in (tmp_path / "copy").rglob("*"):
        _age(path)
    for path in original.rglob("*"):
        _age(path)
    return tmp_path / "copy"


def _age(path: Path) -> None:
    then = time.time() - 30 * 86_400
    os.utime(path, (then, then))


def _files(directory: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in directory.rglob("*") if p.is_file()}


@pytest.mark.parametrize("change", _REFUSED.values(), ids=list(_REFUSED))
def test_a_copy_is_not_changed_and_neither_is_the_original(
    original: Path, copy: Path, change: Callable[[Table], object]
) -> None:
    before = _files(original), _files(copy)
    table = load_table(str(copy))
    with pytest.raises(InvalidOptionError) as caught:
        change(table)
    assert (_files(original), _files(copy)) == before
    for told in (str(original), str(copy), f"location_map={ ({str(original): str(copy)}) }"):
        assert told in str(caught.value)


def test_a_copy_is_read(original: Path, copy: Path) -> None:
    table = load_table(str(copy))
    assert ids_of(table) == ids_of(table.refresh()) == [1, 3, 4]


@pytest.mark.parametrize("change", _CHANGES.values(), ids=list(_CHANGES))
@pytest.mark.parametrize("end", ["", "/"])
def test_a_mapped_copy_is_changed_alone(
    original: Path, copy: Path, change: Callable[[Table], object], end: str
) -> None:
    before = _files(original)
    table = load_table(str(copy), location_map={f"{original}{end}": f"{copy}{end}"})
    _plant(copy)
    change(table)
    assert _files(original) == before
    assert _files(copy)
    shutil.rmtree(original)
    assert ids_of(table.refresh())


def _plant(directory: Path) -> None:
    path = directory / "data" / "orphan.parquet"
    path.write_bytes(b"x")
    _age(path)


def test_options_of_a_write_map_the_location(original: Path, copy: Path) -> None:
    before = _files(original), _files(copy)
    with pytest.raises(InvalidOptionError, match="the option 'location-map'"):
        write(copy, rows(9))
    assert (_files(original), _files(copy)) == before
    given = {"path": str(copy), "location-map": json.dumps({str(original): str(copy)})}
    write(parse_write_options(given).address, rows(9))
    assert ids_of(load_table(str(copy), location_map={str(original): str(copy)})) == [1, 3, 4, 9]
    assert _files(original) == before[0]


def test_a_moved_table_is_changed_when_it_is_mapped_only(original: Path, tmp_path: Path) -> None:
    moved = original.rename(tmp_path / "moved")
    with pytest.raises(InvalidOptionError, match="was copied or moved"):
        load_table(str(moved)).append(rows(9))
    table = load_table(str(moved), location_map={str(original): str(moved)})
    table.append(rows(9))
    assert ids_of(table) == [1, 3, 4, 9]
    assert not original.exists()


# Every file that metadata reaches.


def _newest(location: Path) -> str:
    return load_table(str(location)).metadata_location


def test_files_that_a_copied_metadata_file_reaches_are_not_deleted(
    original: Path, copy: Path, tmp_path: Path
) -> None:
    before = _files(original), _files(copy)
    alone = shutil.copy(_newest(original), tmp_path / "kept.metadata.json")
    for file in (_newest(copy), str(alone)):
        with pytest.raises(InvalidOptionError, match="was copied or moved") as caught:
            delete_reachable_files(file)
        assert str(original) in str(caught.value)
    assert (_files(original), _files(copy)) == before


@pytest.mark.parametrize("end", ["", "/"])
def test_files_of_a_mapped_copy_are_deleted_alone(original: Path, copy: Path, end: str) -> None:
    before = _files(original)
    delete_reachable_files(_newest(copy), location_map={f"{original}{end}": f"{copy}{end}"})
    assert _files(copy) == {}
    assert _files(original) == before


def test_files_are_deleted_by_a_metadata_file_at_the_path_for_metadata(tmp_path: Path) -> None:
    catalog = {"uri": f"sqlite:///{tmp_path}/c.db", "warehouse": f"{tmp_path}/w"}
    table = create_table(catalog, write__metadata__path=f"{tmp_path}/elsewhere")
    table.append(rows(1))
    assert delete_reachable_files(table.metadata_location).failed_files_count == 0
    assert _files(tmp_path / "w") == _files(tmp_path / "elsewhere") == {}


# Tables of catalogs.


def _copied_warehouse(tmp_path: Path) -> tuple[Path, Path]:
    """A warehouse with a table of the id 1, and its copy."""
    one, other = tmp_path / "one", tmp_path / "other"
    create_table({"warehouse": str(one)}).append(rows(1))
    shutil.copytree(one, other)
    return one, other


def _purge(lake: Catalog) -> None:
    lake.purge_table(TABLE)


def _append(lake: Catalog) -> None:
    lake.load_table(TABLE).append(rows(9))


@pytest.mark.parametrize("change", [_purge, _append])
def test_a_table_of_a_copied_warehouse_is_changed_when_it_is_mapped_only(
    tmp_path: Path, change: Callable[[Catalog], None]
) -> None:
    one, other = _copied_warehouse(tmp_path)
    before = _files(one), _files(other)
    load = partial(load_catalog, "lake", type="hadoop", warehouse=str(other))
    with pytest.raises(InvalidOptionError, match=r"table lake\.db\.t is at .*/other/db/t"):
        change(load())
    assert (_files(one), _files(other)) == before
    change(load(location_map={str(one): str(other)}))
    assert _files(one) == before[0]
    assert _files(other) != before[1]


def test_dropping_a_copy_deletes_its_own_metadata_alone(tmp_path: Path) -> None:
    one, other = _copied_warehouse(tmp_path)
    before = _files(one)
    lake = load_catalog("lake", type="hadoop", warehouse=str(other))
    lake.drop_table(TABLE)
    assert not lake.table_exists(TABLE)
    assert _files(one) == before


def test_a_database_says_where_its_table_is(original: Path, copy: Path, tmp_path: Path) -> None:
    lake = load_catalog("lake", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"{tmp_path}/w")
    lake.create_namespace("db")
    table = lake.register_table(TABLE, _newest(copy))
    table.append(rows(9))
    assert ids_of(table) == [1, 3, 4, 9]
    assert table.metadata_location.startswith(f"{original}/")


# One directory under several names.


@pytest.mark.parametrize(
    "spelled",
    [
        "{}",
        "{}/",
        "file:{}",
        "file://{}",
        "file://localhost{}",
        "{}//",
        "{}/../t",
        "{}/./",
        "/{}",
    ],
)
def test_another_spelling_of_the_location_is_not_a_copy(original: Path, spelled: str) -> None:
    table = load_table(spelled.format(original))
    table.append(rows(9))
    assert ids_of(table) == [1, 3, 4, 9]
    table.expire_snapshots(_FAR_AHEAD_MS)
    table.remove_orphan_files()
    assert ids_of(table.refresh()) == [1, 3, 4, 9]


def test_symbolic_links_lead_to_the_table_itself(original: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(original)
    (tmp_path / "above").symlink_to(original.parent)
    load_table(f"{tmp_path}/link").append(rows(8))
    load_table(f"{tmp_path}/above/t").append(rows(9))
    assert ids_of(load_table(str(original))) == [1, 3, 4, 8, 9]


def test_a_copy_of_a_table_that_was_created_through_a_link_is_seen(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    location = new_table(tmp_path / "link").location()
    load_table(location.replace("/link/", "/real/")).append(rows(1))
    shutil.copytree(location, tmp_path / "copy")
    with pytest.raises(InvalidOptionError, match="was copied or moved"):
        load_table(f"{tmp_path}/copy").append(rows(2))


def test_a_link_to_another_directory_is_a_copy(original: Path, copy: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(copy)
    with pytest.raises(InvalidOptionError, match=re.escape(str(original))):
        load_table(f"{tmp_path}/link").append(rows(9))


@pytest.mark.parametrize("location", ["file:{}", "file://{}", "{}/", "/{}"])
def test_metadata_of_others_spells_the_location_in_other_ways(
    original: Path, copy: Path, location: str
) -> None:
    spelled = location.format(original)
    for directory in (original, copy):
        newest = Path(_newest(directory))
        metadata = {**json.loads(newest.read_bytes()), "location": spelled}
        newest.write_text(json.dumps(metadata))
    table = load_table(str(original))
    table.append(rows(9))
    assert ids_of(table) == [1, 3, 4, 9]
    with pytest.raises(InvalidOptionError, match="was copied or moved"):
        load_table(str(copy)).append(rows(9))


@pytest.mark.parametrize("name", ["a%20b", "a b", "größe", "x=%2F"])
def test_names_with_percent_signs_stand_for_themselves(tmp_path: Path, name: str) -> None:
    table = new_table(tmp_path / name)
    table.append(rows(1))
    assert ids_of(load_table(f"file:{table.location()}")) == [1]
    load_table(f"file://{table.location()}").append(rows(2))
    assert ids_of(table.refresh()) == [1, 2]


def test_relative_locations_are_followed(
    original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    load_table("db/t").append(rows(8))
    load_table("./db/t").append(rows(9))
    assert ids_of(load_table(str(original))) == [1, 3, 4, 8, 9]
