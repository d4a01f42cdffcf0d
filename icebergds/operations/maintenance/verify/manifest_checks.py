"""Compares manifests with what manifest lists say of them: counts, summaries, sequence numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from icebergds.commit.new_manifests import column_summaries
from icebergds.errors import FormatError
from icebergds.formats.manifests.columns import EntryColumns
from icebergds.operations.maintenance.verify.findings import (
    REPAIR,
    Finding,
    FindingKind,
    Severity,
    of_the_past,
)
from icebergds.operations.maintenance.verify.walk import WalkedManifest
from icebergds.spec.manifest import FieldSummary, ManifestEntryStatus, ManifestFile
from icebergds.spec.transforms import IdentityTransform, to_human
from icebergds.spec.types import UNKNOWN, IcebergType, NestedField
from icebergds.spec.values.binary import from_bytes

_SKIPPED = "engines that plan by these counts leave its files out or count them wrongly"
_PRUNED = "filters on the partition leave the manifest out, and lose its rows"


def check_manifest(manifest: WalkedManifest) -> Iterator[Finding]:
    """What manifest lists say wrongly of a manifest."""
    columns, live = manifest.columns, manifest.live()
    for listed in manifest.listed:
        found = [*_counts(listed, columns)]
        if len(live):
            found += [*_summaries(listed, live), *_sequence_numbers(listed, live)]
        yield from found if listed in manifest.of_heads else map(of_the_past, found)
    length = next((m.manifest_length for m in manifest.listed), 0)
    if length != manifest.length:
        yield Finding(
            FindingKind.FILE_SIZE,
            manifest.path,
            "manifest_length",
            f"{length:,} bytes",
            f"{manifest.length:,} bytes",
            "readers that rely on the length fail or read it in part",
            REPAIR,
            is_repairable=True,
            severity=Severity.NOTE,
        )
    yield from _unknown_counts(live)


def _counts(listed: ManifestFile, columns: EntryColumns) -> Iterator[Finding]:
    for kind in ManifestEntryStatus:
        name, of_kind = kind.name.lower(), columns.status == kind.value
        rows = int(columns.record_count[of_kind].sum())
        # Readers rely on those of live files only, and several writers get the others wrong.
        is_live = kind is not ManifestEntryStatus.DELETED
        for field, found in (
            (f"{name}_files_count", int(of_kind.sum())),
            (f"{name}_rows_count", rows),
        ):
            recorded = getattr(listed, field)
            if recorded is None or recorded == found:
                continue
            yield Finding(
                FindingKind.MANIFEST_COUNTS,
                listed.manifest_path,
                field,
                f"{recorded:,}",
                f"{found:,}",
                _SKIPPED if is_live else "no row depends on it",
                REPAIR,
                is_repairable=True,
                severity=Severity.FAULT if is_live else Severity.NOTE,
            )


def _unknown_counts(live: EntryColumns) -> Iterator[Finding]:
    for at in np.flatnonzero(live.record_count < 0).tolist():
        yield Finding(
            FindingKind.RECORD_COUNT,
            live.file_path[at].as_py(),
            "record_count",
            f"{live.record_count[at]:,}",
            None,
            "counts that engines take from metadata are wrong",
            "verify by rows with repair=True",
            severity=Severity.NOTE,
        )


def _summaries(listed: ManifestFile, live: EntryColumns) -> Iterator[Finding]:
    fields = live.partition_type.fields
    if not listed.partitions:
        return
    if len(listed.partitions) != len(fields):
        yield _summary_finding(
            listed, "partitions", f"{len(listed.partitions)} summaries", f"{len(fields)} fields"
        )
        return
    found = column_summaries(live.partition_type, live.partition)
    for field, recorded, actual in zip(fields, listed.partitions, found, strict=True):
        yield from _summary(listed, field, recorded, actual)


def _summary(
    listed: ManifestFile, field: NestedField, recorded: FieldSummary, actual: FieldSummary
) -> Iterator[Finding]:
    if actual.contains_null and not recorded.contains_null:
        yield _summary_finding(listed, field.name, "contains no null", "nulls")
    if actual.contains_nan and recorded.contains_nan is False:
        yield _summary_finding(listed, field.name, "contains no NaN", "NaN")
    if field.field_type == UNKNOWN:
        return
    for said, bound, is_lower in (
        (recorded.lower_bound, actual.lower_bound, True),
        (recorded.upper_bound, actual.upper_bound, False),
    ):
        if said is None or bound is None:
            continue
        value = from_bytes(field.field_type, bound)
        try:
            limit = from_bytes(field.field_type, said)
        except FormatError:
            yield _summary_finding(
                listed, field.name, f"0x{said.hex()}", _shown(field.field_type, value)
            )
            continue
        # NaN as a bound prunes nothing.
        if limit > value if is_lower else limit < value:
            what = "from" if is_lower else "to"
            yield _summary_finding(
                listed,
                field.name,
                f"{what} {_shown(field.field_type, limit)}",
                f"{what} {_shown(field.field_type, value)}",
            )


def _summary_finding(listed: ManifestFile, field: str, recorded: str, found: str) -> Finding:
    return Finding(
        FindingKind.PARTITION_SUMMARY,
        listed.manifest_path,
        field,
        recorded,
        found,
        _PRUNED,
        REPAIR,
        is_repairable=True,
    )


def _sequence_numbers(listed: ManifestFile, live: EntryColumns) -> Iterator[Finding]:
    least, greatest = int(live.data_sequence_number.min()), int(live.data_sequence_number.max())
    if listed.min_sequence_number > least:
        yield Finding(
            FindingKind.SEQUENCE_NUMBERS,
            listed.manifest_path,
            "min_sequence_number",
            f"{listed.min_sequence_number:,}",
            f"{least:,}",
            "engines that skip manifests by it miss files that deletes apply to",
            REPAIR,
            is_repairable=True,
        )
    if greatest > listed.sequence_number:
        at = int(live.data_sequence_number.argmax())
        yield Finding(
            FindingKind.SEQUENCE_NUMBERS,
            live.file_path[at].as_py(),
            "sequence_number",
            f"{greatest:,}",
            f"{listed.sequence_number:,} of its manifest",
            "deletes of later commits do not apply to it, or it deletes rows that came later",
            "write the rows of the file anew",
        )
    if (late := live.data_sequence_number > live.file_sequence_number).any():
        at = int(np.flatnonzero(late)[0])
        yield Finding(
            FindingKind.SEQUENCE_NUMBERS,
            live.file_path[at].as_py(),
            "file_sequence_number",
            f"{live.file_sequence_number[at]:,}",
            f"data sequence number {live.data_sequence_number[at]:,}",
            "the file counts as newer than the commit that added it, so that deletes may not apply",
            "write the rows of the file anew",
            severity=Severity.NOTE,
        )


def _shown(field_type: IcebergType, value: Any) -> str:
    return to_human(IdentityTransform(), field_type, value)
