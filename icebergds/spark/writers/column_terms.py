"""Reads partition terms and constants from the columns of classic Spark and Spark Connect."""

from __future__ import annotations

from typing import Any

from icebergds.errors import InvalidOptionError
from icebergds.expr.names import in_backticks, split_name


def partition_term(column: Any) -> str:
    """A term of a partition spec for a column or a transform of one, such as `years(f.col("ts"))`.

    Raises:
        InvalidOptionError: it is something else.
    """
    if hasattr(column, "_jc"):
        return _classic_term(column._jc.node(), column)
    if not hasattr(column, "_expr"):
        raise _refused(column)
    return _connect_term(column._expr, column)


def is_true(column: Any) -> bool:
    """Whether a column is the constant true."""
    if hasattr(column, "_jc"):
        node = column._jc.node()
        return _kind(node) == "Literal" and node.value() is True
    expression = column._expr
    return type(expression).__name__ == "LiteralExpression" and expression._value is True


def _classic_term(node: Any, column: Any) -> str:
    match _kind(node):
        case "UnresolvedAttribute":
            parts = node.nameParts()
            return in_backticks([parts.apply(at) for at in range(parts.size())])
        case "Literal" if isinstance(node.value(), int):
            return str(node.value())
        case "UnresolvedFunction":
            given = node.arguments()
            arguments = [_classic_term(given.apply(at), column) for at in range(given.size())]
            return f"{node.functionName()}({', '.join(arguments)})"
        case _:
            raise _refused(column)


def _connect_term(expression: Any, column: Any) -> str:
    match type(expression).__name__:
        case "ColumnReference":
            return in_backticks(split_name(expression._unparsed_identifier))
        case "LiteralExpression" if isinstance(expression._value, int):
            return str(expression._value)
        case "UnresolvedFunction":
            arguments = [_connect_term(argument, column) for argument in expression._args]
            return f"{expression._name}({', '.join(arguments)})"
        case _:
            raise _refused(column)


def _kind(node: Any) -> str:
    return str(node.getClass().getSimpleName())


def _refused(column: Any) -> InvalidOptionError:
    return InvalidOptionError(
        f"partitionedBy({column}): expected columns and transforms of columns, such as "
        "partitioning.days('ts') and partitioning.bucket(16, 'id')"
    )
