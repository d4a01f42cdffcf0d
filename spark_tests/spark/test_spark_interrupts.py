"""Ctrl-C ends jobs of Spark at once, and their files are deleted once their tasks end."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest
from effort import IS_NIGHTLY
from spark_reads import connect_server, run_program

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]


@pytest.fixture(scope="module", params=["classic", "connect"] if IS_NIGHTLY else ["classic"])
def seen(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    directory = tmp_path_factory.mktemp(request.param)
    with connect_server() if request.param == "connect" else nullcontext() as address:
        own = () if address is None else (address,)
        return run_program(
            "interrupted_jobs.py", str(directory / "lake"), *own, directory=directory
        )


@pytest.mark.parametrize("job", ["task", "threads", "append"])
def test_ctrl_c_ends_a_job_before_its_tasks_end(seen: Any, job: str) -> None:
    assert seen[job]["ended"] == "KeyboardInterrupt"
    # Spark takes four seconds to end a task that runs Python.
    assert seen[job]["before its tasks"]
    assert not seen[job]["goes on"]


def test_an_interrupted_job_leaves_no_file(seen: Any) -> None:
    assert seen["left"] == []


def test_an_interrupted_write_says_what_is_committed(seen: Any) -> None:
    (note,) = seen["append"]["notes"]
    assert note.endswith(
        "lake/db/t was interrupted at the stage 'write files': nothing was committed, new files "
        "that are in no commit are deleted"
    )
