"""Which pages of a Parquet row group are read, and that what is read is right."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from pathlib import Path

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from built.data_files import encrypting, read_batches, rows_of, with_id, write_parquet
from built.schemas import optional
from effort import examples
from hypothesis import given, strategies as st

from icebergds.encryption.key_metadata import KeyMetadata
from icebergds.errors import CorruptFileError
from icebergds.expr.bind import bind
from icebergds.expr.evaluate import matches
from icebergds.expr.nodes import TRUE, Operation, Predicate, and_, or_
from icebergds.formats.parquet import page_pruning, page_reader
from icebergds.formats.parquet.page_index import PageIndex
from icebergds.formats.parquet.thrift import I64, decode_struct, encode_struct
from icebergds.spec.schema import Schema
from icebergds.spec.types import (
    BOOLEAN,
    DOUBLE,
    LONG,
    STRING,
    TIMESTAMP,
    DecimalType,
    ListType,
    StructType,
)

NUMBERS = Schema((optional(1, "n", LONG),))
PAGED = {"write_page_index": True, "max_rows_per_page": 10, "write_batch_size": 5}


@pytest.fixture(scope="module", autouse=True)
def _worth_it():
    """Pages are skipped in small files too, whatever share of them that is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(page_pruning, "_MIN_BYTES", 0)
        patch.setattr(page_pruning, "_MIN_GAP", 1)
        patch.setattr(page_pruning, "_MAX_SHARE", 2)
        yield


def positions(location: str, schema: Schema, row_filter, **options) -> list[int]:
    """Positions of the rows that are read."""
    reads = read_batches(location, schema, row_filter=row_filter, **options)
    return [read.first_position + offset for read in reads for offset in range(read.num_rows)]


def rows_read(location: str, schema: Schema, row_filter, **options) -> list[tuple[int, str]]:
    """Rows that are read with their positions; as text, in which NaN equals itself."""
    return [
        (read.first_position + offset, repr(row))
        for read in read_batches(location, schema, row_filter=row_filter, **options)
        for offset, row in enumerate(rows_of(read))
    ]


def numbers(path: Path, count: int = 95, **options) -> str:
    """A file of the numbers 0, 1, ..., in pages of ten."""
    options = {**PAGED, "use_dictionary": False, "compression": "none", **options}
    return write_parquet(
        path / "n.parquet", [with_id("n", pa.int64(), 1)], [range(count)], **options
    )


def between(low: int, high: int):
    return bind(
        and_(Predicate(Operation.GT_EQ, "n", (low,)), Predicate(Operation.LT_EQ, "n", (high,))),
        NUMBERS,
    )


def test_only_pages_that_may_match_are_read(tmp_path):
    location = numbers(tmp_path)
    assert rows_read(location, NUMBERS, between(33, 45)) == [(n, f"({n},)") for n in range(30, 50)]


def test_pages_that_cannot_match_are_not_even_looked_at(tmp_path):
    location = numbers(tmp_path)
    content = bytearray(Path(location).read_bytes())
    with pa.OSFile(location) as handle:
        pages = PageIndex(handle, pq.read_metadata(location)).pages(0, 0)
    assert pages.rows.tolist() == [*range(0, 95, 10), 95]
    for offset, size in np.delete(np.stack([pages.offsets, pages.sizes], axis=1), [3, 4], axis=0):
        content[offset : offset + size] = b"\xee" * size
    Path(location).write_bytes(content)
    assert rows_read(location, NUMBERS, between(33, 45)) == [(n, f"({n},)") for n in range(30, 50)]
    with pytest.raises(CorruptFileError):
        rows_read(location, NUMBERS, between(33, 55))


