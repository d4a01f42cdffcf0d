"""Names the table properties used by writes and commits, with defaults and typed access.

Names and defaults are Java Iceberg's. A property of `X` has its default in `X_DEFAULT`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from icebergds.errors import InvalidOptionError
from icebergds.suggestions import did_you_mean

FORMAT_VERSION = "format-version"
FORMAT_VERSION_DEFAULT = 2

RESERVED_PROPERTIES = frozenset(
    {
        FORMAT_VERSION,
        "uuid",
        "snapshot-count",
        "current-snapshot-id",
        "current-snapshot-summary",
        "current-snapshot-timestamp-ms",
        "current-schema",
        "default-partition-spec",
        "default-sort-order",
    }
)
"""Names for fields of the metadata itself; never stored as properties."""

TXN_MAX_AGE_MS = "icebergds.txn-max-age-ms"
TXN_MAX_AGE_MS_DEFAULT = 90 * 24 * 60 * 60 * 1000
"""Of icebergds itself: how long the table remembers a streaming query that writes no more."""

COMMIT_NUM_RETRIES = "commit.retry.num-retries"
COMMIT_NUM_RETRIES_DEFAULT = 4
COMMIT_MIN_RETRY_WAIT_MS = "commit.retry.min-wait-ms"
COMMIT_MIN_RETRY_WAIT_MS_DEFAULT = 100
COMMIT_MAX_RETRY_WAIT_MS = "commit.retry.max-wait-ms"
COMMIT_MAX_RETRY_WAIT_MS_DEFAULT = 60_000
COMMIT_TOTAL_RETRY_TIME_MS = "commit.retry.total-timeout-ms"
COMMIT_TOTAL_RETRY_TIME_MS_DEFAULT = 1_800_000

COMMIT_NUM_STATUS_CHECKS = "commit.status-check.num-retries"
COMMIT_NUM_STATUS_CHECKS_DEFAULT = 3
COMMIT_STATUS_CHECKS_MIN_WAIT_MS = "commit.status-check.min-wait-ms"
COMMIT_STATUS_CHECKS_MIN_WAIT_MS_DEFAULT = 1_000
COMMIT_STATUS_CHECKS_MAX_WAIT_MS = "commit.status-check.max-wait-ms"
COMMIT_STATUS_CHECKS_MAX_WAIT_MS_DEFAULT = 60_000
COMMIT_STATUS_CHECKS_TOTAL_WAIT_MS = "commit.status-check.total-timeout-ms"
COMMIT_STATUS_CHECKS_TOTAL_WAIT_MS_DEFAULT = 1_800_000

MANIFEST_TARGET_SIZE_BYTES = "commit.manifest.target-size-bytes"
MANIFEST_TARGET_SIZE_BYTES_DEFAULT = 8 * 1024 * 1024
MANIFEST_MIN_MERGE_COUNT = "commit.manifest.min-count-to-merge"
MANIFEST_MIN_MERGE_COUNT_DEFAULT = 100
MANIFEST_MERGE_ENABLED = "commit.manifest-merge.enabled"
MANIFEST_MERGE_ENABLED_DEFAULT = True
MANIFEST_COMPRESSION = "write.manifest.compression-codec"
MANIFEST_COMPRESSION_DEFAULT = "gzip"
MANIFEST_COMPRESSION_LEVEL = "write.manifest.compression-level"

DEFAULT_FILE_FORMAT = "write.format.default"
DEFAULT_FILE_FORMAT_DEFAULT = "parquet"
PARQUET_COMPRESSION = "write.parquet.compression-codec"
PARQUET_COMPRESSION_DEFAULT = "zstd"
"""New tables store it as a property, as in Java; Java's default without the property is gzip."""
TARGET_FILE_SIZE_BYTES = "write.target-file-size-bytes"
TARGET_FILE_SIZE_BYTES_DEFAULT = 512 * 1024 * 1024
DELETE_TARGET_FILE_SIZE_BYTES = "write.delete.target-file-size-bytes"
DELETE_TARGET_FILE_SIZE_BYTES_DEFAULT = 64 * 1024 * 1024
DISTRIBUTION_MODE = "write.distribution-mode"
"""Its default depends on the partitioning and the sort order."""
FANOUT_ENABLED = "write.spark.fanout.enabled"
FANOUT_ENABLED_DEFAULT = False

