"""Change feeds of random tables against the differences of their snapshots, by a plain model."""

from __future__ import annotations

import pickle
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from effort import examples
from hypothesis import HealthCheck, given, strategies as st
from strategies.large_keys import perhaps_in_parts
from strategies.random_tables import RandomTable
from strategies.small_values import filters
from strategies.table_model import ModelState, scan

from icebergds.api.table import Table, load_table
from icebergds.expr.nodes import Expr
from icebergds.formats.arrow.types import schema_to_arrow, to_array
from icebergds.scan.plan.change_tasks import change_task_groups
from icebergds.scan.plan.changes import ChangePlanner, plan_changes
from icebergds.scan.plan.history import SnapshotRange, snapshots_between
from icebergds.scan.plan.splits import SplitOptions
from icebergds.scan.projection import OWN_FEED
from icebergds.scan.read.changes import read_task_group
from icebergds.scan.read_plan import ReadPlan
from icebergds.spec.schema import Schema
from icebergds.spec.snapshot import Snapshot

_SETTINGS = examples(60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
_SPLITS = st.builds(
    SplitOptions, st.sampled_from([150, 1000, 128 * 1024 * 1024]), st.integers(1, 3), st.just(0)
)
_Rows = Counter[str]


@given(st.data())
@_SETTINGS
def test_each_step_of_a_feed_is_the_difference_of_a_snapshot_and_its_parent(
    data: st.DataObject,
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        made, table = _table(data, Path(directory))
        history = _range(data, table)
        schema = _schema(data, table, history)
        row_filter = data.draw(filters(schema))
        feed = _feed(data, table, history, schema, row_filter, net=False)
        before = _rows(made, history.start, schema, row_filter)
        for ordinal, snapshot in enumerate(history.snapshots):
            after = _rows(made, snapshot, schema, row_filter)
            step = {(row, kind): n for (row, kind, at), n in feed.items() if at == ordinal}
            assert step == _difference(before, after)
            before = after


@given(st.data())
@_SETTINGS
def test_net_changes_are_the_difference_of_the_first_and_the_last_snapshot(
    data: st.DataObject,
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        made, table = _table(data, Path(directory))
        history = _range(data, table)
        schema = _schema(data, table, history)
        row_filter = data.draw(filters(schema))
        net: Counter[tuple[str, str]] = Counter()
        for (row, kind, _), n in _feed(data, table, history, schema, row_filter, net=True).items():
            net[row, kind] += n
        end = history.snapshots[-1] if history.snapshots else history.start
        before = _rows(made, history.start, schema, row_filter)
        assert net == _difference(before, _rows(made, end, schema, row_filter))


def _table(data: st.DataObject, directory: Path) -> tuple[RandomTable, Table]:
    made = RandomTable(data.draw, directory / "t")
    for _ in range(data.draw(st.integers(2, 8))):
        made.step()
    return made, load_table(str(made.builder.location))


def _range(data: st.DataObject, table: Table) -> SnapshotRange:
    heads = [table.metadata.snapshot_by_ref(name) for name in table.refs()]
    if not heads:
        return SnapshotRange(None, ())
    known = table.metadata.lineage(data.draw(st.sampled_from(heads)))[::-1]
    start = data.draw(st.sampled_from([None, *known]))
    following = known[0 if start is None else known.index(start) :]
    return snapshots_between(table.metadata, start, data.draw(st.sampled_from(following)), "t")


def _schema(data: st.DataObject, table: Table, history: SnapshotRange) -> Schema:
    """The table's current schema, or that of the last snapshot."""
    choices = [table.schema()]
    if history.snapshots and (found := history.snapshots[-1].schema_id) is not None:
        choices.append(table.metadata.schema_by_id(found))
    return data.draw(st.sampled_from(choices))


def _feed(
    data: st.DataObject,
    table: Table,
    history: SnapshotRange,
    schema: Schema,
    row_filter: Expr,
    *,
    net: bool,
) -> Counter[tuple[str, str, int]]:
    columns = Schema((*schema.fields, *OWN_FEED.default))
    plan = ReadPlan(
        io=table.io,
        columns=columns,
        table_schema=schema,
        specs=table.metadata.specs_by_id,
        row_filter=row_filter,
        batch_size=data.draw(st.sampled_from([1, 2, 65_536])),
        delete_cache_bytes=data.draw(st.sampled_from([0, 10**6])),
    )
    planner = ChangePlanner(table.io, table.metadata, schema, row_filter)
    found = plan_changes(planner, table.metadata, history)
    if net:
        found = [[file for files in found for file in files]]
    task_groups = change_task_groups(found, table.metadata, schema, data.draw(_SPLITS))
    plan, task_groups = pickle.loads(pickle.dumps((plan, task_groups)))
    with perhaps_in_parts(data):
        batches = [batch for group in task_groups for batch in read_task_group(plan, group)]
    assert all(batch.num_rows for batch in batches)
    rows = _values(pa.Table.from_batches(batches, schema_to_arrow(columns)))
    ids = [snapshot.snapshot_id for snapshot in history.snapshots]
    assert all(ids[ordinal] == snapshot_id for *_, ordinal, snapshot_id in rows)
    return Counter((repr(tuple(row)), kind, ordinal) for *row, kind, ordinal, _ in rows)


def _rows(made: RandomTable, snapshot: Snapshot | None, schema: Schema, row_filter: Expr) -> _Rows:
    state = ModelState() if snapshot is None else made.states[snapshot.snapshot_id]
    expected = scan(state, made.facts, schema, row_filter, schema.fields)
    arrays = [
        to_array(field.field_type, [row[index] for row in expected])
        for index, field in enumerate(schema.fields)
    ]
    return Counter(map(repr, _values(pa.Table.from_arrays(arrays, schema=schema_to_arrow(schema)))))


def _difference(before: _Rows, after: _Rows) -> Counter[tuple[str, str]]:
    return Counter(
        {
            **{(row, "INSERT"): n for row, n in (after - before).items()},
            **{(row, "DELETE"): n for row, n in (before - after).items()},
        }
    )


def _values(table: pa.Table) -> Sequence[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))
