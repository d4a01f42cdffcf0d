"""Sketches columns of a snapshot's live rows: chooses the columns, reads them in tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from icebergds.commit.operations import TableState
from icebergds.errors import InvalidOptionError
from icebergds.operations.maintenance.runner import Runner, TaskAttempt
from icebergds.operations.read.options import ReadOptions
from icebergds.operations.read.snapshot_read import (
    make_read_plan,
    plan_task_groups,
    resolve_read,
)
from icebergds.operations.statistics.theta_sketch import AlphaSketch, ThetaSketch, merge_sketches
from icebergds.operations.statistics.value_hashes import value_hashes
from icebergds.scan.column_paths import column_at, locate
from icebergds.scan.projection import select_columns
from icebergds.scan.read.changes import read_task_group
from icebergds.scan.read_plan import ReadPlan
from icebergds.scan.tasks import TaskGroup
from icebergds.spec.schema import Schema
from icebergds.spec.types import VARIANT, NestedField, StructType, is_scalar

_ALL = ("*",)


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
        fields: of the snapshot's schema.

    Raises:
        CorruptFileError, MissingFileError: a file of the table is damaged or missing.
        UnsupportedFeatureError: a file uses an unsupported feature.
    """
    options = ReadOptions.of(snapshot_id=snapshot_id)
    snapshot, schema = resolve_read(options, state.metadata, state.name)
    columns = schema.select(field.field_id for field in fields)
    read = make_read_plan(options, state, schema, columns)
    groups = plan_task_groups(options, state, snapshot, read)
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
