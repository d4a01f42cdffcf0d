"""CALL."""

from __future__ import annotations

from pyspark.sql import DataFrame

from icebergds.errors import InvalidStatementError
from icebergds.statements.commands.procedures.arguments import evaluate, match_arguments
from icebergds.statements.commands.procedures.known import PROCEDURES, find_procedure
from icebergds.statements.commands.procedures.signature import Call
from icebergds.statements.names.scope import NameScope
from icebergds.statements.results import rows
from icebergds.statements.spark_sql import Arguments
from icebergds.statements.text.cursor import Cursor

SYSTEM = "system"
"""The namespace of procedures."""


def call(scope: NameScope, cursor: Cursor, arguments: Arguments) -> DataFrame | None:
    """Runs `CALL catalog.system.procedure(argument, name => argument)`."""
    cursor.expect("CALL")
    named = procedure_name(scope, cursor.name("the name of a procedure"))
    if named is None:
        return None
    listed = cursor.group()
    cursor.expect_end()
    catalog, name = named
    scope.require_catalog(catalog)
    procedure = find_procedure(catalog, name)
    values = evaluate(scope, procedure, match_arguments(procedure, listed))
    return rows(scope.spark, procedure.columns, procedure.run(Call(scope, catalog, values)))


def procedure_name(scope: NameScope, parts: tuple[str, ...]) -> tuple[str, str] | None:
    """The catalog and the name of a procedure; None if it is one of Spark's own catalogs.

    Raises:
        InvalidStatementError: there is no such catalog, or the procedure is not in the namespace
            `system` of one of ours.
    """
    *namespace, name = parts
    current = scope.current.catalog
    if namespace and scope.is_catalog(namespace[0]):
        catalog, *namespace = namespace
    elif current is not None and (not namespace or namespace[0].lower() == SYSTEM):
        catalog = current
    else:
        is_of_catalog = len(namespace) == 2 and not scope.is_of_spark(namespace[0])
        if is_of_catalog and (scope.catalogs() or namespace[1].lower() == SYSTEM):
            scope.require_catalog(namespace[0])
        return None
    if [part.lower() for part in namespace] == [SYSTEM]:
        return catalog, name
    if name.lower() in PROCEDURES:
        raise InvalidStatementError(
            f"procedures are in the namespace system of a catalog: CALL {catalog}.{SYSTEM}.{name}"
        )
    raise InvalidStatementError(
        f"procedure {'.'.join(parts)} does not exist: procedures are in the namespace "
        f"{catalog}.{SYSTEM}; SHOW PROCEDURES IN {catalog}.{SYSTEM} lists them"
    )
