"""ORC data files: columns by id, values of every type, stripes, damage."""

from __future__ import annotations

import base64
import contextlib
import datetime as dt
import gzip
import itertools
from decimal import Decimal
from pathlib import Path
from unittest import mock

import fsspec
import pyarrow as pa
import pyarrow.orc as orc
import pytest
from built.data_files import open_file, read_batches, read_rows as read_any, rows_of
from built.schemas import optional, required
from corpus import corpus_dir
from effort import examples
from hypothesis import given, strategies as st

from icebergds.errors import (
    CorruptFileError,
    InvalidDataError,
    MissingFileError,
    UnsupportedFeatureError,
)
from icebergds.formats.arrow.types import schema_to_arrow
from icebergds.formats.orc.tail import stripes_of
from icebergds.formats.orc.writer import _OrcSink
from icebergds.spec.manifest import FileFormat
from icebergds.spec.name_mapping import MappedField, NameMapping
from icebergds.spec.schema import Schema
from icebergds.spec.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    UUID,
    VARIANT,
    DecimalType,
    FixedType,
    ListType,
    MapType,
    StructType,
)


def attributed(name: str, stored: pa.DataType, field_id: int, **attributes: str) -> pa.Field:
    """An Arrow field that is written with Iceberg's ORC attributes."""
    named = {f"iceberg.{key.replace('_', '-')}": value for key, value in attributes.items()}
    return pa.field(name, stored, metadata={"iceberg.id": str(field_id), **named})


def write_orc(path: Path, fields, columns, **options) -> str:
    arrays = [
        column if isinstance(column, pa.Array) else pa.array(column, field.type)
        for field, column in zip(fields, columns, strict=True)
    ]
    orc.write_table(pa.table(arrays, schema=pa.schema(fields)), path, **options)
    return str(path)


def read_rows(location: str, schema: Schema, **options):
    return read_any(location, schema, file_format=FileFormat.ORC, **options)


def test_columns_are_selected_by_id_and_converted(tmp_path):
    element = pa.struct([attributed("p", pa.float32(), 12), attributed("q", pa.int32(), 13)])
    fields = [
        attributed("a", pa.int32(), 1),
        attributed("b", pa.string(), 2),
        attributed("l", pa.list_(attributed("item", element, 11)), 3),
        attributed(
            "m",
            pa.map_(
                pa.field("key", pa.string(), False, {"iceberg.id": "21"}),
                attributed("value", pa.decimal128(4, 1), 22),
            ),
            4,
        ),
    ]
    location = write_orc(
        tmp_path / "f.orc",
        fields,
        [
            [1, None],
            ["x", "y"],
            [[{"p": 0.5, "q": 1}, None], None],
            [[("k", Decimal("1.5"))], []],
        ],
    )
    schema = Schema(
        (
            optional(4, "map", MapType(21, STRING, 22, DecimalType(20, 1))),
            optional(5, "b", INT, initial_default=9),
            optional(3, "list", ListType(11, StructType((optional(12, "pp", DOUBLE),)))),
            optional(1, "b2", LONG),
        )
    )
    (read,) = read_batches(location, schema, file_format=FileFormat.ORC)
    assert read.batch.schema.equals(schema_to_arrow(schema), check_metadata=True)
    assert rows_of(read) == [
        ([("k", Decimal("1.5"))], 9, [{"pp": 0.5}, None], 1),
        ([], 9, None, None),
    ]


