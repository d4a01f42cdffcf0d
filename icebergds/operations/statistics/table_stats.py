"""Computes table statistics: how many distinct values columns have (spec: Table Statistics)."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import mmh3
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icebergds.catalog.loaded_table import LoadedTable
from icebergds.commit.operations import TableState
from icebergds.errors import InvalidOptionError
from icebergds.formats.arrow.transforms import unscaled_slices
from icebergds.formats.puffin import NewBlob, encode_puffin
from icebergds.io.failures import storage_failures
from icebergds.operations.read.options import ReadOptions
from icebergds.operations.read.snapshot_read import make_read_plan, plan_task_groups, resolve_read
from icebergds.operations.read.time_travel import TimeTravel, resolve_snapshot
from icebergds.operations.runner import Runner, TaskAttempt, weight_of_files
from icebergds.operations.statistics.statistics_commits import commit_new_file, refuse_in_clear
from icebergds.operations.statistics.theta_sketch import (
    HASH_SEED,
    AlphaSketch,
    ThetaSketch,
    UInt64s,
    merge_sketches,
)
from icebergds.reporting import stage
from icebergds.scan.column_paths import column_at, locate
from icebergds.scan.projection import select_columns
from icebergds.scan.read.changes import read_task_group
from icebergds.scan.read_plan import ReadPlan
from icebergds.scan.tasks import ScanTaskGroup, TaskGroup
from icebergds.spec.schema import Schema
from icebergds.spec.snapshot import Snapshot
from icebergds.spec.statistics import BlobMetadata, StatisticsFile
from icebergds.spec.types import (
    UNKNOWN,
    VARIANT,
    DecimalType,
    IcebergType,
    NestedField,
    StructType,
    is_scalar,
)
from icebergds.spec.updates.table_updates import SetStatistics

THETA_BLOB = "apache-datasketches-theta-v1"
NDV = "ndv"
_PROPERTIES = {"created-by": "icebergds"}
_ALL = ("*",)
_C1, _C2 = np.uint64(0x87C37B91114253D5), np.uint64(0x4CF5AD432745937F)
_MIX_1, _MIX_2 = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)
_PLAIN = {8: pa.int8(), 32: pa.int32(), 64: pa.int64()}


def compute_table_stats(
    table: LoadedTable,
    columns: Sequence[tuple[str, ...]] | None,
    snapshot_id: int | None,
    runner: Runner,
) -> tuple[StatisticsFile | None, TableState]:
    """Writes and commits the statistics file of a snapshot; replaces the one that it has.

    Args:
        columns: the parts of each name; all top-level columns of primitive types by default.
        snapshot_id: the current snapshot by default.

    Returns:
        The file, None if the table has no snapshot, and the table.

    Raises:
        InvalidOptionError: there is no such column, or not of a primitive type.
        NoSuchSnapshotError: the snapshot does not exist, or was expired meanwhile.
        CorruptFileError, MissingFileError: a file of the table is damaged or missing.
        CommitConflictError, CommitStateUnknownError: as for all commits.
        UnsupportedFeatureError: the table is encrypted; see `refuse_in_clear`.
    """
    refuse_in_clear(table.metadata, table.name)
    metadata = table.metadata
    if snapshot_id is None:
        snapshot_id = metadata.current_snapshot_id
    if snapshot_id is None:
        return None, table.state
    snapshot, schema = resolve_snapshot(metadata, TimeTravel(snapshot_id), table.name)
    assert snapshot is not None, "it was looked up by its id"
    fields = sketched_fields(schema, columns, table.name)
    sketches = sketch_columns(table.state, snapshot_id, fields, runner)
    blobs = [_blob(field, sketch, snapshot) for field, sketch in zip(fields, sketches, strict=True)]
    file = _written(table, snapshot, blobs)
    return file, commit_new_file(table, SetStatistics(file))


def _blob(field: NestedField, sketch: ThetaSketch, snapshot: Snapshot) -> NewBlob:
    return NewBlob(
        THETA_BLOB,
        (field.field_id,),
        sketch.to_bytes(),
        snapshot.snapshot_id,
        snapshot.sequence_number,
        {NDV: str(int(sketch.estimate))},
    )


def _written(table: LoadedTable, snapshot: Snapshot, blobs: Sequence[NewBlob]) -> StatisticsFile:
    # Not compressed, because hashes are random.
    data, placed = encode_puffin(blobs, _PROPERTIES)
    name = f"{snapshot.snapshot_id}-{uuid.uuid4()}.stats"
    location = f"{table.metadata.metadata_directory}/{name}"
    with storage_failures("writing the statistics file", location):
        table.io.write(location, data)
    return StatisticsFile(
        snapshot.snapshot_id,
        location,
        len(data),
        len(data) - placed[-1].offset - placed[-1].length,
        tuple(
            BlobMetadata(
                blob.type, blob.snapshot_id, blob.sequence_number, blob.fields, blob.properties
            )
            for blob in placed
        ),
    )


def sketched_fields(
    schema: Schema, names: Sequence[tuple[str, ...]] | None, table: str
) -> list[NestedField]:
    """The columns to sketch, each once.

    Args:
        names: the parts of each name; a single `*`, the default, selects all top-level columns of
            primitive types.

    Raises:
        InvalidOptionError: a column does not exist, is not of a primitive type or is inside of a
            list or map; or there is none.
    """
    fields: list[NestedField] = []
    for name in [_ALL] if names is None else names:
        if name == _ALL:
            fields += filter(_is_primitive, schema.fields)
        else:
            fields.append(_leaf(schema, name, table))
    if not fields:
        raise InvalidOptionError(
            f"table {table}: it has no column of a primitive type at the top level; name some, "
            "such as 'address.city'"
        )
    return list({field.field_id: field for field in fields}.values())


def sketch_columns(
    state: TableState, snapshot_id: int, fields: Sequence[NestedField], runner: Runner
) -> list[ThetaSketch]:
    """A sketch of the live values of each field, in a snapshot.

    Args:
        fields: fields of the snapshot's schema.

    Raises:
        CorruptFileError, MissingFileError: a file of the table is damaged or missing.
        UnsupportedFeatureError: a file uses an unsupported feature.
    """
    options = ReadOptions(TimeTravel(snapshot_id))
    snapshot, schema = resolve_read(options, state.metadata, state.name)
    columns = schema.select(field.field_id for field in fields)
    read = make_read_plan(options, state, schema, columns)
    groups = plan_task_groups(options, state, snapshot, read)
    files = [task for group in groups if isinstance(group, ScanTaskGroup) for task in group.tasks]
    nbytes = sum(task.length for task in files)
    with stage("read files", len(files), nbytes, weight_of_files):
        found = runner.run(_SketchTask(read, tuple(fields)), groups)
    return [merge_sketches(task[at] for task in found) for at in range(len(fields))]


@dataclass(frozen=True, slots=True)
class _SketchTask:
    """Sketches columns of the rows of a task group."""

    read: ReadPlan
    fields: tuple[NestedField, ...]

    def __call__(self, group: TaskGroup, _: TaskAttempt) -> list[ThetaSketch]:
        paths = [locate(self.read.columns.fields, field.field_id) for field in self.fields]
        sketches = [AlphaSketch() for _ in self.fields]
        for batch in read_task_group(self.read, group):
            for field, path, sketch in zip(self.fields, paths, sketches, strict=True):
                assert path is not None, "all fields are read"
                sketch.update(value_hashes(field.field_type, column_at(batch, path)))
        return [sketch.compact() for sketch in sketches]


def _is_primitive(field: NestedField) -> bool:
    return is_scalar(field.field_type) and field.field_type != VARIANT


def _leaf(schema: Schema, name: tuple[str, ...], table: str) -> NestedField:
    """The column of a name, through structs."""
    (field,) = select_columns(schema, [name]).fields
    for _ in name[1:]:
        if not isinstance(field.field_type, StructType):
            raise _refused(name, field, table)
        (field,) = field.field_type.fields
    if not _is_primitive(field):
        raise _refused(name, field, table)
    return field


def _refused(name: tuple[str, ...], field: NestedField, table: str) -> InvalidOptionError:
    return InvalidOptionError(
        f"table {table}: column {'.'.join(name)!r} has no statistics, as {field.name!r} is a "
        f"{field.field_type}; name columns of primitive types, which may be fields of structs"
    )


def value_hashes(field_type: IcebergType, array: pa.Array) -> UInt64s:
    """The hashes of the distinct values of an array, in the order in which they first appear.

    The bytes that are hashed are those of the single-value serialisation (spec: Appendix D; Puffin
    spec: `apache-datasketches-theta-v1`), by the 63 upper bits of the first half of Murmur3 (128
    bits, x64). Nulls and values without bytes, such as empty strings, have none, as in the library
    that the spec refers to.

    Args:
        array: of the Arrow type `arrow.types.to_arrow(field_type)`.
    """
    if field_type == UNKNOWN:
        return np.empty(0, np.uint64)
    if pa.types.is_boolean(array.type):
        array = array.cast(pa.int8())
    elif pa.types.is_primitive(array.type) and not isinstance(field_type, DecimalType):
        # As integers, because -0.0 and 0.0, and NaNs with different bits, have different bytes.
        array = array.view(_PLAIN[array.type.bit_width])
    distinct = array.unique().drop_null()
    if pa.types.is_integer(distinct.type):
        return _hash_fixed(distinct.to_numpy())
    if isinstance(field_type, DecimalType):
        return _hash_each(_unscaled_bytes(distinct))
    return _hash_each(distinct.cast(pa.binary()).to_pylist())


def _unscaled_bytes(decimals: pa.Array) -> Iterator[bytes]:
    buffer, ends, lengths = unscaled_slices(decimals)
    data = buffer.tobytes()
    for start, end in zip((ends - lengths).tolist(), ends.tolist(), strict=True):
        yield data[start:end]


def _hash_each(values: Iterable[bytes]) -> UInt64s:
    hashes = [mmh3.hash64(value, HASH_SEED, signed=False)[0] for value in values if value]
    return np.array(hashes, np.uint64) >> np.uint64(1)


def _hash_fixed(values: npt.NDArray[np.signedinteger]) -> UInt64s:
    """Hashes of the little-endian bytes of integers of at most 8 bytes, which are one step."""
    width = values.dtype.itemsize
    words = values.view(f"u{width}").astype(np.uint64)
    words *= _C1
    words = (words << np.uint64(31)) | (words >> np.uint64(33))
    words *= _C2
    seed = np.uint64(HASH_SEED ^ width)
    first: UInt64s = (words ^ seed) + seed
    return (_mixed(first) + _mixed(first + seed)) >> np.uint64(1)


def _mixed(words: UInt64s) -> UInt64s:
    shift = np.uint64(33)
    words = (words ^ (words >> shift)) * _MIX_1
    words = (words ^ (words >> shift)) * _MIX_2
    return words ^ (words >> shift)
