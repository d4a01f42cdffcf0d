"""Tables that icebergds and Java Iceberg maintain in turn, as both read them."""

from __future__ import annotations

from collections import Counter
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import written_tables  # noqa: F401  (registers the tables)
from effort import IS_NIGHTLY, examples
from hypothesis import HealthCheck, Phase, given, strategies as st
from java_process import JavaProcess
from oracles.canon import canonical_rows
from oracles.comparison import difference
from our_tables import OUR_TABLES, OurTable, Writer
from strategies.maintenance_steps import PROPERTIES, maintain
from strategies.random_tables import RandomTable

from icebergds.api.table import Table, load_table
from icebergds.spec.json.schema import schema_to_json

pytestmark = pytest.mark.interop

# The same tables each time: a fault of another reader must not come up at random.
_FIXED: dict[str, Any] = {
    "derandomize": True,
    "phases": [Phase.generate],
    "suppress_health_check": list(HealthCheck),
}
_NUMBERS = count()
_EVERY = {"rewrite-all": "true"}
_CALLS = [
    "rewrite_data_files({}, options => map('rewrite-all', 'true'))",
    "rewrite_position_delete_files({}, options => map('rewrite-all', 'true'))",
    "rewrite_manifests({})",
    "expire_snapshots({}, older_than => now(), retain_last => 1)",
]
# Java's generic reader has no value of its own for a constant of these types.
_JAVA_CANNOT = {"identity_of_fixed", "identity_of_nanoseconds", "empty"}
_WRITTEN = [name for name in OUR_TABLES if name not in _JAVA_CANNOT]


@pytest.mark.parametrize("name", _WRITTEN if IS_NIGHTLY else _WRITTEN[::6])
def test_java_reads_what_we_maintained(
    java_process: JavaProcess, our_writer: Writer, name: str
) -> None:
    table = OUR_TABLES[name](our_writer, f"maintained_{name}")
    expected = table.expected()
    version = table.table.metadata.format_version
    ids = {row["id"] for row in table.rows[::3]} if version > 1 and "id" in table.columns else set()
    if ids:
        gone = [row for row in table.rows if row["id"] in ids]
        table.table.delete_keys(table.arrow(gone).select(["id"]), keys=["id"])
        kept = [row for row in table.rows if row["id"] not in ids]
        expected = canonical_rows(table.arrow(kept), table.schema)
        table.table.convert_equality_deletes()
        table.table.rewrite_position_delete_files(options=_EVERY)
        _agree(java_process, table, expected)
    table.table.rewrite_data_files(options={**_EVERY, "remove-dangling-deletes": "true"})
    table.table.rewrite_manifests()
    table.table.expire_snapshots(2**42, retain_last=1)
    _agree(java_process, table, expected)


def _agree(java: JavaProcess, table: OurTable, expected: list[str]) -> None:
    """All readers have the expected rows; Spark's those of tables that it can read."""
    read = java.ask("rows", table=table.table.name.rpartition(".")[2])
    ours = canonical_rows(table.table.scan().to_arrow(), table.schema)
    for name, rows in {**read, "ours": ours}.items():
        if name != "snapshots" and rows is not None:
            problem = difference(rows, expected, f"{table.name} by {name}")
            assert problem is None, problem


def test_java_reads_random_tables_that_both_maintain_in_turn(
    java_process: JavaProcess, our_writer: Writer
) -> None:
    """Tables that Java cannot read before, or reads otherwise, tell nothing."""
    outcomes: Counter[str] = Counter()

    @examples(64, **_FIXED)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        name = f"random_{next(_NUMBERS)}"
        location = our_writer.directory / "warehouse" / "db" / name
        table = _random_table(data, location)
        expected = _canonical(table)
        is_readable = _read_by_java(java_process, table, name) == expected
        outcomes[f"readable {is_readable}"] += 1
        for step in ("ours", "java", "ours"):
            if step == "ours":
                _maintain(data, table)
            else:
                outcomes[_maintain_by_java(java_process, data, name)] += 1
            problem = difference(_canonical(table), expected, f"{name} after {step}")
            assert problem is None, problem
            if is_readable:
                read = _read_by_java(java_process, table, name)
                assert isinstance(read, list), read
                problem = difference(read, expected, f"{name} by Java after {step}")
                assert problem is None, problem

    check()
    # Java is an oracle only if it reads and maintains many tables.
    assert 3 * outcomes["readable True"] > outcomes["readable False"], outcomes
    assert outcomes["maintained"] > outcomes["refused"], outcomes


def _random_table(data: st.DataObject, location: Path) -> Table:
    made = RandomTable(data.draw, location, is_wide=True)
    for _ in range(data.draw(st.integers(3, 10))):
        made.step()
    made.builder.set_properties({**made.builder.metadata.properties, **data.draw(PROPERTIES)})
    return load_table(str(location))


def _maintain(data: st.DataObject, table: Table) -> None:
    for _ in range(data.draw(st.integers(1, 2))):
        maintain(data.draw, table.refresh())


def _maintain_by_java(java: JavaProcess, data: st.DataObject, name: str) -> str:
    call = data.draw(st.sampled_from(_CALLS)).format(f"table => 'db.{name}'")
    try:
        java.ask("sql", statement=f"CALL oracle.system.{call}")
    except RuntimeError:
        return "refused"
    return "maintained"


def _canonical(table: Table) -> list[str]:
    return canonical_rows(table.refresh().scan().to_arrow(), schema_to_json(table.schema()))


def _read_by_java(java: JavaProcess, table: Table, name: str) -> list[str] | str:
    """The rows, or Java's error."""
    try:
        rows: list[str] = java.ask("rows", table=name)["generic"]
    except RuntimeError as error:
        return str(error)
    return rows
