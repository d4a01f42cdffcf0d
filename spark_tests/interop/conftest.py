"""Tables of other engines, written once and kept until what writes them changes."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import java_process as java_processes
import pytest
import written_tables  # noqa: F401  (registers the tables)
from chosen_tables import CHOSEN
from effort import IS_NIGHTLY
from moto_server import REGION
from oracles.index import ExpectedTable, load_index
from oracles.java_environment import (
    ICEBERG_VERSION,
    JavaEnvironment,
    bundle,
    java_environment,
)
from our_tables import OUR_TABLES, OurTable, Writer
from pyspark.sql import SparkSession
from server_process import QUICK_SPARK

import icebergds

os.environ.setdefault("JAVA_TOOL_OPTIONS", QUICK_SPARK)

_ORACLES = Path(__file__).resolve().parents[1] / "oracles"
# Other sessions read by the data source alone.
_READERS = ["registered", "data source"] if IS_NIGHTLY else ["registered"]
# Modules that have no part in writing tables: changing them does not outdate the cache.
_NOT_WRITING = {
    "comparison.py",
    "duckdb_reader.py",
    "index.py",
    "java_environment.py",
    "java_replay.py",
    "java_server.py",
    "pyiceberg_tables.py",
    "read.py",
}


@pytest.fixture(scope="session")
def java() -> JavaEnvironment:
    """Where Java Iceberg runs; skips where it is not installed."""
    environment = java_environment()
    if isinstance(environment, str):
        pytest.skip(environment)
    return environment


@pytest.fixture(scope="session")
def java_tables(java: JavaEnvironment, pytestconfig: pytest.Config) -> Mapping[str, ExpectedTable]:
    """The tables `CHOSEN`, written and read by Java Iceberg."""
    directory = _cached(pytestconfig, "java_tables", " ".join((ICEBERG_VERSION, *CHOSEN)))
    if not (directory / "index.json").exists():
        shutil.rmtree(directory, ignore_errors=True)
        java.run("-m", "oracles.java_tables", str(directory), *CHOSEN, timeout_seconds=1800)
    return load_index(directory)


@pytest.fixture(scope="session")
def our_writer(tmp_path_factory: pytest.TempPathFactory) -> Writer:
    """Writes tables where the process of `java_process` finds them."""
    return Writer(tmp_path_factory.mktemp("ours"))


@pytest.fixture(scope="session")
def our_tables(our_writer: Writer) -> Mapping[str, OurTable]:
    """All tables of `written_tables`, written by icebergds."""
    return {name: build(our_writer, name) for name, build in OUR_TABLES.items()}


@pytest.fixture(scope="session")
def java_process(java: JavaEnvironment, our_writer: Writer) -> Iterator[java_processes.JavaProcess]:
    """Java Iceberg over the warehouse of `our_writer`."""
    with java_processes.java_process(java, our_writer.directory) as process:
        yield process


@pytest.fixture(scope="module")
def java_in_aws(
    java: JavaEnvironment, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[java_processes.JavaProcess]:
    """Java Iceberg with credentials and a region of AWS."""
    if isinstance(missing := bundle("aws"), str):
        pytest.skip(missing)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", "tester")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        patch.setenv("AWS_REGION", REGION)
        with java_processes.java_process(java, tmp_path_factory.mktemp("java")) as process:
            yield process


@pytest.fixture(scope="session", params=_READERS)
def spark(spark: SparkSession, request: pytest.FixtureRequest) -> SparkSession:
    """The session of the whole suite, registered."""
    is_ours = request.param == "registered"
    icebergds.register(spark, reader=is_ours, native_scans=is_ours)
    return spark


def _cached(config: pytest.Config, name: str, version: str) -> Path:
    """A directory in pytest's cache that is another one as soon as the oracles change."""
    digest = hashlib.sha256(version.encode())
    for source in sorted(_ORACLES.rglob("*.py")):
        if source.name not in _NOT_WRITING:
            digest.update(source.read_bytes())
    cache = config.cache
    assert cache is not None
    root = cache.mkdir(name)
    directory = root / digest.hexdigest()[:16]
    for other in root.iterdir():
        if other != directory:
            shutil.rmtree(other)
    return directory
