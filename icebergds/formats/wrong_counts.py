"""Compares counts in metadata with those of files: a difference is an error or a warning."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from icebergds.display import counted
from icebergds.errors import CorruptFileError

_LOG = logging.getLogger(__name__)


class WrongCounts(StrEnum):
    """What a read does if a file has another count of rows or files than metadata says."""

    FAIL = "fail"
    WARN = "warn"

    def report(self, problem: str) -> None:
        """Raises an error or logs a warning, by the option `wrong-counts`.

        Args:
            problem: names the file, what it has, and what metadata says.

        Raises:
            CorruptFileError: this is `FAIL`.
        """
        if self is WrongCounts.WARN:
            _LOG.warning("%s; it is read as it is", problem)
            return
        raise CorruptFileError(
            f"{problem}. It is damaged or was replaced, or its writer recorded a wrong number; if "
            "the file is known to be whole, read it with option('wrong-counts', 'warn')"
        )


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a manifest says of a data or delete file, to compare with the file.

    Attributes:
        record_count: negative if the writer did not know it, as imports of Avro files once did.
        file_size_in_bytes: tools that move tables rewrite files and keep the sizes in manifests, so
            another size is only a warning.
        bounds: lower and upper bounds of timestamp columns by field id, as far as they are known.
    """

    record_count: int
    file_size_in_bytes: int
    wrong_counts: WrongCounts = WrongCounts.FAIL
    bounds: tuple[tuple[int, bytes, bytes], ...] = ()

    def check(self, location: str, num_rows: int, size: int) -> None:
        """Compares the file's number of rows and its size in bytes.

        Raises:
            CorruptFileError: it has another number of rows, and `wrong_counts` is `FAIL`.
        """
        rows = (num_rows if self.record_count < 0 else self.record_count, num_rows, "row")
        size_in_bytes = (self.file_size_in_bytes, size, "byte")
        if rows[0] != num_rows:
            said = differences((rows, size_in_bytes))
            self.wrong_counts.report(f"{location}: its manifest says {said}")
        elif size != self.file_size_in_bytes:
            _LOG.warning(
                "%s: its manifest says %s. Unless a tool rewrote it, it is damaged or was replaced",
                location,
                differences((size_in_bytes,)),
            )

    def check_bounds(self, location: str, outside: Iterable[str]) -> None:
        """Logs a warning, once in a process, of columns with values outside of their bounds.

        Filters lose such rows before the file is opened, so that a read cannot mend it.

        Args:
            outside: the columns, with the range of their values and their bounds.
        """
        for column in outside:
            _warn_of_bounds(location, column)


@lru_cache(maxsize=1024)
def _warn_of_bounds(location: str, column: str) -> None:
    _LOG.warning(
        "%s: its manifest has wrong bounds of %s. Filters on the column lose rows, in every "
        "engine; write the rows of the file anew",
        location,
        column,
    )


def differences(pairs: Iterable[tuple[int, int, str]]) -> str:
    """The numbers that differ, such as `3 rows; it has 2 rows`.

    Args:
        pairs: the recorded number, the true one, and what is counted, in the singular.
    """
    differing = [pair for pair in pairs if pair[0] != pair[1]]
    said = ", ".join(counted(number, what) for number, _, what in differing)
    found = ", ".join(counted(number, what) for _, number, what in differing)
    return f"{said}; it has {found}"
