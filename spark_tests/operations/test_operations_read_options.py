"""Options of a read: names, types and contradictions.

Messages that a load shows are in `test_spark_options` and `test_spark_time_travel`.
"""

from __future__ import annotations

import re
from dataclasses import fields, replace
from typing import Any

import pytest

from icebergds.catalog.address import TableAddress
from icebergds.errors import InvalidFilterError, InvalidOptionError
from icebergds.expr.sql import parse_filter
from icebergds.formats.wrong_counts import WrongCounts
from icebergds.io.fileio import FileIO
from icebergds.io.storage_options import STORAGE_OPTIONS
from icebergds.operations.options import values
from icebergds.operations.options.values import HIDDEN_PROPERTIES
from icebergds.operations.read import options as read_options
from icebergds.operations.read.change_options import (
    CHANGE_OPTIONS,
    SPARK_CHANGE_OPTIONS,
    ChangeOptions,
    Moment,
)
from icebergds.operations.read.options import (
    ReadOptions,
    parse_load_options,
    parse_read_options,
    refuse_stream_options,
    scan_options,
    split_options,
)
from icebergds.operations.read.stream_options import (
    STREAM_OPTIONS,
    StreamOptions,
    check_stream_options,
    parse_stream_options,
)
from icebergds.operations.read.time_travel import TimeTravel
from icebergds.operations.write import options as write_options
from icebergds.scan.plan.splits import SplitOptions
from icebergds.scan.projection import OWN_FEED, SPARK_FEED, FeedColumns
from icebergds.scan.read_plan import ShownTypes

NOON_MS = 1_769_860_800_000
FEED = ChangeOptions(True)
SPARK = ChangeOptions(True, for_spark=True)
ZONED = {"time-zone": "Europe/Berlin"}


def parse(**options: str) -> ReadOptions:
    return parse_read_options(options)


def test_without_options_the_current_snapshot_is_read_whole() -> None:
    assert parse() == ReadOptions()


READ: list[tuple[str, str, str, Any]] = [
    ("snapshot-id", "-5", "time_travel", TimeTravel(snapshot_id=-5)),
    ("as-of-timestamp", "7", "time_travel", TimeTravel(as_of_ms=7)),
    ("branch", "Dev", "time_travel", TimeTravel(branch="Dev")),
    ("tag", "First", "time_travel", TimeTravel(tag="First")),
    ("versionAsOf", "Dev", "time_travel", TimeTravel(version="Dev")),
    ("timestampAsOf", "2026-01-31T12:00:00Z", "time_travel", TimeTravel(as_of_ms=NOON_MS)),
    ("timestampAsOf", " 1769860800 ", "time_travel", TimeTravel(as_of_ms=NOON_MS)),
    ("columns", "Id, `a.b`, s.x", "columns", (("Id",), ("a.b",), ("s", "x"))),
    ("filter", "Id > 5", "row_filter", parse_filter("Id > 5")),
    ("split-size", "1", "split_size", 1),
    ("lookback", "2", "lookback", 2),
    ("file-open-cost", "0", "file_open_cost", 0),
    ("batch-size", "3", "batch_size", 3),
    ("delete-cache-bytes", "0", "delete_cache_bytes", 0),
    ("wrong-counts", "Warn", "wrong_counts", WrongCounts.WARN),
    ("metadata-aggregates", "False", "metadata_aggregates", False),
    ("pushdown", "True", "pushdown", True),
    ("time-as", "Time", "shown", ShownTypes(times=True)),
    ("timestamp-ns-as", "Microseconds", "shown", ShownTypes(micros=True)),
]


@pytest.mark.parametrize(("option", "text", "attribute", "value"), READ)
def test_each_option_sets_one_value(option: str, text: str, attribute: str, value: Any) -> None:
    parsed = parse(**{option: text})
    assert parsed == replace(ReadOptions(), **{attribute: value})


@pytest.mark.parametrize(("option", "text", "attribute", "value"), READ)
def test_names_of_options_have_no_case(option: str, text: str, attribute: str, value: Any) -> None:
    assert parse(**{option.upper(): text}) == parse(**{option: text})


