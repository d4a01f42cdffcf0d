"""Manifests as columns: decoded side by side or one by one, always with one result."""

from __future__ import annotations

import gc
import random
import tracemalloc
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from corpus import corpus_dir, corpus_tables
from effort import examples
from hypothesis import HealthCheck, given, strategies as st
from manifest_cases import (
    ONE_BY_ONE,
    PARTITION_TYPES,
    SIDE_BY_SIDE,
    Encoding,
    blocks_of,
    comparable,
    container,
    encode,
    encoded,
    entries_of,
    entry_record,
    java_schema,
    like_java,
    renamed,
    store,
    table,
)

from icebergds.errors import UnsupportedFeatureError
from icebergds.formats.arrow.types import to_arrow
from icebergds.formats.manifests import decoder
from icebergds.formats.manifests.layout import CAN_BE_LEFT_OUT, DATA_FILE_IDS
from icebergds.formats.manifests.manifest import read_manifest, write_manifest
from icebergds.formats.manifests.manifest_list import read_snapshot_manifests
from icebergds.formats.manifests.reader import (
    EntryColumns,
    read_manifest_columns,
)
from icebergds.formats.wrong_counts import WrongCounts
from icebergds.io.fileio import FileIO
from icebergds.spec.json.metadata import parse_metadata
from icebergds.spec.manifest import (
    FileFormat,
    ManifestContent,
    ManifestEntryStatus,
    ManifestFile,
)
from icebergds.spec.partition import partition_type
from icebergds.spec.schema import Schema
from icebergds.spec.types import StructType

IO = FileIO()


def both_ways(manifest: ManifestFile, *args: Any, **options: Any) -> EntryColumns:
    """The columns, which must be the same by either way."""
    fast = read_manifest_columns(IO, manifest, *args, few_entries=SIDE_BY_SIDE, **options)
    slow = read_manifest_columns(IO, manifest, *args, few_entries=ONE_BY_ONE, **options)
    assert comparable(fast) == comparable(slow)
    # As text: a partition may hold NaN, which does not equal itself.
    assert [repr(astuple(e)) for e in fast.entries()] == [repr(astuple(e)) for e in slow.entries()]
    return fast


