"""Tables that icebergds writes, without Spark, and the rows they must hold by a plain model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from oracles.arrow_schema import arrow_schema, numbered, struct
from oracles.canon import canonical_rows

from icebergds.api.table import Table, load_table
from icebergds.catalog.loaded_table import load_for_write
from icebergds.catalog.loading import load_catalog
from icebergds.commit.operations import TableOperations
from icebergds.operations.options.partition_text import parse_partition_by, parse_sort_by
from icebergds.operations.write.arrow_rows import write_rows
from icebergds.operations.write.options import Creation, WriteOptions
from icebergds.operations.write.replace import plan_replacement
from icebergds.spec.json.partition import partition_spec_from_json
from icebergds.spec.json.schema import schema_from_json, schema_to_json
from icebergds.spec.updates.new_table import new_table_updates
from icebergds.spec.updates.table_updates import (
    LAST_ADDED,
    AddPartitionSpec,
    AddSchema,
    SetCurrentSchema,
    SetDefaultSpec,
    SetProperties,
    TableUpdate,
    UpgradeFormatVersion,
)

Row = Mapping[str, Any]
CATALOG = "interop"
NAMESPACE = "db"


@dataclass(frozen=True, slots=True)
class Moment:
    """A snapshot, and the rows that it must hold, as `oracles.canon` writes them."""

    snapshot_id: int
    schema: Mapping[str, Any]
    rows: list[str]


@dataclass(slots=True)
class OurTable:
    """A table and its model: the rows of each branch, and what each snapshot held.

    Attributes:
        operations: what was done, one a snapshot, as `oracles.java_replay` has them.
    """

    name: str
    table: Table
    branches: dict[str, list[Row]] = field(default_factory=lambda: {"main": []})
    moments: list[Moment] = field(default_factory=list)
    operations: list[dict[str, Any]] = field(default_factory=list)

    @property
    def rows(self) -> list[Row]:
        return self.branches["main"]

    @property
    def schema(self) -> dict[str, Any]:
        """The current schema in JSON form."""
        return schema_to_json(self.table.schema())

    @property
    def columns(self) -> dict[str, Any]:
        """Types of the top-level columns in JSON form."""
        return {column["name"]: column["type"] for column in self.schema["fields"]}

    def expected(self, branch: str = "main") -> list[str]:
        """The rows of a branch in canonical form."""
        return canonical_rows(self.arrow(self.branches[branch]), self.schema)

    def arrow(self, rows: Sequence[Row]) -> pa.Table:
        return pa.Table.from_pylist([dict(row) for row in rows], arrow_schema(self.schema))

    def append(self, rows: Sequence[Row], branch: str = "main", **options: str) -> OurTable:
        options["create_branch"] = "true"
        self.table.append(self.arrow(rows), branch=branch, options=_named(options))
        self._branch(branch).extend(rows)
        return self._record("append", branch)

    def stage(self, rows: Sequence[Row], wap_id: str) -> OurTable:
        """A snapshot that no branch has."""
        self.table.append(self.arrow(rows), options={"wap.id": wap_id})
        self.branches[wap_id] = [*self.rows, *rows]
        self._record("append", wap_id)
        self.operations[-1] = {"kind": "append", "wap_id": wap_id}
        return self

    def overwrite(
        self, rows: Sequence[Row], text: str, condition: Any, matches: Callable[[Row], bool]
    ) -> OurTable:
        """Replaces the rows of a filter; `condition` is the filter as Java's server takes it."""
        self.table.overwrite(self.arrow(rows), text)
        self.rows[:] = [*(row for row in self.rows if not matches(row)), *rows]
        return self._record("overwrite", filter=condition)

    def dynamic_overwrite(self, rows: Sequence[Row], partition: Callable[[Row], Any]) -> OurTable:
        """Replaces the partitions of the rows."""
        self.table.dynamic_partition_overwrite(self.arrow(rows))
        replaced = {partition(row) for row in rows}
        self.rows[:] = [*(row for row in self.rows if partition(row) not in replaced), *rows]
        return self._record("dynamic")

    def replace(
        self, rows: Sequence[Row], columns: Sequence[tuple[str, Any]], partition: str
    ) -> OurTable:
        """Replaces columns, partitioning and rows."""
        address = self.table._address
        planned = plan_replacement(
            load_for_write(address),
            Creation(partition_by=partition),
            schema_from_json(numbered(struct(*columns))),
        )
        fields = arrow_schema(schema_to_json(planned.metadata.schema()))
        new = pa.Table.from_pylist([dict(row) for row in rows], fields)
        write_rows(WriteOptions(address), new, overwrite=False, table=planned)
        self.branches["main"] = list(rows)
        return self.record("replace")

    def delete(self, text: str, condition: Any, matches: Callable[[Row], bool]) -> OurTable:
        self.table.delete(text)
        self.rows[:] = [row for row in self.rows if not matches(row)]
        return self._record("delete", filter=condition)

    def evolve(
        self,
        change: Callable[[dict[str, Any]], None],
        moved: Callable[[Row], Row] = lambda row: row,
    ) -> OurTable:
        """Makes `change` of the current schema's JSON form, and `moved` of each row."""
        schema = self.schema
        change(schema)
        self.update(AddSchema(schema_from_json(schema)), SetCurrentSchema(LAST_ADDED))
        for rows in self.branches.values():
            rows[:] = [moved(row) for row in rows]
        return self

    def partition_by(self, *fields: tuple[str, str, str]) -> OurTable:
        """A new default spec of (source column, transform, name) fields."""
        specs = self.table.metadata.partition_specs
        known: dict[Any, int] = {f.name: f.field_id for spec in specs for f in spec.fields}
        known |= {(f.source_ids, str(f.transform)): f.field_id for s in specs for f in s.fields}
        last = self.table.metadata.last_partition_id or 999
        schema, parts = self.table.schema(), []
        for source, transform, name in fields:
            (source_id,) = (c.field_id for c in schema.fields if c.name == source)
            # In version 1 a field that is void now keeps its id.
            key = name if transform == "void" else ((source_id,), transform)
            field_id = known.get(key)
            if field_id is None:
                field_id = last = last + 1
            parts.append(
                {
                    "name": name,
                    "transform": transform,
                    "source-id": source_id,
                    "field-id": field_id,
                }
            )
        spec = partition_spec_from_json({"spec-id": 99, "fields": parts})
        return self.update(AddPartitionSpec(spec), SetDefaultSpec(LAST_ADDED))

    def set(self, **properties: str) -> OurTable:
        return self.update(SetProperties(_named(properties)))

    def upgrade(self, version: int) -> OurTable:
        return self.update(UpgradeFormatVersion(version))

    def operations_of_table(self) -> TableOperations:
        """What commits to the table."""
        return self.table._address.operations()

    def update(self, *updates: TableUpdate) -> OurTable:
        operations = self.operations_of_table()
        operations.commit(operations.refresh(), [], updates)
        self.table.refresh()
        return self

    def record(self, kind: str, branch: str = "main", **more: Any) -> OurTable:
        """Notes that a snapshot was committed in another way."""
        self.table.refresh()
        return self._record(kind, branch, **more)

    def _branch(self, name: str) -> list[Row]:
        return self.branches.setdefault(name, list(self.rows))

    def _record(self, kind: str, branch: str = "main", **more: Any) -> OurTable:
        known = {moment.snapshot_id for moment in self.moments}
        (new,) = (s for s in self.table.snapshots() if s.snapshot_id not in known)
        self.moments.append(Moment(new.snapshot_id, self.schema, self.expected(branch)))
        named = {} if branch == "main" else {"branch": branch}
        self.operations.append({"kind": kind, **named, **more})
        return self


