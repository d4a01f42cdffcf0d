"""What table properties and write options say of how files are written."""

from __future__ import annotations

import pickle

import pytest
from built.schemas import optional, required

from icebergds.errors import InvalidOptionError
from icebergds.formats.data_file.metrics_modes import COUNTS, FULL, NONE, truncate
from icebergds.formats.data_file.write_properties import (
    AvroProperties,
    BloomFilter,
    OrcProperties,
    ParquetProperties,
    WriteProperties,
)
from icebergds.spec.manifest import FileContent
from icebergds.spec.schema import Schema
from icebergds.spec.sort import NullOrder, SortDirection, SortField, SortOrder
from icebergds.spec.transforms import BucketTransform, IdentityTransform, Transform
from icebergds.spec.types import INT, LONG, STRING, ListType, StructType

SCHEMA = Schema(
    (
        required(1, "id", LONG),
        optional(2, "s", StructType((optional(3, "x", INT), optional(4, "y", STRING)))),
        optional(5, "l", ListType(6, STRING)),
        optional(7, "last", STRING),
    )
)
DEFAULT = "write.metadata.metrics.default"
COLUMN = "write.metadata.metrics.column."
LIMIT = "write.metadata.metrics.max-inferred-column-defaults"


def parse(properties, sort_order=SortOrder()):  # noqa: B008
    return WriteProperties.of(properties, SCHEMA, sort_order)


def sorted_by(field_id: int, transform: Transform) -> SortOrder:
    key = SortField((field_id,), transform, SortDirection.ASC, NullOrder.NULLS_FIRST)
    return SortOrder(1, (key,))


def test_without_properties_everything_has_its_default():
    found = parse({})
    assert found.parquet == found.delete_parquet == ParquetProperties()
    assert found.orc == found.delete_orc == OrcProperties()
    assert found.avro == found.delete_avro == AvroProperties()
    assert {found.metrics[i] for i in SCHEMA.fields_by_id} == {truncate(16)}


def test_parquet_properties_are_taken():
    prefix = "write.parquet."
    found = parse(
        {
            f"{prefix}compression-codec": "GZIP",
            f"{prefix}compression-level": "3",
            f"{prefix}row-group-size-bytes": "1",
            f"{prefix}page-size-bytes": "2",
            f"{prefix}page-row-limit": "3",
            f"{prefix}page-version": "v2",
            f"{prefix}dict-size-bytes": "4",
            f"{prefix}dict-encoding-enabled.column.s.x": "false",
            f"{prefix}stats-enabled.column.l.element": "false",
            f"{prefix}bloom-filter-enabled.column.id": "true",
            f"{prefix}bloom-filter-fpp.column.id": "0.1",
            f"{prefix}bloom-filter-ndv.column.id": "100",
            f"{prefix}bloom-filter-enabled.column.last": "true",
            f"{prefix}bloom-filter-enabled.column.s.y": "false",
            f"{prefix}bloom-filter-enabled.column.gone": "true",
            f"{prefix}bloom-filter-max-bytes": "5",
            f"{prefix}shred-variants": "true",
            f"{prefix}variant-inference-buffer-size": "6",
        }
    )
    assert found.parquet == ParquetProperties(
        codec="gzip",
        level=3,
        row_group_size=1,
        page_size=2,
        page_row_limit=3,
        page_version="v2",
        dictionary_size=4,
        dictionary={3: False},
        statistics={6: False},
        bloom_filters={1: BloomFilter(0.1, 100), 7: BloomFilter(0.01, None)},
        bloom_filter_max_size=5,
        shred_variants=True,
        variant_buffer_size=6,
    )


def test_orc_and_avro_properties_are_taken():
    found = parse(
        {
            "write.orc.compression-codec": "zstd",
            "write.orc.compression-strategy": "compression",
            "write.orc.stripe-size-bytes": "1000",
            "write.orc.bloom.filter.columns": "id, s.y,gone",
            "write.orc.bloom.filter.fpp": "0.2",
            "write.avro.compression-codec": "zstd",
            "write.avro.compression-level": "5",
        }
    )
    assert found.orc == OrcProperties("zstd", "compression", 1000, frozenset({1, 4}), 0.2)
    assert found.avro == AvroProperties("zstd", 5)


