"""The tests of row-level changes, commits and maintenance hold on encrypted tables, too.

They run in a process of their own, by the plugin `encrypting`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from effort import IS_NIGHTLY
from encrypting import CANNOT_HOLD

_ROOT = Path(__file__).parents[2]

_MODULES = [
    "api/test_api_row_changes.py",
    "commit/test_commit_append.py",
    "operations/maintenance/test_rewrite_manifests.py",
    "operations/test_operations_resolve_keys.py",
]
"""In nightly runs."""

_FEW = [
    "commit/test_commit_append.py::test_manifests_are_merged_once_there_are_enough",
    "operations/maintenance/test_rewrite_manifests.py::test_rows_keep_their_ids_and_update_numbers",
    "operations/maintenance/test_rewrite_manifests.py::"
    "test_delete_manifests_are_rewritten_by_themselves",
    "operations/test_operations_resolve_keys.py::"
    "test_rows_that_others_add_meanwhile_are_replaced_too",
    "operations/test_operations_resolve_keys.py::test_a_compaction_meanwhile_is_moved_past",
]
"""For each change."""


@pytest.mark.parametrize("tests", [[each] for each in _MODULES] if IS_NIGHTLY else [_FEW])
def test_tests_hold_on_encrypted_tables(tests: list[str], tmp_path: Path) -> None:
    paths = [os.fspath(_ROOT / "spark_tests" / test) for test in tests]
    search = os.pathsep.join([str(_ROOT), str(_ROOT / "spark_tests"), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "encrypting", "-q", "--tb=short", *paths],
        cwd=_ROOT,
        env={**os.environ, "PYTHONPATH": search},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_tests_that_cannot_hold_are_there() -> None:
    for name in CANNOT_HOLD:
        path, _, test = name.partition("::")
        assert f"def {test}(" in (_ROOT / "spark_tests" / path).read_text()
