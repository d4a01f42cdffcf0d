"""Options of a read, parsed once: names, types, contradictions (`ReadOptions`)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from difflib import get_close_matches
from typing import Any, TypeVar

from icebergds.errors import InvalidOptionError
from icebergds.expr.literals import parse_timestamp, place
from icebergds.scan.read_plan import DEFAULT_BATCH_SIZE, DEFAULT_DELETE_CACHE_BYTES
from icebergds.scan.splits import SplitOptions
from icebergds.spec.types import TIMESTAMPTZ
from icebergds.table.time_travel import TimeTravel

_Value = TypeVar("_Value")

# Prefixes of properties that go to the storage and the catalog, unread by us.
_STORAGE = ("s3.", "gcs.", "adls.", "hdfs.", "client.", "fs.")
_CATALOG = "catalog."

_KNOWN = (
    "path",
    "catalog",
    "snapshot-id",
    "as-of-timestamp",
    "branch",
    "tag",
    "versionAsOf",
    "timestampAsOf",
    "columns",
    "filter",
    "time-zone",
    "location-map",
    "split-size",
    "lookback",
    "file-open-cost",
    "batch-size",
    "delete-cache-bytes",
    "pushdown",
)
_TIME_TRAVEL = (
    "snapshot-id",
    "as-of-timestamp",
    "branch",
    "tag",
    "versionasof",
    "timestampasof",
)


_WHOLE_NUMBER = re.compile(r"[+-]?\d+", re.ASCII)


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What `spark.read.format("icebergpy").option(...).load(path)` asks for."""

    path: str
    catalog: str | None = None
    catalog_properties: Mapping[str, str] = field(default_factory=dict)
    storage_properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    location_map: Mapping[str, str] = field(default_factory=dict)
    time_travel: TimeTravel = field(default_factory=TimeTravel)
    columns: str | None = None
    filter: str | None = None
    time_zone: str | None = None
    # None leaves the choice to the table's properties.
    split_size: int | None = None
    lookback: int | None = None
    file_open_cost: int | None = None
    batch_size: int = DEFAULT_BATCH_SIZE
    delete_cache_bytes: int = DEFAULT_DELETE_CACHE_BYTES
    pushdown: bool = False


def parse_read_options(options: Mapping[str, str]) -> ReadOptions:
    """The options of a load.

    Args:
        options: names in any case, values as Spark hands them over, as text.

    Raises:
        InvalidOptionError: an unknown name (with the nearest known one), a malformed value,
            options that contradict each other, or no path.
    """
    given = {name.lower(): value for name, value in options.items()}
    _refuse_unknown(given)
    path = given.get("path")
    if not path:
        raise InvalidOptionError(
            "no table is named: load('<table location>'), load('<metadata file>'), or "
            "option('catalog', '<name>') with load('<db.table>'). A table created in Spark's "
            "session catalog loses its options; use a temporary view with OPTIONS instead"
        )
    time_zone = _parse(given, "time-zone", _known_zone, None)
    return ReadOptions(
        path=path,
        catalog=given.get("catalog"),
        catalog_properties=_without_prefix(given, _CATALOG),
        storage_properties=storage_properties_of(given),
        location_map=_parse(given, "location-map", _location_map, {}),
        time_travel=_parse_time_travel(given, time_zone),
        columns=given.get("columns"),
        filter=given.get("filter"),
        time_zone=time_zone,
        split_size=_parse(given, "split-size", _positive, None),
        lookback=_parse(given, "lookback", _positive, None),
        file_open_cost=_parse(given, "file-open-cost", _not_negative, None),
        batch_size=_parse(given, "batch-size", _positive, DEFAULT_BATCH_SIZE),
        delete_cache_bytes=_parse(
            given, "delete-cache-bytes", _not_negative, DEFAULT_DELETE_CACHE_BYTES
        ),
        pushdown=_parse(given, "pushdown", _boolean, False),
    )


def storage_properties_of(properties: Mapping[str, str]) -> dict[str, str]:
    """Those properties that say how to reach the storage, such as `s3.endpoint`."""
    return {name: value for name, value in properties.items() if name.startswith(_STORAGE)}


