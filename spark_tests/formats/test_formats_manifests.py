"""Manifests as objects: what entries inherit, how partition values are typed, what is written."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyiceberg.manifest as pyiceberg_manifest
import pytest
from manifest_cases import (
    container,
    encode,
    entry_record,
    java_schema,
    like_java,
    partitioned,
    renamed,
    store,
    with_wrong_defaults,
)
from pyiceberg.avro.file import AvroFile
from pyiceberg.io.pyarrow import PyArrowFileIO

from icebergds.errors import CorruptFileError, InvalidDataError
from icebergds.formats.manifests.manifest import INHERITED, read_manifest, write_manifest
from icebergds.formats.manifests.reader import read_manifest_columns
from icebergds.io.fileio import FileIO
from icebergds.spec.manifest import (
    FileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
)
from icebergds.spec.partition import PartitionField, PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.transforms import (
    BucketTransform,
    IdentityTransform,
)
from icebergds.spec.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    UUID,
    DecimalType,
    FixedType,
    NestedField,
    StructType,
)

IO = FileIO()
ADDED, EXISTING, DELETED = (
    ManifestEntryStatus.ADDED,
    ManifestEntryStatus.EXISTING,
    ManifestEntryStatus.DELETED,
)
NOTHING = Schema(())
UNPARTITIONED = PartitionSpec()


def manifest_of(
    path: Path,
    entries: Sequence[ManifestEntry],
    format_version: int = 2,
    content: ManifestContent = ManifestContent.DATA,
    inherit: frozenset[str] = INHERITED,
    **attributes: Any,
) -> ManifestFile:
    data = write_manifest(
        entries,
        UNPARTITIONED,
        NOTHING,
        format_version=format_version,
        content=content,
        inherit=inherit,
    )
    return store(path / "m.avro", data, content=content, **attributes)


def with_status(number: int, status: ManifestEntryStatus, **attributes: Any) -> ManifestEntry:
    return renamed(replace(like_java(number), status=status), **attributes)


def sequence_numbers(manifest: ManifestFile) -> list[tuple[int, int]]:
    return [
        (entry.data_sequence_number, entry.file_sequence_number)
        for entry in read_manifest(IO, manifest)
    ]


def test_added_files_inherit_sequence_numbers_and_others_keep_theirs(tmp_path: Path) -> None:
    entries = [with_status(n, status) for n, status in enumerate((ADDED, EXISTING, DELETED))]
    manifest = manifest_of(tmp_path, entries, sequence_number=50, added_snapshot_id=1)
    assert sequence_numbers(manifest) == [(50, 50), (7, 7), (7, 7)]


def test_an_added_file_may_have_an_older_data_sequence_number(tmp_path: Path) -> None:
    only_file = frozenset({"file_sequence_number"})
    manifest = manifest_of(tmp_path, [like_java(1)], inherit=only_file, sequence_number=50)
    assert sequence_numbers(manifest) == [(7, 50)]


def test_files_of_version_1_manifests_have_sequence_number_0(tmp_path: Path) -> None:
    entries = [with_status(n, status) for n, status in enumerate((ADDED, EXISTING, DELETED))]
    manifest = manifest_of(tmp_path, entries, format_version=1)
    assert sequence_numbers(manifest) == [(0, 0)] * 3


def test_files_of_a_version_1_manifest_that_a_later_commit_added(tmp_path: Path) -> None:
    entries = [with_status(n, status) for n, status in enumerate((ADDED, EXISTING))]
    manifest = manifest_of(tmp_path, entries, format_version=1, sequence_number=9)
    assert sequence_numbers(manifest) == [(9, 9), (0, 0)]


def stored(
    path: Path, records: Sequence[dict[str, Any]], schema: Any = None, **attributes: Any
) -> ManifestFile:
    schema = schema or java_schema(3)
    data = container(schema, [[encode(schema, record) for record in records]])
    return store(path / "m.avro", data, **{"added_snapshot_id": 1, **attributes})


def record_of(entry: ManifestEntry, **attributes: Any) -> dict[str, Any]:
    return {**entry_record(entry, StructType(())), **attributes}


@pytest.mark.parametrize("few_entries", [0, 99])
def test_an_existing_file_without_sequence_number_is_refused(
    tmp_path: Path, few_entries: int
) -> None:
    """Taking the manifest's would let deletes spare rows that they apply to."""
    record = record_of(with_status(1, EXISTING), sequence_number=None)
    manifest = stored(tmp_path, [record], sequence_number=5)
    with pytest.raises(CorruptFileError, match="sequence number"):
        read_manifest_columns(IO, manifest, few_entries=few_entries)
    assert sequence_numbers(stored(tmp_path, [record], sequence_number=0)) == [(0, 7)]


