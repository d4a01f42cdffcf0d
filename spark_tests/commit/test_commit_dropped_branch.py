"""Maintenance of a branch that is dropped meanwhile does not create it again."""

from __future__ import annotations

from pathlib import Path

import pytest
from built.commit_tables import create_table

from icebergds.commit.compact_files import AppliedDeletes, CompactFiles
from icebergds.commit.convert_deletes import ConversionBase, ConvertDeletes
from icebergds.commit.data_files import Append
from icebergds.commit.remove_delete_files import RemoveDeleteFiles
from icebergds.commit.replace_position_deletes import ReplacePositionDeletes
from icebergds.commit.rewrite_manifests import RewriteManifests
from icebergds.commit.snapshot_commit import Action
from icebergds.errors import ValidationError
from icebergds.formats.manifests.packed_entries import PackedEntries


def _actions(head: int) -> list[Action]:
    none = AppliedDeletes(frozenset(), frozenset())
    return [
        CompactFiles(PackedEntries.of(()), (), (), 0, none, head, 1),
        ConvertDeletes(ConversionBase(head, 2, (), lambda entry: (), frozenset()), (), False),
        ReplacePositionDeletes((), head),
        RemoveDeleteFiles(lambda base: {}),
        RewriteManifests(0),
    ]


@pytest.mark.parametrize("number", range(5))
def test_a_branch_that_was_dropped_is_not_created_again(tmp_path: Path, number: int) -> None:
    table = create_table(tmp_path / "t")
    for day in (1, 2):
        table.commit(Append((table.file([day], day),)))
    action = _actions(table.head.snapshot_id)[number]
    with pytest.raises(ValidationError, match="branch 'gone' was dropped"):
        table.commit(action, "gone")
    assert set(table.metadata.refs) == {"main"}
    assert not table.left_over()
