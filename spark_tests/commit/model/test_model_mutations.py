"""Each rule of the model of commits is one of the code, without which rows are wrong."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from effort import examples
from hypothesis import given, strategies as st
from mutations import KEYED, MUTATIONS, OF_TABLE, Mutation, Step
from replay import Replay
from switched_off import RULES, switch_off

_HERE = Path(__file__).parent


def test_all_rules_of_the_model_are_switched_off_in_turn() -> None:
    of_model = set(re.findall(r'\bOn\("([\w ]+)"\)', (_HERE / "commit_rules.tla").read_text()))
    assert [mutation.rule for mutation in MUTATIONS] == list(RULES)
    assert of_model == set(RULES)


def test_the_page_of_the_model_says_what_fails_without_each_rule() -> None:
    page = (_HERE.parents[2] / "docs/commit-model.md").read_text()
    told = re.findall(r"^\| ([a-z ]+) \| .* \| `(\w+)` \|$", page, re.MULTILINE)
    assert told == [(mutation.rule, mutation.invariant) for mutation in MUTATIONS]


def _wrong(mutation: Mutation, location: Path) -> str | None:
    replay = Replay(
        location,
        keys=mutation.keys,
        format_version=3 if mutation.vectors else 2,
        serializable=mutation.serializable,
    )
    return replay.wrong(mutation.steps, rolls_back=mutation.rolls_back)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.rule)
def test_rows_are_wrong_without_a_rule_and_right_with_it(
    mutation: Mutation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _wrong(mutation, tmp_path / "with") is None
    switch_off(mutation.rule, monkeypatch)
    assert _wrong(mutation, tmp_path / "without") is not None


@st.composite
def _steps(draw: st.DrawFn) -> list[Step]:
    steps = []
    for last in range(1, draw(st.integers(2, 5)) + 1):
        op = draw(st.sampled_from([*KEYED, *OF_TABLE]))
        read = draw(st.integers(max(1, last - 2), last))
        # Seldom after a rollback.
        parent = draw(st.one_of([st.just(last)] * 7 + [st.integers(1, last)]))
        steps.append(Step(op, 0 if op in OF_TABLE else draw(st.integers(1, 2)), read, parent))
    return steps


@examples(200)
@given(_steps(), st.sampled_from([2, 3]), st.booleans())
def test_any_commits_leave_the_rows_that_they_promise(
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[Step],
    format_version: int,
    serializable: bool,
) -> None:
    replay = Replay(
        tmp_path_factory.mktemp("table") / "t",
        keys=2,
        format_version=format_version,
        serializable=serializable,
    )
    assert replay.wrong(steps) is None
