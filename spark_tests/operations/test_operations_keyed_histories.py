"""Random histories of a table that is changed by key and maintained, against a plain model."""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from commit.interleaving import InterleavedOperations
from effort import rounds

from icebergds import MaintenancePolicy, RowCounts, Table, load_catalog, load_table
from icebergds.catalog.loaded_table import load_for_write
from icebergds.errors import ValidationError

_Key = tuple[Any, ...]
_Row = tuple[Any, ...]
_MODE, _LIMIT = "write.upsert.mode", "write.upsert.resolve-limit-bytes"
_ONLY_CONVERSIONS: dict[str, Any] = {
    "rewrite_data_files": False,
    "rewrite_position_delete_files": False,
    "remove_dangling_deletes": False,
    "rewrite_manifests": False,
    "expire_snapshots": False,
}
_DAY = datetime.date(2026, 1, 1)
# Of the first key column: SQL type, type that it is promoted to, and how values are made.
_TYPES: dict[str, tuple[str | None, Callable[[int], Any]]] = {
    "int": ("bigint", int),
    "decimal(9, 2)": ("decimal(12, 2)", lambda number: Decimal(number) / 4),
    "string": (None, lambda number: "key" * (number % 3) + str(number)),
    "date": (None, lambda number: _DAY + datetime.timedelta(number)),
    "timestamp_ntz": (None, lambda n: datetime.datetime(2026, 1, 1) + datetime.timedelta(0, n)),
    "binary": (None, lambda number: bytes([number, 255])),
}
_ARROW = {
    "int": pa.int32(),
    "bigint": pa.int64(),
    "decimal(9, 2)": pa.decimal128(9, 2),
    "decimal(12, 2)": pa.decimal128(12, 2),
    "string": pa.string(),
    "date": pa.date32(),
    "timestamp_ntz": pa.timestamp("us"),
    "binary": pa.binary(),
}
# Keys determine the partition by the first, by the second if both columns are keys, else never.
_SPECS: list[str | None] = [None, None, "bucket(3, k)", "part", "truncate(4, value)"]


