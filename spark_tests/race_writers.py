"""Writers that race for one table, and what starts each in a process of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import TypeAlias

import pyarrow as pa
from built.api_tables import DAYS, TABLE, Properties, open_table, rows
from processes import CONTEXT

from icebergds.catalog.address import TableAddress
from icebergds.commit.data_files import FastAppend
from icebergds.commit.snapshot_commit import commit_snapshot
from icebergds.operations.write.append_overwrite import prepare_write
from icebergds.operations.write.options import parse_write_options
from icebergds.write.task import write_batches

Writer: TypeAlias = Callable[[Properties, int, int], None]
"""Writes to a catalog's table, as writer of a number, a number of times."""

PATIENT = {
    "commit__retry__num_retries": "100000",
    "commit__retry__min_wait_ms": "5",
    "commit__retry__max_wait_ms": "100",
    "commit__retry__total_timeout_ms": "600000",
}


def race(writers: Sequence[Writer], commits: int, catalog: Properties) -> None:
    """Runs all writers at once, each in a process of its own."""
    with ProcessPoolExecutor(len(writers), CONTEXT) as pool:
        done = [pool.submit(write, catalog, n, commits) for n, write in enumerate(writers)]
        for future in done:
            future.result(timeout=300)


def id_of(writer: int, number: int) -> int:
    """The id of a writer's row."""
    return writer * 1000 + number


def append(catalog: Properties, writer: int, commits: int) -> None:
    """Adds a row at a time, of a day of its own."""
    table = open_table(catalog)
    for number in range(commits):
        table.append(rows(id_of(writer, number), day=writer))


def fast_append(catalog: Properties, writer: int, commits: int) -> None:
    """Adds a file at a time, with no load of the catalog in between."""
    address = TableAddress(TABLE, "lake", catalog)
    options = parse_write_options({"path": TABLE}, address)
    write, _ = prepare_write(options, rows().schema, DAYS, overwrite=False)
    operations = address.operations()
    for number in range(commits):
        row = rows(id_of(writer, number), day=writer)
        files = write_batches(write.plan, row.to_batches(), partition_id=number, attempt_id=0)
        commit_snapshot(operations, FastAppend(tuple(files)))


def append_to_branch(catalog: Properties, writer: int, commits: int) -> None:
    """Adds a row at a time to the branch `work`."""
    table = open_table(catalog)
    for number in range(commits):
        row = rows(id_of(writer, number), day=writer)
        table.append(row, branch="work", options={"create-branch": "true"})


def add_columns(catalog: Properties, writer: int, commits: int) -> None:
    """Adds a row with a new column at a time."""
    table = open_table(catalog)
    for number in range(commits):
        wider = rows(id_of(writer, number), day=writer).append_column(
            f"c{writer}_{number}", pa.array([number], pa.int64())
        )
        table.append(wider, options={"merge-schema": "true"})


def replace_day(catalog: Properties, writer: int, commits: int) -> None:
    """Replaces the partition of its day."""
    table = open_table(catalog)
    for number in range(commits):
        table.dynamic_partition_overwrite(rows(id_of(writer, number), day=writer))


def shape(catalog: Properties, writer: int, commits: int) -> None:
    """Adds a column, a property and a tag at a time, each in a commit of its own."""
    table = open_table(catalog)
    for number in range(commits):
        name = f"u{writer}_{number}"
        table.update_schema().add_column(name, "int").commit()
        table.set_properties({name: "x"})
        table.manage_snapshots().create_tag(name).commit()


def transact(catalog: Properties, writer: int, commits: int) -> None:
    """Adds two rows in two steps and a tag of them, in one commit at a time."""
    table = open_table(catalog)
    for number in range(commits):
        with table.transaction() as tx:
            tx.append(rows(id_of(writer, 2 * number), day=writer))
            tx.append(rows(id_of(writer, 2 * number + 1), day=writer))
            tx.manage_snapshots().create_tag(f"t{writer}_{number}").commit()
