"""Small manifests that are read together: the same as each by itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from corpus import corpus_dir, corpus_tables
from effort import examples
from hypothesis import HealthCheck, given, strategies as st
from manifest_cases import (
    PARTITION_TYPES,
    blocks_of,
    comparable,
    container,
    encoded,
    entries_of,
    java_schema,
    like_java,
    store,
    table,
)

from icebergds.errors import CorruptFileError
from icebergds.formats.manifests.manifest import write_manifest
from icebergds.formats.manifests.manifest_list import read_snapshot_manifests
from icebergds.formats.manifests.reader import (
    EntryColumns,
    read_manifest_columns,
    read_small_manifests,
)
from icebergds.formats.wrong_counts import WrongCounts
from icebergds.io.fileio import FileIO
from icebergds.spec.json.metadata import parse_metadata
from icebergds.spec.manifest import ManifestContent, ManifestFile
from icebergds.spec.partition import PartitionSpec, partition_type
from icebergds.spec.schema import Schema

IO = FileIO()
UNPARTITIONED, NO_COLUMNS = {0: PartitionSpec(0)}, Schema(())


@given(data=st.data())
@examples(60, suppress_health_check=list(HealthCheck))
def test_manifests_read_together_as_each_by_itself(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    directory = tmp_path_factory.mktemp("manifests")
    schema, spec = table(data.draw(st.lists(st.sampled_from(PARTITION_TYPES), max_size=3)))
    versions = data.draw(st.lists(st.sampled_from([1, 2, 3]), min_size=1, max_size=6))
    manifests = []
    for number, version in enumerate(versions):
        entries = data.draw(
            st.lists(entries_of(partition_type(spec, schema), ManifestContent.DATA), max_size=8)
        )
        # What is null for added files is inherited from the manifest, of which each has its own.
        written = write_manifest(
            entries, spec, schema, format_version=version, content=ManifestContent.DATA
        )
        manifests.append(
            store(
                directory / f"{number}.avro",
                written,
                added_snapshot_id=number,
                sequence_number=10 * number,
                first_row_id=1000 * number,
            )
        )
    options: dict[str, Any] = {
        "stats_ids": data.draw(st.none() | st.frozensets(st.integers(1, 200), max_size=4)),
        "live_only": data.draw(st.booleans()),
    }
    together = read_small_manifests(IO, manifests, {0: spec}, schema, **options)
    alone = [read_manifest_columns(IO, m, {0: spec}, schema, **options) for m in manifests]
    assert list(map(comparable, together)) == list(map(comparable, alone))
    of_one_type = [
        columns for columns in alone if columns.partition_type == alone[0].partition_type
    ]
    assert [repr(entry) for entry in EntryColumns.concat(of_one_type).entries()] == [
        repr(entry) for columns in of_one_type for entry in columns.entries()
    ]


def test_manifests_of_unlike_schemas_may_be_mixed(tmp_path: Path) -> None:
    manifests = [
        _stored(tmp_path / f"{number}.avro", 40 * number, 40, version=1 + number % 2)
        for number in range(6)
    ]
    found = read_small_manifests(IO, manifests, UNPARTITIONED, NO_COLUMNS)
    expected = [
        [like_java(n).data_file.file_path for n in range(at, at + 40)] for at in range(0, 240, 40)
    ]
    assert [columns.file_path.to_pylist() for columns in found] == expected


@pytest.mark.parametrize("entry", corpus_tables(), ids=lambda entry: entry["id"])
def test_manifests_of_other_writers_read_together_as_each_by_itself(entry: dict[str, Any]) -> None:
    corpus = corpus_dir()
    mapping = {r["prefix"]: str(corpus / r["replace_with"]) for r in entry["resolve"]}
    io = FileIO(location_map=mapping)
    metadata = parse_metadata((corpus / entry["metadata"]).read_bytes(), entry["metadata"])
    tables = metadata.specs_by_id, metadata.schema()
    options: dict[str, Any] = {"history": metadata.schemas, "wrong_counts": WrongCounts.WARN}
    for snapshot in metadata.snapshots:
        if snapshot.manifest_list is None or not io.exists(snapshot.manifest_list):
            continue
        listed = read_snapshot_manifests(io, snapshot)
        manifests = [manifest for manifest in listed if io.exists(manifest.manifest_path)]
        together = read_small_manifests(io, manifests, *tables, **options)
        alone = [read_manifest_columns(io, one, *tables, **options) for one in manifests]
        assert list(map(comparable, together)) == list(map(comparable, alone))


def test_an_empty_manifest_among_others_has_no_entries(tmp_path: Path) -> None:
    manifests = [_stored(tmp_path / f"{n}.avro", 0, count) for n, count in enumerate((5, 0, 3))]
    found = read_small_manifests(IO, manifests, UNPARTITIONED, NO_COLUMNS)
    assert list(map(len, found)) == [5, 0, 3]


def test_none_are_no_columns() -> None:
    assert read_small_manifests(IO, [], UNPARTITIONED, NO_COLUMNS) == []


@pytest.mark.parametrize("damaged", [0, 1, 2])
def test_the_error_names_the_damaged_one(tmp_path: Path, damaged: int) -> None:
    manifests = [_stored(tmp_path / f"{n}.avro", 0, 50) for n in range(3)]
    entries = encoded([like_java(n) for n in range(50)])
    entries[20] = entries[20][:-9]
    path = tmp_path / f"{damaged}.avro"
    manifests[damaged] = store(path, container(java_schema(), [entries]), added_snapshot_id=1)
    with pytest.raises(CorruptFileError, match=f"{damaged}.avro"):
        read_small_manifests(IO, manifests, UNPARTITIONED, NO_COLUMNS)


def _stored(path: Path, first: int, count: int, version: int = 2) -> ManifestFile:
    entries = [like_java(number) for number in range(first, first + count)]
    schema = java_schema(version)
    data = container(schema, blocks_of(encoded(entries, schema), 16))
    return store(path, data, added_snapshot_id=1)
