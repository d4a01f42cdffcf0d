"""What planning counts: manifests and files that it read, kept and skipped, and why."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from built.tables import TableBuilder

from icebergds.expr.bind import bind
from icebergds.expr.nodes import TRUE
from icebergds.expr.sql import parse_filter
from icebergds.scan.plan.counts import FileCounts, ManifestCounts, PlanCounts, count_plan
from icebergds.scan.plan.files import plan_files
from icebergds.spec.manifest import ManifestContent, ManifestFile
from icebergds.spec.partition import PartitionField, PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.transforms import IdentityTransform
from icebergds.spec.types import INT, LONG, NestedField

SCHEMA = Schema((NestedField(1, "id", LONG), NestedField(2, "day", INT)))
SPEC = PartitionSpec(0, (PartitionField((2,), 1000, IdentityTransform(), "day"),))


@pytest.fixture
def builder(tmp_path: Path) -> TableBuilder:
    """Days 1 and 2 in one manifest, two files a day; day 3 in another."""
    made = TableBuilder(tmp_path / "t", SCHEMA, spec=SPEC)
    made.commit(
        *(
            made.data_file([(start, day), (start + 4, day)], partition=(day,))
            for day in (1, 2)
            for start in (0, 10)
        ),
        with_summaries=True,
    )
    made.commit(made.data_file([(0, 3)], partition=(3,)), with_summaries=True)
    return made


def counts(builder: TableBuilder, filter: str | None = None) -> PlanCounts:
    bound = TRUE if filter is None else bind(parse_filter(filter), SCHEMA)
    snapshot = builder.metadata.current_snapshot()
    return plan_files(builder.io, builder.metadata, snapshot, SCHEMA, bound).counts


def test_without_a_filter_everything_is_kept(builder: TableBuilder) -> None:
    assert counts(builder) == PlanCounts(
        data_manifests=ManifestCounts(listed=2, read=2), files=FileCounts(kept=5)
    )


def test_each_file_is_counted_where_it_is_skipped(builder: TableBuilder) -> None:
    assert counts(builder, "day = 1 and id > 9") == PlanCounts(
        data_manifests=ManifestCounts(listed=2, read=1, by_summaries=1),
        files=FileCounts(kept=1, by_summaries=1, by_partition=2, by_metrics=1),
    )


def test_files_without_rows_are_counted_apart(builder: TableBuilder) -> None:
    builder.commit(replace(builder.data_file([(0, 3)], partition=(3,)), record_count=0))
    assert counts(builder).files == FileCounts(kept=5, empty=1)


def test_manifests_of_deletes_are_counted_apart(builder: TableBuilder) -> None:
    builder.commit(builder.equality_deletes(["id"], [(0,)], partition=(1,)), with_summaries=True)
    found = counts(builder, "day = 2")
    assert found.delete_manifests == ManifestCounts(listed=1, read=0, by_summaries=1)
    assert found.files.by_summaries == 1


def test_nothing_is_read_for_a_filter_that_selects_nothing(builder: TableBuilder) -> None:
    assert counts(builder, "false") == PlanCounts()


def test_a_list_without_counts_does_not_say_how_many_files_were_skipped() -> None:
    manifests = [ManifestFile(name, 1, 0, ManifestContent.DATA) for name in ("a", "b")]
    found = count_plan(manifests, manifests[:1], [FileCounts(kept=1)])
    assert found.data_manifests == ManifestCounts(listed=2, read=1, by_summaries=1)
    assert found.files == FileCounts(kept=1, by_summaries=None)
