"""What planning opens, keeps, refuses, and how it says what is wrong."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from built.files import ids_in
from built.scans import task_groups_of
from built.tables import TableBuilder

from icebergds.api.table import load_table
from icebergds.encryption.key_metadata import new_key_metadata
from icebergds.errors import (
    CorruptFileError,
    IcebergError,
    InvalidMetadataError,
    MissingFileError,
    UnsupportedFeatureError,
)
from icebergds.expr.bind import bind
from icebergds.expr.nodes import FALSE, TRUE, Expr
from icebergds.expr.sql import parse_filter
from icebergds.formats.manifests.manifest_list import read_snapshot_manifests, write_manifest_list
from icebergds.scan.plan.files import PlannedFile, plan_files
from icebergds.scan.plan.splits import SplitOptions
from icebergds.spec.manifest import (
    DataFile,
    FieldSummary,
    ManifestContent,
    ManifestFile,
)
from icebergds.spec.partition import PartitionField, PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.transforms import (
    BucketTransform,
    IdentityTransform,
    TruncateTransform,
    VoidTransform,
)
from icebergds.spec.types import DOUBLE, INT, LONG, STRING, NestedField
from icebergds.spec.values.binary import to_bytes

_SCHEMA = Schema(
    (NestedField(1, "id", LONG), NestedField(2, "name", STRING), NestedField(3, "day", INT))
)
_BY_DAY = PartitionSpec(0, (PartitionField((3,), 1000, IdentityTransform(), "day"),))


@pytest.fixture
def by_day(tmp_path: Path) -> TableBuilder:
    """A commit for each of the days 1, 2 and 3, of one row each."""
    table = TableBuilder(tmp_path / "t", _SCHEMA, spec=_BY_DAY)
    for day in (1, 2, 3):
        table.commit(_day_file(table, day), with_summaries=True)
    return table


# Pruning.


def test_manifests_outside_of_the_filter_are_not_opened(by_day: TableBuilder) -> None:
    for manifest in _manifests(by_day):
        if manifest.partitions[0].lower_bound != to_bytes(INT, 2):
            Path(manifest.manifest_path).unlink()
    assert [_day_of(file) for file in _plan(by_day, "day = 2")] == [2]
    with pytest.raises(MissingFileError):
        _plan(by_day)


def test_delete_manifests_outside_of_the_filter_are_not_opened(by_day: TableBuilder) -> None:
    by_day.commit(by_day.equality_deletes(["id"], [(3,)], partition=(3,)), with_summaries=True)
    (deletes,) = [m for m in _manifests(by_day) if m.content is ManifestContent.DELETES]
    Path(deletes.manifest_path).unlink()
    assert len(_plan(by_day, "day < 3")) == 2
    with pytest.raises(MissingFileError):
        _plan(by_day, "day = 3")


def test_manifests_are_judged_by_the_spec_that_they_were_written_with(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t", _SCHEMA, spec=_BY_DAY)
    table.commit(_day_file(table, 1), _day_file(table, 2), with_summaries=True)
    width = TruncateTransform(10)
    table.evolve(spec=PartitionSpec(1, (PartitionField((1,), 1001, width, "id_trunc"),)))
    table.commit(
        table.data_file([(15, "x", 1)], partition=(10,)),
        table.data_file([(25, "x", 2)], partition=(20,)),
        with_summaries=True,
    )
    assert _ids(_plan(table, "id = 15")) == [15]
    assert _ids(_plan(table, "day = 1")) == [1, 15]
    # Nothing but the partition tells in these.
    without = [replace(f, **_no_metrics()) for f in _files(table)]
    table.commit(*without, removed=_files(table))
    assert _ids(_plan(table, "id = 15")) == [1, 2, 15]
    assert _ids(_plan(table, "day = 1")) == [1, 15, 25]


def test_manifests_of_removed_files_alone_are_not_opened(by_day: TableBuilder) -> None:
    by_day.commit(_day_file(by_day, 4), removed=_files(by_day))
    for manifest in _manifests(by_day):
        if manifest.deleted_files_count:
            Path(manifest.manifest_path).unlink()
    assert [_day_of(file) for file in _plan(by_day)] == [4]


def test_manifests_of_unknown_counts_are_opened(by_day: TableBuilder) -> None:
    _edit_manifests(
        by_day,
        lambda m: replace(m, added_files_count=None, existing_files_count=None),
        format_version=1,
    )
    assert len(_plan(by_day)) == 3


def test_summaries_that_are_missing_prune_nothing(by_day: TableBuilder) -> None:
    _edit_manifests(by_day, lambda m: replace(m, partitions=()))
    assert [_day_of(file) for file in _plan(by_day, "day = 2")] == [2]


def test_summaries_of_nulls_alone_keep_their_manifest_for_nulls(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t", _SCHEMA, spec=_BY_DAY)
    table.commit(_day_file(table, None), with_summaries=True)
    assert len(_plan(table, "day is null")) == 1
    assert len(_plan(table, "day is null or id = 7")) == 1
    _edit_manifests(table, lambda m: replace(m, partitions=(FieldSummary(False),)))
    Path(_manifests(table)[0].manifest_path).unlink()
    assert _plan(table, "day is null") == []


def test_files_are_pruned_by_partition(by_day: TableBuilder) -> None:
    by_day.commit(_day_file(by_day, 4), _day_file(by_day, 5))
    assert [_day_of(file) for file in _plan(by_day, "day >= 3 and day != 4")] == [3, 5]


def test_files_are_pruned_by_metrics(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t", _SCHEMA)
    table.commit(*(table.data_file([(i, f"n{i}", None), (i + 1, None, 0)]) for i in (0, 10, 20)))
    assert _ids(_plan(table, "id = 11")) == [10]
    assert _ids(_plan(table, "name like 'n2%'")) == [20]
    assert _ids(_plan(table, "id > 20 or name = 'n0'")) == [0, 20]
    assert _plan(table, "name is null and id is null") == []


# More files than are compared with keys at a time.
@pytest.mark.parametrize("filter", [None, "id > 10"])
def test_files_without_metrics_have_the_same_deletes(tmp_path: Path, filter: str | None) -> None:
    table = TableBuilder(tmp_path / "t", _SCHEMA)
    some = [table.data_file([(10 * i, f"n{i}", None)]) for i in range(4)]
    copies = [replace(file, file_path=f"{file.file_path}-{n}") for n in range(100) for file in some]
    table.commit(*copies)
    _delete_keys(table)
    whole, bare = _plan(table, filter), _plan(table, filter, with_metrics=False)
    assert [file.deletes for file in bare] == [file.deletes for file in whole]
    assert {len(file.deletes.equality_deletes) for file in bare} == (
        {0, 1, 2} if filter is None else {1, 2}
    )
    files = [file.entry.data_file for file in whole]
    assert [f.entry.data_file for f in bare] == [replace(file, **_no_metrics()) for file in files]


def test_only_chosen_files_are_returned(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t", _SCHEMA)
    table.commit(*(table.data_file([(10 * i, f"n{i}", None)]) for i in range(4)))
    _delete_keys(table)
    for with_metrics in (True, False):
        chosen = _plan(
            table,
            with_metrics=with_metrics,
            chosen=lambda file: bool(file.deletes.equality_deletes),
        )
        assert _ids(chosen) == [10, 20, 30]


def test_a_filter_that_is_never_true_opens_nothing(by_day: TableBuilder) -> None:
    for manifest in _manifests(by_day):
        Path(manifest.manifest_path).unlink()
    snapshot = by_day.metadata.current_snapshot()
    assert snapshot is not None
    assert snapshot.manifest_list is not None
    Path(snapshot.manifest_list).unlink()
    assert plan_files(by_day.io, by_day.metadata, snapshot, _SCHEMA, FALSE).files == []


def test_a_table_without_rows_plans_nothing(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t", _SCHEMA)
    assert task_groups_of(table.io, table.metadata, None, _SCHEMA, TRUE, SplitOptions()) == []


def test_columns_dropped_from_the_schema_still_partition_old_files(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t", _SCHEMA, spec=_BY_DAY)
    table.commit(_day_file(table, 1), with_summaries=True)
    table.evolve(spec=PartitionSpec(1))
    table.evolve(Schema(_SCHEMA.fields[:2], 1))
    table.commit(table.data_file([(9, "x")]), with_summaries=True)
    assert _ids(_plan(table, "id < 5")) == [1]
    assert load_table(str(table.location)).scan().to_arrow().num_rows == 2


# Deletes.


def test_partition_values_of_dropped_columns_have_their_widest_type(tmp_path: Path) -> None:
    by_n = PartitionSpec(0, (PartitionField((2,), 1000, IdentityTransform(), "n"),))
    narrow = Schema((NestedField(1, "id", INT), NestedField(2, "n", INT)))
    table = TableBuilder(tmp_path, narrow, spec=by_n)
    table.commit(table.data_file([(1, 7)], partition=(7,)))
    table.evolve(schema=Schema((NestedField(1, "id", INT), NestedField(2, "n", LONG)), 1))
    table.commit(table.data_file([(2, 2**40)], partition=(2**40,)))
    table.evolve(schema=Schema((NestedField(1, "id", INT),), 2), spec=PartitionSpec(1))
    partitions = [planned.entry.data_file.partition for planned in _plan(table)]
    assert sorted(partitions) == [(7,), (2**40,)]


def test_deletes_of_another_spec_apply_only_if_global(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t", _SCHEMA, spec=_BY_DAY)
    data_file = _day_file(table, 1)
    table.commit(data_file)
    table.evolve(spec=PartitionSpec(1))
    table.evolve(spec=PartitionSpec(2, (PartitionField((3,), 1001, BucketTransform(1), "bucket"),)))
    elsewhere = table.equality_deletes(["id"], [(1,)], partition=(0,), spec_id=2)
    positions = table.position_deletes(
        {data_file.file_path: [0], "other": [0]}, partition=(0,), spec_id=2
    )
    table.commit(elsewhere, positions)
    (planned,) = _plan(table)
    assert planned.deletes.equality_deletes == planned.deletes.position_deletes == ()
    assert _rows(table) == [1]
    everywhere = table.equality_deletes(["id"], [(1,)], spec_id=1)
    table.commit(everywhere)
    (planned,) = _plan(table)
    assert [e.data_file.file_path for e in planned.deletes.equality_deletes] == [
        everywhere.file_path
    ]
    assert _rows(table) == []


def test_a_spec_of_dropped_fields_alone_is_unpartitioned(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t", _SCHEMA, spec=_BY_DAY)
    table.commit(_day_file(table, 1))
    void = PartitionField((3,), 1000, VoidTransform(), "day")
    table.evolve(spec=PartitionSpec(1, (void,)))
    table.commit(table.equality_deletes(["id"], [(1,)], partition=(None,)))
    assert _rows(table) == []


def test_keys_of_positive_and_negative_zero_partitions_stay_apart(tmp_path: Path) -> None:
    schema = Schema((NestedField(1, "id", LONG), NestedField(2, "d", DOUBLE)))
    spec = PartitionSpec(0, (PartitionField((2,), 1000, IdentityTransform(), "d"),))
    table = TableBuilder(tmp_path / "t", schema, spec=spec)
    for zero in (0.0, -0.0):
        table.commit(table.data_file([(1, zero), (2, zero)], partition=(zero,), with_metrics=False))
    table.commit(
        table.equality_deletes(["id"], [(1,)], partition=(0.0,), with_metrics=False),
        table.equality_deletes(["id"], [(2,)], partition=(-0.0,), with_metrics=False),
    )
    found = load_table(str(table.location)).scan().to_arrow().to_pylist()
    assert sorted((row["id"], str(row["d"])) for row in found) == [(1, "-0.0"), (2, "0.0")]


def test_a_task_names_every_delete_file_once(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t", _SCHEMA)
    files = [table.data_file([(i, "x", 0)] * 2, row_group_size=1) for i in range(5)]
    table.commit(*files)
    table.commit(
        table.position_deletes({file.file_path: [0] for file in files}),
        table.equality_deletes(["id"], [(3,)]),
    )
    table.commit(
        table.equality_deletes(["id"], [(4,)]),
        table.equality_deletes(["name"], [("y",)], with_metrics=False),
    )
    (task_group,) = _task_groups(table, SplitOptions(split_size=10**9, file_open_cost=0))
    assert len(task_group.position_deletes) == 1
    by_ids = {group.equality_ids: len(group.files) for group in task_group.equality_deletes}
    assert by_ids == {(1,): 2, (2,): 1}
    assert all(task.position_deletes == (0,) for task in task_group.tasks)
    assert _rows(table) == [0, 1, 2]


def test_the_keys_of_dropped_columns_travel_with_the_task(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t", _SCHEMA)
    table.commit(table.data_file([(1, "a", 0), (2, "b", 0), (3, None, 0)]))
    table.commit(table.equality_deletes(["name"], [("a",), (None,)]))
    table.evolve(Schema((_SCHEMA.fields[0],), 1))
    assert _rows(table) == [2]


def test_the_weight_of_a_task_counts_its_positions(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t", _SCHEMA)
    files = [table.data_file([(i, "x", 0)] * 2) for i in range(4)]
    table.commit(*files)
    (size,) = {file.file_size_in_bytes for file in _files(table)}
    options = SplitOptions(split_size=2 * size, lookback=10, file_open_cost=0)
    assert [len(task_group.tasks) for task_group in _task_groups(table, options)] == [2, 2]
    table.commit(*(table.position_deletes({file.file_path: [0]}) for file in files))
    assert [len(task_group.tasks) for task_group in _task_groups(table, options)] == [1, 1, 1, 1]


def test_files_that_share_keys_share_tasks(tmp_path: Path) -> None:
    """However many delete files there are: a task reads them once."""
    table = TableBuilder(tmp_path / "t", _SCHEMA)
    table.commit(*(table.data_file([(i, "x", 0)]) for i in range(4)))
    (size,) = {file.file_size_in_bytes for file in _files(table)}
    for _ in range(5):
        table.commit(table.equality_deletes(["id"], [(99,)], with_metrics=False))
    options = SplitOptions(split_size=2 * size, lookback=10, file_open_cost=0)
    assert [len(task_group.tasks) for task_group in _task_groups(table, options)] == [2, 2]


def test_files_of_many_partitions_with_keys_of_their_own_are_kept_apart(tmp_path: Path) -> None:
    """A task holds the keys of all of its partitions."""
    spec = PartitionSpec(0, (PartitionField((1,), 1000, IdentityTransform(), "id"),))
    table = TableBuilder(tmp_path / "t", _SCHEMA, spec=spec)
    table.commit(*(table.data_file([(i, "x", 0)], partition=(i,)) for i in range(4)))
    options = SplitOptions(split_size=10**6, lookback=10, file_open_cost=2 * 10**5)
    assert [len(task_group.tasks) for task_group in _task_groups(table, options)] == [4]
    for i in range(4):
        keys = [table.equality_deletes(["id"], [(i,)], partition=(i,)) for _ in range(2)]
        table.commit(*keys)
    assert [len(task_group.tasks) for task_group in _task_groups(table, options)] == [2, 2]


def test_opening_a_file_has_a_least_weight(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t", _SCHEMA)
    files = [table.data_file([(i, "x", 0)] * 2) for i in range(4)]
    table.commit(*files)
    options = SplitOptions(split_size=10**6, lookback=10, file_open_cost=5 * 10**5)
    assert [len(task_group.tasks) for task_group in _task_groups(table, options)] == [2, 2]
    # Delete files are opened, too.
    table.commit(*(table.position_deletes({file.file_path: [0]}) for file in files))
    assert [len(task_group.tasks) for task_group in _task_groups(table, options)] == [1, 1, 1, 1]


# What cannot be read.

_DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "truncated": lambda data: data[:20],
    "garbage": lambda data: b"garbage!" * (len(data) // 8),
}
_KINDS = ("manifest list", "manifest", "delete manifest", "data", "positions", "keys", "vector")


@pytest.mark.parametrize("kind", _KINDS)
def test_a_missing_file_is_named(tmp_path: Path, kind: str) -> None:
    table, path = _table_with(tmp_path, kind)
    path.unlink()
    with pytest.raises(MissingFileError, match=path.name):
        _rows(table)


@pytest.mark.parametrize("damage", _DAMAGES)
@pytest.mark.parametrize("kind", _KINDS)
def test_a_damaged_file_is_named(tmp_path: Path, kind: str, damage: str) -> None:
    table, path = _table_with(tmp_path, kind)
    path.write_bytes(_DAMAGES[damage](path.read_bytes()))
    with pytest.raises(CorruptFileError, match=path.name):
        _rows(table)


@pytest.mark.parametrize("kind", ["manifest list", "manifest", "delete manifest", "vector"])
def test_a_flipped_byte_raises_no_error_but_ours(tmp_path: Path, kind: str) -> None:
    table, path = _table_with(tmp_path, kind)
    good = path.read_bytes()
    for at in range(0, len(good), max(1, len(good) // 60)):
        path.write_bytes(good[:at] + bytes([good[at] ^ 0xFF]) + good[at + 1 :])
        with suppress(IcebergError):
            _rows(table)
    path.write_bytes(good)
    assert len(_rows(table)) == 47


def test_an_encrypted_manifest_list_is_refused(by_day: TableBuilder) -> None:
    snapshot = by_day.metadata.current_snapshot()
    assert snapshot is not None
    with pytest.raises(UnsupportedFeatureError, match=f"{snapshot.snapshot_id}.*encrypted"):
        plan_files(by_day.io, by_day.metadata, replace(snapshot, key_id="k1"), _SCHEMA)


def test_an_encrypted_manifest_is_refused(by_day: TableBuilder) -> None:
    _edit_manifests(by_day, lambda m: replace(m, key_metadata=b"key"))
    name = Path(_manifests(by_day)[0].manifest_path).name
    with pytest.raises(UnsupportedFeatureError, match=f"{name}.*encrypted"):
        _plan(by_day)


_KINDS_OF_FILES = ("data", "positions", "keys", "vector")


def _with_key_metadata(tmp_path: Path, kind: str, key: bytes | None) -> tuple[TableBuilder, Path]:
    """A table of days 1 and 2; the entry of one file of day 1 has a key or not.

    Of the ids 10, 11 and 12 of day 1, positions or a vector delete 10, and keys delete 11.
    """
    version = 3 if kind == "vector" else 2
    table = TableBuilder(tmp_path / "t", _SCHEMA, spec=_BY_DAY, format_version=version)
    data_file = table.data_file([(number, "x", 1) for number in (10, 11, 12)], partition=(1,))
    if kind == "vector":
        (positions,) = table.deletion_vectors([(data_file, [0])])
    else:
        positions = table.position_deletes({data_file.file_path: [0]}, partition=(1,))
    files = {
        "data": data_file,
        "positions": positions,
        "vector": positions,
        "keys": table.equality_deletes(["id"], [(11,)], partition=(1,)),
    }
    marked = files[kind]
    keyed = {
        name: replace(file, key_metadata=key) if file is marked else file
        for name, file in files.items()
    }
    table.commit(keyed["data"], _day_file(table, 2))
    table.commit(keyed["positions"], keyed["keys"])
    return table, Path(marked.file_path)


@pytest.mark.parametrize("kind", _KINDS_OF_FILES)
def test_plain_files_with_a_key_are_refused(tmp_path: Path, kind: str) -> None:
    key = new_key_metadata(16)
    table, path = _with_key_metadata(tmp_path, kind, key.serialized())
    with pytest.raises(CorruptFileError, match=f"{path.name}.* its key metadata says"):
        _rows(table)
    assert _rows(table, filter="day = 2") == [2]


@pytest.mark.parametrize("kind", _KINDS_OF_FILES)
def test_key_metadata_of_other_kinds_is_refused(tmp_path: Path, kind: str) -> None:
    table, path = _with_key_metadata(tmp_path, kind, b"key")
    with pytest.raises(
        UnsupportedFeatureError, match=f"{path.name} is encrypted with key metadata"
    ):
        _rows(table)


@pytest.mark.parametrize("kind", _KINDS_OF_FILES)
def test_an_encrypted_file_is_refused_where_it_is_needed(tmp_path: Path, kind: str) -> None:
    table, path = _with_key_metadata(tmp_path, kind, None)
    path.write_bytes(b"AGS1" + struct.pack("<i", 1 << 20) + bytes(path.stat().st_size + 20))
    with pytest.raises(UnsupportedFeatureError, match=f"{path.name} is encrypted"):
        _rows(table)
    assert _rows(table, filter="day = 2") == [2]


def test_an_unknown_spec_is_named(by_day: TableBuilder) -> None:
    _edit_manifests(by_day, lambda m: replace(m, partition_spec_id=9))
    name = Path(_manifests(by_day)[0].manifest_path).name
    with pytest.raises(InvalidMetadataError, match=f"{name}.*spec 9"):
        _plan(by_day)


def test_two_vectors_for_one_file_are_refused(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t", _SCHEMA, format_version=3)
    data_file = table.data_file([(1, "x", 0), (2, "x", 0)])
    table.commit(data_file)
    table.commit(*table.deletion_vectors([(data_file, [0])]))
    table.commit(*table.deletion_vectors([(data_file, [1])]))
    with pytest.raises(InvalidMetadataError, match=r"two deletion vectors"):
        _plan(table)


def test_a_vector_of_another_cardinality_is_refused(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t", _SCHEMA, format_version=3)
    data_file = table.data_file([(1, "x", 0), (2, "x", 0)])
    (vector,) = table.deletion_vectors([(data_file, [0])])
    table.commit(data_file, replace(vector, record_count=2))
    with pytest.raises(CorruptFileError, match=Path(vector.file_path).name):
        _rows(table)


def test_old_snapshots_that_list_manifests_themselves_are_read(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t", _SCHEMA, spec=_BY_DAY, format_version=1)
    table.commit(_day_file(table, 1))
    table.commit(_day_file(table, 2))
    snapshot = table.metadata.current_snapshot()
    assert snapshot is not None
    paths = tuple(manifest.manifest_path for manifest in _manifests(table))
    old = replace(snapshot, manifest_list=None, manifests=paths)
    planned = plan_files(table.io, table.metadata, old, _SCHEMA, _bound("day = 2", _SCHEMA)).files
    assert [_day_of(file) for file in planned] == [2]


def _table_with(tmp_path: Path, kind: str) -> tuple[TableBuilder, Path]:
    """A table that needs a file of each kind, and the file of the kind that is asked for."""
    table = TableBuilder(tmp_path / "t", _SCHEMA, format_version=3 if kind == "vector" else 2)
    data_file = table.data_file([(i, f"name {i}", 0) for i in range(50)])
    table.commit(data_file)
    if kind == "vector":
        deletes = table.deletion_vectors([(data_file, [1, 3])])
    else:
        deletes = [table.position_deletes({data_file.file_path: [1, 3]})]
    deletes.append(table.equality_deletes(["name"], [("name 5",)]))
    table.commit(*deletes)
    snapshot = table.metadata.current_snapshot()
    assert snapshot is not None
    data, delete = sorted(_manifests(table), key=lambda manifest: manifest.content)
    path = {
        "manifest list": snapshot.manifest_list,
        "manifest": data.manifest_path,
        "delete manifest": delete.manifest_path,
        "data": data_file.file_path,
        "positions": deletes[0].file_path,
        "vector": deletes[0].file_path,
        "keys": deletes[1].file_path,
    }[kind]
    return table, Path(str(path))


def _day_file(table: TableBuilder, day: int | None) -> DataFile:
    return table.data_file([(day, f"name {day}", day)], partition=(day,))


def _delete_keys(table: TableBuilder) -> None:
    """Deletes the ids 20 and 30 and a name; the bounds of other files exclude them."""
    table.commit(table.equality_deletes(["id"], [(20,), (30,)]))
    table.commit(table.equality_deletes(["name"], [("n1",)]))
    table.commit(table.equality_deletes(["id"], [(30,), (1000,)]))


def _manifests(table: TableBuilder) -> tuple[ManifestFile, ...]:
    snapshot = table.metadata.current_snapshot()
    assert snapshot is not None
    return read_snapshot_manifests(table.io, snapshot)


def _files(table: TableBuilder) -> list[DataFile]:
    return [file.entry.data_file for file in _plan(table)]


def _edit_manifests(
    table: TableBuilder,
    edit: Callable[[ManifestFile], ManifestFile],
    format_version: int = 2,
) -> None:
    """Writes the current manifest list anew, in its place."""
    snapshot = table.metadata.current_snapshot()
    assert snapshot is not None
    Path(str(snapshot.manifest_list)).write_bytes(
        write_manifest_list(
            [edit(manifest) for manifest in _manifests(table)],
            format_version=format_version,
            snapshot_id=snapshot.snapshot_id,
        )
    )


def _bound(text: str | None, schema: Schema) -> Expr:
    return TRUE if text is None else bind(parse_filter(text), schema)


def _plan(table: TableBuilder, filter: str | None = None, **options: Any) -> list[PlannedFile]:
    schema, snapshot = table.schema, table.metadata.current_snapshot()
    row_filter = _bound(filter, schema)
    return plan_files(table.io, table.metadata, snapshot, schema, row_filter, **options).files


def _task_groups(table: TableBuilder, options: SplitOptions) -> list[Any]:
    snapshot = table.metadata.current_snapshot()
    return task_groups_of(table.io, table.metadata, snapshot, table.schema, TRUE, options)


def _rows(table: TableBuilder, filter: str | None = None) -> list[int]:
    found = load_table(str(table.location)).scan(filter=filter, columns=["id"]).to_arrow()
    return sorted(found["id"].to_pylist())


def _ids(files: Sequence[PlannedFile]) -> list[int]:
    """The least id of each file."""
    return sorted(min(ids_in(file.entry.data_file)) for file in files)


def _day_of(file: PlannedFile) -> Any:
    return file.entry.data_file.partition[0]


def _no_metrics() -> dict[str, Any]:
    return {
        "value_counts": {},
        "null_value_counts": {},
        "nan_value_counts": {},
        "lower_bounds": {},
        "upper_bounds": {},
    }
