"""Procedures have the parameters and results of Java Iceberg's; arguments are matched with them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from icebergds.errors import InvalidStatementError
from icebergds.statements.commands.procedures.arguments import match_arguments
from icebergds.statements.commands.procedures.known import PROCEDURES, find_procedure
from icebergds.statements.commands.procedures.signature import Procedure
from icebergds.statements.text.cursor import cursor_of

# As its classes of procedures declare them: required parameters, and columns without nulls, are
# NOT NULL.
_JAVA = """
add_files(table STRING NOT NULL, source_table STRING NOT NULL, partition_filter MAP<STRING,
     STRING>, check_duplicate_files BOOLEAN, parallelism INT)
  -> added_files_count BIGINT NOT NULL, changed_partition_count BIGINT
ancestors_of(table STRING NOT NULL, snapshot_id BIGINT)
  -> snapshot_id BIGINT, timestamp BIGINT
cherrypick_snapshot(table STRING NOT NULL, snapshot_id BIGINT NOT NULL)
  -> source_snapshot_id BIGINT NOT NULL, current_snapshot_id BIGINT NOT NULL
compute_partition_stats(table STRING NOT NULL, snapshot_id BIGINT)
  -> partition_statistics_file STRING
compute_table_stats(table STRING NOT NULL, snapshot_id BIGINT, columns ARRAY<STRING>)
  -> statistics_file STRING
create_changelog_view(table STRING NOT NULL, changelog_view STRING, options MAP<STRING,
     STRING>, compute_updates BOOLEAN, identifier_columns ARRAY<STRING>, net_changes BOOLEAN)
  -> changelog_view STRING NOT NULL
expire_snapshots(table STRING NOT NULL, older_than TIMESTAMP, retain_last INT,
     max_concurrent_deletes INT, stream_results BOOLEAN, snapshot_ids ARRAY<BIGINT>,
     clean_expired_metadata BOOLEAN)
  -> deleted_data_files_count BIGINT, deleted_position_delete_files_count BIGINT,
     deleted_equality_delete_files_count BIGINT, deleted_manifest_files_count BIGINT,
     deleted_manifest_lists_count BIGINT, deleted_statistics_files_count BIGINT
fast_forward(table STRING NOT NULL, branch STRING NOT NULL, to STRING NOT NULL)
  -> branch_updated STRING NOT NULL, previous_ref BIGINT, updated_ref BIGINT NOT NULL
migrate(table STRING NOT NULL, properties MAP<STRING, STRING>, drop_backup BOOLEAN,
     backup_table_name STRING, parallelism INT, ignore_missing_files BOOLEAN)
  -> migrated_files_count BIGINT NOT NULL
publish_changes(table STRING NOT NULL, wap_id STRING NOT NULL)
  -> source_snapshot_id BIGINT NOT NULL, current_snapshot_id BIGINT NOT NULL
register_table(table STRING NOT NULL, metadata_file STRING NOT NULL)
  -> current_snapshot_id BIGINT, total_records_count BIGINT, total_data_files_count BIGINT
remove_orphan_files(table STRING NOT NULL, older_than TIMESTAMP, location STRING, dry_run
     BOOLEAN, max_concurrent_deletes INT, file_list_view STRING, equal_schemes MAP<STRING,
     STRING>, equal_authorities MAP<STRING, STRING>, prefix_mismatch_mode STRING,
     prefix_listing BOOLEAN, stream_results BOOLEAN)
  -> orphan_file_location STRING NOT NULL
rewrite_data_files(table STRING NOT NULL, strategy STRING, sort_order STRING, options
     MAP<STRING, STRING>, where STRING, branch STRING)
  -> rewritten_data_files_count INT NOT NULL, added_data_files_count INT NOT NULL,
     rewritten_bytes_count BIGINT NOT NULL, failed_data_files_count INT NOT NULL,
     removed_delete_files_count INT NOT NULL
rewrite_manifests(table STRING NOT NULL, use_caching BOOLEAN, spec_id INT, sort_by
     ARRAY<STRING>)
  -> rewritten_manifests_count INT NOT NULL, added_manifests_count INT NOT NULL
rewrite_position_delete_files(table STRING NOT NULL, options MAP<STRING, STRING>, where STRING)
  -> rewritten_delete_files_count INT NOT NULL, added_delete_files_count INT NOT NULL,
     rewritten_bytes_count BIGINT NOT NULL, added_bytes_count BIGINT NOT NULL