def test_every_type_is_read_in_its_storage_type(tmp_path):
    cases = [
        (BOOLEAN, attributed("", pa.bool_(), 0), True),
        (INT, attributed("", pa.int8(), 0), -1),
        (INT, attributed("", pa.int32(), 0), -1),
        (LONG, attributed("", pa.int64(), 0, long_type="LONG"), 2**62),
        (TIME, attributed("", pa.int64(), 0, long_type="TIME"), dt.time(0, 0, 1)),
        (FLOAT, attributed("", pa.float32(), 0), 0.5),
        (DOUBLE, attributed("", pa.float64(), 0), 0.1),
        (
            DecimalType(38, 3),
            attributed("", pa.decimal128(38, 3), 0),
            Decimal("-12345678901234567.125"),
        ),
        (DATE, attributed("", pa.date32(), 0), dt.date(1, 1, 1)),
        (
            TIMESTAMP,
            attributed("", pa.timestamp("us"), 0),
            dt.datetime(1969, 12, 31, 23, 59, 59, 1),
        ),
        (
            TIMESTAMPTZ,
            attributed("", pa.timestamp("us", "UTC"), 0),
            dt.datetime(2261, 1, 1, tzinfo=dt.UTC),
        ),
        (STRING, attributed("", pa.string(), 0), "é"),
        (UUID, attributed("", pa.binary(), 0, binary_type="UUID"), b"0123456789abcdef"),
        (FixedType(3), attributed("", pa.binary(), 0, binary_type="FIXED", length="3"), b"abc"),
        (BINARY, attributed("", pa.binary(), 0, binary_type="BINARY"), b"\xff"),
    ]
    fields = [
        pa.field(f"c{i}", f.type, metadata={**f.metadata, b"iceberg.id": str(i).encode()})
        for i, (_, f, _) in enumerate(cases)
    ]
    values = [1_000_000 if t == TIME else value for t, _, value in cases]
    location = write_orc(tmp_path / "f.orc", fields, [[value, None] for value in values])
    schema = Schema(tuple(optional(i, f"c{i}", t) for i, (t, _, _) in enumerate(cases)))
    assert read_rows(location, schema) == [
        tuple(value for _, _, value in cases),
        (None,) * len(cases),
    ]
    with open_file(location, FileFormat.ORC) as reader:
        assert reader.file_schema == schema


