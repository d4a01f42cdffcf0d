"""Encrypted tables without Spark: what is written and read, and what is refused."""

from __future__ import annotations

import json
import logging
import pickle
import re
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest
from built.contents import unused_files
from corpus import corpus_dir
from effort import some
from encrypted_tables import (
    MARKER,
    SCHEMA,
    catalog_with_keys,
    encrypted_table,
    ids_of,
    plain_catalog,
    rows,
    stored_files,
)
from oracles.variant_reference import (
    decode,
    decode_metadata,
    encode,
    encode_metadata,
    names_of,
    same,
)
from s3_server import S3Server

from icebergds import Table
from icebergds.commit.data_files import Append
from icebergds.commit.operations import TableState
from icebergds.commit.snapshot_commit import commit_snapshot
from icebergds.encryption.gcm_stream import BLOCK_LENGTH
from icebergds.encryption.key_metadata import KeyMetadata, parse_key_metadata
from icebergds.encryption.kms import load_kms
from icebergds.errors import (
    CorruptFileError,
    IcebergError,
    InvalidMetadataError,
    InvalidOptionError,
    StorageError,
    UnsupportedFeatureError,
)
from icebergds.formats.arrow.types import schema_to_arrow
from icebergds.formats.manifests.manifest import read_manifest
from icebergds.formats.manifests.manifest_list import read_snapshot_manifests
from icebergds.formats.parquet.encryption import decryption_options
from icebergds.formats.parquet.page_index import PageIndex
from icebergds.io.fileio import FileIO
from icebergds.operations.read.options import parse_read_options
from icebergds.operations.read.snapshot_read import plan_read, plan_task_groups
from icebergds.scan.packing import pack_scan, pack_task_group, unpack_scan, unpack_task_group
from icebergds.scan.read.changes import read_task_group
from icebergds.scan.read.delete_cache import DELETES
from icebergds.scan.tasks import has_keys
from icebergds.spec.json.metadata import parse_metadata
from icebergds.spec.manifest import DataFile, FileFormat, ManifestFile
from icebergds.spec.schema import Schema
from icebergds.spec.types import LONG, VARIANT, NestedField

_FORMATS = ("parquet", "avro")


def _manifests(table: Table) -> tuple[ManifestFile, ...]:
    state = table._state
    snapshot = state.metadata.current_snapshot()
    assert snapshot is not None
    return read_snapshot_manifests(state.io, snapshot)


def _files(table: Table) -> list[DataFile]:
    state = table._state
    return [
        entry.data_file
        for manifest in _manifests(table)
        for entry in read_manifest(
            state.io, manifest, state.metadata.specs_by_id, state.metadata.schema()
        )
    ]


def _list_keys(table: Table) -> list[KeyMetadata]:
    state = table._state
    assert state.keys is not None
    return [
        state.keys.list_key(state.metadata, snapshot.key_id)
        for snapshot in state.metadata.snapshots
        if snapshot.key_id is not None
    ]


def _keys(table: Table) -> list[KeyMetadata]:
    """The keys of the manifest lists, the manifests of the head, and their files."""
    listed = [
        *(m.key_metadata for m in _manifests(table)),
        *(f.key_metadata for f in _files(table)),
    ]
    return [
        *_list_keys(table),
        # Vectors of one file have its key.
        *(parse_key_metadata(key, "f") for key in dict.fromkeys(listed) if key is not None),
    ]


def _with_all_kinds(directory: Path, file_format: str = "parquet", **properties: str) -> Table:
    """A table with data files, deletion vectors and equality deletes: ids 3, 4, 5, 6, 8."""
    table = encrypted_table(directory, **{"write.format.default": file_format, **properties})
    table.append(rows(1, 2, 3, 4))
    table.append(rows(5, 6, 7, day=2))
    table.upsert(rows(2, 8), ["id"])
    table.delete_keys(pa.table({"id": pa.array([1, 2], pa.int64())}), ["id"])
    table.delete_keys(
        pa.table({"id": pa.array([7], pa.int64())}),
        ["id"],
        options={"write.upsert.mode": "equality-deletes"},
    )
    return table


