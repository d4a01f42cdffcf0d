"""Tools that start Spark themselves: the files of their sections are a project that they run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from doc_pages import ROOT, files, located, section
from server_process import connect_port

import icebergds

PAGE = "docs/with-other-tools.md"


def project(heading: str, directory: Path) -> Path:
    """The files of a section, in a directory of their own."""
    for name, code in files(section(PAGE, heading)).items():
        path = directory / "project" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(located(code, directory))
    return directory / "project"


def run(*command: str, cwd: Path, **environment: str) -> str:
    """What a program says; it finds icebergds as where it is installed."""
    package = Path(icebergds.__file__).parent
    path = [str(package.parent), str(package / "spark" / "discovery")]
    finished = subprocess.run(
        command,
        cwd=cwd,
        env={
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": os.pathsep.join(path),
            **environment,
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=900,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout
    return finished.stdout


def rows(table: icebergds.Table, *columns: str) -> list[tuple[Any, ...]]:
    found = table.refresh().scan(columns=columns).to_arrow().to_pylist()
    return sorted(tuple(row.values()) for row in found)


def test_a_declarative_pipeline_reads_tables_and_writes_a_sink(tmp_path: Path) -> None:
    pytest.importorskip("pyspark.pipelines", reason="pipelines are of Spark 4.1 and later")
    place = project("Declarative Pipelines", tmp_path)
    lake = icebergds.load_catalog("lake", warehouse=f"{tmp_path}/bucket/warehouse")
    lake.create_namespace("db")
    events = lake.create_table("db.events", "id bigint, country string, price double")
    events.append(pa.table({"id": [1, 2], "country": ["DE", "NO"], "price": [1.5, 3.0]}))
    _run_pipeline(place)
    sink = lake.load_table("db.high_prices")
    assert rows(sink, "id", "price") == [(2, 3.0)]
    # The checkpoint of the sink is kept: the next run reads what has come since.
    events.append(pa.table({"id": [3], "country": ["DE"], "price": [4.5]}))
    _run_pipeline(place)
    assert rows(sink, "id", "price") == [(2, 3.0), (3, 4.5)]
    assert len(sink.snapshots()) == 2


_PIPELINES = "spark-pipelines --conf spark.sql.catalogImplementation=hive run"


def _run_pipeline(place: Path) -> None:
    with connect_port():
        said = run(*_PIPELINES.split(), cwd=place)
    assert "Run is COMPLETED" in said, said


def test_sqlmesh_plans_models_in_the_lake(tmp_path: Path) -> None:
    pytest.importorskip("sqlmesh", reason="SQLMesh is not installed")
    place = project("SQLMesh", tmp_path)
    (tmp_path / "data").mkdir()
    lake = icebergds.load_catalog(
        "lake", uri=f"sqlite:///{tmp_path}/data/lake.db", warehouse=f"{tmp_path}/data/lake"
    )
    lake.create_namespace("shop")
    orders = lake.create_table("shop.orders", "day date, amount double")
    orders.append(_orders(["2026-01-01", "2026-01-01", "2026-01-02"], [1.0, 2.0, 3.0]))
    run("sqlmesh", "plan", "--auto-apply", "--no-prompts", cwd=place)
    assert _by_day(place) == [("2026-01-01", 2, 3.0), ("2026-01-02", 1, 3.0)]


def _orders(days: list[str], amounts: list[float]) -> pa.Table:
    return pa.table({"day": pa.array(days).cast(pa.date32()), "amount": amounts})


def _by_day(place: Path) -> list[tuple[Any, ...]]:
    said = run("sqlmesh", "fetchdf", "SELECT * FROM shop.orders_by_day ORDER BY day", cwd=place)
    found = re.findall(r"(\d{4}-\d\d-\d\d)\s+(\d+)\s+([\d.]+)", said)
    return [(day, int(count), float(amount)) for day, count, amount in found]


def test_airflow_maintains_a_fleet_and_a_table(tmp_path: Path) -> None:
    pytest.importorskip("airflow", reason="Airflow is not installed")
    lake = icebergds.load_catalog("lake", warehouse=f"{tmp_path}/bucket/warehouse")
    lake.create_namespace("db")
    tables = [lake.create_table(f"db.{name}", "id bigint") for name in ("events", "other")]
    for table in tables:
        for each in range(6):
            table.append(pa.table({"id": [each]}))
    dags = project("Airflow", tmp_path) / "dags"
    recipe = (ROOT / "examples/fleet/airflow_dag.py").read_text()
    policy = tmp_path / "policy.toml"
    policy.write_text("[defaults]\nretain_last = 10\n")
    (dags / "fleet.py").write_text(recipe.replace("/etc/icebergds/policy.toml", str(policy)))
    environment = {
        "AIRFLOW_HOME": str(tmp_path / "airflow"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "false",
        "PYICEBERG_CATALOG__LAKE__WAREHOUSE": f"{tmp_path}/bucket/warehouse",
    }
    run("airflow", "db", "migrate", cwd=tmp_path, **environment)
    run("airflow", "dags", "reserialize", cwd=tmp_path, **environment)
    for dag, tested in (("events", tables[0]), ("icebergds_fleet", tables[1])):
        run("airflow", "dags", "test", dag, cwd=tmp_path, **environment)
        assert len(tested.refresh().inspect.files()) == 1
        assert rows(tested, "id") == [(each,) for each in range(6)]
