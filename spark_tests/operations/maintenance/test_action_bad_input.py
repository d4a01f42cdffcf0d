"""What is asked for wrongly, or misses a file, is refused by name, and nothing changes.

The table has three days in partitions, a branch `audit`, a tag `kept`, and deletes of every kind.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from actions import ACTIONS, Place, Places, act
from built.api_tables import TABLE
from built.contents import head, live_entries
from orphans import change

from icebergds import Table, delete_reachable_files, load_catalog
from icebergds.errors import (
    IcebergError,
    InvalidFilterError,
    InvalidOptionError,
    MissingFileError,
    NoSuchSnapshotError,
    NoSuchTableError,
    ValidationError,
)
from icebergds.formats.manifests.manifest_list import read_snapshot_manifests
from icebergds.spec.manifest import FileContent, ManifestContent
from icebergds.spec.updates.table_updates import SetProperties

Call = Callable[[Table], Any]


@pytest.fixture
def place(places: Places) -> Place:
    return places("binpack", "filesystem")


def _refused(place: Place, call: Call, error: type[IcebergError], message: str) -> None:
    """The call fails, and neither the table nor its files change."""
    table, files = place.table, place.files_now()
    before = table.metadata_location
    with pytest.raises(error, match=message):
        call(table)
    assert place.table.metadata_location == before
    assert place.files_now() == files


_ON_BRANCHES: dict[str, Callable[[Table, str], Any]] = {
    "rewrite_data_files": lambda table, branch: table.rewrite_data_files(branch=branch),
    "position deletes": lambda table, branch: table.rewrite_position_delete_files(branch=branch),
    "convert": lambda table, branch: table.convert_equality_deletes(branch=branch),
    "dangling": lambda table, branch: table.remove_dangling_deletes(branch=branch),
    "manifests": lambda table, branch: table.rewrite_manifests(branch=branch),
    "repair": lambda table, branch: table.verify(repair=True, branch=branch),
}


@pytest.mark.parametrize("action", _ON_BRANCHES)
def test_a_branch_that_does_not_exist_is_refused(place: Place, action: str) -> None:
    call = _ON_BRANCHES[action]
    message = r"table lake\.db\.t has no branch 'audti', but audit, main; did you mean audit\?$"
    _refused(place, lambda table: call(table, "audti"), InvalidOptionError, message)


@pytest.mark.parametrize("action", _ON_BRANCHES)
def test_a_tag_is_not_taken_for_a_branch(place: Place, action: str) -> None:
    call = _ON_BRANCHES[action]
    _refused(place, lambda table: call(table, "kept"), InvalidOptionError, r"db\.t.*'?kept'?")


_WRONG: list[tuple[str, Call, type[IcebergError], str]] = [
    (
        "option of a rewrite",
        lambda table: table.rewrite_data_files(options={"rewrite-al": "true"}),
        InvalidOptionError,
        "'rewrite-al'.*'rewrite-all'",
    ),
    (
        "option of a rewrite of deletes",
        lambda table: table.rewrite_position_delete_files(options={"min-input-file": "1"}),
        InvalidOptionError,
        "'min-input-file'.*'min-input-files'",
    ),
    (
        "option of a conversion",
        lambda table: table.convert_equality_deletes(options={"splitsize": "1"}),
        InvalidOptionError,
        "'splitsize'.*'split-size'",
    ),
    (
        "option of a removal of orphans",
        lambda table: table.remove_orphan_files(options={"other-table": "keep"}),
        InvalidOptionError,
        "'other-table'.*'other-tables'",
    ),
    (
        "condition of a rewrite",
        lambda table: table.rewrite_data_files(where="dya = 1"),
        InvalidFilterError,
        "dya.*day",
    ),
    (
        "condition of a rewrite of deletes",
        lambda table: table.rewrite_position_delete_files("dya = 1"),
        InvalidFilterError,
        "dya.*day",
    ),
    (
        "condition of a conversion",
        lambda table: table.convert_equality_deletes("dya = 1"),
        InvalidFilterError,
        "dya.*day",
    ),
    (
        "partition spec",
        lambda table: table.rewrite_manifests(7),
        InvalidOptionError,
        r"spec_id = 7: table lake\.db\.t has the partition specs 0",
    ),
    (
        "partition field",
        lambda table: table.rewrite_manifests(sort_by=["dya"]),
        InvalidOptionError,
        "'dya'.*'day'",
    ),
    (
        "snapshots to keep",
        lambda table: table.expire_snapshots(retain_last=0),
        InvalidOptionError,
        "retain_last = 0: expected a whole number of at least 1",
    ),
    (
        "unknown snapshot",
        lambda table: table.expire_snapshots(snapshot_ids=[7]),
        NoSuchSnapshotError,
        r"db\.t.*7",
    ),
    (
        "snapshot in use",
        lambda table: table.expire_snapshots(snapshot_ids=[head(table).snapshot_id]),
        ValidationError,
        r"db\.t.*main",
    ),
    (
        "young orphans",
        lambda table: table.remove_orphan_files(datetime.now() - timedelta(hours=23)),
        InvalidOptionError,
        "less than 24 hours ago",
    ),
    (
        "location of orphans",
        lambda table: table.remove_orphan_files(location=str(Path(table.location()).parent)),
        InvalidOptionError,
        r"db\.t.*is above the table's directory",
    ),
    (
        "no metadata file",
        lambda table: delete_reachable_files(table.location()),
        InvalidOptionError,
        "db/t",
    ),
    (
        "missing metadata file",
        lambda table: delete_reachable_files(f"{table.location()}/metadata/v99.metadata.json"),
        NoSuchTableError,
        "v99",
    ),
]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [pytest.param(*given, id=name) for name, *given in _WRONG],
)
def test_a_wrong_argument_is_refused(
    place: Place, call: Call, error: type[IcebergError], message: str
) -> None:
    _refused(place, call, error, message)


@pytest.mark.parametrize(
    "call",
    [
        ACTIONS["expire"],
        ACTIONS["remove orphans"],
        lambda table: delete_reachable_files(table.metadata_location),
    ],
)
def test_tables_that_share_files_lose_none(place: Place, call: Call) -> None:
    change(place.table, SetProperties({"gc.enabled": "false"}))
    _refused(place, call, ValidationError, r"db[./]t.*gc\.enabled")


def test_a_table_that_shares_files_is_not_purged(place: Place) -> None:
    change(place.table, SetProperties({"gc.enabled": "false"}))
    catalog = load_catalog("lake", **place.catalog)
    _refused(place, lambda _: catalog.purge_table(TABLE), ValidationError, r"db\.t.*gc\.enabled")


@pytest.mark.parametrize("action", sorted(ACTIONS.keys() - {"partial progress", "remove orphans"}))
def test_a_malformed_property_of_commits_leaves_no_files(places: Places, action: str) -> None:
    place = places(action if action == "repair" else "binpack", "filesystem")
    change(place.table, SetProperties({"commit.retry.num-retries": "many"}))
    _refused(place, lambda table: act(table, action), InvalidOptionError, "num-retries")


# Files that are missing.


def _manifest(table: Table, content: ManifestContent) -> str:
    manifests = read_snapshot_manifests(table.io, head(table))
    return next(m.manifest_path for m in manifests if m.content is content)


def _live(table: Table, content: FileContent, day: int) -> str:
    """The oldest file of a day."""
    found = [e for e in live_entries(table) if e.data_file.content is content]
    of_day = [e for e in found if e.data_file.partition == (day,)]
    return min(of_day, key=lambda entry: entry.data_sequence_number).data_file.file_path


_FILES: dict[str, Callable[[Table], str]] = {
    "data file": lambda table: _live(table, FileContent.DATA, 1),
    "position deletes": lambda table: _live(table, FileContent.POSITION_DELETES, 0),
    "equality deletes": lambda table: _live(table, FileContent.EQUALITY_DELETES, 1),
    "manifest": lambda table: _manifest(table, ManifestContent.DATA),
    "manifest of deletes": lambda table: _manifest(table, ManifestContent.DELETES),
    "manifest list": lambda table: str(head(table).manifest_list),
}
_NEEDED = {
    "binpack": [*_FILES],
    "convert": ["data file", "equality deletes", *[*_FILES][3:]],
    "position deletes": ["position deletes", *[*_FILES][3:]],
    "dangling": ["manifest of deletes", "manifest list"],
    "manifests": [*_FILES][3:],
    "remove orphans": [*_FILES][3:],
}


@pytest.mark.parametrize(
    ("action", "file"), [(action, file) for action, files in _NEEDED.items() for file in files]
)
def test_a_missing_file_is_named(place: Place, action: str, file: str) -> None:
    missing = Path(_FILES[file](place.table))
    missing.unlink()
    _refused(place, lambda table: act(table, action), MissingFileError, missing.name)


@pytest.mark.parametrize("file", [*_FILES][:3])
def test_a_missing_file_spoils_only_its_group(place: Place, file: str) -> None:
    table = place.table
    Path(_FILES[file](table)).unlink()
    done = ACTIONS["partial progress"](table)
    assert done.failed_data_files_count > 0
    assert done.rewritten_data_files_count > 0
    assert not place.unneeded()


@pytest.mark.parametrize("file", [*_FILES][3:])
def test_an_expiry_that_does_not_know_which_files_are_needed_deletes_none(
    place: Place, file: str
) -> None:
    missing = Path(_FILES[file](place.table))
    missing.unlink()
    files = place.files_now()
    with pytest.raises(IcebergError, match=rf"expired, but no file was deleted.*{missing.name}"):
        act(place.table, "expire")
    assert place.files_now() >= files


@pytest.mark.parametrize(
    "call",
    [
        lambda table: table.rewrite_data_files(spark="text"),
        lambda table: table.convert_equality_deletes(spark="text"),
        lambda table: table.maintain(spark="text"),
    ],
)
def test_what_is_no_session_is_refused(place: Place, call: Call) -> None:
    _refused(place, call, InvalidOptionError, "spark = 'text': expected a SparkSession")
