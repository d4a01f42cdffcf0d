"""Files that have other rows or files than metadata counts are errors, not other rows."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from built.api_tables import ids_of
from built.commit_tables import SCHEMA, CommitTable, create_table
from built.damage import double_block, drop_block, into_small_blocks, swap_files
from built.data_files import write_file
from built.replace_files import ReplaceFiles
from built.rows import arrow_table
from built.tables import TableBuilder

import icebergds
from icebergds import Table
from icebergds.commit.data_files import Append
from icebergds.commit.row_delta import RowDelta
from icebergds.errors import CorruptFileError
from icebergds.formats.manifests.manifest_list import write_manifest_list
from icebergds.spec.manifest import DataFile, FileContent, FileFormat, ManifestFile
from icebergds.spec.partition import PartitionSpec
from icebergds.spec.reserved import DELETE_FILE_PATH, DELETE_POS
from icebergds.spec.schema import Schema

FORMATS = [FileFormat.PARQUET, FileFormat.AVRO, FileFormat.ORC]
WARN = {"wrong-counts": "warn"}


def a_table(tmp_path: Path, version: int = 2) -> CommitTable:
    return create_table(tmp_path / "t", spec=PartitionSpec(), format_version=version)


def a_file(
    table: CommitTable, *ids: int, kind: FileFormat = FileFormat.PARQUET, name: str = "a"
) -> DataFile:
    batches = arrow_table(SCHEMA, [(i, 0) for i in ids]).to_batches()
    path = table.location / "data" / f"{name}.{kind}"
    return write_file(path, SCHEMA, batches, file_format=kind)


def position_deletes(
    table: CommitTable, file: DataFile, *positions: int, kind: FileFormat = FileFormat.PARQUET
) -> DataFile:
    schema = Schema((DELETE_FILE_PATH, DELETE_POS))
    rows = [(file.file_path, position) for position in positions]
    path = table.location / "data" / f"deletes.{kind}"
    content = FileContent.POSITION_DELETES
    batches = arrow_table(schema, rows).to_batches()
    return write_file(path, schema, batches, file_format=kind, content=content)


def loaded(table: CommitTable | TableBuilder) -> Table:
    return icebergds.load_table(str(table.location))


def only_manifest(table: CommitTable) -> str:
    (manifest,) = table.manifests()
    return manifest.manifest_path


def change_list(table: CommitTable, change: Callable[[ManifestFile], ManifestFile]) -> None:
    """Rewrites the manifest list of the current snapshot."""
    head, version = table.head, table.metadata.format_version
    data = write_manifest_list(
        map(change, table.manifests()),
        format_version=version,
        snapshot_id=head.snapshot_id,
        sequence_number=head.sequence_number,
    )
    Path(head.manifest_list or "").write_bytes(data)


def change_summary(table: CommitTable, **texts: str | None) -> None:
    """Changes totals in the summary of the current snapshot; None removes one."""
    path = Path(table.state.metadata_location)
    document: dict[str, Any] = json.loads(path.read_text())
    for snapshot in document["snapshots"]:
        if snapshot["snapshot-id"] == table.head.snapshot_id:
            named = {name.replace("_", "-"): text for name, text in texts.items()}
            summary = {**snapshot["summary"], **named}
            snapshot["summary"] = {k: v for k, v in summary.items() if v is not None}
    path.write_text(json.dumps(document))


# Manifests


@pytest.mark.parametrize("damage", [drop_block, double_block])
@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_manifest_with_other_files_than_its_list_says_is_an_error(
    tmp_path: Path, version: int, damage: Callable[[str], None]
) -> None:
    table = a_table(tmp_path, version)
    table.commit(Append((a_file(table, 1, 2), a_file(table, 3, name="b"))))
    into_small_blocks(only_manifest(table))
    assert ids_of(loaded(table)) == [1, 2, 3]
    damage(only_manifest(table))
    # The length may happen to be the same.
    said = "says 2 added files, 3 added rows[,;].* it has"
    found = "1 added file, 2 added rows" if damage is drop_block else "3 added files, 4 added rows"
    with pytest.raises(CorruptFileError, match=rf"-m\d+\.avro.*{said} {found}.*wrong-counts"):
        ids_of(loaded(table))


def test_a_manifest_of_deletes_with_fewer_files_is_an_error(tmp_path: Path) -> None:
    table = a_table(tmp_path)
    file = a_file(table, 1, 2)
    table.commit(Append((file,)))
    table.commit(RowDelta((), (position_deletes(table, file, 0),)))
    (manifest,) = [m for m in table.manifests() if m.content.name == "DELETES"]
    drop_block(manifest.manifest_path)
    with pytest.raises(
        CorruptFileError, match=r"says 1 added file, 1 added row, .* it has 0 added"
    ):
        ids_of(loaded(table))


def test_existing_files_that_are_gone_are_an_error(tmp_path: Path) -> None:
    table = a_table(tmp_path)
    files = (a_file(table, 1), a_file(table, 2, name="b"), a_file(table, 3, name="c"))
    table.commit(Append(files))
    table.commit(ReplaceFiles((files[0],), (), table.head.snapshot_id))
    into_small_blocks(only_manifest(table))
    assert ids_of(loaded(table)) == [2, 3]
    drop_block(only_manifest(table))
    with pytest.raises(CorruptFileError, match=r"says 2 existing files.*it has 1 existing file,"):
        ids_of(loaded(table))


def test_counts_of_removed_files_are_not_compared(tmp_path: Path) -> None:
    """Several writers get them wrong, and no row depends on them."""
    table = a_table(tmp_path)
    files = (a_file(table, 1), a_file(table, 2, name="b"))
    table.commit(Append(files))
    table.commit(ReplaceFiles((files[0],), (), table.head.snapshot_id))
    change_list(table, lambda m: replace(m, deleted_files_count=62, deleted_rows_count=16192))
    assert ids_of(loaded(table)) == [2]


def test_a_manifest_of_another_length_with_all_its_files_is_read(tmp_path: Path) -> None:
    """Tools that move tables rewrite manifests and keep their lengths in the lists."""
    table = a_table(tmp_path)
    table.commit(Append((a_file(table, 1),)))
    change_list(table, lambda m: replace(m, manifest_length=m.manifest_length + 1000))
    assert ids_of(loaded(table)) == [1]


def test_the_length_of_a_manifest_is_compared_if_its_files_are_not_counted(tmp_path: Path) -> None:
    table = a_table(tmp_path, version=1)
    table.commit(Append((a_file(table, 1), a_file(table, 2, name="b"))))
    into_small_blocks(only_manifest(table))
    uncounted = {f"{kind}_{what}_count": None for kind in _KINDS for what in ("files", "rows")}
    length = Path(only_manifest(table)).stat().st_size
    change_list(table, lambda m: replace(m, manifest_length=length, **uncounted))
    assert ids_of(loaded(table)) == [1, 2]
    drop_block(only_manifest(table))
    with pytest.raises(CorruptFileError, match=rf"the manifest list says {length:,} bytes; it has"):
        ids_of(loaded(table))


_KINDS = ("added", "existing", "deleted")


def test_a_write_that_reads_a_damaged_manifest_is_refused(tmp_path: Path) -> None:
    table = a_table(tmp_path)
    table.set_properties(commit__manifest__min_count_to_merge=2)
    table.commit(Append((a_file(table, 1), a_file(table, 2, name="b"))))
    into_small_blocks(only_manifest(table))
    drop_block(only_manifest(table))
    before = table.head
    with pytest.raises(CorruptFileError, match="says 2 added files"):
        table.commit(Append((a_file(table, 3, name="c"),)))
    assert table.head == before


def test_a_damaged_table_can_be_purged(tmp_path: Path) -> None:
    lake = icebergds.load_catalog("lake", warehouse=str(tmp_path))
    lake.create_namespace("db")
    table = lake.create_table("db.t", SCHEMA)
    table.append(arrow_table(SCHEMA, [(1, 0)]))
    root = Path(table.location())
    (manifest,) = root.glob("metadata/*-m0.avro")
    drop_block(manifest)
    lake.purge_table("db.t")
    assert not manifest.exists()


# Totals of snapshots


def test_a_manifest_list_without_the_files_that_its_snapshot_added_is_an_error(
    tmp_path: Path,
) -> None:
    table = a_table(tmp_path)
    table.commit(Append((a_file(table, 1, 2),)))
    drop_block(table.head.manifest_list or "")
    with pytest.raises(
        CorruptFileError, match=r"snap-.*says total-data-files 1, total-records 2; it has 0, 0"
    ):
        ids_of(loaded(table))
    assert ids_of(loaded(table), options=WARN) == []


def test_a_manifest_list_that_lost_a_manifest_is_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = a_table(tmp_path)
    table.commit(Append((a_file(table, 1, 2),)))
    table.commit(Append((a_file(table, 3, name="b"),)))
    into_small_blocks(table.head.manifest_list or "")
    drop_block(table.head.manifest_list or "")
    assert ids_of(loaded(table)) == [3]
    assert "says total-data-files 2, total-records 3; it has 1, 1" in caplog.text


def test_a_manifest_list_with_a_manifest_twice_is_an_error(tmp_path: Path) -> None:
    table = a_table(tmp_path)
    table.commit(Append((a_file(table, 1, 2),)))
    double_block(table.head.manifest_list or "")
    with pytest.raises(
        CorruptFileError,
        match=r"total-data-files 1, total-records 2; it has 2, 4, for it lists .*-m0\.avro' twice",
    ):
        ids_of(loaded(table))
    assert ids_of(loaded(table), options=WARN) == [1, 1, 2, 2]


@pytest.mark.parametrize("total", ["0", "1000", "many", "-1", None])
def test_wrong_totals_leave_a_table_readable(tmp_path: Path, total: str | None) -> None:
    table = a_table(tmp_path)
    table.commit(Append((a_file(table, 1, 2),)))
    change_summary(table, total_data_files=total, total_records=total, total_delete_files=total)
    assert ids_of(loaded(table)) == [1, 2]
    table.commit(Append((a_file(table, 3, name="b"),)))
    assert ids_of(loaded(table)) == [1, 2, 3]


def test_counts_of_a_list_that_contradicts_the_totals_are_not_trusted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Some writers count one file for each manifest, or those of the whole table."""
    table = a_table(tmp_path)
    table.set_properties(commit__manifest__min_count_to_merge=2)
    table.commit(Append((a_file(table, 1), a_file(table, 2, name="b"))))
    change_list(table, lambda m: replace(m, added_files_count=1, existing_files_count=2))
    assert ids_of(loaded(table)) == [1, 2]
    assert "says 1 added file, 2 existing files; it has 2 added files" in caplog.text
    table.commit(Append((a_file(table, 3, name="c"),)))
    assert ids_of(loaded(table)) == [1, 2, 3]


