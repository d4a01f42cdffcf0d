"""Options of `writeStream`, made those of the writes of its micro-batches."""

from __future__ import annotations

from collections.abc import Mapping

from icebergds.errors import InvalidOptionError
from icebergds.operations.options.values import one_of, parse

# Spark's own, which it hands to every sink.
_OF_SPARK = frozenset({"checkpointlocation", "queryname"})
_ON_MISSING = "on-missing-batches"
_REFUSED = {
    "txn-app-id": "a streaming query numbers its batches by itself",
    "txn-version": "a streaming query numbers its batches by itself",
    "wap.id": "a staged snapshot is on no branch that could be asked which batches it has; use "
    "'wap.branch'",
    "overwrite-mode": "output mode 'complete' replaces all rows of the table",
    "overwrite-filter": "output mode 'complete' replaces all rows of the table",
}


def streaming_write_options(options: Mapping[str, str]) -> tuple[dict[str, str], bool]:
    """The options of each micro-batch's write, and whether the table may miss earlier batches.

    Raises:
        InvalidOptionError: one that no streaming query can have, or a malformed one.
    """
    own = {name.lower(): value for name, value in options.items()}
    may_miss_batches = parse(own, _ON_MISSING, one_of("fail", "continue"), "fail") == "continue"
    taken = _OF_SPARK | {_ON_MISSING}
    given = {name: value for name, value in options.items() if name.lower() not in taken}
    for name in given:
        if name.lower() in _REFUSED:
            raise InvalidOptionError(
                f"option {name!r} is not for writeStream: {_REFUSED[name.lower()]}"
            )
    return given, may_miss_batches
