"""Describes each table property once: its key, values, default and meaning.

`X.of(table.properties)` is a property's value. Checks of new values, hints at misspelt names and
the tables of `docs/properties.md` come from what stands here. Keys are Java Iceberg's, and so are
defaults unless the property's text says otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

from icebergds.errors import InvalidOptionError
from icebergds.suggestions import did_you_mean

_Value = TypeVar("_Value")
_Unset = TypeVar("_Unset")


# Named tuples are defined faster than dataclasses; every process of Spark imports this module.
class Kind(NamedTuple, Generic[_Value]):
    """What values a property may have.

    Attributes:
        expected: says it, in errors and docs.
        parse: the value of a text; None if it is wrong.
        words: all values, if they are words, for suggestions.
        read: parses what is there, if that may be more than may be set here: a table of another
            engine can be written all the same.
    """

    expected: str
    parse: Callable[[str], _Value | None]
    words: tuple[str, ...] = ()
    read: Callable[[str], _Value | None] | None = None


class Property(NamedTuple, Generic[_Value, _Unset]):
    """A property, of tables if it is one of `PROPERTIES`.

    Those of file formats are also looked for under `write.delete.`, for delete files.

    Attributes:
        name: the key; if it ends in a dot, the name of a column follows.
        default: the value if it is not set; None if that depends on something else.
    """

    name: str
    kind: Kind[_Value]
    default: _Unset

    def __str__(self) -> str:
        return self.name

    def of(self, properties: Mapping[str, str], *, deletes: bool = False) -> _Value | _Unset:
        """The value in a table's properties, or the default if it is not set.

        Args:
            deletes: the value for delete files, which may have their own.

        Raises:
            InvalidOptionError: the value is wrong.
        """
        return self.named(self.set_name(properties, deletes=deletes), properties)

    def set_name(self, properties: Mapping[str, str], *, deletes: bool = False) -> str:
        """The name that it is set under, or would be."""
        by_deletes = deletes and self._is_of_format and self._name_for_deletes in properties
        return self._name_for_deletes if by_deletes else self.name

    def named(self, name: str | None, properties: Mapping[str, str]) -> _Value | _Unset:
        """The value that is set under a name: that for delete files, or for a column."""
        if name is None or name not in properties:
            return self.default
        return self._parsed(name, properties, self.kind.read or self.kind.parse)

    def by_column(self, properties: Mapping[str, str], *, deletes: bool = False) -> dict[str, str]:
        """The names that are set, by column; for `deletes` as in `of`."""
        prefixes = (self.name, self._name_for_deletes) if deletes else (self.name,)
        return {
            name.removeprefix(prefix): name
            for prefix in prefixes
            for name in properties
            if name.startswith(prefix)
        }

    def check(self, properties: Mapping[str, str]) -> None:
        """Raises InvalidOptionError if a value may not be set, other than of single columns."""
        for name in self.names:
            if name in properties:
                self._parsed(name, properties, self.kind.parse)

    @property
    def names(self) -> tuple[str, ...]:
        """All names that it is set under."""
        return (self.name, self._name_for_deletes) if self._is_of_format else (self.name,)

    def _parsed(
        self, name: str, properties: Mapping[str, str], parse: Callable[[str], _Value | None]
    ) -> _Value:
        text = properties[name]
        value = parse(text)
        if value is None:
            near = did_you_mean(text.strip(), self.kind.words)
            raise InvalidOptionError(
                f"property {name} is {text!r}, expected {self.kind.expected}"
                + (f"; {near}" if near else "")
            )
        return value

    @property
    def _is_of_format(self) -> bool:
        return self.name.startswith(("write.parquet.", "write.orc.", "write.avro."))

    @property
    def _name_for_deletes(self) -> str:
        return f"write.delete.{self.name.removeprefix('write.')}"


def one_of(*words: str) -> Kind[str]:
    """Some words, in any case."""
    listed = frozenset(words)
    return Kind(
        f"one of {', '.join(words)}",
        lambda text: word if (word := text.strip().lower()) in listed else None,
        words,
    )


def at_least(least: int) -> Kind[int]:
    """Integers with a minimum."""

    def parse(text: str) -> int | None:
        value = _integer(text)
        return None if value is None or value < least else value

    return Kind(f"an integer of at least {least}", parse)


def is_known(name: str) -> bool:
    """Whether a property has an effect, or is refused or left out by its name."""
    return name in _NAMES or name.startswith(_OF_COLUMNS)


def nearest_known(name: str) -> str:
    """The hint of a property that is not known; empty if no known one is near."""
    return did_you_mean(name, _NAMES)


_INTEGER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,2})?")


def _integer(text: str) -> int | None:
    return int(text) if _INTEGER.fullmatch(text.strip()) else None


def _number(text: str) -> float | None:
    return float(text) if _NUMBER.fullmatch(text.strip()) else None


def _probability(text: str) -> float | None:
    value = _number(text)
    return value if value is not None and 0 < value < 1 else None


INTEGER = Kind("an integer", _integer)
NUMBER = Kind("a number", _number)
PROBABILITY = Kind("a number between 0 and 1", _probability)
BOOLEAN = Kind(
    "true or false", lambda text: {"true": True, "false": False}.get(text.strip().lower())
)
TEXT = Kind("", str)
_CLASS = Kind("a class", str)
_METRICS = Kind("none, counts, full or truncate(n) with n of at least 1", str)
_LOCATION = Kind("an absolute location", str)
_SIZE = at_least(1)
_NATURAL = at_least(0)
# As in Java: only new tables are refused for them.
_SIZE_IF_NEW = _SIZE._replace(read=_integer)
_NATURAL_IF_NEW = _NATURAL._replace(read=_integer)
_FORMAT = one_of("parquet", "orc", "avro")
_MODE = one_of("copy-on-write", "merge-on-read")
_ISOLATION = one_of("none", "snapshot", "serializable")
_MIB = 1024 * 1024
_DAY_MS = 24 * 60 * 60 * 1000

STATEMENTS = ("delete", "update", "merge")
"""Statements that change rows, as in the names of their properties."""

FORMAT_VERSION = "format-version"
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

# Files. The text below each property is its text in the docs.

DEFAULT_FILE_FORMAT = Property("write.format.default", _FORMAT, "parquet")
"""Format of data files."""
DELETE_FILE_FORMAT = Property("write.delete.format.default", _FORMAT, None)
"""Format of delete files, by default that of data files (version 3 writes vectors)."""
TARGET_FILE_SIZE_BYTES = Property("write.target-file-size-bytes", _SIZE_IF_NEW, 512 * _MIB)
"""A new file begins at this size."""
DELETE_TARGET_FILE_SIZE_BYTES = Property(
    "write.delete.target-file-size-bytes", _SIZE_IF_NEW, 64 * _MIB
)
"""A new delete file begins at this size."""
PARQUET_COMPRESSION = Property(
    "write.parquet.compression-codec",
    one_of("zstd", "snappy", "gzip", "lz4", "lz4_raw", "brotli", "uncompressed", "none"),
    "zstd",
)
"""Codec of Parquet files, which new tables store (Java's default for others: gzip); Spark itself
does not read Brotli."""
PARQUET_COMPRESSION_LEVEL = Property("write.parquet.compression-level", INTEGER, None)
"""Level of the codecs zstd, gzip and Brotli."""
PARQUET_ROW_GROUP_SIZE_BYTES = Property("write.parquet.row-group-size-bytes", _SIZE, 128 * _MIB)
"""Size of a row group in memory."""
PARQUET_PAGE_SIZE_BYTES = Property("write.parquet.page-size-bytes", _SIZE, _MIB)
"""Size of a page."""
PARQUET_PAGE_ROW_LIMIT = Property("write.parquet.page-row-limit", _SIZE, 20_000)
"""Most rows of a page."""
PARQUET_PAGE_VERSION = Property("write.parquet.page-version", one_of("v1", "v2"), "v1")
"""Version of data pages."""
PARQUET_DICT_SIZE_BYTES = Property("write.parquet.dict-size-bytes", _SIZE, 2 * _MIB)
"""Size of a column's dictionary."""
PARQUET_DICT_ENABLED = Property("write.parquet.dict-encoding-enabled.column.", BOOLEAN, True)
"""Whether a column may have a dictionary."""
PARQUET_STATS_ENABLED = Property("write.parquet.stats-enabled.column.", BOOLEAN, True)
"""Whether footers have statistics of a column."""
PARQUET_BLOOM_FILTER_ENABLED = Property(
    "write.parquet.bloom-filter-enabled.column.", BOOLEAN, False
)
"""Whether a column has Bloom filters."""
PARQUET_BLOOM_FILTER_FPP = Property("write.parquet.bloom-filter-fpp.column.", PROBABILITY, 0.01)
"""Probability that a Bloom filter is wrong."""
PARQUET_BLOOM_FILTER_NDV = Property("write.parquet.bloom-filter-ndv.column.", _SIZE, None)
"""Number of distinct values for a Bloom filter; by default the number of values."""
PARQUET_BLOOM_FILTER_MAX_BYTES = Property("write.parquet.bloom-filter-max-bytes", _SIZE, _MIB)
"""Most bytes of a Bloom filter."""
PARQUET_SHRED_VARIANTS = Property("write.parquet.shred-variants", BOOLEAN, False)
"""Whether fields of variants are written to columns of their own (shredded)."""
PARQUET_VARIANT_BUFFER_SIZE = Property("write.parquet.variant-inference-buffer-size", _SIZE, 100)
"""Number of a file's first rows that decide which fields of variants are shredded."""
_PARQUET_ROW_GROUP_CHECK_MIN = Property(
    "write.parquet.row-group-check-min-record-count", TEXT, None
)
"""Ignored."""
_PARQUET_ROW_GROUP_CHECK_MAX = Property(
    "write.parquet.row-group-check-max-record-count", TEXT, None
)
"""Ignored."""
ORC_COMPRESSION = Property(
    "write.orc.compression-codec",
    one_of("zlib", "gzip", "zstd", "snappy", "lz4", "none", "uncompressed"),
    "zlib",
)
"""Codec of ORC files."""
ORC_COMPRESSION_STRATEGY = Property(
    "write.orc.compression-strategy", one_of("speed", "compression"), "speed"
)
"""What the codec is to be good at."""
ORC_STRIPE_SIZE_BYTES = Property("write.orc.stripe-size-bytes", _SIZE, 64 * _MIB)
"""Size of a stripe."""
_ORC_BLOCK_SIZE_BYTES = Property("write.orc.block-size-bytes", TEXT, None)
"""Ignored."""
ORC_BLOOM_FILTER_COLUMNS = Property(
    "write.orc.bloom.filter.columns", Kind("columns, separated by commas", str), ""
)
"""Columns that have Bloom filters."""
ORC_BLOOM_FILTER_FPP = Property("write.orc.bloom.filter.fpp", PROBABILITY, 0.05)
"""Probability that a Bloom filter is wrong."""
AVRO_COMPRESSION = Property(
    "write.avro.compression-codec",
    one_of("gzip", "deflate", "zstd", "snappy", "uncompressed", "none"),
    "gzip",
)
"""Codec of Avro files."""
AVRO_COMPRESSION_LEVEL = Property("write.avro.compression-level", INTEGER, None)
"""Level of the codecs gzip, deflate and zstd."""
METRICS_DEFAULT = Property("write.metadata.metrics.default", _METRICS, None)
"""Which statistics files get; by default `truncate(16)` for 100 columns."""
METRICS_COLUMN = Property("write.metadata.metrics.column.", _METRICS, None)
"""Which statistics files get for a column."""
METRICS_MAX_COLUMNS = Property("write.metadata.metrics.max-inferred-column-defaults", _NATURAL, 100)
"""How many columns that is by default."""

# Places.

DATA_PATH = Property("write.data.path", _LOCATION, None)
"""Directory of new data files; `data` under the table's location by default."""
METADATA_PATH = Property("write.metadata.path", _LOCATION, None)
"""Directory of new metadata files; `metadata` under the table's location by default."""
FOLDER_STORAGE_PATH = Property("write.folder-storage.path", _LOCATION, None)
"""Older name of `write.data.path`."""
OBJECT_STORAGE_PATH = Property("write.object-storage.path", _LOCATION, None)
"""Older name of `write.data.path` with object storage."""
OBJECT_STORAGE_ENABLED = Property("write.object-storage.enabled", BOOLEAN, False)
"""Hashes in the names of directories."""
OBJECT_STORAGE_PARTITIONED_PATHS = Property("write.object-storage.partitioned-paths", BOOLEAN, True)
"""Partitions in the names of directories with hashes."""
LOCATION_PROVIDER = Property("write.location-provider.impl", _CLASS, None)
"""Of Java: writes are refused."""
PY_LOCATION_PROVIDER = Property("write.py-location-provider.impl", _CLASS, None)
"""Of PyIceberg: writes are refused."""

PATHS = (
    DATA_PATH.name,
    METADATA_PATH.name,
    OBJECT_STORAGE_PATH.name,
    FOLDER_STORAGE_PATH.name,
)
"""Properties that hold locations."""

# How rows are written and changed.

DISTRIBUTION_MODE = Property("write.distribution-mode", one_of("none", "hash", "range"), None)
"""How the methods of a `Table` [shuffle](writing.md#from-python); by default `range` for sorted
tables, else `hash` for partitioned ones, else `none`."""
# On by default: rows are not clustered by partition unless they were sorted first.
FANOUT_ENABLED = Property("write.spark.fanout.enabled", BOOLEAN, True)
"""A file open for each partition (Java's default: false)."""
AUTO_SCHEMA_EVOLUTION = Property("write.spark.auto-schema-evolution.enabled", BOOLEAN, True)
"""If false, `WITH SCHEMA EVOLUTION` of [SQL](sql.md#changing-rows) changes no columns."""
ACCEPT_ANY_SCHEMA = Property("write.spark.accept-any-schema", BOOLEAN, True)
"""Always as if true (Java's default: false): rows may lack columns, and have more with
`merge-schema`: [how columns are matched](writing.md#how-columns-are-matched)."""
ROW_CHANGE_MODE = {
    statement: Property(f"write.{statement}.mode", _MODE, "copy-on-write")
    for statement in STATEMENTS
}
"""[How rows are changed](changing.md#how-rows-are-changed)."""
ISOLATION_LEVEL = {
    statement: Property(f"write.{statement}.isolation-level", _ISOLATION, "serializable")
    for statement in STATEMENTS
}
"""Which [concurrent commits](changing.md#concurrent-commits) make a statement fail."""
UPSERT_MODE = Property(
    "write.upsert.mode", one_of("equality-deletes", "positions", "auto"), "equality-deletes"
)
"""How [changes by key](changing.md#upsert-and-apply-changes-by-key) delete rows: at once by
position, by equality deletes, or as is cheaper."""
UPSERT_RESOLVE_LIMIT_BYTES = Property("write.upsert.resolve-limit-bytes", _SIZE, None)
"""How much `auto` reads to delete by position; 256 MB by default, 16 MB in commits without a
session of Spark, such as those of streams."""
DELETE_GRANULARITY = Property("write.delete.granularity", one_of("file", "partition"), "partition")
"""`file`: one position delete file per data file (format version 2)."""
WAP_ENABLED = Property(
    "write.wap.enabled", Kind("true or anything else", lambda text: text.lower() == "true"), False
)
"""If true, statements of SQL follow the settings `spark.wap.id` and `spark.wap.branch`."""

# Commits and metadata.

NEW_FORMAT_VERSION = Property(FORMAT_VERSION, INTEGER, 2)
"""At creation; later `table.upgrade(3)`."""
COMMIT_NUM_RETRIES = Property("commit.retry.num-retries", _NATURAL_IF_NEW, 4)
"""How often a commit is tried again that lost against another."""
COMMIT_MIN_RETRY_WAIT_MS = Property("commit.retry.min-wait-ms", _NATURAL_IF_NEW, 100)
"""Wait before the first retry; it doubles with each."""
COMMIT_MAX_RETRY_WAIT_MS = Property("commit.retry.max-wait-ms", _NATURAL_IF_NEW, 60_000)
"""Longest wait before a retry."""
COMMIT_TOTAL_RETRY_TIME_MS = Property("commit.retry.total-timeout-ms", _NATURAL_IF_NEW, 1_800_000)
"""Time after which a commit is not tried again."""
COMMIT_NUM_STATUS_CHECKS = Property("commit.status-check.num-retries", _NATURAL_IF_NEW, 3)
"""How often a commit is looked for again whose answer was lost."""
COMMIT_STATUS_CHECKS_MIN_WAIT_MS = Property(
    "commit.status-check.min-wait-ms", _NATURAL_IF_NEW, 1_000
)
"""Wait before the first of these looks; it doubles with each."""
COMMIT_STATUS_CHECKS_MAX_WAIT_MS = Property(
    "commit.status-check.max-wait-ms", _NATURAL_IF_NEW, 60_000
)
"""Longest wait before a look."""
COMMIT_STATUS_CHECKS_TOTAL_WAIT_MS = Property(
    "commit.status-check.total-timeout-ms", _NATURAL_IF_NEW, 1_800_000
)
"""Time after which a commit is not looked for again."""
MANIFEST_MERGE_ENABLED = Property("commit.manifest-merge.enabled", BOOLEAN, True)
"""Whether small manifests are merged."""
MANIFEST_MIN_MERGE_COUNT = Property("commit.manifest.min-count-to-merge", INTEGER, 100)
"""Fewest manifests that are merged with a new one."""
MANIFEST_TARGET_SIZE_BYTES = Property("commit.manifest.target-size-bytes", _SIZE, 8 * _MIB)
"""Size up to which manifests are merged."""
MANIFEST_COMPRESSION = Property(
    "write.manifest.compression-codec",
    one_of(
        *("gzip", "zstd", "snappy", "uncompressed", "bzip2", "xz"),
        *("deflate", "zstandard", "null"),
    ),
    "gzip",
)
"""Codec of manifests and manifest lists."""
MANIFEST_COMPRESSION_LEVEL = Property("write.manifest.compression-level", INTEGER, None)
"""Level of that codec."""
METADATA_COMPRESSION = Property(
    "write.metadata.compression-codec",
    one_of("none", "gzip")._replace(read=lambda text: text.strip().lower()),
    "none",
)
"""Codec of metadata files; `gzip` is the default of views."""
METADATA_PREVIOUS_VERSIONS_MAX = Property("write.metadata.previous-versions-max", INTEGER, 100)
"""How many old metadata files are listed."""
METADATA_DELETE_AFTER_COMMIT_ENABLED = Property(
    "write.metadata.delete-after-commit.enabled", BOOLEAN, False
)
"""Whether metadata files are deleted that are no longer listed."""
SUMMARY_PARTITION_LIMIT = Property("write.summary.partition-limit", INTEGER, 0)
"""Most partitions in a snapshot's summary."""
NAME_MAPPING = Property("schema.name-mapping.default", Kind("JSON", str), None)
"""Columns of files without field ids."""
MAX_SNAPSHOT_AGE_MS = Property("history.expire.max-snapshot-age-ms", INTEGER, 5 * _DAY_MS)
"""Older snapshots are what [`expire_snapshots`](maintenance.md#expire_snapshots) expires."""
MIN_SNAPSHOTS_TO_KEEP = Property("history.expire.min-snapshots-to-keep", INTEGER, 1)
"""How many snapshots of a branch are kept in any case."""
MAX_REF_AGE_MS = Property("history.expire.max-ref-age-ms", INTEGER, 2**63 - 1)
"""Older branches and tags expire too; none by default."""
GC_ENABLED = Property("gc.enabled", BOOLEAN, True)
"""`false` refuses to purge the table, to expire its snapshots and to [remove orphan
files](maintenance.md#remove_orphan_files)."""
ENCRYPTION_KEY_ID = Property(
    "encryption.key-id",
    Kind(
        "the id of a key, without spaces around it",
        lambda text: text if text and text == text.strip() else None,
        read=str,
    ),
    None,
)
"""Master key of an [encrypted table](encryption.md); set at creation, in version 3, for good."""
ENCRYPTION_DATA_KEY_LENGTH = Property(
    "encryption.data-key-length",
    Kind("16, 24 or 32", lambda text: {"16": 16, "24": 24, "32": 32}.get(text.strip())),
    16,
)
"""Length in bytes of an encrypted table's keys."""
STATISTICS_IN_CLEAR = Property("icebergds.statistics-in-clear", BOOLEAN, False)
"""`true` lets an [encrypted table](encryption.md#statistics) have statistics files, in clear."""
TXN_MAX_AGE_MS = Property("icebergds.txn-max-age-ms", _NATURAL, 90 * _DAY_MS)
"""How long [streaming queries](streaming.md#good-to-know) are remembered."""
ENGINE_HIVE_ENABLED = Property("engine.hive.enabled", BOOLEAN, None)
"""Whether Hive can query the table, by default as a [Hive catalog](catalogs.md) says."""
ENGINE_HIVE_LOCK_ENABLED = Property("engine.hive.lock-enabled", BOOLEAN, None)
"""Whether commits lock the table, by default as a [Hive catalog](catalogs.md) says."""

# Reads.

SPLIT_TARGET_SIZE = Property("read.split.target-size", _SIZE, 128 * _MIB)
"""Size of a [task](reading.md#options)."""
SPLIT_METADATA_TARGET_SIZE = Property("read.split.metadata-target-size", _SIZE, 32 * _MIB)
"""Size of a task that reads a metadata table."""
SPLIT_PLANNING_LOOKBACK = Property("read.split.planning-lookback", _SIZE, 10)
"""How many tasks are tried for a file."""
SPLIT_OPEN_FILE_COST = Property("read.split.open-file-cost", _NATURAL, 4 * _MIB)
"""What a file counts at least."""
METADATA_AGGREGATES = Property("read.metadata-aggregates", BOOLEAN, True)
"""`false` has rows read for [aggregates](performance.md#answers-from-metadata) that metadata
answers."""


def _all(described: Iterable[object]) -> Iterable[Property[Any, Any]]:
    for value in described:
        if isinstance(value, dict):
            yield from _all(value.values())
        elif isinstance(value, Property):
            yield value


PROPERTIES = tuple(_all(tuple(vars().values())))
"""All of them, in the order of the docs."""
_NAMES = frozenset(name for one in PROPERTIES for name in one.names if not name.endswith("."))
_OF_COLUMNS = tuple(name for one in PROPERTIES for name in one.names if name.endswith("."))
