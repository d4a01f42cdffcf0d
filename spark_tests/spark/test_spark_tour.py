"""`examples/tour.py` finds no difference from DuckDB, with classic Spark and Spark Connect."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest
from effort import IS_NIGHTLY
from server_process import QUICK_SPARK
from spark_reads import connect_port

import icebergds

pytest.importorskip("duckdb_extension_iceberg")
pytestmark = [
    pytest.mark.spark,
    pytest.mark.every_spark,
    pytest.mark.skipif(not IS_NIGHTLY, reason="the tour is run by make nightly and make tour"),
]

_TOUR = Path(__file__).resolve().parents[2] / "examples" / "tour.py"


@pytest.mark.parametrize(
    "arguments", [(), ("--connect", "--format-version", "2")], ids=["classic", "connect"]
)
def test_tour_finds_no_difference(arguments: tuple[str, ...], tmp_path: Path) -> None:
    package = Path(icebergds.__file__).parent
    path = [str(package / "spark" / "discovery"), str(package.parent)]
    with connect_port() if "--connect" in arguments else nullcontext():
        finished = subprocess.run(
            [sys.executable, str(_TOUR), *arguments],
            cwd=tmp_path,
            env={
                **os.environ,
                "PYSPARK_PYTHON": sys.executable,
                "PYTHONPATH": os.pathsep.join(path),
                "JAVA_TOOL_OPTIONS": QUICK_SPARK,
            },
            capture_output=True,
            text=True,
            # Many times what it takes, for the machine may be busy.
            timeout=600,
            check=False,
        )
    assert finished.returncode == 0, finished.stdout[-2000:] + finished.stderr[-4000:]
    assert finished.stdout.splitlines()[-1].endswith(" comparisons")