def test_delete_files_follow_their_own_properties_where_these_are_set():
    found = parse(
        {
            "write.parquet.compression-codec": "gzip",
            "write.parquet.page-row-limit": "10",
            "write.delete.parquet.compression-codec": "snappy",
        }
    )
    deletes = found.parquet_for(FileContent.EQUALITY_DELETES)
    assert (deletes.codec, deletes.page_row_limit) == ("snappy", 10)
    assert found.parquet_for(FileContent.DATA).codec == "gzip"


def test_write_options_win_over_properties_and_leave_levels_of_other_codecs():
    found = parse(
        {
            "compression-codec": "zstd",
            "compression-strategy": "compression",
            "write.parquet.compression-codec": "gzip",
            "write.parquet.compression-level": "9",
            "write.delete.parquet.compression-codec": "snappy",
        }
    )
    assert (found.parquet.codec, found.parquet.level) == ("zstd", None)
    assert found.delete_parquet.codec == found.orc.codec == found.avro.codec == "zstd"
    assert found.orc.strategy == "compression"
    assert parse({"compression-level": "7"}).parquet.level == 7


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("write.parquet.compression-codec", "zip"),
        ("write.parquet.compression-level", "100"),
        ("write.parquet.row-group-size-bytes", "0"),
        ("write.parquet.page-size-bytes", "1 MB"),
        ("write.parquet.page-version", "v3"),
        ("write.parquet.dict-encoding-enabled.column.id", "maybe"),
        ("write.parquet.bloom-filter-fpp.column.id", "1.5"),
        ("write.parquet.shred-variants", "yes"),
        ("write.parquet.variant-inference-buffer-size", "0"),
        ("write.orc.compression-codec", "brotli"),
        ("write.orc.compression-strategy", "fast"),
        ("write.orc.bloom.filter.fpp", "0"),
        ("write.avro.compression-codec", "lz4"),
        ("write.delete.parquet.compression-codec", "zip"),
        (DEFAULT, "some"),
        (DEFAULT, "truncate(0)"),
        (COLUMN + "id", "truncate"),
        (COLUMN + "gone", "some"),
        (LIMIT, "-1"),
        ("compression-codec", "zip"),
        ("compression-level", "x"),
        ("compression-strategy", "fast"),
    ],
)
def test_values_that_a_property_cannot_have_are_errors_that_name_it(name, value):
    bloom = {"write.parquet.bloom-filter-enabled.column.id": "true"}
    with pytest.raises(InvalidOptionError, match=name.replace(".", r"\.")):
        parse({**bloom, name: value})


def test_settings_can_be_pickled():
    found = parse({COLUMN + "id": "counts"})
    assert pickle.loads(pickle.dumps(found)) == found


def test_modes_of_columns_win_over_the_default():
    modes = parse({DEFAULT: "counts", COLUMN + "s.x": "Full", COLUMN + "id": "none"}).metrics
    assert [modes[i] for i in (1, 3, 4)] == [NONE, FULL, COUNTS]


def test_beyond_the_limit_columns_have_no_metrics_and_upper_levels_come_first():
    modes = parse({LIMIT: "3"}).metrics
    assert [i for i in SCHEMA.fields_by_id if modes[i].has_counts] == [1, 3, 7]


def test_the_limit_counts_fields_at_every_level_and_yields_to_a_default():
    assert parse({LIMIT: "7"}).metrics[6] == truncate(16)
    assert parse({LIMIT: "0"}).metrics[1] == NONE
    assert parse({LIMIT: "0", DEFAULT: "counts"}).metrics[6] == COUNTS


def test_columns_that_the_table_is_sorted_by_have_bounds():
    order = sorted_by(7, IdentityTransform())
    assert parse({LIMIT: "0"}, order).metrics[7] == truncate(16)
    assert parse({DEFAULT: "counts"}, order).metrics[7] == truncate(16)
    assert parse({DEFAULT: "full"}, order).metrics[7] == FULL
    assert parse({DEFAULT: "full", COLUMN + "last": "none"}, order).metrics[7] == NONE


def test_sorting_by_buckets_orders_no_column():
    assert parse({LIMIT: "0"}, sorted_by(7, BucketTransform(4))).metrics[7] == NONE
