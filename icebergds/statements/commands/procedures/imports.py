"""Implements procedures that import files and tables, and prepare copies of a table."""

from __future__ import annotations

from typing import Any

from icebergds.api.import_tables import migrate as migrate_table, snapshot as snapshot_table
from icebergds.api.table_imports import add_files_of
from icebergds.errors import InvalidStatementError
from icebergds.expr.names import quote_name
from icebergds.operations.imports.foreign_table import ForeignTable
from icebergds.spark.patches import own
from icebergds.spark.session_files import session_table
from icebergds.statements.commands.procedures.signature import Call, Rows
from icebergds.statements.commands.procedures.targets import (
    SESSION_CATALOG,
    name_of,
    parts_of,
    session_name_of,
    table_of,
)

_FORMATS = ("parquet", "orc", "avro")
_NO_FILE_LIST = "N/A"
"""Java Iceberg returns this if no list was requested."""


def snapshot(call: Call) -> Rows:
    _check_import(call)
    done = snapshot_table(
        call.scope.spark,
        session_name_of(call, "source_table"),
        quote_name(name_of(call).parts),
        call.get("location"),
        call.get("properties"),
        catalog=call.scope.catalog(call.catalog),
    )
    return [(done.imported_files_count,)]


def migrate(call: Call) -> Rows:
    """Replaces a table of Spark's session catalog with one of the same name in the catalog."""
    _check_import(call)
    parts = parts_of(call, "table")
    if len(parts) > 1 and parts[0] in (call.catalog, SESSION_CATALOG):
        parts = parts[1:]
    if len(parts) == 1:
        parts = (own(call.scope.spark, "catalog").currentDatabase(), *parts)
    done = migrate_table(
        call.scope.spark,
        quote_name((SESSION_CATALOG, *parts)),
        quote_name(parts),
        properties=call.get("properties"),
        backup_table_name=call.get("backup_table_name"),
        drop_backup=call.get("drop_backup", False),
        catalog=call.scope.catalog(call.catalog),
    )
    return [(done.migrated_files_count,)]


def add_files(call: Call) -> Rows:
    _check_parallelism(call)
    table = table_of(call)
    how: dict[str, Any] = {
        "check_duplicate_files": call.get("check_duplicate_files", True),
        "partition_filter": call.get("partition_filter"),
        "spark": call.scope.spark,
    }
    parts = parts_of(call, "source_table")
    if len(parts) == 2 and parts[0].lower() in _FORMATS:
        done = table.add_files(parts[1], **how)
    else:
        done = add_files_of(table, _source(call), **how)
    return [(done.added_files_count, done.changed_partition_count)]


def register_table(call: Call) -> Rows:
    catalog = call.scope.catalog(call.catalog)
    table = catalog.register_table(name_of(call).parts, call["metadata_file"])
    current = table.current_snapshot()
    if current is None:
        return [(None, None, None)]
    counts = [current.summary.get(f"total-{kind}") for kind in ("records", "data-files")]
    return [(current.snapshot_id, *(None if each is None else int(each) for each in counts))]


def rewrite_table_path(call: Call) -> Rows:
    done = table_of(call).rewrite_table_path(
        call["source_prefix"],
        call["target_prefix"],
        call.get("start_version"),
        call.get("end_version"),
        call.get("staging_location"),
        call.get("create_file_list", True),
    )
    return [
        (
            done.latest_version,
            done.file_list_location or _NO_FILE_LIST,
            done.rewritten_manifest_file_paths_count,
            done.rewritten_delete_file_paths_count,
        )
    ]


def _source(call: Call) -> ForeignTable:
    """The source table in Spark's catalog."""
    source = session_table(call.scope.spark, session_name_of(call, "source_table"))
    if not source.files:
        raise InvalidStatementError(f"source_table = {call['source_table']!r} has no files")
    return source


def _check_import(call: Call) -> None:
    _check_parallelism(call)
    if call.get("ignore_missing_files"):
        raise InvalidStatementError(
            "ignore_missing_files = true is not supported: repair the partitions of the source, so "
            "that it names no files that are gone"
        )


def _check_parallelism(call: Call) -> None:
    """Spark's tasks read the files, regardless of the number."""
    parallelism = call.get("parallelism", 1)
    if parallelism < 1:
        raise InvalidStatementError(f"parallelism = {parallelism}: expected a number above 0")
