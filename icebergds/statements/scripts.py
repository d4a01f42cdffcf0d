"""Refuses statements on our catalogs in `BEGIN ... END`, which Spark runs as a whole.

Queries in it read our tables as anywhere. Other statements would go to Spark's own catalog.
"""

from __future__ import annotations

from collections.abc import Iterator

from icebergds.errors import UnsupportedFeatureError
from icebergds.statements.commands import COMMANDS
from icebergds.statements.names.scope import NameScope
from icebergds.statements.text.cursor import Cursor

# What a statement of a script follows.
_BEFORE = ("BEGIN", "THEN", "ELSE", "DO", "LOOP", "REPEAT")


def is_script(cursor: Cursor) -> bool:
    """Whether a text is `[label:] BEGIN ... END`."""
    token = cursor.peek(1)
    if token is not None and token.is_sign(":"):
        return Cursor(cursor.statement, cursor.tokens, cursor.at + 2, cursor.end).is_at("BEGIN")
    return cursor.is_at("BEGIN")


def refuse_commands(scope: NameScope, script: Cursor) -> None:
    """Raises UnsupportedFeatureError if a statement other than a query may concern our catalogs."""
    for statement in _statements(script):
        is_command = any(command.is_of(statement) for command in COMMANDS)
        if (is_command or statement.is_at("EXECUTE")) and _may_be_ours(scope, statement):
            raise UnsupportedFeatureError(
                f"{statement.written[:200]}: in BEGIN ... END, only queries can name tables of "
                f"catalogs of ours ({', '.join(scope.catalogs())}); run the statement by itself"
            )


def _statements(script: Cursor) -> Iterator[Cursor]:
    tokens = script.tokens
    for at in range(script.at + 1, script.end):
        before = tokens[at - 1]
        if not before.is_sign(";") and not before.is_word(*_BEFORE):
            continue
        end = next((n for n in range(at, script.end) if tokens[n].is_sign(";")), script.end)
        if at < end:
            yield Cursor(script.statement, tokens, at, end)


def _may_be_ours(scope: NameScope, statement: Cursor) -> bool:
    if scope.current.catalog is not None:
        return True
    tokens = statement.tokens[statement.at : statement.end]
    return any(token.is_identifier and scope.is_catalog(token.identifier) for token in tokens)
