"""Describes the Spark jobs of a verb of the public interface; imports Spark lazily."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeVar, cast

_Verb = TypeVar("_Verb", bound=Callable[..., Any])


def jobs_described(verb: _Verb) -> _Verb:
    """Describes the jobs of a method by its name and that of its table."""
    statement = verb.__name__

    @wraps(verb)
    def described(self: Any, *args: Any, **kwargs: Any) -> Any:
        with describing_jobs(statement, self.name):
            return verb(self, *args, **kwargs)

    return cast(_Verb, described)


@contextmanager
def describing_jobs(what: str, table: str) -> Iterator[None]:
    """Describes the jobs of the block as those of work on a table; none run without pyspark."""
    if "pyspark" not in sys.modules:
        yield
        return
    from icebergds.spark.job_descriptions import describing

    with describing(f"{_STATEMENTS.get(what, what)} {table}"):
        yield


# Verbs that SQL has, too, are shown as in SQL.
_STATEMENTS = {"delete": "DELETE", "update": "UPDATE", "merge": "MERGE"}
