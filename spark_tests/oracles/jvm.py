"""Java Iceberg in a Spark driver, driven from Python: tables, files and commits of every kind.

Rows cross as small Parquet files: pyarrow writes them, Java Iceberg reads them as its generic
records and writes those to a table's files; what Java reads from a table comes back the same way.
So every type of Iceberg keeps its exact value, also those that Spark does not know.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from oracles.arrow_schema import IcebergType, arrow_schema, numbered, struct
from oracles.canon import canonical_rows
from oracles.java_table import CATALOG, NAMESPACE, IcebergTable
from pyspark.sql import SparkSession

__all__ = ["Iceberg", "IcebergTable", "start_spark"]

Row = Mapping[str, Any]
PartitionField = tuple[str, str] | tuple[str, str, str]

# Settings for many tiny jobs: compiling for speed would take longer than the work itself.
_SHORT_RUN = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Djdk.lang.Process.launchMechanism=VFORK"
    " -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)
_SMALL_QUERIES = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}


def start_spark(warehouse: Path, jar: Path, **conf: str) -> SparkSession:
    """A Spark session with the Java runtime and a Hadoop catalog `oracle` over `warehouse`."""
    catalog = f"spark.sql.catalog.{CATALOG}"
    settings = {
        "spark.driver.extraClassPath": str(jar),
        "spark.driver.memory": "2g",
        "spark.ui.enabled": "false",
        "spark.log.level": "ERROR",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.extraJavaOptions": f"-Duser.timezone=UTC {_SHORT_RUN}",
        **_SMALL_QUERIES,
        "spark.sql.warehouse.dir": str(warehouse.parent / "spark-warehouse"),
        "spark.sql.extensions": (
            "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
        ),
        catalog: "org.apache.iceberg.spark.SparkCatalog",
        f"{catalog}.type": "hadoop",
        # As Hadoop writes paths: so all paths of a table have one form.
        f"{catalog}.warehouse": f"file:{warehouse}",
        f"{catalog}.cache-enabled": "false",
        **conf,
    }
    builder = SparkSession.builder.master("local[2]").appName("iceberg-oracle")
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


class Iceberg:
    """Entry to Java Iceberg: creates and opens tables, carries rows between Python and Java."""

    def __init__(self, spark: SparkSession, warehouse: Path, scratch: Path) -> None:
        self.spark = spark
        self.jvm: Any = spark._jvm
        self._gateway: Any = spark.sparkContext._gateway
        self.api = self.jvm.org.apache.iceberg
        self.warehouse = warehouse
        self.scratch = scratch
        self._numbers = count()
        hadoop_conf = spark._jsc.hadoopConfiguration()
        self.catalog = self.api.hadoop.HadoopCatalog(hadoop_conf, f"file:{warehouse}")
        self._record_class = self.jvm.java.lang.Class.forName("org.apache.iceberg.data.Record")
        self._write_all = self._method("org.apache.iceberg.io.FileWriter", "write", "Iterable")
        self._file_io = self.api.hadoop.HadoopFileIO(hadoop_conf)

    def sql(self, statement: str) -> list[Any]:
        """Runs a Spark SQL statement."""
        return self.spark.sql(statement).collect()

    def create(
        self,
        name: str,
        columns: Sequence[tuple[str, Any]],
        *,
        partition: Sequence[PartitionField] = (),
        version: int = 2,
        properties: Mapping[str, str] | None = None,
    ) -> IcebergTable:
        """A new table; a column whose name ends with "!" is required."""
        schema = self.schema(numbered(struct(*columns)))
        spec = self.spec(schema, partition)
        table = self.catalog.createTable(
            self.api.catalog.TableIdentifier.parse(f"{NAMESPACE}.{name}"),
            schema,
            spec,
            {"format-version": str(version), **(properties or {})},
        )
        return IcebergTable(self, name, table)

    def load(self, name: str) -> IcebergTable:
        """A table that exists."""
        identifier = self.api.catalog.TableIdentifier.parse(f"{NAMESPACE}.{name}")
        return IcebergTable(self, name, self.catalog.loadTable(identifier))

    def schema(self, schema: Mapping[str, Any]) -> Any:
        """A Java schema from JSON form."""
        return self.api.SchemaParser.fromJson(json.dumps(schema))

    def schema_json(self, schema: Any) -> dict[str, Any]:
        """The JSON form of a Java schema."""
        parsed: dict[str, Any] = json.loads(self.api.SchemaParser.toJson(schema))
        return parsed

    def type(self, kind: IcebergType) -> Any:
        """A Java type from JSON form."""
        return self.schema(numbered(struct(("value", kind)))).findType("value")

    def literal(self, value: Any, kind: IcebergType) -> Any:
        """A Java literal of type `kind`; temporal values, uuids and decimals are given as text."""
        return self.api.expressions.Expressions.lit(value).to(self.type(kind))

    def spec(self, schema: Any, fields: Sequence[PartitionField]) -> Any:
        """A Java partition spec from (source column, transform[, name]) tuples."""
        parts = [
            {
                "name": rest[0] if rest else f"{source}_{transform.partition('[')[0]}",
                "transform": transform,
                "source-id": schema.findField(source).fieldId(),
                "field-id": 1000 + index,
            }
            for index, (source, transform, *rest) in enumerate(fields)
        ]
        text = json.dumps({"spec-id": 0, "fields": parts})
        return self.api.PartitionSpecParser.fromJson(schema, text)

    def records(self, rows: Sequence[Row], schema: Any) -> Any:
        """A Java list of generic records of a Java `schema`, from Python rows."""
        wanted = arrow_schema(self.schema_json(schema))
        path = self._scratch_path()
        pq.write_table(pa.Table.from_pylist([dict(row) for row in rows], wanted), path)
        source = self._file_io.newInputFile(path.as_uri())
        reader = self.api.formats.FormatModelRegistry.readBuilder(
            self.file_format("parquet"), self._record_class, source
        )
        lists = self.api.relocated.com.google.common.collect.Lists
        return lists.newArrayList(reader.project(schema).build())

    def read_rows(self, scan: Any, schema: Any) -> list[str]:
        """Canonical rows that Java's generic reader reads in `scan`, projected to `schema`."""
        # Java's Parquet writer escapes odd names; the rows are the same under plain ones.
        plain = _with_plain_names(self.schema_json(schema))
        path = self._scratch_path()
        writer = (
            self.data_writer("parquet", self._file_io.newOutputFile(path.as_uri()))
            .schema(self.schema(plain))
            .spec(self.api.PartitionSpec.unpartitioned())
            .build()
        )
        rows = scan.build()
        self.write_all(writer, rows)
        rows.close()
        if not path.exists():  # Java writes no file for no rows.
            return []
        # Without Arrow's extension types: those of variants cannot hold nulls.
        return canonical_rows(pq.read_table(path, arrow_extensions_enabled=False), plain)

    def list_of(self, iterable: Any) -> list[Any]:
        """The elements of a Java Iterable that py4j cannot iterate; closes it."""
        elements = self.api.relocated.com.google.common.collect.Lists.newArrayList(iterable)
        iterable.close()
        return list(elements)

    def data_writer(self, file_format: str, output: Any) -> Any:
        """A builder of a writer of data files."""
        return self.api.formats.FormatModelRegistry.dataWriteBuilder(
            self.file_format(file_format), self._record_class, self._plain(output)
        )

    def equality_delete_writer(self, file_format: str, output: Any) -> Any:
        """A builder of a writer of equality delete files."""
        return self.api.formats.FormatModelRegistry.equalityDeleteWriteBuilder(
            self.file_format(file_format), self._record_class, self._plain(output)
        )

    def position_delete_writer(self, file_format: str, output: Any) -> Any:
        """A builder of a writer of position delete files."""
        return self.api.formats.FormatModelRegistry.positionDeleteWriteBuilder(
            self.file_format(file_format), self._plain(output)
        )

    def file_format(self, name: str) -> Any:
        """Java's constant for "parquet", "orc" or "avro"."""
        return self.api.FileFormat.fromString(name)

    def next_number(self) -> int:
        """A number that no other file of this run has."""
        return next(self._numbers)

    def write_all(self, writer: Any, records: Any) -> Any:
        """Writes an Iterable of records and closes the writer."""
        # By reflection: called by name, py4j takes the overload for a single record.
        arguments = self._gateway.new_array(self.jvm.java.lang.Object, 1)
        arguments[0] = records
        self._write_all.invoke(writer, arguments)
        writer.close()
        return writer

    def map_function(self, pairs: Iterable[tuple[Any, Any]]) -> Any:
        """A Java function that looks its argument up in `pairs`, null where it is absent."""
        invoke, classes = self.jvm.java.lang.invoke, self.jvm.java.lang.Class
        entries = self.jvm.java.util.HashMap()
        for key, value in pairs:
            entries.put(key, value)
        any_object = classes.forName("java.lang.Object")
        get = invoke.MethodType.methodType(any_object, any_object)
        handle = invoke.MethodHandles.publicLookup().bind(entries, "get", get)
        function = classes.forName("java.util.function.Function")
        return invoke.MethodHandleProxies.asInterfaceInstance(function, handle)

    def _method(self, class_name: str, name: str, argument: str) -> Any:
        classes = self.jvm.java.lang.Class
        types = self._gateway.new_array(classes, 1)
        types[0] = classes.forName(f"java.lang.{argument}")
        return classes.forName(class_name).getMethod(name, types)

    def _scratch_path(self) -> Path:
        return self.scratch / f"rows-{next(self._numbers)}.parquet"

    def _plain(self, output: Any) -> Any:
        return self.api.encryption.EncryptedFiles.plainAsEncryptedOutput(output)


def _with_plain_names(kind: Any) -> Any:
    if isinstance(kind, str):
        return kind
    renamed = {
        key: _with_plain_names(value) if key in ("element", "key", "value") else value
        for key, value in kind.items()
    }
    if kind["type"] == "struct":
        renamed["fields"] = [
            {**field, "name": f"field_{field['id']}", "type": _with_plain_names(field["type"])}
            for field in kind["fields"]
        ]
    return renamed
