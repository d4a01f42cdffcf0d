"""Which deletes apply to which data file, one test a rule (spec: Scan Planning)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, strategies as st
from strategies.expressions import SCALAR_TYPES, values_of
from strategies.table_model import comparable

from icebergds.errors import InvalidMetadataError
from icebergds.scan.plan.delete_index import AppliedDeletes, DeleteIndex, key_types
from icebergds.scan.plan.delete_ranges import KeyRanges, PathRanges
from icebergds.spec.manifest import (
    DataFile,
    FileContent,
    FileFormat,
    ManifestEntry,
    ManifestEntryStatus,
)
from icebergds.spec.partition import PartitionField, PartitionSpec
from icebergds.spec.reserved import DELETE_FILE_PATH
from icebergds.spec.schema import Schema
from icebergds.spec.transforms import IdentityTransform, UnknownTransform, VoidTransform
from icebergds.spec.types import (
    BINARY,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NS,
    FixedType,
    GeometryType,
    IcebergType,
    ListType,
    NestedField,
)
from icebergds.spec.values.binary import to_bytes

_SPECS = {
    0: PartitionSpec(0),
    1: PartitionSpec(1, (PartitionField((1,), 1000, IdentityTransform(), "p"),)),
    2: PartitionSpec(2, (PartitionField((2,), 1001, IdentityTransform(), "q"),)),
    3: PartitionSpec(3, (PartitionField((1,), 1000, VoidTransform(), "p"),)),
    4: PartitionSpec(4, (PartitionField((1,), 1002, UnknownTransform("zorder[3]"), "z"),)),
}
_A, _B = "s3://bucket/t/data/a.parquet", "s3://bucket/t/data/b.parquet"


# Deletion vectors.


def test_a_vector_applies_to_the_file_that_it_references() -> None:
    vector = _vector(_A, seq=2)
    assert _paths(_index(vector), _data(_A, seq=1)) == [vector]
    assert _paths(_index(vector), _data(_B, seq=1)) == []


@pytest.mark.parametrize(("data_number", "applies"), [(1, True), (2, True), (3, False)])
def test_a_vector_applies_to_data_of_its_own_commit_and_older(
    data_number: int, applies: bool
) -> None:
    vector = _vector(_A, seq=2)
    assert _paths(_index(vector), _data(_A, seq=data_number)) == ([vector] if applies else [])


def test_a_vector_replaces_position_delete_files() -> None:
    vector = _vector(_A, seq=2)
    by_path = _positions(seq=3, referenced=_A)
    by_partition = _positions(seq=3)
    index = _index(vector, by_path, by_partition)
    assert _paths(index, _data(_A, seq=1)) == [vector]
    assert _paths(index, _data(_B, seq=1)) == [by_partition]


def test_a_vector_that_does_not_apply_replaces_nothing() -> None:
    by_path = _positions(seq=3, referenced=_A)
    assert _paths(_index(_vector(_A, seq=2), by_path), _data(_A, seq=3)) == [by_path]


def test_a_vector_leaves_equality_deletes_in_force() -> None:
    keys = _keys(seq=3)
    assert _index(_vector(_A, seq=2), keys).deletes_for(_data(_A, seq=1)).equality_deletes == (
        keys,
    )


def test_two_vectors_for_one_file_are_an_error_that_names_them() -> None:
    with pytest.raises(InvalidMetadataError, match=r"a\.parquet.*one\.puffin.*two\.puffin"):
        _index(_vector(_A, seq=1, path="one.puffin"), _vector(_A, seq=2, path="two.puffin"))


def test_vectors_of_two_files_share_a_puffin_file() -> None:
    first, second = _vector(_A, seq=1), _vector(_B, seq=1, offset=40)
    index = _index(first, second)
    assert _paths(index, _data(_A, seq=1)) == [first]
    assert _paths(index, _data(_B, seq=1)) == [second]


@pytest.mark.parametrize("missing", ["referenced_data_file", "content_offset"])
def test_a_vector_without_its_place_is_an_error(missing: str) -> None:
    fields: dict[str, Any] = {
        "referenced_data_file": _A,
        "content_offset": 4,
        "content_size_in_bytes": 40,
    }
    vector = _entry(
        FileContent.POSITION_DELETES,
        "v.puffin",
        1,
        file_format=FileFormat.PUFFIN,
        **{**fields, missing: None},
    )
    with pytest.raises(InvalidMetadataError, match=rf"v\.puffin.*{missing}"):
        _index(vector)


# Position delete files.


@pytest.mark.parametrize("scope", [{}, {"referenced": _A}, {"bounds": (_A, _A)}])
@pytest.mark.parametrize(("data_number", "applies"), [(1, True), (2, True), (3, False)])
def test_position_deletes_apply_to_data_of_their_own_commit_and_older(
    scope: dict[str, Any], data_number: int, applies: bool
) -> None:
    deletes = _positions(seq=2, **scope)
    assert _paths(_index(deletes), _data(_A, seq=data_number)) == ([deletes] if applies else [])


@pytest.mark.parametrize("scope", [{"referenced": _A}, {"bounds": (_A, _A)}])
def test_position_deletes_of_one_file_apply_to_no_other(scope: dict[str, Any]) -> None:
    assert _paths(_index(_positions(seq=2, **scope)), _data(_B, seq=1)) == []


def test_position_deletes_apply_within_their_partition() -> None:
    deletes = _positions(seq=2, spec_id=1, partition=(7,))
    index = _index(deletes)
    assert _paths(index, _data(_A, seq=1, spec_id=1, partition=(7,))) == [deletes]
    assert _paths(index, _data(_A, seq=1, spec_id=1, partition=(8,))) == []
    assert _paths(index, _data(_A, seq=1, spec_id=2, partition=(7,))) == []


@pytest.mark.parametrize("spec_id", [0, 3])
def test_position_deletes_of_an_unpartitioned_spec_are_not_global(spec_id: int) -> None:
    partition = (None,) * len(_SPECS[spec_id].fields)
    deletes = _positions(seq=2, spec_id=spec_id, partition=partition)
    index = _index(deletes)
    assert _paths(index, _data(_A, seq=1, spec_id=spec_id, partition=partition)) == [deletes]
    assert _paths(index, _data(_A, seq=1, spec_id=1, partition=(7,))) == []


def test_position_deletes_are_dropped_where_bounds_exclude_the_path() -> None:
    deletes = _positions(seq=2, bounds=("s3://bucket/t/data/aa", "s3://bucket/t/data/bb"))
    assert _paths(_index(deletes), _data(_A, seq=1)) == []
    assert _paths(_index(deletes), _data(_B, seq=1)) == [deletes]


def test_path_bounds_that_are_no_text_name_no_file() -> None:
    deletes = _positions(seq=2)
    odd = {DELETE_FILE_PATH.field_id: b"s3://bucket/t/data/\xff"}
    with_bounds = replace(deletes.data_file, lower_bounds=odd, upper_bounds=odd)
    index = _index(replace(deletes, data_file=with_bounds))
    assert _paths(index, _data(_A, seq=1)) == []


@pytest.mark.parametrize("bounds", [(None, _A), (_B, None)])
def test_one_bound_alone_excludes_paths(bounds: tuple[str | None, str | None]) -> None:
    deletes = _positions(seq=2, bounds=bounds)
    inside, outside = (_A, _B) if bounds[0] is None else (_B, _A)
    assert _paths(_index(deletes), _data(inside, seq=1)) == [deletes]
    assert _paths(_index(deletes), _data(outside, seq=1)) == []


# Equality delete files.


@pytest.mark.parametrize("spec_id", [0, 1])
@pytest.mark.parametrize(("data_number", "applies"), [(1, True), (2, False), (3, False)])
def test_equality_deletes_apply_to_strictly_older_data(
    spec_id: int, data_number: int, applies: bool
) -> None:
    partition = (7,) * len(_SPECS[spec_id].fields)
    keys = _keys(seq=2, spec_id=spec_id, partition=partition)
    data = _data(_A, seq=data_number, spec_id=spec_id, partition=partition)
    assert _equality(_index(keys), data) == ([keys] if applies else [])


def test_equality_deletes_apply_within_their_partition() -> None:
    keys = _keys(seq=2, spec_id=1, partition=(7,))
    index = _index(keys)
    assert _equality(index, _data(_A, seq=1, spec_id=1, partition=(7,))) == [keys]
    assert _equality(index, _data(_A, seq=1, spec_id=1, partition=(8,))) == []
    assert _equality(index, _data(_A, seq=1, spec_id=2, partition=(7,))) == []


@pytest.mark.parametrize("spec_id", [0, 3])
def test_equality_deletes_of_an_unpartitioned_spec_are_global(spec_id: int) -> None:
    keys = _keys(seq=2, spec_id=spec_id, partition=(None,) * len(_SPECS[spec_id].fields))
    index = _index(keys)
    for data in (
        _data(_A, seq=1),
        _data(_A, seq=1, spec_id=1, partition=(7,)),
        _data(_A, seq=1, spec_id=2, partition=(7,)),
        _data(_A, seq=1, spec_id=3, partition=(None,)),
    ):
        assert _equality(index, data) == [keys]


def test_global_and_scoped_equality_deletes_apply_together() -> None:
    everywhere = _keys(seq=2)
    here = _keys(seq=3, spec_id=1, partition=(7,))
    index = _index(here, everywhere)
    assert _equality(index, _data(_A, seq=1, spec_id=1, partition=(7,))) == [everywhere, here]
    assert _equality(index, _data(_A, seq=2, spec_id=1, partition=(7,))) == [here]


def test_equality_deletes_without_keys_are_an_error_that_names_them() -> None:
    with pytest.raises(InvalidMetadataError, match=r"e\.parquet has no equality_ids"):
        _index(_entry(FileContent.EQUALITY_DELETES, "e.parquet", 1))


# Equal partitions.


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        (None, None, True),
        (None, 0, False),
        (float("nan"), -math.nan, True),
        (0.0, -0.0, False),
        (1.5, 1.5, True),
        ("x", "x", True),
    ],
)
def test_partitions_are_equal_as_java_compares_them(left: Any, right: Any, same: bool) -> None:
    keys = _keys(seq=2, spec_id=1, partition=(left,))
    positions = _positions(seq=2, spec_id=1, partition=(left,))
    data = _data(_A, seq=1, spec_id=1, partition=(right,))
    found = _index(keys, positions).deletes_for(data)
    assert found == (AppliedDeletes((positions,), (keys,)) if same else AppliedDeletes())


def test_results_of_unknown_transforms_count_in_partitions() -> None:
    keys = _keys(seq=2, spec_id=4, partition=("x",))
    index = _index(keys)
    assert _equality(index, _data(_A, seq=1, spec_id=4, partition=("x",))) == [keys]
    assert _equality(index, _data(_A, seq=1, spec_id=4, partition=("y",))) == []


# What metrics tell of keys.


@pytest.mark.parametrize(
    ("deleted", "stored"),
    [
        ([1, 2], [3, 4]),
        ([None], [3, 4]),
        ([1], [None]),
        ([None, 9], [3, 4]),
    ],
)
def test_equality_deletes_of_other_keys_are_dropped(
    deleted: list[int | None], stored: list[int | None]
) -> None:
    index = _index(_keys(seq=2, metrics=_metrics({1: INT}, [(k,) for k in deleted])))
    data = _data(_A, seq=1, metrics=_metrics({1: INT}, [(k,) for k in stored]))
    assert _equality(index, data) == []


@pytest.mark.parametrize(
    ("key_type", "key"), [(BINARY, b"\0"), (FixedType(2), b"\0\0"), (STRING, "a\0")]
)
def test_keys_that_end_with_zeros_are_compared_whole(key_type: IcebergType, key: Any) -> None:
    metrics = _metrics({1: key_type}, [(key,)])
    keys = _keys(seq=2, metrics=metrics)
    assert _equality(_index(keys, types={1: key_type}), _data(_A, seq=1, metrics=metrics)) == [keys]


def test_one_column_without_common_keys_is_enough() -> None:
    types = {1: INT, 2: STRING}
    keys = _keys(seq=2, ids=(1, 2), metrics=_metrics(types, [(1, "a")]))
    data = _data(_A, seq=1, metrics=_metrics(types, [(1, "b")]))
    assert _equality(_index(keys, types=types), data) == []


@pytest.mark.parametrize(
    "types", [{1: GeometryType()}, {1: ListType(2, INT)}, {}], ids=["geometry", "list", "unknown"]
)
def test_deletes_are_kept_where_their_keys_have_no_order(types: dict[int, IcebergType]) -> None:
    apart = _metrics({1: INT}, [(1,)]), _metrics({1: INT}, [(9,)])
    keys = _keys(seq=2, metrics=apart[0])
    assert _equality(_index(keys, types=types), _data(_A, seq=1, metrics=apart[1])) == [keys]


def test_bounds_of_keys_from_before_a_promotion_are_compared_by_value() -> None:
    # 4-byte bounds of the file, 8-byte bounds of the deletes.
    stored = _metrics({1: INT}, [(-5,)])
    for key, applies in [(-5, True), (2**40, False)]:
        keys = _keys(seq=2, metrics=_metrics({1: LONG}, [(key,)]))
        found = _equality(_index(keys, types={1: LONG}), _data(_A, seq=1, metrics=stored))
        assert found == ([keys] if applies else [])


@pytest.mark.parametrize("promoted", [TIMESTAMP, TIMESTAMP_NS])
def test_bounds_that_a_promotion_leads_out_of_range_are_unknown(promoted: IcebergType) -> None:
    # The last is a date of the year 5,000,000.
    stored = _metrics({1: DATE}, [(0,), (1_826_000_000,)])
    for key, applies in [(1, True), (-1, False)]:
        keys = _keys(seq=2, metrics=_metrics({1: promoted}, [(key,)]))
        found = _equality(_index(keys, types={1: promoted}), _data(_A, seq=1, metrics=stored))
        assert found == ([keys] if applies else [])
    dates = _keys(seq=2, metrics=stored)
    assert _equality(_index(dates, types={1: promoted}), _data(_A, seq=1, metrics=stored))


@given(st.data())
def test_no_delete_is_dropped_that_has_a_key_of_the_file(data: st.DataObject) -> None:
    types = dict(
        enumerate(data.draw(st.lists(st.sampled_from(SCALAR_TYPES), min_size=1, max_size=2)), 1)
    )
    row = st.tuples(*(st.none() | values_of(of) for of in types.values()))
    stored = data.draw(st.lists(row, min_size=1, max_size=4))
    deletes, wanted = [], []
    for number in range(data.draw(st.integers(1, 4))):
        keys = data.draw(st.lists(row | st.sampled_from(stored), min_size=1, max_size=3))
        metrics = data.draw(_weakened(_metrics(types, keys)))
        deletes.append(_keys(seq=number + 2, ids=tuple(types), metrics=metrics))
        if {tuple(map(comparable, key)) for key in keys} & {
            tuple(map(comparable, values)) for values in stored
        }:
            wanted.append(deletes[-1])
    file = _data(_A, seq=1, metrics=data.draw(_weakened(_metrics(types, stored))))
    found = _equality(_index(*deletes, types=types), file)
    assert [delete for delete in found if delete in wanted] == wanted


def test_keys_are_of_the_newest_type_also_of_dropped_columns() -> None:
    history = [
        Schema((NestedField(1, "a", LONG),), 1),
        Schema((NestedField(1, "a", INT), NestedField(2, "b", FLOAT)), 0),
    ]
    assert key_types(history, [1, 2, 3]) == {1: LONG, 2: FLOAT}


# Costs.


def test_a_lookup_looks_only_at_deletes_of_its_scope(monkeypatch: pytest.MonkeyPatch) -> None:
    """100,000 files and 1,000 deletes: what a lookup touches is what may apply."""
    touched = _counted(monkeypatch)
    deletes = [
        _positions(seq=n + 1, spec_id=1, partition=(n,), referenced=f"f{n}") for n in range(250)
    ]
    deletes += [_positions(seq=n + 1, spec_id=1, partition=(n,)) for n in range(250)]
    deletes += [_keys(seq=n + 1, spec_id=1, partition=(n,)) for n in range(250)]
    deletes += [_vector(f"v{n}", seq=n + 1) for n in range(250)]
    index = _index(*deletes)
    applied = 0
    for number in range(100_000):
        partition = number % 1000
        data = _data(f"f{number}", seq=0, spec_id=1, partition=(partition,))
        found = index.deletes_for(data)
        applied += len(found.position_deletes) + len(found.equality_deletes)
    assert applied == 250 + 25_000 + 25_000
    assert sum(touched) <= 2 * applied


def test_a_lookup_passes_over_deletes_that_are_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    touched = _counted(monkeypatch)
    index = _index(*(_keys(seq=n) for n in range(1, 1001)))
    for number in range(1, 1001):
        newer = _equality(index, _data(f"f{number}", seq=number))
        assert len(newer) == 1000 - number
    assert sum(touched) <= 1000 * 1000 / 2


def test_files_to_which_the_same_deletes_apply_share_them() -> None:
    index = _index(*(_keys(seq=n) for n in range(1, 1001)))
    first = index.deletes_for(_data(_A, seq=0))
    second = index.deletes_for(_data(_B, seq=0))
    assert first.equality_deletes is second.equality_deletes


def _counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many delete files each comparison of bounds looks at, from now on."""
    touched: list[int] = []
    for ranges, name in ((KeyRanges, "may_share"), (PathRanges, "may_name")):
        compare = getattr(ranges, name)

        def counting(self: Any, subject: Any, start: int, compare: Any = compare) -> Any:
            mask = compare(self, subject, start)
            touched.append(len(mask))
            return mask

        monkeypatch.setattr(ranges, name, counting)
    return touched