def test_batches_are_of_neighbouring_rows_and_no_larger_than_asked(tmp_path):
    location = numbers(tmp_path)
    row_filter = bind(or_(*(Predicate(Operation.EQ, "n", (n,)) for n in (5, 35, 41, 94))), NUMBERS)
    for batch_size in (1, 7, 10, 64):
        reads = read_batches(location, NUMBERS, row_filter=row_filter, batch_size=batch_size)
        assert all(r.num_rows == r.batch.num_rows <= batch_size for r in reads)
        found = [(r.first_position + i, row[0]) for r in reads for i, row in enumerate(rows_of(r))]
        assert found == [(n, n) for n in (*range(10), *range(30, 50), *range(90, 95))]


def test_nulls_are_looked_for_where_they_are(tmp_path):
    values = [1] * 10 + [1, None] * 5 + [None] * 10
    location = write_parquet(tmp_path / "f", [with_id("n", pa.int64(), 1)], [values], **PAGED)
    for op, expected in [
        (Operation.IS_NULL, range(10, 30)),
        (Operation.NOT_NULL, range(20)),
    ]:
        assert positions(location, NUMBERS, bind(Predicate(op, "n"), NUMBERS)) == [*expected]
    row_filter = bind(Predicate(Operation.EQ, "n", (1,)), NUMBERS)
    assert positions(location, NUMBERS, row_filter) == [*range(20)]


def test_row_groups_whose_pages_all_fail_are_skipped(tmp_path):
    fields = [with_id("n", pa.int64(), 1)]
    values = [*range(10), *range(90, 100)]
    location = write_parquet(tmp_path / "f", fields, [values], **PAGED)
    assert positions(location, NUMBERS, between(40, 50)) == []


def test_positions_count_over_row_groups(tmp_path):
    location = numbers(tmp_path, row_group_size=30)
    assert positions(location, NUMBERS, between(35, 62)) == [*range(30, 70)]


def test_files_without_a_page_index_are_read_whole(tmp_path):
    location = numbers(tmp_path, write_page_index=False)
    assert positions(location, NUMBERS, between(33, 45)) == [*range(95)]


def test_little_is_skipped_only_where_it_is_worth_it(tmp_path, monkeypatch):
    location = numbers(tmp_path)
    for name, value in [
        ("_MIN_BYTES", 10**6),
        ("_MAX_SHARE", 0.1),
        ("_MAX_BYTES", 10),
        ("_MAX_CHUNKS", 0),
        ("_MAX_EVALUATIONS", 1),
    ]:
        with monkeypatch.context() as patch:
            patch.setattr(page_pruning, name, value)
            assert len(positions(location, NUMBERS, between(33, 45))) == 95
    monkeypatch.setattr(page_pruning, "_MIN_GAP", 20)
    row_filter = bind(Predicate(Operation.IN, "n", (5, 25, 55)), NUMBERS)
    assert positions(location, NUMBERS, row_filter) == [*range(30), *range(50, 60)]


@pytest.mark.parametrize(("step", "groups"), [(1, 4), (7, 1)])
def test_the_index_of_values_without_an_order_is_not_asked_twice_in_vain(
    tmp_path, monkeypatch, step, groups
):
    monkeypatch.setattr(page_pruning, "_MAX_SHARE", 2 / 3)
    values = [n * step % 160 for n in range(160)]
    fields = [with_id("n", pa.int64(), 1)]
    location = write_parquet(tmp_path / "f", fields, [values], row_group_size=40, **PAGED)
    asked = []
    bounds = PageIndex.bounds

    def noted(index: PageIndex, group: int, leaf: int):
        asked.append(group)
        return bounds(index, group, leaf)

    monkeypatch.setattr(PageIndex, "bounds", noted)
    assert len(positions(location, NUMBERS, between(0, 160))) == 160
    assert len(asked) == groups


