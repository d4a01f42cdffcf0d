"""What a commit removes, or must not meet in the commits of others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import numpy as np
import numpy.typing as npt

from icebergds.commit.base import CommitBase
from icebergds.formats.manifests.reader import EntryColumns, read_manifest_columns
from icebergds.spec.manifest import ManifestFile

Mask = npt.NDArray[np.bool_]


class Selection(Protocol):
    """Some of a table's files."""

    @property
    def stats_ids(self) -> frozenset[int]:
        """Columns whose statistics must be read."""
        ...

    def may_select(self, manifest: ManifestFile) -> bool:
        """Whether a manifest may track a file of the selection; False only where proven."""
        ...

    def select(self, columns: EntryColumns) -> Mask:
        """The entries of a manifest that are files of the selection.

        Raises:
            ValidationError: metadata does not tell of some file whether it is selected.
        """
        ...


class ConflictScope(Protocol):
    """A part of a table in which the commits of others may matter."""

    @property
    def stats_ids(self) -> frozenset[int]:
        """Columns whose statistics must be read."""
        ...

    def may_select(self, manifest: ManifestFile) -> bool:
        """Whether a manifest may track a file in the scope; False only where proven."""
        ...

    def overlap(self, columns: EntryColumns) -> Mask:
        """The entries of a manifest that may have rows, or delete rows, in the scope."""
        ...


def read_columns(
    base: CommitBase,
    manifest: ManifestFile,
    stats_ids: Iterable[int],
    *,
    live_only: bool = True,
) -> EntryColumns:
    """The entries of a manifest as columns, with statistics of some columns."""
    return read_manifest_columns(
        base.io,
        manifest,
        base.metadata.specs_by_id,
        base.metadata.schema(),
        history=base.schema_history,
        stats_ids=frozenset(stats_ids),
        live_only=live_only,
    )
