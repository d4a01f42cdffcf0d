"""Parses how data and delete files are written from table properties and write options.

Some properties have no effect: pyarrow does not limit row groups by encoded size (see
`parquet.writer`), sizes Bloom filters by the number of values (`bloom-filter-max-bytes` caps them;
there are no adaptive ones), and does not support `row-group-check-*` and
`write.orc.block-size-bytes`. They are ignored, as are those that the installed pyarrow does not
support.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from icebergds.encryption.key_metadata import data_key_length
from icebergds.errors import InvalidOptionError
from icebergds.formats.data_file.metrics_modes import MetricsModes, metrics_modes
from icebergds.spec import table_properties as names
from icebergds.spec.manifest import FileContent
from icebergds.spec.schema import Schema
from icebergds.spec.sort import SortOrder
from icebergds.spec.table_properties import INTEGER, Property, one_of

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

    codec: str = names.PARQUET_COMPRESSION.default
    level: int | None = None
    row_group_size: int = names.PARQUET_ROW_GROUP_SIZE_BYTES.default
    page_size: int = names.PARQUET_PAGE_SIZE_BYTES.default
    page_row_limit: int = names.PARQUET_PAGE_ROW_LIMIT.default
    page_version: str = names.PARQUET_PAGE_VERSION.default
    dictionary_size: int = names.PARQUET_DICT_SIZE_BYTES.default
    dictionary: Mapping[int, bool] = field(default_factory=dict)
    statistics: Mapping[int, bool] = field(default_factory=dict)
    bloom_filters: Mapping[int, BloomFilter] = field(default_factory=dict)
    bloom_filter_max_size: int = names.PARQUET_BLOOM_FILTER_MAX_BYTES.default
    shred_variants: bool = names.PARQUET_SHRED_VARIANTS.default
    variant_buffer_size: int = names.PARQUET_VARIANT_BUFFER_SIZE.default


@dataclass(frozen=True, slots=True)
class OrcProperties:
    """`write.orc.*`; sizes in bytes, columns by field id."""

    codec: str = names.ORC_COMPRESSION.default
    strategy: str = names.ORC_COMPRESSION_STRATEGY.default
    stripe_size: int = names.ORC_STRIPE_SIZE_BYTES.default
    bloom_columns: frozenset[int] = frozenset()
    bloom_fpp: float = names.ORC_BLOOM_FILTER_FPP.default


@dataclass(frozen=True, slots=True)
class AvroProperties:
    """`write.avro.*`."""

    codec: str = names.AVRO_COMPRESSION.default
    level: int | None = None


@dataclass(frozen=True, slots=True)
class WriteProperties:
    """How files of each format are written, and which metrics are kept.

    Attributes:
        key_length: of the keys that files are encrypted with, in bytes; None writes plain files.
    """

    metrics: MetricsModes
    parquet: ParquetProperties = ParquetProperties()
    orc: OrcProperties = OrcProperties()
    avro: AvroProperties = AvroProperties()
    delete_parquet: ParquetProperties = ParquetProperties()
    delete_orc: OrcProperties = OrcProperties()
    delete_avro: AvroProperties = AvroProperties()
    key_length: int | None = None

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
        # A codec that no format supports; a file's own format is checked when it is opened.
        _CODEC_OPTION.check(properties)
        data = _Source(properties, schema, deletes=False)
        deletes = _Source(properties, schema, deletes=True)
        return cls(
            metrics=metrics_modes(properties, schema, sort_order),
            parquet=_parquet(data),
            orc=_orc(data),
            avro=_avro(data),
            delete_parquet=_parquet(deletes),
            delete_orc=_orc(deletes),
            delete_avro=_avro(deletes),
            key_length=data_key_length(properties),
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
            f"option {_CODEC_OPTION.name} is {codec!r}, which {file_format} files do not support; "
            f"expected one of {', '.join(codecs)}"
        )
    return found


_CODEC_OPTION = Property(
    "compression-codec",
    one_of(*dict.fromkeys([*PARQUET_CODECS, *ORC_CODECS, *AVRO_CODECS])),
    None,
)
_LEVEL_OPTION = Property("compression-level", INTEGER, None)
_STRATEGY_OPTION = Property("compression-strategy", names.ORC_COMPRESSION_STRATEGY.kind, None)
# The compression levels of Parquet's codecs; codecs without levels ignore the property.
_PARQUET_LEVELS = {"zstd": (1, 22), "gzip": (1, 9), "brotli": (0, 11)}
_AVRO_LEVELS = {"gzip": (0, 9), "deflate": (0, 9), "zstd": (1, 22)}
_Value = TypeVar("_Value")
_Unset = TypeVar("_Unset")


@dataclass(frozen=True, slots=True)
class _Source:
    """Reads properties for data files or delete files; columns by field id."""

    properties: Mapping[str, str]
    schema: Schema
    deletes: bool

    def __getitem__(self, described: Property[_Value, _Unset]) -> _Value | _Unset:
        return described.of(self.properties, deletes=self.deletes)

    def codec(self, described: Property[str, str]) -> str:
        return _CODEC_OPTION.of(self.properties) or self[described]

    def level(
        self,
        described: Property[int, None],
        codec: str,
        levels: Mapping[str, tuple[int, int]],
    ) -> int | None:
        given = _CODEC_OPTION.name in self.properties or _LEVEL_OPTION.name in self.properties
        used = _LEVEL_OPTION if given else described
        if codec not in levels or (level := self[used]) is None:
            return None
        least, greatest = levels[codec]
        if not least <= level <= greatest:
            name = used.set_name(self.properties, deletes=self.deletes)
            raise InvalidOptionError(
                f"property {name} is {level}, but {codec} has levels {least} to {greatest}"
            )
        return level

    def set_names(self, described: Property[_Value, _Unset]) -> dict[int, str]:
        named = described.by_column(self.properties, deletes=self.deletes)
        ids = {self.schema.find_id(column): name for column, name in named.items()}
        return {field_id: name for field_id, name in ids.items() if field_id is not None}

    def columns(self, described: Property[_Value, _Unset]) -> dict[int, _Value | _Unset]:
        named = self.set_names(described).items()
        return {field_id: described.named(name, self.properties) for field_id, name in named}


def _parquet(source: _Source) -> ParquetProperties:
    codec = source.codec(names.PARQUET_COMPRESSION)
    return ParquetProperties(
        codec=codec,
        level=source.level(names.PARQUET_COMPRESSION_LEVEL, codec, _PARQUET_LEVELS),
        row_group_size=source[names.PARQUET_ROW_GROUP_SIZE_BYTES],
        page_size=source[names.PARQUET_PAGE_SIZE_BYTES],
        page_row_limit=source[names.PARQUET_PAGE_ROW_LIMIT],
        page_version=source[names.PARQUET_PAGE_VERSION],
        dictionary_size=source[names.PARQUET_DICT_SIZE_BYTES],
        dictionary=source.columns(names.PARQUET_DICT_ENABLED),
        statistics=source.columns(names.PARQUET_STATS_ENABLED),
        bloom_filters=_bloom_filters(source),
        bloom_filter_max_size=source[names.PARQUET_BLOOM_FILTER_MAX_BYTES],
        shred_variants=source[names.PARQUET_SHRED_VARIANTS],
        variant_buffer_size=source[names.PARQUET_VARIANT_BUFFER_SIZE],
    )


def _bloom_filters(source: _Source) -> dict[int, BloomFilter]:
    fpp, ndv = names.PARQUET_BLOOM_FILTER_FPP, names.PARQUET_BLOOM_FILTER_NDV
    fpp_names, ndv_names = source.set_names(fpp), source.set_names(ndv)
    return {
        field_id: BloomFilter(
            fpp.named(fpp_names.get(field_id), source.properties),
            ndv.named(ndv_names.get(field_id), source.properties),
        )
        for field_id, enabled in source.columns(names.PARQUET_BLOOM_FILTER_ENABLED).items()
        if enabled
    }


def _orc(source: _Source) -> OrcProperties:
    columns = source[names.ORC_BLOOM_FILTER_COLUMNS].split(",")
    ids = (source.schema.find_id(name.strip()) for name in columns)
    strategy = source[names.ORC_COMPRESSION_STRATEGY]
    return OrcProperties(
        codec=source.codec(names.ORC_COMPRESSION),
        strategy=_STRATEGY_OPTION.of(source.properties) or strategy,
        stripe_size=source[names.ORC_STRIPE_SIZE_BYTES],
        bloom_columns=frozenset(field_id for field_id in ids if field_id is not None),
        bloom_fpp=source[names.ORC_BLOOM_FILTER_FPP],
    )


def _avro(source: _Source) -> AvroProperties:
    codec = source.codec(names.AVRO_COMPRESSION)
    return AvroProperties(codec, source.level(names.AVRO_COMPRESSION_LEVEL, codec, _AVRO_LEVELS))