def test_repeated_columns_are_read_whole_and_others_beside_them_by_page(tmp_path):
    fields = [
        with_id("n", pa.int64(), 1),
        with_id("l", pa.list_(with_id("element", pa.int64(), 3)), 2),
    ]
    values = [range(40), [[n] * (n % 3) for n in range(40)]]
    location = write_parquet(tmp_path / "f", fields, values, **PAGED)
    schema = Schema((*NUMBERS.fields, optional(2, "l", ListType(3, LONG))))
    read = rows_read(location, schema, between(12, 14))
    assert read == [(n, f"({n}, {[n] * (n % 3)})") for n in range(40)]
    assert positions(location, NUMBERS, between(12, 14)) == [*range(10, 20)]


def test_structs_are_put_together_from_pages_of_their_leaves(tmp_path):
    inner = pa.struct([with_id("x", pa.int64(), 3), with_id("y", pa.string(), 4)])
    outer = pa.struct([with_id("a", pa.string(), 2), with_id("b", inner, 5)])
    value = [
        None if n % 7 == 0 else {"a": "a" * n, "b": None if n % 5 == 0 else {"x": n, "y": str(n)}}
        for n in range(60)
    ]
    fields = [with_id("n", pa.int64(), 1), with_id("s", outer, 6)]
    location = write_parquet(
        tmp_path / "f",
        fields,
        [range(60), value],
        write_page_index=True,
        data_page_size=50,
        write_batch_size=1,
        use_dictionary=False,
    )
    inner_type = StructType((optional(3, "x", LONG), optional(4, "y", STRING)))
    outer_type = StructType((optional(2, "a", STRING), optional(5, "b", inner_type)))
    narrow = StructType((optional(5, "b", StructType((optional(4, "y", STRING),))),))
    for wanted in (outer_type, narrow):
        schema = Schema((*NUMBERS.fields, optional(6, "s", wanted)))
        whole = rows_read(location, schema, TRUE)
        assert len(whole) == 60
        read = rows_read(location, schema, between(33, 41))
        assert len(read) < 20
        assert set(read) <= set(whole)
        assert {p for p, _ in read} >= {*range(33, 42)}


def page_index_of(location: str) -> range:
    """Where the page index is: between the last chunk and the footer."""
    content = Path(location).read_bytes()
    chunk = pq.ParquetFile(location).metadata.row_group(0).column(0)
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    return range(chunk.data_page_offset + chunk.total_compressed_size, footer)


def test_damaged_page_indexes_are_left_alone(tmp_path):
    location = numbers(tmp_path)
    content = Path(location).read_bytes()
    index = page_index_of(location)
    for damage in (b"\x00", b"\xff", b"\x19"):
        Path(location).write_bytes(
            content[: index.start] + damage * len(index) + content[index.stop :]
        )
        assert positions(location, NUMBERS, between(33, 45)) == [*range(95)]


@pytest.mark.parametrize("wrong", [39, 41])
def test_pages_of_other_rows_than_their_index_says_are_not_read_alone(tmp_path, wrong):
    location = numbers(tmp_path)
    content = bytearray(Path(location).read_bytes())
    _, start = decode_struct(bytes(content), page_index_of(location).start)
    index, stop = decode_struct(bytes(content), start)
    locations = index[1][1].values
    assert locations[4][3] == (I64, 40)
    locations[4][3] = (I64, wrong)
    content[start:stop] = encode_struct(index)
    Path(location).write_bytes(content)
    row_filter = bind(Predicate(Operation.IN, "n", (33, 65)), NUMBERS)
    assert rows_read(location, NUMBERS, row_filter) == [(n, f"({n},)") for n in range(95)]


@examples(150)
@given(data=st.data())
def test_an_offset_index_that_lies_never_moves_rows(tmp_path_factory, data):
    location = numbers(tmp_path_factory.mktemp("pages"))
    content = bytearray(Path(location).read_bytes())
    index = page_index_of(location)
    _, start = decode_struct(bytes(content), index.start)
    at = data.draw(st.sampled_from(range(start, index.stop)))
    content[at] = data.draw(st.integers(0, 255))
    Path(location).write_bytes(content)
    read = rows_read(location, NUMBERS, between(33, 45))
    assert read == [(p, f"({p},)") for p, _ in read]
    assert {*range(33, 46)} <= {p for p, _ in read}