def test_a_missing_file_sequence_number_is_the_data_sequence_number(tmp_path: Path) -> None:
    record = record_of(with_status(1, EXISTING), file_sequence_number=None)
    assert sequence_numbers(stored(tmp_path, [record], sequence_number=50)) == [(7, 7)]


def test_missing_snapshot_ids_come_from_the_manifest(tmp_path: Path) -> None:
    inherit = frozenset({"snapshot_id"})
    manifest = manifest_of(tmp_path, [like_java(1)], inherit=inherit, added_snapshot_id=77)
    assert read_manifest(IO, manifest)[0].snapshot_id == 77
    with pytest.raises(CorruptFileError, match="snapshot id"):
        read_manifest(IO, replace(manifest, added_snapshot_id=None))


def first_row_ids(manifest: ManifestFile) -> list[int | None]:
    return [entry.data_file.first_row_id for entry in read_manifest(IO, manifest)]


def test_first_row_ids_follow_the_example_of_the_specification(tmp_path: Path) -> None:
    entries = [
        with_status(1, EXISTING, record_count=25, first_row_id=800),
        with_status(2, ADDED, record_count=50),
        with_status(3, ADDED, record_count=50),
    ]
    manifest = manifest_of(tmp_path, entries, format_version=3, first_row_id=1000)
    assert first_row_ids(manifest) == [800, 1000, 1050]


def test_existing_files_of_an_upgraded_table_take_first_row_ids_too(tmp_path: Path) -> None:
    entries = [
        with_status(n, EXISTING if n % 2 else ADDED, record_count=10, first_row_id=None)
        for n in range(4)
    ]
    for format_version in (1, 2, 3):
        manifest = manifest_of(tmp_path, entries, format_version, first_row_id=100)
        assert first_row_ids(manifest) == [100, 110, 120, 130]


def test_deleted_files_take_no_first_row_ids(tmp_path: Path) -> None:
    entries = [
        with_status(1, DELETED, record_count=7, first_row_id=None),
        with_status(2, ADDED, record_count=10),
        with_status(3, DELETED, record_count=7, first_row_id=3),
        with_status(4, ADDED, record_count=10),
    ]
    manifest = manifest_of(tmp_path, entries, format_version=3, first_row_id=100)
    assert first_row_ids(manifest) == [None, 100, 3, 110]


def test_without_a_first_row_id_of_the_manifest_none_is_assigned(tmp_path: Path) -> None:
    manifest = manifest_of(tmp_path, [like_java(1), like_java(2)], format_version=3)
    assert first_row_ids(manifest) == [None, None]


def test_delete_files_have_no_first_row_id(tmp_path: Path) -> None:
    entry = with_status(1, EXISTING, content=FileContent.POSITION_DELETES, first_row_id=5)
    manifest = manifest_of(tmp_path, [entry], 3, ManifestContent.DELETES, first_row_id=9)
    assert first_row_ids(manifest) == [None]


def test_files_of_version_1_hold_data(tmp_path: Path) -> None:
    [entry] = read_manifest(IO, manifest_of(tmp_path, [like_java(1)], format_version=1))
    assert entry.data_file.content is FileContent.DATA


@pytest.mark.parametrize(
    ("field", "value"), [("status", 3), ("status", -1), ("content", 3), ("content", -1)]
)
def test_unknown_codes_are_refused(tmp_path: Path, field: str, value: int) -> None:
    record = record_of(like_java(1))
    (record if field == "status" else record["data_file"])[field] = value
    with pytest.raises(CorruptFileError, match=f"{field} {value}"):
        read_manifest(IO, stored(tmp_path, [record]))


