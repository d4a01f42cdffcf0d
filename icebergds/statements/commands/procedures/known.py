"""Lists all procedures: those of Java Iceberg, with its results, and our own."""

from __future__ import annotations

from icebergds.errors import InvalidStatementError
from icebergds.statements.commands.procedures import (
    imports,
    maintenance,
    own,
    snapshots,
)
from icebergds.statements.commands.procedures.signature import (
    ArgumentType,
    Procedure,
    optional,
    required,
)
from icebergds.suggestions import did_you_mean

_BIGINT = ArgumentType.BIGINT
_INT = ArgumentType.INT
_FLAG = ArgumentType.BOOLEAN
_TIME = ArgumentType.TIMESTAMP
_MAP = ArgumentType.STRING_MAP
_NAMES = ArgumentType.STRING_ARRAY
_TABLE = required("table")
_BRANCH = optional("branch")

_OF_SNAPSHOTS = (
    Procedure(
        "rollback_to_snapshot",
        (_TABLE, required("snapshot_id", _BIGINT)),
        "previous_snapshot_id BIGINT NOT NULL, current_snapshot_id BIGINT NOT NULL",
        snapshots.rollback_to_snapshot,
        "Makes an ancestor of the current snapshot the current one",
    ),
    Procedure(
        "rollback_to_timestamp",
        (_TABLE, required("timestamp", _TIME)),
        "previous_snapshot_id BIGINT NOT NULL, current_snapshot_id BIGINT NOT NULL",
        snapshots.rollback_to_timestamp,
        "Makes the newest ancestor from before a time the current snapshot",
    ),
    Procedure(
        "set_current_snapshot",
        (_TABLE, optional("snapshot_id", _BIGINT), optional("ref")),
        "previous_snapshot_id BIGINT, current_snapshot_id BIGINT NOT NULL",
        snapshots.set_current_snapshot,
        "Makes any snapshot, or that of a branch or tag, the current one",
    ),
    Procedure(
        "cherrypick_snapshot",
        (_TABLE, required("snapshot_id", _BIGINT)),
        "source_snapshot_id BIGINT NOT NULL, current_snapshot_id BIGINT NOT NULL",
        snapshots.cherrypick_snapshot,
        "Applies the changes of one snapshot to main",
    ),
    Procedure(
        "publish_changes",
        (_TABLE, required("wap_id")),
        "source_snapshot_id BIGINT NOT NULL, current_snapshot_id BIGINT NOT NULL",
        snapshots.publish_changes,
        "Applies to main what was staged under an id",
    ),
    Procedure(
        "fast_forward",
        (_TABLE, required("branch"), required("to")),
        "branch_updated STRING NOT NULL, previous_ref BIGINT, updated_ref BIGINT NOT NULL",
        snapshots.fast_forward,
        "Moves a branch forward to the snapshot of another branch or tag",
    ),
    Procedure(
        "ancestors_of",
        (_TABLE, optional("snapshot_id", _BIGINT)),
        "snapshot_id BIGINT, timestamp BIGINT",
        snapshots.ancestors_of,
        "Lists a snapshot, the current one by default, and its ancestors",
    ),
)
_OF_MAINTENANCE = (
    Procedure(
        "expire_snapshots",
        (
            _TABLE,
            optional("older_than", _TIME),
            optional("retain_last", _INT),
            optional("max_concurrent_deletes", _INT),
            optional("stream_results", _FLAG),
            optional("snapshot_ids", ArgumentType.BIGINT_ARRAY),
            optional("clean_expired_metadata", _FLAG),
        ),
        "deleted_data_files_count BIGINT, deleted_position_delete_files_count BIGINT, "
        "deleted_equality_delete_files_count BIGINT, deleted_manifest_files_count BIGINT, "
        "deleted_manifest_lists_count BIGINT, deleted_statistics_files_count BIGINT",
        maintenance.expire_snapshots,
        "Removes old snapshots, and the files that only they used",
    ),
    Procedure(
        "remove_orphan_files",
        (
            _TABLE,
            optional("older_than", _TIME),
            optional("location"),
            optional("dry_run", _FLAG),
            optional("max_concurrent_deletes", _INT),
            optional("file_list_view"),
            optional("equal_schemes", _MAP),
            optional("equal_authorities", _MAP),
            optional("prefix_mismatch_mode"),
            optional("prefix_listing", _FLAG),
            optional("stream_results", _FLAG),
        ),
        "orphan_file_location STRING NOT NULL",
        maintenance.remove_orphan_files,
        "Deletes old files in the directory of a table that nothing refers to",
    ),
    Procedure(
        "rewrite_data_files",
        (
            _TABLE,
            optional("strategy"),
            optional("sort_order"),
            optional("options", _MAP),
            optional("where"),
            _BRANCH,
        ),
        "rewritten_data_files_count INT NOT NULL, added_data_files_count INT NOT NULL, "
        "rewritten_bytes_count BIGINT NOT NULL, failed_data_files_count INT NOT NULL, "
        "removed_delete_files_count INT NOT NULL",
        maintenance.rewrite_data_files,
        "Rewrites small files, large files and files with many deletes",
    ),
    Procedure(
        "rewrite_manifests",
        (
            _TABLE,
            optional("use_caching", _FLAG),
            optional("spec_id", _INT),
            optional("sort_by", _NAMES),
        ),
        "rewritten_manifests_count INT NOT NULL, added_manifests_count INT NOT NULL",
        maintenance.rewrite_manifests,
        "Rewrites manifests, so that planning skips more of them",
    ),
    Procedure(
        "rewrite_position_delete_files",
        (_TABLE, optional("options", _MAP), optional("where")),
        "rewritten_delete_files_count INT NOT NULL, added_delete_files_count INT NOT NULL, "
        "rewritten_bytes_count BIGINT NOT NULL, added_bytes_count BIGINT NOT NULL",
        maintenance.rewrite_position_delete_files,
        "Merges small position delete files",
    ),
)
_OF_STATISTICS = (
    Procedure(
        "compute_table_stats",
        (_TABLE, optional("snapshot_id", _BIGINT), optional("columns", _NAMES)),
        "statistics_file STRING",
        maintenance.compute_table_stats,
        "Estimates how many distinct values columns have",
    ),
    Procedure(
        "compute_partition_stats",
        (_TABLE, optional("snapshot_id", _BIGINT)),
        "partition_statistics_file STRING",
        maintenance.compute_partition_stats,
        "Counts the rows, files and deletes of each partition",
    ),
)
_OF_IMPORTS = (
    Procedure(
        "snapshot",
        (
            required("source_table"),
            _TABLE,
            optional("location"),
            optional("properties", _MAP),
            optional("parallelism", _INT),
            optional("ignore_missing_files", _FLAG),
        ),
        "imported_files_count BIGINT NOT NULL",
        imports.snapshot,
        "Creates a table of the files of a table of Spark's session catalog, which stays",
    ),
    Procedure(
        "migrate",
        (
            _TABLE,
            optional("properties", _MAP),
            optional("drop_backup", _FLAG),
            optional("backup_table_name"),
            optional("parallelism", _INT),
            optional("ignore_missing_files", _FLAG),
        ),
        "migrated_files_count BIGINT NOT NULL",
        imports.migrate,
        "Replaces a table of Spark's session catalog by one of its files",
    ),
    Procedure(
        "add_files",
        (
            _TABLE,
            required("source_table"),
            optional("partition_filter", _MAP),
            optional("check_duplicate_files", _FLAG),
            optional("parallelism", _INT),
        ),
        "added_files_count BIGINT NOT NULL, changed_partition_count BIGINT",
        imports.add_files,
        "Adds existing files to a table, where they are",
    ),
    Procedure(
        "register_table",
        (_TABLE, required("metadata_file")),
        "current_snapshot_id BIGINT, total_records_count BIGINT, total_data_files_count BIGINT",
        imports.register_table,
        "Registers an existing table by its metadata file",
    ),
    Procedure(
        "rewrite_table_path",
        (
            _TABLE,
            required("source_prefix"),
            required("target_prefix"),
            optional("start_version"),
            optional("end_version"),
            optional("staging_location"),
            optional("create_file_list", _FLAG),
        ),
        "latest_version STRING, file_list_location STRING, "
        "rewritten_manifest_file_paths_count INT, rewritten_delete_file_paths_count INT",
        imports.rewrite_table_path,
        "Prepares a copy of a table at another place",
    ),
)
_OF_CHANGES = (
    Procedure(
        "create_changelog_view",
        (
            _TABLE,
            optional("changelog_view"),
            optional("options", _MAP),
            optional("compute_updates", _FLAG),
            optional("identifier_columns", _NAMES),
            optional("net_changes", _FLAG),
        ),
        "changelog_view STRING NOT NULL",
        snapshots.create_changelog_view,
        "Creates a temporary view of the changes of rows between snapshots",
    ),
)
_OWN = (
    Procedure(
        "upsert",
        (
            _TABLE,
            required("source"),
            optional("keys", _NAMES),
            optional("order_by"),
            optional("options", _MAP),
            _BRANCH,
        ),
        "upserted_rows_count BIGINT NOT NULL, snapshot_id BIGINT",
        own.upsert,
        "Inserts rows and replaces existing rows with the same key, without reading the table",
    ),
    Procedure(
        "convert_equality_deletes",
        (_TABLE, optional("where"), optional("options", _MAP), _BRANCH),
        "converted_equality_delete_files_count BIGINT NOT NULL, "
        "remaining_equality_delete_files_count BIGINT NOT NULL, "
        "added_delete_files_count BIGINT NOT NULL, deleted_rows_count BIGINT NOT NULL",
        own.convert_equality_deletes,
        "Converts equality deletes to position deletes",
    ),
    Procedure(
        "remove_dangling_deletes",
        (_TABLE, _BRANCH),
        "removed_delete_files_count BIGINT NOT NULL, "
        "removed_position_delete_files_count BIGINT NOT NULL, "
        "removed_equality_delete_files_count BIGINT NOT NULL, removed_dvs_count BIGINT NOT NULL",
        own.remove_dangling_deletes,
        "Removes delete files that apply to no data file",
    ),
    Procedure(
        "delete_reachable_files",
        (required("metadata_file"),),
        "deleted_data_files_count BIGINT NOT NULL, "
        "deleted_position_delete_files_count BIGINT NOT NULL, "
        "deleted_equality_delete_files_count BIGINT NOT NULL, "
        "deleted_manifests_count BIGINT NOT NULL, deleted_manifest_lists_count BIGINT NOT NULL, "
        "deleted_other_files_count BIGINT NOT NULL, failed_files_count BIGINT NOT NULL",
        own.delete_reachable_files,
        "Deletes all files of a table that was dropped, by its metadata file",
    ),
    Procedure(
        "maintain",
        (
            _TABLE,
            optional("dry_run", _FLAG),
            optional("max_bytes", _BIGINT),
            optional("max_seconds", ArgumentType.DOUBLE),
            optional("strategy"),
            optional("sort_order"),
            optional("expire_older_than", _TIME),
            optional("retain_last", _INT),
            optional("orphans_older_than", _TIME),
            optional("convert_equality_deletes", _FLAG),
            optional("rewrite_data_files", _FLAG),
            optional("rewrite_position_delete_files", _FLAG),
            optional("remove_dangling_deletes", _FLAG),
            optional("rewrite_manifests", _FLAG),
            optional("expire_snapshots", _FLAG),
            optional("remove_orphan_files", _FLAG),
            optional("purge_deleted", _FLAG),
            _BRANCH,
        ),
        "action STRING NOT NULL, state STRING NOT NULL, reason STRING NOT NULL, "
        "gain STRING NOT NULL, note STRING NOT NULL, size_in_bytes BIGINT NOT NULL, "
        "seconds DOUBLE NOT NULL",
        own.maintain,
        "Does what health advises, best first, within a budget of bytes and time",
    ),
    Procedure(
        "find_stored_rows",
        (_TABLE, required("where")),
        "file_path STRING, content STRING NOT NULL, rows_count BIGINT, "
        "snapshot_ids ARRAY<BIGINT> NOT NULL, refs ARRAY<STRING> NOT NULL, note STRING NOT NULL",
        own.find_stored_rows,
        "Finds the files of all snapshots that hold matching rows, deleted or not",
    ),
    Procedure(
        "health",
        (_TABLE, _BRANCH),
        "is_healthy BOOLEAN NOT NULL, advice ARRAY<STRING> NOT NULL, "
        "data_files_count BIGINT NOT NULL, data_rows_count BIGINT NOT NULL, "
        "data_files_bytes BIGINT NOT NULL, small_data_files_count BIGINT NOT NULL, "
        "large_data_files_count BIGINT NOT NULL, position_delete_files_count BIGINT NOT NULL, "
        "deletion_vectors_count BIGINT NOT NULL, equality_delete_files_count BIGINT NOT NULL, "
        "dangling_delete_files_count BIGINT NOT NULL, delete_files_bytes BIGINT NOT NULL, "
        "deleted_rows_count BIGINT NOT NULL, manifests_count BIGINT NOT NULL, "
        "manifests_bytes BIGINT NOT NULL, snapshots_count BIGINT NOT NULL, "
        "expirable_snapshots_count BIGINT NOT NULL",
        own.health,
        "Tells what a read costs beyond the least possible, and what to do about it",
    ),
)

PROCEDURES = {
    procedure.name: procedure
    for procedure in (
        *_OF_SNAPSHOTS,
        *_OF_MAINTENANCE,
        *_OF_STATISTICS,
        *_OF_IMPORTS,
        *_OF_CHANGES,
        *_OWN,
    )
}
"""Procedures by name."""


def find_procedure(catalog: str, name: str) -> Procedure:
    """The procedure of a name, ignoring case.

    Raises:
        InvalidStatementError: there is no such procedure.
    """
    found = PROCEDURES.get(name.lower())
    if found is None:
        near = did_you_mean(name, PROCEDURES, shown=lambda each: f"{catalog}.system.{each}")
        hint = near or f"SHOW PROCEDURES IN {catalog}.system lists those that there are"
        raise InvalidStatementError(f"procedure {catalog}.system.{name} does not exist; {hint}")
    return found
