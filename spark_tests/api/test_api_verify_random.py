"""A verification of random tables: nothing of sound ones, and whatever single thing is damaged."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from built.api_tables import catalog_in, new_table
from built.schemas import optional
from effort import examples
from hypothesis import HealthCheck, event, given, strategies as st
from strategies.damaged_tables import DAMAGES, DEPTHS, DamagedTable
from strategies.random_tables import RandomTable

from icebergds import Finding, Table, load_catalog, load_table
from icebergds.errors import IcebergError
from icebergds.operations.maintenance.verify.findings import FindingKind
from icebergds.scan.read.delete_cache import DELETES
from icebergds.spec.schema import Schema
from icebergds.spec.types import LONG

_SETTINGS = {"suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large]}
# Random tables have deletes of files, and of rows, that are not there.
_KNOWN = {FindingKind.DANGLING_DELETES, FindingKind.DELETE_POSITIONS}


def _table(data: st.DataObject, directory: str, least_version: int = 1) -> RandomTable:
    versions = range(least_version, 4)
    made = RandomTable(data.draw, Path(directory) / "t", is_wide=True, format_versions=versions)
    for _ in range(data.draw(st.integers(2, 6))):
        made.step()
    return made


def _findings(made: RandomTable, depth: str) -> dict[Finding, None]:
    # Deletes are cached by path and size, and damages may change neither.
    DELETES.clear()
    return dict.fromkeys(load_table(str(made.builder.location)).verify(depth).findings)


@examples(400, **_SETTINGS)
@given(st.data())
def test_a_single_damage_is_told_and_a_sound_table_has_no_findings(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as directory:
        name = data.draw(st.sampled_from(sorted(DAMAGES)))
        damage = DAMAGES[name]
        made = _table(data, directory, damage.version)
        damaged = DamagedTable(data.draw, made)
        for _ in range(8):
            if any(True for _ in damage.targets(damaged)):
                break
            made.step()
            damaged = DamagedTable(data.draw, made)
        else:
            return
        before = _findings(made, "rows")
        assert {finding.kind for finding in before} <= _KNOWN, list(before)
        told = damaged.damage(damage)
        event(name)
        depth = data.draw(st.sampled_from(DEPTHS[DEPTHS.index(told.depth) :]))
        new = [finding for finding in _findings(made, depth) if finding not in before]
        assert any(map(told.is_by, new)), (name, told, depth, new)


@examples(120, **_SETTINGS)
@given(st.data())
def test_what_a_flipped_byte_makes_unreadable_is_told(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as directory:
        made = _table(data, directory)
        # Their names are not the same in each run.
        files = sorted(
            (Path(directory) / "t" / "data").iterdir(), key=lambda file: file.stat().st_mtime_ns
        )
        if not files:
            return
        file = files[data.draw(st.integers(0, len(files) - 1))]
        spoilt = bytearray(file.read_bytes())
        # Footers are at the end.
        spoilt[-1 - data.draw(st.integers(0, 400)) % len(spoilt)] ^= data.draw(st.integers(1, 255))
        file.write_bytes(spoilt)
        try:
            DELETES.clear()
            load_table(str(made.builder.location)).scan().to_arrow()
        except IcebergError:
            event("unreadable")
            assert any(finding.file == str(file) for finding in _findings(made, "rows"))
        else:
            _findings(made, "rows")


def _with_lists(directory: Path, file_format: str) -> tuple[Table, Path]:
    """A table whose only file has lists, and that file."""
    properties = {"write.format.default": file_format}
    catalog = load_catalog("lake", location_map=None, **catalog_in(directory))
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", "id bigint, tags array<string>", properties=properties)
    table.append(pa.table({"id": [1, 2], "tags": [["abc", "def"], ["x" * 50]]}))
    [file] = (Path(table.location()) / "data").iterdir()
    return table, file


def test_columns_without_metrics_are_read_too(tmp_path: Path) -> None:
    table, file = _with_lists(tmp_path, "orc")
    whole = file.read_bytes()
    unreadable = 0
    for at in range(0, len(whole), 3):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 0x5A]) + whole[at + 1 :])
        try:
            table.scan(columns=["tags"]).to_arrow()
        except IcebergError:
            unreadable += 1
            found = table.verify("rows").findings
            assert any(finding.file == str(file) for finding in found), at
    assert unreadable > 20


def test_pages_that_do_not_have_their_checksums_are_told(tmp_path: Path) -> None:
    table = new_table(tmp_path, Schema((optional(1, "id", LONG),)))
    file = tmp_path / "added.parquet"
    rows = pa.table({"id": pa.array(range(1000), pa.int64())})
    pq.write_table(rows, file, write_page_checksum=True, use_dictionary=False, compression="none")
    table.add_files([str(file)])
    assert table.verify("rows").is_sound
    whole = file.read_bytes()
    at = whole.index((500).to_bytes(8, "little"))
    file.write_bytes(whole[:at] + (501).to_bytes(8, "little") + whole[at + 8 :])
    assert table.verify("footers").is_sound
    [found] = table.refresh().verify("rows").findings
    assert found.file == str(file)
    assert "checksum" in str(found)


def test_a_damaged_name_of_the_writer_is_told(tmp_path: Path) -> None:
    table, file = _with_lists(tmp_path, "parquet")
    whole = file.read_bytes()
    at = whole.index(b"parquet-cpp-arrow")
    file.write_bytes(whole[:at] + b"\xdc" + whole[at + 1 :])
    [found] = table.verify("footers").findings
    assert found.file == str(file)
    assert "cannot be decoded as Parquet" in str(found)
