"""Refuses views of Spark's own catalog that would read tables of ours."""

from __future__ import annotations

from icebergds.errors import InvalidStatementError
from icebergds.statements.names.scope import NameScope
from icebergds.statements.queries.references import find_references
from icebergds.statements.text.cursor import Cursor


def refuse_ours_in_spark(scope: NameScope, view: tuple[str, ...], definition: Cursor) -> None:
    """Raises InvalidStatementError if the definition of a view names a table of ours.

    Spark keeps the text, and does not know our catalogs when it reads it.
    """
    for reference in find_references(definition):
        ours = scope.table(reference.name)
        if ours is not None:
            shown = f"{ours.catalog}.{'.'.join(ours.parts[:-1])}.{view[-1]}"
            raise InvalidStatementError(
                f"view {'.'.join(view)} is one of Spark's own catalog, which cannot read {ours}; "
                f"create it beside the table (CREATE VIEW {shown} ...), or as a TEMPORARY VIEW"
            )