def _index(*entries: ManifestEntry, types: Mapping[int, IcebergType] | None = None) -> DeleteIndex:
    return DeleteIndex(entries, _SPECS, {1: INT} if types is None else types)


def _paths(index: DeleteIndex, data: ManifestEntry) -> list[ManifestEntry]:
    return list(index.deletes_for(data).position_deletes)


def _equality(index: DeleteIndex, data: ManifestEntry) -> list[ManifestEntry]:
    return list(index.deletes_for(data).equality_deletes)


def _data(path: str, seq: int, **fields: Any) -> ManifestEntry:
    return _entry(FileContent.DATA, path, seq, **fields)


def _keys(seq: int, ids: tuple[int, ...] = (1,), **fields: Any) -> ManifestEntry:
    return _entry(FileContent.EQUALITY_DELETES, f"e{seq}", seq, equality_ids=ids, **fields)


def _positions(
    seq: int,
    referenced: str | None = None,
    bounds: tuple[str | None, str | None] = (None, None),
    **fields: Any,
) -> ManifestEntry:
    lower, upper = (
        {} if bound is None else {DELETE_FILE_PATH.field_id: bound.encode()} for bound in bounds
    )
    return _entry(
        FileContent.POSITION_DELETES,
        f"p{seq}",
        seq,
        referenced_data_file=referenced,
        metrics={"lower_bounds": lower, "upper_bounds": upper},
        **fields,
    )