@pytest.mark.parametrize("file_format", _FORMATS)
def test_rows_are_read_as_they_were_written_and_changed(tmp_path: Path, file_format: str) -> None:
    table = _with_all_kinds(tmp_path, file_format)
    assert ids_of(table) == [3, 4, 5, 6, 8]
    assert {file.file_format for file in _files(table)} == {file_format, FileFormat.PUFFIN}
    reloaded = catalog_with_keys(tmp_path).load_table("db.t")
    assert ids_of(reloaded) == [3, 4, 5, 6, 8]
    assert reloaded.scan(row_filter="id > 4 and day = 2").to_arrow()["id"].to_pylist() == [5, 6]
    first = reloaded.snapshots()[0].snapshot_id
    assert reloaded.scan(snapshot_id=first).to_arrow().num_rows == 4
    assert reloaded.scan().count() == 5


@pytest.mark.parametrize("file_format", _FORMATS)
def test_no_file_is_in_clear(tmp_path: Path, file_format: str) -> None:
    table = _with_all_kinds(tmp_path, file_format, **{"write.parquet.compression-codec": "none"})
    table.rewrite_manifests()
    table.rewrite_data_files(options={"rewrite-all": "true"})
    files = stored_files(table)
    assert {path.suffix for path in files} == {".avro", ".puffin", f".{file_format}"}
    for path in files:
        data = path.read_bytes()
        assert data[:4] == (b"PARE" if path.suffix == ".parquet" else b"AGS1"), path
        assert MARKER.encode() not in data
        assert b"iceberg.schema" not in data
    assert ids_of(table) == [3, 4, 5, 6, 8]


def test_a_plain_table_would_show_the_marker(tmp_path: Path) -> None:
    table = plain_catalog(tmp_path).create_table("db.p", SCHEMA)
    table.append(rows(1))
    assert any(MARKER.encode() in path.read_bytes() for path in stored_files(table))


@pytest.mark.parametrize("length", [16, 24, 32])
def test_each_file_has_a_key_of_its_own_and_its_length(tmp_path: Path, length: int) -> None:
    table = _with_all_kinds(tmp_path, **{"encryption.data-key-length": str(length)})
    keys = _keys(table)
    assert {len(key.encryption_key) for key in keys} == {length}
    assert len({key.encryption_key for key in keys}) == len({key.aad_prefix for key in keys})
    assert len({key.encryption_key for key in keys}) == len(keys)
    for file in _files(table):
        assert file.key_metadata is not None
        stored = Path(file.file_path).stat().st_size
        assert parse_key_metadata(file.key_metadata, "f").file_length == stored
        assert file.file_size_in_bytes == stored
    for manifest in _manifests(table):
        assert manifest.manifest_length == Path(manifest.manifest_path).stat().st_size


def test_each_snapshot_has_a_key_and_one_key_encrypts_them(tmp_path: Path) -> None:
    table = _with_all_kinds(tmp_path)
    keys = {key.key_id: key for key in table.metadata.encryption_keys}
    named = [snapshot.key_id for snapshot in table.metadata.snapshots]
    assert len(set(named)) == len(named) == len(keys) - 1
    (encrypting,) = {keys[str(key_id)].encrypted_by_id for key_id in named}
    assert keys[str(encrypting)].encrypted_by_id == "keyA"


def test_a_transaction_of_several_snapshots_adds_all_of_their_keys(tmp_path: Path) -> None:
    table = encrypted_table(tmp_path)
    with table.transaction() as transaction:
        transaction.append(rows(1))
        transaction.append(rows(2))
        transaction.upsert(rows(2, 3), ["id"])
    reloaded = catalog_with_keys(tmp_path).load_table("db.t")
    assert ids_of(reloaded) == [1, 2, 3]
    for snapshot in reloaded.snapshots():
        reloaded.scan(snapshot_id=snapshot.snapshot_id).to_arrow()


