"""The command's SQL, and what it does with Spark; each in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from spark_reads import connect_server

from icebergds import load_catalog

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]

_RUN = "from icebergds.cli.main import main; main()"


def run(lake: Path, *words: str, input: str | None = None) -> subprocess.CompletedProcess[str]:
    """Runs the command on a catalog `lake`."""
    own = {"PYICEBERG_CATALOG__LAKE__WAREHOUSE": str(lake), "MASTER": "local[1]"}
    return subprocess.run(
        [sys.executable, "-c", _RUN, *words],
        input=input,
        capture_output=True,
        text=True,
        env={**os.environ, **own},
        check=False,
    )


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    warehouse = tmp_path_factory.mktemp("lake")
    table = load_catalog("lake", warehouse=warehouse).create_table("db.events", "id bigint")
    table.append(pa.table({"id": [1, 2, 3]}))
    return warehouse


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with connect_server() as address:
        yield address


@pytest.fixture(params=["here", "connect"])
def words(request: pytest.FixtureRequest) -> list[str]:
    """The command that runs SQL, with Spark of its own or on a server."""
    if request.param == "here":
        return ["sql"]
    return ["sql", "--remote", request.getfixturevalue("server")]


def test_statements_of_a_pipe_run_and_an_error_ends_only_its_own(
    lake: Path, words: list[str]
) -> None:
    text = """
        SELECT id AS "a;b", -- not yet;
          sum(id) AS n FROM lake.db.events WHERE id > 1 GROUP BY id ORDER BY id;
        SELECT nope FROM lake.db.events;
        USE lake;
        \\d
        SELECT count(*) AS n FROM db.events
    """.replace('"a;b"', "`a;b`")
    done = run(lake, *words, input=text)
    assert done.returncode == 2
    assert done.stdout.splitlines() == [
        "a;b  n",
        "  2  2",
        "  3  3",
        "2 rows",
        "done",
        "namespace",
        "db",
        "1 row",
        "n",
        "3",
        "1 row",
    ]
    (error,) = done.stderr.splitlines()
    assert error.startswith("error: ")
    assert "`nope` cannot be resolved" in error


def test_one_statement_is_answered_as_json_and_changes_rows(lake: Path) -> None:
    place = ("--catalog", "own", "--warehouse", str(lake))
    found = run(lake, "sql", "SELECT id FROM db.events ORDER BY id", "--json", *place)
    assert json.loads(found.stdout) == [{"id": 1}, {"id": 2}, {"id": 3}]
    assert found.stderr == ""
    gone = run(lake, "delete", "lake.db.events", "--where", "id = 2", "--yes", "--json")
    assert gone.stderr == ""
    assert json.loads(gone.stdout)["rows"] == 1
    told = run(lake, "sql", "SELECT * FROM lake.db.event")
    assert told.returncode == 2
    assert told.stdout == ""
    assert told.stderr.count("\n") == 1


def test_a_server_answers_one_statement(lake: Path, server: str) -> None:
    place = ("--catalog", "own", "--warehouse", str(lake), "--remote", server)
    found = run(lake, "sql", "SELECT max(id) AS id FROM db.events", "--json", *place)
    assert found.stderr == ""
    assert json.loads(found.stdout) == [{"id": 3}]
    told = run(lake, "sql", "SELECT * FROM lake.db.event", "--remote", server)
    assert (told.returncode, told.stdout, told.stderr.count("\n")) == (2, "", 1)


@pytest.mark.parametrize(
    ("remote", "says"),
    [
        ("sc://localhost:1/;token=secret", "no Spark Connect server answers there"),
        ("localhost:15002", "expected the address of a Spark Connect server"),
    ],
)
def test_a_server_that_is_not_there_is_an_error_at_once(lake: Path, remote: str, says: str) -> None:
    told = run(lake, "sql", "SELECT 1", "--remote", remote)
    assert (told.returncode, told.stdout, told.stderr.count("\n")) == (2, "", 1)
    assert told.stderr.startswith("error: --remote ")
    assert says in told.stderr
    assert "secret" not in told.stderr
