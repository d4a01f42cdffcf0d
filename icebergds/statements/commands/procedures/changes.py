"""Implements the procedure that creates a view of a table's changes."""

from __future__ import annotations

from icebergds.expr.names import in_backticks
from icebergds.statements.commands.procedures.signature import Call, Rows
from icebergds.statements.commands.procedures.targets import name_of, table_of


def create_changelog_view(call: Call) -> Rows:
    identifier = call.get("identifier_columns")
    computes_updates = call.get("compute_updates", identifier is not None)
    changes = table_of(call).changes(
        net_changes=call.get("net_changes", False),
        compute_updates=computes_updates,
        # Passed to the API, these would ask for updates.
        identifier_columns=identifier if computes_updates else None,
        options=call.get("options"),
    )
    view: str = call.get("changelog_view", in_backticks([f"{name_of(call).parts[-1]}_changes"]))
    changes.to_df(call.scope.spark).createOrReplaceTempView(view)
    return [(view,)]