DATA_PATH = "write.data.path"
METADATA_PATH = "write.metadata.path"
ACCEPT_ANY_SCHEMA = "write.spark.accept-any-schema"
"""Java Iceberg needs it for writes with other columns; here every write is as if it were true."""
AUTO_SCHEMA_EVOLUTION = "write.spark.auto-schema-evolution.enabled"
"""Whether statements WITH SCHEMA EVOLUTION change the columns of the table."""
AUTO_SCHEMA_EVOLUTION_DEFAULT = True

OBJECT_STORAGE_ENABLED = "write.object-storage.enabled"
OBJECT_STORAGE_ENABLED_DEFAULT = False
OBJECT_STORAGE_PARTITIONED_PATHS = "write.object-storage.partitioned-paths"
OBJECT_STORAGE_PARTITIONED_PATHS_DEFAULT = True

METADATA_COMPRESSION = "write.metadata.compression-codec"
METADATA_COMPRESSION_DEFAULT = "none"
METADATA_PREVIOUS_VERSIONS_MAX = "write.metadata.previous-versions-max"
METADATA_PREVIOUS_VERSIONS_MAX_DEFAULT = 100
METADATA_DELETE_AFTER_COMMIT_ENABLED = "write.metadata.delete-after-commit.enabled"
METADATA_DELETE_AFTER_COMMIT_ENABLED_DEFAULT = False
SUMMARY_PARTITION_LIMIT = "write.summary.partition-limit"
SUMMARY_PARTITION_LIMIT_DEFAULT = 0

MAX_SNAPSHOT_AGE_MS = "history.expire.max-snapshot-age-ms"
MAX_SNAPSHOT_AGE_MS_DEFAULT = 5 * 24 * 60 * 60 * 1000
MIN_SNAPSHOTS_TO_KEEP = "history.expire.min-snapshots-to-keep"
MIN_SNAPSHOTS_TO_KEEP_DEFAULT = 1
MAX_REF_AGE_MS = "history.expire.max-ref-age-ms"
MAX_REF_AGE_MS_DEFAULT = 2**63 - 1
GC_ENABLED = "gc.enabled"
GC_ENABLED_DEFAULT = True
WAP_ENABLED = "write.wap.enabled"
WAP_ENABLED_DEFAULT = False


def int_property(
    properties: Mapping[str, str], name: str, default: int, *, minimum: int | None = None
) -> int:
    """An integer property, or its default if it is not set.

    Raises InvalidOptionError if it is not an integer or below `minimum`.
    """
    text = properties.get(name)
    if text is None:
        return default
    expected = "an integer" if minimum is None else f"an integer of at least {minimum}"
    if _INTEGER.fullmatch(text.strip()) is None:
        raise _invalid(name, text, expected)
    value = int(text)
    if minimum is not None and value < minimum:
        raise _invalid(name, text, expected)
    return value


def float_property(properties: Mapping[str, str], name: str, default: float) -> float:
    """A property that is a finite number, or its default if it is not set.

    Raises InvalidOptionError if it is not one.
    """
    text = properties.get(name)
    if text is None:
        return default
    if _NUMBER.fullmatch(text.strip()) is None:
        raise _invalid(name, text, "a number")
    return float(text)


def bool_property(properties: Mapping[str, str], name: str, default: bool) -> bool:
    """A property that is true or false in any case, or its default if it is not set.

    Raises InvalidOptionError for other words.
    """
    text = properties.get(name)
    if text is None:
        return default
    value = _BOOLEANS.get(text.strip().lower())
    if value is None:
        raise _invalid(name, text, "true or false")
    return value


def choice_property(
    properties: Mapping[str, str], name: str, default: str, choices: Iterable[str]
) -> str:
    """A property that is one of some lower-case words, or its default if it is not set.

    Raises InvalidOptionError for other words, suggesting the nearest choice.
    """
    text = properties.get(name)
    if text is None:
        return default
    value = text.strip().lower()
    allowed = list(choices)
    if value not in allowed:
        near = did_you_mean(value, allowed)
        expected = f"one of {', '.join(allowed)}"
        raise _invalid(name, text, f"{expected}; {near}" if near else expected)
    return value


_INTEGER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,2})?")
_BOOLEANS = {"true": True, "false": False}


def _invalid(name: str, text: str, expected: str) -> InvalidOptionError:
    return InvalidOptionError(f"property {name} is {text!r}, expected {expected}")
