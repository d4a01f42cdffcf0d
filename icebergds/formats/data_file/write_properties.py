"""Parses how data and delete files are written from table properties and write options.

Some properties have no effect: pyarrow does not limit row groups by encoded size (see
`parquet.writer`), sizes Bloom filters by the number of values (`bloom-filter-max-bytes` caps them;
there are no adaptive ones), and does not support `row-group-check-*` and
`write.orc.block-size-bytes`. They are ignored, as are those that the installed pyarrow does not
support. Names are Java's, and so are defaults except for Parquet's codec.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from icebergds.errors import InvalidOptionError
from icebergds.formats.data_file.metrics_modes import MetricsModes, metrics_modes
from icebergds.spec.manifest import FileContent
from icebergds.spec.schema import Schema
from icebergds.spec.sort import SortOrder
from icebergds.spec.table_properties import (
    bool_property,
    choice_property,
    float_property,
    int_property,
)

PARQUET_CODECS = {
    "zstd": "ZSTD",
    "snappy": "SNAPPY",
    "gzip": "GZIP",
    "lz4": "LZ4",
    "lz4_raw": "LZ4",
    "brotli": "BROTLI",
    "uncompressed": "NONE",
    "none": "NONE",
}
"""pyarrow's names of the codecs of `write.parquet.compression-codec`."""
PLAIN_PARQUET_CODECS = PARQUET_CODECS.keys() - {"brotli"}
"""Those that every reader of Parquet has; Spark and Java have no Brotli."""
ORC_CODECS = {
    "zlib": "zlib",
    "gzip": "zlib",
    "zstd": "zstd",
    "snappy": "snappy",
    "lz4": "lz4",
    "none": "uncompressed",
    "uncompressed": "uncompressed",
}
"""pyarrow's names of the codecs of `write.orc.compression-codec`."""
AVRO_CODECS = {
    "gzip": "deflate",
    "deflate": "deflate",
    "zstd": "zstandard",
    "snappy": "snappy",
    "uncompressed": "null",
    "none": "null",
}
"""fastavro's names of the codecs of `write.avro.compression-codec`."""


@dataclass(frozen=True, slots=True)
class BloomFilter:
    """A Parquet column's Bloom filter; `ndv` is the number of distinct values, if known."""

    fpp: float
    ndv: int | None


@dataclass(frozen=True, slots=True)
class ParquetProperties:
    """`write.parquet.*`; sizes in bytes, columns by field id."""

    codec: str = "zstd"
    level: int | None = None
    row_group_size: int = 128 * 1024 * 1024
    page_size: int = 1024 * 1024
    page_row_limit: int = 20_000
    page_version: str = "v1"
    dictionary_size: int = 2 * 1024 * 1024
    dictionary: Mapping[int, bool] = field(default_factory=dict)
    statistics: Mapping[int, bool] = field(default_factory=dict)
    bloom_filters: Mapping[int, BloomFilter] = field(default_factory=dict)
    bloom_filter_max_size: int = 1024 * 1024


@dataclass(frozen=True, slots=True)
class OrcProperties:
    """`write.orc.*`; sizes in bytes, columns by field id."""

    codec: str = "zlib"
    strategy: str = "speed"
    stripe_size: int = 64 * 1024 * 1024
    bloom_columns: frozenset[int] = frozenset()
    bloom_fpp: float = 0.05


@dataclass(frozen=True, slots=True)
class AvroProperties:
    """`write.avro.*`."""

    codec: str = "gzip"
    level: int | None = None


