"""What a statement looks at, as far as it can be planned with."""

from __future__ import annotations

from typing import Any

from icebergds.errors import InvalidFilterError
from icebergds.expr.bind import bind
from icebergds.expr.rounding import compares_exactly
from icebergds.expr.sql import parse_filter
from icebergds.spark.row_level.target import Target


def planning_filter(target: Target, condition: Any) -> str | None:
    """A condition, if it is SQL that scans are planned with; else None, which stands for all rows.

    A condition that only Spark can read is right, too: it is then applied to all rows.
    """
    if not isinstance(condition, str):
        return None
    try:
        parsed = parse_filter(condition, time_zone=target.time_zone)
        bind(parsed, target.schema, case_sensitive=False)
    except InvalidFilterError:
        return None
    return condition if compares_exactly(parsed, target.schema, case_sensitive=False) else None
