"""Names the table properties that this package reads, for hints at misspelt ones."""

from __future__ import annotations

from icebergds.formats.data_file.metrics_modes import COLUMN_MODE_PREFIX
from icebergds.spec import table_properties
from icebergds.spec.json.name_mapping import NAME_MAPPING_PROPERTY
from icebergds.suggestions import did_you_mean
from icebergds.write.locations import IMPLEMENTATIONS

__all__ = ["is_known", "nearest_known"]


def is_known(name: str) -> bool:
    """Whether a property has an effect, or is refused or left out by its name."""
    return name in _NAMES or name.startswith(_OF_COLUMNS)


def nearest_known(name: str) -> str:
    """The hint of a property that is not known; empty if no known one is near."""
    return did_you_mean(name, _NAMES)


_OF_FORMATS = (
    "parquet.compression-codec",
    "parquet.compression-level",
    "parquet.row-group-size-bytes",
    "parquet.row-group-check-min-record-count",
    "parquet.row-group-check-max-record-count",
    "parquet.page-size-bytes",
    "parquet.page-row-limit",
    "parquet.page-version",
    "parquet.dict-size-bytes",
    "parquet.bloom-filter-max-bytes",
    "orc.compression-codec",
    "orc.compression-strategy",
    "orc.stripe-size-bytes",
    "orc.block-size-bytes",
    "orc.bloom.filter.columns",
    "orc.bloom.filter.fpp",
    "avro.compression-codec",
    "avro.compression-level",
)
_OF_COLUMNS_OF_FORMATS = (
    "parquet.dict-encoding-enabled.column.",
    "parquet.stats-enabled.column.",
    "parquet.bloom-filter-enabled.column.",
    "parquet.bloom-filter-fpp.column.",
    "parquet.bloom-filter-ndv.column.",
)
_OF_STATEMENTS = ("delete", "update", "merge")

_NAMES = frozenset(
    {
        *(
            value
            for name, value in vars(table_properties).items()
            if name.isupper() and isinstance(value, str) and ("." in value or "-" in value)
        ),
        *(f"write.{name}" for name in _OF_FORMATS),
        *(f"write.delete.{name}" for name in _OF_FORMATS),
        *(f"write.{statement}.mode" for statement in _OF_STATEMENTS),
        *(f"write.{statement}.isolation-level" for statement in _OF_STATEMENTS),
        *IMPLEMENTATIONS,
        NAME_MAPPING_PROPERTY,
        "write.delete.format.default",
        "write.delete.granularity",
        "write.folder-storage.path",
        "write.object-storage.path",
        "write.metadata.metrics.default",
        "write.metadata.metrics.max-inferred-column-defaults",
        "read.split.target-size",
        "read.split.metadata-target-size",
        "read.split.planning-lookback",
        "read.split.open-file-cost",
        "engine.hive.enabled",
        "engine.hive.lock-enabled",
    }
)
_OF_COLUMNS = (
    COLUMN_MODE_PREFIX,
    *(f"write.{name}" for name in _OF_COLUMNS_OF_FORMATS),
    *(f"write.delete.{name}" for name in _OF_COLUMNS_OF_FORMATS),
)