@pytest.fixture
def only_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails the test if an entry is decoded one by one."""

    def refuse(*_: Any) -> list[Any]:
        raise AssertionError("decoded one by one")

    monkeypatch.setattr(decoder, "read_records", refuse)


@given(data=st.data(), format_version=st.sampled_from([1, 2, 3]), deletes=st.booleans())
@examples(60, suppress_health_check=list(HealthCheck))
def test_written_manifests_read_alike_by_both_ways(
    tmp_path_factory: pytest.TempPathFactory,
    data: st.DataObject,
    format_version: int,
    deletes: bool,
) -> None:
    content = ManifestContent(deletes and format_version > 1)
    types = data.draw(st.lists(st.sampled_from(PARTITION_TYPES), max_size=4))
    schema, spec = table(types)
    partition = partition_type(spec, schema)
    entries = data.draw(st.lists(entries_of(partition, content), max_size=12))
    written = write_manifest(
        entries, spec, schema, format_version=format_version, content=content, inherit=()
    )
    path = tmp_path_factory.mktemp("manifest") / "m.avro"
    manifest = store(path, written, content=content, added_snapshot_id=1)
    stats_ids = data.draw(st.none() | st.frozensets(st.integers(1, 200), max_size=4))
    columns = both_ways(manifest, {0: spec}, schema, stats_ids=stats_ids, live_only=False)
    assert [column.type for column in columns.partition] == [to_arrow(t) for t in types]
    found = columns.entries()
    assert [entry.status for entry in found] == [entry.status for entry in entries]
    for entry, original in zip(found, entries, strict=True):
        assert entry.data_file.file_path == original.data_file.file_path
        assert entry.data_file.file_format == original.data_file.file_format
        assert entry.data_file.partition == original.data_file.partition
        for name in ("value_counts", "null_value_counts", "lower_bounds", "upper_bounds"):
            stored = getattr(original.data_file, name)
            wanted = {k: v for k, v in stored.items() if stats_ids is None or k in stats_ids}
            assert getattr(entry.data_file, name) == wanted
        if format_version == 3 and stats_ids is None and not deletes:
            assert entry == original


@pytest.mark.usefixtures("only_side_by_side")
@pytest.mark.parametrize("block_size", [1, 7, 64, 1000])
@pytest.mark.parametrize("how", [Encoding(), Encoding(sized=True), Encoding(3), Encoding(3, True)])
def test_blocks_and_arrays_may_be_cut_anywhere(
    tmp_path: Path, block_size: int, how: Encoding
) -> None:
    entries = [like_java(n) for n in range(150)]
    data = container(java_schema(), blocks_of(encoded(entries, how=how), block_size))
    manifest = store(tmp_path / "m.avro", data, added_snapshot_id=1)
    for stats_ids in (None, frozenset[int](), frozenset({2, 3})):
        columns = read_manifest_columns(IO, manifest, stats_ids=stats_ids, few_entries=SIDE_BY_SIDE)
        assert len(columns) == 150
    assert read_manifest(IO, manifest) == entries


@pytest.mark.usefixtures("only_side_by_side")
def test_paths_need_not_be_alike(tmp_path: Path) -> None:
    draw = random.Random(5)
    entries = [
        renamed(like_java(n), file_path="".join(draw.choices("abcxyz:/é漢", k=draw.randrange(90))))
        for n in range(100)
    ]
    manifest = store(
        tmp_path / "m.avro", container(java_schema(), [encoded(entries)]), added_snapshot_id=1
    )
    assert read_manifest(IO, manifest) == entries


@pytest.mark.usefixtures("only_side_by_side")
def test_formats_may_be_mixed_and_in_any_case(tmp_path: Path) -> None:
    formats = ["PARQUET", "parquet", "avro", "AVRO", "orc", "ORC", "puffin", "PUFFIN"]
    records = [entry_record(like_java(n), StructType(())) for n in range(64)]
    for number, record in enumerate(records):
        record["data_file"]["file_format"] = formats[number % 8]
    data = container(java_schema(), [[encode(java_schema(), record) for record in records]])
    manifest = store(tmp_path / "m.avro", data, added_snapshot_id=1)
    expected = [FileFormat(formats[n % 8].lower()) for n in range(64)]
    assert [entry.data_file.file_format for entry in read_manifest(IO, manifest)] == expected


@pytest.mark.usefixtures("only_side_by_side")
def test_what_looks_like_a_format_elsewhere_misleads_nobody(tmp_path: Path) -> None:
    """Bounds and paths that hold a format's name after its length, in every other entry."""
    entries = [
        renamed(
            like_java(n),
            lower_bounds={1: b"PARQUET", 2: b"parquet"} if n % 2 else {3: b"\x0ePARQUET" * 9},
            file_path=f"s3://b/\x0ePARQUET/{n}" if n % 3 else f"s3://b/{n}\x0ePARQUET",
            referenced_data_file="\x0ePARQUET",
        )
        for n in range(90)
    ]
    data = container(java_schema(), blocks_of(encoded(entries), 40))
    manifest = store(tmp_path / "m.avro", data, added_snapshot_id=1)
    assert read_manifest(IO, manifest) == entries


