"""What encryption costs: encrypted tables against plain ones, in turns in one process.

    python benchmarks/encryption.py [--rows 4000000] [--runs 5] [--java]

Rows are written and read by Arrow, without Spark, and by a registered session of Spark, once with
Spark's own Parquet reader for the plain table. Appends of a row show what metadata costs. Streams
of AES-GCM are timed alone. The medians are compared. Seconds depend on the machine, ratios much
less.

With --java, Java Iceberg reads and writes both kinds of tables, in a Hive Metastore with a key of
AWS KMS, for which the servers of the tests stand in (.ci/servers.sh, .ci/java_oracle.sh).
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import secrets
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

import icebergds
from icebergds import Catalog, Table
from icebergds.encryption.gcm_stream import decrypt_bytes, encrypt_bytes
from icebergds.encryption.key_metadata import KeyMetadata, new_key_metadata

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
_ENCRYPTED = {"format-version": "3", "encryption.key-id": "master"}
_KINDS: Mapping[str, Mapping[str, str]] = {
    "plain": {"format-version": "3"},
    "128 bits": _ENCRYPTED,
    "256 bits": {**_ENCRYPTED, "encryption.data-key-length": "32"},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--java", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        streams(arguments.runs)
        properties = catalog_properties(directory)
        catalog = icebergds.load_catalog("bench", location_map=None, **properties)
        tables = {
            kind: new_table(catalog, f"db.t{number}", given)
            for number, (kind, given) in enumerate(_KINDS.items())
        }
        by_arrow(tables, rows_of(arguments.rows), arguments.runs)
        small_appends(catalog, arguments.runs)
        by_spark(tables, properties, arguments.runs)
        if arguments.java:
            by_java(directory, arguments.rows, arguments.runs)


def catalog_properties(directory: Path) -> dict[str, str]:
    """A catalog of a directory, whose key is in a file."""
    store = directory / "keys.json"
    store.write_text(json.dumps({"master": base64.b64encode(secrets.token_bytes(32)).decode()}))
    store.chmod(0o600)
    return {
        "warehouse": str(directory / "warehouse"),
        "encryption.kms-type": "keystore",
        "kms.client.keystore.path": str(store),
    }


def rows_of(count: int) -> pa.Table:
    random = np.random.default_rng(7)
    columns = {f"v{number}": random.random(count) for number in range(4)}
    return pa.table({"id": np.arange(count), "day": np.arange(count) % 365, **columns})


def new_table(catalog: Catalog, name: str, properties: Mapping[str, str]) -> Table:
    schema = ", ".join(["id bigint", "day bigint", *(f"v{number} double" for number in range(4))])
    return catalog.create_table(name, schema, properties=dict(properties))


def streams(runs: int) -> None:
    """Streams of AES-GCM of 8 MB each, as of manifests and Avro files, in memory."""
    data, times = secrets.token_bytes(8 * 1024 * 1024), range(8)
    for length in (16, 32):
        key = new_key_metadata(length)
        stored = encrypt_bytes(data, key)
        whole = key.of_length(len(stored))

        def encrypt(key: KeyMetadata = key) -> None:
            for _ in times:
                encrypt_bytes(data, key)

        def decrypt(stored: bytes = stored, whole: KeyMetadata = whole) -> None:
            for _ in times:
                decrypt_bytes(stored, whole, "a stream")

        taken = in_turns({"encrypt": encrypt, "decrypt": decrypt}, runs)
        size = len(times) * len(data) / 1e9
        speeds = ", ".join(f"{what} {size / taken_s:.2f} GB/s" for what, taken_s in taken.items())
        print(f"streams of AES-GCM, {8 * length} bits: {speeds}", flush=True)


def by_arrow(tables: Mapping[str, Table], rows: pa.Table, runs: int) -> None:
    show("append", in_turns({k: partial(overwrite, t, rows) for k, t in tables.items()}, runs))
    for what, options in {
        "read all rows": {},
        "read one column": {"columns": ["v0"]},
        "read a thousandth": {"row_filter": f"id < {len(rows) // 1000}"},
    }.items():
        show(what, in_turns({k: partial(read, t, options) for k, t in tables.items()}, runs))
    sizes = {
        kind: sum(table.inspect.files()["file_size_in_bytes"].to_pylist())
        for kind, table in tables.items()
    }
    show("size of data files", sizes, unit="MB", scale=1e-6)


def overwrite(table: Table, rows: pa.Table) -> None:
    table.refresh().overwrite(rows)


def read(table: Table, options: Mapping[str, object]) -> int:
    return int(table.refresh().scan(**options).to_arrow().num_rows)  # type: ignore[arg-type]


def small_appends(catalog: Catalog, runs: int) -> None:
    """Twenty appends of a row, each of which loads the table anew, to tables of their own."""
    row = rows_of(1)
    made = iter(range(10_000))

    def append(properties: Mapping[str, str]) -> None:
        name = f"db.small{next(made)}"
        new_table(catalog, name, properties)
        for _ in range(20):
            catalog.load_table(name).append(row)
        assert catalog.load_table(name).scan().count() == 20

    show("20 appends of a row", in_turns({k: partial(append, p) for k, p in _KINDS.items()}, runs))


def by_spark(tables: Mapping[str, Table], properties: Mapping[str, str], runs: int) -> None:
    builder = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.sql.shuffle.partitions", "2")
    )
    for name, value in properties.items():
        builder = builder.config(f"spark.icebergpy.catalog.bench.{name}", value)
    spark = builder.getOrCreate()
    icebergds.register(spark, sql=True)

    def aggregate(table: Table) -> object:
        query = f"SELECT day, sum(v0 + v1 + v2 + v3) FROM {table.name} GROUP BY day"
        return spark.sql(query).collect()

    def write(table: Table) -> None:
        frame = spark.range(1_000_000).selectExpr(
            "id", "id % 365 AS day", *(f"rand({number}) AS v{number}" for number in range(4))
        )
        table.refresh().append(frame)

    read = {kind: partial(aggregate, table) for kind, table in tables.items()}
    show("Spark, native scans", in_turns(read, runs))
    icebergds.register(spark, sql=True, native_scans=False)
    show("Spark, our reader", in_turns(read, runs))
    written = {kind: partial(write, table) for kind, table in tables.items()}
    show("Spark, append 1M rows", in_turns(written, runs))
    spark.stop()


def by_java(directory: Path, rows: int, runs: int) -> None:
    """Java Iceberg's own reads and writes of both kinds of tables."""
    tests = Path(__file__).parents[1] / "spark_tests"
    sys.path[:0] = [str(tests), str(tests / "interop")]
    from hive_server import LOCKING, hive_server
    from java_process import java_process
    from moto_server import REGION, moto_server
    from oracles.java_environment import java_environment
    from postgres_server import find_binaries, postgres_server
    from shared_catalog import Lake

    os.environ.update(AWS_ACCESS_KEY_ID="tester", AWS_SECRET_ACCESS_KEY="secret", AWS_REGION=REGION)
    environment, binaries = java_environment(), find_binaries()
    assert not isinstance(environment, str), environment
    assert binaries is not None, "PostgreSQL is not installed"
    with (
        moto_server() as moto,
        postgres_server(binaries) as postgres,
        hive_server(LOCKING, postgres) as hive,
        java_process(environment, directory) as java,
    ):
        properties = {
            "type": "hive",
            "uri": hive.uri,
            "warehouse": f"file:{directory}/hive",
            "encryption.kms-type": "aws",
            "kms.endpoint": moto.endpoint,
            "client.region": REGION,
        }
        lake = Lake("java", java, properties)
        lake.open_in_java(properties)
        lake.sql("CREATE NAMESPACE {db}")
        master = moto.client("kms").create_key()["KeyMetadata"]["KeyId"]
        kinds = {
            kind: {**given, **({"encryption.key-id": master} if len(given) > 1 else {})}
            for kind, given in _KINDS.items()
        }
        columns = ", ".join(["id BIGINT", "day BIGINT", *(f"v{i} DOUBLE" for i in range(4))])
        values = ", ".join(["id", "id % 365", *(f"rand({number})" for number in range(4))])
        names = {kind: f"{{db}}.t{number}" for number, kind in enumerate(kinds)}
        for kind, given in kinds.items():
            listed = ", ".join(f"'{name}' = '{value}'" for name, value in given.items())
            lake.sql(
                f"CREATE TABLE {names[kind]} ({columns}) USING iceberg TBLPROPERTIES ({listed})"
            )
        insert = f"INSERT OVERWRITE {{}} SELECT {values} FROM range({rows})"
        query = "SELECT day, sum(v0 + v1 + v2 + v3) FROM {} GROUP BY day"
        for what, statement in {"Java, overwrite": insert, "Java, read": query}.items():
            ways = {k: partial(lake.sql, statement.format(name)) for k, name in names.items()}
            show(what, in_turns(ways, runs))


def in_turns(ways: Mapping[str, Callable[[], object]], runs: int) -> dict[str, float]:
    """The median seconds of each way, after a first run of each."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for run in range(runs + 1):
        for name, way in ways.items():
            start = time.perf_counter()
            way()
            if run > 0:
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(found) for name, found in times.items()}


def show(
    what: str, found: Mapping[str, float], unit: str = "s", scale: float = 1.0, base: str = "plain"
) -> None:
    parts = [
        f"{kind} {value * scale:.3f} {unit}"
        + ("" if kind == base else f" ({value / found[base]:.3f} times)")
        for kind, value in found.items()
    ]
    print(f"{what}: {', '.join(parts)}", flush=True)


if __name__ == "__main__":
    main()