def test_pages_that_do_not_decode_are_read_with_their_row_group(tmp_path, monkeypatch):
    location = numbers(tmp_path)
    taken = page_reader._LeafReader.take

    def take(self, first, num_rows):
        if first >= 40:
            raise pa.ArrowInvalid("no")
        return taken(self, first, num_rows)

    monkeypatch.setattr(page_reader._LeafReader, "take", take)
    read = rows_read(location, NUMBERS, between(33, 45), batch_size=10)
    assert read == [(n, f"({n},)") for n in range(30, 95)]


def test_remote_files_are_read_by_page(tmp_path):
    store = fsspec.filesystem("memory")
    store.pipe("/pages/n.parquet", Path(numbers(tmp_path)).read_bytes())
    try:
        assert positions("memory:///pages/n.parquet", NUMBERS, between(33, 45)) == [*range(30, 50)]
    finally:
        store.rm("/pages", recursive=True)


def test_thrift_structs_survive_a_round_trip(tmp_path):
    content = Path(numbers(tmp_path)).read_bytes()
    footer = content[-8 - int.from_bytes(content[-8:-4], "little") : -8]
    fields, end = decode_struct(footer)
    assert encode_struct(fields) == footer[:end]


EPOCH = dt.datetime(1970, 1, 1)
QUARTERS = st.integers(-9, 9).map(lambda n: Decimal(n) / 4)
TYPES = {
    "n": (1, pa.int64(), LONG, st.integers(-20, 20)),
    "x": (2, pa.float64(), DOUBLE, st.sampled_from([-0.0, 0.0, -1.5, 3.0, math.inf, math.nan])),
    "s": (3, pa.string(), STRING, st.sampled_from(["", "a", "ab", "b" * 100, "é", "\U0001f600"])),
    "d": (4, pa.decimal128(20, 2), DecimalType(20, 2), QUARTERS),
    "t": (
        5,
        pa.timestamp("us"),
        TIMESTAMP,
        st.integers(-9, 9).map(lambda n: EPOCH + dt.timedelta(n)),
    ),
    "b": (6, pa.bool_(), BOOLEAN, st.booleans()),
    "u": (7, pa.uint32(), LONG, st.sampled_from([0, 1, 2**31, 2**32 - 1])),
    "e": (8, pa.decimal128(9, 2), DecimalType(20, 2), QUARTERS),
}
INNER = StructType((optional(10, "v", LONG),))
ALL = Schema(
    (
        *(optional(at, name, field_type) for name, (at, _, field_type, _) in TYPES.items()),
        optional(9, "r", INNER),
    )
)
FIELDS = [
    *(with_id(name, stored, at) for name, (at, stored, _, _) in TYPES.items()),
    with_id("r", pa.struct([with_id("v", pa.int64(), 10)]), 9),
]
STRUCTS = st.one_of(
    st.none(), st.fixed_dictionaries({"v": st.one_of(st.none(), st.integers(-5, 5))})
)
ROWS = st.tuples(*(st.one_of(st.none(), values) for _, _, _, values in TYPES.values()), STRUCTS)

# Some rows over and over, in runs: many pages hold little that differs.
TABLES = st.lists(ROWS, min_size=1, max_size=10).flatmap(
    lambda pool: st.lists(st.tuples(st.sampled_from(pool), st.integers(1, 20)), max_size=12).map(
        lambda runs: [row for row, length in runs for _ in range(length)]
    )
)