def test_a_block_that_cannot_be_proved_is_decoded_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unknown format in one block of five: that block alone takes the slow way."""
    records = [entry_record(like_java(n), StructType(())) for n in range(100)]
    records[50]["data_file"]["file_format"] = "lance"
    blocks = blocks_of([encode(java_schema(), record) for record in records], 20)
    manifest = store(tmp_path / "m.avro", container(java_schema(), blocks), added_snapshot_id=1)
    slow_blocks: list[int] = []
    read_records = decoder.read_records

    def counting(count: int, *args: Any) -> list[Any]:
        slow_blocks.append(count)
        return read_records(count, *args)

    monkeypatch.setattr(decoder, "read_records", counting)
    with pytest.raises(UnsupportedFeatureError, match="lance"):
        read_manifest(IO, manifest)
    assert slow_blocks == [20]


@pytest.mark.usefixtures("only_side_by_side")
def test_the_schema_may_order_fields_and_unions_otherwise_and_hold_others(tmp_path: Path) -> None:
    draw = random.Random(11)
    schema = scrambled(java_schema(3), draw)
    entries = [renamed(like_java(n), first_row_id=n * 10, content_offset=None) for n in range(60)]
    records = [entry_record(entry, StructType(())) for entry in entries]
    for record in records:
        record["extra"] = {"name": "x" * draw.randrange(9), "weights": [0.5] * draw.randrange(4)}
    data = container(schema, [[encode(schema, record) for record in records]])
    manifest = store(tmp_path / "m.avro", data, added_snapshot_id=1)
    assert read_manifest(IO, manifest) == entries


def scrambled(schema: Any, draw: random.Random) -> Any:
    """Fields and union branches in another order, one more field in between."""
    match schema:
        case {"type": "record", "fields": fields}:
            fields = [{**field, "type": scrambled(field["type"], draw)} for field in fields]
            # Key and value of a map stay where they are.
            if fields and fields[0]["name"] != "key":
                draw.shuffle(fields)
            if schema["name"] == "manifest_entry":
                fields.insert(1, {"name": "extra", "type": _EXTRA, "field-id": 9999})
            return {**schema, "fields": fields}
        case ["null", other]:
            return [scrambled(other, draw), "null"]
        case {"type": "array", "items": items}:
            return {**schema, "items": scrambled(items, draw)}
        case _:
            return schema


_EXTRA = [
    "null",
    {
        "type": "record",
        "name": "extra",
        "fields": [
            {"name": "name", "type": "string"},
            {"name": "weights", "type": {"type": "array", "items": "double"}},
        ],
    },
]


@pytest.mark.usefixtures("only_side_by_side")
def test_fields_without_ids_are_found_by_name(tmp_path: Path) -> None:
    schema = without_ids(java_schema())
    entries = [like_java(n) for n in range(40)]
    data = container(schema, [encoded(entries, schema)])
    manifest = store(tmp_path / "m.avro", data, added_snapshot_id=1)
    assert read_manifest(IO, manifest) == entries


def test_fields_with_ids_are_not_found_by_name(tmp_path: Path) -> None:
    schema = java_schema()
    fields = schema["fields"][-1]["type"]["fields"]
    for field in fields:
        if field["name"] in ("record_count", "file_size_in_bytes"):
            swapped = {"record_count": "file_size_in_bytes", "file_size_in_bytes": "record_count"}
            field["name"] = swapped[field["name"]]
    entry = like_java(1)
    data = container(schema, [encoded([entry], schema)])
    manifest = store(tmp_path / "m.avro", data, added_snapshot_id=1)
    [found] = read_manifest(IO, manifest)
    assert found.data_file.record_count == entry.data_file.file_size_in_bytes


def without_ids(schema: Any) -> Any:
    match schema:
        case dict():
            return {k: without_ids(v) for k, v in schema.items() if not k.endswith("-id")}
        case list():
            return [without_ids(part) for part in schema]
        case _:
            return schema


def test_an_empty_manifest_has_no_entries(tmp_path: Path) -> None:
    for blocks in ([], [[]]):
        manifest = store(tmp_path / "m.avro", container(java_schema(), blocks))
        assert len(both_ways(manifest)) == 0
        assert len(both_ways(manifest, stats_ids=frozenset({1}))) == 0


def test_wide_maps_and_long_numbers(tmp_path: Path) -> None:
    """Ids and numbers of every length, and maps of different sizes side by side."""
    draw = random.Random(3)
    ids = [1, 63, 64, 8191, 8192, 2**20, 2**27, 2_147_483_546]
    numbers = [0, 1, -1, 63, 64, 2**13, 2**20, 2**34, 2**48, 2**55, 2**56, 2**62, -(2**63)]
    entries = [
        renamed(
            like_java(n),
            value_counts={i: draw.choice(numbers) for i in draw.sample(ids, draw.randrange(9))},
            null_value_counts={i: draw.choice(numbers) for i in range(1, draw.choice((2, 700)))},
            lower_bounds={i: bytes(draw.choice((0, 63, 64, 9000))) for i in draw.sample(ids, 5)},
            record_count=draw.choice(numbers),
        )
        for n in range(50)
    ]
    data = container(java_schema(), [encoded(entries)])
    manifest = store(tmp_path / "m.avro", data, added_snapshot_id=1)
    both_ways(manifest, stats_ids=frozenset(ids))
    assert both_ways(manifest).entries() == entries


def test_all_records_alike(tmp_path: Path) -> None:
    entries = [like_java(1)] * 40
    data = container(java_schema(), [encoded(entries)])
    manifest = store(tmp_path / "m.avro", data, added_snapshot_id=1)
    both_ways(manifest, stats_ids=frozenset({1, 2, 99}))
    assert both_ways(manifest).entries() == entries


def test_the_last_of_equal_keys_wins(tmp_path: Path) -> None:
    records = [entry_record(like_java(n), StructType(())) for n in range(40)]
    for n, record in enumerate(records):
        record["data_file"]["value_counts"] = [
            {"key": 1, "value": n},
            {"key": 1, "value": n + 1},
        ]
    data = container(java_schema(), [[encode(java_schema(), record) for record in records]])
    manifest = store(tmp_path / "m.avro", data, added_snapshot_id=1)
    columns = both_ways(manifest, stats_ids=frozenset({1}))
    assert columns.stats[1].value_count.to_pylist() == list(range(1, 41))
    assert both_ways(manifest).entries()[0].data_file.value_counts == {1: 1}


def test_statistics_of_unwanted_columns_are_left_out(tmp_path: Path) -> None:
    data = container(java_schema(), [encoded([like_java(n) for n in range(40)])])
    manifest = store(tmp_path / "m.avro", data, added_snapshot_id=1)
    columns = both_ways(manifest, stats_ids=frozenset({2, 77}))
    assert set(columns.stats) == {2, 77}
    assert columns.stats[77].lower_bound.null_count == 40
    assert columns.stats[2].value_count.type == pa.int64()
    assert columns.stats[2].lower_bound.type == pa.binary()
    file = columns.entries()[3].data_file
    original = like_java(3).data_file
    assert file.lower_bounds == {2: original.lower_bounds[2]}
    assert file.column_sizes == {}


def test_fields_that_are_left_out_are_null_and_all_others_as_they_were(tmp_path: Path) -> None:
    data = container(java_schema(), [encoded([like_java(n) for n in range(40)])])
    manifest = store(tmp_path / "m.avro", data, added_snapshot_id=1)
    whole = read_manifest_columns(IO, manifest)
    columns = both_ways(manifest, left_out=CAN_BE_LEFT_OUT)
    left_out = {name for name, field_id in DATA_FILE_IDS.items() if field_id in CAN_BE_LEFT_OUT}
    assert len(left_out) == len(CAN_BE_LEFT_OUT)
    for name in left_out:
        assert getattr(columns, name).null_count == 40
    restored = replace(columns, **{name: getattr(whole, name) for name in left_out})
    assert comparable(restored) == comparable(whole)


@pytest.mark.usefixtures("only_side_by_side")
def test_entries_are_found_in_blocks_of_any_size(tmp_path: Path) -> None:
    entries = [renamed(like_java(n), file_path=f"s3://b/{'x' * n}") for n in range(1200)]
    data = container(java_schema(), [encoded(entries)])
    manifest = store(tmp_path / "m.avro", data, added_snapshot_id=1)
    assert read_manifest(IO, manifest) == entries


def test_take_and_filter_keep_what_belongs_together(tmp_path: Path) -> None:
    entries = [like_java(n) for n in range(100)]
    data = container(java_schema(), [encoded(entries)])
    manifest = store(tmp_path / "m.avro", data, added_snapshot_id=1)
    columns = read_manifest_columns(IO, manifest)
    chosen = columns.take(np.array([70, 3]))
    assert chosen.entries() == [entries[70], entries[3]]
    mask = pa.array([n % 2 == 0 if n % 3 else None for n in range(100)])
    left = columns.filter(mask)
    assert len(left) == sum(n % 2 == 0 and n % 3 != 0 for n in range(100))
    assert left.entries() == [entries[n] for n in range(100) if n % 2 == 0 and n % 3]
    assert len(columns.filter(np.zeros(100, np.bool_))) == 0


def test_deleted_entries_are_left_out_unless_asked_for(tmp_path: Path) -> None:
    entries = [replace(like_java(n), status=ManifestEntryStatus(n % 3)) for n in range(60)]
    data = container(java_schema(), [encoded(entries)])
    manifest = store(tmp_path / "m.avro", data, added_snapshot_id=1)
    live = read_manifest_columns(IO, manifest)
    assert live.entries() == [e for e in entries if e.status is not ManifestEntryStatus.DELETED]
    assert len(read_manifest_columns(IO, manifest, live_only=False)) == 60


def test_entries_share_what_they_have_in_common(tmp_path: Path) -> None:
    entries = [renamed(like_java(n), split_offsets=(4, 10**9)) for n in range(20)]
    data = container(java_schema(), blocks_of(encoded(entries), 50))
    manifest = store(tmp_path / "m.avro", data, added_snapshot_id=10**15)
    read = read_manifest_columns(IO, manifest, stats_ids=frozenset()).entries()
    files = [entry.data_file for entry in read]
    assert len({id(file.split_offsets) for file in files}) == 1
    assert len({id(entry.snapshot_id) for entry in read}) == 1
    assert len({id(file.partition) for file in files}) == len({file.partition for file in files})
    assert len({id(file.lower_bounds) for file in files}) == 1


def test_what_is_taken_holds_no_buffers_of_the_rest(tmp_path: Path) -> None:
    entries = [renamed(like_java(n), lower_bounds={1: bytes(20_000)}) for n in range(200)]
    data = container(java_schema(), blocks_of(encoded(entries), 50))
    manifest = store(tmp_path / "m.avro", data, added_snapshot_id=1)
    read_manifest_columns(IO, manifest)
    gc.collect()
    before = pa.total_allocated_bytes()
    tracemalloc.start()
    taken = read_manifest_columns(IO, manifest).take(np.array([5]))
    gc.collect()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(taken) == 1
    assert pa.total_allocated_bytes() - before < 100_000
    assert held < 200_000


@pytest.mark.parametrize("entry", corpus_tables(), ids=lambda entry: entry["id"])
def test_manifests_of_other_writers_read_alike_by_both_ways(entry: dict[str, Any]) -> None:
    corpus = corpus_dir()
    mapping = {r["prefix"]: str(corpus / r["replace_with"]) for r in entry["resolve"]}
    io = FileIO(location_map=mapping)
    metadata = parse_metadata((corpus / entry["metadata"]).read_bytes(), entry["metadata"])
    some = frozenset(range(1, 50, 2))
    for snapshot in metadata.snapshots:
        for manifest in manifests_there(io, snapshot):
            for stats_ids in (None, some):
                fast, slow = (
                    read_manifest_columns(
                        io,
                        manifest,
                        metadata.specs_by_id,
                        metadata.schema(),
                        history=metadata.schemas,
                        stats_ids=stats_ids,
                        live_only=False,
                        few_entries=few,
                        wrong_counts=WrongCounts.WARN,
                    )
                    for few in (SIDE_BY_SIDE, ONE_BY_ONE)
                )
                assert comparable(fast) == comparable(slow)


def manifests_there(io: FileIO, snapshot: Any) -> list[ManifestFile]:
    """Manifests of a snapshot; old snapshots' files may be gone."""
    if snapshot.manifest_list is not None and not io.exists(snapshot.manifest_list):
        return []
    return [m for m in read_snapshot_manifests(io, snapshot) if io.exists(m.manifest_path)]