CHANGES: list[tuple[dict[str, str], ChangeOptions]] = [
    ({"read-change-feed": "true"}, FEED),
    ({"start-snapshot-id": "1"}, ChangeOptions(False, Moment(snapshot_id=1))),
    ({"start-timestamp": "2"}, ChangeOptions(False, Moment(timestamp_ms=2))),
    ({"start-tag": "T"}, ChangeOptions(False, Moment(tag="T"))),
    (
        {"read-change-feed": "true", "end-snapshot-id": "1"},
        replace(FEED, end=Moment(snapshot_id=1)),
    ),
    (
        {"read-change-feed": "true", "end-timestamp": "2"},
        replace(FEED, end=Moment(timestamp_ms=2)),
    ),
    ({"read-change-feed": "true", "end-tag": "T"}, replace(FEED, end=Moment(tag="T"))),
    ({"read-change-feed": "true", "net-changes": "true"}, replace(FEED, net=True)),
    (
        {"read-change-feed": "true", "compute-updates": "true"},
        replace(FEED, computes_updates=True),
    ),
    (
        {"read-change-feed": "true", "identifier-columns": "a, s.b"},
        replace(FEED, computes_updates=True, identifier_columns=(("a",), ("s", "b"))),
    ),
    *(
        (
            {"start-tag": "T", f"{prefix}skip-{kind}-snapshots": "true"},
            ChangeOptions(False, Moment(tag="T"), skipped=frozenset({kind})),
        )
        for prefix in ("", "streaming-")
        for kind in ("overwrite", "delete")
    ),
]


@pytest.mark.parametrize(("options", "changes"), CHANGES, ids=lambda value: str(value)[:60])
def test_options_choose_which_changes_are_read(
    options: dict[str, str], changes: ChangeOptions
) -> None:
    assert parse(**options) == ReadOptions(changes=changes)


@pytest.mark.parametrize("options", [{"read-change-feed": "false"}, {"net-changes": "false"}])
def test_options_that_are_false_leave_the_read_at_a_snapshot(options: dict[str, str]) -> None:
    assert parse(**options) == ReadOptions()


@pytest.mark.parametrize(
    ("changes", "feed"),
    [(None, None), (ChangeOptions(False), None), (FEED, OWN_FEED), (SPARK, SPARK_FEED)],
)
def test_only_change_feeds_have_change_columns(
    changes: ChangeOptions | None, feed: FeedColumns | None
) -> None:
    assert ReadOptions(changes=changes).feed is feed


def after(version: str) -> Moment:
    return Moment(version=version)


def before(version: str) -> Moment:
    return Moment(version=version, is_before=True)


FROM_1 = replace(SPARK, start=before("1"))
FROM_NOON = replace(SPARK, start=Moment(timestamp_ms=NOON_MS - 1))
NOON = "2026-01-31T12:00:00Z"
SPARKS: list[tuple[dict[str, str], ChangeOptions]] = [
    ({"changes": "true"}, SPARK),
    ({"startingVersion": "1"}, FROM_1),
    ({"startingVersion": "1", "startingBoundInclusive": "true"}, FROM_1),
    (
        {"startingVersion": "tag", "startingBoundInclusive": "false"},
        replace(SPARK, start=after("tag")),
    ),
    ({"startingVersion": "1", "endingVersion": "2"}, replace(FROM_1, end=after("2"))),
    (
        {"startingVersion": "1", "endingVersion": "2", "endingBoundInclusive": "false"},
        replace(FROM_1, end=before("2")),
    ),
    ({"startingTimestamp": NOON}, FROM_NOON),
    (
        {"startingTimestamp": NOON, "startingBoundInclusive": "false"},
        replace(SPARK, start=Moment(timestamp_ms=NOON_MS)),
    ),
    # A snapshot of the last whole millisecond is earlier, and of the next one later.
    (
        {"startingTimestamp": "2026-01-31T12:00:00.000001Z"},
        replace(SPARK, start=Moment(timestamp_ms=NOON_MS)),
    ),
    (
        {"startingTimestamp": NOON, "endingTimestamp": NOON},
        replace(FROM_NOON, end=Moment(timestamp_ms=NOON_MS)),
    ),
    (
        {"startingTimestamp": NOON, "endingTimestamp": NOON, "endingBoundInclusive": "false"},
        replace(FROM_NOON, end=Moment(timestamp_ms=NOON_MS - 1)),
    ),
    ({"deduplicationMode": "None"}, replace(SPARK, keeps_carryovers=True)),
    ({"deduplicationMode": "dropCarryovers"}, SPARK),
    ({"deduplicationMode": "netChanges"}, replace(SPARK, net=True)),
    ({"computeUpdates": "true"}, replace(SPARK, computes_updates=True)),
    (
        {"computeUpdates": "true", "deduplicationMode": "netChanges"},
        replace(SPARK, computes_updates=True, net=True),
    ),
    (
        {"changes": "true", "identifier-columns": "a"},
        replace(SPARK, computes_updates=True, identifier_columns=(("a",),)),
    ),
]


