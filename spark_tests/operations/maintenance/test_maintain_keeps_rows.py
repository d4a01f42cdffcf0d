"""Maintenance while others change the table: all rows stay, in all snapshots kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from built.delta_tables import BY_DATA, BY_ID, UNPARTITIONED
from effort import examples
from hypothesis import given, strategies as st
from maintained_tables import MaintainedTable, Step

from icebergds import CommitConflictError, MissingFileError, ValidationError
from icebergds.operations.maintenance.maintain import MaintenanceRequest, maintain
from icebergds.operations.maintenance.policy import MaintenancePolicy
from icebergds.operations.maintenance.rewrite.options import RewriteOptions
from icebergds.operations.write.options import WriteOptions
from icebergds.spec.partition import PartitionSpec
from icebergds.spec.updates.table_updates import SetProperties

_CHANGES = ("append", "upsert", "delete_keys", "delete", "update")
_OF_METADATA = ("rewrite", "convert", "expire", "branch", "tag", "roll_back", "evolve", "upgrade")
_SIMPLE = st.builds(
    Step, st.sampled_from(_CHANGES * 2 + _OF_METADATA), st.integers(0, 2), st.integers(0, 59)
)
_OTHERS = st.lists(_SIMPLE, max_size=3).map(tuple)
_MAINTAIN = st.builds(
    Step, st.just("maintain"), st.integers(0, 2), st.integers(0, 59), _OTHERS, _OTHERS
)
_HISTORIES = st.lists(st.tuples(st.lists(_SIMPLE, max_size=5), _MAINTAIN), min_size=1, max_size=3)


class _Table(MaintainedTable):
    def maintain(self, branch: str, step: Step) -> None:
        if branch not in self.table.table.metadata.refs:
            return
        policy = MaintenancePolicy(
            expire_snapshots=step.chosen(True, True, False),
            expire_older_than=4_000_000_000_000,
            retain_last=step.chosen(1, 2, 5),
            max_bytes=step.chosen(None, None, 3000, None),
        )
        loaded, runner = self._interrupted(step)
        options = RewriteOptions.of({}, loaded.metadata.properties)
        request = MaintenanceRequest(
            policy,
            WriteOptions.of(loaded.address, branch=branch),
            replace(options, max_concurrent_groups=1),
            runner,
        )
        before = self._lineage_of(branch)
        report, _ = maintain(loaded, request)
        self._check_lineage(branch, step, before)
        for failed in report.failed:
            # Others win some races, and nothing else fails.
            assert isinstance(
                failed.error, ValidationError | CommitConflictError | MissingFileError | None
            ), report
            assert step.in_tasks or step.in_commits, report


@examples(16)
@given(
    version=st.sampled_from([2, 3]),
    spec=st.sampled_from([UNPARTITIONED, BY_DATA, BY_ID]),
    target=st.sampled_from(["900", "100000"]),
    history=_HISTORIES,
)
def test_rows_stay_while_others_write(
    tmp_path_factory: pytest.TempPathFactory,
    version: int,
    spec: PartitionSpec,
    target: str,
    history: Sequence[tuple[Sequence[Step], Step]],
) -> None:
    location: Path = tmp_path_factory.mktemp("t")
    table = _Table(location, version, spec)
    table.table.table.change(SetProperties({"write.target-file-size-bytes": target}))
    steps = [step for changes, action in history for step in (*changes, action)]
    for step in (Step("append", 0, 5), Step("append", 0, 10), *steps):
        table.do(step)
        table.check()
    table.check_snapshots()
    table.check_changes()
    table.remove_orphans()
    table.check_snapshots()