def test_schemas_may_be_given_without_specs(tmp_path: Path) -> None:
    data = container(java_schema(), [encoded([like_java(n) for n in range(60)])])
    manifest = store(tmp_path / "m.avro", data, added_snapshot_id=1)
    assert len(read_manifest_columns(IO, manifest, None, Schema(()))) == 60


def test_the_same_bytes_are_decoded_once_for_the_same_statistics(tmp_path: Path) -> None:
    entries = [like_java(n) for n in range(40)]
    data = container(java_schema(), [encoded(entries)])
    manifest = store(tmp_path / "m.avro", data, added_snapshot_id=1)
    first = read_manifest_columns(IO, manifest, stats_ids=frozenset({1}))
    again = read_manifest_columns(IO, manifest, stats_ids=frozenset({1}))
    assert again.file_path is first.file_path
    other = read_manifest_columns(IO, manifest, stats_ids=frozenset({1, 2}))
    assert [sorted(columns.stats) for columns in (first, again, other)] == [[1], [1], [1, 2]]
    inheriting = read_manifest_columns(
        IO, replace(manifest, added_snapshot_id=2), stats_ids=frozenset({1})
    )
    assert inheriting.file_path is not first.file_path


def test_other_bytes_at_the_same_path_are_other_files(tmp_path: Path) -> None:
    for names in (["a", "b"], ["c", "d"], ["a", "b"]):
        entries = [renamed(like_java(n), file_path=name) for n, name in enumerate(names)]
        data = container(java_schema(), [encoded(entries)])
        manifest = store(tmp_path / "m.avro", data, added_snapshot_id=1)
        assert [entry.data_file.file_path for entry in read_manifest(IO, manifest)] == names
