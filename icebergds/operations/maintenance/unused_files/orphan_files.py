"""Says which orphan files were found and removed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from icebergds.display import block, counted, html_table, size_text


@dataclass(frozen=True, slots=True, repr=False)
class OrphanFiles:
    """The files that nothing in a table refers to.

    Attributes:
        orphan_file_locations: the orphan files; with the option `stream-results` only some.
        orphan_files_count: how many there are.
        orphan_bytes_count: their sizes together, as far as they are known; those of a `file_list`
            are not.
        deleted_files_count: how many of them were deleted; 0 in a dry run.
        failed_deletes: why others could not be deleted, by location.
        undated_files_count: further files that nothing refers to, but whose age the storage does
            not tell, so that they are never deleted.
        examined_files_count: how many files were listed, or given as a list.
        dry_run: whether nothing was to be deleted.
    """

    orphan_file_locations: tuple[str, ...] = ()
    orphan_files_count: int = 0
    orphan_bytes_count: int = 0
    deleted_files_count: int = 0
    failed_deletes: Mapping[str, str] = field(default_factory=dict)
    undated_files_count: int = 0
    examined_files_count: int = 0
    dry_run: bool = False

    def __repr__(self) -> str:
        return block(f"OrphanFiles: {self._summary()}", self.orphan_file_locations, "file")

    def _repr_html_(self) -> str:
        rows = [(path, self.failed_deletes.get(path, "")) for path in self.orphan_file_locations]
        header = ("orphan_file_location", "not deleted because")
        return html_table(f"Orphan files: {self._summary()}", header, rows, "file")

    def _summary(self) -> str:
        size = f" ({size_text(self.orphan_bytes_count)})" if self.orphan_bytes_count else ""
        found = (
            f"{counted(self.orphan_files_count, 'orphan')}{size} among "
            f"{counted(self.examined_files_count, 'file')}"
        )
        told = [found]
        if self.dry_run:
            told.append("nothing deleted (dry run)")
        elif self.orphan_files_count:
            told.append(f"{self.deleted_files_count:,} deleted")
        if self.failed_deletes:
            told.append(f"{len(self.failed_deletes):,} could not be deleted")
        if self.undated_files_count:
            told.append(f"{self.undated_files_count:,} more of unknown age kept")
        return ", ".join(told)