def split_options(options: ReadOptions, properties: Mapping[str, str]) -> SplitOptions:
    """How to pack tasks: an option wins over the table's property, that over the default."""
    default = SplitOptions()

    def choose(option: int | None, name: str, fallback: int, least: int = 1) -> int:
        if option is not None:
            return option
        convert = _positive if least else _not_negative
        return int(_parse(properties, name, convert, fallback))

    return SplitOptions(
        choose(options.split_size, "read.split.target-size", default.split_size),
        choose(options.lookback, "read.split.planning-lookback", default.lookback),
        choose(options.file_open_cost, "read.split.open-file-cost", default.file_open_cost, 0),
    )


def _refuse_unknown(given: Mapping[str, str]) -> None:
    if "provider" in given and "owner" in given:
        raise InvalidOptionError(
            "tables of Spark's session catalog (CREATE TABLE, saveAsTable) lose their options "
            "there, so they cannot be read again; create a view instead: CREATE TEMPORARY VIEW v "
            "USING icebergpy OPTIONS (path '<table location>')"
        )
    known = {name.lower(): name for name in _KNOWN}
    for name in given:
        if name in known or name.startswith((*_STORAGE, _CATALOG)):
            continue
        near = get_close_matches(name, known, n=1)
        hint = f"; did you mean {known[near[0]]!r}?" if near else "."
        raise InvalidOptionError(
            f"unknown option {name!r}{hint} Known options: {', '.join(_KNOWN)}, and properties "
            f"of catalog and storage that begin with {', '.join((*_STORAGE, _CATALOG))}"
        )


def _parse(
    given: Mapping[str, str], name: str, convert: Callable[[str], _Value], default: Any
) -> Any:
    text = given.get(name)
    if text is None:
        return default
    try:
        return convert(text)
    except ValueError as error:
        raise InvalidOptionError(f"option {name!r} = {text!r}: {error}") from None


def _parse_time_travel(given: Mapping[str, str], time_zone: str | None) -> TimeTravel:
    named = [name for name in _TIME_TRAVEL if name in given]
    if len(named) > 1:
        raise InvalidOptionError(
            f"options {' and '.join(repr(name) for name in named)} contradict each other: each "
            "chooses a snapshot; give one of them"
        )
    return TimeTravel(
        snapshot_id=_parse(given, "snapshot-id", _integer, None),
        as_of_ms=_parse(
            given,
            "timestampasof",
            lambda text: _timestamp_ms(text, time_zone),
            _parse(given, "as-of-timestamp", _integer, None),
        ),
        branch=given.get("branch"),
        tag=given.get("tag"),
        version=given.get("versionasof"),
    )


def _without_prefix(given: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {
        name.removeprefix(prefix): value for name, value in given.items() if name.startswith(prefix)
    }


def _integer(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        raise ValueError("expected a whole number") from None
    if not -(2**63) <= value < 2**63:
        raise ValueError("expected a number of at most 64 bits")
    return value


def _positive(text: str) -> int:
    value = _integer(text)
    if value <= 0:
        raise ValueError("expected a number above 0")
    return value


def _not_negative(text: str) -> int:
    value = _integer(text)
    if value < 0:
        raise ValueError("expected 0 or more")
    return value


def _boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("expected true or false")
    return text.lower() == "true"


def _known_zone(text: str) -> str:
    try:
        place(TIMESTAMPTZ, date(1970, 1, 1), text)
    except ValueError:
        raise ValueError("expected a time zone such as Europe/Berlin, +02:00 or UTC") from None
    return text


def _location_map(text: str) -> dict[str, str]:
    try:
        parsed = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"expected a JSON object of prefixes ({error})") from None
    if not isinstance(parsed, dict) or not all(isinstance(v, str) for v in parsed.values()):
        raise ValueError('expected a JSON object such as {"s3://old/prefix/": "file:///new/"}')
    return parsed


def _timestamp_ms(text: str, time_zone: str | None) -> int:
    if _WHOLE_NUMBER.fullmatch(text.strip()):
        # Spark reads a bare number as seconds since the epoch.
        return int(text) * 1000
    try:
        moment = parse_timestamp(text.strip())
    except ValueError:
        raise ValueError(
            "expected a timestamp such as 2026-01-31T12:00:00Z, or seconds since the epoch"
        ) from None
    if moment.tzinfo is None and time_zone is None:
        raise ValueError(
            "the session's time zone is not known to a data source; give an offset "
            "(2026-01-31T12:00:00Z) or option('time-zone', '<zone>')"
        )
    micros: int = place(TIMESTAMPTZ, moment, time_zone).floor
    return micros // 1000