@pytest.mark.parametrize(("options", "changes"), SPARKS, ids=lambda value: str(value)[:80])
def test_options_of_sparks_change_data_choose_the_same_feed(
    options: dict[str, str], changes: ChangeOptions
) -> None:
    assert parse(**options).changes == changes
    assert parse(**{name.lower(): value for name, value in options.items()}).changes == changes


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"startingVersion": "1", "endingTimestamp": NOON},
            "[INVALID_CDC_OPTION.CONFLICTING_RANGE_TYPES] Invalid Change Data Capture (CDC) option."
            " Cannot specify both version and timestamp ranges for CDC queries. Use either "
            "`startingVersion`/`endingVersion` or `startingTimestamp`/`endingTimestamp`.",
        ),
        (
            {"endingVersion": "1"},
            "[INVALID_CDC_OPTION.MISSING_STARTING_VERSION] Invalid Change Data Capture (CDC) option"
            ". `startingVersion` is required when `endingVersion` is specified for CDC queries.",
        ),
        (
            {"endingTimestamp": NOON},
            "[INVALID_CDC_OPTION.MISSING_STARTING_TIMESTAMP] Invalid Change Data Capture (CDC) "
            "option. `startingTimestamp` is required when `endingTimestamp` is specified for CDC "
            "queries.",
        ),
        (
            {"startingTimestamp": "5"},
            "[INVALID_CDC_OPTION.INVALID_TIMESTAMP] Invalid Change Data Capture (CDC) option. The "
            "timestamp '5' cannot be cast to TIMESTAMP type for CDC queries",
        ),
        (
            {"deduplicationMode": "all"},
            "[INVALID_CDC_OPTION.INVALID_DEDUPLICATION_MODE] Invalid Change Data Capture (CDC) "
            "option. Invalid `deduplicationMode`: 'all'. Expected one of: none, dropCarryovers, "
            "netChanges.",
        ),
        (
            {"deduplicationMode": "none", "computeUpdates": "true"},
            "[INVALID_CDC_OPTION.UPDATE_DETECTION_REQUIRES_CARRY_OVER_REMOVAL] Invalid Change Data "
            "Capture (CDC) option. `computeUpdates` cannot be used with `deduplicationMode=none`",
        ),
        ({"startingVersion": "1", "changes": "false"}, "option 'startingVersion' contradicts cha"),
        ({"changes": "true", "net-changes": "true"}, "options 'changes' and 'net-changes' contra"),
        ({"startingVersion": "1", "start-tag": "t"}, "options 'startingVersion' and 'start-tag'"),
        ({"computeUpdates": "maybe"}, "option 'computeupdates' = 'maybe'"),
        ({"computeUpdates": "true", "pushdown": "true"}, "pushdown contradicts computeUpdates"),
        ({"changes": "true", "snapshot-id": "1"}, "option 'snapshot-id' chooses one snapshot"),
        (
            {"startingTimestamp": "2026-02-01T00:00:00Z", "endingTimestamp": NOON},
            "startingTimestamp (2026-02-01T00:00:00Z) is later than endingTimestamp (2026-01-31",
        ),
    ],
    ids=lambda value: str(value)[:60],
)
def test_wrong_options_of_sparks_change_data_are_refused_in_sparks_words(
    options: dict[str, str], message: str
) -> None:
    with pytest.raises(InvalidOptionError, match=f"^{re.escape(message)}"):
        parse(**options)


