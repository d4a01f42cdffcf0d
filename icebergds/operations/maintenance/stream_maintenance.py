"""Maintains a table after the batches of a streaming query, in the process that commits them."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

from icebergds.catalog.address import TableAddress
from icebergds.catalog.loaded_table import load_for_write
from icebergds.commit.idempotent_writes import version_before
from icebergds.commit.operations import TableState
from icebergds.operations.maintenance.maintain import MaintenanceRequest, maintain
from icebergds.operations.maintenance.policy import MaintenancePolicy
from icebergds.operations.maintenance.report import MaintenanceReport
from icebergds.operations.maintenance.rewrite.options import RewriteOptions
from icebergds.operations.runner import LocalRunner
from icebergds.operations.write.options import WriteOptions
from icebergds.operations.write.stream_options import StreamMaintenance
from icebergds.spec.metadata import TableMetadata

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StreamBatch:
    """A batch of a streaming query, and the branch that it was committed to."""

    branch: str
    query_id: str
    batch_id: int


def maintain_after_batch(
    committed: TableState, address: TableAddress, batch: StreamBatch, maintenance: StreamMaintenance
) -> MaintenanceReport | None:
    """Maintains the branch of a batch if that is due after it. Never raises, as it is committed.

    Args:
        committed: the table with the batch.

    Returns:
        What was done; None if it was not due, or failed before its first step.
    """
    report = None
    try:
        if _is_due(committed.metadata, batch, maintenance.every):
            report = _maintain(address, batch.branch, maintenance)
            report.raise_failures()
            _LOG.info("table %s, after batch %d: %s", committed.name, batch.batch_id, report)
    except Exception as error:
        _LOG.warning(
            "table %s: batch %d of the streaming query %s is committed, but maintenance after it "
            "failed: %s",
            committed.name,
            batch.batch_id,
            batch.query_id,
            error,
        )
    return report


def _is_due(metadata: TableMetadata, batch: StreamBatch, every: int) -> bool:
    """Whether a multiple of `every` batches is complete now and was not after the batch before.

    Batches without rows commit nothing, so the batch before may have any lower number. The table
    records it, so no process needs to count.
    """
    before = version_before(metadata, batch.branch, batch.query_id, batch.batch_id)
    done = 0 if before is None else before + 1
    return (batch.batch_id + 1) // every > done // every


def _maintain(
    address: TableAddress, branch: str, maintenance: StreamMaintenance
) -> MaintenanceReport:
    table = load_for_write(address)
    policy = MaintenancePolicy(max_bytes=maintenance.max_bytes, max_seconds=maintenance.max_seconds)
    # This is the driver's machine: one group at a time needs least memory.
    options = replace(RewriteOptions.of({}, table.metadata.properties), max_concurrent_groups=1)
    write = WriteOptions.of(address, branch=branch)
    report, _ = maintain(table, MaintenanceRequest(policy, write, options, LocalRunner()))
    return report
