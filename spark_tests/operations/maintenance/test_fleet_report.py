"""How files and history are measured for reports, what tables cost, and the commands to copy."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from built.delta_tables import DeltaTable
from hypothesis import given, strategies as st

from icebergds import Table, load_catalog, load_table
from icebergds.errors import InvalidOptionError, StorageError
from icebergds.operations.maintenance.fleet.commands import command_of, maintain_command
from icebergds.operations.maintenance.health.advice import Advice, Gain
from icebergds.operations.maintenance.health.layout import Histogram


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Three files of 1, 4 and 5 rows in the partitions a, a and b."""
    catalog = load_catalog("lake", warehouse=str(tmp_path))
    created = catalog.create_table("db.t", "id bigint, kind string", partition_spec="kind")
    for kind, count in (("a", 1), ("a", 4), ("b", 5)):
        created.append(pa.table({"id": range(count), "kind": [kind] * count}))
    return created


def _advice(action: str, **arguments: Any) -> Advice:
    return Advice(action, "", Gain(), arguments)


def test_the_layout_tells_how_files_are_distributed(table: Table) -> None:
    layout = table.health().layout
    sizes = table.inspect.files()["file_size_in_bytes"].to_pylist()
    assert layout.rows == Histogram((1, 2, 4, 8), (1, 0, 2))
    assert sum(layout.sizes.counts) == 3
    assert layout.sizes.edges[0] <= min(sizes) <= max(sizes) < layout.sizes.edges[-1]
    assert (layout.deletes, layout.with_deletes) == (Histogram((0, 1), (3,)), 0)
    found = {each.name: (each.files, each.rows) for each in layout.largest}
    assert (layout.partitions, found) == (2, {"kind=a": (2, 5), "kind=b": (1, 5)})
    largest = max(each.size_in_bytes for each in layout.largest)
    assert layout.largest[0].size_in_bytes == largest
    assert layout.skew == round(largest / (sum(sizes) / 2), 2)


def test_the_layout_tells_of_deletes(tmp_path: Path) -> None:
    built = DeltaTable(tmp_path, version=2)
    built.append((1, "a"), (2, "a"))
    built.keyed("upsert", [built.batch((1, "b"))])
    health = load_table(built.table.metadata.location).health()
    # The file of the upsert is newer than its deletes.
    assert health.layout.deletes == Histogram((0, 1, 2), (1, 1))
    assert health.layout.with_deletes == 1


def test_an_empty_table_has_an_empty_report(tmp_path: Path) -> None:
    empty = load_catalog("lake", warehouse=str(tmp_path)).create_table("db.t", "id bigint")
    health = empty.health()
    assert (health.layout.partitions, health.history.growth) == (0, ())
    assert "Nothing: the table is healthy." in health.to_html()


def test_the_history_tells_of_growth_refs_and_held_files(table: Table) -> None:
    first = table.snapshots()[0]
    table.manage_snapshots().create_tag("first", snapshot_id=first.snapshot_id).commit()
    sizes = table.inspect.files()["file_size_in_bytes"].to_pylist()
    history = table.refresh().health().history
    assert [state.rows for state in history.growth] == [1, 5, 10]
    assert history.growth[-1].size_in_bytes == sum(sizes)
    assert sum(history.commits.counts) == 3
    assert {(ref.name, ref.kind, ref.timestamp_ms) for ref in history.refs} == {
        ("main", "branch", table.snapshots()[-1].timestamp_ms),
        ("first", "tag", first.timestamp_ms),
    }
    assert history.held_bytes == history.expirable_bytes == 0

    table.rewrite_data_files(options={"rewrite-all": "true"})
    assert table.health().history.held_bytes == sum(sizes)
    assert table.health().history.expirable_bytes == 0
    table.manage_snapshots().remove_tag("first").commit()
    expiring = {"history.expire.max-snapshot-age-ms": "1"}
    with table.transaction() as change:
        change.set_properties(expiring)
    assert table.refresh().health().history.expirable_bytes == sum(sizes)
    table.expire_snapshots()
    assert table.health().history.held_bytes == 0


def test_a_table_reports_itself_with_prices_and_orphans(table: Table, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    health = table.report(out, orphans=True, prices={"requests_per_1000": 5, "currency": "EUR"})
    assert health.layout == table.health().layout
    page = out.read_text()
    assert page.count("<svg") >= 5
    assert "0.00 EUR" in page
    assert "in orphan files" in page
    # Only one table: there is no page of all.
    assert 'id="all"' not in page
    with pytest.raises(InvalidOptionError, match="did you mean 'read_per_gb'"):
        table.report(out, prices={"read_per_g": 1})
    with pytest.raises(StorageError, match=r"missing/report\.html cannot be written"):
        table.report(tmp_path / "missing" / "report.html")


@pytest.mark.parametrize(
    ("advice", "command"),
    [
        (_advice("rewrite_data_files"), "icebergds compact --apply lake.db.t"),
        (
            _advice("rewrite_data_files", branch="a b"),
            "icebergds compact --branch='a b' --apply lake.db.t",
        ),
        (
            _advice("expire_snapshots", retain_last=3),
            "icebergds expire --retain-last=3 --apply lake.db.t",
        ),
        # No command does only that.
        (_advice("rewrite_manifests", spec_id=1), "icebergds maintain --apply lake.db.t"),
        (_advice("remove_dangling_deletes"), "icebergds maintain --apply lake.db.t"),
    ],
)
def test_advice_has_a_command_to_copy(advice: Advice, command: str) -> None:
    assert command_of("lake.db.t", advice) == command


@given(st.text(st.characters(exclude_categories=["C", "Z"], include_characters=" "), min_size=1))
def test_a_shell_passes_on_any_printable_name(name: str) -> None:
    words = shlex.split(maintain_command(name, None))
    assert words[:3] == ["icebergds", "maintain", "--apply"]
    assert words[-1] == name


def test_a_name_runs_nothing_in_a_terminal() -> None:
    command = maintain_command("-a\x1b[2J'\\", None)
    assert command == "icebergds maintain --apply -- $'-a\\u001b[2J\\'\\\\'"
