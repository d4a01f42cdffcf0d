"""Selects files by a row filter: those whose rows all match."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from icebergds.commit.base import CommitBase
from icebergds.commit.selection import Mask
from icebergds.errors import ValidationError
from icebergds.expr.bind import bind, field_ids
from icebergds.expr.metrics import manifest_might_match, might_match, must_match
from icebergds.expr.nodes import FALSE, TRUE, Expr
from icebergds.expr.project import project
from icebergds.expr.residual import residual_evaluator
from icebergds.expr.sql_text import filter_text
from icebergds.formats.manifests.contradicted import contradicted
from icebergds.formats.manifests.reader import EntryColumns
from icebergds.spec.manifest import DataFile, FileContent, ManifestFile, PartitionKey, partition_of


@dataclass(frozen=True, slots=True)
class RowSelection:
    """Selects the files whose rows all match a filter.

    Args:
        row_filter: bound to the table's schema.
        described: the filter's text in messages.
    """

    base: CommitBase
    row_filter: Expr
    described: str
    _projections: dict[int, Expr] = field(default_factory=dict)
    _evaluators: dict[int, Callable[[tuple[Any, ...]], Expr]] = field(default_factory=dict)
    _residuals: dict[PartitionKey, Expr] = field(default_factory=dict)

    @property
    def stats_ids(self) -> frozenset[int]:
        return field_ids(self.row_filter)

    def may_select(self, manifest: ManifestFile) -> bool:
        partition_type = self.base.metadata.partition_type(
            self.base.spec(manifest.partition_spec_id)
        )
        return manifest_might_match(
            self._projection(manifest.partition_spec_id), partition_type, manifest.partitions
        )

    def select(self, columns: EntryColumns) -> Mask:
        """Selects data files whose rows all match, and delete files of fully matching partitions.

        Raises:
            ValidationError: some rows of a data file may match, but perhaps not all.
        """
        return self._mask(columns, self._is_selected)

    def overlap(self, columns: EntryColumns) -> Mask:
        return self._mask(columns, self._may_match)

    def _mask(self, columns: EntryColumns, judge: Callable[[DataFile, Expr], bool]) -> Mask:
        mask = np.zeros(len(columns), np.bool_)
        if self.row_filter == TRUE:
            return ~mask
        odd = contradicted(columns, self.base.spec(columns.spec_id))
        odd &= columns.content == FileContent.DATA.value
        indices = np.flatnonzero(columns.in_partitions(self._projection(columns.spec_id)) | odd)
        files = (entry.data_file for entry in columns.take(indices).entries())
        judged = [
            judge(file, self.row_filter if is_odd else self._residual(file))
            for file, is_odd in zip(files, odd[indices].tolist(), strict=True)
        ]
        mask[indices] = judged
        return mask

    def _is_selected(self, file: DataFile, residual: Expr) -> bool:
        if residual in (TRUE, FALSE):
            return residual == TRUE
        if file.content is not FileContent.DATA:
            # Its columns do not show which data files it applies to; keeping it is always safe.
            return False
        if not might_match(residual, file):
            return False
        if must_match(residual, file):
            return True
        raise ValidationError(
            f"table {self.base.name}: {file.file_path} may have rows that match "
            f"{self.described} and rows that do not, so it can be neither removed nor kept whole; "
            "delete such rows with table.delete, replace them with table.overwrite, or use a "
            "filter on partitions"
        )

    def _may_match(self, file: DataFile, residual: Expr) -> bool:
        if residual in (TRUE, FALSE):
            return residual == TRUE
        # A delete file's metrics describe the rows that it deletes only for equality keys.
        is_data = file.content is FileContent.DATA
        has_metrics = is_data or field_ids(residual) <= set(file.equality_ids)
        return might_match(residual, file) if has_metrics else True

    def _projection(self, spec_id: int) -> Expr:
        if spec_id not in self._projections:
            self._projections[spec_id] = project(
                self.row_filter, self.base.spec(spec_id), self.base.metadata.schema()
            )
        return self._projections[spec_id]

    def _residual(self, file: DataFile) -> Expr:
        key = partition_of(file)
        if key not in self._residuals:
            if file.spec_id not in self._evaluators:
                self._evaluators[file.spec_id] = residual_evaluator(
                    self.row_filter, self.base.spec(file.spec_id), self.base.metadata.schema()
                )
            self._residuals[key] = self._evaluators[file.spec_id](file.partition)
        return self._residuals[key]


def rows_matching(base: CommitBase, row_filter: Expr, case_sensitive: bool) -> RowSelection:
    """Binds a filter by column name to the table's current schema.

    Raises:
        InvalidFilterError: the filter does not fit the table's schema.
    """
    bound = bind(row_filter, base.metadata.schema(), case_sensitive)
    return RowSelection(base, bound, filter_text(row_filter))