def test_nanosecond_timestamps_keep_their_nanoseconds_and_micros_are_rounded_down(tmp_path):
    fields = [
        attributed("n", pa.timestamp("ns"), 1, timestamp_unit="NANOS"),
        attributed("z", pa.timestamp("ns", "UTC"), 2, timestamp_unit="NANOS"),
        attributed("u", pa.timestamp("ns"), 3, timestamp_unit="MICROS"),
    ]
    raw = pa.array([-1, 2**60 + 1, None], pa.int64())
    location = write_orc(tmp_path / "f.orc", fields, [raw.view(f.type) for f in fields])
    schema = Schema(
        (
            optional(1, "n", TIMESTAMP_NS),
            optional(2, "z", TIMESTAMPTZ_NS),
            optional(3, "u", TIMESTAMP),
        )
    )
    (read,) = read_batches(location, schema, file_format=FileFormat.ORC)
    counts = [column.view(pa.int64()).to_pylist() for column in read.batch.columns]
    assert counts == [raw.to_pylist()] * 2 + [[-1, (2**60 + 1) // 1000, None]]
    with open_file(location, FileFormat.ORC) as reader:
        assert reader.file_schema == schema


@pytest.mark.parametrize(
    ("stored", "wanted"),
    [(pa.timestamp("us"), TIMESTAMPTZ), (pa.timestamp("us", "UTC"), TIMESTAMP)],
)
def test_local_times_and_instants_are_not_taken_for_one_another(tmp_path, stored, wanted):
    location = write_orc(tmp_path / "f.orc", [attributed("t", stored, 1)], [[0]])
    with pytest.raises(UnsupportedFeatureError, match=r"'t' of .*f\.orc"):
        read_rows(location, Schema((optional(1, "t", wanted),)))


# Written by Spark in the zone America/New_York: local times that the stripe relates to that zone.
NEW_YORK = (
    "H4sIAAAAAAACA/MPcuZiE2LhYAxg4JLjYmEAAiExDkYvAYkvv38vfhijAKEMQPJKUHkpoLyIxP/1346uF1KAUBov2Q"
    "1esgcwlDGIrN+b4Mdwrozh3Euu/24MC7jYONgEGCQ4wDSjhAKYZpJQAdKMQD4bkGYF0sxgPhOUzyTBLMTEwQDETCAs"
    "JeCYm1qUmZyo75daHh+ZX5TNZccFcbMEdrdGcHLJ4HZlBCcHs8B2RikuIOUjIaQQpsGoJMzBI8TEyCTFVlyaC7RMij"
    "k/J0VJg4PTSoVLvLggsShbr7gwRy85sSQxp7K4RK+ksiBViLMkMze1uCQxt4B4lVqKXBL5Rel6iQWJyRmpehANZalF"
    "xZn5eUKsJnrGegYGjFZgz1nh9JwVXs85TPDzYIhgTGI1ApnG8ZpRgEGJiYFHw8GAs+kLM7N/kLMIAMsS0QL3AQAA"
)


def test_local_times_are_those_of_the_writers_zone(tmp_path):
    path = tmp_path / "ny.orc"
    path.write_bytes(gzip.decompress(base64.b64decode(NEW_YORK)))
    schema = Schema((optional(1, "summer", TIMESTAMP), optional(2, "old", TIMESTAMP)))
    assert read_rows(str(path), schema) == [
        (dt.datetime(2020, 7, 1, 12, 0, 0, 250_000), dt.datetime(1960, 1, 1, 0, 0, 0, 1))
    ]


def test_files_without_ids_are_read_through_a_name_mapping(tmp_path):
    fields = [
        pa.field("id", pa.int32()),
        pa.field("s", pa.struct([("x", pa.int32()), ("y", pa.int32())])),
        pa.field("l", pa.list_(pa.int32())),
    ]
    location = write_orc(tmp_path / "f.orc", fields, [[1], [{"x": 2, "y": 3}], [[4]]])
    mapping = NameMapping(
        (
            MappedField(("key", "id"), 10),
            MappedField(("s",), 11, (MappedField(("y",), 12),)),
            MappedField(("l",), 13, (MappedField(("element",), 14),)),
        )
    )
    schema = Schema(
        (
            optional(11, "s", StructType((optional(12, "x", INT), optional(15, "y", INT)))),
            optional(10, "k", INT),
            optional(13, "l", ListType(14, LONG)),
        )
    )
    expected = [({"x": 3, "y": None}, 1, [4])]
    assert read_rows(location, schema, name_mapping=mapping) == expected


def test_files_without_ids_and_mapping_are_read_by_name(tmp_path):
    fields = [
        pa.field("id", pa.int32()),
        pa.field("s", pa.struct([("x", pa.int32()), ("y", pa.int32())])),
    ]
    location = write_orc(tmp_path / "f.orc", fields, [[1], [{"x": 2, "y": 3}]])
    schema = Schema(
        (
            optional(5, "s", StructType((optional(6, "y", INT), optional(7, "Y", INT)))),
            optional(8, "id", INT),
            optional(9, "ID", INT),
        )
    )
    assert read_rows(location, schema) == [({"y": 3, "Y": None}, 1, None)]


@pytest.mark.parametrize("wanted", [(1, "a"), (4, "a.b"), (3, "x")])
def test_names_with_dots_and_doubles_mean_nothing(tmp_path, wanted):
    struct = pa.struct([attributed("b", pa.int32(), 2)])
    fields = [
        attributed("a", struct, 1),
        attributed("x", pa.int32(), 3),
        attributed("a.b", pa.int32(), 4),
        attributed("x", pa.int32(), 5),
    ]
    location = write_orc(tmp_path / "f.orc", fields, [[{"b": 1}], [2], [3], [4]])
    field_id, name = wanted
    values = {1: {"z": 1}, 4: 3, 3: 2}
    field_type = StructType((optional(2, "z", INT),)) if field_id == 1 else INT
    assert read_rows(location, Schema((optional(field_id, name, field_type),))) == [
        (values[field_id],)
    ]


def test_maps_and_what_holds_them_are_read_whole(tmp_path):
    inner = pa.struct([attributed("u", pa.int32(), 6), attributed("v", pa.int32(), 7)])
    map_type = pa.map_(
        pa.field("key", pa.string(), False, {"iceberg.id": "4"}), attributed("value", inner, 5)
    )
    stored = pa.struct(
        [
            attributed("maps", pa.list_(attributed("item", map_type, 3)), 2),
            attributed("other", pa.int32(), 8),
        ]
    )
    location = write_orc(
        tmp_path / "f.orc",
        [attributed("s", stored, 1)],
        [[{"maps": [[("k", {"u": 1, "v": 2})]], "other": 3}]],
    )
    values = StructType((optional(7, "v", LONG),))
    struct = StructType((optional(2, "maps", ListType(3, MapType(4, STRING, 5, values))),))
    assert read_rows(location, Schema((optional(1, "s", struct),))) == [
        ({"maps": [[("k", {"v": 2})]]},)
    ]


def test_a_struct_of_which_no_field_is_stored_is_null_where_the_file_says_so(tmp_path):
    stored = pa.struct([attributed("x", pa.int32(), 2), attributed("y", pa.int32(), 3)])
    location = write_orc(tmp_path / "f.orc", [attributed("s", stored, 1)], [[{"x": None}, None]])
    schema = Schema((optional(1, "s", StructType((optional(9, "z", INT, initial_default=7),))),))
    assert read_rows(location, schema) == [({"z": 7},), (None,)]


def test_unshredded_variants_are_read(tmp_path):
    stored = pa.struct([("metadata", pa.binary()), ("value", pa.binary())])
    field = attributed("v", stored, 1, struct_type="VARIANT")
    location = write_orc(tmp_path / "f.orc", [field], [[{"metadata": b"m", "value": b"v"}, None]])
    assert read_rows(location, Schema((optional(1, "v", VARIANT),))) == [
        ({"metadata": b"m", "value": b"v"},),
        (None,),
    ]


def test_nulls_and_absence_of_required_columns_are_errors(tmp_path):
    location = write_orc(tmp_path / "f.orc", [attributed("a", pa.int32(), 1)], [[1, None]])
    with pytest.raises(InvalidDataError, match=r"column 'a' of .*f\.orc"):
        read_rows(location, Schema((required(1, "a", INT),)))
    with pytest.raises(InvalidDataError, match=r"column 'b' of .*f\.orc"):
        read_rows(location, Schema((required(2, "b", INT),)))


@pytest.fixture(scope="module")
def striped(tmp_path_factory) -> str:
    """A file of the numbers 0, 1, ... in several stripes."""
    path = tmp_path_factory.mktemp("orc") / "stripes.orc"
    field = attributed("n", pa.int64(), 1)
    with orc.ORCWriter(path, stripe_size=1024, compression="uncompressed") as writer:
        for first in range(0, 5000, 1000):
            numbers = pa.array(range(first, first + 1000), pa.int64())
            writer.write(pa.table([numbers], schema=pa.schema([field])))
    return str(path)


NUMBERS = Schema((optional(1, "n", LONG),))


def test_stripes_are_found_in_the_files_tail(striped):
    file = orc.ORCFile(striped)
    stripes = stripes_of(file.reader.serialized_file_tail())
    assert len(stripes) == file.nstripes > 2
    assert [s.num_rows for s in stripes] == [
        file.read_stripe(i).num_rows for i in range(file.nstripes)
    ]
    assert stripes[0].offset == 3
    assert all(a.offset < b.offset for a, b in itertools.pairwise(stripes))


@examples(25)
@given(cuts=st.lists(st.integers(0, 12_000), max_size=6), batch_size=st.integers(100, 3000))
def test_every_row_is_in_exactly_one_of_any_splits(striped, cuts, batch_size):
    size = Path(striped).stat().st_size
    bounds = sorted({0, size, *(cut for cut in cuts if cut < size)})
    found = []
    for start, end in itertools.pairwise(bounds):
        for read in read_batches(
            striped,
            NUMBERS,
            file_format=FileFormat.ORC,
            split=(start, end - start),
            batch_size=batch_size,
        ):
            assert read.num_rows <= batch_size
            found += [(read.first_position + i, row[0]) for i, row in enumerate(rows_of(read))]
    assert found == [(n, n) for n in range(5000)]


def test_rows_are_counted_where_no_column_is_read(striped):
    reads = read_batches(striped, Schema(()), file_format=FileFormat.ORC)
    assert sum(read.num_rows for read in reads) == 5000
    assert reads[-1].first_position + reads[-1].num_rows == 5000


def test_remote_files_are_read_too(striped):
    store = fsspec.filesystem("memory")
    store.pipe("/orc/f.orc", Path(striped).read_bytes())
    try:
        assert read_rows("memory:///orc/f.orc", NUMBERS) == [(n,) for n in range(5000)]
    finally:
        store.rm("/orc", recursive=True)


def test_an_empty_file_has_no_batches(tmp_path):
    location = write_orc(tmp_path / "f.orc", [attributed("a", pa.int32(), 1)], [[]])
    assert read_batches(location, NUMBERS, file_format=FileFormat.ORC) == []


def test_missing_truncated_and_foreign_files_are_named(tmp_path, striped):
    opened = open_file(str(tmp_path / "gone.orc"), FileFormat.ORC)
    with pytest.raises(MissingFileError, match=r"gone\.orc"), opened:
        pass
    whole = Path(striped).read_bytes()
    for number, content in enumerate([b"", b"ORC", b"no orc file at all", whole[:-7], whole[50:]]):
        path = tmp_path / f"bad{number}.orc"
        path.write_bytes(content)
        with pytest.raises(CorruptFileError, match=rf"bad{number}\.orc"):
            read_rows(str(path), NUMBERS)


@pytest.mark.parametrize("digits", [39, 127])
def test_decimals_of_too_many_digits_are_damage(tmp_path, digits):
    stored = [Decimal("1.000")]
    path = Path(
        write_orc(
            tmp_path / "f.orc",
            [attributed("d", pa.decimal128(20, 3), 1)],
            [stored],
            compression="uncompressed",
        )
    )
    content = path.read_bytes()
    declared = content.rindex(bytes([0x28, 20, 0x30, 3]))
    for at in (declared + 1, declared + 3):
        damaged = bytearray(content)
        damaged[at] = digits
        path.write_bytes(damaged)
        with pytest.raises(CorruptFileError, match=rf"f\.orc.*{digits}"):
            read_rows(str(path), Schema((optional(1, "d", DecimalType(20, 3)),)))


def test_damage_of_compressed_bytes_is_named(tmp_path):
    fields, numbers = [attributed("n", pa.int64(), 1)], pa.array(range(20_000))
    path = Path(write_orc(tmp_path / "f.orc", fields, [numbers], compression="zlib"))
    content = path.read_bytes()
    for at in range(8, len(content), 7):
        path.write_bytes(content[:at] + bytes(b ^ 0xFF for b in content[at : at + 8]))
        with pytest.raises(CorruptFileError, match=r"f\.orc"):
            read_rows(str(path), NUMBERS)
        damaged = content[:at] + bytes(b ^ 0xFF for b in content[at : at + 8]) + content[at + 8 :]
        path.write_bytes(damaged)
        with contextlib.suppress(CorruptFileError, UnsupportedFeatureError):
            read_rows(str(path), NUMBERS)


@pytest.mark.parametrize(
    "attributes",
    [
        {"id": "x"},
        {"id": ""},
        {"id": "99999999999999999999"},
        {"binary_type": "FIXED"},
        {"binary_type": "FIXED", "length": "z"},
        {"binary_type": "FIXED", "length": "-5"},
        {"binary_type": "FIXED", "length": "99999999999"},
    ],
)
def test_attributes_that_make_no_sense_are_named(tmp_path, attributes):
    field = attributed("b", pa.binary(), 1, **attributes)
    location = write_orc(tmp_path / "f.orc", [field], [[b"a"]])
    with pytest.raises(CorruptFileError, match=r"f\.orc.*'b'.*iceberg\."):
        read_rows(location, Schema((optional(1, "b", BINARY),)))


def test_structs_without_fields_are_read(tmp_path):
    fields = [attributed("s", pa.struct([]), 1)]
    location = write_orc(tmp_path / "f.orc", fields, [[{}, None]])
    assert read_rows(location, Schema((optional(1, "s", StructType(())),))) == [({},), (None,)]
    wanted = Schema((optional(1, "s", StructType((optional(2, "n", INT),))),))
    assert read_rows(location, wanted) == [({"n": None},), (None,)]


def test_impalas_migrated_files_are_read_through_their_name_mapping():
    path = (
        corpus_dir() / "impala/testdata/data/iceberg_test/iceberg_migrated_alter_test_orc/000000_0"
    )
    mapping = NameMapping((MappedField(("string_col",), 2), MappedField(("int_col",), 1)))
    schema = Schema((optional(2, "s", STRING), optional(1, "i", LONG), optional(3, "x", INT)))
    assert len(read_rows(str(path), schema, name_mapping=mapping)) == 3


def test_javas_promoted_columns_are_read():
    folder = corpus_dir() / "java-gen/promotions_orc/data/i2l=-5"
    (path,) = folder.glob("*.orc")
    schema = Schema(
        (
            required(1, "id", LONG),
            optional(2, "i2l", LONG),
            optional(3, "f2d", DOUBLE),
            optional(4, "d9", DecimalType(20, 2)),
            optional(
                7, "st", StructType((optional(9, "x", LONG), optional(10, "y", DecimalType(9, 1))))
            ),
            optional(8, "li", ListType(11, LONG)),
        )
    )
    ((row),) = read_rows(str(path), schema)
    assert row[1] == -5
    assert isinstance(row[2], float)


def encrypt_nominally(path: Path) -> None:
    """Adds an encryption field to the footer of an uncompressed file."""
    content = path.read_bytes()
    script = content[-1 - content[-1] : -1]
    assert script[0] == 0x08, "the first field is the length of the footer"
    length = (script[1] & 0x7F) | (script[2] & 0x7F) << 7
    assert script[1] >= 0x80 > script[2], "a length of two bytes"
    # Footer: field 10, a message of two bytes. Encryption: field 4 (the key provider) is 1.
    added = b"\x52\x02\x20\x01"
    length += len(added)
    script = bytes([0x08, length & 0x7F | 0x80, length >> 7]) + script[3:]
    path.write_bytes(content[: -1 - content[-1]] + added + script + content[-1:])


def test_a_file_with_encrypted_columns_is_refused(tmp_path):
    path = tmp_path / "some.orc"
    fields = [attributed(name, pa.int64(), at) for at, name in enumerate("abc", 1)]
    write_orc(path, fields, [[1, 2]] * 3, compression="uncompressed")
    schema = Schema((optional(1, "a", LONG),))
    assert read_rows(str(path), schema) == [(1,), (2,)]
    encrypt_nominally(path)
    with pytest.raises(UnsupportedFeatureError, match=r"some\.orc is encrypted"):
        read_rows(str(path), schema)


def test_a_file_of_encrypted_blocks_is_refused(tmp_path):
    path = tmp_path / "stream.orc"
    path.write_bytes(b"AGS1" + bytes(100))
    with pytest.raises(UnsupportedFeatureError, match=r"stream\.orc is encrypted"):
        read_rows(str(path), Schema((optional(1, "a", LONG),)))


@pytest.mark.parametrize("error", [OSError("disk"), KeyboardInterrupt()])
def test_what_interrupts_a_write_does_not_reach_the_library(error: BaseException) -> None:
    """Its destructor would end the process."""
    handle = mock.Mock()
    handle.write.side_effect = error
    sink = _OrcSink(handle)
    assert sink.write(b"ORC") == sink.write(b"ORC") == 3
    handle.write.assert_called_once()
    with pytest.raises(type(error)):
        sink.check()
