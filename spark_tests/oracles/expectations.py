"""What Java Iceberg reads from a table: its rows now, in every snapshot, with metadata columns.

Rows come from Java Iceberg's generic reader, which knows every type. Where Spark's reader, also
Java Iceberg's, can read the table, it must give the same rows, and adds the metadata columns that
the generic reader lacks (`_partition`, `_deleted`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from oracles.canon import canonical_rows, write_rows_file
from oracles.collect import collect
from oracles.java_table import IcebergTable
from oracles.registry import TableCase
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException


def expectations(case: TableCase, table: IcebergTable, directory: Path) -> dict[str, Any]:
    """The index entry of a table; writes its expected rows to files in `directory`/rows."""
    dump = _Dump(table.refresh(), directory)
    metadata = table.java.operations().current()
    return {
        "name": case.name,
        "features": list(case.features),
        "location": table.location,
        "metadata_file": metadata.metadataFileLocation(),
        "format_version": int(metadata.formatVersion()),
        **dump.current(),
        "deleted_rows": dump.deleted_rows(),
        "time_travel": dump.time_travel(as_of=case.as_of),
        "notes": dump.notes,
    }


@dataclass(frozen=True, slots=True)
class _Dump:
    table: IcebergTable
    directory: Path
    notes: list[str] = field(default_factory=list)
    read: dict[tuple[int, str], dict[str, Any]] = field(default_factory=dict)

    def current(self) -> dict[str, Any]:
        """The present rows, alone and with metadata columns."""
        java, iceberg = self.table.java, self.table.iceberg
        schema = iceberg.schema_json(java.schema())
        rows: list[str] | None = self._generic(java.schema(), self._scan())
        names = ["_file", "_pos", "_spec_id"]
        names += ["_row_id", "_last_updated_sequence_number"] if self._version() >= 3 else []
        by_spark = self._spark(["*", *names, *self._partition_column()])
        if by_spark is not None:
            rows = self._agreed(rows, canonical_rows(by_spark, schema))
            with_metadata = self._schema_with([*names, *self._partition_column()])
            metadata_rows: list[str] | None = canonical_rows(by_spark, with_metadata)
        else:
            columns = [*java.schema().columns(), *(self._metadata_column(n) for n in names)]
            projection = iceberg.api.Schema(columns)
            with_metadata = self._schema_with(names)
            metadata_rows = self._generic(projection, self._scan().project(projection))
        if rows is None or metadata_rows is None:
            raise AssertionError(f"{self.table.name}: Java cannot read it: {self.notes}")
        return {
            **self._written("now", schema, rows),
            "metadata_columns": self._written("metadata", with_metadata, metadata_rows),
        }

    def deleted_rows(self) -> dict[str, Any] | None:
        """Rows with `_deleted`, which makes deleted rows visible; None where there are none."""
        snapshot = self.table.java.currentSnapshot()
        if snapshot is None or snapshot.summary().get("total-delete-files") in (None, "0"):
            return None
        names = ["_pos", "_deleted"]
        rows = self._spark(["*", *names])
        if rows is None:
            return None
        schema = self._schema_with(names)
        return self._written("deleted", schema, canonical_rows(rows, schema))

    def time_travel(self, *, as_of: bool) -> list[dict[str, Any]]:
        """One expectation a snapshot and ref, and a timestamp of the history if `as_of`."""
        java = self.table.java
        points = [
            self._travel("snapshot-id", str(snapshot.snapshotId()), snapshot.snapshotId())
            for snapshot in java.snapshots()
        ]
        for name, ref in java.refs().items():
            # A branch is read with the table's schema, anything else with the snapshot's own.
            if ref.isBranch():
                points.append(self._travel("branch", name, ref.snapshotId(), java.schema()))
            else:
                points.append(self._travel("tag", name, ref.snapshotId()))
        for entry in java.history() if as_of else ():
            stamp = str(entry.timestampMillis())
            points.append(self._travel("as-of-timestamp", stamp, entry.snapshotId()))
        return points

    def _travel(
        self, option: str, value: str, snapshot_id: int, schema: Any = None
    ) -> dict[str, Any]:
        scan = self._scan().useSnapshot(snapshot_id)
        if schema is None:
            schema = self.table.java.newScan().useSnapshot(snapshot_id).schema()
        else:
            scan = scan.project(schema)
        schema_json = self.table.iceberg.schema_json(schema)
        key = (snapshot_id, str(schema_json["fields"]))
        if key not in self.read:
            rows = self._generic(schema, scan) if self._has_ids() else None
            if rows is None:
                by_spark = self._spark(["*"], f"VERSION AS OF {snapshot_id}")
                if by_spark is None:
                    raise AssertionError(f"{self.table.name} at {value}: {self.notes}")
                rows = canonical_rows(by_spark, schema_json)
            self.read[key] = self._written(f"travel-{len(self.read)}", schema_json, rows)
        return {"options": {option: value}, **self.read[key]}

    def _agreed(self, generic: list[str] | None, by_spark: list[str]) -> list[str]:
        if generic is not None and generic != by_spark and self._has_ids():
            raise AssertionError(f"{self.table.name}: Java's two readers differ")
        return by_spark

    def _has_ids(self) -> bool:
        # Java's generic reader does not apply the name mapping to files without ids.
        return "schema.name-mapping.default" not in self.table.java.properties()

    def _scan(self) -> Any:
        return self.table.iceberg.api.data.IcebergGenerics.read(self.table.java)

    def _generic(self, schema: Any, scan: Any) -> list[str] | None:
        try:
            return self.table.iceberg.read_rows(scan, schema)
        except Py4JJavaError as failure:
            self.notes.append(f"generic reader: {_brief(failure)}")
            return None

    def _spark(self, columns: Sequence[str], suffix: str = "") -> pa.Table | None:
        statement = f"SELECT {', '.join(columns)} FROM {self.table.sql_name} {suffix}"
        try:
            return collect(self.table.iceberg.spark.sql(statement))
        except (Py4JJavaError, PySparkException) as failure:
            self.notes.append(f"Spark: {_brief(failure)}")
            return None

    def _schema_with(self, names: Sequence[str]) -> dict[str, Any]:
        """The table's schema in JSON form with metadata columns after its own."""
        schema = self.table.iceberg.schema_json(self.table.java.schema())
        for name in names:
            if name == "_partition":
                kind: Any = {"type": "struct", "fields": self._partition_fields()}
            else:
                kind = str(self._metadata_column(name).type())
            schema["fields"].append({"id": 0, "name": name, "required": False, "type": kind})
        return schema

    def _metadata_column(self, name: str) -> Any:
        return self.table.iceberg.api.MetadataColumns.metadataColumn(self.table.java, name)

    def _partition_column(self) -> list[str]:
        return ["_partition"] if self._partition_fields() else []

    def _partition_fields(self) -> list[dict[str, Any]]:
        api = self.table.iceberg.api
        kind = api.Partitioning.partitionType(self.table.java)
        if not kind.fields():
            return []
        return list(self.table.iceberg.schema_json(api.Schema(kind.fields()))["fields"])

    def _version(self) -> int:
        return int(self.table.java.operations().current().formatVersion())

    def _written(self, label: str, schema: dict[str, Any], rows: list[str]) -> dict[str, Any]:
        path = self.directory / "rows" / f"{self.table.name}.{label}.jsonl"
        write_rows_file(path, rows)
        rows_file = str(path.relative_to(self.directory))
        return {"schema": schema, "rows_file": rows_file, "row_count": len(rows)}


def _brief(failure: Exception) -> str:
    if not isinstance(failure, Py4JJavaError):
        return str(failure).splitlines()[0][:160]
    error = failure.java_exception
    while error.getCause() is not None:
        error = error.getCause()
    return str(error).splitlines()[0][:160]
