"""The buckets of strings and bytes by functions of Spark's own, which need no Python.

Spark's hash differs from Iceberg's for the last bytes of a value, where they fill no word of four.
So words are hashed that zeros fill; then the last steps are undone, and done as Iceberg does them.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

# Spark's Murmur3 begins with 42, and goes on with the hash of the column before. This int hashes to
# 0, with which Iceberg's begins (spec: Appendix B).
HASHES_TO_ZERO = -1693959553
MAX_INT = 2**31 - 1
_WORD = 4
_SPAN = 2**32
_FIRST_FACTOR = 0x85EBCA6B
_SECOND_FACTOR = 0xC2B2AE35
_ROUND_FACTOR = 5
_ROUND_SUMMAND = 0xE6546B64
_ROUND_TURN = 13


def add_text_buckets(
    df: DataFrame, source: Column, zero: str | bytes, num_buckets: int, name: str
) -> DataFrame:
    """Rows with the buckets of a column of theirs.

    Args:
        source: a column of strings, of a collation that tells all bytes apart, or of bytes.
        zero: a zero of its type.
        num_buckets: how many there are.
        name: of the column that is added, a bigint, null where the source is. No column of the
            rows may have it, or begin with it.
    """
    length, padded = f"{name}_length", f"{name}_padded"
    size = f.col(length)
    filled = (size + (_WORD - 1)).bitwiseAND(-_WORD)
    zeros = f.substring(f.lit(zero * (_WORD - 1)), f.lit(1), (filled - size).cast("int"))
    words = f.concat(source, zeros)
    state = f.col(name)
    # A column a step: as one expression, each step would be computed again and again.
    df = df.withColumn(length, f.octet_length(source).cast("bigint"))
    df = df.withColumn(padded, _unsigned(f.hash(f.lit(HASHES_TO_ZERO), words)))
    df = df.withColumn(name, _times(_folded(f.col(padded), 16), _inverse(_SECOND_FACTOR)))
    df = df.withColumn(name, _times(_unfolded(state, 13), _inverse(_FIRST_FACTOR)))
    mixed = _folded(state, 16).bitwiseXOR(filled) + (_SPAN - _ROUND_SUMMAND)
    df = df.withColumn(name, _times(mixed, _inverse(_ROUND_FACTOR)))
    df = df.withColumn(name, _turned_back(state, _ROUND_TURN).bitwiseXOR(size))
    df = df.withColumn(name, _times(_folded(state, 16), _FIRST_FACTOR))
    df = df.withColumn(name, _times(_folded(state, 13), _SECOND_FACTOR))
    hashed = f.when(size == filled, f.col(padded)).otherwise(_folded(state, 16))
    buckets = f.when(source.isNotNull(), hashed.bitwiseAND(MAX_INT) % num_buckets)
    return df.withColumn(name, buckets).drop(length, padded)


def _unsigned(value: Column) -> Column:
    return value.cast("bigint").bitwiseAND(_SPAN - 1)


def _times(value: Column, factor: int) -> Column:
    """The product of 32 bits, by halves of the factor: a whole product overflows."""
    low, high = factor & 0xFFFF, factor >> 16
    return _unsigned(value * low + (value * high).bitwiseAND(0xFFFF) * 2**16)


def _folded(value: Column, bits: int) -> Column:
    return value.bitwiseXOR(f.shiftrightunsigned(value, bits))


def _unfolded(value: Column, bits: int) -> Column:
    """What was folded by at least 11 bits, and less than 16, as it was before."""
    return _folded(value, bits).bitwiseXOR(f.shiftrightunsigned(value, 2 * bits))


def _turned_back(value: Column, bits: int) -> Column:
    return f.shiftrightunsigned(value, bits).bitwiseOR(_unsigned(value * 2 ** (32 - bits)))


def _inverse(factor: int) -> int:
    return pow(factor, -1, _SPAN)
