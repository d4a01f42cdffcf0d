"""Random small tables, a commit at a time, in files and in the model at once."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import fastavro
from built.tables import TableBuilder
from hypothesis import strategies as st
from strategies.every_type import rows_that_fit
from strategies.imported_files import mapped_fields, without_field_ids
from strategies.small_values import (
    POOLS,
    TYPES,
    WIDE,
    WIDE_TYPES,
    scalar_fields,
    values_of_field,
)
from strategies.table_model import (
    ModelDelete,
    ModelFile,
    ModelState,
    Row,
    TableFacts,
    deleted_positions,
    leaf_value,
    output,
    partition_key,
    rows_of,
)

from icebergds.errors import UnsupportedFeatureError
from icebergds.formats.data_file.write_properties import WriteProperties
from icebergds.formats.data_writer import check_data_writer
from icebergds.spec.evolution.promotion import can_promote
from icebergds.spec.json.name_mapping import NAME_MAPPING_PROPERTY, name_mapping_to_json
from icebergds.spec.manifest import DataFile, FileFormat
from icebergds.spec.name_mapping import NameMapping
from icebergds.spec.partition import FIRST_PARTITION_FIELD_ID, PartitionField, PartitionSpec
from icebergds.spec.reserved import LAST_UPDATED_SEQUENCE_NUMBER, ROW_ID
from icebergds.spec.schema import Schema
from icebergds.spec.sort import SortOrder
from icebergds.spec.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    VoidTransform,
    YearTransform,
    apply,
    can_transform,
)
from icebergds.spec.types import (
    BINARY,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    UNKNOWN,
    VARIANT,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
)

_T = TypeVar("_T")
Draw = Callable[[st.SearchStrategy[_T]], _T]

_TRANSFORMS: list[Transform] = [
    IdentityTransform(),
    IdentityTransform(),
    BucketTransform(2),
    TruncateTransform(2),
    YearTransform(),
    MonthTransform(),
    DayTransform(),
    HourTransform(),
    VoidTransform(),
]
_NAMES = ["a", "b", "c", "d", "e", "f", "g", "h"]
_DANGLING = "/nowhere/data-gone.parquet"


class RandomTable:
    """A table under construction, and what its snapshots hold by the model.

    Args:
        draw: draws from a strategy.
        location: the table's root directory.
        is_plain: leave out what other readers get wrong or refuse: equality deletes, deletes of
            rows that are not there or in another partition, the type unknown, files that lack
            their partition columns, manifest lists without partition summaries. PyIceberg
            matches no deletes in partitions of NaN, and applies every vector of a Puffin file
            that it opens: partitions by floats and vectors that are taken back are left out too.
        is_wide: have files in all formats, Parquet files without field ids, which the name
            mapping is for, and more types.
        format_versions: of the table at first; it may be raised to the last of them.
    """

    def __init__(
        self,
        draw: Draw[Any],
        location: Path,
        *,
        is_plain: bool = False,
        is_wide: bool = False,
        format_versions: Sequence[int] = (1, 2, 3),
    ) -> None:
        self._draw = draw
        self._is_plain = is_plain
        self._is_wide = is_wide
        self._versions = format_versions
        version = draw(st.sampled_from(format_versions))
        self._last_column_id = 0
        fields = tuple(
            self._new_field(name, version, added=False)
            for name in _NAMES[: draw(st.integers(1, 4))]
        )
        schema = Schema(fields)
        spec = PartitionSpec(0, self._new_parts(schema, (), FIRST_PARTITION_FIELD_ID))
        self.builder = TableBuilder(location, schema, spec=spec, format_version=version)
        self._map_names()
        self.states: dict[int, ModelState] = {}
        self._added: list[ModelFile] = []
        self._base = ModelState()

    @property
    def facts(self) -> TableFacts:
        return TableFacts(self.builder.metadata.schemas, self.builder.metadata.specs_by_id)

    def step(self) -> None:
        """One random commit or change of the table's metadata."""
        metadata = self.builder.metadata
        steps = [self._commit] * 5 + [self._evolve_schema] * 2 + [self._evolve_spec] * 2
        if metadata.format_version < self._versions[-1]:
            steps.append(self._upgrade)
        if metadata.snapshots:
            steps.append(self._branch)
        self._one_of(steps)()

    # Changes of metadata.

    def _upgrade(self) -> None:
        self.builder.upgrade(self.builder.metadata.format_version + 1)

    def _branch(self) -> None:
        snapshot = self._one_of(self.builder.metadata.snapshots)
        self.builder.branch(self._one_of(["audit", "test"]), snapshot.snapshot_id)

    def _evolve_spec(self) -> None:
        metadata = self.builder.metadata
        old = metadata.spec().fields
        kept: list[PartitionField] = []
        for part in old:
            if self._draw(st.booleans()):
                kept.append(part)
            elif metadata.format_version == 1:
                kept.append(replace(part, transform=VoidTransform()))
        known = [part for spec in metadata.partition_specs for part in spec.fields]
        new = self._new_parts(self.builder.schema, kept, metadata.last_partition_id + 1, known)
        spec_id = max(metadata.specs_by_id) + 1
        self.builder.evolve(spec=PartitionSpec(spec_id, (*kept, *new)))

    def _new_parts(
        self,
        schema: Schema,
        kept: Sequence[PartitionField],
        next_id: int,
        known: Sequence[PartitionField] = (),
    ) -> tuple[PartitionField, ...]:
        unusable = (UNKNOWN, FLOAT, DOUBLE) if self._is_plain else (UNKNOWN,)
        sources = [f for f in scalar_fields(schema.fields) if f.field_type not in unusable]
        if not self._is_plain:
            sources += [field for field in sources if field not in schema.fields] * 3
        parts: list[PartitionField] = []
        for _ in range(self._draw(st.integers(0, 2))):
            source = self._one_of(sources) if sources else None
            transform = self._one_of(_TRANSFORMS)
            if source is None or not can_transform(transform, source.field_type):
                continue
            same = ((source.field_id,), transform)
            if any((part.source_ids, part.transform) == same for part in (*kept, *parts)):
                continue
            # Partition Evolution: equivalent fields keep their id.
            found = [p.field_id for p in known if (p.source_ids, p.transform) == same]
            if found and found[-1] not in {part.field_id for part in (*kept, *parts)}:
                field_id = found[-1]
            else:
                field_id, next_id = next_id, next_id + 1
            parts.append(PartitionField((source.field_id,), field_id, transform, f"p{field_id}"))
        return tuple(parts)

    def _evolve_schema(self) -> None:
        metadata = self.builder.metadata
        self._last_column_id = max(self._last_column_id, metadata.last_column_id)
        fields = list(self.builder.schema.fields)
        change = self._one_of([self._add, self._drop, self._rename, self._promote, self._shuffle])
        change(fields)
        schema_id = max(schema.schema_id for schema in metadata.schemas) + 1
        self.builder.evolve(schema=Schema(tuple(fields), schema_id))
        self._map_names()

    def _map_names(self) -> None:
        """Maps the names that files without field ids have to all fields that there ever were."""
        if self._is_wide:
            fields = [field for schema in self.builder.metadata.schemas for field in schema.fields]
            mapping = json.dumps(name_mapping_to_json(NameMapping(mapped_fields(fields))))
            properties = {**self.builder.metadata.properties, NAME_MAPPING_PROPERTY: mapping}
            self.builder.set_properties(properties)

    def _add(self, fields: list[NestedField]) -> None:
        version = self.builder.metadata.format_version
        at = self._draw(st.integers(0, len(fields) - 1))
        inside = fields[at].field_type
        if isinstance(inside, StructType) and self._draw(st.booleans()):
            child = self._new_field(self._free_name(inside.fields), version, nested=True)
            fields[at] = replace(fields[at], field_type=StructType((*inside.fields, child)))
        else:
            fields.append(self._new_field(self._free_name(fields), version))

    def _drop(self, fields: list[NestedField]) -> None:
        sources = {
            part.source_id
            for part in self.builder.metadata.spec().fields
            if not isinstance(part.transform, VoidTransform)
        }
        at = self._draw(st.integers(0, len(fields) - 1))
        field = fields[at]
        inside = field.field_type
        if isinstance(inside, StructType) and len(inside.fields) > 1 and self._draw(st.booleans()):
            kept = [f for f in inside.fields[1:] if f.field_id not in sources]
            if len(kept) == len(inside.fields) - 1 and inside.fields[0].field_id not in sources:
                fields[at] = replace(field, field_type=StructType(tuple(kept)))
        elif len(fields) > 1 and not sources & {f.field_id for f in scalar_fields([field])}:
            del fields[at]

    def _rename(self, fields: list[NestedField]) -> None:
        at = self._draw(st.integers(0, len(fields) - 1))
        fields[at] = replace(fields[at], name=self._free_name(fields))

    def _promote(self, fields: list[NestedField]) -> None:
        metadata = self.builder.metadata
        sources = {p.source_id for s in metadata.partition_specs for p in s.fields}

        def wider(field: NestedField) -> NestedField:
            match field.field_type:
                case StructType(fields=inner):
                    return replace(field, field_type=StructType(tuple(map(wider, inner))))
                case ListType():
                    return field
            for wide in (LONG, DOUBLE, WIDE, TIMESTAMP):
                changes_value = field.field_type == DATE and (
                    field.field_id in sources or field.initial_default is not None
                )
                if (
                    can_promote(field.field_type, wide, metadata.format_version)
                    and not changes_value
                ):
                    return replace(field, field_type=wide)
            return field

        at = self._draw(st.integers(0, len(fields) - 1))
        fields[at] = wider(fields[at])

    def _shuffle(self, fields: list[NestedField]) -> None:
        fields[:] = self._draw(st.permutations(fields))

    def _new_field(
        self, name: str, version: int, *, added: bool = True, nested: bool = False
    ) -> NestedField:
        self._last_column_id += 1
        field_id = self._last_column_id
        kind = self._draw(st.integers(0, 11))
        # Not in plain tables, lest those that other readers are held to change.
        is_struct = kind == 0 or (kind == 3 and not self._is_plain)
        if is_struct and not nested:
            children = tuple(
                self._new_field(child, version, added=False, nested=True)
                for child in _NAMES[: self._draw(st.integers(1, 3))]
            )
            return NestedField(field_id, name, StructType(children))
        if kind == 1 and not nested:
            self._last_column_id += 1
            return NestedField(field_id, name, ListType(self._last_column_id, INT))
        if kind == 2 and version >= 3 and not self._is_plain:
            return NestedField(field_id, name, UNKNOWN)
        if kind == 4 and self._is_wide and not nested:
            return self._wide_field(field_id, name, version)
        field_type = self._one_of([*TYPES, *WIDE_TYPES[: version + 2]] if self._is_wide else TYPES)
        if not added:
            # Arrow refuses to write null structs around required fields.
            return NestedField(field_id, name, field_type, not nested and self._rarely())
        if version < 3 or self._draw(st.booleans()):
            return NestedField(field_id, name, field_type)
        default = self._draw(st.sampled_from(POOLS[field_type]))
        if default != default:
            default = 0.0
        is_required = not nested and self._draw(st.booleans())
        return NestedField(field_id, name, field_type, is_required, initial_default=default)

    def _wide_field(self, field_id: int, name: str, version: int) -> NestedField:
        if version >= 3 and self._rarely():
            return NestedField(field_id, name, VARIANT)
        self._last_column_id += 3
        inside: IcebergType = self._one_of([INT, STRING, DATE])
        if self._draw(st.booleans()):
            child = NestedField(field_id + 3, "x", inside)
            inside = StructType((child,))
        if self._draw(st.booleans()):
            return NestedField(field_id, name, ListType(field_id + 1, inside))
        return NestedField(field_id, name, MapType(field_id + 1, STRING, field_id + 2, inside))

    def _free_name(self, fields: Sequence[NestedField]) -> str:
        taken = {field.name for field in fields}
        return self._one_of(
            [name for name in (*_NAMES, "a.b", "A ,`", "x", "y") if name not in taken]
        )

    # Commits.

    def _commit(self) -> None:
        metadata = self.builder.metadata
        branches = [name for name, ref in metadata.refs.items() if ref.ref_type.value == "branch"]
        branch = self._one_of(["main", "main", *branches])
        parent = metadata.snapshot_by_ref(branch)
        self._base = ModelState() if parent is None else self.states[parent.snapshot_id]
        self._added = []
        deletes: list[ModelDelete] = []
        removed: list[DataFile] = []
        older: dict[str, int] = {}
        kind = self._one_of(["append", "append", "delete", "both", "both", "remove", "rewrite"])
        if kind in ("append", "both") or not self._base.files:
            self._append()
        if kind in ("delete", "both"):
            self._delete(deletes, removed)
        if kind == "remove":
            removed += [file.data_file for file in self._some(self._base.files)]
            if not self._is_plain:
                removed += [d.data_file for d in self._some(self._base.deletes)[:1]]
        if kind == "rewrite" and parent is not None and metadata.format_version > 1:
            removed += self._rewrite(parent.sequence_number, older)
        snapshot_id = self.builder.commit(
            *(file.data_file for file in self._added),
            *(delete.data_file for delete in deletes),
            removed=removed,
            branch=branch,
            with_summaries=self._is_plain or self._draw(st.booleans()),
            data_sequence_numbers=older,
        )
        snapshot = self.builder.metadata.snapshots_by_id[snapshot_id]
        number = snapshot.sequence_number
        state = self._base.changed(
            (replace(f, sequence_number=older.get(f.path, number)) for f in self._added),
            (replace(d, sequence_number=number) for d in deletes),
            removed,
        )
        assert snapshot.manifest_list is not None
        first_row_ids = inherited_first_row_ids(snapshot.manifest_list)
        self.states[snapshot_id] = replace(state, first_row_ids=first_row_ids)

    def _append(self) -> None:
        schemas = [self.builder.schema] * 4 + [self._one_of(self.builder.metadata.schemas)]
        schema = self._one_of(schemas)
        stored = [field for field in schema.fields if field.field_type != UNKNOWN]
        specs = [
            spec
            for spec in self.builder.metadata.partition_specs
            if all(schema.find_field(part.source_id) is not None for part in spec.fields)
        ]
        default = [spec for spec in specs if spec.spec_id == self.builder.metadata.default_spec_id]
        if not (specs and stored):
            return
        spec = self._one_of([*default * 4, *specs])
        row = st.tuples(*(values_of_field(field) for field in stored))
        by_partition: dict[tuple[Any, ...], tuple[DataFile, list[Row]]] = {}
        for values in self._draw(st.lists(row, min_size=1, max_size=7)):
            partition = _partition_of(spec, schema, stored, values)
            file = DataFile(None, "", None, spec.spec_id, partition, 0, 0)  # type: ignore[arg-type]
            by_partition.setdefault(partition_key(file), (file, []))[1].append(values)
        for file, rows in by_partition.values():
            cut = self._draw(st.integers(0, 2 * len(rows)))
            for part in (rows[:cut], rows[cut:]):
                if part:
                    self._write(part, stored, spec, file.partition)

    def _write(
        self,
        rows: Sequence[Row],
        stored: Sequence[NestedField],
        spec: PartitionSpec,
        partition: tuple[Any, ...],
    ) -> ModelFile:
        fixed = {
            part.source_id for part in spec.fields if isinstance(part.transform, IdentityTransform)
        }
        # Column Projection: files that came from Hive lack the partition columns.
        if fixed and not self._is_plain and self._draw(st.booleans()):
            whole = StructType(tuple(stored))
            narrow = _without(whole, fixed)
            if narrow.fields:
                rows = [_narrowed(row, whole, narrow) for row in rows]
                stored = narrow.fields
        schema = Schema(tuple(stored))
        data_file = self.builder.data_file(
            rows,
            partition=partition,
            spec_id=spec.spec_id,
            schema=schema,
            row_group_size=self._one_of([None, 1, 2, 3]),
            file_format=self._format(schema, rows),
        )
        if (
            self._is_wide
            and data_file.file_format is FileFormat.PARQUET
            and self._draw(st.booleans())
        ):
            data_file = without_field_ids(data_file, schema, rows)
        file = ModelFile(self._weakened(data_file, schema), 0, schema, tuple(rows))
        self._added.append(file)
        return file

    def _rewrite(self, number: int, older: dict[str, int]) -> list[DataFile]:
        """Compacts the live rows of a partition; their deletes are then done."""
        chosen = self._some(self._base.files)
        chosen = [
            f for f in chosen if partition_key(f.data_file) == partition_key(chosen[0].data_file)
        ]
        schema, facts = self.builder.schema, self.facts
        stored = [field for field in schema.fields if field.field_type != UNKNOWN]
        if self.builder.metadata.format_version >= 3:
            stored += [ROW_ID, LAST_UPDATED_SEQUENCE_NUMBER]
        state = ModelState(tuple(chosen), self._base.deletes, self._base.first_row_ids)
        live = [
            tuple(output(row, field, state, facts) for field in stored)
            for row in rows_of(state, facts)
            if not row.is_deleted
        ]
        if live and stored:
            spec = facts.specs[chosen[0].data_file.spec_id]
            written = self._write(live, stored, spec, chosen[0].data_file.partition)
            older[written.path] = number
        return [file.data_file for file in chosen]

    def _delete(self, deletes: list[ModelDelete], removed: list[DataFile]) -> None:
        version = self.builder.metadata.format_version
        if version == 1:
            return
        kinds = [self._delete_positions if version == 2 else self._delete_by_vectors]
        if not self._is_plain:
            kinds.append(self._delete_keys)
        for kind in self._draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=3)):
            if kind != self._delete_by_vectors or not any(
                d.data_file.is_deletion_vector for d in deletes
            ):
                kind(deletes, removed)

    def _delete_positions(self, deletes: list[ModelDelete], _: list[DataFile]) -> None:
        chosen = self._some([*self._base.files, *self._added])
        groups: dict[object, list[ModelFile]] = {}
        by_file = self._draw(st.booleans())
        for file in chosen:
            key = file.path if by_file else partition_key(file.data_file)
            groups.setdefault(key, []).append(file)
        for files in groups.values():
            positions = {file.path: self._positions(file) for file in files}
            if not by_file and self._draw(st.booleans()):
                # One that does not exist, and any that may lie in another partition.
                positions[_DANGLING] = frozenset({0})
                other = files[0] if self._is_plain else self._one_of(chosen)
                positions.setdefault(other.path, self._positions(other))
            data_file = self.builder.position_deletes(
                {path: sorted(found) for path, found in positions.items()},
                partition=files[0].data_file.partition,
                spec_id=files[0].data_file.spec_id,
                file_format=self._format(),
            )
            if by_file and self._draw(st.booleans()):
                data_file = replace(data_file, referenced_data_file=files[0].path)
            if self._draw(st.booleans()):
                data_file = replace(data_file, lower_bounds={}, upper_bounds={})
            deletes.append(ModelDelete(data_file, 0, positions))

    def _delete_by_vectors(self, deletes: list[ModelDelete], removed: list[DataFile]) -> None:
        chosen = self._some([*self._base.files, *self._added])
        merged = []
        for file in chosen:
            removed += [
                delete.data_file
                for delete in self._base.deletes
                if delete.data_file.is_deletion_vector and file.path in delete.positions
            ]
            known = deleted_positions(file, self._base.deletes)
            merged.append((file, known | self._positions(file)))
        written = self.builder.deletion_vectors(
            [(file.data_file, sorted(found)) for file, found in merged]
        )
        deletes += [
            ModelDelete(data_file, 0, {file.path: found})
            for data_file, (file, found) in zip(written, merged, strict=True)
        ]

    def _delete_keys(self, deletes: list[ModelDelete], _: list[DataFile]) -> None:
        schema, facts = self.builder.schema, self.facts
        leaves = [f.field_id for f in scalar_fields(schema.fields) if f.field_type != UNKNOWN]
        if not leaves:
            return
        ids = self._draw(st.lists(st.sampled_from(leaves), min_size=1, max_size=2, unique=True))
        tops = {(i, *schema.ancestors(i))[-1] for i in ids}
        columns = [
            field
            for field in schema.fields
            if field.field_id in tops or (field.field_type != UNKNOWN and self._rarely())
        ]
        columns = [replace(field, required=False) for field in columns]
        files = [*self._base.files, *self._added]
        scopes = [
            (spec.spec_id, (None,) * len(spec.fields))
            for spec in facts.specs.values()
            if spec.is_unpartitioned
        ]
        scopes += [(f.data_file.spec_id, f.data_file.partition) for f in files]
        if not scopes:
            return
        spec_id, partition = self._one_of(scopes)
        known = [
            tuple(leaf_value(file, at, f.field_id, schema, facts) for f in columns)
            for file in files
            for at in range(len(file.rows))
        ]
        random_row = st.tuples(*(values_of_field(field) for field in columns))
        key = random_row | st.sampled_from(known) if known else random_row
        keys = self._draw(st.lists(key, min_size=1, max_size=3))
        data_file = self.builder.equality_deletes(
            [field.name for field in columns],
            keys,
            partition=partition,
            spec_id=spec_id,
            schema=Schema(tuple(columns)),
            equality_ids=ids,
            file_format=self._format(Schema(tuple(columns)), keys),
        )
        key_schema = Schema(tuple(columns))
        weakened = self._weakened(data_file, key_schema)
        deletes.append(ModelDelete(weakened, 0, {}, key_schema, tuple(keys)))

    # Parts of files.

    def _format(self, schema: Schema | None = None, rows: Sequence[Row] = ()) -> FileFormat:
        """A format for rows that it can store."""
        if not self._is_wide:
            return FileFormat.PARQUET
        found: FileFormat = self._one_of([FileFormat.PARQUET, FileFormat.ORC, FileFormat.AVRO])
        if found is FileFormat.PARQUET or schema is None or _can_store(found, schema, rows):
            return found
        return FileFormat.PARQUET

    def _positions(self, file: ModelFile) -> frozenset[int]:
        # Also one beyond the file's end.
        last = len(file.rows) - 1 if self._is_plain else len(file.rows)
        positions = st.frozensets(st.integers(0, last), min_size=1, max_size=3)
        return self._draw(positions)

    def _weakened(self, file: DataFile, schema: Schema) -> DataFile:
        """The file with less said about it, as writers differ in what they record."""
        match self._draw(st.integers(0, 4)):
            case 0:
                return replace(
                    file,
                    value_counts={},
                    null_value_counts={},
                    nan_value_counts={},
                    lower_bounds={},
                    upper_bounds={},
                    split_offsets=(),
                )
            case 1:
                return replace(file, nan_value_counts={}, upper_bounds={})
            case 2:
                return replace(file, null_value_counts={}, split_offsets=file.split_offsets[::-1])
            case 3:
                return replace(_with_short_bounds(file, schema), split_offsets=())
            case _:
                return file

    def _some(self, items: Sequence[_T]) -> list[_T]:
        if not items:
            return []
        indexes = st.lists(
            st.integers(0, len(items) - 1), min_size=1, max_size=min(3, len(items)), unique=True
        )
        return [items[i] for i in self._draw(indexes)]

    def _one_of(self, items: Sequence[_T]) -> _T:
        return items[self._draw(st.integers(0, len(items) - 1))]

    def _rarely(self) -> bool:
        return self._draw(st.integers(0, 3)) == 0


