"""A table of Java Iceberg, and the ways to change it that Spark SQL lacks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oracles.jvm import Iceberg

CATALOG = "oracle"
NAMESPACE = "db"

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class IcebergTable:
    """A table and the ways to change it that Spark SQL lacks."""

    iceberg: Iceberg
    name: str
    java: Any

    @property
    def sql_name(self) -> str:
        """The table's name in Spark SQL."""
        return f"{CATALOG}.{NAMESPACE}.{self.name}"

    @property
    def location(self) -> str:
        return str(self.java.location())

    def refresh(self) -> IcebergTable:
        """Sees what others, such as Spark SQL, have committed."""
        self.java.refresh()
        return self

    def sql(self, statement: str) -> IcebergTable:
        """Runs a Spark SQL statement in which {t} stands for the table, then refreshes."""
        self.iceberg.sql(statement.replace("{t}", self.sql_name))
        return self.refresh()

    def call(self, procedure: str, arguments: str = "") -> IcebergTable:
        """Calls a stored procedure of Java Iceberg on the table."""
        table = f"table => '{NAMESPACE}.{self.name}'"
        rest = f", {arguments}" if arguments else ""
        self.iceberg.sql(f"CALL {CATALOG}.system.{procedure}({table}{rest})")
        return self.refresh()

    def snapshot_id(self) -> int:
        return int(self.java.currentSnapshot().snapshotId())

    def tasks(self) -> list[Any]:
        """Java's plan: a task a data file, with the delete files that apply to it."""
        return self.iceberg.list_of(self.java.newScan().planFiles())

    def write(
        self,
        rows: Sequence[Row],
        *,
        file_format: str = "parquet",
        spec_id: int | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> list[Any]:
        """Data files holding `rows`, one a partition, not yet committed."""
        schema = self.java.schema()
        spec = self._spec(spec_id)
        files = []
        for partition, records in self._by_partition(rows, schema, spec):
            output = self._output(spec, partition, f"data.{file_format}")
            builder = (
                self.iceberg.data_writer(file_format, output)
                .schema(schema)
                .setAll(self.java.properties())
                .setAll(dict(properties or {}))
                .metricsConfig(self.iceberg.api.MetricsConfig.forTable(self.java))
                .spec(spec)
                .partition(partition)
            )
            files.append(self.iceberg.write_all(builder.build(), records).toDataFile())
        return files

    def append(self, rows: Sequence[Row], **options: Any) -> list[Any]:
        """Appends `rows`; options are those of `write`."""
        files = self.write(rows, **options)
        self.commit_files(self.java.newAppend(), files)
        return files

    def commit_files(self, update: Any, files: Iterable[Any]) -> None:
        """Commits data files with an append-like update."""
        for data_file in files:
            update.appendFile(data_file)
        update.commit()

    def equality_deletes(
        self,
        keys: Sequence[str],
        rows: Sequence[Row],
        *,
        columns: Sequence[str] = (),
        file_format: str = "parquet",
        spec_id: int | None = None,
        partition_of: Row | None = None,
    ) -> Any:
        """An equality delete file for `rows` by the columns `keys`, not yet committed.

        `columns` are columns that the file holds beside the keys; `partition_of` is a row of the
        partition that the deletes are for.
        """
        schema = self.java.schema()
        spec = self._spec(spec_id)
        delete_schema = schema.select([*keys, *columns])
        partition = self._partition(partition_of, schema, spec) if partition_of else None
        records = self.iceberg.records(rows, delete_schema)
        return self.write_equality_deletes(
            keys, delete_schema, records, file_format=file_format, spec=spec, partition=partition
        )

    def write_equality_deletes(
        self,
        keys: Sequence[str],
        schema: Any,
        records: Any,
        *,
        file_format: str = "parquet",
        spec: Any = None,
        partition: Any = None,
    ) -> Any:
        """An equality delete file of Java records of a Java `schema`, not yet committed."""
        spec = spec or self.java.spec()
        output = self._output(spec, partition, f"equality-deletes.{file_format}")
        builder = (
            self.iceberg.equality_delete_writer(file_format, output)
            .schema(schema)
            .setAll(self.java.properties())
            .metricsConfig(self.iceberg.api.MetricsConfig.forTable(self.java))
            .equalityFieldIds([schema.findField(name).fieldId() for name in keys])
            .spec(spec)
            .partition(partition)
        )
        return self.iceberg.write_all(builder.build(), records).toDeleteFile()

    def position_deletes(
        self, positions: Sequence[tuple[Any, Iterable[int]]], *, file_format: str = "parquet"
    ) -> Any:
        """One position delete file for (data file, positions) pairs of one partition."""
        first = positions[0][0]
        spec = self._spec(first.specId())
        output = self._output(spec, first.partition(), f"position-deletes.{file_format}")
        metrics = self.iceberg.api.MetricsConfig.forPositionDelete()
        writer = (
            self.iceberg.position_delete_writer(file_format, output)
            .setAll(self.java.properties())
            .metricsConfig(metrics)
            .spec(spec)
            .partition(first.partition())
            .build()
        )
        delete = self.iceberg.api.deletes.PositionDelete.create()
        # The specification asks for rows in the order of path and position.
        for data_file, rows in sorted(positions, key=lambda pair: pair[0].location()):
            for row in sorted(rows):
                writer.write(delete.set(data_file.location(), row))
        writer.close()
        return writer.toDeleteFile()

    def deletion_vectors(self, positions: Sequence[tuple[Any, Iterable[int]]]) -> None:
        """Commits deletion vectors, in one Puffin file, for (data file, positions) pairs.

        A vector that a data file already has is merged in and replaced.
        """
        api = self.iceberg.api
        factory = (
            api.io.OutputFileFactory.builderFor(self.java, 1, self.iceberg.next_number())
            .format(api.FileFormat.PUFFIN)
            .build()
        )
        older = self.iceberg.map_function(self._vectors())
        writer = api.deletes.BaseDVFileWriter(factory, older)
        for data_file, rows in positions:
            spec = self._spec(data_file.specId())
            for row in rows:
                writer.delete(data_file.location(), row, spec, data_file.partition())
        writer.close()
        update = self.java.newRowDelta().validateFromSnapshot(self.snapshot_id())
        for delete_file in writer.result().deleteFiles():
            update.addDeletes(delete_file)
        for delete_file in writer.result().rewrittenDeleteFiles():
            update.removeDeletes(delete_file)
        update.commit()

    def row_delta(self, rows: Iterable[Any] = (), deletes: Iterable[Any] = ()) -> None:
        """Commits data files and delete files together."""
        update = self.java.newRowDelta()
        for data_file in rows:
            update.addRows(data_file)
        for delete_file in deletes:
            update.addDeletes(delete_file)
        update.commit()

    def evolve(self, *changes: tuple[Any, ...]) -> None:
        """Commits schema changes, each a method of Java's UpdateSchema with its arguments."""
        update = self.java.updateSchema()
        for method, *arguments in changes:
            update = getattr(update, method)(*arguments)
        update.commit()

    def set(self, **properties: str) -> None:
        """Sets table properties; "__" in a name stands for "." and "_" for "-"."""
        update = self.java.updateProperties()
        for name, value in properties.items():
            update.set(name.replace("__", ".").replace("_", "-"), value)
        update.commit()

    def _vectors(self) -> list[tuple[str, Any]]:
        """The index of deleted positions of each data file that has a deletion vector."""
        vectors = []
        for task in self.tasks():
            path = task.file().location()
            for delete in task.deletes():
                if delete.format() == self.iceberg.api.FileFormat.PUFFIN:
                    source = self.java.io().newInputFile(delete.location())
                    open_file = self.iceberg.map_function([(delete, source)])
                    loader = self.iceberg.api.data.BaseDeleteLoader(open_file)
                    vectors.append((path, loader.loadPositionDeletes([delete], path)))
        return vectors

    def _spec(self, spec_id: int | None) -> Any:
        return self.java.spec() if spec_id is None else self.java.specs().get(spec_id)

    def _output(self, spec: Any, partition: Any, name: str) -> Any:
        locations = self.java.locationProvider()
        unique = f"{self.iceberg.next_number():05d}-{name}"
        location = (
            locations.newDataLocation(unique)
            if spec.isUnpartitioned()
            else locations.newDataLocation(spec, partition, unique)
        )
        return self.java.io().newOutputFile(location)

    def _partition(self, row: Row, schema: Any, spec: Any) -> Any:
        (group,) = self._by_partition([row], schema, spec)
        return group[0]

    def _by_partition(self, rows: Sequence[Row], schema: Any, spec: Any) -> list[tuple[Any, Any]]:
        records = self.iceberg.records(rows, schema)
        if spec.isUnpartitioned():
            return [(None, records)]
        api = self.iceberg.api
        wrapper = api.data.InternalRecordWrapper(schema.asStruct())
        key = api.PartitionKey(spec, schema)
        groups: dict[tuple[int, str], tuple[Any, Any]] = {}
        for record in records:
            key.partition(wrapper.wrap(record))
            # A null and the text "null" have one path but not one hash.
            name = (key.hashCode(), key.toPath())
            if name not in groups:
                groups[name] = (key.copy(), self.iceberg.jvm.java.util.ArrayList())
            groups[name][1].add(record)
        return list(groups.values())