class _History:
    """A table, and the rows that each of its branches has.

    Rows are (k, part, value): k is a key column, part may be another.
    """

    def __init__(self, root: Path, version: int, mode: str, rng: random.Random) -> None:
        self._rng, self._version = rng, version
        self._type = rng.choice(sorted(_TYPES))
        self._names = ["k", "part", "value"]
        self._has_part = rng.random() < 0.4
        spec = rng.choice(_SPECS)
        is_bucketed = spec == "bucket(3, k)"
        more: dict[str, Any] = {} if spec is None else {"partition_spec": spec}
        properties = {"format-version": str(version), _MODE: mode}
        self._make = _TYPES[self._type][1]
        self._can_promote = not is_bucketed or self._type == "int"
        self._table = load_catalog("c", warehouse=str(root)).create_table(
            "db.t", f"k {self._type}, part string, value bigint", properties=properties, **more
        )
        self._rows: dict[str, list[_Row]] = {"main": []}
        self._of_snapshots: dict[int, list[_Row]] = {}
        self.log: list[str] = [f"{version} {mode} {self._type} {spec} {self._has_part}"]

    def step(self) -> None:
        """Does something to a branch, and checks the rows of all."""
        branch = self._rng.choice(sorted(self._rows))
        steps = [self._change] * 6 + [self._convert_part] * 3
        steps += [self._convert, self._compact, self._evolve, self._rolled_back, self._expire]
        steps += [self._branch]
        chosen = self._rng.choice(steps)
        self.log.append(f"{chosen.__name__} of {branch}")
        chosen(branch)
        for name, rows in self._rows.items():
            assert self._found(name) == sorted(rows, key=repr), self.log
        if (head := self._loaded().current_snapshot()) is not None:
            self._of_snapshots[head.snapshot_id] = self._rows["main"]

    def check(self) -> None:
        """Checks the files of the table."""
        assert self._loaded().verify("rows").is_sound, self.log

    def _loaded(self) -> Table:
        return load_table(self._table.location())

    def _found(self, branch: str) -> list[_Row]:
        table = self._loaded()
        if table.current_snapshot() is None:
            return []
        read = table.scan(branch=branch, columns=",".join(self._names)).to_arrow()
        return sorted(zip(*(c.to_pylist() for c in read.columns), strict=True), key=repr)

    def _change(self, branch: str) -> None:
        """Changes rows, perhaps while another commit comes first."""
        others: list[Callable[[], object]] = []
        if self._rng.random() < 0.3 and self._loaded().current_snapshot() is not None:
            others.append(lambda: self._meanwhile(branch))
        loaded = load_for_write(self._table._address)
        operations = InterleavedOperations(loaded.operations, others)
        writer = Table(self._table._address, loaded.state, operations)
        keys = self._names[: 1 + self._has_part]
        given = self._given(self._rng.randrange(1, 6))
        mode = self._rng.choice(["positions", "positions", "auto", "equality-deletes"])
        options = {_MODE: mode, "branch": branch}
        if self._rng.random() < 0.2:
            options |= {_MODE: "auto", _LIMIT: "1"}
        kinds = self._rng.choices(["+I", "-U", "+U", "-D"], k=len(given))
        verb = self._rng.choice(["append", "upsert", "upsert", "delta", "delta", "delete"])
        if verb == "upsert":
            given = list({self._key(row): row for row in given}.values())
        if verb != "delta":
            kinds = [{"append": "+I", "upsert": "+U", "delete": "-D"}[verb]] * len(given)
        self.log.append(f"{verb} {list(zip(kinds, given, strict=True))} {options}")
        counts: RowCounts | None = None
        conflict = ""
        try:
            if verb == "append":
                writer.append(self._batch(given), branch=branch)
            elif verb == "upsert":
                counts = writer.upsert(self._batch(given), keys, options=options)
            elif verb == "delete":
                counts = writer.delete_keys(self._batch(given), keys, options=options)
            else:
                changes = self._batch(given).append_column("op", pa.array(kinds))
                counts = writer.delta(changes, "op", keys, options=options)
        except ValidationError as error:
            conflict = str(error)
        if conflict:
            # A row is gone whose id a new one has got.
            assert "repeat the operation" in conflict, self.log
            assert (self._version, bool(others), "meanwhile" in self.log) == (3, True, True)
            return
        changed = _Changed(self._rows[branch], self._key)
        if verb == "append":
            self._rows[branch] = [*self._rows[branch], *given]
            return
        self._rows[branch] = changed.by(given, kinds)
        if counts is not None and counts.is_exact and not counts.upserted:
            assert counts == changed.counts, "\n".join(self.log)

    def _meanwhile(self, branch: str) -> None:
        self.log.append("meanwhile")
        given = self._given(2)
        match self._rng.randrange(4):
            case 0:
                self._loaded().append(self._batch(given), branch=branch)
                self._rows[branch] = [*self._rows[branch], *given]
            case 1:
                keys = self._names[: 1 + self._has_part]
                mode = self._rng.choice(["positions", "equality-deletes"])
                options = {_MODE: mode, "branch": branch}
                self._loaded().delete_keys(self._batch(given), keys, options=options)
                changed = _Changed(self._rows[branch], self._key)
                self._rows[branch] = changed.by(given, ["-D"] * len(given))
            case 2:
                self._convert_part(branch)
            case 3:
                self._compact(branch)

    def _convert_part(self, branch: str) -> None:
        table = self._loaded()
        advice = table.health(branch).advice if table.current_snapshot() is not None else ()
        sizes = [each.read_bytes for each in advice if each.action == "convert_equality_deletes"]
        if not sizes:
            return
        limit = round(sizes[0] * self._rng.choice([0.3, 0.5, 0.8]))
        policy = MaintenancePolicy(max_bytes=limit, **_ONLY_CONVERSIONS)
        for step in table.maintain(policy, branch=branch).steps:
            self.log.append(f"{limit}: {step.state} {step.result} {step.note}")
            assert step.size_in_bytes <= limit

    def _convert(self, branch: str) -> None:
        if self._loaded().current_snapshot() is not None:
            self._loaded().convert_equality_deletes(branch=branch)

    def _compact(self, branch: str) -> None:
        if self._loaded().current_snapshot() is not None:
            self._loaded().rewrite_data_files(options={"rewrite-all": "true"}, branch=branch)

    def _evolve(self, branch: str) -> None:
        """Renames and promotes key columns, or changes the partition spec."""
        table, wider = self._loaded(), _TYPES.get(self._type, (None,))[0]
        choice = self._rng.randrange(3)
        with table.update_schema() as update:
            if choice == 0 and wider is not None and self._can_promote:
                update.update_column(self._names[0], wider)
                self._type = wider
            elif choice < 2:
                at = self._rng.randrange(3)
                new = f"{self._names[at].rstrip('0123456789')}{len(self.log)}"
                update.rename_column(self._names[at], new)
                self._names[at] = new
        if choice == 2 and len(table.specs()) < 3:
            with table.refresh().update_spec() as spec:
                spec.add_field(f"bucket({len(self.log) + 2}, {self._names[1]})")

    def _rolled_back(self, branch: str) -> None:
        """Main alone, to a snapshot of its history."""
        metadata = self._loaded().metadata
        known = [s.snapshot_id for s in metadata.lineage(metadata.current_snapshot())]
        known = [found for found in known if found in self._of_snapshots]
        if known:
            chosen = self._rng.choice(known[:4])
            self._loaded().manage_snapshots().rollback_to_snapshot(chosen).commit()
            self._rows["main"] = self._of_snapshots[chosen]

    def _expire(self, branch: str) -> None:
        self._loaded().expire_snapshots(older_than=datetime.timedelta(0), retain_last=1)

    def _branch(self, branch: str) -> None:
        if len(self._rows) < 3 and self._loaded().current_snapshot() is not None:
            name = f"b{len(self._rows)}"
            self._loaded().manage_snapshots().create_branch(name).commit()
            self._rows[name] = self._rows["main"]

    def _key(self, row: _Row) -> _Key:
        return row[: 1 + self._has_part]

    def _given(self, count: int) -> list[_Row]:
        rng = self._rng
        numbers = [rng.choice([*range(10), None]) for _ in range(count)]
        return [
            (
                None if number is None else self._make(number),
                rng.choice(["a", "b", None]),
                rng.randrange(20),
            )
            for number in numbers
        ]

    def _batch(self, given: list[_Row]) -> pa.Table:
        types = [_ARROW[self._type], pa.string(), pa.int64()]
        columns = list(zip(*given, strict=True))
        return pa.table(
            [pa.array(list(c), t) for c, t in zip(columns, types, strict=True)], self._names
        )


