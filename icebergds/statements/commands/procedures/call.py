"""Runs CALL, SHOW PROCEDURES and DESCRIBE PROCEDURE."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, StringType, StructField, StructType

from icebergds.errors import InvalidStatementError
from icebergds.statements.commands.procedures.arguments import evaluate, match_arguments
from icebergds.statements.commands.procedures.known import PROCEDURES, find_procedure
from icebergds.statements.commands.procedures.signature import Call, Procedure
from icebergds.statements.names.scope import NameScope
from icebergds.statements.names.table_names import read_name
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
    """The catalog and name of a procedure; None if the catalog is one of Spark's own.

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


_LISTED = StructType(
    [
        StructField("catalog", StringType(), nullable=False),
        StructField("namespace", ArrayType(StringType(), containsNull=False)),
        StructField("schema", StringType()),
        StructField("procedure_name", StringType(), nullable=False),
    ]
)


def show_procedures(scope: NameScope, cursor: Cursor, arguments: Arguments) -> DataFrame | None:
    """Runs `SHOW PROCEDURES [{FROM | IN} namespace]`."""
    cursor.expect("SHOW", "PROCEDURES")
    parts: tuple[str, ...] = ()
    if cursor.take_any("FROM", "IN"):
        parts = read_name(scope, cursor, "the name of a namespace")
    cursor.expect_end()
    if parts and parts[0].lower() == SYSTEM and scope.current.catalog is not None:
        parts = (scope.current.catalog, *parts)
    name = scope.namespace(parts)
    if name is None:
        return None
    # The catalog's name alone stands for its only namespace with procedures.
    found = PROCEDURES if [part.lower() for part in name.parts] in ([], [SYSTEM]) else ()
    listed = [(name.catalog, [SYSTEM], SYSTEM, each) for each in found]
    return scope.spark.createDataFrame(listed, _LISTED)


def describe_procedure(scope: NameScope, cursor: Cursor, arguments: Arguments) -> DataFrame | None:
    """Runs `{DESCRIBE | DESC} PROCEDURE name`."""
    cursor.next()
    cursor.expect("PROCEDURE")
    if cursor.is_done:
        # A table of this name.
        return None
    named = procedure_name(scope, cursor.name("the name of a procedure"))
    if named is None:
        return None
    cursor.expect_end()
    procedure = find_procedure(*named)
    lines = [[line] for line in _described(procedure)]
    return rows(scope.spark, "procedure_desc STRING NOT NULL", lines)


def _described(procedure: Procedure) -> list[str]:
    """The lines that Spark shows for a procedure."""
    parameters = procedure.parameters
    names = _aligned([each.name for each in parameters])
    types = _aligned([each.type.value for each in parameters])
    listed = [
        f"IN {name} {kind}{'' if each.is_required else ' DEFAULT NULL'}"
        for each, name, kind in zip(parameters, names, types, strict=True)
    ]
    keys = ["Procedure:", "Description:", "Parameters:", *[""] * (len(listed) - 1)]
    values = [procedure.name, procedure.summary, *listed]
    return [f"{key} {value}" for key, value in zip(_aligned(keys), values, strict=True)]


def _aligned(texts: Sequence[str]) -> list[str]:
    longest = max(map(len, texts))
    return [text.ljust(longest) for text in texts]