def test_changes_can_be_switched_off() -> None:
    assert parse(changes="false") == ReadOptions()


STREAMS: list[tuple[str, str, StreamOptions]] = [
    ("stream-from", "Now", StreamOptions("now")),
    ("stream-from-timestamp", "5", StreamOptions(start_ms=5)),
    ("start-snapshot-id", "5", StreamOptions(start_snapshot_id=5)),
    ("stream-on-expired", "latest", StreamOptions(goes_on=True)),
    ("streaming-max-files-per-micro-batch", "5", StreamOptions(max_files=5)),
    ("streaming-max-rows-per-micro-batch", "5", StreamOptions(max_rows=5)),
    ("read-change-feed", "true", StreamOptions(changes=FEED)),
    ("changes", "true", StreamOptions(changes=SPARK)),
    ("startingVersion", "1", StreamOptions(changes=replace(SPARK, start=before("1")))),
    ("computeUpdates", "true", StreamOptions(changes=replace(SPARK, computes_updates=True))),
    ("streaming-skip-delete-snapshots", "true", StreamOptions(skipped=frozenset({"delete"}))),
]


@pytest.mark.parametrize(("option", "text", "parsed"), STREAMS)
def test_each_option_of_streams_sets_one_value(
    option: str, text: str, parsed: StreamOptions
) -> None:
    assert parse_stream_options({option.upper(): text}) == parsed


def test_every_known_option_has_a_test() -> None:
    of_reads = {option for option, *_ in READ}
    of_changes = {name for options, _ in CHANGES for name in options}
    of_streams = {option for option, *_ in STREAMS} & set(STREAM_OPTIONS)
    of_changes |= {name for options, _ in SPARKS for name in options}
    assert of_changes == {*CHANGE_OPTIONS, *SPARK_CHANGE_OPTIONS}
    elsewhere = {"path", "catalog", "location-map", "time-zone", *STORAGE_OPTIONS}
    # One is for writes through a view, and only checked here; the other for loads alone.
    elsewhere |= {"isolation-level", "metadata-table"}
    assert of_reads | of_changes | of_streams | elsewhere == set(read_options._KNOWN)


def test_every_attribute_has_a_test() -> None:
    tested = {attribute for _, _, attribute, _ in READ}
    # Set by statements, not by options.
    assert tested | {"changes", "for_changes"} == {f.name for f in fields(ReadOptions)}


def test_times_and_filters_without_an_offset_are_in_the_time_zone() -> None:
    parsed = parse(timestampAsOf="2026-01-31 13:00:00", **ZONED)
    assert parsed.time_travel == TimeTravel(as_of_ms=NOON_MS)
    condition = "at > '2026-01-31 13:00:00'"
    assert parse(filter=condition, **ZONED).row_filter == parse_filter(
        condition, time_zone="Europe/Berlin"
    )


@pytest.mark.parametrize("text", ["2026-01-31T12:00:00Z", "2026-01-31 13:00:00", str(NOON_MS)])
def test_every_moment_is_a_timestamp_or_a_number_of_milliseconds(text: str) -> None:
    noon = Moment(timestamp_ms=NOON_MS)
    assert parse(**{"as-of-timestamp": text}, **ZONED).time_travel == TimeTravel(as_of_ms=NOON_MS)
    appends = parse(**{"start-timestamp": text, "end-timestamp": text}, **ZONED).changes
    assert appends == ChangeOptions(False, noon, noon)
    stream = parse_stream_options({"stream-from-timestamp": text, **ZONED})
    assert stream == StreamOptions(start_ms=NOON_MS)


