"""SHOW PROCEDURES and DESCRIBE PROCEDURE."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, StringType, StructField, StructType

from icebergds.statements.commands.procedures.call import SYSTEM, procedure_name
from icebergds.statements.commands.procedures.known import PROCEDURES, find_procedure
from icebergds.statements.commands.procedures.signature import Procedure
from icebergds.statements.names.scope import NameScope
from icebergds.statements.names.table_names import read_name
from icebergds.statements.results import rows
from icebergds.statements.spark_sql import Arguments
from icebergds.statements.text.cursor import Cursor

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
    # The catalog alone stands for its only namespace with procedures.
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
    """The lines that Spark shows of a procedure."""
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
