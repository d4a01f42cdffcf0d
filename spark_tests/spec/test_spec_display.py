"""How parts of a table show in a shell and in a notebook: short, readable and escaped."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from icebergds.display import WIDTH
from icebergds.spec.manifest import DataFile, FileContent, FileFormat, ManifestFile
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.partition import PartitionField, PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.snapshot import RefType, Snapshot, SnapshotLogEntry, SnapshotRef, Snapshots
from icebergds.spec.sort import NullOrder, SortDirection, SortField, SortOrder
from icebergds.spec.transforms import BucketTransform, DayTransform, IdentityTransform
from icebergds.spec.types import DATE, INT, LONG, STRING, NestedField, StructType

HOSTILE = "<script>alert('x')</script>\n\x1b[2J\u202e"
AUGUST = 1788091201123
WIDE = Schema(tuple(NestedField(i, f"column{i}", LONG) for i in range(1, 301)))


def snapshot(snapshot_id: int = 6546640040976516023, **summary: str) -> Snapshot:
    return Snapshot(snapshot_id, AUGUST, summary={"operation": "append", **summary})


def metadata(**changed: Any) -> TableMetadata:
    made = TableMetadata(
        format_version=2,
        table_uuid="9c12d441-03fe-4693-9a96-a0705ddf69c1",
        location="s3://bucket/db/t",
        last_updated_ms=AUGUST,
        last_column_id=300,
        schemas=(WIDE,) * 50,
        current_schema_id=0,
        partition_specs=(PartitionSpec(),),
        default_spec_id=0,
        last_partition_id=999,
        sort_orders=(SortOrder(),),
        default_sort_order_id=0,
        snapshots=tuple(snapshot(i) for i in range(1000)),
        current_snapshot_id=999,
    )
    return replace(made, **changed)


SPEC = PartitionSpec(
    3,
    (
        PartitionField((2,), 1000, DayTransform(), "day"),
        PartitionField((1,), 1001, BucketTransform(16), "id_bucket"),
    ),
)
ORDER = SortOrder(
    1, (SortField((2,), IdentityTransform(), SortDirection.DESC, NullOrder.NULLS_LAST),)
)


def test_a_schema_lists_its_columns() -> None:
    city = StructType((NestedField(4, "city", STRING, required=True),))
    fields = (
        NestedField(1, "id", LONG, required=True),
        NestedField(2, "day", DATE),
        NestedField(3, "address", city),
    )
    assert repr(Schema(fields, 7, (1,))) == (
        "Schema(schema_id=7, 3 columns)\n"
        "  1: id long required identifier\n"
        "  2: day date\n"
        "  3: address struct<4: city: required string>"
    )


def test_a_wide_schema_says_how_many_columns_it_leaves_out() -> None:
    lines = repr(WIDE).splitlines()
    assert len(lines) == 14
    assert lines[-1] == "  … 288 more columns"
    assert "… 200 more columns" in WIDE._repr_html_()


def test_a_field_shows_its_type_and_defaults() -> None:
    field = NestedField(1, "n", INT, required=True, doc="how many", initial_default=0)
    assert (
        repr(field) == "NestedField(1, 'n', int, required=True, doc='how many', initial_default=0)"
    )


def test_partition_specs_and_sort_orders_show_their_transforms() -> None:
    assert (
        repr(SPEC) == "PartitionSpec(spec_id=3, 1000: day: day(2), 1001: id_bucket: bucket[16](1))"
    )
    assert repr(PartitionSpec()) == "PartitionSpec(spec_id=0, unpartitioned)"
    assert repr(ORDER) == "SortOrder(order_id=1, identity(2) desc nulls-last)"
    assert repr(SortOrder()) == "SortOrder(order_id=0, unsorted)"


def test_a_snapshot_shows_its_time_in_utc_next_to_milliseconds() -> None:
    assert repr(snapshot()) == (
        "Snapshot(6546640040976516023, append, 2026-08-30T12:00:01.123Z, "
        "timestamp_ms=1788091201123)"
    )
    assert repr(SnapshotLogEntry(AUGUST, 5)) == (
        "SnapshotLogEntry(2026-08-30T12:00:01.123Z, timestamp_ms=1788091201123, snapshot_id=5)"
    )


@pytest.mark.parametrize("timestamp_ms", [2**63 - 1, -(2**63)])
def test_a_time_that_no_calendar_has_is_shown_as_it_is(timestamp_ms: int) -> None:
    assert str(timestamp_ms) in repr(replace(snapshot(), timestamp_ms=timestamp_ms))


def test_a_reference_shows_the_limits_that_it_has() -> None:
    assert repr(SnapshotRef(5, RefType.TAG)) == "SnapshotRef(tag, snapshot_id=5)"
    assert "max_ref_age_ms=9" in repr(SnapshotRef(5, RefType.BRANCH, max_ref_age_ms=9))


NO_DELETES = {"total-delete-files": "0"}


def test_snapshots_show_as_a_table() -> None:
    first = snapshot(7, **{"added-records": "1200", "total-records": "1200"}, **NO_DELETES)
    second = {"operation": "delete", "deleted-records": "200", **NO_DELETES}
    assert repr(Snapshots((first, Snapshot(12, AUGUST, 1, 7, summary=second)))) == (
        "2 snapshots\n"
        "snapshot_id  committed (UTC)            timestamp_ms  operation  added  deleted   rows\n"
        "          7  2026-08-30T12:00:01.123Z  1788091201123  append     1,200           1,200\n"
        "         12  2026-08-30T12:00:01.123Z  1788091201123  delete                200"
    )


def _shown(*summaries: dict[str, str]) -> list[list[str]]:
    """What is added, deleted and live, of snapshots that follow one of 100 rows without deletes."""
    first = snapshot(1, **{"total-records": "100", **NO_DELETES})
    later = [
        Snapshot(at, AUGUST, at, at - 1, summary={"operation": "overwrite", **summary})
        for at, summary in enumerate(summaries, 2)
    ]
    lines = repr(Snapshots((first, *later))).splitlines()[3:]
    return [line.split("overwrite")[1].replace("≤ ", "≤").split() for line in lines]


def test_rows_that_vectors_delete_are_not_live() -> None:
    totals = {"total-records": "103", "total-delete-files": "1", "total-equality-deletes": "0"}
    update = {"added-records": "3", "added-position-deletes": "5", "added-dvs": "1"}
    again = {"added-position-deletes": "9", "removed-position-deletes": "5", "added-dvs": "1"}
    drop = {"deleted-records": "100", "removed-position-deletes": "9", "total-records": "3"}
    assert _shown(
        {**totals, **update, "total-position-deletes": "5"},
        {**totals, **again, "total-position-deletes": "9"},
        {**totals, **drop, "total-position-deletes": "0", "total-delete-files": "0"},
    ) == [["3", "5", "98"], ["4", "94"], ["91", "3"]]


def test_what_other_deletes_delete_is_shown_as_not_known() -> None:
    totals = {"total-records": "100", "total-delete-files": "1", "total-position-deletes": "5"}
    none = {"total-equality-deletes": "0"}
    files = {"added-position-deletes": "5", "added-position-delete-files": "1"}
    own = {"icebergds.rows-deleted": "4", "icebergds.rows-updated": "1"}
    by_value = {"added-equality-deletes": "1", "total-equality-deletes": "1"}
    later = {"added-position-deletes": "1", "added-dvs": "1", "total-position-deletes": "6"}
    assert _shown(
        {**totals, **none, **files},
        {**totals, **none, **later},
        {**totals, **none, **files, **own},
        {**totals, **by_value},
    ) == [["≤5", "≤100"], ["≤1", "≤100"], ["5", "≤100"], ["≤100"]]


def test_of_many_snapshots_the_newest_are_shown() -> None:
    lines = repr(Snapshots(snapshot(i) for i in range(1, 51))).splitlines()
    assert lines[:2] == ["50 snapshots", "… 40 earlier snapshots"]
    assert [line.split()[0] for line in lines[3:]] == [str(i) for i in range(41, 51)]


def test_no_snapshots_show_as_none() -> None:
    assert repr(Snapshots()) == "0 snapshots"


def test_snapshots_are_a_tuple() -> None:
    assert Snapshots((snapshot(1), snapshot(2))) == (snapshot(1), snapshot(2))


def test_metadata_shows_what_it_has_in_a_few_lines() -> None:
    lines = repr(metadata()).splitlines()
    assert len(lines) < 15
    assert "  snapshots: 1,000, current 999" in lines
    assert "  last_updated_ms: 1788091201123, 2026-08-30T12:00:01.123Z" in lines


def test_values_of_properties_are_not_shown() -> None:
    made = metadata(properties={"note": "hush"})
    assert "note" in repr(made)
    assert "hush" not in repr(made) + made._repr_html_()


def test_a_data_file_shows_no_metrics() -> None:
    file = DataFile(
        FileContent.DATA, "/t/a.parquet", FileFormat.PARQUET, 0, (1,), 4000, 5515, {1: 2}, {1: 3}
    )
    assert repr(file) == (
        "DataFile('/t/a.parquet', data, parquet, 4,000 rows, 5.5 KB, spec_id=0, partition=(1,))"
    )


SHOWN = {
    "schema": WIDE,
    "schema of long names": Schema(tuple(NestedField(i, "n" * 500, LONG) for i in range(50))),
    "spec": replace(SPEC, fields=SPEC.fields * 20),
    "order": replace(ORDER, fields=ORDER.fields * 20),
    "snapshot": snapshot(2**63 - 1),
    "snapshots": Snapshots(snapshot(2**63 - 1, **{"total-records": "9" * 9}) for _ in range(99)),
    "metadata": metadata(properties={f"property-{i}": "x" for i in range(99)}),
    "manifest": ManifestFile("/t/m.avro", 1, 0),
}


@pytest.mark.parametrize("shown", SHOWN.values(), ids=SHOWN)
def test_what_is_shown_fits_a_screen(shown: Any) -> None:
    lines = repr(shown).splitlines()
    assert len(lines) < 20
    assert max(map(len, lines)) <= WIDTH + 4


NAMED = {
    "schema": Schema((NestedField(1, HOSTILE, LONG, doc=HOSTILE),)),
    "struct": Schema((NestedField(1, "s", StructType((NestedField(2, HOSTILE, LONG),))),)),
    "spec": PartitionSpec(0, (PartitionField((1,), 1000, DayTransform(), HOSTILE),)),
    "snapshot": snapshot(**{HOSTILE: HOSTILE, "operation": HOSTILE}),
    "snapshots": Snapshots((snapshot(operation=HOSTILE),)),
    "metadata": metadata(location=HOSTILE, properties={HOSTILE: "x"}),
}


@pytest.mark.parametrize("shown", NAMED.values(), ids=NAMED)
def test_names_cannot_act_as_html_or_control_characters(shown: Any) -> None:
    html = shown._repr_html_()
    assert "<script>" not in html
    for text in (html, *repr(shown).split("\n")):
        assert text.isprintable(), text
