"""Steps that change rows: appends, changes by key and by condition, transfers between accounts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from icebergds.api.table import Table
from icebergds.expr.sql import parse_filter
from icebergds.operations.write import matching_rows
from icebergds.operations.write.options import WriteOptions
from icebergds.testing.simulation.position_changes import (
    Values,
    begin_change,
    change_matching,
    end_change,
)
from icebergds.testing.simulation.rows import (
    CORE,
    GROUP,
    ID,
    KEYS,
    VALUE,
    Changed,
    Row,
    Rows,
    Then,
    put,
    updated,
    without,
    without_matching,
)
from icebergds.testing.simulation.steps import (
    ACCOUNTS,
    GROUPS,
    Act,
    Shared,
    Step,
    arrow_rows,
    new_keys,
    new_rows,
)

MODES = ("equality-deletes", "positions", "auto")


def append(step: Step, table: Table, shared: Shared) -> Any:
    rows = new_rows(step, table.schema(), new_keys(step, step.chance.randint(1, 8)))
    step.detail = f"append {len(rows)} rows"
    step.effect = put(rows)
    return table.append(
        arrow_rows(rows, table.schema()), branch=step.branch, snapshot_properties=step.summary
    )


def stream(step: Step, table: Table, shared: Shared) -> Any:
    """A batch of a stream; one that was not acknowledged is written again, as after a restart."""
    step.branch = "main"
    name = step.chance.choice(shared.stream_names)
    version, rows = shared.streams.get(name, (0, []))
    if not rows:
        rows = new_rows(step, table.schema(), new_keys(step, step.chance.randint(1, 5)))
        shared.streams[name] = (version, rows)
    step.batch = name, version
    step.detail = f"batch {version} of {name}"
    step.effect = put(rows)
    options = {"txn-app-id": name, "txn-version": str(version)}
    kept = {column.field_id for column in table.schema().fields}
    known = [{i: value for i, value in row.items() if i in kept} for row in rows]
    counts = table.append(
        arrow_rows(known, table.schema()), snapshot_properties=step.summary, options=options
    )
    if shared.streams[name][0] == version:
        shared.streams[name] = (version + 1, [])
    return counts


def upsert(step: Step, table: Table, shared: Shared) -> Any:
    keys = shared.some_keys(step, 6) + new_keys(step, step.chance.randint(0, 2))
    mode = step.chance.choice(MODES)
    rows = new_rows(step, table.schema(), keys)
    step.detail = f"upsert {len(rows)} rows by {mode}"
    step.effect = put(rows)
    return table.upsert(
        arrow_rows(rows, table.schema()),
        branch=step.branch,
        snapshot_properties=step.summary,
        options={"write.upsert.mode": mode} if rows else {},
    )


def delete_keys(step: Step, table: Table, shared: Shared) -> Any:
    keys = shared.some_keys(step, 8)
    mode = step.chance.choice(MODES)
    step.detail = f"delete {len(keys)} keys by {mode}"
    step.effect = without(keys)
    return table.delete_keys(
        pa.table({ID: pa.array(keys, pa.int64())}),
        KEYS,
        branch=step.branch,
        snapshot_properties=step.summary,
        options={"write.upsert.mode": mode},
    )


def change_data(step: Step, table: Table, shared: Shared) -> Any:
    """A changelog with all kinds of rows."""
    schema, old = table.schema(), shared.some_keys(step, 6)
    cut = step.chance.randint(0, len(old))
    gone, changed, new = old[:cut], old[cut:], new_keys(step, step.chance.randint(0, 3))
    kinds = [("-D", key) for key in gone]
    for key in changed:
        kinds += [("-U", key), ("+U", key)]
    kinds += [("+I", key) for key in new]
    if new and step.chance.random() < 0.5:
        # Inserted and changed again in the same batch.
        kinds.append(("+U", new[0]))
    rows = new_rows(step, schema, [key for _, key in kinds])
    entries = [(kind, row) for (kind, _), row in zip(kinds, rows, strict=True)]
    mode = step.chance.choice(MODES)
    step.detail = f"changelog of {len(entries)} rows by {mode}"
    last = {row[CORE.key]: row for kind, row in entries if kind in ("+U", "+I")}
    step.effect = Then(without(gone), put(last.values()))
    return table.delta(
        arrow_rows(rows, schema, {"kind": [kind for kind, _ in kinds]}),
        "kind",
        branch=step.branch,
        snapshot_properties=step.summary,
        options={"write.upsert.mode": mode},
    )


def overwrite_group(step: Step, table: Table, shared: Shared) -> Any:
    """Replaces the rows of a group, which only whole files may have."""
    group = step.chance.randrange(1, GROUPS)
    if step.chance.random() < 0.5:
        return _overwrite_with_changed(step, table, group)
    rows = new_rows(step, table.schema(), new_keys(step, step.chance.randint(1, 4)))
    rows = [{**row, CORE.group: group} for row in rows]
    step.detail = f"overwrite group {group}"
    step.effect = Then(without_matching(lambda row: row[CORE.group] == group), put(rows))
    return table.overwrite(
        arrow_rows(rows, table.schema()),
        f"{GROUP} = {group}",
        branch=step.branch,
        snapshot_properties=step.summary,
    )


def _overwrite_with_changed(step: Step, table: Table, group: int) -> Any:
    """Replaces the rows of a group by what was computed from them."""

    def change(row: Row) -> Row:
        return {**row, CORE.value: row[CORE.value] + 1}

    condition = f"{GROUP} = {group}"
    found, read_at = _read(step, table, condition)
    values = pa.array([value + 1 for value in found[VALUE].to_pylist()], pa.int64())
    step.detail = f"overwrite group {group} with {len(found)} changed rows"
    step.effect = updated(lambda row: row[CORE.group] == group, change)
    return table.overwrite(
        _with_values(found, values),
        condition,
        branch=step.branch,
        snapshot_properties=step.summary,
        options={"isolation-level": "serializable", **read_at},
    )


def overwrite_partitions(step: Step, table: Table, shared: Shared) -> Any:
    """Replaces the groups of its rows, if these are the partitions."""
    rows = new_rows(step, table.schema(), new_keys(step, step.chance.randint(1, 4)))
    groups = {row[CORE.group] for row in rows}
    by_group = [part.name for part in table.spec().fields] == [GROUP]
    if shared.layout_changes or not by_group:
        return None
    step.detail = f"overwrite the partitions {groups}"
    step.effect = Then(without_matching(lambda row: row[CORE.group] in groups), put(rows))
    return table.dynamic_partition_overwrite(
        arrow_rows(rows, table.schema()), branch=step.branch, snapshot_properties=step.summary
    )


def stage(step: Step, table: Table, shared: Shared) -> Any:
    """Appends rows to a snapshot on no branch, which may be published later, once."""
    rows = new_rows(step, table.schema(), new_keys(step, step.chance.randint(1, 4)))
    step.branch, step.staged = "main", f"staged-{step.number}"
    step.detail = f"stage {len(rows)} rows"
    step.effect, step.snapshots = put(rows), None
    shared.staged.append(step.staged)
    return table.append(
        arrow_rows(rows, table.schema()),
        snapshot_properties=step.summary,
        options={"wap.id": step.staged},
    )


def delete_matching(step: Step, table: Table, shared: Shared) -> Any:
    condition, matches = condition_of(step, shared)
    level = _isolation(step, "delete")
    loaded = begin_change(table)
    head = loaded.metadata.head_of(step.branch)
    rows_read = shared.model.rows_of(None if head is None else head.snapshot_id)
    read = {key: row for key, row in rows_read.items() if matches(row)}

    def of_snapshot(rows: Rows) -> Changed:
        # A row that another statement has written again in the meantime stays.
        return without(key for key, row in read.items() if rows.get(key) is row)(rows)

    step.effect = without_matching(matches) if level == "serializable" else of_snapshot
    options = {"isolation-level": level}
    write = WriteOptions.of(loaded.address, options, step.summary, branch=step.branch)
    return end_change(table, matching_rows.delete_matching(loaded, parse_filter(condition), write))


def update_matching(step: Step, table: Table, shared: Shared) -> Any:
    condition, matches = condition_of(step, shared)
    value = step.chance.randrange(1000, 2000)
    keys: list[int] = []
    step.keeps_ids = True

    def decide(row: Values) -> Values | None:
        if matches(_model_row(row)):
            keys.append(row[ID])
            return {**row, VALUE: value}
        return None

    def change(row: Row) -> Row:
        return {**row, CORE.value: value}

    level = _isolation(step, "update")
    # With snapshot isolation, rows that others add meanwhile are not changed.
    changed = matches if level == "serializable" else lambda row: row[CORE.key] in keys
    step.effect = updated(changed, change)
    return change_matching(
        table,
        "update",
        decide,
        condition=condition,
        branch=step.branch,
        step=step.summary,
        options={"isolation-level": level},
    )


def merge(step: Step, table: Table, shared: Shared) -> Any:
    """Adds to the values of some keys, and inserts those that are missing."""
    old = shared.some_keys(step, 5)
    source = {key: step.chance.randrange(1, 50) for key in [*old, *new_keys(step, 2)]}
    groups = {key: step.chance.randrange(1, GROUPS) for key in source}
    step.detail = f"merge {len(source)} rows"
    blank: dict[int, Any] = {}

    def decide(row: Values) -> Values | None:
        return {**row, VALUE: row[VALUE] + source[row[ID]]} if row[ID] in source else None

    def new(found: list[Values]) -> list[Values]:
        known = {row[ID] for row in found}
        blank.update({column.field_id: None for column in table.schema().fields})
        return [
            {ID: key, GROUP: groups[key], VALUE: value}
            for key, value in source.items()
            if key not in known
        ]

    def change(row: Row) -> Row:
        return {**row, CORE.value: row[CORE.value] + source[row[CORE.key]]}

    matched = updated(lambda row: row[CORE.key] in source, change)

    def effect(rows: Mapping[int, Row]) -> Any:
        missing = [key for key in source if key not in rows]
        inserted = [
            {**blank, CORE.key: key, CORE.group: groups[key], CORE.value: source[key]}
            for key in missing
        ]
        return Then(matched, put(inserted))(rows)

    step.effect = effect
    return change_matching(
        table,
        "merge",
        decide,
        new,
        condition=f"{ID} IN ({', '.join(map(str, source))})",
        branch=step.branch,
        step=step.summary,
        options={},
    )


def transfer(step: Step, table: Table, shared: Shared) -> Any:
    """Moves money between two accounts: by an upsert of both, or by an update."""
    giver, taker = step.chance.sample(ACCOUNTS, 2)
    amount = step.chance.randint(1, 20)
    moves = {giver: -amount, taker: amount}
    step.detail = f"transfer of {amount} from {giver} to {taker}"

    def change(row: Row) -> Row:
        return {**row, CORE.value: row[CORE.value] + moves[row[CORE.key]]}

    step.effect = updated(lambda row: row[CORE.key] in moves, change)
    if step.chance.random() < 0.5 or table.metadata.format_version == 1:

        def decide(row: Values) -> Values | None:
            return {**row, VALUE: row[VALUE] + moves[row[ID]]} if row[ID] in moves else None

        step.keeps_ids = True
        return change_matching(
            table,
            "update",
            decide,
            condition=f"{ID} IN ({giver}, {taker})",
            branch=step.branch,
            step=step.summary,
            options={},
        )
    return _transfer_by_upsert(step, table, moves)


def _transfer_by_upsert(step: Step, table: Table, moves: Mapping[int, int]) -> Any:
    found, read_at = _read(step, table, f"{ID} IN ({', '.join(map(str, moves))})")
    values = [row[VALUE] + moves[row[ID]] for row in found.to_pylist()]
    options = {"isolation-level": "serializable", "write.upsert.mode": step.chance.choice(MODES)}
    return table.upsert(
        _with_values(found, pa.array(values, pa.int64())),
        branch=step.branch,
        snapshot_properties=step.summary,
        options={**options, **read_at},
    )


def _read(step: Step, table: Table, condition: str) -> tuple[pa.Table, dict[str, str]]:
    """Rows of the step's branch, and the option that names the snapshot that they are from."""
    head = table.metadata.head_of(step.branch)
    assert head is not None, "the accounts are there from the beginning"
    branch = step.branch if step.branch in table.metadata.refs else None
    found = table.scan(condition, branch=branch).to_arrow()
    return found, {"validate-from-snapshot-id": str(head.snapshot_id)}


