"""Properties of new tables: what could not be read later is refused."""

from __future__ import annotations

import pytest
from built.metadata import new_table

from icebergds.errors import InvalidMetadataError, InvalidOptionError
from icebergds.operations.write.create import check_properties

_NUMBERS = (
    "icebergds.txn-max-age-ms",
    "commit.manifest.min-count-to-merge",
    "commit.manifest.target-size-bytes",
    "commit.retry.num-retries",
    "commit.retry.min-wait-ms",
    "commit.retry.max-wait-ms",
    "commit.retry.total-timeout-ms",
    "commit.status-check.num-retries",
    "commit.status-check.min-wait-ms",
    "commit.status-check.max-wait-ms",
    "commit.status-check.total-timeout-ms",
    "history.expire.max-ref-age-ms",
    "history.expire.max-snapshot-age-ms",
    "history.expire.min-snapshots-to-keep",
    "read.split.target-size",
    "read.split.planning-lookback",
    "read.split.open-file-cost",
    "write.delete.target-file-size-bytes",
    "write.manifest.compression-level",
    "write.metadata.metrics.max-inferred-column-defaults",
    "write.orc.stripe-size-bytes",
    "write.parquet.compression-level",
    "write.parquet.dict-size-bytes",
    "write.parquet.page-row-limit",
    "write.parquet.page-size-bytes",
    "write.parquet.row-group-size-bytes",
    "write.parquet.variant-inference-buffer-size",
    "write.delete.parquet.row-group-size-bytes",
    "write.summary.partition-limit",
    "write.target-file-size-bytes",
)
_TRUTHS = (
    "commit.manifest-merge.enabled",
    "gc.enabled",
    "write.metadata.delete-after-commit.enabled",
    "write.object-storage.enabled",
    "write.object-storage.partitioned-paths",
    "write.parquet.bloom-filter-enabled.column.id",
    "write.parquet.dict-encoding-enabled.column.id",
    "write.parquet.shred-variants",
    "write.parquet.stats-enabled.column.id",
    "write.spark.fanout.enabled",
)
_WORDS = {
    "write.avro.compression-codec": ("zstdd", "zstd"),
    "write.delete.avro.compression-codec": ("snapy", "snappy"),
    "write.delete.format.default": ("parqet", "parquet"),
    "write.delete.granularity": ("files", "file"),
    "write.delete.isolation-level": ("snap-shot", "snapshot"),
    "write.delete.mode": ("merge_on_read", "merge-on-read"),
    "write.distribution-mode": ("hashed", "hash"),
    "write.format.default": ("orcs", "orc"),
    "write.manifest.compression-codec": ("gzipp", "gzip"),
    "write.merge.isolation-level": ("serialisable", "serializable"),
    "write.merge.mode": ("copy_on_write", "copy-on-write"),
    "write.metadata.compression-codec": ("gzi", "gzip"),
    "write.metadata.metrics.column.id": ("count", "counts"),
    "write.metadata.metrics.default": ("truncate 16", "truncate(16)"),
    "write.orc.compression-codec": ("zlibb", "zlib"),
    "write.orc.compression-strategy": ("sped", "speed"),
    "write.parquet.compression-codec": ("snapy", "snappy"),
    "write.parquet.page-version": ("v11", "v1"),
    "write.update.isolation-level": ("seriallizable", "serializable"),
    "write.update.mode": ("mergeonread", "merge-on-read"),
}


def _refusal(name: str, text: str) -> str:
    with pytest.raises(InvalidOptionError) as raised:
        check_properties(new_table(properties={name: text}))
    assert f"property {name} is {text!r}, expected" in str(raised.value)
    return str(raised.value)


@pytest.mark.parametrize("name", _NUMBERS)
def test_what_is_to_be_an_integer_is_one(name: str) -> None:
    assert "an integer" in _refusal(name, "many")


@pytest.mark.parametrize("name", _TRUTHS)
def test_what_is_to_be_true_or_false_is(name: str) -> None:
    assert "true or false" in _refusal(name, "yes")


@pytest.mark.parametrize("name", _WORDS)
def test_the_nearest_word_is_suggested(name: str) -> None:
    text, nearest = _WORDS[name]
    assert f"did you mean {nearest}?" in _refusal(name, text)


@pytest.mark.parametrize("name", [name for name in _NUMBERS if name.startswith("commit.retry")])
def test_numbers_of_retries_and_waits_are_not_negative(name: str) -> None:
    assert "an integer of at least 0" in _refusal(name, "-1")


@pytest.mark.parametrize(
    "name", [name for name in _NUMBERS if name.endswith("target-file-size-bytes")]
)
def test_files_have_a_size(name: str) -> None:
    assert "an integer of at least 1" in _refusal(name, "0")


def test_levels_are_those_of_the_codec() -> None:
    properties = {"write.manifest.compression-level": "99"}
    with pytest.raises(InvalidOptionError, match=r"write\.manifest\.compression-level is 99"):
        check_properties(new_table(properties=properties))


@pytest.mark.parametrize("name", ["write.data.path", "write.folder-storage.path"])
def test_files_go_to_absolute_locations(name: str) -> None:
    assert "an absolute location, such as s3://b/t/data" in _refusal(name, "data")


def test_a_name_mapping_is_well_formed() -> None:
    with pytest.raises(InvalidMetadataError, match=r"schema\.name-mapping\.default is malformed"):
        check_properties(new_table(properties={"schema.name-mapping.default": "[1"}))


def test_metrics_are_of_columns_of_the_table() -> None:
    name = "write.metadata.metrics.column.point.xx"
    with pytest.raises(InvalidOptionError) as raised:
        check_properties(new_table(properties={name: "full"}))
    assert str(raised.value) == (
        f"property {name} is 'full', but the table has no column 'point.xx'; did you mean point.x?"
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("write.delete.mode", "Merge-On-Read"),
        ("write.metadata.metrics.column.point.x", "truncate(4)"),
        ("write.parquet.bloom-filter-enabled.column.later", "true"),
        ("write.location-provider.impl", "org.example.Locations"),
        ("commit.manifest.min-count-to-merge", "5"),
        ("write.wap.enabled", "of another engine"),
        ("another.engine.mode", "merge_on_read"),
    ],
)
def test_what_can_be_read_or_is_not_ours_is_accepted(name: str, text: str) -> None:
    check_properties(new_table(properties={name: text}))


def test_every_default_is_accepted() -> None:
    check_properties(new_table())
