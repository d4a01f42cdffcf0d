"""Turns the options of `writeStream` into those of its micro-batches' writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from icebergds.errors import InvalidOptionError
from icebergds.operations.options.values import one_of, parse, positive
from icebergds.suggestions import did_you_mean

PARTITIONED_BY = "stream-partitioned-by"
"""The option for `partitionBy` of a stream: the `partition-by` of a table that it creates."""

# Options of Spark itself, which it passes to every sink.
_OF_SPARK = frozenset({"checkpointlocation", "queryname"})
_ON_MISSING = "on-missing-batches"
_EVERY, _MAX_SECONDS, _MAX_BYTES = "maintain-every", "maintain-max-seconds", "maintain-max-bytes"
_OF_MAINTENANCE = (_EVERY, _MAX_SECONDS, _MAX_BYTES)
_DEFAULT_SECONDS, _DEFAULT_BYTES = 60, 1 << 30
_REFUSED = {
    "txn-app-id": "a streaming query numbers its batches by itself",
    "txn-version": "a streaming query numbers its batches by itself",
    "wap.id": "a staged snapshot is not on a branch, so it is not known which batches it has; use "
    "'wap.branch'",
    "overwrite-mode": "output mode 'complete' replaces all rows of the table",
    "overwrite-filter": "output mode 'complete' replaces all rows of the table",
}


@dataclass(frozen=True, slots=True)
class StreamMaintenance:
    """When a streaming query maintains its table, and the budget.

    Attributes:
        every: after so many batches.
        max_seconds: after so many seconds, no action and no group of files is begun.
        max_bytes: the size of the files that may be read to be replaced.
    """

    every: int
    max_seconds: int
    max_bytes: int


@dataclass(frozen=True, slots=True)
class StreamWriteOptions:
    """The options of a streaming query that writes to a table.

    Attributes:
        write: options of each micro-batch's write.
        may_miss_batches: commit even if the table has no earlier batch of the query.
        maintenance: None if the query does none.
    """

    write: Mapping[str, str]
    may_miss_batches: bool
    maintenance: StreamMaintenance | None


def streaming_write_options(options: Mapping[str, str]) -> StreamWriteOptions:
    """Parses the options of `writeStream`; those of the write are only separated from the others.

    Raises:
        InvalidOptionError: an option is malformed, or a streaming query does not support it.
    """
    own = {name.lower(): value for name, value in options.items()}
    may_miss_batches = parse(own, _ON_MISSING, one_of("fail", "continue"), "fail") == "continue"
    taken = {*_OF_SPARK, _ON_MISSING, PARTITIONED_BY, *_OF_MAINTENANCE}
    given = {name: value for name, value in options.items() if name.lower() not in taken}
    if own.get("create", "").lower() == "true" and "partition-by" not in own:
        given |= {"partition-by": own[PARTITIONED_BY]} if PARTITIONED_BY in own else {}
    for name in given:
        if name.lower() in _REFUSED:
            raise InvalidOptionError(
                f"writeStream does not support option {name!r}: {_REFUSED[name.lower()]}"
            )
        if name.lower().startswith("maintain"):
            near = did_you_mean(name, _OF_MAINTENANCE, shown=repr)
            known = ", ".join(_OF_MAINTENANCE)
            raise InvalidOptionError(
                f"unknown option {name!r}; {f'{near} ' if near else ''}Options of maintenance by a "
                f"streaming query: {known}"
            )
    return StreamWriteOptions(given, may_miss_batches, _maintenance(own))


def _maintenance(given: Mapping[str, str]) -> StreamMaintenance | None:
    every = parse(given, _EVERY, positive, None)
    if every is None:
        for name in _OF_MAINTENANCE:
            if name in given:
                raise InvalidOptionError(
                    f"option {name!r} is the budget of maintenance by a streaming query; set "
                    f"{_EVERY!r} too, after how many batches it is due"
                )
        return None
    return StreamMaintenance(
        every,
        parse(given, _MAX_SECONDS, positive, _DEFAULT_SECONDS),
        parse(given, _MAX_BYTES, positive, _DEFAULT_BYTES),
    )