def test_writers_at_once_lose_no_key(tmp_path: Path) -> None:
    encrypted_table(tmp_path, **{"commit.retry.num-retries": "50"})
    barrier, failures = threading.Barrier(4), list[BaseException]()

    def write(number: int) -> None:
        try:
            table = catalog_with_keys(tmp_path).load_table("db.t")
            barrier.wait()
            for at in range(3):
                table.append(rows(10 * number + at))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    table = catalog_with_keys(tmp_path).load_table("db.t")
    assert ids_of(table) == sorted(10 * number + at for number in range(4) for at in range(3))
    for count, snapshot in enumerate(table.snapshots(), 1):
        assert table.scan(snapshot_id=snapshot.snapshot_id).to_arrow().num_rows == count


def test_a_retry_adds_the_key_of_its_own_list_only(tmp_path: Path) -> None:
    table = encrypted_table(tmp_path)
    table.append(rows(1))
    late = catalog_with_keys(tmp_path).load_table("db.t")
    table.append(rows(2))
    late.append(rows(3))
    metadata = late.metadata
    named = {snapshot.key_id for snapshot in metadata.snapshots}
    encrypting = {key.encrypted_by_id for key in metadata.encryption_keys} - {"keyA"}
    assert {key.key_id for key in metadata.encryption_keys} == named | encrypting
    assert ids_of(late) == [1, 2, 3]


def test_a_manifest_list_of_rust_is_read(tmp_path: Path) -> None:
    """Its key has no length; that it is shorter than a block shows that it is whole."""
    there = corpus_dir() / "iceberg-rust/crates/iceberg/testdata"
    metadata_file = there / "table_metadata/TableMetadataV3ValidEncryption.json"
    metadata = parse_metadata(metadata_file.read_bytes(), str(metadata_file))
    (snapshot,) = metadata.snapshots
    assert snapshot.manifest_list is not None
    stored = (there / "manifests_lists/manifest-list-v3-encrypted.avro").read_bytes()
    path = tmp_path / "list.avro"
    path.write_bytes(stored)
    service = load_kms({"encryption.kms-impl": "key_services.MemoryClient"}, "catalog c")
    io = FileIO({}, {snapshot.manifest_list: str(path)}, key_service=service)
    state = TableState("t", "memory:///table/metadata/v1.metadata.json", metadata, io)
    assert read_snapshot_manifests(state.io, snapshot) == ()
    path.write_bytes(stored[:-1])
    with pytest.raises(CorruptFileError, match="does not fit its key"):
        read_snapshot_manifests(state.io, snapshot)


def test_branches_and_change_feeds_are_read(tmp_path: Path) -> None:
    table = encrypted_table(tmp_path)
    table.append(rows(1, 2))
    table.append(rows(3), branch="b", options={"create-branch": "true"})
    table.upsert(rows(2, 4), ["id"])
    found = table.scan(branch="b").to_arrow()["id"].to_pylist()
    assert sorted(found) == [1, 2, 3]
    changes = table.changes().to_arrow().select(["id", "_change_type"]).to_pylist()
    assert {(row["id"], row["_change_type"]) for row in changes} >= {(1, "INSERT"), (4, "INSERT")}


def test_expiry_removes_keys_and_files_that_nothing_needs(tmp_path: Path) -> None:
    table = encrypted_table(tmp_path)
    for number in range(4):
        table.append(rows(number))
    table.overwrite(rows(8))
    table.overwrite(rows(9))
    before = len(stored_files(table))
    table.expire_snapshots(older_than=table.metadata.last_updated_ms + 1, retain_last=2)
    metadata = table.metadata
    assert len(metadata.snapshots) == 2
    # Those of two lists, and the one that encrypts them.
    assert len(metadata.encryption_keys) == 3
    assert len(stored_files(table)) < before
    assert unused_files(table) == set()
    reloaded = catalog_with_keys(tmp_path).load_table("db.t")
    assert ids_of(reloaded) == [9]
    reloaded.append(rows(10))
    assert ids_of(reloaded) == [9, 10]
    assert len(reloaded.metadata.encryption_keys) == 4