def test_the_time_zone_of_the_session_is_that_of_changes() -> None:
    given = {"start-timestamp": "2026-01-31 13:00:00"}
    parsed = parse_read_options(given, time_zone="Europe/Berlin")
    assert parsed.changes == ChangeOptions(False, Moment(timestamp_ms=NOON_MS))


@pytest.mark.parametrize("option", ["timestampAsOf", "versionAsOf"])
def test_an_option_of_one_snapshot_is_named_as_it_was_given(option: str) -> None:
    with pytest.raises(InvalidOptionError, match=f"option '{option}' chooses one snapshot"):
        parse(**{option: "1", "read-change-feed": "true"})
    with pytest.raises(InvalidOptionError, match=f"options 'branch' and '{option}' contradict"):
        parse(**{option: "1", "branch": "main"})


@pytest.mark.parametrize(
    ("option", "hint"),
    [
        ("readChangeFeed", "use 'changes'"),
        ("maxFilesPerTrigger", "use 'streaming-max-files-per-micro-batch'"),
        ("skipChangeCommits", "use 'streaming-skip-overwrite-snapshots' and"),
        ("replaceWhere", "it is an option of writes: use 'overwrite-filter'"),
        ("mergeSchema", "it is an option of writes$"),
    ],
)
def test_options_of_other_formats_lead_to_ours(option: str, hint: str) -> None:
    with pytest.raises(InvalidOptionError, match=f"^unknown option '{option.lower()}': {hint}"):
        parse(**{option: "1"})


def test_the_time_zone_option_replaces_that_of_the_session() -> None:
    given = {"timestampAsOf": "2026-01-31 13:00:00", **ZONED}
    assert parse_read_options(given, time_zone="UTC").time_travel == TimeTravel(as_of_ms=NOON_MS)


@pytest.mark.parametrize(
    ("argument", "attribute", "value"),
    [
        ({"filter": "id > 5"}, "row_filter", parse_filter("id > 5")),
        ({"columns": [("id",)]}, "columns", (("id",),)),
        ({"snapshot_id": 5}, "time_travel", TimeTravel(snapshot_id=5)),
        ({"branch": "dev"}, "time_travel", TimeTravel(branch="dev")),
        ({"tag": "first"}, "time_travel", TimeTravel(tag="first")),
    ],
    ids=lambda value: str(value),
)
def test_arguments_of_a_scan_say_the_same_as_options(
    argument: dict[str, Any], attribute: str, value: Any
) -> None:
    assert parse_read_options({}, **argument) == replace(ReadOptions(), **{attribute: value})


@pytest.mark.parametrize(
    ("argument", "option"),
    [
        ({"columns": [("id",)]}, {"Columns": "id"}),
        ({"snapshot_id": 5}, {"snapshot-id": "5"}),
        ({"branch": "dev"}, {"branch": "dev"}),
        ({"tag": "first"}, {"tag": "first"}),
    ],
    ids=lambda value: str(value),
)
def test_what_an_argument_says_is_not_said_again(
    argument: dict[str, Any], option: dict[str, str]
) -> None:
    (name,) = option
    with pytest.raises(InvalidOptionError, match=f"^{name.lower()}: given as an argument"):
        parse_read_options(option, **argument)


@pytest.mark.parametrize(
    ("option", "text", "message"),
    [
        ("delete-cache-bytes", "-1", "option 'delete-cache-bytes' = '-1': expected 0 or more"),
        ("delete-cache-bytes", "1GB", "'delete-cache-bytes' = '1GB': expected a whole number"),
        (
            "isolation-level",
            "all",
            "option 'isolation-level' = 'all': expected one of none, snapshot, serializable",
        ),
        ("metadata-aggregates", "no", "option 'metadata-aggregates' = 'no': expected"),
        ("wrong-counts", "ignore", "option 'wrong-counts' = 'ignore': expected one of fail, warn"),
        ("start-snapshot-id", "x", "option 'start-snapshot-id' = 'x': expected a whole number"),
        ("start-timestamp", "x", "option 'start-timestamp' = 'x': expected a timestamp such as"),
        ("end-timestamp", "x", "2026-01-31T12:00:00Z, or milliseconds since 1970"),
        ("as-of-timestamp", "2026-01-31 12:00:00", "give an offset"),
        ("as-of-timestamp", "9223372036854775808", "expected a number of at most 64 bits"),
        ("timestampAsOf", "253402300800", "beyond the year 9999; use 'as-of-timestamp'"),
        ("timestampAsOf", "-253402300800", "beyond the year 9999"),
    ],
)
def test_malformed_values_are_refused_by_name(option: str, text: str, message: str) -> None:
    with pytest.raises(InvalidOptionError) as caught:
        parse(**{option: text})
    assert message in str(caught.value)


