"""Defines what a verification finds: the kinds of findings, and one finding."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from icebergds.display import printable


class Depth(StrEnum):
    """How deep a verification looks; each depth includes the ones before it."""

    METADATA = "metadata"
    FOOTERS = "footers"
    ROWS = "rows"

    @property
    def reads_footers(self) -> bool:
        return self is not Depth.METADATA

    @property
    def reads_rows(self) -> bool:
        return self is Depth.ROWS


class FindingKind(StrEnum):
    """What is wrong."""

    MISSING_FILE = "missing-file"
    DAMAGED_FILE = "damaged-file"
    UNVERIFIED_FILE = "unverified-file"
    FILE_SIZE = "file-size"
    MANIFEST_COUNTS = "manifest-counts"
    PARTITION_SUMMARY = "partition-summary"
    SNAPSHOT_TOTALS = "snapshot-totals"
    SNAPSHOT_CHANGES = "snapshot-changes"
    SEQUENCE_NUMBERS = "sequence-numbers"
    ROW_IDS = "row-ids"
    DUPLICATE_FILE = "duplicate-file"
    RECORD_COUNT = "record-count"
    BOUNDS = "bounds"
    VALUE_COUNTS = "value-counts"
    COLUMN_SIZES = "column-sizes"
    SPLIT_OFFSETS = "split-offsets"
    FILE_COLUMNS = "file-columns"
    DANGLING_DELETES = "dangling-deletes"
    DELETE_ENTRY = "delete-entry"
    DELETE_POSITIONS = "delete-positions"
    STATISTICS_FILE = "statistics-file"


class Severity(StrEnum):
    """Whether a finding harms readers.

    With a `FAULT`, some reader returns wrong rows, or fails. A `NOTE` costs time or space, or is a
    wrong figure that no row depends on.
    """

    FAULT = "fault"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that a table's metadata says, and that is not so.

    Attributes:
        file: the location of the file that it is about, as in metadata.
        field: the column's name, or the field of the metadata; None for the whole file.
        recorded: what the metadata says, as text; None if it says nothing.
        found: what is so, as text; None if nothing was found.
        effect: what a reader does wrong.
        remedy: what to do.
        is_repairable: whether `verify(..., repair=True)` mends it.
    """

    kind: FindingKind
    file: str
    field: str | None
    recorded: str | None
    found: str | None
    effect: str
    remedy: str
    is_repairable: bool = False
    severity: Severity = Severity.FAULT

    def __str__(self) -> str:
        field = "" if self.field is None else f", {printable(self.field, 60)}"
        what = f"{printable(self.file)}{field}"
        said = [
            f"{word} {printable(text, 400)}"
            for word, text in (("recorded", self.recorded), ("found", self.found))
            if text is not None
        ]
        told = f": {', '.join(said)}" if said else ""
        return f"{self.severity} {self.kind}: {what}{told}; {self.effect}; {self.remedy}"


REPAIR = "run verify with repair=True"
"""The remedy of what `repair` mends."""

EXPIRE = "restore the file, or expire the snapshots that list it"


def of_the_past(finding: Finding) -> Finding:
    """A finding about snapshots that no branch or tag has: it concerns only time travel."""
    return replace(
        finding,
        effect=f"only in snapshots that no branch or tag has: {finding.effect}",
        remedy="expire the snapshots",
        is_repairable=False,
        severity=Severity.NOTE,
    )