# Data files


@pytest.mark.parametrize("kind", FORMATS)
def test_a_data_file_with_other_rows_than_its_manifest_says_is_an_error(
    tmp_path: Path, kind: FileFormat
) -> None:
    table = a_table(tmp_path)
    file = a_file(table, 1, 2, 3, kind=kind)
    table.commit(Append((file,)))
    a_file(table, 1, 2, kind=kind)
    with pytest.raises(
        CorruptFileError,
        match=rf"a\.{kind}: its manifest says 3 rows.*; it has 2 rows.*wrong-counts",
    ):
        ids_of(loaded(table))
    assert ids_of(loaded(table), options=WARN) == [1, 2]


@pytest.mark.parametrize("damage", [drop_block, double_block])
def test_blocks_of_an_avro_file_are_not_lost_or_doubled(
    tmp_path: Path, damage: Callable[[str], None]
) -> None:
    table = a_table(tmp_path)
    file = a_file(table, *range(10), kind=FileFormat.AVRO)
    into_small_blocks(file.file_path)
    file = replace(file, file_size_in_bytes=Path(file.file_path).stat().st_size)
    table.commit(Append((file,)))
    small = {"split-size": "100"}
    assert ids_of(loaded(table), options=small) == list(range(10))
    damage(file.file_path)
    for options in ({}, small):
        with pytest.raises(CorruptFileError, match=r"its manifest says 10 rows, .*it has"):
            ids_of(loaded(table), options=options)
    remaining = [*range(9), 9] if damage is double_block else list(range(9))
    expected = sorted([*remaining, 9]) if damage is double_block else remaining
    assert ids_of(loaded(table), options={**WARN, **small}) == expected


