"""Maintenance goes on if executors are killed: no row changes, and only orphan files are left."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from effort import IS_NIGHTLY, rounds
from spark_reads import run_program

pytestmark = [
    pytest.mark.spark,
    pytest.mark.every_spark,
    pytest.mark.skipif(not IS_NIGHTLY, reason="kills that are left to the nightly profile"),
]

_KILLS = rounds("ICEBERGDS_KILLS", pull=1, nightly=8)


@pytest.mark.parametrize("action", ["binpack", "convert", "position deletes"])
def test_killed_executors_change_no_row(tmp_path: Path, rng: random.Random, action: str) -> None:
    given = (str(tmp_path / "t"), action, str(_KILLS), str(rng.random()))
    (tmp_path / "t").mkdir()
    seen = run_program("cluster_maintenance.py", *given, directory=tmp_path, timeout=3600)
    assert seen["killed"] == _KILLS
