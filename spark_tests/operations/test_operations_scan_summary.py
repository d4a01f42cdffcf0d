"""What a scan says of itself: what it reads, what it skips and why."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from built.tables import TableBuilder

from icebergds import Table, load_table
from icebergds.display import WIDTH
from icebergds.operations.read.options import parse_read_options
from icebergds.operations.read.planned_scan import plan_scan
from icebergds.operations.read.scan_summary import DeleteCounts, ScanSummary, summarize
from icebergds.spec.manifest import FileFormat
from icebergds.spec.partition import PartitionField, PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.transforms import IdentityTransform
from icebergds.spec.types import LONG, STRING, NestedField

SCHEMA = Schema((NestedField(1, "id", LONG), NestedField(2, "part", STRING)))
SPEC = PartitionSpec(0, (PartitionField((2,), 1000, IdentityTransform(), "part"),))
HOSTILE = "\n\x1b[2J\u202e"


@pytest.fixture
def builder(tmp_path: Path) -> TableBuilder:
    """Ids 0 to 2 in part x and 10 to 12 in part y; then 20 to 22 in part z, in another manifest."""
    made = TableBuilder(tmp_path / "t", SCHEMA, spec=SPEC, format_version=2)
    made.commit(file_of(made, 0, "x"), file_of(made, 10, "y"), with_summaries=True)
    made.commit(file_of(made, 20, "z"), with_summaries=True)
    return made


def file_of(builder: TableBuilder, start: int, part: str) -> Any:
    return builder.data_file([(start + i, part) for i in range(3)], partition=(part,))


def summary(
    builder: TableBuilder,
    filter: str | None = None,
    *,
    native_scans: bool | None = None,
    **options: Any,
) -> ScanSummary:
    table: Table = load_table(str(builder.location))
    parsed = parse_read_options({}, filter=filter, **options)
    planned = plan_scan(table._state, parsed, for_native=True)
    return summarize(planned, parsed, filter, native_scans)


def part(found: ScanSummary, name: str) -> list[str]:
    """The lines of a part of the text."""
    lines = str(found).splitlines()[1:]
    at = next(i for i, line in enumerate(lines) if line.startswith(f"{name} "))
    rest = lines[at + 1 :]
    further = next((i for i, line in enumerate(rest) if not line.startswith(" ")), len(rest))
    return [line[11:] for line in lines[at : at + 1 + further]]


def test_it_names_the_table_its_snapshot_and_columns(builder: TableBuilder) -> None:
    found = summary(builder, columns=[("id",)])
    assert part(found, "table") == [str(builder.location)]
    assert part(found, "snapshot")[0].startswith("1002, append, ")
    assert part(found, "snapshot")[1] == "chosen by branch main"
    assert part(found, "columns") == ["1: id"]


def test_the_filter_is_shown_as_it_was_written(builder: TableBuilder) -> None:
    assert part(summary(builder, "id > 5 and part in ('x')"), "filter") == [
        "id > 5 and part in ('x')"
    ]


def test_without_a_filter_none_is_shown(builder: TableBuilder) -> None:
    assert "\nfilter" not in str(summary(builder))


def test_it_says_what_was_skipped_and_why(builder: TableBuilder) -> None:
    found = summary(builder, "part = 'y' and id > 100 or part = 'x'")
    assert part(found, "manifests") == ["1 of 2 read", "skipped: 1 by partition summaries"]
    files = part(found, "files")
    assert files[0].startswith("1 of 3 kept: ")
    assert files[0].endswith(", 3 rows")
    assert files[1] == "skipped: 1 in skipped manifests, 1 by column metrics"


def test_a_filter_that_selects_nothing_reads_nothing(builder: TableBuilder) -> None:
    found = summary(builder, "false")
    assert part(found, "files") == ["none: the filter selects no rows, so no manifest was read"]
    assert "\nmanifests" not in str(found)


def test_a_table_without_snapshots(tmp_path: Path) -> None:
    found = summary(TableBuilder(tmp_path / "t", SCHEMA))
    assert part(found, "snapshot") == ["none: the table has no rows yet"]
    assert found.counts.files.kept == 0


def test_deletes_are_counted_by_kind(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path / "t", SCHEMA, spec=SPEC, format_version=2)
    first, second = file_of(builder, 0, "x"), file_of(builder, 10, "y")
    builder.commit(first, second)
    builder.commit(builder.position_deletes({first.file_path: [0, 1]}, partition=("x",)))
    builder.commit(builder.equality_deletes(["id"], [(1,), (2,)], partition=("x",)))
    found = summary(builder)
    assert found.deletes == DeleteCounts(
        data_files=1,
        position_delete_files=1,
        position_deletes=2,
        equality_delete_files=1,
        equality_deletes=2,
        equality_keys=(("id",),),
    )
    assert part(found, "deletes") == [
        "1 position delete file with 2 positions",
        "1 equality delete file with 2 keys",
        "keys: (id)",
        "they may apply to 1 data file",
    ]


def test_deletion_vectors_are_counted_apart(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path / "t", SCHEMA, spec=SPEC, format_version=3)
    first, second = file_of(builder, 0, "x"), file_of(builder, 10, "y")
    builder.commit(first, second)
    builder.commit(*builder.deletion_vectors([(first, [0]), (second, [0, 1])]))
    found = summary(builder).deletes
    assert found == DeleteCounts(data_files=2, deletion_vectors=2, deleted_by_vectors=3)


def test_it_counts_the_tasks_of_our_reader(builder: TableBuilder) -> None:
    assert part(summary(builder), "tasks") == ["1"]
    assert part(summary(builder, native_scans=True), "tasks") == ["0, and those of native scans"]


@pytest.mark.parametrize(
    ("native_scans", "lines"),
    [
        (True, ["native: Spark's own Parquet reader reads 3 of 3 files"]),
        (None, ["icebergds", "3 of 3 files could be read by native scans"]),
        (
            False,
            [
                "icebergds",
                "3 of 3 files could be read by native scans, which are off in this session",
            ],
        ),
    ],
)
def test_it_says_whose_reader_reads(
    builder: TableBuilder, native_scans: bool | None, lines: list[str]
) -> None:
    assert part(summary(builder, native_scans=native_scans), "reader") == lines


def test_it_says_why_files_are_not_for_spark_s_reader(builder: TableBuilder) -> None:
    of_avro = {"partition": ("x",), "file_format": FileFormat.AVRO}
    builder.commit(builder.equality_deletes(["id"], [(1,)], **of_avro))
    found = summary(builder, "part = 'x' or id > 10", native_scans=True)
    assert dict(found.not_native) == {
        "equality deletes": 1,
        "the filter may select only some of the rows": 2,
    }
    assert part(found, "reader")[0] == "icebergds"


def test_it_says_why_no_file_is_for_spark_s_reader(builder: TableBuilder) -> None:
    found = summary(builder, columns=[("id",), ("_spec_id",)], native_scans=True)
    assert part(found, "reader") == [
        "icebergds",
        "no native scan: column _spec_id (int) needs icebergds' own reader",
    ]


def test_no_line_is_wider_than_a_screen_and_none_acts_on_it(builder: TableBuilder) -> None:
    names = tuple(f"{HOSTILE}column{i}" for i in range(500))
    long = " or ".join(f"id = {i}" for i in range(500))
    found = replace(
        summary(builder),
        table=f"{HOSTILE}{'t' * 300}",
        filter=f"{long} or part = '{HOSTILE}'",
        columns=names,
        chosen_by=f"tag {HOSTILE}{'x' * 300}",
        native_obstacle=HOSTILE,
        deletes=DeleteCounts(1, equality_delete_files=1, equality_keys=((HOSTILE,),) * 99),
    )
    lines = str(found).splitlines()
    assert all(line.isprintable() and len(line) <= WIDTH + 2 for line in lines)
    assert len(lines) < 35
    assert "<script>" not in replace(found, table="<script>", columns=("<script>",))._repr_html_()
