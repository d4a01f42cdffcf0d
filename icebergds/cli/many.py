"""Does something with each of many tables, several at a time; a failing table stops no other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from icebergds.cli.place import Place, is_location
from icebergds.display import counted
from icebergds.errors import IcebergError, NoSuchNamespaceError, NoSuchTableError
from icebergds.expr.names import quote_name, split_name
from icebergds.interrupts import check_stopped, stop, stoppable

if TYPE_CHECKING:
    from icebergds import Catalog, Table

T = TypeVar("T")
U = TypeVar("U")

_SECONDS_TO_A_SIGNAL = 1.0


@dataclass(frozen=True, slots=True)
class OfTable(Generic[T]):
    """What came of one table.

    Attributes:
        name: the table's name.
        result: None if it failed.
        error: None if it did not.
    """

    name: str
    result: T | None
    error: Exception | None = None


@dataclass(frozen=True, slots=True)
class NamedTable:
    """A table that is loaded when it is worked on."""

    name: str
    load: Callable[[], Table]


def tables_of(at: Place, name: str | None) -> list[NamedTable]:
    """A table, the tables of a namespace and those within it, or of a catalog, sorted by name.

    Args:
        name: of a table, a namespace or a catalog, or a table's location; None for the catalog.

    Raises:
        NoSuchTableError: it is none of them.
    """
    if name is None:
        return list(_within(at.load_catalog(), ()))
    if is_location(name):
        return [NamedTable(name, lambda: at.load_table(name))]
    missing: Exception
    try:
        table = at.load_table(name)
        return [NamedTable(table.name, lambda: table)]
    except IcebergError as error:
        missing = error
    try:
        catalog, namespace = at.namespace_of(name)
        if not namespace or catalog.namespace_exists(namespace):
            return list(_within(catalog, split_name(namespace) if namespace else ()))
    except NoSuchNamespaceError:
        pass
    if isinstance(missing, NoSuchTableError):
        raise NoSuchTableError(f"{missing}; nor is {name} a namespace or a catalog") from None
    raise missing


def each_table(
    tables: Sequence[NamedTable], work: Callable[[Table], T], jobs: int
) -> list[OfTable[T]]:
    """Works on tables, so many at a time, and returns what came of each, in their order."""

    def done(table: NamedTable) -> OfTable[T]:
        try:
            return OfTable(table.name, work(table.load()))
        except Exception as error:
            return OfTable(table.name, None, error)

    return in_threads(done, tables, jobs)


def in_threads(work: Callable[[U], T], items: Sequence[U], jobs: int) -> list[T]:
    """Does something with each item, so many at a time; returns what came of them, in their order.

    Ctrl-C stops those that are begun, where that is safe, and begins no other.
    """
    if jobs == 1 or len(items) == 1:
        return [work(item) for item in items]
    notes: list[str] = []

    def begun(item: U) -> T:
        check_stopped()
        try:
            return work(item)
        except KeyboardInterrupt as error:
            notes.extend(getattr(error, "__notes__", ()))
            raise

    running: list[Future[T]] = []
    with stoppable(), ThreadPoolExecutor(jobs) as pool:
        try:
            running.extend(pool.submit(copy_context().run, begun, item) for item in items)
            # A signal that comes just before Python waits is seen only after it has waited.
            while wait(running, _SECONDS_TO_A_SIGNAL).not_done:
                pass
            return [each.result() for each in running]
        except BaseException as error:
            stop()
            pool.shutdown(cancel_futures=True)
            for note in notes:
                error.add_note(note)
            raise


def note_of(tables: int, sick: int, failed: int) -> str:
    """The line below many tables, of which so many have something to do, and so many failed."""
    note = f"{counted(tables, 'table')}, {sick:,} with something to do"
    return f"{note}, {failed:,} failed" if failed else note


def _within(catalog: Catalog, namespace: tuple[str, ...]) -> Iterator[NamedTable]:
    if namespace:
        for identifier in catalog.list_tables(namespace):
            name = quote_name((catalog.name, *identifier))
            yield NamedTable(name, lambda found=identifier: catalog.load_table(found))  # type: ignore[misc]
    for inner in catalog.list_namespaces(namespace):
        yield from _within(catalog, inner)