def test_old_files_stay_readable_in_a_mixed_table(tmp_path: Path) -> None:
    path = tmp_path / "there.parquet"
    pq.write_table(rows(20, 21), path)
    table = encrypted_table(tmp_path, **{"schema.name-mapping.default": _names()})
    table.append(rows(1))
    table.add_files([str(path)])
    assert ids_of(table) == [1, 20, 21]
    assert [file.key_metadata is None for file in _files(table)].count(True) == 1
    table.upsert(rows(21, 22), ["id"])
    assert ids_of(catalog_with_keys(tmp_path).load_table("db.t")) == [1, 20, 21, 22]


def _names() -> str:
    return json.dumps([{"field-id": i + 1, "names": [n]} for i, n in enumerate(SCHEMA.names)])


def test_maintenance_keeps_rows_and_keys(tmp_path: Path) -> None:
    table = _with_all_kinds(tmp_path)
    table.convert_equality_deletes()
    table.rewrite_position_delete_files(options={"rewrite-all": "true"})
    table.rewrite_data_files(options={"rewrite-all": "true"})
    table.rewrite_manifests()
    table.remove_dangling_deletes()
    table.remove_orphan_files()
    assert table.verify(depth="rows").findings == ()
    assert ids_of(catalog_with_keys(tmp_path).load_table("db.t")) == [3, 4, 5, 6, 8]
    assert all(file.key_metadata is not None for file in _files(table))


@pytest.mark.parametrize("file_format", _FORMATS)
def test_each_part_of_a_large_file_is_read_once(tmp_path: Path, file_format: str) -> None:
    """Its blocks of encryption and its parts have other borders."""
    properties = {"write.avro.compression-codec": "none", "write.parquet.compression-codec": "none"}
    table = encrypted_table(
        tmp_path,
        **properties,
        **{"write.format.default": file_format, "write.parquet.row-group-size-bytes": "400000"},
    )
    table.append(rows(*range(60_000)))
    (file,) = _files(table)
    assert file.file_size_in_bytes > 2 * BLOCK_LENGTH
    options = parse_read_options({"split-size": "300000", "file-open-cost": "1"})
    snapshot, plan = plan_read(table._state, options)
    groups = plan_task_groups(options, table._state, snapshot, plan)
    assert len(groups) > 5
    read = [
        value
        for group in groups
        for batch in read_task_group(plan, group)
        for value in batch.column(0).to_pylist()
    ]
    assert sorted(read) == list(range(60_000))


def test_rows_are_found_in_old_snapshots_and_files_of_deletes(tmp_path: Path) -> None:
    table = _with_all_kinds(tmp_path)
    found = table.find_stored_rows("id = 7")
    assert not found.is_gone
    table.rewrite_data_files(options={"rewrite-all": "true"})
    table.remove_dangling_deletes()
    table.expire_snapshots(older_than=table.metadata.last_updated_ms + 1, retain_last=1)
    assert table.find_stored_rows("id = 7").is_gone
    assert not table.find_stored_rows("id = 8").is_gone


def test_files_in_an_object_store_are_read_in_ranges(tmp_path: Path, s3: S3Server) -> None:
    properties = {**s3.properties, "warehouse": s3.new_location()}
    catalog = catalog_with_keys(tmp_path, **properties)
    given = {"format-version": "3", "encryption.key-id": "keyA"}
    for file_format in _FORMATS:
        created = catalog.create_table(
            f"db.{file_format}", SCHEMA, properties={**given, "write.format.default": file_format}
        )
        created.append(rows(*range(20_000)))
        created.upsert(rows(7, 60_000), ["id"])
        table = catalog_with_keys(tmp_path, **properties).load_table(f"db.{file_format}")
        assert ids_of(table) == [*range(20_000), 60_000]
        assert table.scan(row_filter="id = 60000").to_arrow().num_rows == 1


def test_without_a_key_service_nothing_is_read_or_written(tmp_path: Path) -> None:
    encrypted_table(tmp_path).append(rows(1))
    table = plain_catalog(tmp_path).load_table("db.t")
    before = stored_files(table)
    for use in (
        ids_of,
        lambda t: t.append(rows(2)),
        lambda t: t.expire_snapshots(retain_last=1),
        lambda t: t.verify(),
    ):
        with pytest.raises(UnsupportedFeatureError, match=r"'keyA'.*encryption\.kms-type"):
            use(table)
    assert stored_files(table) == before


