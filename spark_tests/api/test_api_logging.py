"""What is logged, and where: one event a test."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pyarrow as pa
import pytest
from built.api_tables import (
    TABLE,
    catalog_in,
    create_table,
    faulty,
    new_table,
    rows,
    write,
)

from icebergds.api.catalog import Catalog, load_catalog
from icebergds.api.table import load_table
from icebergds.errors import CommitConflictError, StorageError
from icebergds.testing.faults import Fault, Faults, When
from icebergds.testing.faulty_system import DISK, faulty_system

_SECRET = "d0-not-show-me"


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.DEBUG, logger="icebergds")
    return caplog


@pytest.fixture(params=["filesystem", "sqlite"])
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> Catalog:
    uri = f"sqlite:///{tmp_path}/c.db" if request.param == "sqlite" else None
    properties = catalog_in(tmp_path, uri)
    create_table(properties, partition_by="day")
    return load_catalog("lake", location_map=None, **properties)


def _one(
    logged: pytest.LogCaptureFixture, module: str, pattern: str, level: int = logging.INFO
) -> None:
    found = [
        record
        for record in logged.records
        if record.name == f"icebergds.{module}" and re.search(pattern, record.getMessage())
    ]
    assert [record.levelno for record in found] == [level], logged.text


def test_a_load(catalog: Catalog, logged: pytest.LogCaptureFixture) -> None:
    catalog.load_table(TABLE)
    _one(logged, "api.catalog", r"^table lake\.db\.t: loaded, at snapshot None$")
    pattern = r"^table lake\.db\.t: loaded .*metadata\.json in \d+ ms: current snapshot None of 0$"
    _one(logged, "catalog.metadata_files", pattern, logging.DEBUG)


def test_a_load_by_location(tmp_path: Path, logged: pytest.LogCaptureFixture) -> None:
    location = new_table(tmp_path).location()
    logged.clear()
    load_table(location)
    _one(logged, "api.table", f"^table {location}: loaded, at snapshot None$")


def test_a_plan_counts_manifests_files_and_deletes(
    catalog: Catalog, logged: pytest.LogCaptureFixture
) -> None:
    table = catalog.load_table(TABLE)
    table.append(pa.concat_tables([rows(1, day=0), rows(2, day=2)]))
    table.append(rows(3, day=1))
    table.delete_keys(rows(9), ["id"], options={"write.upsert.mode": "equality-deletes"})
    logged.clear()
    table.scan("day = 0").to_arrow()
    planned = (
        r"/db/t: planned snapshot \d+ in \d+ ms: 2 manifests read, 1 skipped; "
        r"1 data files kept, 1 skipped; 1 delete files$"
    )
    _one(logged, "scan.plan.files", planned)
    _one(logged, "scan.plan.task_groups", "/db/t: planned 1 tasks$")


def test_a_commit(catalog: Catalog, logged: pytest.LogCaptureFixture) -> None:
    table = catalog.load_table(TABLE)
    table.append(rows(1))
    snapshot = table.current_snapshot()
    assert snapshot is not None
    done = rf"^table lake\.db\.t: committed append as snapshot {snapshot.snapshot_id}"
    _one(logged, "commit.retry", rf"{done} in attempt 1, after \d+ ms$")


def test_a_commit_without_a_snapshot(catalog: Catalog, logged: pytest.LogCaptureFixture) -> None:
    catalog.load_table(TABLE).upgrade(3)
    _one(logged, "commit.retry", r"lake\.db\.t: committed UpgradeFormatVersion in attempt 1")


def test_a_retry_and_its_reason(tmp_path: Path, logged: pytest.LogCaptureFixture) -> None:
    table = new_table(tmp_path)
    # Another commit comes between the load of this one and its own.
    planned = Fault(0, When.BEFORE, lambda: table.append(rows(2)))
    write(faulty(table.location(), Faults([planned], ("open_output",))), rows(1))
    failed = (
        r": attempt 1 to commit failed \(table .* was changed by another commit: .*\); the next"
    )
    _one(logged, "commit.retry", rf"{failed} follows in 0 ms$")
    _one(logged, "commit.retry", r": committed append as snapshot \d+ in attempt 2")


def test_the_end_of_retries(tmp_path: Path, logged: pytest.LogCaptureFixture) -> None:
    table = new_table(tmp_path, properties={"commit.retry.num-retries": "0"})
    lost = Fault(0, When.BEFORE, CommitConflictError("not now"), lasting=True)
    with pytest.raises(CommitConflictError):
        write(faulty(table.location(), Faults([lost], ("create",))), rows(1))
    _one(logged, "commit.retry", r"attempt 2 to commit failed \(not now\); that was the last$")


def test_an_outcome_that_is_looked_for(tmp_path: Path, logged: pytest.LogCaptureFixture) -> None:
    table = new_table(tmp_path)
    # The directory cannot be listed after the commit, to verify it.
    counting = Faults(counted=("os.listdir",))
    with faulty_system(counting):
        table.append(rows(1))
    logged.clear()
    fault = Fault(len(counting.calls) - 1, When.BEFORE, DISK)
    with faulty_system(Faults([fault], counting.counted)):
        table.append(rows(2))
    unknown = "it is not known whether the commit succeeded .*looking for it$"
    _one(logged, "commit.retry", unknown, logging.WARNING)
    _one(logged, "commit.retry", ": the commit had succeeded$")


def test_tables_that_come_and_go(catalog: Catalog, logged: pytest.LogCaptureFixture) -> None:
    catalog.create_table("db.new", rows(1).schema)
    catalog.drop_table("db.new")
    _one(logged, "api.catalog", r"^table lake\.db\.new: created at /.*/db/new$")
    _one(logged, "api.catalog", r"^table lake\.db\.new: dropped$")


def test_a_table_that_is_renamed(tmp_path: Path, logged: pytest.LogCaptureFixture) -> None:
    properties = catalog_in(tmp_path, f"sqlite:///{tmp_path}/c.db")
    create_table(properties)
    load_catalog("lake", location_map=None, **properties).rename_table(TABLE, "db.other")
    _one(logged, "api.catalog", r"^table lake\.db\.t: renamed to lake\.db\.other$")


def test_files_of_a_failed_write_that_stay(
    tmp_path: Path, logged: pytest.LogCaptureFixture
) -> None:
    table = new_table(tmp_path)
    full = Fault(0, When.BEFORE, DISK, lasting=True)
    with (
        faulty_system(Faults([full], ("OSFile.write", "os.unlink"))),
        pytest.raises(StorageError, match="some were left behind"),
    ):
        table.append(rows(1))
    _one(logged, "write.files", "files of a failed task were left behind", logging.WARNING)


def test_options_are_not_logged(tmp_path: Path, logged: pytest.LogCaptureFixture) -> None:
    properties = {**catalog_in(tmp_path), "s3.secret-access-key": _SECRET}
    create_table(properties)
    catalog = load_catalog("lake", location_map=None, **properties)
    table = catalog.load_table(TABLE)
    table.append(rows(1))
    table.scan("id = 1").to_arrow()
    catalog.drop_table(TABLE)
    assert len(logged.records) > 5
    assert _SECRET not in logged.text


def test_handlers_are_left_to_the_program() -> None:
    loggers = [logging.getLogger(name) for name in logging.root.manager.loggerDict]
    ours = [found for found in loggers if found.name.partition(".")[0] == "icebergds"]
    assert len(ours) > 5
    assert not any(found.handlers for found in ours)
