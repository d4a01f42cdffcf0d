"""Tasks of metadata tables: how the manifests are parted."""

from __future__ import annotations

import pyarrow as pa
import pytest

from icebergds import Table, load_catalog
from icebergds.operations.metadata_tables.kinds import MetadataTable
from icebergds.operations.metadata_tables.plan import metadata_tasks, plan_metadata_table
from icebergds.operations.metadata_tables.tasks import ReadManifests
from icebergds.operations.read.options import parse_read_options

_MB = 1024 * 1024
_MANIFESTS = 20


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """Small manifests, each of which counts as 32 MB, which is as much as a task has."""
    catalog = load_catalog("lake", warehouse=str(tmp_path_factory.mktemp("lake")))
    catalog.create_namespace("db")
    properties = {
        "commit.manifest-merge.enabled": "false",
        "read.split.open-file-cost": str(32 * _MB),
    }
    table = catalog.create_table("db.t", "id bigint", properties=properties)
    for number in range(_MANIFESTS):
        table.append(pa.table({"id": [number]}))
    return table


def parts(table: Table, parallelism: int | None, **options: str) -> list[int]:
    """How many manifests each task has."""
    parsed = parse_read_options({name.replace("_", "-"): text for name, text in options.items()})
    plan = plan_metadata_table(MetadataTable.FILES, table._state, parsed)
    tasks = metadata_tasks(plan, parsed, parallelism)
    return [len(task.manifests) for task in tasks if isinstance(task, ReadManifests)]


@pytest.mark.parametrize(
    ("parallelism", "expected"),
    [
        (None, [1] * 20),
        (100, [1] * 20),
        (5, [2] * 10),
        # Not more than four times what a task has elsewhere.
        (1, [4] * 5),
    ],
)
def test_a_task_has_more_where_few_run_at_once(
    table: Table, parallelism: int | None, expected: list[int]
) -> None:
    assert parts(table, parallelism) == expected


def test_a_size_that_is_asked_for_is_kept(table: Table) -> None:
    assert parts(table, 1, split_size=str(64 * _MB)) == [2] * 10


def test_a_size_that_the_table_asks_for_is_kept(table: Table) -> None:
    with table.transaction() as changes:
        changes.set_properties(**{"read.split.metadata-target-size": str(64 * _MB)})
        assert parts(changes, 1) == [2] * 10
        changes.remove_properties("read.split.metadata-target-size")
