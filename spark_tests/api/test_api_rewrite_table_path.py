"""`Table.rewrite_table_path`: a copy by its list of files has the rows of the table."""

from __future__ import annotations

import csv
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from built.api_tables import ids_of, new_table, rows
from built.commit_tables import BY_DAY, SCHEMA
from built.tables import TableBuilder

from icebergds import RewrittenTablePath, Table, load_table
from icebergds.errors import InvalidOptionError, MissingFileError
from icebergds.formats.puffin import read_puffin_footer
from icebergds.spec.manifest import FileFormat


def listed(done: RewrittenTablePath) -> list[tuple[str, str]]:
    assert done.file_list_location is not None
    with Path(done.file_list_location).open() as lines:
        return [(source, target) for source, target in csv.reader(lines)]


def copy(done: RewrittenTablePath) -> list[str]:
    """Copies the files of a list, and returns where to."""
    for source, target in listed(done):
        Path(target).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
    return [target for _, target in listed(done)]


def moved_away(table: Table, target: Path, **arguments: Any) -> Table:
    """The copy of a table, which is not there any more."""
    place = Path(table.location())
    done = table.rewrite_table_path(str(place), str(target), **arguments)
    copy(done)
    place.rename(place.with_name("gone"))
    return load_table(target)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_copy_has_all_snapshots(tmp_path: Path, version: int) -> None:
    table = new_table(tmp_path, version=version, partition_by="day")
    table.append(rows(1, 2))
    table.append(rows(3, day=1))
    table.overwrite(rows(5, day=1))
    before = {s.snapshot_id: ids_of(table, snapshot_id=s.snapshot_id) for s in table.snapshots()}
    assert len(before) == 3
    copied = moved_away(table, tmp_path / "elsewhere")
    assert copied.location() == str(tmp_path / "elsewhere")
    found = {s.snapshot_id: ids_of(copied, snapshot_id=s.snapshot_id) for s in copied.snapshots()}
    assert found == before
    copied.append(rows(4))
    assert ids_of(copied) == [4, 5]


def test_a_relative_target_is_made_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    table = new_table(tmp_path)
    table.append(rows(1))
    done = table.rewrite_table_path(table.location(), "elsewhere")
    assert all(target.startswith(f"{tmp_path}/elsewhere/") for _, target in listed(done))


@pytest.mark.parametrize("file_format", [FileFormat.PARQUET, FileFormat.ORC, FileFormat.AVRO])
def test_deletes_apply_to_the_copy(tmp_path: Path, file_format: FileFormat) -> None:
    builder = TableBuilder(tmp_path / "table", SCHEMA, spec=BY_DAY)
    files = [builder.data_file([(i, 1), (i + 10, 1)], partition=(1,)) for i in (1, 2)]
    builder.commit(*files, with_summaries=True)
    positions = {file.file_path: [1] for file in files}
    deletes = builder.position_deletes(positions, partition=(1,), file_format=file_format)
    one = builder.position_deletes({files[0].file_path: [1]}, partition=(1,))
    keys = builder.equality_deletes(["id"], [(2,)], partition=(1,))
    builder.commit(deletes, one, keys, operation="delete", with_summaries=True)
    table = load_table(tmp_path / "table")
    assert ids_of(table) == [1]
    copied = moved_away(table, tmp_path / "a much longer name")
    assert ids_of(copied) == [1]
    paths = copied.inspect.position_deletes()["file_path"].to_pylist()
    assert len(paths) == 3
    assert all(Path(path).exists() for path in paths)
    for file in copied.inspect.files().to_pylist():
        assert Path(file["file_path"]).stat().st_size == file["file_size_in_bytes"]


def test_several_deletion_vectors_of_a_file_apply_to_the_copy(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path / "table", SCHEMA, format_version=3)
    files = [builder.data_file([(i, 1), (i + 10, 1)]) for i in (1, 2, 3)]
    builder.commit(*files)
    vectors = builder.deletion_vectors([(file, [at % 2]) for at, file in enumerate(files)])
    builder.commit(*vectors, operation="delete")
    table = load_table(tmp_path / "table")
    assert ids_of(table) == [2, 11, 13]
    copied = moved_away(table, tmp_path / "a much longer name")
    assert ids_of(copied) == [2, 11, 13]
    for file in copied.inspect.delete_files().to_pylist():
        assert file["referenced_data_file"].startswith(copied.location())
        puffin = read_puffin_footer(copied.io, file["file_path"])
        referenced = {blob.properties["referenced-data-file"] for blob in puffin.blobs}
        assert file["referenced_data_file"] in referenced


def test_deletion_vectors_are_found_wherever_they_were(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path / "table", SCHEMA, format_version=3)
    file = builder.data_file([(1, 1), (2, 1)])
    builder.commit(file)
    (vector,) = builder.deletion_vectors([(file, [0])])
    path, gap = Path(vector.file_path), 100
    (blob,) = read_puffin_footer(builder.io, vector.file_path).blobs
    assert vector.content_offset == blob.offset
    data, start = path.read_bytes(), blob.offset + blob.length
    old, new = f'"offset":{blob.offset}', f'"offset":{blob.offset + gap}'
    payload = data[start + 4 : -12].replace(old.encode(), new.encode())
    tail = len(payload).to_bytes(4, "little") + data[-8:]
    path.write_bytes(data[:4] + bytes(gap) + data[4:start] + b"PFA1" + payload + tail)
    offset, size = blob.offset + gap, path.stat().st_size
    builder.commit(replace(vector, content_offset=offset, file_size_in_bytes=size))
    assert ids_of(load_table(tmp_path / "table")) == [2]
    assert ids_of(moved_away(load_table(tmp_path / "table"), tmp_path / "elsewhere")) == [2]