@dataclass(frozen=True, slots=True)
class Writer:
    """Creates tables in the file system catalog over `directory`/warehouse."""

    directory: Path

    @property
    def properties(self) -> dict[str, str]:
        return {"type": "hadoop", "warehouse": str(self.directory / "warehouse")}

    def create(
        self,
        name: str,
        columns: Sequence[tuple[str, Any]],
        *,
        partition: str = "",
        sort: str = "",
        version: int = 2,
        **properties: str,
    ) -> OurTable:
        """A new table; a column whose name ends with "!" is required."""
        schema = schema_from_json(numbered(struct(*columns)))
        catalog = load_catalog(CATALOG, self.properties)
        identifier = (NAMESPACE, name)
        updates = new_table_updates(
            schema,
            location=catalog.new_table_location(identifier),
            spec=parse_partition_by(partition, schema),
            sort_order=parse_sort_by(sort, schema),
            properties=_named(properties),
            format_version=version,
        )
        catalog.create(identifier, updates)
        return OurTable(name, self.load(name))

    def load(self, name: str) -> Table:
        return load_table(f"{NAMESPACE}.{name}", catalog=CATALOG, properties=self.properties)


Build = Callable[[Writer, str], OurTable]
OUR_TABLES: dict[str, Build] = {}


def table(build: Build) -> Build:
    """Registers what builds a table under its name."""
    OUR_TABLES[build.__name__] = build
    return build


def _named(properties: Mapping[str, str]) -> dict[str, str]:
    """`__` stands for a dot and `_` for a hyphen."""
    return {key.replace("__", ".").replace("_", "-"): value for key, value in properties.items()}