@dataclass(frozen=True, slots=True)
class WriteProperties:
    """How files of each format are written, and which metrics are kept."""

    metrics: MetricsModes
    parquet: ParquetProperties = ParquetProperties()
    orc: OrcProperties = OrcProperties()
    avro: AvroProperties = AvroProperties()
    delete_parquet: ParquetProperties = ParquetProperties()
    delete_orc: OrcProperties = OrcProperties()
    delete_avro: AvroProperties = AvroProperties()

    @classmethod
    def of(
        cls, properties: Mapping[str, str], schema: Schema, sort_order: SortOrder
    ) -> WriteProperties:
        """Parses a table's properties, which include the options of one write.

        The options `compression-codec`, `compression-level` and `compression-strategy` override
        the properties of each format. Delete files use `write.delete.*` if it is set.

        Raises:
            InvalidOptionError: a property has an invalid value.
        """
        _check_option_codec(properties)
        data = _Source(properties, schema, ("write.",))
        deletes = _Source(properties, schema, ("write.delete.", "write."))
        return cls(
            metrics=metrics_modes(properties, schema, sort_order),
            parquet=_parquet(data),
            orc=_orc(data),
            avro=_avro(data),
            delete_parquet=_parquet(deletes),
            delete_orc=_orc(deletes),
            delete_avro=_avro(deletes),
        )

    def parquet_for(self, content: FileContent) -> ParquetProperties:
        """The properties of Parquet files with a content."""
        return self.parquet if content is FileContent.DATA else self.delete_parquet

    def orc_for(self, content: FileContent) -> OrcProperties:
        """The properties of ORC files with a content."""
        return self.orc if content is FileContent.DATA else self.delete_orc

    def avro_for(self, content: FileContent) -> AvroProperties:
        """The properties of Avro files with a content."""
        return self.avro if content is FileContent.DATA else self.delete_avro


def codec_name(codecs: Mapping[str, str], codec: str, file_format: str) -> str:
    """The library's name of a codec.

    Raises:
        InvalidOptionError: the format does not support the codec.
    """
    found = codecs.get(codec)
    if found is None:
        raise InvalidOptionError(
            f"option {_CODEC_OPTION} is {codec!r}, which {file_format} files do not support; "
            f"expected one of {', '.join(codecs)}"
        )
    return found


_CODEC_OPTION = "compression-codec"
_LEVEL_OPTION = "compression-level"
_STRATEGY_OPTION = "compression-strategy"
_STRATEGIES = ("speed", "compression")
_PAGE_VERSIONS = ("v1", "v2")
# The compression levels of Parquet's codecs; codecs without levels ignore the property.
_PARQUET_LEVELS = {"zstd": (1, 22), "gzip": (1, 9), "brotli": (0, 11)}
_AVRO_LEVELS = {"gzip": (0, 9), "deflate": (0, 9), "zstd": (1, 22)}


@dataclass(frozen=True, slots=True)
class _Source:
    """Looks a property up under several prefixes; the first that has it wins."""

    properties: Mapping[str, str]
    schema: Schema
    prefixes: tuple[str, ...]

    def name(self, suffix: str) -> str:
        """The full name under which a property is set; with the last prefix if it is not set."""
        names = [prefix + suffix for prefix in self.prefixes]
        return next((name for name in names if name in self.properties), names[-1])

    def positive(self, suffix: str, default: int) -> int:
        return int_property(self.properties, self.name(suffix), default, minimum=1)

    def choice(self, suffix: str, default: str, choices: tuple[str, ...]) -> str:
        return choice_property(self.properties, self.name(suffix), default, choices)

    def codec(self, suffix: str, default: str, codecs: Mapping[str, str]) -> str:
        option = self.properties.get(_CODEC_OPTION)
        if option is not None:
            return option.strip().lower()
        return self.choice(suffix, default, tuple(codecs))

    def level(self, suffix: str, codec: str, levels: Mapping[str, tuple[int, int]]) -> int | None:
        option_given = _CODEC_OPTION in self.properties or _LEVEL_OPTION in self.properties
        name = _LEVEL_OPTION if option_given else self.name(suffix)
        if name not in self.properties or codec not in levels:
            return None
        least, greatest = levels[codec]
        level = int_property(self.properties, name, least)
        if not least <= level <= greatest:
            raise InvalidOptionError(
                f"property {name} is {level}, but {codec} has levels {least} to {greatest}"
            )
        return level

    def columns(self, suffix: str) -> dict[int, str]:
        """Names of per-column properties by the column's field id."""
        return {
            field_id: name
            for prefix in reversed(self.prefixes)
            for name in self.properties
            if name.startswith(prefix + suffix)
            and (field_id := self.schema.find_id(name.removeprefix(prefix + suffix))) is not None
        }

    def flags(self, suffix: str) -> dict[int, bool]:
        return {
            field_id: bool_property(self.properties, name, True)
            for field_id, name in self.columns(suffix).items()
        }


