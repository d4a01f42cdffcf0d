"""Parses option values and rejects unknown option names, suggesting the nearest known one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from typing import Any, TypeVar

from icebergds.catalog.address import TableAddress
from icebergds.errors import InvalidOptionError
from icebergds.expr.literals import round_literal
from icebergds.io.storage_options import is_of_storage, storage_properties_of
from icebergds.spec.table_properties import UPSERT_MODE, UPSERT_RESOLVE_LIMIT_BYTES
from icebergds.spec.types import TIMESTAMPTZ
from icebergds.suggestions import did_you_mean

_Value = TypeVar("_Value")

CATALOG_PREFIX = "catalog."
"""Prefix of catalog properties."""

HIDDEN_PROPERTIES = "storage-properties-secret"
"""The option that holds the storage properties of a loaded table, as JSON.

Spark shows options in plans, also in its event log. It leaves out the values of those whose names
look secret (`spark.redaction.regex`), which that of `adls.account-key` does not.
"""
_WRITES = {
    "replaceWhere": "'overwrite-filter'",
    "partitionOverwriteMode": "'overwrite-mode' = 'dynamic' or 'static'",
    "dynamicPartitionOverwrite": "'overwrite-mode' = 'dynamic'",
    "overwriteSchema": (
        "'merge-schema', which adds columns and widens types; to replace the schema, create "
        "another table"
    ),
    "txnAppId": "'txn-app-id'",
    "txnVersion": "'txn-version'",
    "userMetadata": "'snapshot-property.<key>' or 'snapshot-properties', a JSON object",
    "maxRecordsPerFile": "'target-file-size-bytes'",
    "optimizeWrite": "'distribution-mode'",
    "compression": "'compression-codec'",
}
_READS = {
    "readChangeFeed": "'changes'",
    "readChangeData": "'changes'",
    "maxFilesPerTrigger": "'streaming-max-files-per-micro-batch'",
    "maxBytesPerTrigger": "'streaming-max-rows-per-micro-batch'",
    "ignoreDeletes": "'streaming-skip-delete-snapshots'",
    "ignoreChanges": "'streaming-skip-overwrite-snapshots'",
    "skipChangeCommits": (
        "'streaming-skip-overwrite-snapshots' and 'streaming-skip-delete-snapshots'"
    ),
    "failOnDataLoss": "'stream-on-expired'",
}
_OWN = {name.lower(): own for name, own in (_WRITES | _READS).items()}
OF_WRITES = (
    "create-branch",
    "wap.id",
    "wap.branch",
    "txn-app-id",
    "txn-version",
    "overwrite-mode",
    "overwrite-filter",
    "validate-from-snapshot-id",
    "merge-schema",
    "mergeSchema",
    "write-format",
    "target-file-size-bytes",
    "compression-codec",
    "compression-level",
    "shred-variants",
    "variant-inference-buffer-size",
    "fanout-enabled",
    "distribution-mode",
    "use-table-distribution-and-ordering",
    "create",
    "partition-by",
    "sort-by",
    "location",
    "format-version",
    "snapshot-properties",
    "table-properties",
    "write-operation",
    "upsert-keys",
    "upsert-order-by",
    "row-kind-column",
    UPSERT_MODE.name,
    UPSERT_RESOLVE_LIMIT_BYTES.name,
)
"""The options of writes that reads have not."""

_OF_WRITES = {name.lower() for name in (*OF_WRITES, *_WRITES)}
_OF_READS = {
    "versionasof",
    "timestampasof",
    *(name.lower() for name in _READS),
    "metadata-table",
    "snapshot-id",
    "as-of-timestamp",
    "tag",
    "columns",
    "filter",
    "split-size",
    "lookback",
    "file-open-cost",
    "batch-size",
    "delete-cache-bytes",
    "pushdown",
    "wrong-counts",
    "read-change-feed",
    "changes",
    "startingversion",
    "endingversion",
    "startingtimestamp",
    "endingtimestamp",
    "start-snapshot-id",
    "end-snapshot-id",
}


_OF_STREAMS = {
    "maintain-every",
    "maintain-max-seconds",
    "maintain-max-bytes",
    "on-missing-batches",
}


def parse(
    given: Mapping[str, str],
    name: str,
    convert: Callable[[str], _Value],
    default: Any,
    *,
    quoted: bool = True,
) -> Any:
    """The value of an option, or the default if it is not given.

    Args:
        convert: parses the text, or raises a ValueError that says what is expected.
        quoted: whether errors quote the text; not if it may contain passwords.

    Raises:
        InvalidOptionError: `convert` rejects the text.
    """
    text = given.get(name)
    if text is None:
        return default
    try:
        return convert(text)
    except ValueError as error:
        shown = f"option {name!r} = {text!r}" if quoted else f"option {name!r}"
        raise InvalidOptionError(f"{shown}: {error}") from None


def refuse_unknown(
    given: Iterable[str], known: Sequence[str], prefixes: Sequence[str], *, is_write: bool
) -> None:
    """Raises InvalidOptionError for an unknown option name, suggesting what to use.

    Args:
        given: names in lower case.
        known: names as documented.
        prefixes: names that start with one of these are accepted unchecked.
        is_write: whether the options are those of a write.
    """
    lowered = {name.lower() for name in known}
    for name in given:
        if name in lowered or name.startswith(tuple(prefixes)):
            continue
        if own := own_option(name, is_write=is_write):
            raise InvalidOptionError(f"unknown option {name!r}: {own}")
        near = did_you_mean(name, known, shown=repr)
        hint = f"; {near}" if near else "."
        raise InvalidOptionError(
            f"unknown option {name!r}{hint} Known options: {', '.join(known)}, and names that "
            f"start with {', '.join(prefixes)}"
        )


def options_of(method: str, options: Mapping[str, str], known: Sequence[str]) -> dict[str, str]:
    """The options of a method, by name in lower case.

    Raises:
        InvalidOptionError: an option is not one of `known`; the nearest is suggested.
    """
    given = {name.lower(): value for name, value in options.items()}
    for name in given:
        if name not in known:
            near = did_you_mean(name, known, shown=repr)
            hint = f"; {near}" if near else "."
            raise InvalidOptionError(
                f"unknown option {name!r}{hint} Options of {method}: {', '.join(known)}"
            )
    return given


def refuse_session_tables(given: Mapping[str, str]) -> None:
    """Raises InvalidOptionError for a table of Spark's session catalog, which drops the options."""
    if "provider" in given and "owner" in given:
        raise InvalidOptionError(
            "tables in Spark's session catalog (CREATE TABLE, saveAsTable) are not supported: the "
            "session catalog drops their options, so they could not be read again; create a "
            "temporary view instead: CREATE TEMPORARY VIEW v USING icebergpy OPTIONS (path "
            "'<table location>')"
        )


