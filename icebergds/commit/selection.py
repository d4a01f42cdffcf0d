"""Defines selections of files to remove, and scopes in which concurrent commits conflict."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from icebergds.commit.base import CommitBase
from icebergds.formats.manifests.reader import (
    EntryColumns,
    read_manifest_columns,
    read_small_manifests,
)
from icebergds.spec.manifest import ManifestFile

Mask = npt.NDArray[np.bool_]


class Selection(Protocol):
    """Selects files of a table."""

    @property
    def stats_ids(self) -> frozenset[int]:
        """Field ids of the columns whose metrics must be read."""
        ...

    def may_select(self, manifest: ManifestFile) -> bool:
        """Whether a manifest may contain a selected file; False only if it certainly does not."""
        ...

    def select(self, columns: EntryColumns) -> Mask:
        """Marks the entries of a manifest whose files are selected.

        Raises:
            ValidationError: metadata does not prove whether some file is selected.
        """
        ...


class ConflictScope(Protocol):
    """The part of a table in which a concurrent commit is a conflict."""

    @property
    def stats_ids(self) -> frozenset[int]:
        """Field ids of the columns whose metrics must be read."""
        ...

    def may_select(self, manifest: ManifestFile) -> bool:
        """Whether a manifest may contain a file in scope; False only if it certainly does not."""
        ...

    def overlap(self, columns: EntryColumns) -> Mask:
        """Marks the entries whose files may have rows, or delete rows, in the scope."""
        ...


def read_columns(
    base: CommitBase,
    manifest: ManifestFile,
    stats_ids: Iterable[int] | None,
    *,
    live_only: bool = True,
) -> EntryColumns:
    """Reads the entries of a manifest as columns, with the metrics of some table columns.

    Args:
        stats_ids: ids of these columns; None for all.
    """
    return read_manifest_columns(
        base.io,
        manifest,
        base.metadata.specs_by_id,
        base.metadata.schema(),
        history=base.metadata.schema_history,
        stats_ids=None if stats_ids is None else frozenset(stats_ids),
        live_only=live_only,
        wrong_counts=base.wrong_counts,
    )


def read_together(
    base: CommitBase, manifests: Sequence[ManifestFile], stats_ids: Iterable[int] | None
) -> list[EntryColumns]:
    """Reads the live entries of a few small manifests, as `read_columns` does of each."""
    return read_small_manifests(
        base.io,
        manifests,
        base.metadata.specs_by_id,
        base.metadata.schema(),
        history=base.metadata.schema_history,
        stats_ids=None if stats_ids is None else frozenset(stats_ids),
        wrong_counts=base.wrong_counts,
    )
