"""TLC checks the model of commits: nothing is wrong with all rules, something without any one."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import effort
import pytest
from mutations import KEYED, MUTATIONS, OF_TABLE, Model, Mutation, Step
from replay import Replay
from tlc import check

_TRIED_AGAIN = ("compact", "compact renumbered", "convert")

# Of three writers; TLC needs some minutes for four.
_COMMITS = 4 if effort.IS_NIGHTLY else 2


_of_each_kind = pytest.mark.parametrize(
    ("vectors", "serializable"), effort.some(list(product([False, True], repeat=2)), 2)
)


@_of_each_kind
def test_all_that_commits_can_lead_to_is_right(
    vectors: bool, serializable: bool, tmp_path: Path
) -> None:
    operations = frozenset((*KEYED, *OF_TABLE, "roll back"))
    model = Model(operations, _COMMITS, vectors=vectors, serializable=serializable)
    checked = check(model, tmp_path, reduced=True)
    assert checked.violated is None, checked.steps
    assert checked.states > 100


@_of_each_kind
def test_the_code_commits_what_the_model_commits(
    vectors: bool, serializable: bool, tmp_path: Path, rng: random.Random
) -> None:
    operations = frozenset((*KEYED, *OF_TABLE))
    model = Model(operations, 2, vectors=vectors, serializable=serializable)
    checked = check(model, tmp_path, with_states=True)
    firsts = sorted(steps for steps in checked.shown if len(steps) == 1)
    pairs = [(first, second) for (first,) in firsts for second in _second_steps()]
    for number, steps in enumerate(pairs if effort.IS_NIGHTLY else rng.sample(pairs, 8)):
        replay = Replay(
            tmp_path / str(number),
            keys=2,
            format_version=3 if vectors else 2,
            serializable=serializable,
        )
        assert replay.wrong(steps) is None, steps
        is_committed = tuple(replay.committed) == steps
        # Compactions and conversions that are refused read again, and are tried again.
        if steps in checked.shown or steps[1].op not in _TRIED_AGAIN:
            assert is_committed == (steps in checked.shown), steps


def _second_steps() -> Iterator[Step]:
    for read in (1, 2):
        yield from (Step(op, key, read, 2) for op in KEYED for key in (1, 2))
        yield from (Step(op, 0, read, 2) for op in OF_TABLE)


@pytest.mark.parametrize("mutation", effort.some(MUTATIONS, 4), ids=lambda mutation: mutation.rule)
def test_the_model_is_wrong_without_a_rule(mutation: Mutation, tmp_path: Path) -> None:
    checked = check(mutation.model, tmp_path)
    assert checked.violated == mutation.invariant
    # What the code is tried with in `test_model_mutations.py`.
    assert checked.steps == mutation.steps
