"""What `register` changes, for which sessions, and that `unregister` undoes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from spark_reads import run_program

import icebergds
from icebergds.spark.patches import PATCHES

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]

_SETTINGS = {"reader", "writer", "native-scans", "fast-writes", "session-id"}


@pytest.fixture(scope="module", params=["classic", "connect"])
def seen(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What was seen in a process of its own, in which nothing was registered before."""
    directory = tmp_path_factory.mktemp(request.param)
    return run_program(
        "registered_sessions.py",
        *(request.param, str(directory)),
        directory=directory,
        through_connect=request.param == "connect",
    )


def test_registration_changes_what_the_table_of_patches_says(seen: Any) -> None:
    places = {(name.rpartition(".")[0].rpartition(":")[2], name) for name in seen["changed"]}
    settings = {name.removeprefix("spark.icebergpy.") for name in seen["changed"]}
    assert settings >= _SETTINGS
    listed = {patch.attribute for patch in PATCHES}
    assert {name.rpartition(".")[2] for kind, name in places if kind} <= listed | _SETTINGS


def test_unregistering_puts_every_attribute_and_setting_back(seen: Any) -> None:
    assert seen["left"] == []
    assert seen["left by several"] == []


def test_sessions_are_registered_each_for_itself(seen: Any) -> None:
    own = ["registered: 0 rows", "unregistered: AnalysisException"]
    if seen["kind"] == "pyspark.sql.connect.session":
        assert seen["orders"] == own
    else:
        assert seen["orders"] == [
            "other: AnalysisException",
            "other, registered: 0 rows",
            "other, unregistered: AnalysisException",
            *own,
        ]


def test_all_objects_of_a_session_know_its_tables(seen: Any) -> None:
    if seen["kind"] == "pyspark.sql.connect.session":
        pytest.skip("an object of Spark Connect is a session")
    assert seen["objects"] == {
        "same session": "0 rows",
        "its catalog": True,
        "active": "0 rows",
        "thread": "0 rows",
        "SQLContext": 0,
        "new session": "0 rows",
        "current": "db",
        "batch": [2, True],
    }


def test_a_setting_registers_sessions_without_a_call(tmp_path: Path) -> None:
    discovery = Path(icebergds.__file__).parent / "spark" / "discovery"
    arguments = str(discovery), str(tmp_path / "lake")
    seen = run_program("configured_session.py", *arguments, directory=tmp_path)
    assert seen == {"rows": 2, "new session": 2}


def test_the_documentation_has_the_table_of_patches() -> None:
    rows: dict[str, list[str]] = {}
    for patch in PATCHES:
        rows.setdefault(patch.why, []).append(f"`{patch.owner}.{patch.attribute}`")
    page = (Path(icebergds.__file__).parents[1] / "docs" / "sql.md").read_text()
    for why, names in rows.items():
        assert f"| {', '.join(names)} | {why} |" in page
