"""Commands on many tables tell of each that is broken, and pass over it."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from command_line import Command
from effort import IS_NIGHTLY

from icebergds import Catalog, Table, load_catalog

_TABLES = 300 if IS_NIGHTLY else 30
Break = Callable[[Table], None]


def _metadata(table: Table) -> Path:
    return Path(table.metadata_location)


def _manifest_list(table: Table) -> Path:
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert snapshot.manifest_list is not None
    return Path(snapshot.manifest_list)


def _manifest(table: Table) -> Path:
    return Path(table.inspect.manifests()["path"][0].as_py())


def _data_file(table: Table) -> Path:
    return Path(table.inspect.files()["file_path"][0].as_py())


def _gone(file: Callable[[Table], Path]) -> Break:
    return lambda table: file(table).unlink()


def _holds(file: Callable[[Table], Path], data: bytes) -> Break:
    return lambda table: [file(table).write_bytes(data), None][1]


def _cut(file: Callable[[Table], Path]) -> Break:
    def cut(table: Table) -> None:
        path = file(table)
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])

    return cut


def _with(**changes: Any) -> Break:
    """Changes fields of the metadata file; None removes one."""

    def change(table: Table) -> None:
        metadata = json.loads(_metadata(table).read_text())
        metadata |= {key.replace("_", "-"): value for key, value in changes.items()}
        kept = {key: value for key, value in metadata.items() if value is not None}
        _metadata(table).write_text(json.dumps(kept))

    return change


def _is_a_directory(table: Table) -> None:
    _metadata(table).unlink()
    _metadata(table).mkdir()


def _may_not_be_read(table: Table) -> None:
    _metadata(table).chmod(0)


def _manifest_is_a_list(table: Table) -> None:
    _manifest(table).write_bytes(_manifest_list(table).read_bytes())


def _is_empty(table: Table) -> None:
    shutil.rmtree(table.location())
    Path(table.location()).mkdir()


@dataclass(frozen=True)
class Broken:
    """How a table is broken, and what its error says; None if its metadata is whole."""

    by: Break
    error: str | None


_BROKEN = {
    "no_metadata": Broken(_gone(_metadata), "MissingFileError"),
    "empty_metadata": Broken(_holds(_metadata, b""), "InvalidMetadataError"),
    "cut_metadata": Broken(_cut(_metadata), "InvalidMetadataError"),
    "metadata_of_a_list": Broken(_holds(_metadata, b"[]"), "InvalidMetadataError"),
    "metadata_of_bytes": Broken(_holds(_metadata, bytes(range(256))), "InvalidMetadataError"),
    "deep_metadata": Broken(_holds(_metadata, b"[" * 100_000), "InvalidMetadataError"),
    "metadata_is_a_directory": Broken(_is_a_directory, "MissingFileError"),
    "future_version": Broken(_with(format_version=99), "UnsupportedFeatureError"),
    "no_version": Broken(_with(format_version=None), "InvalidMetadataError"),
    "no_schema": Broken(_with(current_schema_id=77), "InvalidMetadataError"),
    "no_snapshot": Broken(_with(current_snapshot_id=77), "InvalidMetadataError"),
    "no_manifest_list": Broken(_gone(_manifest_list), "MissingFileError"),
    "empty_manifest_list": Broken(_holds(_manifest_list, b""), "CorruptFileError"),
    "cut_manifest_list": Broken(_cut(_manifest_list), "CorruptFileError"),
    "no_manifest": Broken(_gone(_manifest), "MissingFileError"),
    "cut_manifest": Broken(_cut(_manifest), "CorruptFileError"),
    "manifest_is_a_list": Broken(_manifest_is_a_list, "CorruptFileError"),
    "nothing_there": Broken(_is_empty, "MissingFileError"),
    # What metadata does not tell: such a table can be measured, but not compacted.
    "no_data_file": Broken(_gone(_data_file), None),
    "cut_data_file": Broken(_cut(_data_file), None),
}
if os.geteuid():
    # The superuser may read everything.
    _BROKEN["may_not_be_read"] = Broken(_may_not_be_read, "StorageError")
_TOLD = {f"lake.db.{name}": each.error for name, each in _BROKEN.items() if each.error}


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Catalog]:
    """A catalog of which each broken table is broken in another way."""
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__URI", f"sqlite:///{tmp_path}/lake.db")
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__WAREHOUSE", str(tmp_path / "lake"))
    monkeypatch.setenv("PYICEBERG_DEFAULT_CATALOG", "lake")
    catalog = load_catalog("lake")
    catalog.create_namespace("db")
    names = [*_BROKEN, *(f"whole_{at}" for at in range(_TABLES - len(_BROKEN)))]
    for name in names:
        table = catalog.create_table(f"db.{name}", "id bigint")
        # Whole tables have nothing to do; broken ones have too many files.
        for at in range(6 if name in _BROKEN and not _BROKEN[name].error else 1):
            table.append(pa.table({"id": [at]}))
        if name in _BROKEN:
            _BROKEN[name].by(table)
    yield catalog
    for file in tmp_path.rglob("*.json"):
        file.chmod(0o600)


def test_a_scan_tells_of_each_broken_table(
    fleet: Catalog, icebergds: Command, tmp_path: Path
) -> None:
    out = tmp_path / "report.html"
    ran = icebergds("fleet", "scan", "--json", "--out", out)
    assert ran.status == 2
    failed = {each["table"]: each["error"] for each in ran.json["failed"]}
    assert {name: error["type"] for name, error in failed.items()} == _TOLD
    for name, error in failed.items():
        # It says of which table or file it is, on one line.
        assert name in error["message"] or name.rpartition(".")[2] in error["message"]
        assert "\n" not in error["message"]
        assert len(error["message"]) < 500
    measured = {each["table"] for each in ran.json["tables"]}
    assert len(measured) == _TABLES - len(_TOLD)
    assert not measured & failed.keys()
    page = out.read_text()
    assert all(name in page for name in failed)
    shown = icebergds("fleet", "scan")
    assert shown.status == 2
    lines = {line.split()[0]: line for line in shown.out.splitlines()}
    assert {name for name, line in lines.items() if "failed: " in line} == failed.keys()
    assert shown.out.endswith(f"{_TABLES} tables, 2 with something to do, {len(_TOLD)} failed\n")


@pytest.mark.parametrize("jobs", [1, 4])
def test_maintenance_passes_over_each_broken_table(
    fleet: Catalog, icebergds: Command, jobs: int
) -> None:
    words = ("fleet", "maintain", "--json", "--jobs", jobs)
    for more in ((), ("--apply",)):
        ran = icebergds(*words, *more)
        assert ran.status == 2
        *lines, last = (json.loads(line) for line in ran.out.splitlines())
        failed = {each["table"]: each for each in lines if each["state"] == "failed"}
        told = {name: each["error"]["type"] for name, each in failed.items() if "error" in each}
        assert told.items() >= _TOLD.items()
        # Reading shows that their data files are broken.
        assert failed.keys() - _TOLD.keys() == (
            {"lake.db.no_data_file", "lake.db.cut_data_file"} if more else set()
        )
        assert last["summary"]["tables"] == _TABLES
        assert last["summary"]["with_something_to_do"] == 2


def test_a_command_on_one_broken_table_ends_with_its_error(
    fleet: Catalog, icebergds: Command
) -> None:
    for name, kind in _TOLD.items():
        ran = icebergds("count", name, "--where", "id > 0", "--json")
        assert (ran.status, ran.json["error"]["type"]) == (2, kind)
