"""ORC timestamps of every year, in every encoding, of writers in every time zone."""

from __future__ import annotations

import base64
import contextlib
import datetime as dt
import gzip
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pytest
from built.data_files import read_batches, read_rows as read_any
from built.orc_files import mark_hybrid_calendar
from built.schemas import optional

from icebergds.errors import CorruptFileError, InvalidDataError, UnsupportedFeatureError
from icebergds.formats.orc import reader as orc_reader
from icebergds.spec.manifest import FileFormat
from icebergds.spec.schema import Schema
from icebergds.spec.types import (
    DATE,
    INT,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    ListType,
    MapType,
    StructType,
)

US = pa.timestamp("us")
EPOCH = dt.datetime(1970, 1, 1)
FAR = dt.datetime(9999, 12, 31, 23, 59, 59, 999_999)
FIRST = dt.datetime(1, 1, 1)


def with_field_id(name: str, stored: pa.DataType, field_id: int) -> pa.Field:
    return pa.field(name, stored, metadata={"iceberg.id": str(field_id)})


def write_times(path: Path, times: Any, stored: pa.DataType = US, **options: Any) -> str:
    column = times if isinstance(times, pa.Array) else pa.array(times, stored)
    schema = pa.schema([with_field_id("t", column.type, 1)])
    orc.write_table(pa.table([column], schema=schema), path, **options)
    return str(path)


def read_rows(location: str, schema: Schema, **options: Any) -> list[tuple[Any, ...]]:
    return read_any(location, schema, file_format=FileFormat.ORC, **options)


def read_times(location: str, field_type: Any = TIMESTAMP) -> list[Any]:
    return [row[0] for row in read_rows(location, Schema((optional(1, "t", field_type),)))]


def any_time(chance: random.Random) -> dt.datetime | None:
    """A time of any year, with a fraction if it is after 1970, as Arrow writes it; or none."""
    if chance.random() < 0.1:
        return None
    moment = EPOCH + dt.timedelta(seconds=chance.randint(-62_135_596_800, 253_402_300_799))
    return moment.replace(microsecond=chance.randrange(10**6) if moment > EPOCH else 0)


def runs_of_times(chance: random.Random) -> list[dt.datetime | None]:
    """Times in runs that the run-length encodings store in each of their ways."""
    return [
        *[any_time(chance) for _ in range(1500)],
        *[FAR] * 1200,
        *[FIRST] * 5,
        *[None] * 600,
        *[FIRST + dt.timedelta(days=700 * step) for step in range(1000)],
        *[EPOCH + dt.timedelta(days=step * step) for step in range(700)],
        # Mostly small numbers, and some that are not: these are patched.
        *[EPOCH + dt.timedelta(seconds=chance.randrange(100)) for _ in range(400)],
        dt.datetime(9000, 1, 1),
        *[EPOCH + dt.timedelta(seconds=chance.randrange(100)) for _ in range(100)],
    ]


@pytest.mark.parametrize("version", ["0.11", "0.12"])
@pytest.mark.parametrize("codec", ["uncompressed", "zlib", "snappy", "lz4", "zstd"])
def test_times_of_every_year_are_read_from_every_encoding(tmp_path, codec, version):
    times = runs_of_times(random.Random(codec))
    location = write_times(tmp_path / "f.orc", times, compression=codec, file_version=version)
    assert read_times(location) == times
    zoned = [time and time.replace(tzinfo=dt.UTC) for time in times]
    location = write_times(
        tmp_path / "z.orc",
        zoned,
        pa.timestamp("us", "UTC"),
        compression=codec,
        file_version=version,
    )
    assert read_times(location, TIMESTAMPTZ) == zoned


def test_times_inside_structs_lists_and_maps_stay_in_their_places(tmp_path):
    chance = random.Random(7)
    pair = pa.struct([with_field_id("x", US, 4), with_field_id("n", pa.int32(), 5)])
    map_type = pa.map_(
        pa.field("key", US, False, {"iceberg.id": "8"}), with_field_id("value", pair, 9)
    )
    fields = [
        with_field_id("i", pa.int32(), 1),
        with_field_id("l", pa.list_(with_field_id("item", pair, 3)), 2),
        with_field_id("m", map_type, 7),
        with_field_id("s", pa.struct([with_field_id("t", US, 11)]), 10),
    ]

    def pair_of(number: int) -> dict[str, Any] | None:
        return {"x": any_time(chance), "n": number} if chance.random() < 0.8 else None

    rows = [
        (
            number,
            [pair_of(k) for k in range(chance.randrange(4))] if number % 7 else None,
            [(FIRST + dt.timedelta(days=number), pair_of(number))] if number % 5 else [],
            {"t": any_time(chance)} if number % 3 else None,
        )
        for number in range(2000)
    ]
    columns = [
        pa.array(column, field.type)
        for column, field in zip(zip(*rows, strict=True), fields, strict=True)
    ]
    orc.write_table(pa.table(columns, schema=pa.schema(fields)), tmp_path / "f.orc")
    read_pair = StructType((optional(4, "x", TIMESTAMP), optional(5, "n", INT)))
    # The same ids at both places: a schema cannot have them, but a file can.
    schema = Schema(
        (
            optional(1, "i", INT),
            optional(2, "l", ListType(3, read_pair)),
            optional(10, "s", StructType((optional(11, "t", TIMESTAMP),))),
        )
    )
    assert read_rows(str(tmp_path / "f.orc"), schema) == [(r[0], r[1], r[3]) for r in rows]
    maps = Schema((optional(7, "m", MapType(8, TIMESTAMP, 9, read_pair)),))
    assert read_rows(str(tmp_path / "f.orc"), maps) == [(row[2],) for row in rows]