def test_a_number_of_rows_that_the_writer_did_not_know_is_not_compared(tmp_path: Path) -> None:
    table = a_table(tmp_path)
    table.commit(Append((replace(a_file(table, 1, 2), record_count=-1),)))
    assert ids_of(loaded(table)) == [1, 2]


def test_a_data_file_of_another_size_is_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = a_table(tmp_path)
    file = a_file(table, 1, 2)
    table.commit(Append((replace(file, file_size_in_bytes=file.file_size_in_bytes + 7),)))
    assert ids_of(loaded(table)) == [1, 2]
    size = file.file_size_in_bytes
    assert f"its manifest says {size + 7:,} bytes; it has {size:,}" in caplog.text


def test_an_undamaged_table_is_read_without_warnings(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = a_table(tmp_path)
    files = [a_file(table, 1, 2, 3, kind=kind, name=kind) for kind in FORMATS]
    table.commit(Append(tuple(files)))
    table.commit(RowDelta((), (position_deletes(table, files[1], 0),)))
    assert ids_of(loaded(table)) == [1, 1, 2, 2, 2, 3, 3, 3]
    assert [r.message for r in caplog.records if r.levelno >= logging.WARNING] == []


# Delete files


@pytest.mark.parametrize("kind", FORMATS)
def test_a_position_delete_file_with_other_rows_is_an_error(
    tmp_path: Path, kind: FileFormat
) -> None:
    table = a_table(tmp_path)
    file = a_file(table, 1, 2, 3)
    table.commit(Append((file,)))
    table.commit(RowDelta((), (position_deletes(table, file, 0, 1, kind=kind),)))
    assert ids_of(loaded(table)) == [3]
    position_deletes(table, file, 0, kind=kind)
    changed = loaded(table)
    # A cache of deletes goes by path and size.
    with pytest.raises(
        CorruptFileError, match=rf"deletes\.{kind}: its manifest says 2 rows.*; it has 1 row"
    ):
        ids_of(changed, options={"delete-cache-bytes": "0"})
    assert ids_of(changed, options={"delete-cache-bytes": "0", **WARN}) == [2, 3]


def test_an_equality_delete_file_with_other_rows_is_an_error(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path / "t", SCHEMA)
    builder.commit(builder.data_file([(1, 0), (2, 0), (3, 0)]))
    deletes = builder.equality_deletes(["id"], [(1,), (2,)])
    other = builder.equality_deletes(["id"], [(1,)])
    builder.commit(deletes)
    swap_files(deletes.file_path, other.file_path)
    with pytest.raises(CorruptFileError, match=r"keys-.*its manifest says 2 rows, .*it has 1"):
        ids_of(loaded(builder))
    assert ids_of(loaded(builder), options=WARN) == [2, 3]


def test_what_a_lenient_read_has_read_is_still_an_error_for_others(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path / "t", SCHEMA)
    file = builder.data_file([(1, 0), (2, 0)])
    builder.commit(file)
    deletes = replace(builder.position_deletes({file.file_path: [0]}), record_count=2)
    builder.commit(deletes)
    assert ids_of(loaded(builder), options=WARN) == [2]
    with pytest.raises(CorruptFileError, match="says 2 rows"):
        ids_of(loaded(builder))


@pytest.mark.parametrize("version", [2, 3])
def test_deletes_of_rows_that_a_data_file_does_not_have_are_a_warning(
    tmp_path: Path, version: int, caplog: pytest.LogCaptureFixture
) -> None:
    """As in Java Iceberg they delete nothing."""
    builder = TableBuilder(tmp_path / "t", SCHEMA, format_version=version)
    file = builder.data_file([(1, 0), (2, 0)])
    builder.commit(file)
    if version == 2:
        builder.commit(builder.position_deletes({file.file_path: [0, 2]}))
    else:
        builder.commit(*builder.deletion_vectors([(file, [0, 2])]))
    assert ids_of(loaded(builder)) == [2]
    assert f"the row at position 2 of {file.file_path}, whose manifest says 2 rows" in caplog.text


# Changes


def test_changes_are_read_with_the_option(tmp_path: Path) -> None:
    table = a_table(tmp_path)
    table.commit(Append((a_file(table, 1, 2, 3),)))
    a_file(table, 1, 2)

    def changed(options: Mapping[str, str]) -> list[int]:
        ids: list[int] = loaded(table).changes(options=options).to_arrow()["id"].to_pylist()
        return ids

    with pytest.raises(CorruptFileError, match=r"says 3 rows, .*it has 2"):
        changed({})
    assert changed(WARN) == [1, 2]
