"""Manifest lists of all versions, read and written."""

from __future__ import annotations

import struct
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyiceberg.manifest as pyiceberg_manifest
import pytest
from corpus import corpus_dir
from manifest_cases import container, encode, like_java, store, with_wrong_defaults
from pyiceberg.io.pyarrow import PyArrowFileIO

from icebergds.errors import (
    CorruptFileError,
    InvalidDataError,
    MissingFileError,
    UnsupportedFeatureError,
)
from icebergds.formats.manifests.avro_schemas import manifest_list_schema
from icebergds.formats.manifests.manifest import write_manifest
from icebergds.formats.manifests.manifest_list import (
    manifests_from_paths,
    read_manifest_list,
    read_snapshot_manifests,
    write_manifest_list,
)
from icebergds.io.fileio import FileIO
from icebergds.spec.manifest import FieldSummary, ManifestContent, ManifestFile
from icebergds.spec.partition import PartitionField, PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.snapshot import Snapshot
from icebergds.spec.transforms import IdentityTransform
from icebergds.spec.types import INT, NestedField

IO = FileIO()
DATA = ManifestFile(
    manifest_path="s3://b/table/metadata/m0 [1]%20?.avro",
    manifest_length=1234,
    partition_spec_id=2,
    content=ManifestContent.DATA,
    sequence_number=9,
    min_sequence_number=3,
    added_snapshot_id=6_390_012_554_239_411_555,
    added_files_count=1,
    existing_files_count=2,
    deleted_files_count=0,
    added_rows_count=10,
    existing_rows_count=20,
    deleted_rows_count=0,
    partitions=(
        FieldSummary(True, False, struct.pack("<i", 1), struct.pack("<i", 9)),
        FieldSummary(False, None, None, None),
    ),
    key_metadata=b"key",
    first_row_id=100,
)
DELETES = replace(DATA, content=ManifestContent.DELETES, first_row_id=None, partitions=())
VERSION_1 = replace(
    DATA, sequence_number=0, min_sequence_number=0, added_files_count=None, first_row_id=None
)


def listed(path: Path, manifests: list[ManifestFile], format_version: int) -> str:
    file = path / "list.avro"
    file.write_bytes(write_manifest_list(manifests, format_version=format_version, snapshot_id=1))
    return str(file)


def test_version_3_lists_read_back(tmp_path: Path) -> None:
    location = listed(tmp_path, [DATA, DELETES], 3)
    assert read_manifest_list(IO, location) == (DATA, DELETES)


def test_version_2_lists_have_no_row_ids(tmp_path: Path) -> None:
    location = listed(tmp_path, [DATA, DELETES], 2)
    assert read_manifest_list(IO, location) == (replace(DATA, first_row_id=None), DELETES)


def test_version_1_lists_have_no_sequence_numbers_and_may_lack_counts(tmp_path: Path) -> None:
    assert read_manifest_list(IO, listed(tmp_path, [DATA, VERSION_1], 1)) == (
        replace(VERSION_1, added_files_count=1),
        VERSION_1,
    )


def test_an_empty_list_has_no_manifests(tmp_path: Path) -> None:
    assert read_manifest_list(IO, listed(tmp_path, [], 2)) == ()


def test_defaults_in_the_header_mean_nothing(tmp_path: Path) -> None:
    location = Path(listed(tmp_path, [DATA, DELETES], 3))
    location.write_bytes(with_wrong_defaults(location.read_bytes()))
    assert read_manifest_list(IO, str(location)) == (DATA, DELETES)


def as_record(manifest: ManifestFile) -> dict[str, Any]:
    record = {name: getattr(manifest, name) for name in ManifestFile.__slots__}
    record["content"] = manifest.content.value
    record["partitions"] = [
        {name: getattr(summary, name) for name in FieldSummary.__slots__}
        for summary in manifest.partitions
    ]
    return record


def stored(path: Path, schema: Any, record: dict[str, Any]) -> str:
    (path / "list.avro").write_bytes(container(schema, [[encode(schema, record)]]))
    return str(path / "list.avro")


