"""Simulations that find each rule of commits that is switched off, from seeds that are kept.

Run as a program with a rule and options, it simulates in a process of its own: sets have the same
order in each run, and other tests have no part in it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from switched_off import switch_off

from icebergds.testing.simulation.world import SimulationOptions, simulate


@dataclass(frozen=True, slots=True)
class Simulated:
    """A simulation without a rule.

    Attributes:
        rule: its name in the model.
        seed: of a table, and an order of commits, with which it matters.
        actors: who takes part.
    """

    rule: str
    seed: int
    actors: tuple[str, ...]
    steps: int = 30
    catalog: str = "sql"

    @property
    def options(self) -> SimulationOptions:
        return SimulationOptions(
            self.seed,
            self.steps,
            actors=frozenset(self.actors),
            faults=0,
            at_once=5,
            tables=1,
            catalog=self.catalog,
        )


def findings(simulated: Simulated, *, is_off: bool) -> list[str]:
    """The kinds of what is found in another process, in their order."""
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    command = [sys.executable, __file__, simulated.rule, str(is_off)]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    found: list[str] = json.loads(done.stdout.splitlines()[-1])
    return found


def _main(arguments: Sequence[str]) -> None:
    rule, is_off = arguments
    (simulated,) = (each for each in SIMULATED if each.rule == rule)
    with pytest.MonkeyPatch.context() as patch:
        if is_off == "True":
            switch_off(rule, patch)
        found = simulate(simulated.options).findings
    print(json.dumps([finding.kind for finding in found]))


SIMULATED = (
    Simulated("head", 100, ("append",), catalog="filesystem"),
    Simulated("inherited", 100, ("upsert",)),
    Simulated("added rows", 100, ("append", "delete", "update")),
    Simulated("rewritten rows", 126, ("append", "delete", "delete keys", "update")),
    Simulated("removed files", 100, ("append", "delete", "update")),
    Simulated("replaced rows", 223, ("append", "delete", "delete keys", "update")),
    Simulated("vectors", 166, ("append", "delete", "update")),
    Simulated("moved deletes", 126, ("append", "compaction", "delete")),
    Simulated("compacted files", 100, ("append", "compaction")),
    Simulated(
        "compared files", 102, ("append", "compaction", "conversion", "delete keys", "upsert")
    ),
)

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    _main(sys.argv[1:])
