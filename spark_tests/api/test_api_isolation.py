"""Two writers that read, and write what follows from it, end as one of them after the other.

Each reads rows, and then overwrites them, or adds to the table, with values that depend on what it
has read. Their calls to the storage come in any order. What is in the table in the end is what the
isolation level promises, or one of them has failed and left nothing.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa
from built.api_tables import (
    TABLE,
    Properties,
    catalog_in,
    create_table,
    days_of,
    open_table,
    rows,
)
from built.contents import unused_files
from effort import examples
from hypothesis import example, given, strategies as st
from stepping import run_in_turns

from icebergds.api.table import Table
from icebergds.catalog.address import TableAddress
from icebergds.errors import ValidationError
from icebergds.operations.write.arrow_rows import write_rows
from icebergds.operations.write.options import parse_write_options

_Rows: TypeAlias = Mapping[tuple[int, int], int]
"""How often each row of `id` and `day` is there."""

_BEFORE: _Rows = Counter({(1, 0): 1, (2, 1): 1})


@dataclass(frozen=True)
class _Transaction:
    """Reads the rows of a day, and writes one whose id tells how many it has read.

    Attributes:
        kind: what is written: `append` adds it, `filter` overwrites the rows that were read,
            `partitions` the day that it is written to.
        read: the day that is read.
        written: the day that is written to.
    """

    kind: str
    read: int
    written: int

    def value(self, number: int, found: _Rows) -> int:
        of_day = sum(id * count for (id, day), count in found.items() if day == self.read)
        return 1000 * (number + 1) + of_day

    def replaced(self) -> int | None:
        """The day whose rows are overwritten."""
        return {"filter": self.read, "partitions": self.written}.get(self.kind)

    def apply(self, number: int, read: _Rows, found: _Rows) -> _Rows:
        """The rows after the transaction, which has read `read` of what was there."""
        kept = Counter({row: n for row, n in found.items() if row[1] != self.replaced()})
        return kept + Counter([(self.value(number, read), self.written)])

    def run(self, address: TableAddress, number: int, level: str) -> None:
        state = address.load()
        found = days_of(Table(address, state))
        snapshot = state.metadata.current_snapshot()
        assert snapshot is not None
        of_level = {
            "isolation-level": level,
            "validate-from-snapshot-id": str(snapshot.snapshot_id),
        }
        options: dict[str, str] = {} if self.kind == "append" else of_level
        if self.kind == "filter":
            options["overwrite-filter"] = f"day = {self.read}"
        if self.kind == "partitions":
            options["overwrite-mode"] = "dynamic"
        row = rows(self.value(number, found), day=self.written)
        parsed = parse_write_options({**options, "path": address.path}, address)
        write_rows(parsed, row, overwrite=self.kind != "append")


def _transactions() -> st.SearchStrategy[_Transaction]:
    """An append that reads nothing (day 9); overwrites of what is read; also to another day."""
    days = st.integers(0, 1)
    return st.one_of(
        st.builds(_Transaction, st.just("append"), st.just(9), days),
        st.builds(_Transaction, st.just("filter"), days, days),
        days.map(lambda day: _Transaction("partitions", day, day)),
    )


_PAIRS = st.tuples(_transactions(), _transactions())
# A writer's calls come in runs: a switch at every call would leave most orders out.
_RUNS = st.lists(st.tuples(st.integers(0, 1), st.integers(1, 12)), max_size=6)
_CROSSED = (_Transaction("filter", 0, 1), _Transaction("filter", 1, 0))


@examples(40)
@example(pair=_CROSSED, runs=[(0, 8), (1, 40)])
@example(pair=(_CROSSED[0], _Transaction("append", 9, 0)), runs=[(0, 8), (1, 40)])
@given(pair=_PAIRS, runs=_RUNS)
def test_serializable_writers_end_as_one_after_the_other(
    pair: tuple[_Transaction, _Transaction], runs: list[tuple[int, int]]
) -> None:
    committed, found = _run(pair, runs, "serializable")
    assert found in [_in_series(pair, order) for order in permutations(committed)]


@examples(40)
@example(pair=(_CROSSED[0], _CROSSED[0]), runs=[(0, 8), (1, 40)])
@given(pair=_PAIRS, runs=_RUNS)
def test_snapshot_writers_never_replace_what_the_other_replaced(
    pair: tuple[_Transaction, _Transaction], runs: list[tuple[int, int]]
) -> None:
    """What was read may be stale, but of two that replace the same rows one has seen the other."""
    committed, found = _run(pair, runs, "snapshot")
    in_series = [_in_series(pair, order) for order in permutations(committed)]
    stale = [_from_the_start(pair, order) for order in permutations(committed)]
    first, second = pair
    is_same = first.replaced() == second.replaced() and first.replaced() is not None
    assert found in (in_series if is_same else in_series + stale)


def _run(
    pair: tuple[_Transaction, _Transaction], runs: list[tuple[int, int]], level: str
) -> tuple[list[int], _Rows]:
    """Which of two transactions have committed, and the rows after them."""
    with tempfile.TemporaryDirectory() as directory:
        catalog: Properties = catalog_in(Path(directory))
        table = create_table(catalog, partition_by="day")
        table.append(pa.concat_tables([rows(1, day=0), rows(2, day=1)]))
        outcomes = run_in_turns(
            TableAddress(TABLE, "lake", catalog),
            [writer for writer, calls in runs for _ in range(calls)],
            [
                lambda address, number=number, own=own: own.run(address, number, level)
                for number, own in enumerate(pair)
            ],
        )
        table = open_table(catalog)
        for outcome in outcomes:
            assert outcome.error is None or isinstance(outcome.error, ValidationError)
        committed = [number for number, o in enumerate(outcomes) if o.error is None]
        # Who fails has met the other one.
        assert committed
        assert len(table.snapshots()) == 1 + len(committed)
        assert unused_files(table) == set()
        return committed, days_of(table)


def _in_series(pair: tuple[_Transaction, _Transaction], order: tuple[int, ...]) -> _Rows:
    found = _BEFORE
    for number in order:
        found = pair[number].apply(number, found, found)
    return found


def _from_the_start(pair: tuple[_Transaction, _Transaction], order: tuple[int, ...]) -> _Rows:
    """The rows where each transaction has read the table as it was before both."""
    found = _BEFORE
    for number in order:
        found = pair[number].apply(number, _BEFORE, found)
    return found
