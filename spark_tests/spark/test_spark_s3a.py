"""Tables on S3 by properties, which Spark reads by S3A, Hadoop's client, if it has it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest
from spark_reads import run_program

from icebergds import Table, load_catalog

if TYPE_CHECKING:
    from s3_server import S3Server

pytestmark = [pytest.mark.spark, pytest.mark.long, pytest.mark.every_spark]

_CACHE = Path(__file__).resolve().parents[2] / ".cache/java"
SECRET = "not to be shown"
Seen = dict[str, Any]


def _jars() -> Path:
    """S3A of the version that Spark needs."""
    (jar,) = (Path(pyspark.__file__).parent / "jars").glob("hadoop-client-api-*.jar")
    jars = _CACHE / jar.stem.replace("hadoop-client-api", "hadoop-aws")
    if not jars.exists():
        pytest.skip(f"no S3A: {jars.name} is not there; run .ci/servers.sh")
    return jars


@pytest.fixture(scope="module")
def seen(s3: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Seen:
    location = f"{s3.new_location()}/a lake%20"
    _fill(location, s3.properties)
    properties = [
        {**each, "s3.secret-access-key": SECRET} for each in (s3.properties, s3.racing_properties)
    ]
    texts = map(json.dumps, properties)
    directory = tmp_path_factory.mktemp("s3a")
    return run_program("s3a_reads.py", f"{location}/db", *texts, str(_jars()), directory=directory)


def _fill(location: str, properties: dict[str, str]) -> None:
    catalog = load_catalog("s3", warehouse=location, **properties)
    catalog.create_namespace("db")

    def created(name: str, rows: pa.Table, appends: int) -> Table:
        table = catalog.create_table(f"db.{name}", rows.schema, partition_spec="day")
        for _ in range(appends):
            table.append(rows)
        return table

    rows = pa.table({"id": [1, 2, 3, 4], "name": ["a", "b", None, "d"], "day": [1, 1, 2, 2]})
    people = created("people", rows, 1)
    with people.update_schema() as update:
        update.rename_column("name", "first name")
        update.add_column("name", "string")
    created("deleted", rows, 1).delete("id in (1, 4)")
    created("changed", rows, 1)
    keyed = created("keyed", rows, 1)
    keyed.upsert(pa.table({"id": [2], "name": ["z"], "day": [1]}), ["id", "day"])
    created("small", rows.slice(0, 1), 9)
    grown = created("grown", pa.concat_tables([rows] * 50), 1)
    for task in grown.scan().plan_files():
        path, file = task.file.file_path, pa.BufferOutputStream()
        written = pq.read_table(pa.BufferReader(grown.io.read_bytes(path)))
        pq.write_table(written, file, row_group_size=10, compression="none")
        grown.io.write(path, file.getvalue().to_pybytes())


def test_spark_reads_columns_by_their_ids(seen: Seen) -> None:
    rows = [[1, "a", 1, None], [2, "b", 1, None], [3, None, 2, None], [4, "d", 2, None]]
    assert seen["people"]["rows"] == rows
    assert _is_native(seen["people"])


def test_spark_leaves_deleted_rows_out(seen: Seen) -> None:
    assert [row[0] for row in seen["deleted"]["rows"]] == [2, 3]
    assert _is_native(seen["deleted"])


def test_keys_of_equality_deletes_are_read_by_spark_too(seen: Seen) -> None:
    assert [row[:2] for row in seen["keyed"]["rows"]] == [[1, "a"], [2, "z"], [3, None], [4, "d"]]
    assert _is_native(seen["keyed"])


def test_conditions_narrow_what_is_read(seen: Seen) -> None:
    assert seen["filtered"] == [[3], [4]]


def test_tables_are_joined(seen: Seen) -> None:
    assert seen["joined"] == [[2], [3]]


def test_many_small_files_are_read_by_icebergds(seen: Seen) -> None:
    assert seen["small"] == {"rows": [[1, "a", 1]] * 9, "schemes": []}


def test_each_storage_is_reached_by_its_own_properties(seen: Seen) -> None:
    """Hadoop keeps the client of a scheme and bucket that it made first."""
    first, other, again = seen["in turns"]
    assert first == again != other


def test_the_plan_says_that_spark_reads(seen: Seen) -> None:
    assert "Spark's own Parquet reader reads 2 of 2 files" in seen["explained"]


def test_rows_of_files_that_are_larger_than_manifests_say_are_read(seen: Seen) -> None:
    assert len(seen["grown"]["rows"]) == 200
    assert _is_native(seen["grown"])


def test_all_files_are_found_where_spark_keeps_no_list(seen: Seen) -> None:
    assert seen["not kept"] == seen["people"]["rows"]


def test_all_files_are_found_when_spark_looks_for_them_again(seen: Seen) -> None:
    assert seen["refreshed"] == seen["people"]["rows"]


def test_plans_do_not_show_keys(seen: Seen) -> None:
    assert "FileScan parquet" in seen["plans"]
    assert SECRET not in seen["plans"]


def test_rows_that_spark_changed_are_read(seen: Seen) -> None:
    assert [row[1] for row in seen["changed"]] == ["x", "b", None, "d"]


def _is_native(seen: Seen) -> bool:
    (scheme,) = seen["schemes"]
    return bool(scheme.startswith("s3a-"))
