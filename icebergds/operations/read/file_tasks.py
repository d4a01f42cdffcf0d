"""Lists the files of a planned scan, as PyIceberg's `DataScan.plan_files` does."""

from __future__ import annotations

from dataclasses import dataclass

from icebergds.display import counted, printable
from icebergds.expr.sql_text import sql_text
from icebergds.operations.read.planned_scan import PlannedScan, residual_of
from icebergds.spec.manifest import DataFile


@dataclass(frozen=True, slots=True)
class FileScanTask:
    """A data file that a scan reads.

    Attributes:
        file: the data file; of its column metrics it has those that planning used.
        delete_files: the delete files that may delete rows of it.
        residual: the part of the scan's filter that the file's partition does not decide, as SQL;
            `TRUE` if it selects all rows.
    """

    file: DataFile
    delete_files: tuple[DataFile, ...]
    residual: str

    def __repr__(self) -> str:
        deletes = counted(len(self.delete_files), "delete file")
        return f"FileScanTask({self.file!r}, {deletes}, {printable(self.residual, 60)})"


def file_tasks(scan: PlannedScan) -> list[FileScanTask]:
    """The files of a planned scan, in the order of its manifests."""
    schema, residual_in = scan.plan.table_schema, residual_of(scan)
    tasks = []
    for planned in scan.files:
        data_file, deletes = planned.entry.data_file, planned.deletes
        entries = (*deletes.position_deletes, *deletes.equality_deletes)
        tasks.append(
            FileScanTask(
                data_file,
                tuple(entry.data_file for entry in entries),
                sql_text(residual_in(planned), schema),
            )
        )
    return tasks
