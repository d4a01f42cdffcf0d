"""Processes that start with the package imported."""

from __future__ import annotations

import multiprocessing

CONTEXT = multiprocessing.get_context("forkserver")
# A new interpreter takes a second for these. Before 3.13 only installed modules are found.
CONTEXT.set_forkserver_preload(
    [
        "icebergds.api.catalog",
        "icebergds.io.aws_session",
        "icebergds.catalog.hive.catalog",
        "icebergds.catalog.rest.catalog",
        "icebergds.catalog.sql.catalog",
        "icebergds.formats.parquet.reader",
        "icebergds.testing.catalog_races",
        "icebergds.testing.faults",
        "s3fs",
    ]
)