rewrite_table_path(table STRING NOT NULL, source_prefix STRING NOT NULL, target_prefix STRING
     NOT NULL, start_version STRING, end_version STRING, staging_location STRING,
     create_file_list BOOLEAN)
  -> latest_version STRING, file_list_location STRING, rewritten_manifest_file_paths_count INT,
     rewritten_delete_file_paths_count INT
rollback_to_snapshot(table STRING NOT NULL, snapshot_id BIGINT NOT NULL)
  -> previous_snapshot_id BIGINT NOT NULL, current_snapshot_id BIGINT NOT NULL
rollback_to_timestamp(table STRING NOT NULL, timestamp TIMESTAMP NOT NULL)
  -> previous_snapshot_id BIGINT NOT NULL, current_snapshot_id BIGINT NOT NULL
set_current_snapshot(table STRING NOT NULL, snapshot_id BIGINT, ref STRING)
  -> previous_snapshot_id BIGINT, current_snapshot_id BIGINT NOT NULL
snapshot(source_table STRING NOT NULL, table STRING NOT NULL, location STRING, properties
     MAP<STRING, STRING>, parallelism INT, ignore_missing_files BOOLEAN)
  -> imported_files_count BIGINT NOT NULL
"""
_DOCS = Path(__file__).parents[2] / "docs" / "procedures.md"


def _java() -> dict[str, tuple[str, str]]:
    found = {}
    for name, parameters, columns in re.findall(
        r"^(\w+)\((.*)\)\n +-> (.*)$", _joined(), re.MULTILINE
    ):
        found[name] = (parameters, columns)
    return found


def _joined() -> str:
    """The signatures of Java, each on two lines."""
    return re.sub(r"\n {4,}", " ", _JAVA)


def _parameters(procedure: Procedure) -> str:
    return ", ".join(
        f"{each.name} {each.type.value}{' NOT NULL' if each.is_required else ''}"
        for each in procedure.parameters
    )


def test_there_are_all_of_java() -> None:
    assert len(_java()) == 20
    assert _java().keys() <= PROCEDURES.keys()


@pytest.mark.parametrize("name", _java())
def test_signatures_are_those_of_java(name: str) -> None:
    procedure = PROCEDURES[name]
    assert (_parameters(procedure), procedure.columns) == _java()[name]


def test_all_are_documented_with_their_parameters_and_columns() -> None:
    text = _DOCS.read_text()
    rows = re.findall(r"^\| `(\w+)` \| (.*) \| (.*) \|$", text, re.MULTILINE)
    documented = {name: (given, returned) for name, given, returned in rows}
    assert documented == {
        procedure.name: (
            ", ".join(
                f"**{each.name}**" if each.is_required else each.name
                for each in procedure.parameters
            ),
            ", ".join(re.findall(r"(?:^|, )(\w+)", procedure.columns)),
        )
        for procedure in PROCEDURES.values()
    }


def test_positional_arguments_come_before_named_ones() -> None:
    assert _matched("ancestors_of", "'db.t', SNAPSHOT_ID => 1 + 2") == {
        "table": "'db.t'",
        "snapshot_id": "1 + 2",
    }


def test_arguments_may_have_commas_and_arrows_in_them() -> None:
    assert _matched("compute_table_stats", "t, columns => transform(array('a', 'b'), x -> x)") == {
        "table": "t",
        "columns": "transform(array('a', 'b'), x -> x)",
    }


@pytest.mark.parametrize(
    ("listed", "problem"),
    [
        ("'t', 1, 2", "more arguments than parameters, of which there are 2"),
        ("snapshot_id => 1", "argument table is missing"),
        ("", "argument table is missing"),
        ("tabel => 't'", r"unknown argument tabel; did you mean table\? Arguments: table, "),
        ("'t', table => 'u'", "argument table is given twice"),
        ("table => 't', table => 'u'", "argument table is given twice"),
        ("table => 't', 1", "argument 1 has no name but follows one with a name"),
        ("table =>", "expected the value of an argument"),
        ("'t', , 1", "expected the value of an argument"),
    ],
)
def test_wrong_arguments_are_refused(listed: str, problem: str) -> None:
    with pytest.raises(InvalidStatementError, match=problem):
        _matched("ancestors_of", listed)


def test_names_are_found_in_any_case_and_the_nearest_is_suggested() -> None:
    assert find_procedure("lake", "Fast_Forward").name == "fast_forward"
    with pytest.raises(InvalidStatementError, match=r"did you mean lake\.system\.fast_forward"):
        find_procedure("lake", "fastforward")


def _matched(name: str, listed: str) -> dict[str, str]:
    found = match_arguments(PROCEDURES[name], cursor_of(listed))
    return {parameter: item.written for parameter, item in found.items()}
