"""Names the strategies by which data files are rewritten, and refuses others."""

from __future__ import annotations

import re
from typing import Any

from icebergds.errors import InvalidOptionError
from icebergds.suggestions import did_you_mean
from icebergds.write.rows.curve_keys import CurveName

BINPACK = "binpack"
SORT = "sort"
CURVES: tuple[CurveName, ...] = ("zorder", "hilbert")
STRATEGIES = (BINPACK, SORT, *CURVES)

# What no name of a strategy has, and most conditions have.
_OF_CONDITIONS = re.compile(r"[<>=!]|\s(in|is|not|like|between)\b", re.IGNORECASE)


def check_strategy(strategy: Any) -> None:
    """Checks the name of a strategy.

    Raises:
        InvalidOptionError: there is no such strategy; the error names the nearest one.
    """
    if strategy in STRATEGIES:
        return
    if isinstance(strategy, str) and _OF_CONDITIONS.search(strategy):
        hint = f"; to rewrite only files that match a condition, give it as where={strategy!r}"
    else:
        near = did_you_mean(str(strategy), STRATEGIES, shown=repr)
        hint = f"; {near}" if near else ""
    raise InvalidOptionError(
        f"strategy = {strategy!r}: expected one of {', '.join(map(repr, STRATEGIES))}{hint}"
    )