@pytest.mark.parametrize("format_version", [1, 2])
def test_pyiceberg_reads_what_is_written(tmp_path: Path, format_version: int) -> None:
    types = (INT, STRING, DATE, TIMESTAMP, DecimalType(9, 2), FixedType(3), UUID, BOOLEAN, DOUBLE)
    values = (4, "a/b", 19_000, 5, Decimal("-1.25"), b"abc", bytes(range(16)), True, 0.5)
    schema = Schema(tuple(NestedField(i, f"c {i}", t) for i, t in enumerate(types, 1)))
    spec = PartitionSpec(
        0,
        tuple(
            PartitionField((i,), 999 + i, IdentityTransform(), f"p-{i}")
            for i in range(1, len(types) + 1)
        ),
    )
    entries = [
        renamed(like_java(n), partition=values if n % 2 else (None,) * len(types))
        for n in range(30)
    ]
    data = write_manifest(entries, spec, schema, format_version=format_version)
    manifest = store(tmp_path / "m.avro", data, added_snapshot_id=1, sequence_number=7)
    theirs = pyiceberg_manifest.ManifestFile.from_args(
        manifest_path=manifest.manifest_path,
        manifest_length=len(data),
        partition_spec_id=0,
        content=pyiceberg_manifest.ManifestContent.DATA,
        sequence_number=7,
        added_snapshot_id=1,
    ).fetch_manifest_entry(PyArrowFileIO())
    assert len(theirs) == 30
    for their, entry in zip(theirs, entries, strict=True):
        file = entry.data_file
        assert int(their.status) == entry.status
        assert (their.snapshot_id, their.sequence_number) == (entry.snapshot_id, 7)
        assert their.data_file.file_path == file.file_path
        assert their.data_file.record_count == file.record_count
        assert their.data_file.value_counts == file.value_counts
        assert their.data_file.lower_bounds == file.lower_bounds
        assert their.data_file.split_offsets == list(file.split_offsets)
        partition = [their.data_file.partition[i] for i in range(len(types))]
        expected = [
            uuid.UUID(bytes=v) if t == UUID and v else v
            for t, v in zip(types, file.partition, strict=True)
        ]
        assert partition == expected
    own = read_manifest(IO, manifest)
    assert [entry.data_file.partition for entry in own] == [
        entry.data_file.partition for entry in entries
    ]


def test_the_header_holds_what_the_specification_asks_for(tmp_path: Path) -> None:
    schema, spec = partitioned(INT, BucketTransform(4))
    data = write_manifest(
        [], replace(spec, spec_id=3), replace(schema, schema_id=5), format_version=2
    )
    (tmp_path / "m.avro").write_bytes(data)
    header = pyiceberg_header(tmp_path / "m.avro")
    assert json.loads(header["schema"])["fields"][0]["name"] == "c"
    assert json.loads(header["partition-spec"]) == [
        {"name": "p", "transform": "bucket[4]", "source-id": 1, "field-id": 1000}
    ]
    assert {key: header[key] for key in ("schema-id", "partition-spec-id", "format-version")} == {
        "schema-id": "5",
        "partition-spec-id": "3",
        "format-version": "2",
    }
    assert header["content"] == "data"


def pyiceberg_header(path: Path) -> dict[str, str]:
    with AvroFile(PyArrowFileIO().new_input(str(path))) as file:
        return dict(file.header.meta)


def test_delete_files_and_data_files_do_not_mix(tmp_path: Path) -> None:
    deletes = renamed(like_java(1), content=FileContent.EQUALITY_DELETES, equality_ids=(1,))
    with pytest.raises(InvalidDataError, match="EQUALITY_DELETES"):
        manifest_of(tmp_path, [deletes])
    with pytest.raises(InvalidDataError, match="DATA"):
        manifest_of(tmp_path, [like_java(1)], content=ManifestContent.DELETES)
    with pytest.raises(InvalidDataError, match="version 1"):
        manifest_of(tmp_path, [deletes], 1, ManifestContent.DELETES)


def test_deletion_vectors_keep_what_leads_to_them(tmp_path: Path) -> None:
    vector = with_status(
        1,
        EXISTING,
        content=FileContent.POSITION_DELETES,
        file_format=FileFormat.PUFFIN,
        referenced_data_file="s3://b/data.parquet",
        content_offset=4,
        content_size_in_bytes=1234,
    )
    manifest = manifest_of(tmp_path, [vector], 3, ManifestContent.DELETES, sequence_number=9)
    assert read_manifest(IO, manifest) == [vector]
    assert vector.data_file.is_deletion_vector


@pytest.mark.parametrize("codec", ["gzip", "uncompressed", "bzip2", "xz"])
def test_codecs_read_back(tmp_path: Path, codec: str) -> None:
    entries = [like_java(n) for n in range(100)]
    data = write_manifest(entries, UNPARTITIONED, NOTHING, format_version=2, codec=codec)
    manifest = store(tmp_path / "m.avro", data, sequence_number=7, added_snapshot_id=1)
    assert read_manifest(IO, manifest) == entries


@pytest.mark.parametrize("entries", [1, 300])
def test_defaults_in_the_header_mean_nothing(tmp_path: Path, entries: int) -> None:
    manifest = manifest_of(tmp_path, [like_java(number) for number in range(entries)])
    wanted = read_manifest(IO, manifest)
    file = Path(manifest.manifest_path)
    changed = store(tmp_path / "other.avro", with_wrong_defaults(file.read_bytes()))
    changed = replace(
        manifest, manifest_path=changed.manifest_path, manifest_length=changed.manifest_length
    )
    assert read_manifest(IO, changed) == wanted
