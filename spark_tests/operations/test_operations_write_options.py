"""Options of a write: names, types and contradictions."""

from __future__ import annotations

import traceback
from dataclasses import fields
from typing import Any

import pytest

from icebergds.catalog.address import TableAddress
from icebergds.commit.idempotent_writes import IdempotentWrite
from icebergds.errors import InvalidOptionError
from icebergds.io.storage_options import STORAGE_OPTIONS
from icebergds.operations.options.values import (
    boolean,
    integer,
    location_map,
    not_negative,
    positive,
)
from icebergds.operations.write import options as write_options
from icebergds.operations.write.options import Creation, WriteOptions, parse_write_options
from icebergds.spec.manifest import FileFormat


def _parse(**options: str) -> WriteOptions:
    return parse_write_options({"path": "/w/t", **options})


def test_nothing_said_leaves_everything_to_the_table() -> None:
    assert _parse() == WriteOptions(TableAddress("/w/t"))


@pytest.mark.parametrize(
    ("option", "text", "attribute", "value"),
    [
        ("branch", "main", "names_branch", True),
        ("create-branch", "true", "create_branch", True),
        ("wap.id", "x", "wap_id", "x"),
        ("overwrite-mode", "DYNAMIC", "overwrite_mode", "dynamic"),
        ("overwrite-mode", "static", "overwrite_mode", "static"),
        ("overwrite-filter", "Id > 5", "overwrite_filter", "Id > 5"),
        ("time-zone", "Europe/Berlin", "time_zone", "Europe/Berlin"),
        ("isolation-level", "none", "isolation_level", "none"),
        ("isolation-level", "Snapshot", "isolation_level", "snapshot"),
        ("isolation-level", "serializable", "isolation_level", "serializable"),
        ("validate-from-snapshot-id", "-5", "validate_from_snapshot_id", -5),
        ("merge-schema", "true", "merge_schema", True),
        ("mergeSchema", "True", "merge_schema", True),
        ("merge-schema", "false", "merge_schema", False),
        ("write-format", "ORC", "write_format", FileFormat.ORC),
        ("write-format", "avro", "write_format", FileFormat.AVRO),
        ("write-format", "parquet", "write_format", FileFormat.PARQUET),
        ("target-file-size-bytes", "1024", "target_file_size", 1024),
        ("compression-codec", "gzip", "compression_codec", "gzip"),
        ("compression-level", "9", "compression_level", "9"),
        ("shred-variants", "true", "shred_variants", True),
        ("variant-inference-buffer-size", "9", "variant_buffer_size", 9),
        ("fanout-enabled", "false", "fanout", False),
        ("distribution-mode", "Range", "distribution_mode", "range"),
        ("use-table-distribution-and-ordering", "false", "use_table_distribution", False),
    ],
)
def test_what_each_option_says(option: str, text: str, attribute: str, value: Any) -> None:
    parsed = _parse(**{option: text})
    assert getattr(parsed, attribute) == value
    others = {f.name for f in fields(parsed)} - {attribute}
    default = _parse()
    assert all(getattr(parsed, name) == getattr(default, name) for name in others)
    assert _parse(**{option.upper(): text}) == parsed


def test_a_branch_is_named() -> None:
    parsed = _parse(branch="audit")
    assert (parsed.branch, parsed.names_branch, parsed.create_branch) == ("audit", True, False)


def test_a_wap_branch_is_created() -> None:
    parsed = _parse(**{"wap.branch": "audit"})
    assert (parsed.branch, parsed.names_branch, parsed.create_branch) == ("audit", True, True)


def test_every_known_option_has_a_test() -> None:
    tested = {case[0] for case in test_what_each_option_says.pytestmark[0].args[1]}
    elsewhere = {
        *("path", "catalog", "location-map", "create", "wap.branch"),
        *("snapshot-properties", "table-properties"),
        *STORAGE_OPTIONS,
        *("partition-by", "sort-by", "location", "format-version"),
        *("txn-app-id", "txn-version"),
        *("write-operation", "upsert-keys", "upsert-order-by", "row-kind-column"),
        *("write.upsert.mode", "write.upsert.resolve-limit-bytes"),
    }
    assert tested | elsewhere == set(write_options._KNOWN)


