"""Tables and scans that are looked at: their files, their plan, and how they show."""

from __future__ import annotations

import re
import sys
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from built.api_tables import new_table, rows
from built.contents import data_files

import icebergds
from icebergds import Table
from icebergds.display import WIDTH, size_text
from icebergds.errors import InvalidFilterError, InvalidOptionError
from icebergds.formats.data_file.file_schema import schema_from_arrow
from icebergds.operations.write.row_counts import RowCounts

HOSTILE = "<script>\x1b[2J"


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Ids 1 and 2 of day 1, and 3 of day 2; of them 2 is deleted."""
    made = new_table(tmp_path, partition_by="day")
    made.append(pa.concat_tables([rows(1, 2, day=1), rows(3, day=2)]))
    key = pa.table({"id": [2], "day": pa.array([1], pa.int32())})
    made.delete_keys(key, ["id", "day"], options={"write.upsert.mode": "equality-deletes"})
    return made


def test_the_files_of_a_scan_are_planned_without_reading_them(table: Table) -> None:
    tasks = table.scan().plan_files()
    assert sorted(task.file.record_count for task in tasks) == [1, 2]
    assert all(Path(task.file.file_path).exists() for task in tasks)


def test_a_task_has_the_deletes_of_its_file(table: Table) -> None:
    found = {task.file.partition: task.delete_files for task in table.scan().plan_files()}
    assert [deletes.equality_ids for deletes in found[(1,)]] == [(1, 2)]
    assert found[(2,)] == ()


def test_a_task_has_the_part_of_the_filter_that_its_partition_does_not_decide(
    table: Table,
) -> None:
    tasks = table.scan("day = 1 and id < 9 or day = 2").plan_files()
    assert {task.file.partition: task.residual for task in tasks} == {
        (1,): "id < 9",
        (2,): "TRUE",
    }


def test_files_without_matching_rows_are_not_planned(table: Table) -> None:
    assert [task.file.partition for task in table.scan("id = 3").plan_files()] == [(2,)]
    assert table.scan("id > 100").plan_files() == []


def test_a_scan_explains_itself(table: Table, capsys: pytest.CaptureFixture[str]) -> None:
    table.scan("id = 3", columns="id").explain()
    text = capsys.readouterr().out
    assert text.startswith("== Iceberg Scan ==\n")
    assert f"snapshot   {table.snapshots()[-1].snapshot_id}, delete, " in text
    assert "filter     id = 3\n" in text
    assert "files      1 of 2 kept: " in text
    assert "skipped: 1 by column metrics" in text


def test_the_plan_s_summary_has_the_numbers(table: Table) -> None:
    summary = table.scan("id = 3", columns="id").plan_summary()
    assert (summary.counts.files.kept, summary.counts.files.by_metrics) == (1, 1)
    assert (summary.rows, summary.columns) == (1, ("id",))


def test_a_filter_in_the_options_is_explained(table: Table) -> None:
    assert table.scan(options={"Filter": "id = 3"}).plan_summary().filter == "id = 3"


def test_changes_have_no_files_of_one_snapshot(table: Table) -> None:
    for look in (table.changes().plan_files, table.changes().explain):
        with pytest.raises(InvalidOptionError, match=f"table {table.name}: .* changes between"):
            look()


def test_a_mistake_in_a_scan_is_reported_where_it_is_looked_at(table: Table) -> None:
    scan = table.scan("no_column = 1")
    for look in (scan.count, scan.plan_files, scan.explain):
        with pytest.raises(InvalidFilterError, match="no_column"):
            look()


def test_a_table_shows_in_a_few_lines(table: Table) -> None:
    snapshot = table.snapshots()[-1]
    size = sum(path.stat().st_size for path in data_files(table.location()))
    assert repr(table).splitlines() == [
        f"Table('{table.name}')",
        "  format       version 2",
        "  columns      3: id long, day int, name string",
        "  partitions   day",
        f"  snapshot     {snapshot.snapshot_id}, delete, {repr(snapshot).split(', ')[2]}",
        "  rows         3 before deletes",
        f"  files        2 data files, 1 delete file: {size_text(size)}",
        f"  location     {table.location()}",
        f"  metadata     {table.metadata_location}",
    ]


def test_changes_that_wait_say_so(table: Table) -> None:
    schema, spec = table.update_schema(), table.update_spec()
    schema.add_column("more", "int").rename_column("name", "title")
    spec.add_field("bucket(4, id)")
    manage = table.manage_snapshots().create_tag("a").create_branch("b")
    order, statistics = table.update_sort_order().desc("id"), table.update_statistics()
    name = f"'{table.name}'"
    assert repr(schema) == f"UpdateSchema({name}, 2 changes not committed)"
    assert repr(spec) == f"UpdateSpec({name}, 1 change not committed)"
    assert repr(manage) == f"ManageSnapshots({name}, 2 changes not committed)"
    assert repr(order) == f"UpdateSortOrder({name}, 1 change not committed)"
    assert repr(statistics) == f"UpdateStatistics({name}, 0 changes not committed)"


def test_a_wide_table_says_how_many_columns_it_leaves_out(tmp_path: Path) -> None:
    columns = pa.schema([(f"column{i}", pa.int64()) for i in range(300)])
    lines = repr(new_table(tmp_path, schema_from_arrow(columns))).splitlines()
    assert lines[2].endswith(" more columns")
    assert max(map(len, lines[:-1])) <= WIDTH
    assert lines[3:5] == ["  snapshot     none", "  rows         0"]


def test_a_scan_shows_what_it_was_asked_for(table: Table) -> None:
    scan = table.scan("id > 5", columns=["id"], options={"split-size": "9"})
    assert repr(scan) == (
        f"TableScan('{table.name}', filter='id > 5', columns='id', options={{'split-size': '9'}})"
    )
    assert repr(table.scan()) == f"TableScan('{table.name}')"


@pytest.mark.parametrize("name", ["s3.secret-access-key", "catalog.password", "pasword"])
def test_values_of_other_options_are_not_shown(table: Table, name: str) -> None:
    scan = table.scan(options={name: "hush"})
    assert name in repr(scan)
    assert "hush" not in repr(scan) + scan._repr_html_()


def test_a_scan_is_shown_without_being_planned(table: Table) -> None:
    for path in Path(table.location()).rglob("*.avro"):
        path.unlink()
    assert "id > 5" in repr(table.scan("id > 5"))
    assert "no_column" in table.scan("no_column = 1")._repr_html_()


def test_tables_and_scans_are_escaped_in_html(tmp_path: Path) -> None:
    columns = pa.schema([(HOSTILE, pa.int64())])
    table = new_table(tmp_path / HOSTILE, schema_from_arrow(columns))
    scan = table.scan(f"`{HOSTILE}` > 5")
    shown = [table._repr_html_(), scan._repr_html_(), scan.plan_summary()._repr_html_()]
    for html in shown:
        assert "<script>" not in html
        assert html.isprintable()
    assert repr(table).replace("\n", "").isprintable()


def test_counts_of_rows_show_as_a_table() -> None:
    html = RowCounts(inserted=1200)._repr_html_()
    assert ">inserted</th>" in html
    assert ">1,200</td>" in html


EXPORTED = [getattr(icebergds, name) for name in icebergds.__all__]
ACTIONS = [
    kind
    for kind in EXPORTED
    if is_dataclass(kind) and any(field.name.endswith("_count") for field in fields(kind))
]


@pytest.mark.parametrize("kind", ACTIONS)
def test_results_of_actions_show_as_tables(kind: Any) -> None:
    needed = [each for each in fields(kind) if each.default is each.default_factory is MISSING]
    html = kind(**{each.name: 1204 for each in needed})._repr_html_()
    assert "<table>" in html
    assert html.count("1,204") == len(needed)


def test_lines_of_a_filter_and_parts_of_a_plan_stay_lines(table: Table) -> None:
    assert ">id = 5<br>and day = 1<" in table.scan("id = 5\nand day = 1")._repr_html_()
    html = table.scan("id > 5000").plan_summary()._repr_html_()
    assert re.search(r"\d of \d kept[^<]*<br>skipped: ", html)


def test_metadata_tables_show_as_tables_in_a_notebook_and_other_tables_as_before(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not table.inspect.files().schema.metadata
    printers: dict[type, Any] = {}
    formatter = SimpleNamespace(type_printers=printers, for_type=printers.__setitem__)
    shell = SimpleNamespace(display_formatter=SimpleNamespace(formatters={"text/html": formatter}))
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    files, show = table.inspect.files(), printers[pa.Table]
    assert f"files of {table.name}: {files.num_rows} row" in show(files)
    assert files["file_path"][0].as_py() in show(files.select(["file_path"]))
    assert "<table>" in show(table.inspect.snapshots())
    assert show(pa.table({"id": [1]})) is None
