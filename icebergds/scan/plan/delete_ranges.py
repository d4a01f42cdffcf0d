"""Compares the bounds of many delete files with a data file at once.

Thousands of delete files may share a data file's scope; their bounds are decoded once, as columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from icebergds.expr.bounds import Bounds, decode_bounds
from icebergds.spec.manifest import DataFile
from icebergds.spec.reserved import DELETE_FILE_PATH
from icebergds.spec.types import IcebergType, TypeId, is_scalar

Mask = npt.NDArray[np.bool_]

_UNORDERED = frozenset({TypeId.VARIANT, TypeId.GEOMETRY, TypeId.GEOGRAPHY, TypeId.UNKNOWN})
_DTYPES: dict[TypeId, type] = {
    TypeId.INT: np.int64,
    TypeId.LONG: np.int64,
    TypeId.FLOAT: np.float64,
    TypeId.DOUBLE: np.float64,
    TypeId.DATE: np.int64,
    TypeId.TIME: np.int64,
    TypeId.TIMESTAMP: np.int64,
    TypeId.TIMESTAMPTZ: np.int64,
    TypeId.TIMESTAMP_NS: np.int64,
    TypeId.TIMESTAMPTZ_NS: np.int64,
}


class PathRanges:
    """Bounds of the data file paths in position delete files."""

    def __init__(self, files: Sequence[DataFile]) -> None:
        path_id = DELETE_FILE_PATH.field_id
        self._lower = _BoundColumn([file.lower_bounds.get(path_id) for file in files], object)
        self._upper = _BoundColumn([file.upper_bounds.get(path_id) for file in files], object)

    def may_name(self, path: str, start: int) -> Mask:
        """Marks the delete files from `start` on whose bounds include a path."""
        encoded = path.encode("utf-8")
        return self._lower.at_most(encoded, start) & self._upper.at_least(encoded, start)


class KeyRanges:
    """Bounds and null counts of one key column in equality delete files.

    Args:
        files: a file that does not have the column as a key may match any data file.
        key_type: a type that `is_ordered` accepts; bounds may be from before its promotion.
    """

    def __init__(self, files: Sequence[DataFile], field_id: int, key_type: IcebergType) -> None:
        self._field_id = field_id
        self._key_type = key_type
        holds = [_may_hold(file, field_id) for file in files]
        bounds = [_bounds(key_type, field_id, file) for file in files]
        dtype = _DTYPES.get(_type_id(key_type), object)
        self._is_no_key = np.array([field_id not in f.equality_ids for f in files], np.bool_)
        self._nulls = np.array([nulls for nulls, _ in holds], np.bool_)
        self._values = np.array([values for _, values in holds], np.bool_)
        self._nans = np.array([not known.nan_free for known in bounds], np.bool_)
        self._lower = _BoundColumn([known.lower for known in bounds], dtype)
        self._upper = _BoundColumn([known.upper for known in bounds], dtype)

    def may_share(self, data_file: DataFile, start: int) -> Mask:
        """Marks the delete files from `start` on that may share a key with a data file."""
        nulls, values = _may_hold(data_file, self._field_id)
        found = self._is_no_key[start:].copy()
        if nulls:
            found |= self._nulls[start:]
        if values:
            stored = _bounds(self._key_type, self._field_id, data_file)
            overlap = self._lower.at_most(stored.upper, start)
            overlap &= self._upper.at_least(stored.lower, start)
            if not stored.nan_free:
                overlap |= self._nans[start:]
            found |= overlap & self._values[start:]
        return found


def is_ordered(key_type: IcebergType) -> bool:
    """Whether the bounds of a key type limit which keys a file may have."""
    return is_scalar(key_type) and key_type.type_id not in _UNORDERED


class _BoundColumn:
    """The lower or upper bounds of many files; None is unknown."""

    def __init__(self, values: Sequence[Any], dtype: type) -> None:
        self._known = np.array([value is not None for value in values], np.bool_)
        some = next((value for value in values if value is not None), None)
        self._values: npt.NDArray[Any] | None = None
        if some is not None:
            self._values = np.empty(len(values), dtype)
            self._values[:] = [some if value is None else value for value in values]

    def at_most(self, value: Any, start: int) -> Mask:
        """Marks the bounds from `start` on that are at most a value, or unknown."""
        known = self._known[start:]
        if value is None or self._values is None:
            return np.ones(len(known), np.bool_)
        return np.asarray(self._values[start:] <= self._operand(value)) | ~known

    def at_least(self, value: Any, start: int) -> Mask:
        """Marks the bounds from `start` on that are at least a value, or unknown."""
        known = self._known[start:]
        if value is None or self._values is None:
            return np.ones(len(known), np.bool_)
        return np.asarray(self._values[start:] >= self._operand(value)) | ~known

    def _operand(self, value: Any) -> npt.NDArray[Any]:
        # Not np.asarray(value): numpy's own string types strip trailing zeros.
        assert self._values is not None
        operand = np.empty((), self._values.dtype)
        operand[()] = value
        return operand


def _type_id(key_type: IcebergType) -> TypeId:
    assert is_scalar(key_type), "ordered types are scalar"
    return key_type.type_id


def _may_hold(data_file: DataFile, field_id: int) -> tuple[bool, bool]:
    """Whether a column may hold nulls, and whether it may hold values."""
    nulls = data_file.null_value_counts.get(field_id)
    # Null counts are usable only if the value count equals the row count: some writers do not count
    # rows in which an enclosing struct is null.
    if nulls is None or data_file.value_counts.get(field_id) != data_file.record_count:
        return True, True
    return nulls != 0, nulls != data_file.record_count


def _bounds(key_type: IcebergType, field_id: int, data_file: DataFile) -> Bounds:
    bounds = decode_bounds(
        key_type,
        data_file.lower_bounds.get(field_id),
        data_file.upper_bounds.get(field_id),
        data_file.nan_value_counts.get(field_id) == 0,
        data_file.file_format,
    )
    return replace(bounds, lower=_comparable(bounds.lower), upper=_comparable(bounds.upper))


def _comparable(bound: Any) -> Any:
    """A bound, or None if it exceeds 64 bits, as a date promoted to a timestamp may."""
    return None if isinstance(bound, int) and not -(2**63) <= bound < 2**63 else bound