def test_a_scan_of_no_columns_is_refused() -> None:
    with pytest.raises(InvalidOptionError, match="name some, or leave columns out"):
        parse_read_options({}, columns=[])


def test_a_filter_that_is_not_a_condition_is_refused() -> None:
    with pytest.raises(InvalidFilterError, match="is not a condition of Spark SQL"):
        parse_read_options({}, filter="id >")


@pytest.mark.parametrize(
    ("options", "arguments", "name"),
    [
        ({"snapshot-id": "1"}, {}, "snapshot-id"),
        ({"as-of-timestamp": "1"}, {}, "as-of-timestamp"),
        ({"versionAsOf": "dev"}, {}, "versionAsOf"),
        ({}, {"snapshot_id": 1}, "snapshot-id"),
        ({}, {"tag": "first"}, "tag"),
    ],
    ids=lambda value: str(value),
)
def test_changes_are_not_read_at_a_snapshot(
    options: dict[str, str], arguments: dict[str, Any], name: str
) -> None:
    with pytest.raises(InvalidOptionError, match=f"option '{name}' chooses one snapshot"):
        parse_read_options({"read-change-feed": "true", **options}, **arguments)


@pytest.mark.parametrize(
    ("options", "arguments"),
    [
        ({"snapshot-id": "1", "tag": "first"}, {}),
        ({"tag": "first"}, {"snapshot_id": 1}),
        ({}, {"snapshot_id": 1, "tag": "first"}),
    ],
    ids=lambda value: str(value),
)
def test_one_snapshot_is_chosen(options: dict[str, str], arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidOptionError, match="'snapshot-id' and 'tag' contradict each other"):
        parse_read_options(options, **arguments)


def test_changes_are_read_on_a_branch() -> None:
    parsed = parse_read_options({"read-change-feed": "true"}, branch="dev")
    assert parsed == ReadOptions(TimeTravel(branch="dev"), changes=FEED)


@pytest.mark.parametrize("option", STREAM_OPTIONS)
def test_a_batch_read_refuses_options_of_streams(option: str) -> None:
    with pytest.raises(InvalidOptionError, match=f"option '{option}' needs readStream"):
        refuse_stream_options({option.upper(): "x"})


@pytest.mark.parametrize(
    "option", ["tag", "timestampAsOf", "start-tag", "end-tag", "compute-updates", "pushdown"]
)
def test_a_stream_refuses_options_of_batch_reads(option: str) -> None:
    with pytest.raises(InvalidOptionError, match=f"not support option '{option.lower()}'"):
        parse_stream_options({option: "x"})


def test_a_stream_with_two_starts_is_refused() -> None:
    starts = {"stream-from": "now", "stream-from-timestamp": "5"}
    with pytest.raises(InvalidOptionError, match="'stream-from' and 'stream-from-timestamp' contr"):
        parse_stream_options(starts)


def test_options_of_streams_are_checked_only_if_there_are_some() -> None:
    check_stream_options({"tag": "first"})
    with pytest.raises(InvalidOptionError, match="not support option 'tag'"):
        check_stream_options({"tag": "first", "Stream-From": "now"})


