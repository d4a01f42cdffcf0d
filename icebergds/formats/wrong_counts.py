"""Compares counts in metadata with those of files: a difference is an error or a warning."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

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
    """

    record_count: int
    file_size_in_bytes: int
    wrong_counts: WrongCounts = WrongCounts.FAIL

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


def differences(pairs: Iterable[tuple[int, int, str]]) -> str:
    """The numbers that differ, such as `3 rows; it has 2 rows`.

    Args:
        pairs: the recorded number, the true one, and what is counted, in the singular.
    """
    differing = [pair for pair in pairs if pair[0] != pair[1]]
    said = ", ".join(counted(number, what) for number, _, what in differing)
    found = ", ".join(counted(number, what) for _, number, what in differing)
    return f"{said}; it has {found}"
