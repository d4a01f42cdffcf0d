"""The code of the README and the documentation runs, page by page, from a session of its own."""

from __future__ import annotations

import logging
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from doc_pages import ROOT, Block, blocks, located, pages
from pyspark.sql import DataFrame, SparkSession

import icebergds

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]

# Pages of the tables that they create themselves.
_FROM_NOTHING = {"docs/sql.md", "docs/tables.md"}
_EVENTS = """
    id bigint NOT NULL, ts timestamp, day date, country string, region string, name string,
    price double, changed timestamp, changed_at timestamp, seen boolean,
    address struct<city: string>
"""
_EVENT_ROWS = """
    SELECT id, timestamp'2026-01-01 08:00:00Z' + make_dt_interval(id) AS ts, to_date(ts) AS day,
           if(id % 2 = 0, 'DE', 'xx') AS country, 'eu' AS region, concat('name ', id) AS name,
           1.5D * id AS price, ts AS changed, ts AS changed_at, false AS seen,
           named_struct('city', 'Oslo') AS address
    FROM range({}, {})
"""


@pytest.fixture
def session(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[SparkSession]:
    """The program's session, as if it had no other; it has a catalog `lake`, as a page may say."""
    own = spark.newSession()
    own.conf.set("spark.sql.shuffle.partitions", "1")
    own.conf.set("spark.icebergpy.catalog.lake.warehouse", f"{tmp_path}/bucket/warehouse")
    spark.sparkContext._jvm.SparkSession.setActiveSession(own._jsparkSession)
    type(spark)._activeSession = own
    monkeypatch.setattr(type(spark), "_instantiatedSession", own)
    icebergds.register(own, reader=False, writer=False, native_scans=False)
    yield own
    for query in own.streams.active:
        query.stop()
    logging.getLogger("icebergds").setLevel(logging.NOTSET)


@pytest.mark.parametrize("page", pages())
def test_blocks_of_a_page_run_in_their_order(
    page: str, session: SparkSession, tmp_path: Path
) -> None:
    names: dict[str, Any] = {"__name__": "page", "spark": session}
    if page not in _FROM_NOTHING:
        _create_events(session)
        names["df"] = _events(session, 3, 5)
    if page in _GIVEN:
        names |= _GIVEN[page](session, tmp_path)
    for block in blocks(ROOT / page):
        _run(page, block, names, tmp_path)


def _events(session: SparkSession, first: int, end: int) -> DataFrame:
    return session.sql(_EVENT_ROWS.format(first, end))


def _create_events(session: SparkSession) -> None:
    """The table `db.events` that most pages are about, of two snapshots."""
    table = icebergds.load_catalog("lake").create_table(
        "db.events", _EVENTS, partition_spec="day", identifier_fields=["id"]
    )
    table.append(_events(session, 0, 2))
    table.append(_events(session, 2, 4))


def _for_catalogs(session: SparkSession, directory: Path) -> dict[str, Any]:
    """A table that was moved."""
    moved = icebergds.load_catalog("old", warehouse=f"{directory}/old")
    moved.create_table("db.events", "id bigint").append(session.range(3))
    (directory / "old" / "db").rename(directory / "backup")
    (directory / "data").mkdir()
    uri, warehouse = f"sqlite:///{directory}/data/old.db", f"{directory}/data/old"
    left = icebergds.load_catalog("old", uri=uri, warehouse=warehouse)
    left.create_namespace("db")
    left.create_table("db.events", "id bigint")
    return {}


def _for_changing(session: SparkSession, directory: Path) -> dict[str, Any]:
    events = _events(session, 3, 5)
    return {
        "updates": events.selectExpr("*", "id = 3 AS gone"),
        "changes": events.selectExpr("*", "'+I' AS op", "id AS lsn"),
        "keys": events.select("id"),
    }


def _for_deleting(session: SparkSession, directory: Path) -> dict[str, Any]:
    users = icebergds.load_catalog("lake").create_table("db.users", "id bigint, name string")
    users.append(session.sql("SELECT id, concat('name ', id) AS name FROM range(10)"))
    return {}


def _for_encryption(session: SparkSession, directory: Path) -> dict[str, Any]:
    (directory / "data").mkdir()
    return {}


def _for_fleets(session: SparkSession, directory: Path) -> dict[str, Any]:
    (directory / "data").mkdir()
    return {}


def _for_maintenance(session: SparkSession, directory: Path) -> dict[str, Any]:
    """A branch, and a partition field that was added."""
    table = icebergds.load_table("lake.db.events")
    table.update_spec().add_field("days(ts)").commit()
    table.manage_snapshots().create_branch("audit").commit()
    return {}


def _for_procedures(session: SparkSession, directory: Path) -> dict[str, Any]:
    icebergds.register(session, sql=True)
    session.sql("CREATE TABLE lake.db.users (id bigint, name string, ts timestamp)")
    session.sql("ALTER TABLE lake.db.events ADD PARTITION FIELD bucket(16, id)")
    _events(session, 3, 5).createOrReplaceTempView("updates")
    return {}


def _for_sql(session: SparkSession, directory: Path) -> dict[str, Any]:
    """A catalog that has views."""
    session.conf.set("spark.icebergpy.catalog.lake.type", "sql")
    session.conf.set("spark.icebergpy.catalog.lake.uri", f"sqlite:///{directory}/lake.db")
    icebergds.register(session, sql=True)
    session.sql("CREATE NAMESPACE lake.db")
    return {}


def _for_streaming(session: SparkSession, directory: Path) -> dict[str, Any]:
    """Streams to write, and the tables that they are written to."""
    catalog = icebergds.load_catalog("lake")
    source = catalog.create_table("db.source", _EVENTS)
    source.append(_events(session, 4, 6))
    kinds = catalog.create_table("db.kinds", "id bigint, balance double, op string, lsn bigint")
    kinds.append(session.sql("SELECT id, 1.5D AS balance, '+I' AS op, id AS lsn FROM range(3)"))
    catalog.create_table("db.accounts", "id bigint, balance double")
    catalog.create_table("db.orders", _EVENTS)
    catalog.create_table("db.first", "id bigint").append(session.range(3))
    catalog.create_table("db.second", "id bigint")
    stream = session.readStream.format("icebergpy").option("catalog", "lake")
    return {"df": stream.load("db.source"), "changes": stream.load("db.kinds")}


def _for_performance(session: SparkSession, directory: Path) -> dict[str, Any]:
    my_reports = ModuleType("my_reports")
    vars(my_reports)["report"] = print
    sys.modules["my_reports"] = my_reports
    return {}


def _for_tables(session: SparkSession, directory: Path) -> dict[str, Any]:
    (directory / "data").mkdir()
    return {}


def _for_writing(session: SparkSession, directory: Path) -> dict[str, Any]:
    _events(session, 3, 5).createOrReplaceTempView("new_events")
    return {}


_GIVEN = {
    "docs/catalogs.md": _for_catalogs,
    "docs/changing.md": _for_changing,
    "docs/deleting-for-good.md": _for_deleting,
    "docs/encryption.md": _for_encryption,
    "docs/fleets.md": _for_fleets,
    "docs/maintenance.md": _for_maintenance,
    "docs/performance.md": _for_performance,
    "docs/procedures.md": _for_procedures,
    "docs/sql.md": _for_sql,
    "docs/streaming.md": _for_streaming,
    "docs/tables.md": _for_tables,
    "docs/writing.md": _for_writing,
}


def _run(page: str, block: Block, names: dict[str, Any], directory: Path) -> None:
    code = located(block.code, directory)
    match block.language:
        case "python":
            # So that errors show the line of the page.
            compiled = compile(
                "\n" * (block.line - 1) + code, str(ROOT / page), "exec", dont_inherit=True
            )
            if block.not_run is None:
                exec(compiled, names)
                _one_batch(names["spark"])
        case "sql" if block.not_run is None:
            for statement in filter(str.strip, code.split(";\n")):
                names["spark"].sql(statement).collect()
        case "yaml":
            import yaml

            yaml.safe_load(code)
        case "toml":
            tomllib.loads(code)
        case "sh" | "bash":
            subprocess.run(["bash", "-n"], input=code, text=True, check=True)


def _one_batch(spark: SparkSession) -> None:
    """Lets streams that were started commit a batch, and stops them."""
    for query in spark.streams.active:
        give_up = time.monotonic() + 60
        while query.isActive and query.lastProgress is None and time.monotonic() < give_up:
            time.sleep(0.05)
        query.stop()
    # Raises what a query failed with.
    spark.streams.awaitAnyTermination(0.001)
    spark.streams.resetTerminated()
