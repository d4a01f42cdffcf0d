"""Computes the bucket transform of strings and bytes with Spark's own functions, without Python.

Spark and Iceberg both use Murmur3, but hash trailing bytes differently if the length of a value is
not a multiple of four. So this pads the value with zeros and hashes it, then undoes the last steps
of the hash and redoes them as Iceberg does.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, functions as f

# Spark's hash() seeds Murmur3 with 42, and seeds each further column with the hash of the column
# before. This int hashes to 0, the seed of Iceberg (spec: Appendix B).
HASHES_TO_ZERO = -1693959553
MAX_INT = 2**31 - 1
_WORD = 4
_SPAN = 2**32
_MIX_FACTOR_1 = 0x85EBCA6B
_MIX_FACTOR_2 = 0xC2B2AE35
_ROUND_FACTOR = 5
_ROUND_ADDEND = 0xE6546B64
_ROUND_ROTATION = 13


def add_text_buckets(
    df: DataFrame, source: Column, zero: str | bytes, num_buckets: int, name: str
) -> DataFrame:
    """Adds a column with the bucket of each value of `source`.

    Args:
        source: a column of bytes, or of strings in the binary collation (UTF8_BINARY).
        zero: a zero byte or zero character, of the type of `source`.
        num_buckets: number of buckets.
        name: name of the added column, a bigint that is null if `source` is null. No column of
            `df` may have a name that starts with it.
    """
    length, padded = f"{name}_length", f"{name}_padded"
    size = f.col(length)
    filled = (size + (_WORD - 1)).bitwiseAND(-_WORD)
    zeros = f.substring(f.lit(zero * (_WORD - 1)), f.lit(1), (filled - size).cast("int"))
    words = f.concat(source, zeros)
    state = f.col(name)
    # One column per step: in a single expression, each step would be computed many times over.
    df = df.withColumn(length, f.octet_length(source).cast("bigint"))
    df = df.withColumn(padded, _unsigned(f.hash(f.lit(HASHES_TO_ZERO), words)))
    df = df.withColumn(name, _multiply(_xor_shift(f.col(padded), 16), _inverse(_MIX_FACTOR_2)))
    df = df.withColumn(name, _multiply(_undo_xor_shift(state, 13), _inverse(_MIX_FACTOR_1)))
    mixed = _xor_shift(state, 16).bitwiseXOR(filled) + (_SPAN - _ROUND_ADDEND)
    df = df.withColumn(name, _multiply(mixed, _inverse(_ROUND_FACTOR)))
    df = df.withColumn(name, _rotate_right(state, _ROUND_ROTATION).bitwiseXOR(size))
    df = df.withColumn(name, _multiply(_xor_shift(state, 16), _MIX_FACTOR_1))
    df = df.withColumn(name, _multiply(_xor_shift(state, 13), _MIX_FACTOR_2))
    hashed = f.when(size == filled, f.col(padded)).otherwise(_xor_shift(state, 16))
    buckets = f.when(source.isNotNull(), hashed.bitwiseAND(MAX_INT) % num_buckets)
    return df.withColumn(name, buckets).drop(length, padded)


def _unsigned(value: Column) -> Column:
    return value.cast("bigint").bitwiseAND(_SPAN - 1)


def _multiply(value: Column, factor: int) -> Column:
    """The product modulo 2**32, computed from halves of the factor: the full product overflows."""
    low, high = factor & 0xFFFF, factor >> 16
    return _unsigned(value * low + (value * high).bitwiseAND(0xFFFF) * 2**16)


def _xor_shift(value: Column, bits: int) -> Column:
    return value.bitwiseXOR(f.shiftrightunsigned(value, bits))


def _undo_xor_shift(value: Column, bits: int) -> Column:
    """Inverts `_xor_shift` for shifts of 11 to 15 bits."""
    return _xor_shift(value, bits).bitwiseXOR(f.shiftrightunsigned(value, 2 * bits))


def _rotate_right(value: Column, bits: int) -> Column:
    return f.shiftrightunsigned(value, bits).bitwiseOR(_unsigned(value * 2 ** (32 - bits)))


def _inverse(factor: int) -> int:
    return pow(factor, -1, _SPAN)