def address_of(given: Mapping[str, str], path: str) -> TableAddress:
    """The table that options name.

    Raises:
        InvalidOptionError: a malformed `location-map`, or properties of a catalog without one.
    """
    return TableAddress(
        path,
        given.get("catalog"),
        without_prefix(given, CATALOG_PREFIX),
        parse(given, HIDDEN_PROPERTIES, _hidden, {}, quoted=False) | storage_properties_of(given),
        parse(given, "location-map", location_map, {}, quoted=False),
    )


def without_prefix(given: Mapping[str, str], prefix: str) -> dict[str, str]:
    """The options whose names start with a prefix, with the prefix removed."""
    return {
        name.removeprefix(prefix): value for name, value in given.items() if name.startswith(prefix)
    }


def is_of_address(name: str) -> bool:
    """Whether an option (its name in lower case) names the table, its catalog or its storage."""
    if name in ("path", "catalog", "location-map", HIDDEN_PROPERTIES):
        return True
    return name.startswith(CATALOG_PREFIX) or is_of_storage(name)


def hidden_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Storage properties as one option of a load, whose value Spark does not show."""
    return {HIDDEN_PROPERTIES: json.dumps(properties)} if properties else {}


def one_of(*values: str) -> Callable[[str], str]:
    """A parser that accepts one of `values`, ignoring case."""

    def convert(text: str) -> str:
        if text.lower() not in values:
            raise ValueError(f"expected one of {', '.join(values)}")
        return text.lower()

    return convert


def integer(text: str) -> int:
    """A 64-bit integer.

    This and the functions below raise ValueError for any other text.
    """
    try:
        value = int(text)
    except ValueError:
        raise ValueError("expected a whole number") from None
    if not -(2**63) <= value < 2**63:
        raise ValueError("expected a number of at most 64 bits")
    return value


def positive(text: str) -> int:
    """An integer above 0."""
    value = integer(text)
    if value <= 0:
        raise ValueError("expected a number above 0")
    return value


def not_negative(text: str) -> int:
    """An integer, 0 or more."""
    value = integer(text)
    if value < 0:
        raise ValueError("expected 0 or more")
    return value


def boolean(text: str) -> bool:
    """`true` or `false`, ignoring case."""
    if text.lower() not in ("true", "false"):
        raise ValueError("expected true or false")
    return text.lower() == "true"


def known_zone(text: str) -> str:
    """A time zone, as a region or an offset; returned as it was given."""
    try:
        round_literal(TIMESTAMPTZ, date(1970, 1, 1), text)
    except ValueError:
        raise ValueError("expected a time zone such as Europe/Berlin, +02:00 or UTC") from None
    return text


def json_object(example: str) -> Callable[[str], dict[str, str]]:
    """A converter of a JSON object of texts.

    Args:
        example: an example of such an object, for errors.
    """

    def convert(text: str) -> dict[str, str]:
        try:
            parsed = json.loads(text)
        except (json.JSONDecodeError, RecursionError) as error:
            raise ValueError(f"expected a JSON object such as {example} ({error})") from None
        if not isinstance(parsed, dict) or not all(isinstance(v, str) for v in parsed.values()):
            raise ValueError(f"expected a JSON object such as {example}")
        return parsed

    return convert


location_map = json_object('{"s3://old/prefix/": "file:///new/"}')
"""Converts a JSON object that maps location prefixes to their replacements."""

_hidden = json_object('{"s3.region": "eu-west-1"}')


def own_option(name: str, *, is_write: bool) -> str:
    """The hint of an unknown-option message: what to use instead; empty if that is not known.

    Args:
        name: the unknown option, in lower case.
        is_write: whether it was given to a write, rather than to a read.
    """
    if name in _OF_STREAMS:
        after = "; after a batch write, call table.maintain()" if "maintain" in name else ""
        return f"it is an option of streaming queries that write (writeStream){after}"
    if name in (_OF_READS if is_write else _OF_WRITES):
        what = "reads" if is_write else "writes"
        return f"it is an option of {what}" + (f": use {_OWN[name]}" if name in _OWN else "")
    return f"use {_OWN[name]}" if name in _OWN else ""
