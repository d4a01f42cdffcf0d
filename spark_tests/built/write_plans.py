"""Plans small writes to local directories, without a table, and reads what they wrote."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from icebergds.formats.arrow.types import schema_to_arrow
from icebergds.formats.data_file.write_properties import WriteProperties
from icebergds.io.fileio import FileIO
from icebergds.spec.manifest import DataFile
from icebergds.spec.partition import PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.sort import SortOrder
from icebergds.write.locations import LocationProvider
from icebergds.write.rows.matching import plan_matching
from icebergds.write.task import WritePlan, plan_write, write_batches

OPERATION = "0d1f4a52-6d5c-4d5b-9a5e-3c8f1f7e2b10"


def plan_of(
    location: Path,
    schema: Schema,
    *,
    spec: PartitionSpec | None = None,
    sort_order: SortOrder | None = None,
    target_file_size: int = 512 * 1024 * 1024,
    **more: Any,
) -> WritePlan:
    order = sort_order or SortOrder()
    return plan_write(
        plan_matching(schema_to_arrow(schema), schema, table="db.t"),
        io=FileIO(),
        locations=LocationProvider.of(str(location), {}),
        spec=spec or PartitionSpec(),
        sort_order=order,
        target_file_size=target_file_size,
        properties=WriteProperties.of({}, schema, order),
        operation_id=OPERATION,
        **more,
    )


def write(plan: WritePlan, *batches: pa.RecordBatch, partition_id: int = 0) -> list[DataFile]:
    return write_batches(plan, batches, partition_id=partition_id, attempt_id=0)


def rows_of(files: Iterable[DataFile]) -> list[dict[str, Any]]:
    """The rows of Parquet files, one file after the other."""
    return [row for file in files for row in pq.ParquetFile(file.file_path).read().to_pylist()]


def files_under(location: Path) -> list[str]:
    return sorted(str(path) for path in location.rglob("*") if path.is_file())