def test_a_load_names_its_table_and_what_to_read_of_it() -> None:
    given = {
        "Path": "db.t",
        "catalog": "lake",
        "Catalog.Warehouse": "/w",
        "s3.endpoint": "http://x",
        "Storage-Schemes": "oss",
        "location-map": '{"s3://old/": "/new/"}',
        "branch": "dev",
    }
    address, options = parse_load_options(given)
    assert address == TableAddress(
        "db.t",
        "lake",
        {"warehouse": "/w"},
        {"s3.endpoint": "http://x", "storage-schemes": "oss"},
        {"s3://old/": "/new/"},
    )
    assert options == ReadOptions(TimeTravel(branch="dev"))


def test_the_load_of_a_scan_has_the_storage_of_its_table() -> None:
    storage = {"adls.account-key": "x", "s3.secret-access-key": "y", "storage-schemes": "oss"}
    given = scan_options(FileIO(storage, {"a": "/b"}), {"branch": "dev", "tag": None}, {})
    address, options = parse_load_options({**given, "path": "/t/metadata/v1.metadata.json"})
    assert address.storage_properties == storage
    assert address.location_map["a"] == "/b"
    assert options == ReadOptions(TimeTravel(branch="dev"))


@pytest.mark.parametrize("text", ["secret", "[]", '{"s3.endpoint": 1}'])
def test_malformed_properties_of_a_storage_are_refused_without_showing_them(text: str) -> None:
    with pytest.raises(InvalidOptionError, match=f"'{HIDDEN_PROPERTIES}': ") as refused:
        parse_load_options({"path": "/t", HIDDEN_PROPERTIES: text})
    assert text not in str(refused.value).partition(": ")[2]


def test_a_load_of_several_tables_is_refused() -> None:
    with pytest.raises(InvalidOptionError, match=r"load reads one table, not several .* union"):
        parse_load_options({"paths": '["/a", "/b"]'})


def test_a_load_of_a_table_of_the_session_catalog_is_refused() -> None:
    with pytest.raises(InvalidOptionError, match="create a temporary view instead"):
        parse_load_options({"path": "/w/t", "provider": "icebergpy", "owner": "me"})


PROPERTIES = {
    "read.split.target-size": "10",
    "read.split.planning-lookback": "20",
    "read.split.open-file-cost": "0",
}


def test_tasks_are_packed_by_the_properties_of_the_table() -> None:
    assert split_options(ReadOptions(), PROPERTIES) == SplitOptions(10, 20, 0)


def test_tasks_are_packed_by_defaults_without_properties() -> None:
    assert split_options(ReadOptions(), {}) == SplitOptions()


@pytest.mark.parametrize(
    ("chosen", "packed"),
    [
        (ReadOptions(split_size=5), SplitOptions(5, 20, 0)),
        (ReadOptions(lookback=5), SplitOptions(10, 5, 0)),
        (ReadOptions(file_open_cost=5), SplitOptions(10, 20, 5)),
    ],
    ids=["split-size", "lookback", "file-open-cost"],
)
def test_options_precede_the_properties_of_the_table(
    chosen: ReadOptions, packed: SplitOptions
) -> None:
    assert split_options(chosen, PROPERTIES) == packed


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("read.split.target-size", "0", "an integer of at least 1"),
        ("read.split.planning-lookback", "0", "an integer of at least 1"),
        ("read.split.open-file-cost", "-1", "an integer of at least 0"),
    ],
)
def test_properties_of_no_use_are_refused_by_name(name: str, text: str, expected: str) -> None:
    with pytest.raises(InvalidOptionError, match=f"{name} is '{text}', expected {expected}"):
        split_options(ReadOptions(), {name: text})


@pytest.mark.parametrize("name", ["wap.branch", "merge-schema", "distribution-mode"])
def test_options_of_writes_are_named_as_such(name: str) -> None:
    with pytest.raises(InvalidOptionError, match="it is an option of writes"):
        parse(**{name: "true"})


def test_options_that_are_named_as_those_of_one_side_are_no_options_of_the_other() -> None:
    assert not values._OF_WRITES & {name.lower() for name in read_options._KNOWN}
    assert not values._OF_READS & {name.lower() for name in write_options._KNOWN}
