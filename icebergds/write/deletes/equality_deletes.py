"""Writes equality delete files (spec: Equality Delete Files)."""

from __future__ import annotations

import pyarrow as pa

from icebergds.formats.data_file.write_properties import WriteProperties
from icebergds.spec.manifest import DataFile, FileContent, FileFormat
from icebergds.spec.partition import PartitionSpec
from icebergds.write.deletes.keys import KeyPlan
from icebergds.write.files import FileKind, TaskAttempt, TaskFiles
from icebergds.write.rows.fanout import FanoutSettings, FanoutWriter
from icebergds.write.rows.partitioning import plan_partitioning


class EqualityDeleteWriter:
    """Writes equality delete files: the keys whose earlier rows are deleted.

    Args:
        attempt: the task attempt that writes the files.
        keys: the key columns.
        spec: the partition spec of the files; its source columns are keys.
        file_format: of the files.
        target_size: in bytes; a file is closed soon after it has reached it.
        properties: the table's write properties.
        table: the table, for messages.
    """

    def __init__(
        self,
        attempt: TaskAttempt,
        keys: KeyPlan,
        spec: PartitionSpec,
        file_format: FileFormat,
        target_size: int,
        properties: WriteProperties,
        *,
        table: str,
    ) -> None:
        self._partitioner = plan_partitioning(spec, keys.schema, table=table)
        kind = FileKind(
            keys.schema,
            spec,
            file_format,
            properties,
            FileContent.EQUALITY_DELETES,
            tuple(field.field_id for field in keys.fields),
        )
        self._writer = FanoutWriter(
            TaskFiles(attempt, kind), FanoutSettings(), target_size, order=None, sort=False
        )

    def write(self, keys: pa.RecordBatch) -> None:
        """Writes keys, as rows of the files."""
        for rows in self._partitioner.split(keys):
            self._writer.write(rows)

    def close(self) -> list[DataFile]:
        """Closes all files; returns them."""
        return self._writer.close()
