"""Says what it costs that Spark does not shuffle what a Python data source writes."""

from __future__ import annotations

import logging

from icebergds.operations.write.append_overwrite import PreparedWrite
from icebergds.operations.write.jobs import PreparedJob

_LOG = logging.getLogger(__name__)


def log_cost(write: PreparedJob) -> None:
    """Logs a line if a partitioned table asks for shuffled rows, which these are not."""
    if not isinstance(write, PreparedWrite):
        return
    spec = write.plan.spec
    if write.distribution_mode == "none" or spec.is_unpartitioned:
        return
    _LOG.warning(
        "table %s is partitioned by %s, and its rows come unshuffled: each task writes a file for "
        "every partition that it has rows of, up to (tasks x partitions) files. To get few, write "
        "with icebergds.load_table(...).append(df), which shuffles first, or repartition df by "
        "the partitioned columns; option('distribution-mode', 'none') says that this is wanted",
        write.address.path,
        ", ".join(field.name for field in spec.fields),
    )
