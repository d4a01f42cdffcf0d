"""Tells which paths Spark opens exactly as they are."""

from __future__ import annotations

import re

# Paths that Spark takes literally: no globs, nothing to normalise, no hidden files. Directories may
# be hidden ones.
_PLAIN_PATH = re.compile(r"(?:[a-z][a-z0-9+.-]*://)?[A-Za-z0-9 ._/=%+@,~-]*", re.ASCII)
_CHANGED_BY_SPARK = re.compile(r"(?<!:)//|/\.\.?(?:/|$)|/[._][^/]*$|/$")


def is_plain_path(path: str) -> bool:
    """Whether Spark opens exactly this path, without globbing, normalising or hiding it."""
    return bool(_PLAIN_PATH.fullmatch(path)) and not _CHANGED_BY_SPARK.search(path)
