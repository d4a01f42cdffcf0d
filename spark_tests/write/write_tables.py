"""Plans of small writes to local directories, and the rows of what was written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from icebergds.formats.arrow.types import schema_to_arrow, to_array
from icebergds.formats.data_file.write_properties import WriteProperties
from icebergds.io.fileio import FileIO
from icebergds.spec.manifest import DataFile
from icebergds.spec.partition import PartitionField, PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.sort import SortOrder
from icebergds.spec.transforms import Transform
from icebergds.write.locations import LocationProvider
from icebergds.write.rows.matching import plan_matching
from icebergds.write.task import WritePlan, plan_write, write_batches

OPERATION = "0d1f4a52-6d5c-4d5b-9a5e-3c8f1f7e2b10"


def spec_of(*fields: tuple[int, Transform], spec_id: int = 3) -> PartitionSpec:
    """A spec of transforms of source columns."""
    return PartitionSpec(
        spec_id,
        tuple(
            PartitionField((source,), 1000 + at, transform, f"p{at}")
            for at, (source, transform) in enumerate(fields)
        ),
    )


def plan_of(
    location: Path,
    schema: Schema,
    *,
    properties: Mapping[str, str] | None = None,
    spec: PartitionSpec | None = None,
    sort_order: SortOrder | None = None,
    target_file_size: int = 512 * 1024 * 1024,
    **more: Any,
) -> WritePlan:
    order = sort_order or SortOrder()
    return plan_write(
        plan_matching(schema_to_arrow(schema), schema, table="db.t"),
        io=FileIO(),
        locations=LocationProvider.of(str(location), properties or {}),
        spec=spec or PartitionSpec(),
        sort_order=order,
        target_file_size=target_file_size,
        properties=WriteProperties.of(properties or {}, schema, order),
        operation_id=OPERATION,
        **more,
    )


def batch_of(schema: Schema, rows: Sequence[Sequence[Any]]) -> pa.RecordBatch:
    """A batch of in-memory values, a tuple a row."""
    arrays = [
        to_array(field.field_type, [row[at] for row in rows])
        for at, field in enumerate(schema.fields)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema_to_arrow(schema))


def write(plan: WritePlan, *batches: pa.RecordBatch, partition_id: int = 0) -> list[DataFile]:
    return write_batches(plan, batches, partition_id=partition_id, attempt_id=0)


def rows_of(files: Iterable[DataFile]) -> list[dict[str, Any]]:
    """The rows of Parquet files, one file after the other."""
    return [row for file in files for row in pq.ParquetFile(file.file_path).read().to_pylist()]


def files_under(location: Path) -> list[str]:
    return sorted(str(path) for path in location.rglob("*") if path.is_file())