class _Changed:
    """The rows after changes by key, and how many changed."""

    def __init__(self, rows: list[_Row], key: Callable[[_Row], _Key]) -> None:
        self._rows, self._key = rows, key
        self.counts = RowCounts()

    def by(self, given: list[_Row], kinds: list[str]) -> list[_Row]:
        last: dict[_Key, tuple[_Row, str]] = {}
        for row, kind in zip(given, kinds, strict=True):
            last[self._key(row)] = row, kind
        replaced = {self._key(r) for r, kind in zip(given, kinds, strict=True) if kind != "+I"}
        kept = [row for row in self._rows if self._key(row) not in replaced]
        new = [row for row, kind in last.values() if kind in ("+I", "+U")]
        had = {self._key(row) for row in self._rows} & replaced
        updated = len(had & {self._key(row) for row in new})
        gone = len(self._rows) - len(kept)
        self.counts = RowCounts(len(new) - updated, updated, gone - updated)
        return [*kept, *new]


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("mode", ["positions", "equality-deletes"])
def test_histories_leave_the_rows_of_a_plain_model(
    tmp_path: Path, version: int, mode: str, rng: random.Random
) -> None:
    for number in range(rounds("ICEBERGDS_KEYED_HISTORIES", pull=2, nightly=60)):
        history = _History(tmp_path / str(number), version, mode, rng)
        for _ in range(rng.randrange(6, 16)):
            history.step()
        history.check()