def test_each_stripe_has_its_own_times(tmp_path):
    path = tmp_path / "f.orc"
    times = [[dt.datetime(2020, 1, 1)], [FAR, None], [None], [FIRST]]
    with orc.ORCWriter(path, stripe_size=1) as writer:
        for part in times:
            padded = pa.array([*part, *[None] * 2000], US)
            writer.write(pa.table([padded], schema=pa.schema([with_field_id("t", US, 1)])))
    assert orc.ORCFile(path).nstripes > 2
    assert [t for t in read_times(str(path)) if t] == [dt.datetime(2020, 1, 1), FAR, FIRST]


def test_the_first_and_the_last_microseconds_are_read(tmp_path):
    whole = -(2**63) // 10**6 * 10**6 + 10**6
    counts = [2**63 - 1, whole, None, 2**63 // 1000, -(2**63 // 10**9 + 1) * 10**6]
    location = write_times(tmp_path / "f.orc", pa.array(counts, pa.int64()).view(US))
    schema = Schema((optional(1, "t", TIMESTAMP),))
    (read,) = read_batches(location, schema, file_format=FileFormat.ORC)
    assert read.batch.column(0).view(pa.int64()).to_pylist() == counts


def test_times_of_nanoseconds_do_not_wrap(tmp_path):
    location = write_times(tmp_path / "f.orc", [FAR])
    with pytest.raises(InvalidDataError, match=r"'t' of .*f\.orc.*timestamp_ns"):
        read_times(location, TIMESTAMP_NS)


def test_pyarrow_reads_times_that_fit_its_nanoseconds(tmp_path, monkeypatch):
    monkeypatch.setattr(pa, "__version__", "25.0.0")
    monkeypatch.delattr(orc_reader, "read_stripe")
    location = write_times(tmp_path / "f.orc", [dt.datetime(1800, 1, 1), dt.datetime(2200, 1, 1)])
    assert read_times(location) == [dt.datetime(1800, 1, 1), dt.datetime(2200, 1, 1)]


@pytest.mark.parametrize("unit", ["us", "ns"])
def test_no_time_wraps_in_the_versions_of_pyarrow_that_would_wrap_it(tmp_path, monkeypatch, unit):
    monkeypatch.setattr(pa, "__version__", "24.0.0")
    # Arrow's writer stores fractions before 1970 as negative nanoseconds.
    counts = [0, -1, -1_500_000, 10**15 + 1, None]
    times = pa.array(counts, pa.int64()).view(pa.timestamp(unit))
    location = write_times(tmp_path / "f.orc", times)
    schema = Schema((optional(1, "t", TIMESTAMP if unit == "us" else TIMESTAMP_NS),))
    (read,) = read_batches(location, schema, file_format=FileFormat.ORC)
    assert read.batch.column(0).view(pa.int64()).to_pylist() == counts
    assert read_times(write_times(tmp_path / "g.orc", [FAR, FIRST])) == [FAR, FIRST]


@pytest.mark.parametrize("codec", ["uncompressed", "zlib", "snappy", "lz4", "zstd"])
def test_damage_is_named(tmp_path, codec):
    chance = random.Random(3)
    times = [any_time(chance) for _ in range(200)]
    path = Path(write_times(tmp_path / "f.orc", times, compression=codec))
    content = path.read_bytes()
    schema = Schema((optional(1, "t", TIMESTAMP),))
    for at in range(3, len(content), 5):
        path.write_bytes(content[:at] + bytes([content[at] ^ 0xFF]) + content[at + 1 :])
        with contextlib.suppress(CorruptFileError, UnsupportedFeatureError):
            read_batches(str(path), schema, file_format=FileFormat.ORC)


def test_unknown_time_zones_of_writers_are_named(tmp_path, monkeypatch):
    path = Path(write_times(tmp_path / "f.orc", [FAR], compression="uncompressed"))
    content = path.read_bytes()
    assert content.count(b"GMT") == 1
    path.write_bytes(content.replace(b"GMT", b"XYZ"))
    monkeypatch.setattr(pa, "__version__", "24.0.0")
    with pytest.raises(UnsupportedFeatureError, match=r"f\.orc.*XYZ.*tzdata"):
        read_times(str(path))


# Written by Spark in the zone America/New_York, as the next one is.
EARLY = (
    "H4sIAAAAAAACA/MPcmZlYPj/xZyBoYKFKWfrrf+MG+ZJ/GdY6dlTDyS2rWW4f9NmriADgwMDA4O+H8O5VAYGLjYOBgFGCV"
    "YgzQik5YA0K5DmFmLiYABiJikBx9zUoszkRH2/1PL4yPyibFWgJgEuFg6GAAYuDg4GLyAdocfLyMDBLJAmxQUkGST0FEw1"
    "2JQ4OHiEGBmlGEuUNDg4rVS4xIsLEouy9YoLc/SSE0sScyqLS/RKKgtShThLMnNTi0sScwu0FLkk8ovS9RILEpMzUvUgGs"
    "pSi4oz8/OEWE30jPUMDNiswHZbwe12YPBgiGBMYjUCSXN0MgqwSjQ0CCgxMfBoiBpwNn1hZvYPcpYAAH8kIDEdAQAA"
)


def test_early_local_times_are_those_of_the_writers_clock(tmp_path):
    """Around 1970, the writer's clock and UTC are on different sides of the epoch."""
    path = tmp_path / "f.orc"
    path.write_bytes(gzip.decompress(base64.b64decode(EARLY)))
    assert read_times(str(path)) == [
        dt.datetime(1850, 1, 1),
        dt.datetime(1899, 12, 31, 23, 59, 59, 500_000),
        dt.datetime(1969, 12, 31, 20, 0, 0, 500_000),
        dt.datetime(1969, 12, 31, 18, 30, 0, 500_000),
        None,
        dt.datetime(1955, 7, 1, 12, 0, 0, 250_000),
    ]


HYBRID = (
    "H4sIAAAAAAACA/MPcmZnYPj390MpA8MPrv/zTx6+ydxwdNMKcS7PWLH9DLNjgnoZGBidvjB+m2vLwFhhcLWBgeHdxAKr9B"
    "kzGBgYPgZMAMoG1usyMPgxMzBwqTMw5IFoBjCoEvwFMdsdqIfr+5Pwb1tZ2M+WMJTeBGpirLVjlI1kYNiq4yvAwLAdqBxo"
    "ERcbB4MAowQbkGYE0rZAmhVIS4LFmaDiTBJqQkwcDEDMBMJSAo65qUWZyYn6fqnl8ZH5RdmWQIOkuFg4GAIYuDg4GLyAdE"
    "QMiGUFYumYMjJwMAtcYZTiBlIMEh2MCp4aPEo8HDxCTIxMUowlUowpShocnFYqXOLFBYlF2XrFhTl6yYkliTmVxSV6JZUF"
    "qUKcJZm5qcUlibkFSkwc/FqKXBL5Rel6iQWJyRmpehBNZalFxZn5eUKsJnrGegYGPFZg91jB3WMFd48DgwdDBGMSqxFIIc"
    "dcRgFWiYYGASUmBh4NeQPOpi/MzP5BzhIANeRF96kBAAA="
)


def test_dates_of_the_hybrid_calendar_are_read_as_they_were_written(tmp_path):
    path = tmp_path / "f.orc"
    path.write_bytes(gzip.decompress(base64.b64decode(HYBRID)))
    times = [
        dt.datetime(1, 1, 1),
        dt.datetime(100, 3, 1, 12),
        dt.datetime(1500, 2, 28, 23, 59, 59, 1),
        dt.datetime(1582, 10, 4, 1, 2, 3, 400_000),
        dt.datetime(1582, 10, 15),
        dt.datetime(1850, 1, 1),
        None,
        dt.datetime(2050, 1, 1),
        dt.datetime(2050, 7, 1, 0, 0, 0, 1),
        dt.datetime(9999, 7, 1),
        dt.datetime(9999, 12, 31),
        FAR,
    ]
    schema = Schema((optional(1, "t", TIMESTAMP), optional(2, "d", DATE)))
    assert read_rows(str(path), schema) == [(time, time and time.date()) for time in times]


def test_dates_of_files_with_field_ids_are_gregorian(tmp_path):
    """Java's writer marks Iceberg's files as hybrid, too, since it is not told otherwise."""
    with_ids = write_times(tmp_path / "f.orc", [FIRST])
    without_ids = str(tmp_path / "g.orc")
    orc.write_table(pa.table({"t": pa.array([FIRST], US)}), without_ids)
    for location in (with_ids, without_ids):
        mark_hybrid_calendar(Path(location))
    assert read_times(with_ids) == [FIRST]
    assert read_times(without_ids) == [FIRST + dt.timedelta(days=2)]
