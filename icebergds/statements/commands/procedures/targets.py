"""Resolves the table names in arguments of procedures."""

from __future__ import annotations

from icebergds.api.table import Table
from icebergds.errors import InvalidFilterError, InvalidStatementError
from icebergds.expr.names import quote_name, split_name
from icebergds.spark.patches import own
from icebergds.statements.commands.procedures.signature import Call
from icebergds.statements.names.scope import CatalogName
from icebergds.statements.names.tables import NamedTable, find_table_to_write

SESSION_CATALOG = "spark_catalog"
"""Spark's own catalog."""


def table_of(call: Call) -> Table:
    """The table of the argument `table`, as a whole.

    Raises:
        NoSuchTableError: there is no such table.
        InvalidStatementError: the name is malformed, in another catalog, or that of a branch.
    """
    found = branch_of(call)
    if found.branch is not None:
        raise InvalidStatementError(
            f"table = {call['table']!r}: the procedure concerns all of table {found.name}; name it "
            f"without branch_{found.branch}"
        )
    return found.table


def branch_of(call: Call) -> NamedTable:
    """The table of the argument `table`, which may name a branch: `db.t.branch_x`.

    Errors are those of `table_of`.
    """
    return find_table_to_write(call.scope, name_of(call))


def name_of(call: Call, parameter: str = "table") -> CatalogName:
    """The name of an existing or new table in the procedure's catalog, from an argument.

    Raises:
        InvalidStatementError: it is malformed, or in another catalog.
    """
    parts = parts_of(call, parameter)
    scope = call.scope
    if len(parts) > 1 and parts[0] == call.catalog:
        return CatalogName(call.catalog, parts[1:])
    if len(parts) > 1 and (scope.is_catalog(parts[0]) or parts[0] == SESSION_CATALOG):
        raise InvalidStatementError(
            f"{parameter} = {call[parameter]!r} is a table of catalog {parts[0]}, but the "
            f"procedure is that of {call.catalog}: CALL {parts[0]}.system...."
        )
    if len(parts) == 1 and scope.current.catalog == call.catalog:
        parts = (*scope.current.namespace, *parts)
    return CatalogName(call.catalog, parts)


def session_name_of(call: Call, parameter: str) -> str:
    """The name of a table in Spark's session catalog, with that catalog, from an argument.

    Raises:
        InvalidStatementError: it is malformed.
    """
    parts = parts_of(call, parameter)
    if parts[0].lower() == SESSION_CATALOG:
        parts = parts[1:]
    if len(parts) == 1:
        parts = (own(call.scope.spark, "catalog").currentDatabase(), *parts)
    return quote_name((SESSION_CATALOG, *parts))


def parts_of(call: Call, parameter: str) -> tuple[str, ...]:
    """The parts of the name in an argument.

    Raises:
        InvalidStatementError: it is malformed.
    """
    text = call[parameter].strip()
    try:
        return split_name(text)
    except InvalidFilterError:
        raise InvalidStatementError(
            f"{parameter} = {call[parameter]!r}: expected the name of a table, such as 'db.events'"
        ) from None