def _with_values(rows: pa.Table, values: pa.Array) -> pa.Table:
    at = rows.schema.get_field_index(VALUE)
    return rows.set_column(at, rows.schema.field(at), values)


def several(step: Step, table: Table, shared: Shared) -> Any:
    """An append and an upsert in one transaction, which leaves two snapshots."""
    schema = table.schema()
    first = new_rows(step, schema, new_keys(step, 3))
    second = new_rows(step, schema, [*shared.some_keys(step, 3), new_keys(step, 1)[0]])
    step.detail = "transaction of an append and an upsert"
    step.branch = "main"
    effects = [put(first), put(second)]
    step.effect = lambda rows: effects[len(step.committed)](rows)
    step.snapshots = step.least = 2
    with table.transaction() as transaction:
        transaction.append(arrow_rows(first, schema), snapshot_properties=step.summary)
        transaction.upsert(arrow_rows(second, schema), snapshot_properties=step.summary)
    return None


def condition_of(step: Step, shared: Shared) -> tuple[str, Callable[[Row], bool]]:
    """Draws a condition: as SQL and on a row of the model; accounts never match."""
    kind = step.chance.randrange(3)
    if kind == 0:
        group, least = step.chance.randrange(1, GROUPS), step.chance.randrange(700)
        step.detail = f"group {group} from value {least}"
        return (
            f"{GROUP} = {group} AND {VALUE} >= {least} AND {ID} >= 0",
            lambda row: row[CORE.group] == group and row[CORE.value] >= least > -1 < row[CORE.key],
        )
    if kind == 1:
        most = step.chance.randrange(300)
        step.detail = f"values below {most}"
        return (
            f"{VALUE} < {most} AND {ID} >= 0",
            lambda row: row[CORE.value] < most and row[CORE.key] >= 0,
        )
    keys = shared.some_keys(step, 4) or [0]
    step.detail = f"keys {keys}"
    return f"{ID} IN ({', '.join(map(str, keys))})", lambda row: row[CORE.key] in keys


def _isolation(step: Step, verb: str) -> str:
    level = step.chance.choice(["serializable", "snapshot"])
    step.detail = f"{verb} {step.detail}, {level}"
    return level


def _model_row(row: Values) -> Row:
    return {CORE.key: row[ID], CORE.group: row[GROUP], CORE.value: row[VALUE]}


WRITERS: Mapping[str, tuple[Act, int]] = {
    "append": (append, 14),
    "stream": (stream, 10),
    "upsert": (upsert, 14),
    "delete keys": (delete_keys, 6),
    "changelog": (change_data, 8),
    "overwrite": (overwrite_group, 4),
    "partition overwrite": (overwrite_partitions, 3),
    "staging": (stage, 3),
    "delete": (delete_matching, 6),
    "update": (update_matching, 6),
    "merge": (merge, 6),
    "transfer": (transfer, 12),
    "transaction": (several, 3),
}
"""The steps by their actors, and how often each is drawn."""