def _can_store(file_format: FileFormat, schema: Schema, rows: Sequence[Row]) -> bool:
    settings = WriteProperties.of({}, schema, SortOrder())
    try:
        check_data_writer(file_format, schema, settings, "")
    except UnsupportedFeatureError:
        return False
    return repr(rows_that_fit(file_format, schema, rows)) == repr(list(rows))


def inherited_first_row_ids(manifest_list: str) -> dict[str, int]:
    """Row Lineage: first row ids of a snapshot's data files, by path, where they have one."""
    found: dict[str, int] = {}
    for manifest in _avro(manifest_list):
        following = manifest.get("first_row_id")
        if manifest.get("content", 0) != 0:
            continue
        for entry in _avro(manifest["manifest_path"]):
            data_file = entry["data_file"]
            first = data_file.get("first_row_id")
            if entry["status"] == 2:
                continue
            if first is None and following is not None:
                first, following = following, following + data_file["record_count"]
            if first is not None:
                found[data_file["file_path"]] = first
    return found


def _partition_of(
    spec: PartitionSpec, schema: Schema, stored: Sequence[NestedField], values: Row
) -> tuple[Any, ...]:
    row = ModelFile(None, 0, Schema(tuple(stored)), (values,))  # type: ignore[arg-type]
    partition = []
    for part in spec.fields:
        source = schema.find_field(part.source_id)
        assert source is not None
        value = leaf_value(row, 0, part.source_id, schema, TableFacts((schema,), {}))
        partition.append(apply(part.transform, source.field_type, value))
    return tuple(partition)


