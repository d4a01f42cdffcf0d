"""Changes of rows in any order leave the rows that a list in Python would have."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from effort import examples
from hypothesis import HealthCheck, Phase, given, strategies as st
from pyspark.sql import SparkSession
from spark_changes import (
    COPY_ON_WRITE,
    MERGE_ON_READ,
    PEOPLE,
    Row,
    arrow,
    people,
    person,
    rows_of,
)
from spark_reads import load

from icebergds import Table
from icebergds.catalog.address import TableAddress
from icebergds.commit.operations import Change, TableState
from icebergds.commit.retry import commit_change
from icebergds.operations.options.partition_text import parse_partition_by
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.partition import PartitionSpec
from icebergds.spec.updates.table_updates import LAST_ADDED, AddPartitionSpec, SetDefaultSpec

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]

Rows: TypeAlias = list[Row]
Condition: TypeAlias = tuple[str, Callable[[Row], bool]]

CONDITIONS: list[Condition] = [
    ("id % 3 = 1", lambda row: row[0] % 3 == 1),
    ("part = 0 AND id > 4", lambda row: row[1] == 0 and row[0] > 4),
    ("part IN (1, 2)", lambda row: row[1] in (1, 2)),
    ("name LIKE 'n%'", lambda row: row[2].startswith("n")),
    ("length(name) > 3 OR id = 0", lambda row: len(row[2]) > 3 or row[0] == 0),
]
LAYOUTS = ["part", "", "bucket(2, id)", "truncate(4, id), part"]
IDS = st.integers(0, 14)
NEW_ROWS = st.lists(
    st.tuples(IDS, st.integers(0, 2), st.sampled_from(["a", "bb", "d"])),
    min_size=1,
    max_size=6,
    unique_by=lambda row: row[0],
)


@dataclass(frozen=True)
class Step:
    """One change: of a table, and of a list of its rows."""

    name: str
    of_table: Callable[[SparkSession, Table], Any]
    of_rows: Callable[[Rows], Rows]

    def __repr__(self) -> str:
        return self.name


def deletes(condition: Condition) -> Step:
    sql, holds = condition
    return Step(
        f"delete {sql}",
        lambda _, table: table.delete(sql),
        lambda rows: [row for row in rows if not holds(row)],
    )


def updates(condition: Condition) -> Step:
    sql, holds = condition
    return Step(
        f"update {sql}",
        lambda _, table: table.update({"name": "name || 'u'", "part": "(part + 1) % 3"}, sql),
        lambda rows: [
            (row[0], (row[1] + 1) % 3, row[2] + "u") if holds(row) else row for row in rows
        ],
    )


def upserts(new: Rows, *, by_partition: bool) -> Step:
    keys = ["id", "part"] if by_partition else ["id"]
    width = len(keys)
    found = {row[:width] for row in new}
    return Step(
        f"upsert {new} by {keys}",
        lambda _, table: table.upsert(arrow(new), keys),
        lambda rows: [row for row in rows if row[:width] not in found] + new,
    )


def appends(new: Rows) -> Step:
    return Step(f"append {new}", lambda _, table: table.append(arrow(new)), lambda rows: rows + new)


def streams(changes: list[tuple[str, Row]]) -> Step:
    """Each change gives its key a row, or none."""
    last = {row[0]: (kind, row) for kind, row in changes}
    given = arrow([row for _, row in changes]).append_column("k", [[kind for kind, _ in changes]])
    return Step(
        f"delta {changes}",
        lambda _, table: table.delta(given, "k", "id"),
        lambda rows: (
            [row for row in rows if row[0] not in last]
            + [row for kind, row in last.values() if kind == "+U"]
        ),
    )


def merges(new: Rows, condition: Condition) -> Step:
    sql, holds = condition

    def of_table(spark: SparkSession, table: Table) -> None:
        source = spark.createDataFrame(new, "id long, part int, name string")
        qualified = sql
        for name in ("id", "part", "name"):
            qualified = qualified.replace(name, f"target.{name}")
        (
            table.merge(source, "target.id = source.id")
            .when_matched_delete("source.name = 'd'")
            .when_matched_update({"name": "target.name || source.name", "part": "source.part"})
            .when_not_matched_insert_all("source.name <> 'd'")
            .when_not_matched_by_source_delete(qualified)
            .execute()
        )

    def of_rows(rows: Rows) -> Rows:
        by_id = {row[0]: row for row in new}
        merged: Rows = []
        for row in rows:
            match = by_id.get(row[0])
            if match is None:
                merged += [] if holds(row) else [row]
            elif match[2] != "d":
                merged.append((row[0], match[1], row[2] + match[2]))
        matched = {row[0] for row in rows}
        return merged + [row for row in new if row[0] not in matched and row[2] != "d"]

    return Step(f"merge {new}, by source delete {sql}", of_table, of_rows)


def layouts(partition_by: str) -> Step:
    def of_table(_: SparkSession, table: Table) -> None:
        def produce(state: TableState) -> Change:
            spec = renumbered(parse_partition_by(partition_by, PEOPLE), state.metadata)
            return Change([], [AddPartitionSpec(spec), SetDefaultSpec(LAST_ADDED)])

        operations = TableAddress(table.location()).operations()
        commit_change(operations, produce, lambda state: False)

    return Step(f"partition by {partition_by}", of_table, lambda rows: rows)


def renumbered(spec: PartitionSpec, metadata: TableMetadata) -> PartitionSpec:
    """A spec whose fields have the ids of equal ones, or new ones."""
    known = {
        (field.source_ids, field.transform): field.field_id
        for earlier in metadata.partition_specs
        for field in earlier.fields
    }
    fields = [
        replace(
            field,
            field_id=known.get(
                (field.source_ids, field.transform), metadata.last_partition_id + 1 + at
            ),
        )
        for at, field in enumerate(spec.fields)
    ]
    return replace(spec, fields=tuple(fields))


CHANGES = st.lists(st.tuples(st.sampled_from(["+U", "-D"]), NEW_ROWS.map(lambda rows: rows[0])))
STEPS = st.one_of(
    st.sampled_from(CONDITIONS).map(deletes),
    st.sampled_from(CONDITIONS).map(updates),
    NEW_ROWS.map(lambda rows: upserts(rows, by_partition=False)),
    NEW_ROWS.map(lambda rows: upserts(rows, by_partition=True)),
    NEW_ROWS.map(appends),
    CHANGES.filter(bool).map(streams),
    st.builds(merges, NEW_ROWS, st.sampled_from(CONDITIONS)),
    st.sampled_from(LAYOUTS).map(layouts),
)


@pytest.mark.parametrize("mode", [MERGE_ON_READ, COPY_ON_WRITE])
@pytest.mark.parametrize("version", [2, 3])
@examples(5, phases=[Phase.explicit, Phase.generate], suppress_health_check=list(HealthCheck))
@given(layout=st.sampled_from(LAYOUTS), steps=st.lists(STEPS, min_size=3, max_size=7))
def test_any_sequence_of_changes(
    spark: SparkSession, version: int, mode: str, layout: str, steps: list[Step]
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        table = people(Path(directory), version, mode, partition_by=layout)
        rows = [person(i) for i in range(12)]
        for step in steps:
            step.of_table(spark, table.refresh())
            rows = step.of_rows(rows)
            assert Counter(rows_of(table)) == Counter(rows), step
        read = load(spark, table.location()).collect()
        assert Counter(tuple(row) for row in read) == Counter(rows)
