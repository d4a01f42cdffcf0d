"""Makes commands of functions: adds the options that all have, prints answers and errors."""

from __future__ import annotations

import inspect
import logging
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, get_type_hints

import typer

from icebergds.cli.answer import Answer, Exit, print_answer, print_error, print_json
from icebergds.cli.confirm import DeclinedError
from icebergds.cli.place import Place, properties_of
from icebergds.errors import IcebergError, InvalidOptionError

_COMMON = "Catalog and output"


@dataclass(frozen=True, slots=True)
class Common:
    """The values of the options that all commands have."""

    catalog: str | None = None
    uri: str | None = None
    warehouse: str | None = None
    credential: str | None = None
    catalog_property: list[str] = field(default_factory=list)
    output: str | None = None
    json: bool = False
    verbose: bool = False
    debug: bool = False

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


def _option(*names: str, help: str, **more: Any) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=_COMMON, show_default=False, **more)


_OPTIONS: dict[str, tuple[Any, Any]] = {
    "catalog": (str | None, _option("--catalog", help="Name of the catalog.", metavar="NAME")),
    "uri": (str | None, _option("--uri", help="Address of the catalog.", metavar="URI")),
    "warehouse": (
        str | None,
        _option("--warehouse", help="Location of the warehouse.", metavar="LOCATION"),
    ),
    "credential": (
        str | None,
        _option("--credential", help="Credential of a REST catalog.", metavar="ID:SECRET"),
    ),
    "catalog_property": (
        list[str],
        _option(
            "--property",
            "-p",
            help="Property of the catalog or storage, such as s3.endpoint=http://localhost:9000.",
            metavar="KEY=VALUE",
        ),
    ),
    "output": (str | None, _option("--output", help="text or json.", hidden=True)),
    "json": (bool, _option("--json", help="Print JSON.")),
    "verbose": (bool, _option("--verbose", "-v", help="Log what is read and committed.")),
    "debug": (bool, _option("--debug", help="Show the trace of an error.")),
}


def command(
    app: typer.Typer, name: str | None = None, **more: Any
) -> Callable[[Callable[..., Answer | None]], Callable[..., None]]:
    """Adds a function as a command: its first argument is the `Place`, its result is printed.

    Args:
        name: the command's name; by default the function's.
        more: arguments of `typer.Typer.command`.
    """

    def added(run: Callable[..., Answer | None]) -> Callable[..., None]:
        hints = get_type_hints(run, include_extras=True)
        _, *own = inspect.signature(run).parameters.values()

        def called(ctx: typer.Context, **given: Any) -> None:
            common = _merged(ctx.obj, {key: given.pop(key) for key in _OPTIONS})
            raise SystemExit(_run(common, lambda: run(common.place(), **given)))

        parameters = [
            inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context),
            *(
                each.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[each.name])
                for each in own
            ),
            *_common_parameters(),
        ]
        _describe(called, parameters, run)
        app.command(name or run.__name__.rstrip("_").replace("_", "-"), **more)(called)
        return called

    return added


def add_common_options(app: typer.Typer) -> None:
    """Lets the options that all commands have stand before the command, too."""

    def before(ctx: typer.Context, **given: Any) -> None:
        ctx.obj = _merged(ctx.obj, given)

    parameters = [
        inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context),
        *_common_parameters(),
    ]
    _describe(before, parameters, before)
    app.callback()(before)


def _common_parameters() -> list[inspect.Parameter]:
    defaults = {"catalog_property": [], "json": False, "verbose": False, "debug": False}
    return [
        inspect.Parameter(
            key,
            inspect.Parameter.KEYWORD_ONLY,
            default=defaults.get(key),
            annotation=Annotated[kind, option],
        )
        for key, (kind, option) in _OPTIONS.items()
    ]


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


def _run(common: Common, run: Callable[[], Answer | None]) -> int:
    """Runs a command, and returns the status to exit with."""
    if common.verbose:
        logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    try:
        answer = run()
        if answer is None:
            return Exit.DONE
        print_answer(answer, as_json=common.as_json)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever reads the output has seen enough.
        _end_output()
        return Exit.DONE
    except DeclinedError:
        print_error("nothing was changed")
        return Exit.FOUND
    except KeyboardInterrupt as error:
        print_error("\n".join(("interrupted", *getattr(error, "__notes__", ()))))
        return Exit.INTERRUPTED
    except Exception as error:
        if common.debug:
            raise
        try:
            _tell(error, common.as_json)
            sys.stdout.flush()
        except OSError as no_output:
            _end_output()
            _tell(no_output, as_json=False)
        return Exit.FAILED
    return answer.status


def _end_output() -> None:
    """Drops what is not printed yet, of which Python would complain as it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def error_text(error: Exception) -> str:
    """An error on one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    if type(error).__module__.startswith("pyspark."):
        # The plan of the query follows.
        return lines[0]
    text = " ".join(lines)
    return text if isinstance(error, IcebergError) else f"{type(error).__name__}: {text}"


def _tell(error: Exception, as_json: bool) -> None:
    """Says what went wrong: on one line, or as the JSON document that was asked for."""
    text = error_text(error)
    if as_json:
        print_json({"error": {"type": type(error).__name__, "message": text}})
        return
    more = "" if isinstance(error, IcebergError | ImportError) else " (--debug shows the trace)"
    print_error(f"error: {text}{more}")
