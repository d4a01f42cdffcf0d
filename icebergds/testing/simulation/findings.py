"""Defines what an audit finds: the kinds of findings, and one finding."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class FindingKind(StrEnum):
    """What is wrong."""

    LOST_COMMIT = "lost commit"
    COMMITTED_TWICE = "committed twice"
    COMMITTED_IN_PART = "committed in part"
    COMMITTED_AFTER_FAILURE = "committed although it failed"
    UNKNOWN_SNAPSHOT = "snapshot of nobody"
    WRONG_ROWS = "wrong rows"
    WRONG_SUM = "wrong sum"
    ROW_IDS = "row ids"
    SEQUENCE_NUMBERS = "sequence numbers"
    METADATA_LOG = "metadata log"
    CHANGE_FEED = "change feed"
    UNREADABLE = "unreadable"
    MISSING_FILE = "missing file"
    LEFT_OVER_FILE = "file left over"
    VERIFICATION = "verification"
    UNEXPECTED_ERROR = "unexpected error"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that must not be.

    Attributes:
        step: the step in which it was found; the one that did it, if the message says no other.
    """

    kind: FindingKind
    step: int
    message: str

    def __str__(self) -> str:
        return f"{self.kind} at step {self.step}: {self.message}"
