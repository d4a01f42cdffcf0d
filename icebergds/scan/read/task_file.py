"""Opens the data file of a scan task."""

from __future__ import annotations

from contextlib import AbstractContextManager

from icebergds.formats.data_reader import DataFileReader, open_data_file
from icebergds.formats.wrong_counts import Recorded
from icebergds.scan.read_plan import ReadPlan
from icebergds.scan.tasks import FileScanTask


def open_task_file(plan: ReadPlan, task: FileScanTask) -> AbstractContextManager[DataFileReader]:
    """Opens a task's file to read what the plan needs.

    Raises:
        CorruptFileError, MissingFileError: the file is damaged or missing.
        UnsupportedFeatureError: the file uses an unsupported feature.
    """
    return open_data_file(
        plan.io,
        task.file_path,
        task.file_format,
        table_schema=plan.table_schema,
        name_mapping=plan.name_mapping,
        recorded=Recorded(
            task.record_count, task.file_size_in_bytes, plan.wrong_counts, task.bounds
        ),
        key_metadata=task.key_metadata,
    )
