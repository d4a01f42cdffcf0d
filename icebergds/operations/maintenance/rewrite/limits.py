"""Limits a rewrite of data files to the most useful groups that its budget allows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ParamSpec, TypeVar

from icebergds.operations.maintenance.rewrite.options import RewriteOptions
from icebergds.operations.maintenance.rewrite.plan import (
    FileGroup,
    delete_count,
    new_file_count,
    plan_groups,
)

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


class NotBegunError(Exception):
    """A group was not begun, since the time for it was over; it stays as it is."""


@dataclass(frozen=True, slots=True)
class RewriteLimits:
    """What a rewrite may do.

    Attributes:
        max_bytes: the size of the files that it may replace; None for no limit.
        max_group_bytes: groups that are larger are rewritten in parts; None for no limit.
        may_begin: whether there is time to begin another group.
    """

    max_bytes: int | None
    max_group_bytes: int | None
    may_begin: Callable[[], bool]

    def affordable(
        self, groups: Iterable[FileGroup], options: RewriteOptions, spent: int = 0
    ) -> list[FileGroup]:
        """The groups that fit, those that save the most reads for their size first.

        Args:
            spent: how many bytes were replaced before.
        """
        left = None if self.max_bytes is None else self.max_bytes - spent
        sizes = [size for size in (left, self.max_group_bytes) if size is not None]
        parts = [part for group in groups for part in _parts(group, options, sizes)]
        parts.sort(key=lambda part: _usefulness(part, options), reverse=True)
        if left is None:
            return parts
        chosen = []
        for part in parts:
            if (size := part.nbytes) <= left:
                left -= size
                chosen.append(part)
        return chosen

    def in_time(self, begin: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
        """A function that begins a group if there is time, or else raises NotBegunError."""

        def begin_in_time(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
            if not self.may_begin():
                raise NotBegunError
            return begin(*args, **kwargs)

        return begin_in_time


def _parts(group: FileGroup, options: RewriteOptions, sizes: Sequence[int]) -> Sequence[FileGroup]:
    """A group; if above one of the sizes, split into parts that are each worth a rewrite."""
    size = min(sizes, default=options.max_group_size)
    if group.nbytes <= size:
        return [group]
    smaller = replace(options, max_group_size=size)
    return plan_groups(group.files, smaller, group.output_spec_id, group.shared)


def _usefulness(group: FileGroup, options: RewriteOptions) -> float:
    """How many files fewer a full read opens, for each byte that is rewritten."""
    size = group.nbytes
    deletes = int(group.files.by_deletes(delete_count).sum())
    return (max(len(group.files) - new_file_count(size, options), 0) + deletes) / max(size, 1)