def test_a_table_says_that_it_is_encrypted(tmp_path: Path) -> None:
    assert "encrypted    master key keyA\n" in repr(encrypted_table(tmp_path))


def test_nothing_is_committed_by_a_key_that_cannot_be_unwrapped(tmp_path: Path) -> None:
    encrypted_table(tmp_path)
    service = {"encryption.kms-impl": "key_services.Forgetful"}
    table = catalog_with_keys(tmp_path, **service).load_table("db.t")
    with pytest.raises(StorageError, match=r"table c\.db\.t: .*does not unwrap the key"):
        table.append(rows(1))
    table = catalog_with_keys(tmp_path).load_table("db.t")
    assert len(table.snapshots()) == 0
    assert stored_files(table) == []


def test_an_empty_encrypted_table_is_not_written_without_a_key_service(tmp_path: Path) -> None:
    encrypted_table(tmp_path)
    table = plain_catalog(tmp_path).load_table("db.t")
    with pytest.raises(UnsupportedFeatureError, match=r"'keyA'.*encryption\.kms-type"):
        table.append(rows(1))
    assert stored_files(table) == []


def test_a_plain_file_is_not_committed_by_a_write(tmp_path: Path) -> None:
    table = encrypted_table(tmp_path)
    table.append(rows(1))
    plain = replace(_files(table)[0], key_metadata=None, file_path="other.parquet")
    operations = table._operations
    assert operations is not None
    with pytest.raises(UnsupportedFeatureError, match=r"the new file other\.parquet is not"):
        commit_snapshot(operations, Append((plain,)))


@pytest.mark.parametrize(
    ("properties", "refusal"),
    [
        ({"write.format.default": "orc"}, "ORC files cannot be encrypted"),
        ({"write.parquet.bloom-filter-enabled.column.id": "true"}, "cannot have Bloom filters"),
    ],
)
def test_what_cannot_be_encrypted_is_refused(
    tmp_path: Path, properties: dict[str, str], refusal: str
) -> None:
    table = encrypted_table(tmp_path, **properties)
    with pytest.raises(UnsupportedFeatureError, match=refusal):
        table.append(rows(1))
    assert stored_files(table) == []


def test_a_copy_in_clear_is_refused(tmp_path: Path) -> None:
    table = encrypted_table(tmp_path)
    table.append(rows(1))
    before = stored_files(table)
    with pytest.raises(UnsupportedFeatureError, match="manifests in clear"):
        table.rewrite_table_path(str(tmp_path), "/elsewhere", staging_location=str(tmp_path / "s"))
    assert stored_files(table) == before


def test_pages_are_of_the_version_that_java_can_decrypt(tmp_path: Path) -> None:
    table = encrypted_table(tmp_path, **{"write.parquet.page-version": "v2"})
    table.append(rows(1, 2))
    (file,) = _files(table)
    assert file.key_metadata is not None
    key = parse_key_metadata(file.key_metadata, "f")
    with pa.OSFile(file.file_path) as handle:
        index = PageIndex(handle, pq.read_metadata(handle, **decryption_options(key)), key)
        assert [index.is_v2(0, leaf) for leaf in range(3)] == [False] * 3


def test_summaries_do_not_tell_of_partitions(tmp_path: Path) -> None:
    table = encrypted_table(tmp_path, **{"write.summary.partition-limit": "10"})
    table.update_spec().add_field("day").commit()
    table.append(rows(1))
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert not [key for key in snapshot.summary if key.startswith("partition")]


def _damage_each(path: Path, places: list[int], read: Callable[[], Any]) -> None:
    """Checks that a change of a byte at each place is refused, and restores the file."""
    stored = path.read_bytes()
    try:
        for at in places:
            changed = bytearray(stored)
            changed[at] ^= 0x10
            path.write_bytes(changed)
            with pytest.raises(IcebergError) as caught:
                read()
            assert isinstance(caught.value, CorruptFileError), (path, at, caught.value)
            assert path.name in str(caught.value)
    finally:
        path.write_bytes(stored)