def _vector(
    data_path: str, seq: int, path: str = "v.puffin", offset: int = 4, **fields: Any
) -> ManifestEntry:
    return _entry(
        FileContent.POSITION_DELETES,
        path,
        seq,
        file_format=FileFormat.PUFFIN,
        referenced_data_file=data_path,
        content_offset=offset,
        content_size_in_bytes=36,
        **fields,
    )


def _entry(
    content: FileContent,
    path: str,
    seq: int,
    *,
    spec_id: int = 0,
    partition: tuple[Any, ...] = (),
    file_format: FileFormat = FileFormat.PARQUET,
    metrics: Mapping[str, Any] | None = None,
    **fields: Any,
) -> ManifestEntry:
    given_metrics = {"record_count": 1, **(metrics or {})}
    data_file = DataFile(
        content,
        path,
        file_format,
        spec_id,
        partition,
        file_size_in_bytes=100,
        **given_metrics,
        **fields,
    )
    return ManifestEntry(ManifestEntryStatus.ADDED, 1, seq, seq, data_file)


def _metrics(types: Mapping[int, IcebergType], rows: Sequence[tuple[Any, ...]]) -> dict[str, Any]:
    """Exact metrics of columns, as keyword arguments of `DataFile`."""
    found: dict[str, Any] = {
        "record_count": len(rows),
        "value_counts": dict.fromkeys(types, len(rows)),
        "null_value_counts": {},
        "nan_value_counts": {},
        "lower_bounds": {},
        "upper_bounds": {},
    }
    for (field_id, of), values in zip(types.items(), zip(*rows, strict=True), strict=True):
        ordered = sorted(v for v in values if v is not None and v == v)
        found["null_value_counts"][field_id] = values.count(None)
        if of in (FLOAT, DOUBLE):
            found["nan_value_counts"][field_id] = sum(v != v for v in values)
        if ordered:
            found["lower_bounds"][field_id] = to_bytes(of, ordered[0])
            found["upper_bounds"][field_id] = to_bytes(of, ordered[-1])
    return found


def _weakened(metrics: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """The metrics without some of their parts."""
    parts = [name for name in metrics if name != "record_count"]
    return st.sets(st.sampled_from(parts), max_size=2).map(
        lambda missing: {k: v if k not in missing else {} for k, v in metrics.items()}
    )
