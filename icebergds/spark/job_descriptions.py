"""Describes the jobs of this package in Spark's UI: `icebergds: MERGE lake.db.t, write`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from pyspark import SparkContext

from icebergds.display import printable

_DESCRIPTION = "spark.job.description"


@dataclass(frozen=True, slots=True)
class _Work:
    """What jobs are run for.

    Attributes:
        user_text: the caller's own description of its jobs; None if there is none.
    """

    what: str
    user_text: str | None


_work: ContextVar[_Work | None] = ContextVar("work", default=None)


@contextmanager
def describing(what: str) -> Iterator[None]:
    """Describes the jobs of the block, and those of its `phase`s, also in other threads.

    A description that the caller has set for the thread stays visible, in front. If Python cannot
    reach the SparkContext, as in Spark Connect, nothing is described.

    Args:
        what: such as `MERGE lake.db.t`.
    """
    outer, context = _work.get(), _context()
    user_text = _described(context) if outer is None else outer.user_text
    work = _Work(printable(what), user_text)
    token = _work.set(work)
    try:
        with _set(context, _text(work, None)):
            yield
    finally:
        _work.reset(token)


@contextmanager
def phase(name: str | None = None) -> Iterator[None]:
    """Describes the jobs of the block as those of a phase of the work; does nothing without one.

    Threads that the package starts, with the context of the calling thread, need it for each of
    their jobs, because Spark keeps descriptions per thread.
    """
    work = _work.get()
    if work is None:
        yield
        return
    with _set(_context(), _text(work, name)):
        yield


def _text(work: _Work, name: str | None) -> str:
    ours = f"icebergds: {work.what}" if name is None else f"icebergds: {work.what}, {name}"
    return ours if work.user_text is None else f"{work.user_text} ({ours})"


def _context() -> SparkContext | None:
    return SparkContext._active_spark_context


@contextmanager
def _set(context: SparkContext | None, text: str) -> Iterator[None]:
    before = _described(context)
    _describe(context, text)
    try:
        yield
    finally:
        _describe(context, before)


def _described(context: SparkContext | None) -> str | None:
    try:
        # An empty description counts as none: some callers remove theirs by setting an empty one.
        return None if context is None else context.getLocalProperty(_DESCRIPTION) or None
    except Exception:
        # The JVM has ended, or the platform hides it from Python: the work itself raises an error.
        return None


def _describe(context: SparkContext | None, text: str | None) -> None:
    try:
        if context is not None:
            # None removes the property, which PySpark's annotation does not allow.
            context.setLocalProperty(_DESCRIPTION, text)  # type: ignore[arg-type]
    except Exception:
        return