def changed(schema: Any, names: dict[str, str], keep_ids: bool = True) -> Any:
    """A schema with fields renamed, and without ids if asked for."""
    match schema:
        case {"fields": fields, **rest}:
            return {**rest, "fields": [changed(field, names, keep_ids) for field in fields]}
        case dict():
            out = {key: changed(value, names, keep_ids) for key, value in schema.items()}
            out = {k: v for k, v in out.items() if keep_ids or not k.endswith("-id")}
            return {**out, "name": names.get(out["name"], out["name"])} if "name" in out else out
        case list():
            return [changed(branch, names, keep_ids) for branch in schema]
        case _:
            return schema


OLD_NAMES = {
    "added_files_count": "added_data_files_count",
    "existing_files_count": "existing_data_files_count",
    "deleted_files_count": "deleted_data_files_count",
}


@pytest.mark.parametrize("keep_ids", [True, False])
def test_old_names_of_counts_are_known(tmp_path: Path, keep_ids: bool) -> None:
    schema = changed(manifest_list_schema(3), OLD_NAMES, keep_ids)
    record = as_record(DATA)
    for new, old in OLD_NAMES.items():
        record[old] = record.pop(new)
    assert read_manifest_list(IO, stored(tmp_path, schema, record)) == (DATA,)


def test_fields_are_matched_by_id_and_not_by_name(tmp_path: Path) -> None:
    swapped = {"added_rows_count": "existing_rows_count", "existing_rows_count": "added_rows_count"}
    schema = changed(manifest_list_schema(3), swapped)
    [found] = read_manifest_list(IO, stored(tmp_path, schema, as_record(DATA)))
    assert (found.added_rows_count, found.existing_rows_count) == (20, 10)


def test_fields_without_ids_are_matched_by_name(tmp_path: Path) -> None:
    schema = changed(manifest_list_schema(3), {}, keep_ids=False)
    assert read_manifest_list(IO, stored(tmp_path, schema, as_record(DATA))) == (DATA,)


def test_what_a_summary_does_not_tell_may_be_null(tmp_path: Path) -> None:
    schema = manifest_list_schema(2)
    summary = next(f for f in schema["fields"] if f["name"] == "partitions")["type"][1]["items"]
    summary["fields"] = [f for f in summary["fields"] if f["name"] == "lower_bound"]
    [found] = read_manifest_list(IO, stored(tmp_path, schema, as_record(DATA)))
    assert found.partitions[1] == FieldSummary(True, None, None, None)


def test_a_snapshot_of_version_1_may_name_its_manifests_itself(tmp_path: Path) -> None:
    schema = Schema((NestedField(1, "a", INT),))
    spec = PartitionSpec(4, (PartitionField((1,), 1000, IdentityTransform(), "a"),))
    entry = like_java(1)
    entry = replace(entry, data_file=replace(entry.data_file, partition=(1,)))
    data = write_manifest([entry], spec, schema, format_version=1)
    path = store(tmp_path / "m.avro", data).manifest_path
    bare = tmp_path / "bare.avro"
    bare.write_bytes(container({"type": "record", "name": "r", "fields": []}, []))
    snapshot = Snapshot(5, 0, manifests=(path, str(bare)))
    found = read_snapshot_manifests(IO, snapshot)
    assert found == manifests_from_paths(IO, snapshot.manifests, 5)
    assert found == (
        ManifestFile(path, len(data), 4, added_snapshot_id=5),
        ManifestFile(str(bare), len(bare.read_bytes()), 0, added_snapshot_id=5),
    )


def test_a_missing_list_is_named() -> None:
    with pytest.raises(MissingFileError, match="/nowhere/list"):
        read_manifest_list(IO, "/nowhere/list.avro")


