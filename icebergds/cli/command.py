"""Makes commands of functions: adds common options, asks to confirm, prints answers and errors."""

from __future__ import annotations

import inspect
import logging
import os
import sys
from collections.abc import Callable
from copy import copy
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from functools import cache
from typing import Annotated, Any, get_type_hints

import typer
from typer.models import ArgumentInfo

from icebergds.cli.answer import (
    Answer,
    BegunError,
    Exit,
    OutputError,
    print_answer,
    print_error,
    print_json,
)
from icebergds.cli.place import Place, properties_of
from icebergds.cli.words import catalog_words, own_words
from icebergds.display import printable
from icebergds.errors import IcebergError, InvalidOptionError

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking.")]


def _option(*names: str, help: str, **more: Any) -> Any:
    panel = "Catalog and output"
    return typer.Option(*names, help=help, rich_help_panel=panel, show_default=False, **more)


@dataclass(frozen=True, slots=True)
class Common:
    """The values of the options that all commands have."""

    catalog: Annotated[
        str | None, _option("--catalog", help="Name of the catalog.", metavar="NAME")
    ] = None
    uri: Annotated[str | None, _option("--uri", help="Address of the catalog.", metavar="URI")] = (
        None
    )
    warehouse: Annotated[
        str | None,
        _option("--warehouse", help="Location of the warehouse.", metavar="LOCATION"),
    ] = None
    credential: Annotated[
        str | None,
        _option("--credential", help="Credential of a REST catalog.", metavar="ID:SECRET"),
    ] = None
    catalog_property: Annotated[
        list[str],
        _option(
            "--property",
            "-p",
            help="Property of the catalog or storage, such as s3.endpoint=http://localhost:9000.",
            metavar="KEY=VALUE",
        ),
    ] = field(default_factory=list)
    output: Annotated[str | None, _option("--output", help="text or json.", hidden=True)] = None
    json: Annotated[bool, _option("--json", help="Print JSON.")] = False
    verbose: Annotated[bool, _option("--verbose", "-v", help="Log what is read and committed.")] = (
        False
    )
    debug: Annotated[bool, _option("--debug", help="Show the trace of an error.")] = False

    @property
    def as_json(self) -> bool:
        """Whether the answer is printed as JSON."""
        return self.json or self.output == "json"

    def place(self) -> Place:
        """Where tables are looked for."""
        if self.output not in (None, "text", "json"):
            raise InvalidOptionError(f"--output {self.output!r}: expected text or json")
        named = {"uri": self.uri, "warehouse": self.warehouse, "credential": self.credential}
        given = {name: value for name, value in named.items() if value is not None}
        return Place(self.catalog, {**properties_of(self.catalog_property), **given}, self.as_json)


def command(
    app: typer.Typer, name: str | None = None, *, is_sql: bool = False, **more: Any
) -> Callable[[Callable[..., Answer | None]], Callable[..., None]]:
    """Adds a function as a command: its first argument is the `Place`, its result is printed.

    The fields of an argument that is a dataclass are options of their own.

    Args:
        name: the command's name; by default the function's.
        is_sql: whether errors are about SQL, so that they name none of the command's options.
        more: arguments of `typer.Typer.command`.
    """

    def added(run: Callable[..., Answer | None]) -> Callable[..., None]:
        hints = get_type_hints(run, include_extras=True)
        _, *own = inspect.signature(run).parameters.values()
        groups = {each.name: hints[each.name] for each in own if is_dataclass(hints[each.name])}

        def called(ctx: typer.Context, **given: Any) -> None:
            common = _merged(ctx.obj, _taken(Common, given))
            for key, group in groups.items():
                given[key] = group(**_taken(group, given))
            words = str if is_sql else own_words
            raise SystemExit(_run(common, lambda: run(common.place(), **given), words))

        parameters = [_CONTEXT]
        for each in own:
            if each.name in groups:
                parameters += _parameters_of(groups[each.name])
            else:
                hint = _named_in_capitals(hints[each.name], each.name)
                parameters.append(
                    each.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hint)
                )
        _describe(called, [*parameters, *_parameters_of(Common)], run)
        app.command(name or run.__name__.rstrip("_").replace("_", "-"), **more)(called)
        return called

    return added


def place_in(ctx: typer.Context) -> Place:
    """Where tables are looked for by a command that is not complete, and so does not run yet."""
    chain: list[Any] = [ctx]
    while (outer := chain[-1].parent) is not None:
        chain.append(outer)
    common = Common()
    for each in reversed(chain):
        common = _merged(common, {key: each.params.get(key) for key in _names_of(Common)})
    return common.place()


def add_common_options(app: typer.Typer, version: str | None = None) -> None:
    """Lets the options that all commands have stand before the command, too.

    Args:
        version: what the option `--version` shows, if the app has it.
    """

    def before(ctx: typer.Context, **given: Any) -> None:
        given.pop("version", None)
        ctx.obj = _merged(ctx.obj, given)

    def show_version(is_asked: bool) -> None:
        if is_asked:
            print(version)
            raise typer.Exit

    parameters = [_CONTEXT, *_parameters_of(Common)]
    if version is not None:
        shown = typer.Option(
            "--version", help="Show the version.", callback=show_version, is_eager=True
        )
        only_keyword = inspect.Parameter.KEYWORD_ONLY
        parameters.append(
            inspect.Parameter(
                "version", only_keyword, default=False, annotation=Annotated[bool, shown]
            )
        )
    _describe(before, parameters, before)
    app.callback()(before)


