"""What Spark shows when a table, a file or an option is wrong: our error, and never some rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq
import pytest
from built.damage import drop_block
from built.tables import TableBuilder
from pyspark.sql import DataFrame, SparkSession
from spark_reads import load, message_of
from spark_tables import LIVE_PEOPLE, PEOPLE, people

from icebergds.spec.manifest import DataFile

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]


class Damage(NamedTuple):
    """What is done to a table, and the error that names it."""

    make: Callable[[Path], TableBuilder]
    error: str
    detail: str


def _nothing(location: Path) -> TableBuilder:
    builder = TableBuilder(location, PEOPLE)
    for file in (location / "metadata").iterdir():
        file.unlink()
    return builder


def _metadata(change: Callable[[str], str]) -> Callable[[Path], TableBuilder]:
    def make(location: Path) -> TableBuilder:
        builder = people(location)
        newest = Path(builder.metadata_location)
        newest.write_text(change(newest.read_text()))
        return builder

    return make


def _two_newest(location: Path) -> TableBuilder:
    builder = people(location)
    text = Path(builder.metadata_location).read_text()
    (location / "metadata" / "version-hint.text").unlink()
    (location / "metadata" / f"0000{builder.version}-5e6f.metadata.json").write_text(text)
    return builder


def _file(pattern: str, damage: Callable[[Path], object]) -> Callable[[Path], TableBuilder]:
    def make(location: Path) -> TableBuilder:
        builder = people(location)
        victim = sorted(location.glob(pattern), key=lambda path: path.stat().st_mtime_ns)[-1]
        damage(victim)
        return builder

    return make


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


def _empty(path: Path) -> None:
    pq.write_table(pq.read_table(path).slice(0, 0), path)


def _scramble(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[4 : len(data) // 2] = b"\xa5" * (len(data) // 2 - 4)
    path.write_bytes(data)


def _vector(damage: Callable[[DataFile], DataFile]) -> Callable[[Path], TableBuilder]:
    def make(location: Path) -> TableBuilder:
        builder = TableBuilder(location, PEOPLE, format_version=3)
        file = builder.data_file([(i, "a", None) for i in range(3)])
        builder.commit(file)
        builder.commit(*(damage(vector) for vector in builder.deletion_vectors([(file, [1])])))
        return builder

    return make


def _scramble_vector(vector: DataFile) -> DataFile:
    _scramble(Path(vector.file_path))
    return vector


AT_LOAD = {
    "no table": Damage(_nothing, "NoSuchTableError", "no metadata file"),
    "truncated metadata": Damage(
        _metadata(lambda text: text[: len(text) // 2]), "InvalidMetadataError", "v3.metadata.json"
    ),
    "metadata without schemas": Damage(
        _metadata(lambda text: text.replace('"schemas"', '"shemas"')),
        "InvalidMetadataError",
        "v3.metadata.json",
    ),
    "newer format version": Damage(
        _metadata(lambda text: text.replace('"format-version":2', '"format-version":4')),
        "UnsupportedFeatureError",
        "4",
    ),
    "two newest metadata files": Damage(_two_newest, "InvalidMetadataError", "claim version 3"),
}
AT_PLANNING = {
    "missing manifest list": Damage(
        _file("metadata/snap-*.avro", Path.unlink), "MissingFileError", "snap-1002"
    ),
    "truncated manifest list": Damage(
        _file("metadata/snap-*.avro", _truncate), "CorruptFileError", "snap-1002"
    ),
    "missing manifest": Damage(_file("metadata/*-m0.avro", Path.unlink), "MissingFileError", "-m0"),
    "scrambled manifest": Damage(_file("metadata/*-m0.avro", _scramble), "CorruptFileError", "-m0"),
    "manifest without its files": Damage(
        _file("metadata/*-m0.avro", drop_block),
        "CorruptFileError",
        "option('wrong-counts', 'warn')",
    ),
}
IN_TASKS = {
    "missing data file": Damage(
        _file("data/data-*.parquet", Path.unlink), "MissingFileError", "data-"
    ),
    "truncated data file": Damage(
        _file("data/data-*.parquet", _truncate), "CorruptFileError", "data-"
    ),
    "scrambled data file": Damage(
        _file("data/data-*.parquet", _scramble), "CorruptFileError", "data-"
    ),
    "data file with other rows": Damage(
        _file("data/data-*.parquet", _empty), "CorruptFileError", "option('wrong-counts', 'warn')"
    ),
    "missing position deletes": Damage(
        _file("data/deletes-*", Path.unlink), "MissingFileError", "deletes-"
    ),
    "truncated position deletes": Damage(
        _file("data/deletes-*", _truncate), "CorruptFileError", "deletes-"
    ),
    "missing equality deletes": Damage(
        _file("data/keys-*", Path.unlink), "MissingFileError", "keys-"
    ),
    "scrambled equality deletes": Damage(
        _file("data/keys-*", _scramble), "CorruptFileError", "keys-"
    ),
    "scrambled deletion vector": Damage(_vector(_scramble_vector), "CorruptFileError", "vectors-"),
    "deletion vector past the end of its file": Damage(
        _vector(lambda vector: replace(vector, content_offset=10**6)),
        "CorruptFileError",
        "vectors-",
    ),
}


def _assert_shows(message: str, damage: Damage) -> None:
    assert f"icebergds.errors.{damage.error}: " in message
    assert damage.detail in message.rpartition(f"icebergds.errors.{damage.error}: ")[2]


@pytest.mark.parametrize("case", AT_LOAD)
def test_errors_of_the_load(spark: SparkSession, tmp_path: Path, case: str) -> None:
    damage = AT_LOAD[case]
    builder = damage.make(tmp_path / "t")
    message = message_of(lambda: load(spark, builder.location))
    assert "PYTHON_DATA_SOURCE_ERROR" in message
    _assert_shows(message, damage)


@pytest.mark.parametrize("case", AT_PLANNING)
def test_errors_of_the_planning(spark: SparkSession, tmp_path: Path, case: str) -> None:
    damage = AT_PLANNING[case]
    df = load(spark, damage.make(tmp_path / "t").location)
    message = message_of(df.collect)
    assert "PYTHON_DATA_SOURCE_ERROR" in message
    _assert_shows(message, damage)


@pytest.mark.parametrize("case", IN_TASKS)
def test_errors_of_tasks(spark: SparkSession, tmp_path: Path, case: str) -> None:
    damage = IN_TASKS[case]
    df = load(spark, damage.make(tmp_path / "t").location)
    _assert_shows(message_of(df.collect), damage)


def test_files_with_other_counts_are_read_if_the_load_only_warns(
    spark: SparkSession, tmp_path: Path
) -> None:
    location = IN_TASKS["data file with other rows"].make(tmp_path / "t").location
    assert len(load(spark, location, **{"wrong-counts": "warn"}).collect()) < len(LIVE_PEOPLE)


@pytest.mark.parametrize(
    "use",
    [
        pytest.param(lambda df: df.count(), id="count"),
        pytest.param(lambda df: df.limit(100).collect(), id="limit"),
        pytest.param(lambda df: df.write.format("noop").mode("overwrite").save(), id="write"),
    ],
)
def test_no_action_takes_the_rows_of_the_good_files(
    spark: SparkSession, tmp_path: Path, use: Callable[[DataFrame], object]
) -> None:
    builder = IN_TASKS["missing data file"].make(tmp_path / "t")
    message = message_of(lambda: use(load(spark, builder.location)))
    assert "icebergds.errors.MissingFileError" in message


def test_an_iterator_of_rows_fails_before_its_end(spark: SparkSession, tmp_path: Path) -> None:
    builder = IN_TASKS["missing data file"].make(tmp_path / "t")
    # Spark 4.1 raises an error of its gateway here.
    with pytest.raises(Exception, match=r"icebergds\.errors\.MissingFileError"):
        list(load(spark, builder.location).toLocalIterator())


def test_a_missing_file_is_named_with_the_place_where_it_was_looked_for(
    spark: SparkSession, tmp_path: Path
) -> None:
    builder = people(tmp_path / "t")
    mapping = f'{{"{builder.location}/data": "/elsewhere"}}'
    df = load(spark, builder.location, **{"location-map": mapping})
    message = message_of(df.collect)
    assert "MissingFileError" in message
    assert f"{builder.location}/data/" in message
    assert "looked for at '/elsewhere/" in message


def test_a_wrong_filter_is_shown_by_the_load(spark: SparkSession, tmp_path: Path) -> None:
    builder = people(tmp_path / "t")
    message = message_of(lambda: load(spark, builder.location, filter="nmae = 'x'"))
    assert "icebergds.errors.InvalidFilterError" in message
    assert "did you mean name?" in message


def test_a_wrong_option_is_shown(spark: SparkSession, tmp_path: Path) -> None:
    builder = people(tmp_path / "t")
    message = message_of(lambda: load(spark, builder.location, colums="id"))
    assert "icebergds.errors.InvalidOptionError: unknown option 'colums'; did you mean" in message
