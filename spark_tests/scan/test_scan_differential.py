"""Random tables, read by scans and by a plain model of the specification."""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from built.scans import task_groups_of
from effort import examples
from hypothesis import HealthCheck, Phase, given, strategies as st
from oracles.duckdb_reader import DuckDBError, DuckDBReader
from strategies.large_keys import perhaps_in_parts
from strategies.random_tables import RandomTable
from strategies.small_values import filters, projections
from strategies.table_model import ModelState, scan

from icebergds.api.table import Table, load_table
from icebergds.expr.nodes import TRUE, Expr
from icebergds.formats.arrow.types import schema_to_arrow, to_array
from icebergds.operations.read.time_travel import TimeTravel, resolve_snapshot
from icebergds.scan.plan.splits import SplitOptions
from icebergds.scan.projection import metadata_columns, project_columns
from icebergds.scan.read.files import read_scan_tasks
from icebergds.scan.read_plan import ReadPlan
from icebergds.spec.json.name_mapping import table_name_mapping
from icebergds.spec.schema import Schema
from icebergds.spec.snapshot import Snapshot

_SETTINGS = examples(120, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
# The same tables each time: a fault of another reader must not come up at random.
_FIXED = examples(
    100,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
_SPLITS = st.builds(
    SplitOptions,
    st.sampled_from([150, 400, 1000, 128 * 1024 * 1024]),
    st.integers(1, 3),
    st.sampled_from([0, 300, 4 * 1024 * 1024]),
)


@given(st.data())
@_SETTINGS
def test_scans_return_the_rows_of_the_model(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as directory:
        is_wide = data.draw(st.booleans())
        made = RandomTable(data.draw, Path(directory) / "t", is_wide=is_wide)
        for _ in range(data.draw(st.integers(1, 10))):
            made.step()
        table = load_table(str(made.builder.location))
        everything = [("*",), *((c.name,) for c in metadata_columns(table.metadata))]
        for snapshot, schema in _readable(table):
            _check(table, made, snapshot, schema, TRUE, everything, SplitOptions(), 65_536, 10**6)
        for _ in range(3):
            snapshot, schema = data.draw(st.sampled_from(_readable(table)))
            with perhaps_in_parts(data):
                _check(
                    table,
                    made,
                    snapshot,
                    schema,
                    data.draw(filters(schema)),
                    data.draw(projections(schema, metadata_columns(table.metadata))),
                    data.draw(_SPLITS),
                    data.draw(st.sampled_from([1, 2, 5, 65_536])),
                    data.draw(st.sampled_from([0, 10, 10**6])),
                )


@pytest.mark.interop
@given(st.data())
@_FIXED
def test_pyiceberg_reads_the_same_rows(data: st.DataObject) -> None:
    pytest.importorskip("pyiceberg.table")
    with tempfile.TemporaryDirectory() as directory:
        made = _plain_table(data, Path(directory))
        theirs = _read_by_pyiceberg(made)
        assert theirs is None or _read_by_us(made) == theirs


@pytest.fixture(scope="module")
def duckdb_reader() -> Iterator[DuckDBReader]:
    with DuckDBReader() as reader:
        yield reader
        # It is an oracle only if it reads most tables.
        assert reader.succeeded > reader.failed


@pytest.mark.interop
@given(st.data())
@_FIXED
def test_duckdb_reads_the_same_rows(duckdb_reader: DuckDBReader, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as directory:
        made = _plain_table(data, Path(directory))
        try:
            theirs = _plain_rows(duckdb_reader.read(made.builder.metadata_location))
        except DuckDBError:
            # Some tables that were once of version 1, or whose structs were evolved.
            theirs = None
        # DuckDB 1.5.5 drops rows next to files whose rows are all deleted by vectors.
        if theirs != _read_by_us(made):
            decides = _read_by_pyiceberg(made)
            assert (theirs is None and decides is None) or decides == _read_by_us(made)


def _read_by_us(made: RandomTable) -> list[str]:
    return _plain_rows(_values(load_table(str(made.builder.location)).scan().to_arrow()))


def _read_by_pyiceberg(made: RandomTable) -> list[str] | None:
    """The rows that PyIceberg reads; None if it cannot read the table, which is no difference."""
    from pyiceberg.table import StaticTable

    scan = StaticTable.from_metadata(made.builder.metadata_location).scan()
    try:
        return _plain_rows(_values(scan.to_arrow()))
    except Exception:
        return None


def _plain_table(data: st.DataObject, directory: Path) -> RandomTable:
    made = RandomTable(data.draw, directory / "t", is_plain=True)
    for _ in range(data.draw(st.integers(2, 10))):
        made.step()
    return made


def _values(table: pa.Table) -> Iterable[tuple[Any, ...]]:
    return zip(*(column.to_pylist() for column in table.columns), strict=True)


def _plain_rows(rows: Iterable[tuple[Any, ...]]) -> list[str]:
    """Rows as texts, whatever a reader takes uuids for."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: plain(inner) for name, inner in value.items()}
        return value.bytes if isinstance(value, UUID) else value

    return sorted(repr(tuple(map(plain, row))) for row in rows)


def _readable(table: Table) -> list[tuple[Snapshot | None, Schema]]:
    """Heads of branches with the schema of today, snapshots with their own."""
    travels = [TimeTravel()]
    travels += [TimeTravel(branch=name) for name in table.refs()]
    travels += [TimeTravel(snapshot_id=snapshot.snapshot_id) for snapshot in table.snapshots()]
    return [resolve_snapshot(table.metadata, travel, table.name) for travel in travels]


def _check(
    table: Table,
    made: RandomTable,
    snapshot: Snapshot | None,
    schema: Schema,
    row_filter: Expr,
    names: Sequence[tuple[str, ...]],
    splits: SplitOptions,
    batch_size: int,
    delete_cache_bytes: int,
) -> None:
    columns = project_columns(table.metadata, schema, names)
    plan = ReadPlan(
        io=table.io,
        columns=columns,
        table_schema=schema,
        specs=table.metadata.specs_by_id,
        row_filter=row_filter,
        batch_size=batch_size,
        delete_cache_bytes=delete_cache_bytes,
        name_mapping=table_name_mapping(table.metadata),
    )
    task_groups = task_groups_of(table.io, table.metadata, snapshot, schema, row_filter, splits)
    plan, task_groups = pickle.loads(pickle.dumps((plan, task_groups)))
    batches = [batch for task_group in task_groups for batch in read_scan_tasks(plan, task_group)]
    assert all(0 < batch.num_rows <= batch_size for batch in batches)
    found = pa.Table.from_batches(batches, schema_to_arrow(columns))
    state = ModelState() if snapshot is None else made.states[snapshot.snapshot_id]
    expected = scan(state, made.facts, schema, row_filter, columns.fields)
    assert _sorted(found) == _sorted(_as_arrow(expected, columns))


def _as_arrow(rows: Sequence[tuple[Any, ...]], columns: Schema) -> pa.Table:
    arrays = [
        to_array(field.field_type, [row[index] for row in rows])
        for index, field in enumerate(columns.fields)
    ]
    return pa.Table.from_arrays(arrays, schema=schema_to_arrow(columns))


def _sorted(table: pa.Table) -> list[str]:
    """The rows as texts, in which NaN equals itself and -0.0 is not 0.0."""
    return sorted(map(repr, _values(table)))
