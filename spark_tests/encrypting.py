"""Has all new tables of a test run encrypted: `python -m pytest -p encrypting ...`.

Tables of version 2 get version 3, which encryption needs. Tables that cannot be encrypted stay as
they are: those of version 1, of ORC files, or with Bloom filters. Processes that tests start do the
same, by `PYTHONPATH`: those of Spark, too.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from encrypting_processes import always_encrypted

from icebergds.spec.table_properties import ENCRYPTION_KEY_ID, FORMAT_VERSION

_WHY: Mapping[str, Sequence[str]] = {
    "is of version 2": [
        "api/test_api_creation.py::test_types_of_a_later_version_are_refused_by_an_earlier",
        "api/test_api_evolution.py::test_defaults_need_version_3",
        "api/test_api_row_changes.py::test_position_deletes_of_one_file_add_up",
        "api/test_api_row_changes.py::"
        "test_rows_that_got_ids_since_they_were_read_are_not_moved_without_them",
        "api/test_api_seen.py::test_a_table_shows_in_a_few_lines",
        "api/test_api_spark_changes.py::test_updates_need_a_key_where_rows_have_no_ids",
        "commit/test_commit_row_delta.py::"
        "test_compaction_against_a_stream_of_deletes_ends_in_one_or_the_other",
        "commit/test_commit_row_delta.py::test_position_delete_files_have_no_place_in_version_3",
        "commit/test_commit_row_delta.py::test_position_deletes_of_two_writers_go_together",
        "commit/test_commit_row_delta.py::test_summaries_count_deletes",
        "commit/test_commit_row_delta.py::"
        "test_twenty_deletes_between_appends_of_others_pass_at_snapshot_isolation",
        "commit/test_commit_row_delta.py::test_vectors_have_no_place_in_version_2",
        "operations/maintenance/test_convert_equality_deletes.py::"
        "test_equality_deletes_become_position_deletes[2]",
        "operations/maintenance/test_convert_equality_deletes.py::test_every_file_format[avro]",
        "operations/maintenance/test_convert_equality_deletes.py::test_every_file_format[parquet]",
        "operations/maintenance/test_convert_equality_deletes.py::"
        "test_position_delete_files_have_the_tables_granularity[partition-1]",
        "operations/maintenance/test_convert_equality_deletes.py::"
        "test_rows_deleted_by_position_are_not_deleted_again[2]",
        "operations/maintenance/test_failing_tasks.py::"
        "test_files_of_tasks_that_end_late_are_deleted[position deletes-filesystem]",
        "operations/maintenance/test_failing_tasks.py::"
        "test_files_of_tasks_that_end_late_are_deleted[position deletes-sqlite]",
        "operations/maintenance/test_health.py::"
        "test_data_files_with_many_position_delete_files_are_noticed",
        "operations/maintenance/test_health.py::"
        "test_deletes_by_position_are_counted[2-position_delete_files]",
        "operations/maintenance/test_health.py::test_deletes_that_other_files_need_are_no_gain",
        "operations/maintenance/test_maintain.py::"
        "test_advice_is_followed_in_order_until_the_table_is_healthy",
        "operations/maintenance/test_maintain.py::"
        "test_snapshots_have_the_summary_entries_that_are_given",
        "operations/maintenance/test_maintain.py::"
        "test_tables_that_keep_their_files_are_maintained_without_expiry",
        "operations/maintenance/test_maintain.py::test_what_a_step_gives_rise_to_is_done_too",
        "operations/test_operations_replace.py::test_format_versions_only_rise",
        "scan/test_scan_changes.py::test_updates_need_identifiers",
        "scan/test_scan_metadata_columns.py::test_snapshots_from_before_an_upgrade_have_no_row_ids",
        "write/test_write_keyed_delta.py::test_deletes_of_other_formats",
        "write/test_write_keyed_delta.py::test_the_last_row_of_a_key_counts[2]",
    ],
    "reads or writes a manifest or a manifest list without its key": [
        "api/test_api_spark_changes.py::"
        "test_changes_of_a_range_are_those_of_the_feed_and_lead_to_its_end",
        "api/test_api_stream_read.py::"
        "test_files_with_other_counts_end_a_stream_unless_it_only_warns",
        "commit/test_commit_append.py::test_sequence_numbers_are_inherited_from_the_manifest_list",
        "operations/maintenance/test_expired_files.py::"
        "test_nothing_is_deleted_if_a_kept_snapshot_cannot_be_read",
        "operations/maintenance/test_remove_orphan_files.py::"
        "test_a_damaged_manifest_stops_everything",
        "operations/maintenance/test_rewrite_manifests.py::"
        "test_fastavro_reads_the_manifest_by_the_schema_of_the_specification",
        "scan/test_scan_plan.py::test_an_unknown_spec_is_named",
        "scan/test_scan_plan.py::test_manifests_of_unknown_counts_are_opened",
        "scan/test_scan_plan.py::test_summaries_of_nulls_alone_keep_their_manifest_for_nulls",
        "scan/test_scan_plan.py::test_summaries_that_are_missing_prune_nothing",
    ],
    "reads a data file without its key": [
        "api/test_api_shredded_variants.py::test_an_option_of_a_write_shreds",
        "api/test_api_shredded_variants.py::test_every_change_keeps_variants",
    ],
    "names all properties of a table": [
        "api/test_api_creation.py::test_a_table_has_the_rows_columns_and_the_layout_asked_for",
    ],
    "writes a data file that is not encrypted": [
        "api/test_api_table.py::test_files_without_ids_are_read_through_the_name_mapping",
        "api/test_api_wrong_bounds.py::test_bounds_in_the_wrong_unit_are_named_in_a_warning_once",
        "operations/maintenance/test_convert_equality_deletes.py::"
        "test_files_without_field_ids_are_read_by_name",
    ],
    "adds a file of a table as one that is not encrypted": [
        "operations/test_operations_resolve_keys.py::"
        "test_a_table_that_lists_a_file_twice_gets_equality_deletes",
    ],
    "is of ORC files": [
        "api/test_api_contradicted_partitions.py::test_bounds_of_times_in_orc_files_are_rounded",
    ],
    "is of a table that is not encrypted, or lacks its keys": [
        "commit/test_commit_protocol.py::"
        "test_encrypted_tables_are_not_written_without_a_key_service",
        "commit/test_commit_protocol.py::"
        "test_tables_that_lost_the_property_of_their_key_are_not_written",
        "operations/maintenance/test_expired_files.py::test_an_encrypted_table_expires_nothing",
        "scan/test_scan_plan.py::test_an_encrypted_manifest_is_refused",
        "scan/test_scan_plan.py::test_an_encrypted_manifest_list_is_refused",
        "scan/test_scan_plan.py::test_plain_files_with_a_key_are_refused",
    ],
    "names all updates of a commit, to which keys are added": [
        "commit/test_commit_protocol.py::test_a_staged_snapshot_is_added_and_nothing_else",
        "commit/test_commit_protocol.py::"
        "test_the_table_and_the_branch_must_be_those_that_were_found",
    ],
    "packs tasks without a key": [
        "scan/test_scan_packing.py::test_what_was_packed_reads_the_same_rows",
    ],
    "summaries do not tell of partitions": [
        "commit/test_commit_append.py::test_partition_summaries_are_there_up_to_their_limit",
    ],
}
CANNOT_HOLD = {name: why for why, names in _WHY.items() for name in names}
"""Tests, or cases of tests, that are skipped on encrypted tables, and why."""


_made: Counter[str] = Counter()


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests() -> None:
    """Before modules import what this replaces."""
    always_encrypted.install()
    _encrypt_built_tables()
    # Folders of what they import at their start.
    tests = Path(__file__).parent
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    paths = [tests / "encrypting_processes", tests, tests.parent, *filter(None, given)]
    os.environ["PYTHONPATH"] = os.pathsep.join(map(str, paths))


def _encrypt_built_tables() -> None:
    from built.tables import TableBuilder

    make, set_properties = TableBuilder.__init__, TableBuilder.set_properties

    def encrypted(
        self: TableBuilder,
        location: Path | str,
        schema: Any,
        *,
        format_version: int = 2,
        properties: Mapping[str, str] | None = None,
        **more: Any,
    ) -> None:
        given = dict(properties or {})
        if keys := always_encrypted.with_key(format_version, given):
            always_encrypted.made.append(str(location))
            format_version = int(keys.pop(FORMAT_VERSION))
        given |= keys
        make(self, location, schema, format_version=format_version, properties=given, **more)

    def keeping_the_key(self: TableBuilder, properties: Mapping[str, str]) -> None:
        name = ENCRYPTION_KEY_ID.name
        kept = {k: v for k, v in self.metadata.properties.items() if k == name}
        set_properties(self, {**properties, **kept})

    TableBuilder.__init__ = encrypted  # type: ignore[method-assign]
    TableBuilder.set_properties = keeping_the_key  # type: ignore[method-assign]


def pytest_runtest_logfinish(nodeid: str) -> None:
    _made[nodeid.partition("::")[0]] += len(always_encrypted.made)
    always_encrypted.made.clear()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for module, tables in (+_made).items():
        terminalreporter.write_line(f"{module}: {tables} encrypted tables")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        name = item.nodeid.removeprefix("spark_tests/")
        why = CANNOT_HOLD.get(name) or CANNOT_HOLD.get(name.partition("[")[0])
        if why is not None:
            item.add_marker(pytest.mark.skip(reason=f"on encrypted tables: {why}"))
