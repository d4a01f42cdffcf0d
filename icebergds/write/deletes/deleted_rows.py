"""Collects the positions of the rows that a task deletes, by data file."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from icebergds.errors import InvalidDataError
from icebergds.formats.deletes.position_deletes import positions_by_path
from icebergds.formats.deletes.positions import PositionCollector, PositionSet
from icebergds.write.deletes.data_file_names import DataFileNames

REPEATED = "more than one row of the source"
"""Part of the error message if a row is given twice."""


class DeletedRows:
    """Collects deleted positions by data file; each position may be given only once.

    Args:
        table: the table, for messages.
    """

    def __init__(self, table: str) -> None:
        self._table = table
        self._by_name: dict[str, PositionCollector] = {}

    def add(self, paths: pa.Array, positions: pa.Array) -> None:
        """Adds rows to delete.

        Args:
            paths: names of their data files, without nulls.
            positions: the positions of the rows in these files.

        Raises:
            InvalidDataError: a position is null or negative.
        """
        if not len(paths):
            return
        if positions.null_count:
            raise InvalidDataError(
                f"table {self._table}: {positions.null_count} rows to delete have a data file but "
                "no position"
            )
        numbers = positions.to_numpy()
        if numbers.min() < 0:
            raise InvalidDataError(
                f"table {self._table}: a row to delete has the negative position {numbers.min()}"
            )
        for name, part in positions_by_path(paths, numbers):
            self._by_name.setdefault(name, PositionCollector()).add(part)

    def result(self, names: DataFileNames) -> Mapping[str, PositionSet]:
        """The deleted positions by data file, in the order of paths.

        Args:
            names: finds the data files by the names in the rows.

        Raises:
            InvalidDataError: a row was given twice, or a data file is unknown.
        """
        by_path: dict[str, list[PositionCollector]] = {}
        for name, collector in self._by_name.items():
            by_path.setdefault(names.path_of(name), []).append(collector)
        found = {}
        for path in sorted(by_path):
            collectors = by_path[path]
            positions = PositionSet.union([collector.result() for collector in collectors])
            found[path] = positions
            repeated = sum(collector.added for collector in collectors) - len(positions)
            if repeated:
                raise InvalidDataError(
                    f"table {self._table}: a row of the table matches {REPEATED} ({repeated} "
                    f"times in {path}); make the source's rows unique in the columns that are "
                    "matched"
                )
        return found
