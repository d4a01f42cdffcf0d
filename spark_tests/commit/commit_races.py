"""A table that one operation has read, and what others commit before it does."""

from __future__ import annotations

from pathlib import Path

from built.commit_tables import BY_DAY, SCHEMA, CommitTable, open_table
from built.tables import TableBuilder

from icebergds.spec.manifest import DataFile


class Race:
    """A table of days 1 and 2, a snapshot that was read, and what others commit after it."""

    def __init__(self, location: Path, format_version: int = 2) -> None:
        self.builder = TableBuilder(location, SCHEMA, spec=BY_DAY, format_version=format_version)
        self.data = {day: self._data(day) for day in (1, 2)}
        self.read_at = self.builder.commit(*self.data.values(), with_summaries=True)

    def _data(self, day: int) -> DataFile:
        return self.builder.data_file([(day, day), (day + 10, day)], partition=(day,))

    def append(self, day: int) -> None:
        self.builder.commit(self._data(day), with_summaries=True)

    def delete_rows(self, day: int) -> None:
        deletes = self.builder.position_deletes({self.data[day].file_path: [0]}, partition=(day,))
        self.builder.commit(deletes, operation="delete", with_summaries=True)

    def delete_keys(self, day: int) -> None:
        deletes = self.builder.equality_deletes(["id"], [(day,)], partition=(day,))
        self.builder.commit(deletes, operation="delete", with_summaries=True)

    def remove_file(self, day: int) -> None:
        self.builder.commit(removed=[self.data[day]], operation="delete", with_summaries=True)

    def compact(self, day: int) -> None:
        new = self._data(day)
        self.builder.commit(new, removed=[self.data[day]], operation="replace", with_summaries=True)

    @property
    def table(self) -> CommitTable:
        return open_table(self.builder.location)
