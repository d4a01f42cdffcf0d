"""Avoids PySpark's per-task garbage collection and path rescans in Python workers."""

from __future__ import annotations

import gc
import os
import sys
from zipimport import zipimporter

_settled = False


def settle_worker() -> None:
    """Reduces what PySpark does around each task, which can take longer than the task itself.

    PySpark collects garbage after each task; freezing what is imported so far makes that fast.
    """
    global _settled
    if not _settled:
        gc.collect()
        gc.freeze()
        _settled = True
    spare_archives()


def spare_archives() -> None:
    """Drops cached importers of PySpark's zip archives; the next import re-creates them.

    Before each call, PySpark up to 4.1 makes every cached importer read the directory of its
    archive again, once for each package of PySpark, which takes a tenth of a second.
    """
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimporter) and _is_of_spark(finder):
            sys.path_importer_cache.pop(path, None)


def _is_of_spark(finder: zipimporter) -> bool:
    return os.path.basename(finder.archive).startswith(("pyspark", "py4j", "spark-core"))
