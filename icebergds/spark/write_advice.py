"""Warns about many small files if a partitioned table is written without a shuffle."""

from __future__ import annotations

import logging

from icebergds.operations.write.append_overwrite import PreparedWrite
from icebergds.operations.write.jobs import PreparedJob

_LOG = logging.getLogger(__name__)


def log_cost(write: PreparedJob) -> None:
    """Logs a warning if a partitioned table asks for shuffled rows, and the rows are not."""
    if not isinstance(write, PreparedWrite):
        return
    spec = write.plan.spec
    if write.distribution_mode == "none" or spec.is_unpartitioned:
        return
    _LOG.warning(
        "table %s is partitioned by %s, and the rows to write are not shuffled: each task writes a "
        "file for every partition that it has rows of, up to (tasks x partitions) files. To write "
        "fewer files, use icebergds.load_table(...).append(df), which shuffles first, or "
        "repartition df by the partition columns; to silence this warning, set "
        "option('distribution-mode', 'none')",
        write.address.path,
        ", ".join(field.name for field in spec.fields),
    )
