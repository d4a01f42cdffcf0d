"""Writes names as Spark's statements show them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from icebergds.expr.names import in_backticks

_PLAIN = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def shown_name(parts: Iterable[str]) -> str:
    """Joins parts to a name; those that SQL would not read as one are in backticks."""
    return ".".join(part if _PLAIN.fullmatch(part) else in_backticks([part]) for part in parts)
