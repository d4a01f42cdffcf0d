"""Implements procedures that compute statistics files."""

from __future__ import annotations

from icebergds.statements.commands.procedures.signature import Call, Rows
from icebergds.statements.commands.procedures.targets import table_of


def compute_table_stats(call: Call) -> Rows:
    file = table_of(call).compute_table_stats(
        call.get("columns"), call.get("snapshot_id"), spark=call.scope.spark
    )
    return [] if file is None else [(file.statistics_path,)]


def compute_partition_stats(call: Call) -> Rows:
    file = table_of(call).compute_partition_stats(call.get("snapshot_id"))
    return [] if file is None else [(file.statistics_path,)]
