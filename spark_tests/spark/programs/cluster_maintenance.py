"""Maintains a table by executors in processes of their own, which are killed at random moments.

    cluster_maintenance.py DIRECTORY ACTION KILLS SEED

Prints how many executors were killed, and how many while their tasks ran, as a line of JSON.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

from pyspark.sql import SparkSession

sys.path.append(str(Path(__file__).parents[2]))
sys.path.append(str(Path(__file__).parents[2] / "operations" / "maintenance"))

from actions import Place, act


def main(directory: str, action: str, kills: str, seed: str) -> None:
    spark = (
        SparkSession.builder.master("local-cluster[2,1,1024]")
        .config("spark.ui.enabled", "false")
        .config("spark.log.level", "OFF")
        .config("spark.executor.memory", "512m")
        .config("spark.task.maxFailures", "100")
        .config("spark.deploy.maxExecutorRetries", "-1")
        # Executors are started without the driver's environment.
        .config("spark.executorEnv.PYTHONPATH", os.environ["PYTHONPATH"])
        .getOrCreate()
    )
    rng, killed, left_files = random.Random(seed), 0, 0
    place = Place(Path(directory), "filesystem", action)
    longest = _run(spark, place, None)
    # Tasks hardly take as long as Spark takes to start them.
    for _ in range(int(kills)):
        place.restore()
        killer = threading.Timer(rng.uniform(0, longest), _kill, (spark, rng))
        killer.start()
        _run(spark, place, killer)
        killed += 1
        place.check_rows()
        left_files += bool(place.unneeded())
        place.remove_orphans()
        place.check_rows()
    print(json.dumps({"killed": killed, "left files": left_files}), flush=True)
    spark.stop()


def _run(spark: SparkSession, place: Place, killer: threading.Timer | None) -> float:
    """Runs the action; returns how long it took, in seconds."""
    start = time.monotonic()
    act(place.table, place.action)
    took = time.monotonic() - start
    if killer is not None:
        killer.join()
    assert place.table.metadata_location != place.metadata_location
    return took


def _kill(spark: SparkSession, rng: random.Random) -> None:
    """Kills one of the executors that the session has at the moment, if there is one."""
    own = f"CoarseGrainedExecutorBackend.*{spark.sparkContext.applicationId}"
    command = ["pgrep", "--full", own]
    found = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()
    if found:
        with suppress(ProcessLookupError):
            os.kill(int(rng.choice(found)), signal.SIGKILL)


if __name__ == "__main__":
    main(*sys.argv[1:])
