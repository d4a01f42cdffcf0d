"""Tables with position deletes, committed one by one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from built.commit_tables import BY_DAY, IMPATIENT, SCHEMA
from built.contents import live_entries
from built.tables import TableBuilder

from icebergds import RewrittenPositionDeletes, load_table
from icebergds.api.table import Table
from icebergds.spec.manifest import DataFile, FileContent, ManifestEntry

ALL = {"rewrite-all": "true"}


class Days:
    """A table of days, each with two data files of three rows; deletes are committed one by one."""

    def __init__(self, location: Path, version: int = 2, days: int = 2, **named: str) -> None:
        properties = {name.replace("__", ".").replace("_", "-"): v for name, v in named.items()}
        self.builder = TableBuilder(
            location, SCHEMA, spec=BY_DAY, properties=IMPATIENT | properties
        )
        self.data = {
            (day, at): self.builder.data_file(
                [(100 * day + 10 * at + row, day) for row in range(3)], partition=(day,)
            )
            for day in range(1, days + 1)
            for at in (0, 1)
        }
        self.builder.commit(*self.data.values(), with_summaries=True)
        if version == 3:
            self.builder.upgrade(3)

    def delete(self, day: int, *places: tuple[int, int]) -> DataFile:
        """Deletes rows, each named by its data file and its position."""
        positions: dict[str, list[int]] = {}
        for at, position in places:
            positions.setdefault(self.data[day, at].file_path, []).append(position)
        return self.add(self.builder.position_deletes(positions, partition=(day,)))

    def vector(self, day: int, at: int, *positions: int) -> DataFile:
        (vector,) = self.builder.deletion_vectors([(self.data[day, at], positions)])
        return self.add(vector)

    def add(self, file: DataFile, **commit: Any) -> DataFile:
        self.builder.commit(file, operation="delete", with_summaries=True, **commit)
        return file

    def remove(self, *files: DataFile, operation: str = "delete") -> None:
        self.builder.commit(removed=files, operation=operation, with_summaries=True)

    @property
    def table(self) -> Table:
        return load_table(self.builder.location)

    def ids(self) -> list[int]:
        return sorted(self.table.scan(columns="id").to_arrow()["id"].to_pylist())

    def rewrite(self, where: str | None = None, **options: str) -> RewrittenPositionDeletes:
        """Rewrites, and checks that rows stay as they are."""
        table, before = self.table, self.ids()
        named = {name.replace("__", ".").replace("_", "-"): v for name, v in options.items()}
        done = table.rewrite_position_delete_files(where, options=named or ALL)
        assert self.ids() == before
        return done

    def positions(self) -> dict[str, list[tuple[str, int]]]:
        """The rows of each live position delete file, by its path."""
        found = {}
        for entry in position_deletes_of(self.table):
            rows = pq.read_table(entry.data_file.file_path).to_pylist()
            found[entry.data_file.file_path] = [(row["file_path"], row["pos"]) for row in rows]
        return found


def position_deletes_of(table: Table) -> list[ManifestEntry]:
    """The live position delete files and deletion vectors of a table."""
    entries = live_entries(table)
    return [e for e in entries if e.data_file.content is FileContent.POSITION_DELETES]
