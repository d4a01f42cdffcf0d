"""What every Python worker does once."""

from __future__ import annotations

import gc

_settled = False


def settle_worker() -> None:
    """Takes what is imported out of the reach of the collections PySpark makes after each task."""
    global _settled
    if not _settled:
        gc.collect()
        gc.freeze()
        _settled = True
