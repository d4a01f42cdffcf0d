"""What a query can need of a table (`Needed`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from icebergds.expr.nodes import TRUE, Expr


@dataclass(frozen=True, slots=True)
class Needed:
    """What a query can need of a table.

    Attributes:
        condition: bound; rows for which it is not true change no result.
        columns: names of columns; None for all.
    """

    condition: Expr = TRUE
    columns: Sequence[str] | None = None
