"""Processes that start with the package imported."""

from __future__ import annotations

import multiprocessing

CONTEXT = multiprocessing.get_context("forkserver")
# A new interpreter takes a second for these. Before 3.13 only installed modules are found.
CONTEXT.set_forkserver_preload(
    [
        "icebergds.catalog.sql.catalog",
        "icebergds.api.catalog",
        "icebergds.testing.faults",
        "icebergds.formats.parquet.reader",
    ]
)