def test_objects_of_properties_keep_the_case_of_names() -> None:
    parsed = _parse(
        **{
            "create": "true",
            "snapshot-properties": '{"JobId": "7"}',
            "snapshot-property.by": "me",
            "Table-Properties": '{"Owner": "us"}',
        }
    )
    assert parsed.snapshot_properties == {"JobId": "7", "by": "me"}
    assert parsed.creation is not None
    assert parsed.creation.properties == {"Owner": "us"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"snapshot-properties": "JobId=7"}, "expected a JSON object such as"),
        ({"snapshot-properties": '{"JobId": 7}'}, "expected a JSON object such as"),
        (
            {"snapshot-properties": '{"JobId": "7"}', "snapshot-property.jobid": "8"},
            "jobid: given both in option 'snapshot-properties' and as 'snapshot-property.jobid'",
        ),
        ({"table-properties": '{"a": "b"}'}, r"add option\('create', 'true'\)"),
    ],
)
def test_objects_of_properties_that_do_not_fit(options: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidOptionError, match=message):
        _parse(**options)


@pytest.mark.parametrize("option", ["snapshot-properties", "table-properties", "location-map"])
@pytest.mark.parametrize("text", ['{"key": "hunter2"', '{"key": ["hunter2"]}', '"hunter2"'])
def test_errors_in_objects_do_not_show_their_values(option: str, text: str) -> None:
    with pytest.raises(InvalidOptionError, match=f"option '{option}': expected") as raised:
        _parse(**{"create": "true", option: text})
    assert "hunter2" not in "".join(traceback.format_exception(raised.value))


def test_a_write_that_names_itself() -> None:
    assert _parse(**{"txn-app-id": "Job", "Txn-Version": "7"}).idempotent_write == IdempotentWrite(
        "Job", 7
    )
    assert _parse().idempotent_write is None


def test_options_name_the_table() -> None:
    given = {
        "catalog": "lake",
        "catalog.warehouse": "/w",
        "S3.Endpoint": "http://x",
        "Storage-Schemes": "oss",
        "location-map": '{"s3://old/": "/new/"}',
    }
    address = parse_write_options({"Path": "db.t", **given}).address
    assert address == TableAddress(
        "db.t",
        "lake",
        {"warehouse": "/w"},
        {"s3.endpoint": "http://x", "storage-schemes": "oss"},
        {"s3://old/": "/new/"},
    )


def test_an_address_that_is_known_wins() -> None:
    address = TableAddress("db.t", "lake", {"warehouse": "/w"})
    assert parse_write_options({"path": "db.t"}, address).address is address


@pytest.mark.parametrize(
    "option", ["catalog", "Catalog.uri", "s3.endpoint", "location-map", "storage-schemes"]
)
def test_a_loaded_table_is_not_named_again(option: str) -> None:
    with pytest.raises(InvalidOptionError, match=f"{option.lower()}: .* cannot be set"):
        parse_write_options({"path": "/w/t", option: "{}"}, TableAddress("/w/t"))


def test_names_of_properties_keep_their_case() -> None:
    parsed = _parse(
        **{
            "Snapshot-Property.JobId": "7",
            "create": "true",
            "table-property.Owner.Name": "me",
        }
    )
    assert parsed.snapshot_properties == {"JobId": "7"}
    assert parsed.creation == Creation(properties={"Owner.Name": "me"})


def test_how_a_table_is_created() -> None:
    parsed = _parse(
        **{
            "create": "TRUE",
            "partition-by": "days(TS)",
            "sort-by": "Id",
            "location": "/W/x",
            "format-version": "3",
        }
    )
    assert parsed.creation == Creation("days(TS)", "Id", "/W/x", 3)
    assert _parse(create="false").creation is None


