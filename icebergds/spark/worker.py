"""What every Python worker does, so that what PySpark does for each call takes less."""

from __future__ import annotations

import gc
import os
import sys
from zipimport import zipimporter

_settled = False


def settle_worker() -> None:
    """Spares a worker what PySpark does at every task, and what takes longer than many tasks do.

    After each task it collects garbage: what is imported by now is taken out of its reach.
    """
    global _settled
    if not _settled:
        gc.collect()
        gc.freeze()
        _settled = True
    spare_archives()


def spare_archives() -> None:
    """Lets go of the finders of the archives that hold PySpark; imports make new ones.

    Before each call, up to Spark 4.1, PySpark has all finders read their archives' directories
    again, once for each package of its own, which takes a tenth of a second.
    """
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimporter) and _is_of_spark(finder):
            sys.path_importer_cache.pop(path, None)


def _is_of_spark(finder: zipimporter) -> bool:
    return os.path.basename(finder.archive).startswith(("pyspark", "py4j", "spark-core"))
