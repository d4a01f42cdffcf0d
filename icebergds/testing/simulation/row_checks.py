"""Compares rows and their ids with those of the model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from icebergds.spec.metadata import TableMetadata
from icebergds.spec.snapshot import Snapshot
from icebergds.testing.simulation.rows import CORE, ModelSnapshot, Rows


def core_of(rows: Rows) -> Iterator[tuple[Any, ...]]:
    return ((row[CORE.key], row[CORE.group], row[CORE.value]) for row in rows.values())


def differences(given: list[Any], wanted: list[Any], names: list[str]) -> str:
    extra, missing = list(given), []
    for row in wanted:
        if row in extra:
            extra.remove(row)
        else:
            missing.append(row)
    return (
        f"columns {names}; {len(missing)} missing {missing[:4]}, {len(extra)} too many {extra[:4]}"
    )


def wrong_ids(
    metadata: TableMetadata, snapshot: Snapshot, lineage: Mapping[int, tuple[int, int]]
) -> Iterator[str]:
    ids = [row_id for row_id, _ in lineage.values()]
    if None in ids:
        yield "some are null"
        return
    if len(set(ids)) < len(ids):
        yield "some are not unique"
    if ids and max(ids) >= metadata.next_row_id:
        yield f"{max(ids)} is not below the next row id {metadata.next_row_id}"
    if any(
        updated is None or updated > snapshot.sequence_number for _, updated in lineage.values()
    ):
        yield "a row was updated by a later commit, or by none"


def changed_ids(
    snapshot: Snapshot,
    model: ModelSnapshot,
    before: Mapping[int, tuple[int, int]],
    lineage: Mapping[int, tuple[int, int]],
    *,
    keeps: bool,
) -> Iterator[str]:
    first = snapshot.first_row_id or 0
    for key, (row_id, updated) in lineage.items():
        old = before.get(key)
        if key not in model.written:
            if old is not None and old != (row_id, updated):
                yield f"row {key} was not written, but went from {old} to {(row_id, updated)}"
            continue
        if updated != snapshot.sequence_number:
            yield f"row {key} was written, but was updated by {updated}"
        is_kept = old is not None and old[0] == row_id
        if not is_kept and (row_id < first or (keeps and old is not None)):
            yield f"row {key} got the id {row_id}, before {old}; new ones begin at {first}"