def test_a_truncated_list_is_named(tmp_path: Path) -> None:
    data = write_manifest_list([DATA, DELETES], format_version=3, snapshot_id=1)
    for length in range(0, len(data), 7):
        (tmp_path / "cut.avro").write_bytes(data[:length])
        with pytest.raises(CorruptFileError, match=r"cut\.avro"):
            read_manifest_list(IO, str(tmp_path / "cut.avro"))


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [("manifest_path", None, "manifest_path"), ("content", 2, "content 2")],
)
def test_impossible_entries_are_refused(
    tmp_path: Path, field: str, value: Any, message: str
) -> None:
    schema = manifest_list_schema(3)
    for avro_field in schema["fields"]:
        if avro_field["name"] == "manifest_path":
            avro_field["type"] = ["null", "string"]
    record = {**as_record(DATA), field: value}
    with pytest.raises(CorruptFileError, match=message):
        read_manifest_list(IO, stored(tmp_path, schema, record))


def test_a_manifest_is_no_manifest_list(tmp_path: Path) -> None:
    data = write_manifest([like_java(1)], PartitionSpec(), Schema(()), format_version=2)
    manifest = store(tmp_path / "m.avro", data)
    with pytest.raises(CorruptFileError, match="manifest_path"):
        read_manifest_list(IO, manifest.manifest_path)


def test_an_encrypted_list_is_refused_by_name() -> None:
    location = (
        corpus_dir()
        / "iceberg-rust/crates/iceberg/testdata/manifests_lists/manifest-list-v3-encrypted.avro"
    )
    with pytest.raises(UnsupportedFeatureError, match="encrypted"):
        read_manifest_list(IO, str(location))


@pytest.mark.parametrize("format_version", [1, 2, 3])
def test_pyiceberg_reads_what_is_written(tmp_path: Path, format_version: int) -> None:
    location = listed(tmp_path, [DATA], format_version)
    [theirs] = pyiceberg_manifest.read_manifest_list(PyArrowFileIO().new_input(location))
    assert theirs.manifest_path == DATA.manifest_path
    assert theirs.manifest_length == DATA.manifest_length
    assert theirs.partition_spec_id == 2
    assert theirs.added_snapshot_id == DATA.added_snapshot_id
    assert theirs.added_files_count == 1
    assert theirs.existing_rows_count == 20
    assert theirs.sequence_number == (9 if format_version > 1 else 0)
    assert theirs.partitions is not None
    assert [(s.contains_null, s.contains_nan, s.lower_bound) for s in theirs.partitions] == [
        (True, False, struct.pack("<i", 1)),
        (False, None, None),
    ]


def test_what_a_version_requires_must_be_there() -> None:
    with pytest.raises(InvalidDataError, match="added_files_count"):
        write_manifest_list([VERSION_1], format_version=2, snapshot_id=1)
    with pytest.raises(InvalidDataError, match="added_snapshot_id"):
        write_manifest_list(
            [replace(DATA, added_snapshot_id=None)], format_version=1, snapshot_id=1
        )
    with pytest.raises(InvalidDataError, match="delete"):
        write_manifest_list([DELETES], format_version=1, snapshot_id=1)


def test_snappy_and_zstandard_are_read(tmp_path: Path) -> None:
    schema = manifest_list_schema(3)
    plain = encode(schema, as_record(DATA))
    crc = struct.pack(">I", zlib.crc32(plain))
    for codec, packed in (
        ("snappy", pa.Codec("snappy").compress(plain, asbytes=True) + crc),
        ("zstandard", pa.Codec("zstd").compress(plain, asbytes=True)),
    ):
        (tmp_path / codec).write_bytes(container(schema, [[packed]], codec=codec))
        assert read_manifest_list(IO, str(tmp_path / codec)) == (DATA,)
    damaged = pa.Codec("snappy").compress(plain, asbytes=True) + b"\0\0\0\0"
    (tmp_path / "bad").write_bytes(container(schema, [[damaged]], codec="snappy"))
    with pytest.raises(CorruptFileError, match="checksum"):
        read_manifest_list(IO, str(tmp_path / "bad"))
