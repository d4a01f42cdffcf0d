"""`java_sql_tests.txt` says what becomes of each of Java Iceberg's tests of SQL."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from java_sql_cases import JAVA_CASES
from sql_cases import CASES
from sql_definition_cases import DEFINITIONS

_KNOWN = {**CASES, **DEFINITIONS, **JAVA_CASES}
_NONE = "none: "


def _decisions() -> list[tuple[str, str]]:
    lines = Path(__file__).with_name("java_sql_tests.txt").read_text().splitlines()
    decided = [line for line in lines if line and not line.startswith("#")]
    return [(test, decision) for test, _, decision in (line.partition(" ") for line in decided)]


def test_each_test_is_decided_once() -> None:
    tests = Counter(test for test, _ in _decisions())
    assert [test for test, times in tests.items() if times > 1] == []
    assert len(tests) > 1000


def test_decisions_name_cases_or_a_reason() -> None:
    for test, decision in _decisions():
        if decision.startswith(_NONE):
            assert decision.removeprefix(_NONE), test
        else:
            unknown = set(decision.split(", ")) - _KNOWN.keys()
            assert not unknown, f"{test}: there is no case {unknown}"


def test_each_case_stands_for_a_test() -> None:
    used = {case for _, decision in _decisions() for case in decision.split(", ")}
    assert not JAVA_CASES.keys() - used