_CONTEXT = inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)


@cache
def _parameters_of(group: Any) -> tuple[inspect.Parameter, ...]:
    """The fields of a dataclass as parameters of a command."""
    hints = get_type_hints(group, include_extras=True)
    return tuple(
        inspect.Parameter(
            each.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=each.default if each.default_factory is MISSING else each.default_factory(),
            annotation=hints[each.name],
        )
        for each in fields(group)
    )


def _named_in_capitals(hint: Any, name: str) -> Any:
    """The annotation of an argument, so that the help shows its name in capitals."""
    info = next(iter(getattr(hint, "__metadata__", ())), None)
    if not isinstance(info, ArgumentInfo) or info.metavar is not None:
        return hint
    named = copy(info)
    named.metavar = name.upper()
    return Annotated[hint.__origin__, named]


def _names_of(group: Any) -> tuple[str, ...]:
    return tuple(each.name for each in fields(group))


def _taken(group: Any, given: dict[str, Any]) -> dict[str, Any]:
    """The values of a dataclass, which are taken out of all that were given."""
    return {key: given.pop(key) for key in _names_of(group)}


def _describe(
    called: Callable[..., None], parameters: list[inspect.Parameter], of: Callable[..., Any]
) -> None:
    """Gives a function the signature and the text that typer shows."""
    called.__name__, called.__doc__ = of.__name__, inspect.getdoc(of)
    called.__annotations__ = {each.name: each.annotation for each in parameters}
    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]


def _merged(before: Common | None, given: dict[str, Any]) -> Common:
    """The options before the command and those after it, which take precedence."""
    base = before or Common()
    chosen = {key: value for key, value in given.items() if value not in (None, False, [])}
    if "catalog_property" in chosen:
        chosen["catalog_property"] = [*base.catalog_property, *chosen["catalog_property"]]
    return replace(base, **chosen)


def _run(common: Common, run: Callable[[], Answer | None], words: Callable[[str], str]) -> int:
    """Runs a command, and returns the status to exit with."""
    if common.verbose:
        logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    status: int = Exit.DONE
    try:
        answer = run()
        if answer is not None:
            status = answer.status
            _print(answer, common.as_json)
    except BrokenPipeError:
        # Whoever reads the output has seen enough.
        end_output()
    except DeclinedError:
        print_error("nothing was changed")
        return Exit.FOUND
    except KeyboardInterrupt as error:
        print_error("\n".join(("interrupted", *getattr(error, "__notes__", ()))))
        return Exit.INTERRUPTED
    except Exception as error:
        if common.debug:
            raise
        as_json = common.as_json and not isinstance(error, OutputError | BegunError)
        try:
            _tell(error.error if isinstance(error, BegunError) else error, as_json, words)
            sys.stdout.flush()
        except OSError as no_output:
            end_output()
            if as_json:
                _tell(OutputError(no_output), False, words)
        return Exit.FAILED
    return status


def _print(answer: Answer, as_json: bool) -> None:
    try:
        print_answer(answer, as_json=as_json)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        end_output()
        raise OutputError(error) from None


def end_output() -> None:
    """Drops what is not printed yet, of which Python would complain as it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


# Errors whose message says all.
_WORDED = (IcebergError, OutputError)


def error_text(error: Exception) -> str:
    """An error on one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    if type(error).__module__.startswith("pyspark."):
        # The plan of the query follows.
        return lines[0]
    text = catalog_words(" ".join(lines))
    return text if isinstance(error, _WORDED) else f"{type(error).__name__}: {text}"


def error_data(error: Exception, words: Callable[[str], str] = own_words) -> dict[str, str]:
    """An error for programs."""
    return {"type": type(error).__name__, "message": words(error_text(error))}


def _tell(error: Exception, as_json: bool, words: Callable[[str], str]) -> None:
    """Says what went wrong: on one line, or as the JSON document that was asked for."""
    if as_json:
        print_json({"error": error_data(error, words)})
        return
    more = "" if isinstance(error, (*_WORDED, ImportError)) else " (--debug shows the trace)"
    print_error(f"error: {words(error_text(error))}{more}")


class DeclinedError(Exception):
    """The user does not want the change."""


def confirm(what: str, yes: bool) -> None:
    """Says what is about to be changed; without `yes`, asks in a terminal.

    Args:
        what: what is done, as an imperative: `drop table db.events`.

    Raises:
        InvalidOptionError: nobody can be asked.
        DeclinedError: the answer is no.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise InvalidOptionError(
            f"{what}: nothing was changed, as nobody can be asked here; give --yes to do it"
        )
    print_error(f"about to: {printable(what)}")
    print("Do it? [y/N]: ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise DeclinedError
