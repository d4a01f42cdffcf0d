"""Reads lists of properties, such as those of TBLPROPERTIES and OPTIONS."""

from __future__ import annotations

from icebergds.errors import InvalidStatementError
from icebergds.expr.sql_tokens import TokenKind
from icebergds.statements.text.cursor import Cursor, literal_value


def read_properties(listed: Cursor) -> dict[str, str]:
    """Reads all of `'a' = '1', b.c = 2, d true`.

    Names are text in quotes, or parts joined with dots; values are text, numbers or booleans.

    Raises:
        InvalidStatementError: it is malformed, or a property is given twice.
    """
    found: dict[str, str] = {}
    while not listed.is_done:
        name = read_property_name(listed)
        listed.take_sign("=")
        value = _value(listed)
        if name in found:
            raise InvalidStatementError(
                f"{listed.statement.strip()}: property {name!r} is given twice"
            )
        found[name] = value
        if not listed.is_done:
            listed.expect_sign(",")
    return found


def read_property_name(cursor: Cursor) -> str:
    """Reads a property's name: text in quotes, or parts joined with dots and hyphens."""
    if cursor.is_at_text():
        # One literal only: the value may follow without a sign in between.
        return str(literal_value(cursor.next()))
    name = cursor.identifier("the name of a property")
    while cursor.is_at_sign(".", "-"):
        name += cursor.next().text + cursor.identifier("the name of a property")
    return name


def _value(cursor: Cursor) -> str:
    if cursor.is_at_text():
        return cursor.text()
    sign = "-" if cursor.take_sign("-") else ""
    token = cursor.peek()
    if token is not None and (
        token.kind is TokenKind.NUMBER or (not sign and token.is_word("TRUE", "FALSE"))
    ):
        cursor.next()
        return f"{sign}{token.text.lower()}"
    raise cursor.error("the value of a property: text in quotes, a number, true or false")
