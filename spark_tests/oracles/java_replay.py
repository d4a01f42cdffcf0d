"""The operations that were done to a table, done again by Java Iceberg to a twin of it.

The twin takes the very data files of the table, so that all that Java records of each commit, sizes
too, can be compared with what was recorded before.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from oracles.java_table import NAMESPACE, IcebergTable
from oracles.jvm import Iceberg


def replay(
    iceberg: Iceberg,
    name: str,
    operations: Sequence[Mapping[str, Any]],
    expression: Callable[[Any], Any],
) -> list[dict[str, Any]]:
    """Repeats operations, one a snapshot of the table in their order.

    An operation has a `kind` (append, fast_append, overwrite, dynamic, delete, replace), and where
    it applies a `filter`, a `branch`, a `wap_id`. Returns of each snapshot its operation and
    summary in the table and in the twin.
    """
    table = iceberg.load(name)
    twin = _twin(iceberg, table)
    # Metadata lists them in the order of their commits.
    snapshots = list(table.java.snapshots())
    compared = []
    for snapshot, operation in zip(snapshots, operations, strict=True):
        _repeat(table, twin, snapshot, operation, expression)
        twin.refresh()
        last = list(twin.java.snapshots())[-1]
        compared.append({"ours": _described(table, snapshot), "java": _described(twin, last)})
    return compared


def _twin(iceberg: Iceberg, table: IcebergTable) -> IcebergTable:
    api = iceberg.api
    java = table.java
    version = str(java.operations().current().formatVersion())
    name = f"{table.name}_twin"
    twin = iceberg.catalog.createTable(
        api.catalog.TableIdentifier.parse(f"{NAMESPACE}.{name}"),
        java.schema(),
        java.spec(),
        {**dict(java.properties()), "format-version": version},
    )
    return IcebergTable(iceberg, name, twin)


def _repeat(
    table: IcebergTable,
    twin: IcebergTable,
    snapshot: Any,
    operation: Mapping[str, Any],
    expression: Callable[[Any], Any],
) -> None:
    added = list(snapshot.addedDataFiles(table.java.io()))
    removed = list(snapshot.removedDataFiles(table.java.io()))
    java = twin.java
    match operation["kind"]:
        case "append" | "fast_append":
            update = java.newFastAppend() if "fast" in operation["kind"] else java.newAppend()
            for data_file in added:
                update.appendFile(data_file)
        case "overwrite":
            update = java.newOverwrite().overwriteByRowFilter(expression(operation["filter"]))
            for data_file in added:
                update.addFile(data_file)
        case "dynamic":
            update = java.newReplacePartitions()
            for data_file in added:
                update.addFile(data_file)
        case "delete":
            update = java.newDelete().deleteFromRowFilter(expression(operation["filter"]))
        case "replace":
            update = java.newRewrite()
            for data_file in removed:
                update.deleteFile(data_file)
            for data_file in added:
                update.addFile(data_file)
        case other:
            raise ValueError(f"unknown operation {other}")
    if branch := operation.get("branch"):
        update = update.toBranch(branch)
    if wap_id := operation.get("wap_id"):
        update = update.set("wap.id", wap_id).stageOnly()
    update.commit()


def _described(table: IcebergTable, snapshot: Any) -> dict[str, Any]:
    return {
        "operation": snapshot.operation(),
        "summary": dict(snapshot.summary()),
        "sequence_number": snapshot.sequenceNumber(),
        "schema_id": snapshot.schemaId(),
        "first_row_id": snapshot.firstRowId(),
        "added_rows": snapshot.addedRows(),
        # Java's text of a manifest has all fields of its entry in the list; the size depends on
        # compression, and the other two are what tells twins apart.
        "manifests": [
            re.sub(r"(path|length|added_snapshot_id)=[^,]*, ", "", manifest.toString())
            for manifest in snapshot.allManifests(table.java.io())
        ],
    }
