"""TLC checks the model of commits: nothing is wrong with all rules, something without any one."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import effort
import pytest
from effort import rounds
from mutations import KEYED, MUTATIONS, OF_TABLE, Model, Mutation, Step
from replay import Replay
from tlc import check

_TRIED_AGAIN = ("compact", "compact renumbered", "convert")

_ALL = frozenset((*KEYED, *OF_TABLE, "roll back"))
# TLC needs some minutes for four.
_COMMITS = 4 if effort.IS_NIGHTLY else 2
_COMMITS_COMPARED = 3 if effort.IS_NIGHTLY else 2


_of_each_kind = pytest.mark.parametrize(
    ("vectors", "serializable"), effort.some(list(product([False, True], repeat=2)), 2)
)


@_of_each_kind
def test_all_that_commits_can_lead_to_is_right(
    vectors: bool, serializable: bool, tmp_path: Path
) -> None:
    model = Model(_ALL, _COMMITS, vectors=vectors, serializable=serializable)
    checked = check(model, tmp_path, reduced=True)
    assert checked.violated is None, checked.steps
    assert checked.states > 100


@_of_each_kind
def test_the_code_commits_what_the_model_commits(
    vectors: bool, serializable: bool, tmp_path: Path, rng: random.Random
) -> None:
    model = Model(_ALL, _COMMITS_COMPARED, vectors=vectors, serializable=serializable)
    shown = check(model, tmp_path, with_states=True).shown
    befores = sorted(steps for steps in shown if len(steps) == _COMMITS_COMPARED - 1)
    for number in range(rounds("ICEBERGDS_ROUNDS", pull=8, nightly=250)):
        before = rng.choice(befores)
        tried = [(*before, step) for step in _next_steps(before)]
        committed = [steps for steps in tried if steps in shown]
        # Compactions and conversions that are refused read again, and are tried again.
        refused = [
            steps for steps in tried if steps not in shown and steps[-1].op not in _TRIED_AGAIN
        ]
        steps = rng.choice(refused if number % 2 and refused else committed)
        replay = Replay(
            tmp_path / str(number),
            keys=2,
            format_version=3 if vectors else 2,
            serializable=serializable,
        )
        assert replay.wrong(steps) is None, steps
        assert (tuple(replay.committed) == steps) == (steps in shown), steps


def _next_steps(steps: Sequence[Step]) -> list[Step]:
    """All that may be tried after some commits, also after a rollback."""
    last = len(steps) + 1
    parents = [last]
    while parents[-1] > 1:
        parents.append(steps[parents[-1] - 2].parent)
    operations = [(op, key) for op in KEYED for key in (1, 2)] + [(op, 0) for op in OF_TABLE]
    return [
        Step(op, key, read, parent)
        for op, key in operations
        for read in range(1, last + 1)
        for parent in parents
    ]


@pytest.mark.parametrize("mutation", effort.some(MUTATIONS, 4), ids=lambda mutation: mutation.rule)
def test_the_model_is_wrong_without_a_rule(mutation: Mutation, tmp_path: Path) -> None:
    checked = check(mutation.model, tmp_path)
    assert checked.violated == mutation.invariant
    # What the code is tried with in `test_model_mutations.py`.
    assert checked.steps == mutation.steps
