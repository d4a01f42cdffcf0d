"""What sections of `docs/with-other-tools.md` take as given: a registered session and a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from doc_pages import ROOT, located, section
from pyspark.sql import SparkSession

import icebergds

PAGE = "docs/with-other-tools.md"
_EVENTS = "id bigint, country string, price double"


@pytest.fixture
def session(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[SparkSession]:
    """A session that tools find as that of the program; its catalog has the table `db.events`."""
    own = spark.newSession()
    own.conf.set("spark.icebergpy.catalog.lake.uri", f"sqlite:///{tmp_path}/lake.db")
    own.conf.set("spark.icebergpy.catalog.lake.warehouse", f"{tmp_path}/bucket/warehouse")
    icebergds.register(own, sql=True)
    lake = icebergds.load_catalog("lake")
    lake.create_namespace("db")
    lake.create_table("db.events", _EVENTS).append(
        pa.table({"id": range(4), "country": ["DE", "xx"] * 2, "price": [0.0, 1.5, 3.0, 4.5]})
    )
    spark.sparkContext._jvm.SparkSession.setActiveSession(own._jsparkSession)
    monkeypatch.setattr(SparkSession, "_activeSession", own)
    monkeypatch.setattr(SparkSession, "_instantiatedSession", own)
    yield own
    icebergds.unregister(own)


@pytest.fixture
def run_section(session: SparkSession, tmp_path: Path) -> Callable[[str], dict[str, Any]]:
    """Runs the blocks of Python of a section in their order; what they leave, by name."""

    def run(heading: str) -> dict[str, Any]:
        names: dict[str, Any] = {"__name__": "section", "spark": session}
        for block in section(PAGE, heading):
            if block.language == "python":
                code = "\n" * (block.line - 1) + located(block.code, tmp_path)
                exec(compile(code, str(ROOT / PAGE), "exec", dont_inherit=True), names)
        return names

    return run
