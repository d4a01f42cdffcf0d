"""Where tests are: those that start Spark have folders of their own, and names are unique.

The pages for those who change the code name files that are there.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

_HERE = Path(__file__).parent
# Run in few processes, for each has a Spark session of its own; `oracles` runs Java Iceberg.
_WITH_SPARK = ("spark", "interop", "oracles", "tools")


def test_modules_have_names_of_their_own() -> None:
    names = Counter(path.name for path in _HERE.rglob("test_*.py"))
    assert [name for name, count in names.items() if count > 1] == []


def test_tests_of_a_module_have_names_of_their_own() -> None:
    again = []
    for path in _HERE.rglob("test_*.py"):
        for scope in ast.walk(ast.parse(path.read_text())):
            if isinstance(scope, ast.Module | ast.ClassDef):
                names = Counter(f.name for f in scope.body if isinstance(f, ast.FunctionDef))
                again += [f"{path.name}::{name}" for name, count in names.items() if count > 1]
    assert again == []


def test_only_tests_of_spark_start_it() -> None:
    starting = []
    for path in _HERE.rglob("*.py"):
        if path.relative_to(_HERE).parts[0] in _WITH_SPARK:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            imported = isinstance(node, ast.alias) and node.name == "SparkSession"
            if imported or (isinstance(node, ast.arg) and node.arg == "spark"):
                starting.append(f"{path.relative_to(_HERE)}:{node.lineno}")
    assert starting == []


@pytest.mark.parametrize("page", ["architecture.md", "decisions.md"])
def test_pages_for_contributors_name_what_is_there(page: str) -> None:
    root = _HERE.parent
    code = re.findall("`([^`]+)`", (root / "docs" / page).read_text())
    paths = re.findall(r"\b(?:icebergds|spark_tests|benchmarks)/[\w./*-]*", " ".join(code))
    assert paths
    # Some name several files, by asterisks.
    assert [path for path in paths if not any(root.glob(path))] == []
