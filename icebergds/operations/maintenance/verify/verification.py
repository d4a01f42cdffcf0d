"""Defines the result of a verification, and shows it as text or HTML."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from textwrap import wrap

from icebergds.display import WIDTH, counted, html_table, printable, size_text
from icebergds.operations.maintenance.verify.findings import Depth, Finding, FindingKind, Severity

_INDENT = 11
_ROOM = WIDTH - _INDENT
_MOST_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Looked:
    """What a verification looked at.

    Attributes:
        snapshots: all that the table keeps.
        manifests: of all these snapshots, each once.
        files: data files, delete files and deletion vectors of all these snapshots, each once.
        files_opened: how many of them were opened; none at depth `metadata`.
        bytes: the size of the data and delete files.
        seconds: how long it took.
    """

    snapshots: int = 0
    manifests: int = 0
    files: int = 0
    files_opened: int = 0
    bytes: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Orphans:
    """Files in the table's directories that no kept snapshot refers to.

    Attributes:
        locations: of those that are old enough to be removed, at most 1,000.
        count, bytes: of all that are old enough.
        young: how many are younger than three days; a write that is not committed yet may need
            them.
        skipped: why no orphans were looked for; None if they were.
    """

    locations: tuple[str, ...] = ()
    count: int = 0
    bytes: int = 0
    young: int = 0
    skipped: str | None = None


@dataclass(frozen=True, slots=True)
class TableVerification:
    """What a verification of a table found; `str` shows it as text.

    Attributes:
        table: its name.
        depth: how deep it looked.
        findings: faults first.
        looked: what was looked at.
        orphans: files that nothing refers to, which are no finding.
        repaired: how many findings a repair mended; they are among `findings`.
        snapshot_id: of the commit of the repair; None if there was none.
    """

    table: str
    depth: Depth
    findings: tuple[Finding, ...]
    looked: Looked
    orphans: Orphans = field(default_factory=Orphans)
    repaired: int = 0
    snapshot_id: int | None = None

    @property
    def is_sound(self) -> bool:
        """Whether nothing was found that makes a reader fail or return wrong rows."""
        return not any(finding.severity is Severity.FAULT for finding in self.findings)

    @property
    def repairable(self) -> int:
        """How many findings `repair` mends."""
        return sum(finding.is_repairable for finding in self.findings)

    def by_kind(self) -> Mapping[FindingKind, int]:
        """How many findings there are of each kind."""
        return Counter(finding.kind for finding in self.findings)

    def __str__(self) -> str:
        lines = ["== Iceberg Verification =="]
        for name, texts in self._lines():
            wrapped = [line for text in texts for line in wrap(printable(text), _ROOM)]
            lines += [
                f"{'' if index else name:<{_INDENT}}{text}" for index, text in enumerate(wrapped)
            ]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        title = f"Verification of {self.table} by {self.depth}"
        summary = html_table(title, (), [(name, "\n".join(texts)) for name, texts in self._told()])
        if not self.findings:
            return summary
        header = ("kind", "file", "field", "recorded", "found", "effect", "remedy")
        rows = [
            (
                f"{finding.severity} {finding.kind}",
                finding.file,
                finding.field or "",
                finding.recorded or "",
                finding.found or "",
                finding.effect,
                finding.remedy,
            )
            for finding in self.findings
        ]
        return summary + html_table("Findings", header, rows, "finding")

    def _lines(self) -> Iterator[tuple[str, list[str]]]:
        yield from self._told()
        for number, finding in enumerate(self.findings[:_MOST_SHOWN], start=1):
            yield f"{number}", [str(finding)]
        if (more := len(self.findings) - _MOST_SHOWN) > 0:
            yield "", [f"… {counted(more, 'more finding')}"]

    def _told(self) -> Iterator[tuple[str, list[str]]]:
        looked = self.looked
        yield "table", [f"{printable(self.table, 60)}, by {self.depth}"]
        opened = f", {looked.files_opened:,} opened" if self.depth.reads_footers else ""
        yield (
            "looked at",
            [
                f"{counted(looked.snapshots, 'snapshot')}, {counted(looked.manifests, 'manifest')},"
                f" {counted(looked.files, 'file')} of {size_text(looked.bytes)}{opened}; "
                f"{looked.seconds:,.1f} s"
            ],
        )
        yield "orphans", [_orphans(self.orphans)]
        yield "findings", list(self._findings())

    def _findings(self) -> Iterator[str]:
        if not self.findings:
            yield "none: the table is sound"
            return
        harmful = sum(finding.severity is Severity.FAULT for finding in self.findings)
        kinds = self.by_kind()
        known = "what was verified" if FindingKind.UNVERIFIED_FILE in kinds else "the table"
        sound = "" if harmful else f"; {known} is sound"
        yield (
            f"{counted(harmful, 'fault')} and {counted(len(self.findings) - harmful, 'note')}"
            f"{sound}: {', '.join(f'{kind} {number:,}' for kind, number in kinds.items())}"
        )
        if self.snapshot_id is not None or self.repaired:
            at = "" if self.snapshot_id is None else f" by snapshot {self.snapshot_id}"
            yield f"{self.repaired:,} of them repaired{at}"
        elif self.repairable:
            yield f"repair=True mends {self.repairable:,} of them"


def _orphans(orphans: Orphans) -> str:
    if orphans.skipped is not None:
        return f"not looked for: {orphans.skipped}"
    young = f", and {orphans.young:,} younger than 3 days" if orphans.young else ""
    if not orphans.count:
        return f"none{young}"
    return f"{counted(orphans.count, 'file')}, {size_text(orphans.bytes)}{young}"