def _parquet(source: _Source) -> ParquetProperties:
    codec = source.codec("parquet.compression-codec", ParquetProperties().codec, PARQUET_CODECS)
    unset = ParquetProperties()
    return ParquetProperties(
        codec=codec,
        level=source.level("parquet.compression-level", codec, _PARQUET_LEVELS),
        row_group_size=source.positive("parquet.row-group-size-bytes", unset.row_group_size),
        page_size=source.positive("parquet.page-size-bytes", unset.page_size),
        page_row_limit=source.positive("parquet.page-row-limit", unset.page_row_limit),
        page_version=source.choice("parquet.page-version", unset.page_version, _PAGE_VERSIONS),
        dictionary_size=source.positive("parquet.dict-size-bytes", unset.dictionary_size),
        dictionary=source.flags("parquet.dict-encoding-enabled.column."),
        statistics=source.flags("parquet.stats-enabled.column."),
        bloom_filters=_bloom_filters(source),
        bloom_filter_max_size=source.positive(
            "parquet.bloom-filter-max-bytes", unset.bloom_filter_max_size
        ),
    )


def _bloom_filters(source: _Source) -> dict[int, BloomFilter]:
    fpp = source.columns("parquet.bloom-filter-fpp.column.")
    ndv = source.columns("parquet.bloom-filter-ndv.column.")
    return {
        field_id: BloomFilter(
            _probability(source.properties, fpp.get(field_id, ""), 0.01),
            int_property(source.properties, ndv[field_id], 1, minimum=1)
            if field_id in ndv
            else None,
        )
        for field_id, enabled in source.flags("parquet.bloom-filter-enabled.column.").items()
        if enabled
    }


def _orc(source: _Source) -> OrcProperties:
    unset = OrcProperties()
    strategy = source.choice("orc.compression-strategy", unset.strategy, _STRATEGIES)
    names = source.properties.get(source.name("orc.bloom.filter.columns"), "").split(",")
    ids = (source.schema.find_id(name.strip()) for name in names)
    return OrcProperties(
        codec=source.codec("orc.compression-codec", unset.codec, ORC_CODECS),
        strategy=choice_property(source.properties, _STRATEGY_OPTION, strategy, _STRATEGIES),
        stripe_size=source.positive("orc.stripe-size-bytes", unset.stripe_size),
        bloom_columns=frozenset(field_id for field_id in ids if field_id is not None),
        bloom_fpp=_probability(
            source.properties, source.name("orc.bloom.filter.fpp"), unset.bloom_fpp
        ),
    )


def _avro(source: _Source) -> AvroProperties:
    codec = source.codec("avro.compression-codec", AvroProperties().codec, AVRO_CODECS)
    return AvroProperties(codec, source.level("avro.compression-level", codec, _AVRO_LEVELS))


def _check_option_codec(properties: Mapping[str, str]) -> None:
    """Rejects a codec that no format supports; a file's own format is checked when it is opened."""
    choice_property(
        properties,
        _CODEC_OPTION,
        "zstd",
        tuple(dict.fromkeys([*PARQUET_CODECS, *ORC_CODECS, *AVRO_CODECS])),
    )


def _probability(properties: Mapping[str, str], name: str, default: float) -> float:
    value = float_property(properties, name, default)
    if not 0 < value < 1:
        raise InvalidOptionError(f"property {name} is {value}, expected between 0 and 1")
    return value