@pytest.mark.parametrize("file_format", _FORMATS)
def test_damage_of_any_file_is_refused(tmp_path: Path, file_format: str) -> None:
    table = _with_all_kinds(tmp_path, file_format)
    head = table.current_snapshot()
    assert head is not None
    assert head.manifest_list is not None
    streams = [
        head.manifest_list,
        *(manifest.manifest_path for manifest in _manifests(table)),
        *(f.file_path for f in _files(table) if f.file_format is not FileFormat.PARQUET),
    ]

    def read() -> None:
        # Deletes that were read before are kept.
        DELETES.clear()
        again = catalog_with_keys(tmp_path).load_table("db.t")
        assert ids_of(again) == [3, 4, 5, 6, 8]

    for location in dict.fromkeys(streams):
        path = Path(location)
        _damage_each(path, some(range(path.stat().st_size), 6), read)


def test_damage_of_parquet_files_never_gives_other_rows(tmp_path: Path) -> None:
    table = encrypted_table(tmp_path)
    table.append(rows(*range(50)))
    expected = table.scan().to_arrow()
    (file,) = _files(table)
    path, refused = Path(file.file_path), 0
    stored = path.read_bytes()
    for at in some(range(len(stored)), 60):
        changed = bytearray(stored)
        changed[at] ^= 0x10
        path.write_bytes(changed)
        try:
            # Page indexes are not read.
            assert table.scan().to_arrow() == expected
        except CorruptFileError:
            refused += 1
    assert refused > 10


@pytest.mark.parametrize("file_format", _FORMATS)
def test_files_that_took_the_place_of_others_are_refused(tmp_path: Path, file_format: str) -> None:
    table = encrypted_table(tmp_path, **{"write.format.default": file_format})
    table.append(rows(1))
    table.append(rows(2))
    pairs = [
        [file.file_path for file in _files(table)],
        [manifest.manifest_path for manifest in _manifests(table)],
        [str(snapshot.manifest_list) for snapshot in table.snapshots()],
    ]
    for one, other in pairs:
        stored = Path(one).read_bytes(), Path(other).read_bytes()
        Path(one).write_bytes(stored[1])
        Path(other).write_bytes(stored[0])
        with pytest.raises(CorruptFileError, match=r"cannot be decrypted"):
            ids_of(catalog_with_keys(tmp_path).load_table("db.t"))
        Path(one).write_bytes(stored[0])
        Path(other).write_bytes(stored[1])
    assert ids_of(table) == [1, 2]


def test_a_file_that_has_lost_its_key_is_a_fault(tmp_path: Path) -> None:
    table = encrypted_table(tmp_path)
    table.append(rows(1))
    path = Path(table.metadata_location.removeprefix("file:"))
    document = json.loads(path.read_text())
    del document["snapshots"][0]["key-id"]
    path.write_text(json.dumps(document))
    found = catalog_with_keys(tmp_path).load_table("db.t").verify()
    (finding,) = found.findings
    assert finding.kind == "damaged-file"
    text = " ".join(str(found).split())
    assert "is encrypted, but what lists it has no key for it" in text
    assert "1 fault and 0 notes: damaged-file 1" in text


def test_a_snapshot_whose_key_is_missing_is_refused(tmp_path: Path) -> None:
    table = encrypted_table(tmp_path)
    table.append(rows(1))
    state = table._state
    lost = replace(state, metadata=replace(state.metadata, encryption_keys=()))
    snapshot = state.metadata.current_snapshot()
    assert snapshot is not None
    assert snapshot.key_id is not None
    with pytest.raises(InvalidMetadataError, match=re.escape(snapshot.key_id)):
        read_snapshot_manifests(lost.io, snapshot)
    other = tuple(key for key in state.metadata.encryption_keys if key.key_id != snapshot.key_id)
    lost = replace(state, metadata=replace(state.metadata, encryption_keys=other))
    with pytest.raises(InvalidMetadataError, match=re.escape(snapshot.key_id)):
        read_snapshot_manifests(lost.io, snapshot)


