"""Switches off rules of the code, by their names in the model."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from icebergds.catalog.filesystem import commits
from icebergds.commit import (
    compact_files,
    convert_deletes,
    data_files,
    merging,
    new_snapshot,
    row_delta,
    validation,
)
from icebergds.scan.plan import delete_index
from icebergds.scan.read import key_set
from icebergds.spec.manifest import FileContent


def switch_off(rule: str, patch: pytest.MonkeyPatch) -> None:
    """Makes the code ignore a rule."""
    for owner, name, instead in RULES[rule]():
        patch.setattr(owner, name, instead)


_Patches = Iterator[tuple[object, str, Any]]


def _nothing(*_: Any, **__: Any) -> None:
    pass


def _unchecked(owner: object, name: str) -> Callable[[], _Patches]:
    return lambda: iter([(owner, name, _nothing)])


def _head() -> _Patches:
    yield commits, "_is_newest", lambda *_: True


def _inherited() -> _Patches:
    numbers: dict[str, int] = {}
    numbered = new_snapshot._with_sequence_number

    def at_first(manifest: Any, sequence_number: int) -> Any:
        number = numbers.setdefault(manifest.manifest_path, sequence_number)
        return numbered(manifest, number)

    yield new_snapshot, "_with_sequence_number", at_first


def _history() -> _Patches:
    def known(base: Any, from_snapshot_id: int | None) -> list[Any]:
        found, snapshot = [], base.parent
        while snapshot is not None and snapshot.snapshot_id != from_snapshot_id:
            found.append(snapshot)
            snapshot = base.metadata.snapshot_by_id(snapshot.parent_snapshot_id)
        return found

    for module in (validation, compact_files, convert_deletes):
        yield module, "history_since", known


def _deleted_files() -> _Patches:
    checked = row_delta.check_files_exist

    def skipping(*arguments: Any, skip_deletes: bool) -> None:
        checked(*arguments, skip_deletes=True)

    yield row_delta, "check_files_exist", skipping


def _moved_deletes() -> _Patches:
    found = compact_files.CompactFiles._unknown_deletes

    def by_key(self: Any, base: Any) -> Iterator[Any]:
        for entry in found(self, base):
            if entry.data_file.content is FileContent.EQUALITY_DELETES:
                yield entry

    yield compact_files.CompactFiles, "_unknown_deletes", by_key


def _kept_number() -> _Patches:
    merged = compact_files.merged_manifests

    def numbered(*arguments: Any, **more: Any) -> Any:
        return merged(*arguments, **{**more, "data_sequence_number": None})

    yield compact_files, "merged_manifests", numbered


def _renumbered() -> _Patches:
    yield compact_files.CompactFiles, "_not_followed", lambda *_: np.empty(0, np.int64)


def _compared_files() -> _Patches:
    live = convert_deletes.ConvertDeletes._live_data

    def needing_none(self: Any, *arguments: Any) -> Any:
        # Attempts that would add other deletes than the first one are refused, too.
        self._used = None
        return replace(live(self, *arguments), needed=frozenset())

    yield convert_deletes.ConvertDeletes, "_live_data", needing_none


def _known_vectors() -> _Patches:
    def none(self: Any, live: Any) -> Any:
        return np.zeros(len(self.rows), np.bool_)

    yield convert_deletes._Converted, "are_outdated", none


def _converted_deletes() -> _Patches:
    produce = convert_deletes.ConvertDeletes.produce

    def replacing(*arguments: Any) -> Any:
        return replace(produce(*arguments), operation="replace")

    yield convert_deletes.ConvertDeletes, "produce", replacing


def _older_rows() -> _Patches:
    # Planning and reading compare the numbers.
    yield delete_index._EqualityDeletes, "_first_for", lambda of, n: bisect_left(of._numbers, n)
    yield key_set, "bisect_right", bisect_left


def _own_commit() -> _Patches:
    yield delete_index._Deletes, "_first_for", lambda of, n: bisect_right(of._numbers, n)


def _dangling() -> _Patches:
    dangling = merging._dangling_deletes

    def as_old(base: Any, oldest_data: int, removed: Any) -> Any:
        return replace(dangling(base, oldest_data, removed), oldest_data=oldest_data + 1)

    yield merging, "_dangling_deletes", as_old


RULES: dict[str, Callable[[], _Patches]] = {
    "head": _head,
    "inherited": _inherited,
    "history": _history,
    "added rows": _unchecked(validation, "_check_added_data"),
    "overwritten deletes": _unchecked(validation, "_check_added_deletes"),
    "overwritten files": _unchecked(validation, "_check_removed_data"),
    "rewritten rows": _unchecked(data_files, "check_new_deletes"),
    "removed files": _unchecked(data_files, "require_removed"),
    "replaced rows": _unchecked(row_delta, "check_new_deletes"),
    "files exist": _unchecked(row_delta, "check_files_exist"),
    "deleted files": _deleted_files,
    "vectors": _unchecked(row_delta, "check_new_vectors"),
    "moved deletes": _moved_deletes,
    "kept number": _kept_number,
    "renumbered": _renumbered,
    "compacted files": _unchecked(compact_files, "require_each_removed"),
    "compared files": _compared_files,
    "known vectors": _known_vectors,
    "converted deletes": _converted_deletes,
    "older rows": _older_rows,
    "own commit": _own_commit,
    "dangling": _dangling,
}
