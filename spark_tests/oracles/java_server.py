"""Java Iceberg as a server: it reads, plans, describes and changes tables that others wrote.

Run with the Java interpreter as `python -m oracles.java_server DIRECTORY`, the folder
`spark_tests` on PYTHONPATH and the runtime jar in ICEBERGDS_ICEBERG_JAR. DIRECTORY/warehouse is the
warehouse of a Hadoop catalog. Each line of standard input is a request, `{"command": ...,
"arguments": {...}}`; each is answered by a line, `{"answer": ...}` or `{"error": ...}`.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from oracles.canon import canonical_rows
from oracles.collect import collect
from oracles.java_environment import class_path
from oracles.java_replay import replay
from oracles.java_table import IcebergTable
from oracles.jvm import Iceberg, start_spark
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

_LINEAGE = ("_row_id", "_last_updated_sequence_number")
_UNSUPPORTED = ("does not support", "not supported", "nsupported")
_METRICS = ("valueCounts", "nullValueCounts", "nanValueCounts")
_BOUNDS = ("lowerBounds", "upperBounds")
_PARTITION_STATISTICS = {
    "spec_id": "specId",
    "data_record_count": "dataRecordCount",
    "data_file_count": "dataFileCount",
    "total_data_file_size_in_bytes": "totalDataFileSizeInBytes",
    "position_delete_record_count": "positionDeleteRecordCount",
    "position_delete_file_count": "positionDeleteFileCount",
    "equality_delete_record_count": "equalityDeleteRecordCount",
    "equality_delete_file_count": "equalityDeleteFileCount",
    "total_record_count": "totalRecords",
    "last_updated_at": "lastUpdatedAt",
    "last_updated_snapshot_id": "lastUpdatedSnapshotId",
    "dv_count": "dvCount",
}


class Server:
    """The commands; each returns what JSON can hold."""

    def __init__(self, iceberg: Iceberg) -> None:
        self._iceberg = iceberg

    def rows(self, table: str, snapshot_ids: Sequence[int] = ()) -> dict[str, Any]:
        """Canonical rows: now by both of Java's readers, and in each of some snapshots.

        What Spark's reader cannot read is null there.
        """
        found = self._iceberg.load(table)
        schema = found.java.schema()
        return {
            "generic": self._iceberg.read_rows(self._scan(found), schema),
            "spark": self._spark_rows(found, self._iceberg.schema_json(schema)),
            "snapshots": [self._snapshot(found, snapshot_id) for snapshot_id in snapshot_ids],
        }

    def rows_by(self, table: str, reader: str) -> list[str]:
        """Canonical rows by one of Java's readers, `generic` or `spark`."""
        found = self._iceberg.load(table)
        schema = found.java.schema()
        if reader == "generic":
            return self._iceberg.read_rows(self._scan(found), schema)
        rows = collect(self._iceberg.spark.sql(f"SELECT * FROM {found.sql_name}"))
        return canonical_rows(rows, self._iceberg.schema_json(schema))

    def rows_at(self, location: str) -> list[str]:
        """Canonical rows of a table that no catalog knows, by its location."""
        tables = self._iceberg.api.hadoop.HadoopTables(
            self._iceberg.spark._jsc.hadoopConfiguration()
        )
        java = tables.load(location)
        return self._iceberg.read_rows(
            self._iceberg.api.data.IcebergGenerics.read(java), java.schema()
        )

    def lineage(self, table: str) -> list[dict[str, Any]]:
        """The rows as Spark has them, with the row lineage of version 3."""
        found = self._iceberg.load(table)
        rows = self._iceberg.sql(f"SELECT *, {', '.join(_LINEAGE)} FROM {found.sql_name}")
        return [row.asDict(recursive=True) for row in rows]

    def planned(self, table: str, filters: Sequence[Any]) -> list[list[str]]:
        """For each filter the data files that Java plans to read."""
        found = self._iceberg.load(table)
        answers = []
        for condition in filters:
            scan = found.java.newScan().filter(self.expression(condition))
            tasks = self._iceberg.list_of(scan.planFiles())
            answers.append([task.file().location() for task in tasks])
        return answers

    def variant_bounds(self, table: str, field_id: int) -> list[list[str]]:
        """The lower and the upper bound of a variant column in each data file, as texts."""
        planned = self._iceberg.load(table).java.newScan().includeColumnStats().planFiles()
        files = [task.file() for task in self._iceberg.list_of(planned)]
        order = self._iceberg.jvm.java.nio.ByteOrder.LITTLE_ENDIAN
        decode = getattr(self._iceberg.api.variants.Variant, "from")
        return [
            [
                str(decode(getattr(file, bounds)()[field_id].duplicate().order(order)).value())
                for bounds in _BOUNDS
            ]
            for file in files
        ]

    def filtered(self, table: str, filters: Sequence[Any], column: str) -> list[list[Any]]:
        """For each filter the values of a column in the rows that it selects."""
        found = self._iceberg.load(table)
        columns = self._iceberg._gateway.new_array(self._iceberg.jvm.java.lang.String, 1)
        columns[0] = column
        answers = []
        for condition in filters:
            scan = self._scan(found).where(self.expression(condition)).select(columns)
            records = self._iceberg.list_of(scan.build())
            answers.append(sorted(record.getField(column) for record in records))
        return answers

    def metrics(self, table: str, file_format: str) -> list[dict[str, Any]]:
        """For each data file its metrics, and those that Java's writer has for the same rows."""
        found = self._iceberg.load(table)
        java = found.java
        schema = java.schema()
        answers = []
        planned = java.newScan().includeColumnStats().planFiles()
        for task in self._iceberg.list_of(planned):
            ours = task.file()
            records = self._records_of(found, ours)
            path = f"file:{self._iceberg.scratch}/m{self._iceberg.next_number()}.{file_format}"
            builder = (
                self._iceberg.data_writer(file_format, java.io().newOutputFile(path))
                .schema(schema)
                .setAll(java.properties())
                .metricsConfig(self._iceberg.api.MetricsConfig.forTable(java))
                .spec(self._iceberg.api.PartitionSpec.unpartitioned())
            )
            theirs = self._iceberg.write_all(builder.build(), records).toDataFile()
            described = {"ours": self._metrics_of(ours), "java": self._metrics_of(theirs)}
            answers.append({"file": ours.location(), **described})
        return answers

    def corners(self, table: str) -> list[dict[str, list[list[float]]]]:
        """For each data file the bounds of its geometries and geographies, as Java parses them."""
        java = self._iceberg.load(table).java
        parse = self._iceberg.api.types.Conversions.fromByteBuffer
        answers = []
        for task in self._iceberg.list_of(java.newScan().includeColumnStats().planFiles()):
            found = {}
            for field_id, lower in task.file().lowerBounds().items():
                kind = java.schema().findType(field_id)
                if kind.typeId().name() in ("GEOMETRY", "GEOGRAPHY"):
                    both = [parse(kind, lower), parse(kind, task.file().upperBounds()[field_id])]
                    found[str(field_id)] = [self._coordinates(bound) for bound in both]
            answers.append(found)
        return answers

    def _coordinates(self, bound: Any) -> list[float]:
        more = [bound.z()] if bound.hasZ() else []
        return [bound.x(), bound.y(), *more]

    def replay(self, table: str, operations: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Does to a twin what was done to a table; see `oracles.java_replay`."""
        return replay(self._iceberg, table, operations, self.expression)

    def sql(self, statement: str) -> list[list[Any]]:
        """Runs a statement of Spark SQL; the Hadoop catalog is `oracle`."""
        return [list(row) for row in self._iceberg.sql(statement)]

    def stream(self, table: str, directory: str, options: Mapping[str, str]) -> list[list[Any]]:
        """All rows that a streaming query has read so far, after it has read what is there now.

        Args:
            table: its name in Spark.
            directory: what the query keeps is here; a new directory is a new query.
            options: those of the read.
        """
        copy = f"{directory}/copy"
        reader = self._iceberg.spark.readStream.format("iceberg").options(**options)
        writer = reader.table(table).writeStream.format("parquet").trigger(availableNow=True)
        writer = writer.option("checkpointLocation", f"{directory}/checkpoint")
        writer.start(copy).awaitTermination()
        return [list(row) for row in self._iceberg.spark.read.parquet(copy).collect()]

    def partition_statistics(self, table: str, snapshot_id: int) -> list[dict[str, Any]]:
        """The rows of a snapshot's partition statistics file; partition values as texts."""
        java = self._iceberg.load(table).java
        scan = java.newPartitionStatisticsScan().useSnapshot(snapshot_id)
        any_class = self._iceberg.jvm.java.lang.Class.forName("java.lang.Object")
        text = self._iceberg.jvm.java.util.Objects.toString
        return [
            {
                "partition": [
                    text(row.partition().get(at, any_class), None)
                    for at in range(row.partition().size())
                ],
                **{column: getattr(row, name)() for column, name in _PARTITION_STATISTICS.items()},
            }
            for row in self._iceberg.list_of(scan.scan())
        ]

    def expression(self, condition: Any) -> Any:
        """A Java expression of a filter in JSON form: [operation, column, literals...]."""
        expressions = self._iceberg.api.expressions.Expressions
        operation, *arguments = condition
        if operation in ("and", "or"):
            joined = getattr(expressions, operation)
            return joined(*(self.expression(argument) for argument in arguments))
        if operation == "not":
            return getattr(expressions, "not")(self.expression(arguments[0]))
        column, *literals = arguments
        values = [self._literal(literal) for literal in literals]
        if operation in ("in", "notIn"):
            return getattr(expressions, operation)(column, values)
        return getattr(expressions, operation)(column, *values)

    def _literal(self, literal: Any) -> Any:
        if isinstance(literal, dict):
            return self._iceberg.jvm.java.nio.ByteBuffer.wrap(bytes.fromhex(literal["hex"]))
        return literal

    def _scan(self, table: IcebergTable) -> Any:
        return self._iceberg.api.data.IcebergGenerics.read(table.java)

    def _snapshot(self, table: IcebergTable, snapshot_id: int) -> dict[str, Any]:
        scan = table.java.newScan().useSnapshot(snapshot_id)
        rows = self._iceberg.read_rows(self._scan(table).useSnapshot(snapshot_id), scan.schema())
        return {"schema": self._iceberg.schema_json(scan.schema()), "rows": rows}

    def _spark_rows(self, table: IcebergTable, schema: Mapping[str, Any]) -> list[str] | None:
        try:
            return canonical_rows(
                collect(self._iceberg.spark.sql(f"SELECT * FROM {table.sql_name}")), schema
            )
        except (Py4JJavaError, PySparkException) as failure:
            if any(words in str(failure) for words in _UNSUPPORTED):
                return None
            raise

    def _records_of(self, table: IcebergTable, data_file: Any) -> Any:
        """The rows of one data file, in its order."""
        api = self._iceberg.api
        source = table.java.io().newInputFile(data_file.location())
        reader = api.formats.FormatModelRegistry.readBuilder(
            data_file.format(), self._iceberg._record_class, source
        )
        lists = api.relocated.com.google.common.collect.Lists
        return lists.newArrayList(reader.project(table.java.schema()).build())

    def _metrics_of(self, data_file: Any) -> dict[str, Any]:
        counts = {
            name: {str(k): v for k, v in (getattr(data_file, name)() or {}).items()}
            for name in _METRICS
        }
        bounds = {
            name: {str(k): self._hex(v) for k, v in (getattr(data_file, name)() or {}).items()}
            for name in _BOUNDS
        }
        return {"records": data_file.recordCount(), **counts, **bounds}

    def _hex(self, buffer: Any) -> str:
        return str(bytes(self._iceberg.api.util.ByteBuffers.toByteArray(buffer)).hex())


def main(directory: Path) -> None:
    """Answers requests until standard input ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # What Java prints is no answer.
    warehouse, scratch = directory / "warehouse", directory / "scratch"
    for folder in (warehouse, scratch):
        folder.mkdir(parents=True, exist_ok=True)
    jar = Path(os.environ["ICEBERGDS_ICEBERG_JAR"])
    spark = start_spark(warehouse, jar, **{"spark.driver.extraClassPath": class_path()})
    server = Server(Iceberg(spark, warehouse, scratch))
    for line in sys.stdin:
        request = json.loads(line)
        answer: dict[str, Any]
        try:
            answer = {"answer": getattr(server, request["command"])(**request["arguments"])}
        except Exception:
            answer = {"error": traceback.format_exc()}
        print(json.dumps(answer, default=str), file=answers, flush=True)
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