def test_rows_of_earlier_commits_stay_older_than_deletes(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path / "table", SCHEMA)
    old = builder.data_file([(1, 1), (2, 1)])
    builder.commit(old)
    builder.commit(builder.equality_deletes(["id"], [(1,)]), operation="delete")
    new = builder.data_file([(1, 1), (2, 1)])
    numbers = {new.file_path: 1}
    builder.commit(new, removed=[old], operation="replace", data_sequence_numbers=numbers)
    table = load_table(tmp_path / "table")
    assert ids_of(table) == [2]
    assert ids_of(moved_away(table, tmp_path / "elsewhere")) == [2]


def test_row_ids_are_kept(tmp_path: Path) -> None:
    table = new_table(tmp_path, version=3)
    for i in (3, 1, 2):
        table.append(rows(i))
    table.rewrite_manifests()
    lineage = "id,_row_id,_last_updated_sequence_number"
    before = table.scan(columns=lineage).to_arrow().sort_by("id")
    copied = moved_away(table, tmp_path / "elsewhere")
    assert copied.scan(columns=lineage).to_arrow().sort_by("id") == before


def test_the_table_stays_as_it_is(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows(1))
    done = table.rewrite_table_path(
        table.location(), "/elsewhere", staging_location=str(tmp_path / "staging")
    )
    metadata_location = table.metadata_location
    assert table.refresh().metadata_location == metadata_location
    assert ids_of(table) == [1]
    assert done.file_list_location == str(tmp_path / "staging" / "file-list")
    assert (done.latest_version, done.rewritten_manifest_file_paths_count) == (
        Path(metadata_location).name,
        1,
    )
    sources = [source for source, _ in listed(done)]
    written = [path for path in (tmp_path / "staging").rglob("*") if path.is_file()]
    assert {s for s in sources if "staging" in s} == {str(w) for w in written} - {
        done.file_list_location
    }


def test_later_versions_follow(tmp_path: Path) -> None:
    # Manifests of later versions have files of earlier ones, too.
    table = new_table(tmp_path, properties={"commit__manifest__min_count_to_merge": "2"})
    table.append(rows(1, 2))
    place, target = table.location(), str(tmp_path / "elsewhere")
    first = table.rewrite_table_path(place, target)
    copy(first)
    table.append(rows(3))
    table.delete_keys(pa.table({"id": pa.array([1])}), "id")
    second = table.rewrite_table_path(place, target, start_version=first.latest_version)
    copied = copy(second)
    assert len([path for path in copied if path.endswith("metadata.json")]) == 2
    assert not {path for path in copied if "/data/" in path} & {t for _, t in listed(first)}
    Path(place).rename(tmp_path / "gone")
    assert ids_of(load_table(target)) == [2, 3]


def test_a_copy_ends_where_asked(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows(1))
    end = Path(table.metadata_location).name
    table.append(rows(2))
    assert ids_of(moved_away(table, tmp_path / "elsewhere", end_version=end)) == [1]


def test_locations_in_properties_move(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.set_properties({"write.data.path": f"{table.location()}/files"})
    table.append(rows(1))
    copied = moved_away(table, tmp_path / "elsewhere")
    assert copied.properties["write.data.path"] == str(tmp_path / "elsewhere" / "files")
    assert ids_of(copied) == [1]


def test_files_elsewhere_are_refused_and_nothing_stays(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    pq.write_table(pa.table({"id": [1]}), tmp_path / "outside.parquet")
    table.add_files(tmp_path / "outside.parquet")
    with pytest.raises(InvalidOptionError, match=r"refers to .*/outside\.parquet, which is else"):
        table.rewrite_table_path(
            table.location(), "/elsewhere", staging_location=str(tmp_path / "staging")
        )
    assert [path for path in (tmp_path / "staging").rglob("*") if path.is_file()] == []


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"source_prefix": "/a/", "target_prefix": "/a"}, "expected two different locations"),
        ({"source_prefix": "/other", "target_prefix": "/a"}, "refers to .*, which is elsewhere"),
        ({"start_version": "v7.metadata.json"}, r"no such metadata file; .* v2\.metadata\.json"),
        ({"start_version": "v2.metadata.json"}, "not older than the version v2"),
    ],
)
def test_wrong_arguments_are_refused(tmp_path: Path, arguments: Any, why: str) -> None:
    table = new_table(tmp_path)
    table.append(rows(1))
    given = {"source_prefix": table.location(), "target_prefix": "/elsewhere", **arguments}
    with pytest.raises(InvalidOptionError, match=why):
        table.rewrite_table_path(**given)


def test_prefixes_end_at_a_path_segment(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    with pytest.raises(InvalidOptionError, match="which is elsewhere"):
        table.rewrite_table_path(str(tmp_path / "d"), "/elsewhere")


def test_older_versions_must_be_there(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows(1))
    Path(table.metadata.metadata_log[0].metadata_file).unlink()
    with pytest.raises(MissingFileError, match="start_version"):
        table.rewrite_table_path(table.location(), "/elsewhere")
