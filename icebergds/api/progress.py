"""Shows the progress of actions: as a bar, in log lines, or to a callback."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from functools import wraps
from html import escape
from typing import Any, Protocol, TypeAlias, TypeVar, cast

from icebergds.api.jobs import describing_jobs
from icebergds.display import printable
from icebergds.errors import InvalidOptionError
from icebergds.interrupts import stoppable
from icebergds.reporting import Progress, Report, reporting

ProgressOption: TypeAlias = bool | Callable[[Progress], object] | None
"""Whether an action shows its progress, or what to call with it; None for the default."""

_LOG = logging.getLogger(__name__)
_Verb = TypeVar("_Verb", bound=Callable[..., Any])
_SECONDS_UNTIL_SHOWN = 2.0
_SECONDS_BETWEEN_LINES = 10.0
_BAR_WIDTH = 20
# Of the bar, the amounts and the times.
_OTHER_WIDTH = 76
# Actions of several threads share a terminal, which shows the bar of one.
_terminal = threading.Lock()
_is_on = True


def progress(on: bool) -> None:
    """Sets whether actions of this process show their progress, unless they are told otherwise.

    An action that takes more than two seconds shows a bar in a terminal (with the package `rich`)
    and in a notebook; elsewhere it logs a line at INFO every ten seconds.
    """
    global _is_on
    if not isinstance(on, bool):
        raise InvalidOptionError(f"on = {on!r}: expected True or False")
    _is_on = on


def shows_progress(verb: _Verb) -> _Verb:
    """Has a method take `progress`, and describes its jobs by its name and its table's name."""
    action = verb.__name__

    @wraps(verb)
    def shown(self: Any, *args: Any, **kwargs: Any) -> Any:
        with describing_jobs(action, self.name), showing(action, self.name, kwargs.get("progress")):
            return verb(self, *args, **kwargs)

    return cast(_Verb, shown)


def jobs_described(verb: _Verb) -> _Verb:
    """Describes the jobs of a method, and says what is committed if it is interrupted."""
    statement = verb.__name__

    @wraps(verb)
    def described(self: Any, *args: Any, **kwargs: Any) -> Any:
        with describing_statement(statement, self.name):
            return verb(self, *args, **kwargs)

    return cast(_Verb, described)


@contextmanager
def describing_statement(statement: str, table: str) -> Iterator[None]:
    """Describes the jobs of the block, and says what is committed if it is interrupted."""
    with describing_jobs(statement, table), showing(statement, table, False):
        yield


@contextmanager
def showing(action: str, table: str, option: ProgressOption) -> Iterator[None]:
    """Shows the progress of the block; if it is interrupted, says what is committed."""
    if not (option is None or isinstance(option, bool) or callable(option)):
        raise InvalidOptionError(
            f"progress = {option!r}: expected True, False, or a function of one argument"
        )
    listener = None if option is None or isinstance(option, bool) else option
    report = Report(action, table, listener)
    is_shown = listener is None and (_is_on if option is None else option)
    with stoppable(), reporting(report) as current, _shown(current, is_shown and current is report):
        try:
            yield
        except KeyboardInterrupt as error:
            if current is report:
                error.add_note(report.interrupted())
                _LOG.warning("%s", report.interrupted())
            raise


@contextmanager
def _shown(report: Report, is_shown: object) -> Iterator[None]:
    """Shows a report in a thread of its own, so that the work does not wait for it."""
    if not is_shown:
        yield
        return
    ended = threading.Event()
    # With this thread's context, by which notebooks find the cell.
    thread = threading.Thread(
        target=copy_context().run,
        args=(_show, report, ended),
        name="icebergds-progress",
        daemon=True,
    )
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


class _Display(Protocol):
    """A place where progress is shown."""

    seconds: float

    def show(self, progress: Progress) -> None: ...

    def close(self) -> None: ...


def _show(report: Report, ended: threading.Event) -> None:
    if ended.wait(_SECONDS_UNTIL_SHOWN):
        return
    try:
        display = _display()
        try:
            while not ended.wait(display.seconds):
                display.show(report.progress())
        finally:
            display.close()
    except Exception as error:
        _LOG.info("progress is not shown any more: %s", error)


def _display() -> _Display:
    if _is_notebook():
        return _Cell()
    is_terminal = sys.stderr is not None and sys.stderr.isatty() and not _spark_shows_bars()
    if is_terminal and _terminal.acquire(blocking=False):
        try:
            return _Bar()
        except ImportError:
            _terminal.release()
            _LOG.info("to see a bar: pip install 'icebergds[cli]'")
    return _Lines()


class _Lines:
    """Lines of the log."""

    seconds = _SECONDS_BETWEEN_LINES

    def show(self, progress: Progress) -> None:
        _LOG.info("%s", progress)

    def close(self) -> None:
        return


class _Bar:
    """A bar on a terminal, which disappears at the end; it has the lock of the terminal."""

    seconds = 0.2

    def __init__(self) -> None:
        from rich import progress as bars
        from rich.console import Console

        # What the program prints meanwhile is its own.
        self._bar = bars.Progress(
            bars.TextColumn("{task.description}", markup=False),
            bars.BarColumn(_BAR_WIDTH),
            bars.TextColumn("{task.fields[amount]}", markup=False),
            bars.TimeElapsedColumn(),
            bars.TextColumn("left"),
            bars.TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
            auto_refresh=False,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._task = self._bar.add_task("", total=None, amount="")
        self._stage = ""
        self._bar.start()

    def show(self, progress: Progress) -> None:
        if progress.stage != self._stage:
            self._stage = progress.stage
            self._bar.reset(self._task)
        has_bytes = bool(progress.bytes_total)
        self._bar.update(
            self._task,
            description=printable(
                f"{progress.action}: {progress.stage}, {progress.table}",
                max(self._bar.console.width - _OTHER_WIDTH, _BAR_WIDTH),
            ),
            total=progress.bytes_total if has_bytes else progress.total,
            completed=progress.bytes_done if has_bytes else progress.done,
            amount=progress.amount,
            refresh=True,
        )

    def close(self) -> None:
        self._bar.stop()
        _terminal.release()


class _Cell:
    """A bar beneath the cell of a notebook."""

    seconds = 0.5

    def __init__(self) -> None:
        from IPython.display import display

        self._handle = display({"text/plain": ""}, raw=True, display_id=True)

    def show(self, progress: Progress) -> None:
        self._handle.update({"text/html": _html(progress), "text/plain": str(progress)}, raw=True)

    def close(self) -> None:
        # Without HTML, some notebooks would show an empty line.
        self._handle.update({"text/html": "", "text/plain": ""}, raw=True)


def _html(progress: Progress) -> str:
    total, done = progress.total, progress.done
    if progress.bytes_total:
        total, done = progress.bytes_total, progress.bytes_done
    value = "" if not total else f' max="{total}" value="{done}"'
    return f"<progress{value}></progress> {escape(str(progress))}"


def _is_notebook() -> bool:
    """Whether this process runs a notebook."""
    shell = sys.modules.get("IPython")
    return shell is not None and hasattr(shell.get_ipython(), "kernel")


def _spark_shows_bars() -> bool:
    """Whether Spark draws its own bars on the terminal."""
    if "pyspark" not in sys.modules:
        return False
    from icebergds.spark.session import draws_bars

    return draws_bars()
