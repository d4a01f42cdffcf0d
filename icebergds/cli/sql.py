"""The command `sql`: runs statements on tables, or asks for them at a prompt."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from icebergds.cli.answer import Answer, Exit, Grid, print_answer, print_error
from icebergds.cli.command import command, error_text
from icebergds.cli.place import Place
from icebergds.cli.rows import SHOWN, grid_of
from icebergds.cli.spark import quiet_session
from icebergds.cli.termination import is_terminated
from icebergds.errors import InvalidFilterError, InvalidOptionError
from icebergds.expr.sql_tokens import Token, sql_tokens

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_HISTORY = Path("~/.icebergds_history")
_HELP = """\
\\d           tables of the current namespace, or namespaces of the catalog
\\d NAME      columns of a table, or tables of a namespace
\\json        rows as JSON, and as tables again
\\q           end, as Ctrl-D
statements end with a semicolon"""


def add_sql_command(app: typer.Typer) -> None:
    """Adds the command to the app."""
    command(app, is_sql=True, rich_help_panel="Read")(sql)


def sql(
    at: Place,
    statement: Annotated[
        str | None, typer.Argument(help="One statement; without it, a prompt asks for them.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option(help=f"At most so many rows; {SHOWN} of a table, else all.")
    ] = None,
    remote: Annotated[
        str | None, typer.Option(help="A Spark Connect server, such as sc://host:15002.")
    ] = None,
) -> Answer | None:
    """Runs SQL with Spark, which starts in this process or is a server."""
    with quiet_session(remote) as spark:
        _use_catalogs(spark, at)
        if statement is not None:
            return _answer(spark, statement, limit, at.as_json)
        _prompt(spark, limit, at.as_json)
    return None


def _use_catalogs(spark: SparkSession, at: Place) -> None:
    """Gives the session the catalog that the command names; names without one are in it."""
    from icebergds.catalog.config import default_catalog_name, is_configured

    name = at.catalog or default_catalog_name()
    for key, value in at.properties.items():
        spark.conf.set(f"spark.icebergpy.catalog.{name}.{key}", value)
    if at.properties or is_configured(name):
        spark.conf.set("spark.icebergpy.default-catalog", name)


def _answer(spark: SparkSession, statement: str, limit: int | None, as_json: bool) -> Answer:
    from icebergds.cli.values import json_rows
    from icebergds.statements.run import sql

    whole, rest = statements_of(statement)
    given = [*whole, rest] if rest else whole
    if len(given) > 1:
        raise InvalidOptionError(
            "expected one statement; several, each with a semicolon, come from the standard "
            "input: icebergds sql < statements.sql"
        )
    if not given:
        raise InvalidOptionError("expected a statement, and found none")
    rows = sql(spark, given[0])
    if not rows.columns:
        return Answer([], "done")
    if as_json:
        _refuse_doubled(rows.columns)
        return Answer(json_rows((rows if limit is None else rows.limit(limit)).toArrow()))
    return Answer(None, _shown(rows, limit))


def _refuse_doubled(columns: Sequence[str]) -> None:
    """Raises InvalidOptionError for a name that objects of JSON would have twice."""
    doubled = next((name for name in columns if columns.count(name) > 1), None)
    if doubled is not None:
        raise InvalidOptionError(
            f"the result has several columns {doubled!r}, and an object of JSON has one; give them "
            "names of their own with AS"
        )


def _shown(rows: DataFrame, limit: int | None) -> Grid:
    shown = SHOWN if limit is None else limit
    return grid_of(rows.limit(shown + (limit is None)).toArrow(), {}, shown)


def _prompt(spark: SparkSession, limit: int | None, as_json: bool) -> None:
    """Runs statements as they come, until their end; an error ends none but its own.

    Raises:
        SystemExit: they came from a pipe, and one of them failed.
    """
    failed = False
    with _history(spark):
        for statement in _statements():
            try:
                if statement == "\\json":
                    as_json = not as_json
                elif statement.startswith("\\"):
                    print_answer(_command(spark, statement), as_json=False)
                else:
                    answer = _answer(spark, statement, limit, as_json)
                    print_answer(answer, as_json=as_json)
            except KeyboardInterrupt:
                if is_terminated():
                    raise
                print_error("interrupted")
            except Exception as error:
                failed = True
                print_error(f"error: {error_text(error)}")
    if failed and not sys.stdin.isatty():
        raise SystemExit(Exit.FAILED)


def _statements() -> Iterator[str]:
    """What is typed: commands of one line, and statements up to their semicolon."""
    lines: list[str] = []
    is_asked = sys.stdin.isatty()
    while True:
        prompt = "" if not is_asked else "       ...> " if lines else "icebergds=> "
        try:
            line = input(prompt)
        except KeyboardInterrupt:
            if is_terminated():
                raise
            print()
            lines = []
            continue
        except EOFError:
            if is_asked:
                print()
            # Comments alone are not a statement.
            whole, rest = statements_of("\n".join(lines))
            yield from whole
            if rest:
                yield rest
            return
        if not lines and line.strip() in ("\\q", "quit", "exit"):
            return
        if not lines and line.lstrip().startswith("\\"):
            yield line.strip()
            continue
        lines.append(line)
        if ";" in line or not line.strip():
            whole, rest = statements_of("\n".join(lines))
            yield from whole
            lines = [rest] if rest else []


def _command(spark: SparkSession, text: str) -> Answer:
    from icebergds.statements.run import sql

    name, _, argument = text[1:].partition(" ")
    if name != "d":
        return Answer(None, _HELP)
    if not argument.strip():
        namespaces = _shown(sql(spark, "SHOW NAMESPACES"), None)
        with suppress(Exception):
            if (tables := _shown(sql(spark, "SHOW TABLES"), None)).rows:
                return Answer(None, tables)
        return Answer(None, namespaces)
    try:
        return Answer(None, _shown(sql(spark, f"DESCRIBE TABLE {argument}"), None))
    except Exception as error:
        try:
            return Answer(None, _shown(sql(spark, f"SHOW TABLES IN {argument}"), None))
        except Exception:
            raise error from None


@contextmanager
def _history(spark: SparkSession) -> Iterator[None]:
    """Keeps what was typed, and completes names, where Python can and somebody types."""
    try:
        import readline
    except ImportError:
        yield
        return
    if not sys.stdin.isatty():
        yield
        return
    file = _HISTORY.expanduser()
    with suppress(OSError):
        readline.read_history_file(file)
    readline.set_history_length(1000)
    readline.set_completer_delims(" \t\n(),;")
    readline.set_completer(_completer(spark))
    readline.parse_and_bind("tab: complete")
    try:
        yield
    finally:
        with suppress(OSError):
            readline.write_history_file(file)


_WORDS = (
    "ALTER TABLE",
    "CALL",
    "CREATE TABLE",
    "DELETE FROM",
    "DESCRIBE",
    "DROP TABLE",
    "INSERT INTO",
    "MERGE INTO",
    "SELECT",
    "SHOW TABLES",
    "UPDATE",
    "USE",
)


def _completer(spark: SparkSession) -> Any:
    """Completes names of catalogs, namespaces and tables, and the first words of statements."""
    found: list[str] = []

    def complete(text: str, state: int) -> str | None:
        if state == 0:
            found[:] = [word for word in _WORDS if word.startswith(text.upper())] if text else []
            with suppress(Exception):
                found.extend(_names(spark, text))
        return found[state] if state < len(found) else None

    return complete


def _names(spark: SparkSession, text: str) -> list[str]:
    """Names that begin with a text, with the parts that it has already."""
    from icebergds.catalog.config import configured_catalogs
    from icebergds.statements.run import sql

    parent, dot, _ = text.rpartition(".")
    if not dot:
        inside = [*configured_catalogs(), *_column(sql(spark, "SHOW NAMESPACES"))]
        with suppress(Exception):
            inside += _column(sql(spark, "SHOW TABLES"), 1)
        return sorted({name for name in inside if name.startswith(text)})
    inside = []
    with suppress(Exception):
        inside += _column(sql(spark, f"SHOW NAMESPACES IN {parent}"))
    with suppress(Exception):
        inside += _column(sql(spark, f"SHOW TABLES IN {parent}"), 1)
    whole = {f"{parent}.{name.rpartition('.')[2]}" for name in inside}
    return sorted(name for name in whole if name.startswith(text))


def _column(rows: DataFrame, at: int = 0) -> list[str]:
    return [row[at] for row in rows.collect()]


def statements_of(text: str) -> tuple[list[str], str]:
    """The statements that end with a semicolon, without it, and what follows them.

    Semicolons in literals, in comments and within `BEGIN ... END` end none. What has only comments
    is not a statement. All of a text in which a literal or comment is open is what follows.
    """
    tokens = _tokens(text)
    if tokens is None:
        return [], text
    found: list[str] = []
    begin, own = 0, list[Token]()
    for token in tokens:
        if token.is_sign(";") and not _is_in_block(own):
            if own:
                found.append(text[begin : token.start].strip())
            begin, own = token.end, []
        else:
            own.append(token)
    return found, text[begin:].strip() if own else ""


def _tokens(text: str) -> tuple[Token, ...] | None:
    try:
        return sql_tokens(text)
    except InvalidFilterError:
        return None


def _is_in_block(tokens: list[Token]) -> bool:
    """Whether a compound statement is open."""
    return bool(tokens) and tokens[0].is_word("BEGIN") and sum(_steps(tokens)) > 0


def _steps(tokens: list[Token]) -> Iterator[int]:
    """1 for each word that begins a block or CASE, and -1 for each that ends one."""
    for at, token in enumerate(tokens):
        is_ended = at > 0 and tokens[at - 1].is_word("END")
        if token.is_word("BEGIN", "CASE") and not is_ended:
            yield 1
        elif token.is_word("END"):
            following = tokens[at + 1] if at + 1 < len(tokens) else None
            # These blocks begin with words that are functions, too.
            if following is None or not following.is_word("IF", "WHILE", "LOOP", "REPEAT", "FOR"):
                yield -1
