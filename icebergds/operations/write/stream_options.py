"""Turns the options of `writeStream` into those of its micro-batches' writes."""

from __future__ import annotations

from collections.abc import Mapping

from icebergds.errors import InvalidOptionError
from icebergds.operations.options.values import one_of, parse

# Options of Spark itself, which it passes to every sink.
_OF_SPARK = frozenset({"checkpointlocation", "queryname"})
_ON_MISSING = "on-missing-batches"
_REFUSED = {
    "txn-app-id": "a streaming query numbers its batches by itself",
    "txn-version": "a streaming query numbers its batches by itself",
    "wap.id": "a staged snapshot is not on a branch, so it is not known which batches it has; use "
    "'wap.branch'",
    "overwrite-mode": "output mode 'complete' replaces all rows of the table",
    "overwrite-filter": "output mode 'complete' replaces all rows of the table",
}


def streaming_write_options(options: Mapping[str, str]) -> tuple[dict[str, str], bool]:
    """The options of each micro-batch's write, and whether the table may miss earlier batches.

    Raises:
        InvalidOptionError: an option is malformed, or a streaming query does not support it.
    """
    own = {name.lower(): value for name, value in options.items()}
    may_miss_batches = parse(own, _ON_MISSING, one_of("fail", "continue"), "fail") == "continue"
    taken = _OF_SPARK | {_ON_MISSING}
    given = {name: value for name, value in options.items() if name.lower() not in taken}
    for name in given:
        if name.lower() in _REFUSED:
            raise InvalidOptionError(
                f"writeStream does not support option {name!r}: {_REFUSED[name.lower()]}"
            )
    return given, may_miss_batches
