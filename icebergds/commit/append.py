"""Adds data files to a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from icebergds.commit.base import CommitBase
from icebergds.commit.merging import merged_manifests, require_data_files
from icebergds.commit.new_manifests import new_manifests
from icebergds.commit.new_snapshot import NewSnapshot
from icebergds.commit.summary import changes_summary
from icebergds.commit.workspace import Workspace
from icebergds.spec.manifest import DataFile


@dataclass(frozen=True, slots=True)
class Append:
    """Adds data files, and merges small manifests as the properties `commit.manifest.*` say.

    An append needs no validation: a concurrent commit only makes it retry.
    """

    files: tuple[DataFile, ...]
    depends_on_rows: ClassVar[bool] = False

    def produce(self, work: Workspace, base: CommitBase) -> NewSnapshot:
        require_data_files(base, self.files)
        merged = merged_manifests(work, base, added=self.files)
        return NewSnapshot("append", merged.manifests, merged.changes)


@dataclass(frozen=True, slots=True)
class FastAppend:
    """Adds data files in new manifests and keeps the existing manifests as they are.

    The cost does not depend on the size of the table; merging manifests is left to other commits.
    """

    files: tuple[DataFile, ...]
    depends_on_rows: ClassVar[bool] = False

    def produce(self, work: Workspace, base: CommitBase) -> NewSnapshot:
        require_data_files(base, self.files)
        new = new_manifests(work, base, self.files)
        return NewSnapshot("append", (*new, *base.manifests), changes_summary(base, self.files, ()))
