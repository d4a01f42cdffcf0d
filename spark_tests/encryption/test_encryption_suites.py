"""The tests of scans, writes, commits, tables and maintenance hold on encrypted tables, too.

They run in processes of their own, by the plugin `encrypting`.
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
    # A process each.
    [
        "commit/test_commit_append.py",
        "commit/test_commit_compact_files.py",
        "commit/test_commit_conflicts.py",
        "commit/test_commit_deletes_by_file.py",
        "commit/test_commit_dropped_branch.py",
        "commit/test_commit_faults.py",
        "commit/test_commit_overwrites.py",
        "commit/test_commit_protocol.py",
        "commit/test_commit_row_delta.py",
    ],
    [
        "scan/test_scan_changes.py",
        "scan/test_scan_counts.py",
        "scan/test_scan_empty_files.py",
        "scan/test_scan_metadata_columns.py",
        "scan/test_scan_packed_files.py",
        "scan/test_scan_packing.py",
        "scan/test_scan_plan.py",
        "scan/test_scan_read.py",
        "scan/test_scan_splits.py",
        "write/test_write_keyed_delta.py",
    ],
    [
        "api/test_api_changes.py",
        "api/test_api_column_defaults.py",
        "api/test_api_deleted_counts.py",
        "api/test_api_idempotent_writes.py",
        "api/test_api_inspect.py",
        "api/test_api_isolation.py",
        "api/test_api_partition_evolution.py",
        "api/test_api_references.py",
        "api/test_api_row_changes.py",
        "api/test_api_stream_read.py",
        "api/test_api_transaction.py",
    ],
    [
        "api/test_api_contradicted_partitions.py",
        "api/test_api_creation.py",
        "api/test_api_evolution.py",
        "api/test_api_frames.py",
        "api/test_api_key_order.py",
        "api/test_api_rows.py",
        "api/test_api_schema_unions.py",
        "api/test_api_seen.py",
        "api/test_api_shared_metadata.py",
        "api/test_api_shredded_variants.py",
        "api/test_api_spark_changes.py",
        "api/test_api_store_assignment.py",
        "api/test_api_table.py",
        "api/test_api_writing.py",
        "api/test_api_wrong_bounds.py",
    ],
    [
        "operations/maintenance/test_convert_equality_deletes.py",
        "operations/maintenance/test_delete_reachable_files.py",
        "operations/maintenance/test_expire_snapshots.py",
        "operations/maintenance/test_expired_files.py",
        "operations/maintenance/test_failing_tasks.py",
        "operations/maintenance/test_health.py",
        "operations/maintenance/test_live_positions.py",
        "operations/maintenance/test_remove_dangling_deletes.py",
        "operations/maintenance/test_remove_orphan_files.py",
        "operations/maintenance/test_rewrite_manifests.py",
        "operations/maintenance/test_shared_deletes.py",
        "operations/maintenance/test_sorted_rewrite.py",
    ],
    [
        "operations/maintenance/test_action_meanwhile.py",
        "operations/maintenance/test_maintain.py",
        "operations/maintenance/test_rewrite_data_files.py",
        "operations/test_operations_read_marks.py",
        "operations/test_operations_replace.py",
        "operations/test_operations_resolve_keys.py",
        "operations/test_operations_stream_batches.py",
        "operations/test_operations_stream_maintenance.py",
        "operations/test_operations_time_travel.py",
    ],
]
"""In nightly runs, with as many examples as for each change, but others."""

_FEW = [
    "commit/test_commit_append.py::test_manifests_are_merged_once_there_are_enough",
    "operations/maintenance/test_rewrite_manifests.py::test_rows_keep_their_ids_and_update_numbers",
    "operations/maintenance/test_rewrite_manifests.py::"
    "test_delete_manifests_are_rewritten_by_themselves",
    "operations/test_operations_resolve_keys.py::"
    "test_rows_that_others_add_meanwhile_are_replaced_too",
    "operations/test_operations_resolve_keys.py::test_a_compaction_meanwhile_is_moved_past",
    "scan/test_scan_counts.py::test_each_file_is_counted_where_it_is_skipped",
]
"""For each change."""


@pytest.mark.parametrize("tests", _MODULES if IS_NIGHTLY else [_FEW])
def test_tests_hold_on_encrypted_tables(tests: list[str]) -> None:
    paths = [os.fspath(_ROOT / "spark_tests" / test) for test in tests]
    search = os.pathsep.join([str(_ROOT), str(_ROOT / "spark_tests"), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "encrypting", "-q", "--tb=short", *paths],
        cwd=_ROOT,
        env={**os.environ, "ICEBERGDS_PROFILE": "pull", "PYTHONPATH": search},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "encrypted tables" in done.stdout, "no table of a test was encrypted"


def test_tests_that_cannot_hold_are_there() -> None:
    for name in CANNOT_HOLD:
        path, _, test = name.partition("[")[0].partition("::")
        assert f"def {test}(" in (_ROOT / "spark_tests" / path).read_text(), name