@pytest.mark.parametrize(
    ("option", "text", "message"),
    [
        ("branhc", "x", "unknown option 'branhc'; did you mean 'branch'"),
        ("mergeSchemas", "x", "did you mean 'mergeSchema'"),
        ("snapshot-id", "1", "unknown option 'snapshot-id'"),
        ("replaceWhere", "id = 1", "option 'replacewhere': use 'overwrite-filter'"),
        ("overwriteSchema", "true", ": use 'merge-schema', which adds columns and widens types"),
        ("partitionOverwriteMode", "dynamic", ": use 'overwrite-mode' = 'dynamic' or 'static'"),
        ("dynamicPartitionOverwrite", "true", ": use 'overwrite-mode' = 'dynamic'"),
        ("txnAppId", "a", ": use 'txn-app-id'"),
        ("txnVersion", "1", ": use 'txn-version'"),
        ("userMetadata", "x", ": use 'snapshot-property.<key>'"),
        ("versionAsOf", "1", "'versionasof': it is an option of reads"),
        ("metadata-table", "files", "'metadata-table': it is an option of reads"),
        (
            "maintain-every",
            "5",
            "it is an option of streaming queries that write (writeStream); aft",
        ),
        ("on-missing-batches", "fail", "option of streaming queries that write"),
        ("timestampAsOf", "1", "'timestampasof': it is an option of reads"),
        ("readChangeFeed", "true", ": it is an option of reads: use 'changes'"),
        ("write.format.default", "orc", "Known options: path, catalog, branch"),
        ("overwrite-mode", "all", "'overwrite-mode' = 'all': expected one of static, dynamic"),
        ("isolation-level", "", "expected one of none, snapshot, serializable"),
        ("validate-from-snapshot-id", "x", "expected a whole number"),
        ("validate-from-snapshot-id", str(2**63), "at most 64 bits"),
        ("merge-schema", "yes", "'merge-schema' = 'yes': expected true or false"),
        ("mergeSchema", "1", "expected true or false"),
        ("write-format", "csv", "expected one of parquet, orc, avro"),
        ("target-file-size-bytes", "0", "above 0"),
        ("target-file-size-bytes", "1MB", "expected a whole number"),
        ("fanout-enabled", "on", "expected true or false"),
        ("distribution-mode", "sort", "expected one of none, hash, range"),
        ("use-table-distribution-and-ordering", "", "expected true or false"),
        ("time-zone", "Mars", "expected a time zone"),
        ("create", "1", "expected true or false"),
        ("location-map", "[]", "expected a JSON object"),
        ("location-map", "{", "expected a JSON object"),
        ("catalog.warehouse", "/w", "no catalog is given"),
        ("partition-by", "id", "add option('create', 'true')"),
        ("sort-by", "id", "add option('create', 'true')"),
        ("location", "/x", "add option('create', 'true')"),
        ("format-version", "2", "add option('create', 'true')"),
        ("table-property.a", "b", "add option('create', 'true')"),
    ],
)
def test_what_is_refused(option: str, text: str, message: str) -> None:
    with pytest.raises(InvalidOptionError) as caught:
        _parse(**{option: text})
    assert message in str(caught.value)


@pytest.mark.parametrize("version", ["0", "4", "two"])
def test_versions_that_tables_do_not_have_are_refused(version: str) -> None:
    with pytest.raises(InvalidOptionError, match="expected one of 1, 2, 3"):
        _parse(**{"create": "true", "format-version": version})


@pytest.mark.parametrize(
    "options",
    [
        {"branch": "a", "wap.branch": "b"},
        {"wap.id": "a", "wap.branch": "b"},
        {"merge-schema": "true", "mergeSchema": "true"},
        {"overwrite-mode": "dynamic", "overwrite-filter": "true"},
    ],
    ids=lambda options: " and ".join(options),
)
def test_contradictions_are_refused(options: dict[str, str]) -> None:
    with pytest.raises(InvalidOptionError, match="contradict each other"):
        _parse(**options)


@pytest.mark.parametrize("options", [{}, {"path": ""}, {"catalog": "lake"}], ids=str)
def test_a_write_without_a_table_says_how_to_name_one(options: dict[str, str]) -> None:
    with pytest.raises(InvalidOptionError, match="no table is named"):
        parse_write_options(options)


def test_tables_of_sparks_session_catalog_are_refused() -> None:
    with pytest.raises(InvalidOptionError, match="TEMPORARY VIEW"):
        _parse(provider="icebergpy", owner="me")


@pytest.mark.parametrize(
    ("convert", "text", "value"),
    [
        (integer, str(-(2**63)), -(2**63)),
        (positive, "1", 1),
        (not_negative, "0", 0),
        (boolean, "tRue", True),
        (location_map, "{}", {}),
    ],
)
def test_values_at_their_bounds(convert: Any, text: str, value: object) -> None:
    assert convert(text) == value


@pytest.mark.parametrize(
    ("convert", "text"),
    [
        (integer, str(-(2**63) - 1)),
        (integer, "1.0"),
        (positive, "0"),
        (not_negative, "-1"),
        (boolean, ""),
        (location_map, '{"a": 1}'),
        (location_map, "[" * 100_000),
    ],
    ids=lambda x: str(x)[:20],
)
def test_values_out_of_bounds(convert: Any, text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        convert(text)