@st.composite
def predicates(draw):
    name = draw(st.sampled_from([*TYPES, "r.v"]))
    values = TYPES[name][3] if name in TYPES else st.integers(-5, 5)
    asked = values.filter(lambda value: value == value)
    kinds = [
        "compare",
        "set",
        "null",
        *(["nan"] if name == "x" else []),
        *(["prefix"] * (name == "s")),
    ]
    match draw(st.sampled_from(kinds)):
        case "set":
            op = draw(st.sampled_from([Operation.IN, Operation.NOT_IN]))
            return Predicate(op, name, tuple(draw(st.lists(asked, min_size=1, max_size=3))))
        case "null":
            return Predicate(draw(st.sampled_from([Operation.IS_NULL, Operation.NOT_NULL])), name)
        case "nan":
            return Predicate(draw(st.sampled_from([Operation.IS_NAN, Operation.NOT_NAN])), name)
        case "prefix":
            ops = [Operation.STARTS_WITH, Operation.NOT_STARTS_WITH]
            return Predicate(draw(st.sampled_from(ops)), name, (draw(asked),))
    ops = [Operation.LT, Operation.LT_EQ, Operation.GT, Operation.GT_EQ]
    op = draw(st.sampled_from([*ops, Operation.EQ, Operation.NOT_EQ]))
    return Predicate(op, name, (draw(asked),))


FILTERS = st.recursive(
    predicates(),
    lambda parts: st.builds(
        lambda connect, a, b: connect(a, b), st.sampled_from([and_, or_]), parts, parts
    ),
    max_leaves=4,
)
LAYOUTS = st.fixed_dictionaries(
    {
        "row_group_size": st.integers(10, 200),
        "data_page_size": st.sampled_from([1, 40, 10**6]),
        "max_rows_per_page": st.integers(1, 20),
        "write_batch_size": st.integers(1, 5),
        "data_page_version": st.sampled_from(["1.0", "2.0"]),
        "compression": st.sampled_from(["none", "snappy", "zstd", "gzip"]),
        "use_dictionary": st.booleans(),
        "store_decimal_as_integer": st.booleans(),
        "store_schema": st.booleans(),
    }
)


@examples(150)
@given(
    rows=TABLES,
    sort_by=st.one_of(st.none(), st.integers(0, len(TYPES) - 1)),
    row_filter=FILTERS,
    layout=LAYOUTS,
    batch_size=st.integers(1, 40),
    key=st.sampled_from([None, *(KeyMetadata(bytes(length), b"file") for length in (16, 32))]),
)
def test_rows_that_a_filter_selects_are_those_of_reading_everything(
    tmp_path_factory, rows, sort_by, row_filter, layout, batch_size, key
):
    if sort_by is not None:
        # By value, nulls last.
        rows = sorted(
            (row for row in rows if row[sort_by] is not None), key=lambda row: row[sort_by]
        ) + [row for row in rows if row[sort_by] is None]
    columns = [list(column) for column in zip(*rows, strict=True)] or [[]] * len(FIELDS)
    path = tmp_path_factory.mktemp("pages") / "f.parquet"
    options = {**layout, **encrypting(key)}
    location = write_parquet(path, FIELDS, columns, write_page_index=True, **options)
    bound = bind(row_filter, ALL)
    whole = rows_read(location, ALL, TRUE, key=key)
    read = rows_read(location, ALL, bound, batch_size=batch_size, key=key)
    assert [pair for pair in read if whole[pair[0]] != pair] == []
    assert [position for position, _ in read] == sorted({position for position, _ in read})
    found = {position for position, _ in read}
    values = {position: in_memory(row) for position, row in enumerate(rows)}
    selected = {p for p, row in values.items() if matches(bound, row.__getitem__)}
    assert selected <= found


def in_memory(row):
    """Values by field id, in the representation that filters are bound to."""
    fields = dict(zip((1, 2, 3, 4, 5, 6, 7, 8), row[:8], strict=True))
    if row[4] is not None:
        fields[5] = (row[4] - EPOCH) // dt.timedelta(microseconds=1)
    fields[10] = None if row[8] is None else row[8]["v"]
    return fields