def _without(struct: StructType, lacks: Collection[int]) -> StructType:
    """A struct without some fields, and without structs of which none is left."""
    fields = []
    for field in struct.fields:
        if isinstance(field.field_type, StructType):
            field = replace(field, field_type=_without(field.field_type, lacks))
        if field.field_id not in lacks and field.field_type != StructType(()):
            fields.append(field)
    return StructType(tuple(fields))


def _narrowed(value: Row, struct: StructType, narrow: StructType) -> Row:
    """A value of a struct as one of the fields that are left of it."""
    by_id = {f.field_id: (f, v) for f, v in zip(struct.fields, value, strict=True)}
    found = []
    for field in narrow.fields:
        whole, inner = by_id[field.field_id]
        if isinstance(field.field_type, StructType) and inner is not None:
            assert isinstance(whole.field_type, StructType)
            inner = _narrowed(inner, whole.field_type, field.field_type)
        found.append(inner)
    return tuple(found)


def _with_short_bounds(file: DataFile, schema: Schema) -> DataFile:
    """Texts and bytes cut to one character, as metrics mode `truncate(1)` does."""
    lower, upper = dict(file.lower_bounds), dict(file.upper_bounds)
    for field in schema.fields:
        bound = upper.get(field.field_id)
        if bound is None or field.field_type not in (STRING, BINARY):
            continue
        if field.field_type == STRING:
            text = bound.decode()
            lower[field.field_id] = lower[field.field_id].decode()[:1].encode()
            above = chr(ord(text[0]) + 1).encode() if len(text) > 1 else bound
        else:
            lower[field.field_id] = lower[field.field_id][:1]
            above = bytes([bound[0] + 1]) if len(bound) > 1 and bound[0] < 255 else bound
        upper[field.field_id] = above
    return replace(file, lower_bounds=lower, upper_bounds=upper)


def _avro(path: str) -> list[dict[str, Any]]:
    with open(path, "rb") as file:
        return list(fastavro.reader(file))  # type: ignore[arg-type]
