"""dbt builds its models in tables of ours, in a session that a setting registers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import icebergds

pytest.importorskip("dbt.adapters.spark", reason="dbt-spark is not installed")

_EXAMPLE = Path(__file__).parents[2] / "examples/dbt"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return Path(shutil.copytree(_EXAMPLE, tmp_path / "project"))


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    (tmp_path / "lake").mkdir()
    return tmp_path / "lake"


def test_models_of_every_kind_are_built_and_built_again(project: Path, lake: Path) -> None:
    assert _dbt(project, lake, "build") == 0
    seed = project / "seeds/raw_orders.csv"
    seed.write_text(seed.read_text().replace("10.5", "11.5") + "4,cy,1.0,2026-01-03\n")
    assert _dbt(project, lake, "build") == 0
    assert _dbt(project, lake, "docs", "generate") == 0
    catalog = icebergds.load_catalog("lake", uri=f"sqlite:///{lake}/catalog.db")
    assert catalog.list_views("shop") == [("shop", "customers")]

    def rows(name: str, *columns: str) -> list[tuple[object, ...]]:
        found = catalog.load_table(f"shop.{name}").scan(columns=columns).to_arrow().to_pylist()
        return sorted(tuple(row[column] for column in columns) for row in found)

    new = [(1, 11.5), (2, 20.0), (3, 5.25), (4, 1.0)]
    for model in ("orders", "newest_orders", "orders_by_day"):
        assert rows(model, "id", "amount") == new, model
    assert rows("order_log", "id", "amount") == sorted([(1, 10.5), (2, 20.0), (3, 5.25), *new])
    history = rows("order_history", "id", "amount")
    assert history == sorted([(1, 10.5), *new])
    orders = catalog.load_table("shop.orders")
    assert str(orders.spec().fields[0].name) == "day"


def test_a_catalog_without_views_says_what_to_do(project: Path, lake: Path) -> None:
    profile = project / "profiles.yml"
    lines = [line for line in profile.read_text().splitlines() if "lake.uri" not in line]
    profile.write_text("\n".join(lines))
    said = _said(project, lake, "build")
    assert "catalog lake has no views" in said
    assert "create a table in its place" in said


def _dbt(project: Path, lake: Path, *command: str) -> int:
    return _run(project, lake, command).returncode


def _said(project: Path, lake: Path, *command: str) -> str:
    return _run(project, lake, command).stdout


def _run(project: Path, lake: Path, command: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "dbt.cli.main", *command, "--no-use-colors"],
        cwd=project,
        env={
            **os.environ,
            "LAKE": str(lake),
            "DBT_PROFILES_DIR": str(project),
            "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
            "PYSPARK_PYTHON": sys.executable,
        },
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