def test_keys_are_in_tasks_only_and_never_in_texts(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        table = _with_all_kinds(tmp_path)
        secrets = [key.encryption_key for key in _keys(table)]
        snapshot, plan = plan_read(table._state, parse_read_options({}))
        groups = plan_task_groups(parse_read_options({}), table._state, snapshot, plan)
        ids_of(table)
    texts = [
        caplog.text,
        *(repr(each) for each in (groups, plan, table._state, _files(table), _manifests(table))),
        table._state.metadata_location and Path(table._state.metadata_location).read_text(),
        *(str(table.inspect.files().to_pylist()) for _ in range(1)),
    ]
    for secret in secrets:
        for text in texts:
            assert repr(secret)[2:-1] not in text
            assert secret.hex() not in text
    # What all tasks share has no key, nor what asks the key service.
    shared = pickle.dumps(plan)
    assert not any(secret in shared for secret in secrets)
    assert b"key_services" not in shared
    in_tasks = pickle.dumps(groups)
    files = {file.key_metadata for file in _files(table)}
    assert all(key is not None and key in in_tasks for key in files)


def test_a_packed_scan_has_its_tasks_encrypted(tmp_path: Path) -> None:
    table = _with_all_kinds(tmp_path)
    scan_key = bytes(range(32))
    for options in (table.scan()._read_options(None), table.changes()._read_options(None)):
        snapshot, plan = plan_read(table._state, options)
        groups = plan_task_groups(options, table._state, snapshot, plan)
        assert any(map(has_keys, groups))
        packed = pack_scan(plan, groups, scan_key)
        for group in groups:
            assert pack_task_group(group) not in packed
        for key in _keys(table):
            assert key.encryption_key not in packed
        # Nor what asks the key service.
        assert b"key_services" not in packed
        found, packed_groups = unpack_scan(packed, scan_key)
        assert found == plan
        assert list(map(unpack_task_group, packed_groups)) == groups
        with pytest.raises(InvalidOptionError, match="it is of another process"):
            unpack_scan(packed, bytes(32))
        with pytest.raises(InvalidOptionError, match="a packed scan holds a"):
            unpack_scan(packed)
    with pytest.raises(ValueError, match="packed with a key"):
        pack_scan(plan, groups)


def test_metadata_tables_are_read_and_show_no_keys(tmp_path: Path) -> None:
    table = _with_all_kinds(tmp_path)
    inspect = table.inspect
    assert len(inspect.files()) == len(_files(table))
    assert inspect.files()["key_metadata"].null_count == len(_files(table))
    assert len(inspect.manifests()) == len(_manifests(table))
    assert inspect.all_manifests()["key_metadata"].null_count == len(inspect.all_manifests())
    assert len(inspect.position_deletes()) >= 1


@pytest.mark.parametrize("is_shredded", ["false", "true"])
def test_variants_are_encrypted_annotated_and_read(tmp_path: Path, is_shredded: str) -> None:
    schema = Schema((NestedField(1, "id", LONG), NestedField(2, "v", VARIANT)))
    shredded = {"write.parquet.shred-variants": is_shredded}
    table = encrypted_table(tmp_path, schema, **shredded)
    value = ("object", {"a": ("int8", 7), "b": ("string", MARKER)})
    names = sorted(names_of(value))
    stored = {"metadata": encode_metadata(names), "value": encode(value, names)}
    arrow = pa.table(
        [pa.array([1, 2]), pa.array([stored, None], schema_to_arrow(schema).field("v").type)],
        schema=schema_to_arrow(schema),
    )
    table.append(arrow)
    read = catalog_with_keys(tmp_path).load_table("db.t").scan().to_arrow().to_pylist()
    assert [row["v"] is None for row in read] == [False, True]
    found = decode(read[0]["v"]["value"], decode_metadata(read[0]["v"]["metadata"]))
    assert same(found) == same(value)
    (file,) = _files(table)
    assert file.key_metadata is not None
    key = parse_key_metadata(file.key_metadata, "f")
    properties = pe.create_decryption_properties(key.encryption_key, aad_prefix=key.aad_prefix)
    footer = pq.read_metadata(file.file_path, decryption_properties=properties)
    assert "Variant" in str(footer.schema)
    assert MARKER.encode() not in Path(file.file_path).read_bytes()
