"""Options of a read, parsed once: names, types, contradictions (`ReadOptions`)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Any, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from icebergds.errors import InvalidOptionError
from icebergds.scan.read_plan import DEFAULT_BATCH_SIZE, DEFAULT_DELETE_CACHE_BYTES
from icebergds.scan.splits import SplitOptions
from icebergds.table.time_travel import TimeTravel

_Value = TypeVar("_Value")

# Prefixes of properties that go to the storage or the catalog, unread by us.
_PASSED_ON = ("s3.", "gcs.", "adls.", "hdfs.", "client.", "fs.", "catalog.")

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
    time_zone = given.get("time-zone")
    return ReadOptions(
        path=path,
        catalog=given.get("catalog"),
        catalog_properties=_without_prefix(given, "catalog."),
        storage_properties={
            name: value
            for name, value in given.items()
            if name.startswith(_PASSED_ON) and not name.startswith("catalog.")
        },
        location_map=_parse(given, "location-map", _location_map, {}),
        time_travel=_parse_time_travel(given, time_zone),
        columns=given.get("columns"),
        filter=given.get("filter"),
        time_zone=_parse(given, "time-zone", _known_zone, None),
        split_size=_parse(given, "split-size", _positive, None),
        lookback=_parse(given, "lookback", _positive, None),
        file_open_cost=_parse(given, "file-open-cost", _not_negative, None),
        batch_size=_parse(given, "batch-size", _positive, DEFAULT_BATCH_SIZE),
        delete_cache_bytes=_parse(
            given, "delete-cache-bytes", _not_negative, DEFAULT_DELETE_CACHE_BYTES
        ),
        pushdown=_parse(given, "pushdown", _boolean, False),
    )


def split_options(options: ReadOptions, properties: Mapping[str, str]) -> SplitOptions:
    """How to pack tasks: an option wins over the table's property, that over the default."""
    default = SplitOptions()

    def choose(option: int | None, name: str, fallback: int) -> int:
        if option is not None:
            return option
        return int(_parse(properties, name, _positive, fallback))

    return SplitOptions(
        choose(options.split_size, "read.split.target-size", default.split_size),
        choose(options.lookback, "read.split.planning-lookback", default.lookback),
        choose(options.file_open_cost, "read.split.open-file-cost", default.file_open_cost),
    )


def _refuse_unknown(given: Mapping[str, str]) -> None:
    known = {name.lower(): name for name in _KNOWN}
    for name in given:
        if name in known or name.startswith(_PASSED_ON):
            continue
        near = get_close_matches(name, known, n=1)
        hint = f"; did you mean {known[near[0]]!r}?" if near else ""
        raise InvalidOptionError(
            f"unknown option {name!r}{hint} Known options: {', '.join(_KNOWN)}, and properties "
            f"of catalog and storage that begin with {', '.join(_PASSED_ON)}"
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
        return int(text)
    except ValueError:
        raise ValueError("expected a whole number") from None


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
        ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError):
        raise ValueError("expected a time zone such as Europe/Berlin or UTC") from None
    return text


def _location_map(text: str) -> dict[str, str]:
    try:
        parsed = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"expected a JSON object of prefixes ({error})") from None
    if not isinstance(parsed, dict) or not all(isinstance(v, str) for v in parsed.values()):
        raise ValueError('expected a JSON object such as {"s3://old/prefix/": "file:///new/"}')
    return parsed


def _timestamp_ms(text: str, time_zone: str | None) -> int:
    if text.strip().lstrip("-").isdigit():
        # Spark reads a bare number as seconds since the epoch.
        return int(text) * 1000
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(
            "expected a timestamp such as 2026-01-31T12:00:00Z, or seconds since the epoch"
        ) from None
    if moment.tzinfo is None:
        if time_zone is None:
            raise ValueError(
                "the session's time zone is not known to a data source; give an offset "
                "(2026-01-31T12:00:00Z) or option('time-zone', '<zone>')"
            )
        moment = moment.replace(tzinfo=ZoneInfo(_known_zone(time_zone)))
    return int(moment.astimezone(UTC).timestamp() * 1000)
