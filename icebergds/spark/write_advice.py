"""Warns about many small files when a partitioned table is written without a shuffle."""

from __future__ import annotations

import logging

from icebergds.operations.write.append_overwrite import PreparedWrite
from icebergds.operations.write.jobs import PreparedJob

_LOG = logging.getLogger(__name__)


def log_cost(write: PreparedJob) -> None:
    """Logs a warning if rows of a partitioned table should be shuffled and are not."""
    if not isinstance(write, PreparedWrite):
        return
    spec = write.plan.spec
    if write.distribution_mode == "none" or spec.is_unpartitioned:
        return
    _LOG.warning(
        "table %s is partitioned by %s, but this write does not shuffle its rows: each task writes "
        "a file for each partition of its rows, up to (tasks x partitions) files. For fewer files, "
        "write with icebergds.load_table(...).append(df), which shuffles, or repartition df by the "
        "partition columns; to silence this warning, set option('distribution-mode', 'none')",
        write.address.path,
        ", ".join(field.name for field in spec.fields),
    )
