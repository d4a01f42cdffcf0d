"""Maintenance actions and changes of rows in any order: all rows stay, in all snapshots kept."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from built.delta_tables import BY_DATA, BY_ID, UNPARTITIONED
from effort import examples
from hypothesis import given, strategies as st
from maintained_tables import STEPS, MaintainedTable, Step

from icebergds.spec.partition import PartitionSpec


@examples(28)
@given(
    version=st.sampled_from([2, 3]),
    spec=st.sampled_from([UNPARTITIONED, BY_DATA, BY_ID]),
    steps=STEPS,
)
def test_rows_of_branches_snapshots_and_changes_stay(
    tmp_path_factory: pytest.TempPathFactory,
    version: int,
    spec: PartitionSpec,
    steps: Sequence[Step],
) -> None:
    location: Path = tmp_path_factory.mktemp("t")
    table = MaintainedTable(location, version, spec)
    for step in (Step("append", 0, 5), Step("append", 0, 10), *steps):
        table.do(step)
        table.check()
    table.check_snapshots()
    table.check_changes()
    table.check_metadata()
    table.remove_orphans()
    table.check_snapshots()
