"""Damages one thing of a random table, and says what a verification must tell of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import fastavro
from built.damage import change_records, split_avro
from hypothesis import strategies as st
from strategies.random_tables import RandomTable, inherited_first_row_ids
from strategies.small_values import POOLS, scalar_fields
from strategies.table_model import ModelFile, leaf_value

from icebergds import Finding
from icebergds.operations.maintenance.verify.findings import FindingKind
from icebergds.spec.types import (
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    TIME,
    TIMESTAMP,
    UNKNOWN,
    NestedField,
)
from icebergds.spec.values.binary import to_bytes

Draw = Callable[[st.SearchStrategy[Any]], Any]
Record = dict[str, Any]

_DATA, _KEYS = 0, 2
_NOWHERE = "/nowhere/data-lost.parquet"
DEPTHS = ("metadata", "footers", "rows")
_NUMBERS = (INT, LONG, FLOAT, DOUBLE, DATE, TIME, TIMESTAMP)
_CHANGED = ("records", "data-files", "files-size", "delete-files")


@dataclass(frozen=True)
class Told:
    """What a verification must tell of a damage.

    Attributes:
        file: that the finding is about; empty if it may be another.
        depth: the least that tells it.
        field: how the finding's field begins.
    """

    kind: FindingKind
    file: str
    depth: str = "metadata"
    field: str = ""

    def is_by(self, finding: Finding) -> bool:
        """Whether a finding tells it."""
        is_about = finding.file == self.file or not self.file
        has_field = (finding.field or "").startswith(self.field)
        return finding.kind is self.kind and is_about and has_field


@dataclass(frozen=True)
class Entry:
    """A live entry of a manifest that a branch or tag has."""

    manifest: Record
    at: int
    record: Record

    @property
    def file(self) -> Record:
        return self.record["data_file"]

    @property
    def path(self) -> str:
        return str(self.file["file_path"])

    @property
    def content(self) -> int:
        return int(self.file.get("content", _DATA))

    @property
    def is_vector(self) -> bool:
        return self.file["file_format"].lower() == "puffin"


@dataclass(frozen=True)
class Damage:
    """Something that can be wrong.

    Attributes:
        targets: where it can be.
        do: makes it so at a target.
        version: the least format version of tables that can have it.
    """

    targets: Callable[[DamagedTable], Iterable[Any]]
    do: Callable[[DamagedTable, Any], Told]
    version: int = 1


class DamagedTable:
    """A random table, of which one thing is to be damaged."""

    def __init__(self, draw: Draw, made: RandomTable) -> None:
        self._draw, self._made, self._builder = draw, made, made.builder

    def damage(self, damage: Damage) -> Told:
        """Does it somewhere; returns what must be told."""
        return damage.do(self, self._one_of(list(damage.targets(self))))

    # Targets.

    @cached_property
    def lists(self) -> list[tuple[str, list[Record]]]:
        """The manifest lists of branches and tags, and their manifests."""
        metadata = self._builder.metadata
        ids = sorted({ref.snapshot_id for ref in metadata.refs.values()})
        paths = [str(metadata.snapshots_by_id[i].manifest_list) for i in ids]
        return [(path, _records(path)) for path in paths]

    @cached_property
    def entries(self) -> list[Entry]:
        manifests = {m["manifest_path"]: m for _, listed in self.lists for m in listed}
        return [
            Entry(manifest, at, record)
            for path, manifest in manifests.items()
            for at, record in enumerate(_records(path))
            if record["status"] != 2
        ]

    def files(self) -> Iterator[Entry]:
        yield from self.entries

    def stored_files(self) -> Iterator[Entry]:
        return (entry for entry in self.entries if not entry.is_vector)

    def with_offsets(self) -> Iterator[Entry]:
        return (entry for entry in self.stored_files() if _format(entry) != "avro")

    def vectors(self) -> Iterator[Entry]:
        return (entry for entry in self.entries if entry.is_vector)

    def by_key(self) -> Iterator[Entry]:
        return (entry for entry in self.entries if entry.content == _KEYS)

    def with_numbers(self) -> Iterator[Entry]:
        is_new = self._builder.metadata.format_version > 1
        return (entry for entry in self.entries if is_new and "sequence_number" in entry.record)

    def with_map(self, name: str) -> Iterator[tuple[Entry, NestedField]]:
        """Data files, and the columns that they have metrics of."""
        columns = [f for f in scalar_fields(self._builder.schema.fields) if f.field_type != UNKNOWN]
        for entry in self.entries:
            known = {each["key"] for each in entry.file[name] or ()}
            if entry.content == _DATA:
                yield from ((entry, column) for column in columns if column.field_id in known)

    def numbers(self) -> Iterator[tuple[Entry, NestedField]]:
        """Data files, and their columns of types whose values have a fixed size."""
        known = self.with_map("upper_bounds")
        return (target for target in known if target[1].field_type in _NUMBERS)

    def excluded(self) -> Iterator[tuple[Entry, NestedField, bytes, str]]:
        """Data files, their columns, and bounds that exclude a value of the column."""
        models = {f.path: f for state in self._made.states.values() for f in state.files}
        for entry in self.entries:
            model = models.get(entry.path)
            for column in scalar_fields(model.schema.fields) if model else ():
                yield from self._excluding(entry, model, column)  # type: ignore[arg-type]

    def _excluding(
        self, entry: Entry, model: ModelFile, column: NestedField
    ) -> Iterator[tuple[Entry, NestedField, bytes, str]]:
        schema, kind = self._builder.schema, column.field_type
        now = schema.find_field(column.field_id)
        if now is None or now.field_type != kind or kind == UNKNOWN:
            return
        read = (
            leaf_value(model, at, column.field_id, schema, self._made.facts)
            for at in range(len(model.rows))
        )
        values = [value for value in read if value is not None and value == value]
        for bound in (each for each in POOLS[kind] if each == each and values):
            if bound > min(values):
                yield entry, column, to_bytes(kind, bound), "lower_bounds"
            if bound < max(values):
                yield entry, column, to_bytes(kind, bound), "upper_bounds"

    def manifests(self) -> Iterator[tuple[str, Record]]:
        """The manifests of branches and tags, each with the list that has it."""
        return ((path, manifest) for path, listed in self.lists for manifest in listed)

    def with_min_numbers(self) -> Iterator[tuple[str, Record]]:
        live = {entry.manifest["manifest_path"] for entry in self.entries}
        for path, manifest in self.manifests():
            if "min_sequence_number" in manifest and manifest["manifest_path"] in live:
                yield path, manifest

    def summaries(self) -> Iterator[tuple[str, Record, int]]:
        """Partition fields whose values are not all the same."""
        for path, manifest in self.manifests():
            for at, summary in enumerate(manifest["partitions"] or ()):
                bounds = {summary[name] or b"" for name in ("lower_bound", "upper_bound")}
                # Zero has two signs.
                differ = len(bounds) > 1 and any(bound.strip(b"\x00\x80") for bound in bounds)
                if differ or summary["contains_null"]:
                    yield path, manifest, at

    def with_row_ids(self) -> Iterator[tuple[Entry, int]]:
        """Data files, and a row id that one of another manifest of the same snapshot has."""
        for path, listed in self.lists:
            has_ids = any("first_row_id" in manifest for manifest in listed)
            ids = inherited_first_row_ids(path) if has_ids else {}
            manifests = {manifest["manifest_path"] for manifest in listed}
            known = [
                (entry, entry.manifest["manifest_path"])
                for entry in self.entries
                if entry.path in ids and entry.manifest["manifest_path"] in manifests
            ]
            for entry, own in known:
                if "first_row_id" in entry.file:
                    yield from ((entry, ids[e.path]) for e, manifest in known if manifest != own)

    def on_main(self) -> Iterator[ModelFile]:
        """Data files of main that new deletes may name."""
        head = self._builder.metadata.current_snapshot()
        if head is None or self._builder.metadata.format_version == 1:
            return
        state = self._made.states[head.snapshot_id]
        taken = {p for d in state.deletes if d.data_file.is_deletion_vector for p in d.positions}
        yield from (file for file in state.files if file.path not in taken)

    def totals(self) -> Iterator[str]:
        if self._builder.metadata.current_snapshot() is not None:
            yield from (f"{word}-{name}" for word in ("total", "added") for name in _CHANGED)

    # Damages.

    def lose_file(self, entry: Entry) -> Told:
        Path(entry.path).unlink()
        return Told(FindingKind.MISSING_FILE, entry.path)

    def cut_file(self, entry: Entry) -> Told:
        data = Path(entry.path).read_bytes()
        Path(entry.path).write_bytes(data[: self._at(len(data))])
        return Told(FindingKind.FILE_SIZE, entry.path)

    def flip_vector(self, entry: Entry) -> Told:
        start, length = entry.file["content_offset"], entry.file["content_size_in_bytes"]
        data = bytearray(Path(entry.path).read_bytes())
        data[start + self._at(length)] ^= 1 << self._draw(st.integers(0, 7))
        Path(entry.path).write_bytes(data)
        return Told(FindingKind.DAMAGED_FILE, entry.path, "footers")

    def change_rows(self, entry: Entry) -> Told:
        wrong = self._other(entry.file["record_count"])
        self._set(entry, record_count=wrong)
        return Told(FindingKind.RECORD_COUNT, entry.path, "footers", field="record_count")

    def change_size(self, entry: Entry) -> Told:
        self._set(entry, file_size_in_bytes=self._other(entry.file["file_size_in_bytes"]))
        return Told(FindingKind.FILE_SIZE, entry.path, field="file_size_in_bytes")

    def change_offsets(self, entry: Entry) -> Told:
        # Both formats begin with a few letters.
        self._set(entry, split_offsets=[1])
        return Told(FindingKind.SPLIT_OFFSETS, entry.path, "footers")

    def change_count(self, name: str, target: tuple[Entry, NestedField]) -> Told:
        entry, column = target
        known = {each["key"]: each["value"] for each in entry.file[name]}
        self._put(entry, name, column, self._other(known[column.field_id]))
        return self._of_column(FindingKind.VALUE_COUNTS, entry, column)

    def change_column_size(self, target: tuple[Entry, NestedField]) -> Told:
        entry, column = target
        self._put(entry, "column_sizes", column, self._draw(st.sampled_from([-1, 1 << 40])))
        return replace(self._of_column(FindingKind.COLUMN_SIZES, entry, column), depth="footers")

    def exclude_value(self, target: tuple[Entry, NestedField, bytes, str]) -> Told:
        entry, column, bound, name = target
        self._put(entry, name, column, bound)
        return self._of_column(FindingKind.BOUNDS, entry, column)

    def spoil_bound(self, target: tuple[Entry, NestedField]) -> Told:
        entry, column = target
        self._put(entry, "upper_bounds", column, b"\x00\x00\x00")
        return self._of_column(FindingKind.BOUNDS, entry, column)

    def change_number(self, entry: Entry) -> Told:
        def change(records: list[Record]) -> None:
            records[entry.at]["sequence_number"] = entry.manifest["sequence_number"] + 5

        self._change(entry, change)
        return Told(FindingKind.SEQUENCE_NUMBERS, entry.path, field="sequence_number")

    def double_entry(self, entry: Entry) -> Told:
        self._change(entry, lambda records: records.append(records[entry.at]))
        return Told(FindingKind.DUPLICATE_FILE, entry.path)

    def lose_keys(self, entry: Entry) -> Told:
        self._set(entry, equality_ids=None)
        return Told(FindingKind.DELETE_ENTRY, entry.path, field="equality_ids")

    def lose_place(self, entry: Entry) -> Told:
        self._set(entry, content_offset=None)
        return Told(FindingKind.DELETE_ENTRY, entry.path, field="content_offset")

    def miss_target(self, entry: Entry) -> Told:
        self._set(entry, referenced_data_file=_NOWHERE)
        return Told(FindingKind.DANGLING_DELETES, entry.path)

    def repeat_row_ids(self, target: tuple[Entry, int]) -> Told:
        entry, row_id = target
        self._set(entry, first_row_id=row_id)
        # Of two files with the same ids, either may be named.
        return Told(FindingKind.ROW_IDS, "", field="first_row_id")

    def delete_past_the_end(self, file: ModelFile) -> Told:
        beyond = len(file.rows) + self._draw(st.integers(0, 3))
        data_file, builder = file.data_file, self._builder
        if builder.metadata.format_version == 2:
            place = {"partition": data_file.partition, "spec_id": data_file.spec_id}
            written = builder.position_deletes({file.path: [beyond]}, **place)
        else:
            (written,) = builder.deletion_vectors([(data_file, [beyond])])
        builder.commit(written)
        return Told(FindingKind.DELETE_POSITIONS, written.file_path, "rows", field=file.path)

    def change_counts(self, target: tuple[str, Record]) -> Told:
        path, manifest = target
        name = self._one_of([n for n in manifest if n.endswith("_count")])
        self._set_listed(path, manifest, **{name: self._other(manifest[name])})
        return Told(FindingKind.MANIFEST_COUNTS, manifest["manifest_path"], field=name)

    def raise_min_number(self, target: tuple[str, Record]) -> Told:
        path, manifest = target
        self._set_listed(path, manifest, min_sequence_number=1_000)
        file = manifest["manifest_path"]
        return Told(FindingKind.SEQUENCE_NUMBERS, file, field="min_sequence_number")

    def raise_number(self, target: tuple[str, Record]) -> Told:
        path, manifest = target
        self._set_listed(path, manifest, sequence_number=1_000)
        return Told(
            FindingKind.SEQUENCE_NUMBERS, manifest["manifest_path"], field="sequence_number"
        )

    def narrow_summary(self, target: tuple[str, Record, int]) -> Told:
        path, manifest, at = target
        summaries = [dict(summary) for summary in manifest["partitions"]]
        summary = summaries[at]
        if summary["contains_null"]:
            summary["contains_null"] = False
        else:
            summary["lower_bound"] = summary["upper_bound"]
        self._set_listed(path, manifest, partitions=summaries)
        return Told(FindingKind.PARTITION_SUMMARY, manifest["manifest_path"])

    def lose_manifest(self, target: tuple[str, Record]) -> Told:
        Path(target[1]["manifest_path"]).unlink()
        return Told(FindingKind.MISSING_FILE, target[1]["manifest_path"])

    def cut_manifest(self, target: tuple[str, Record]) -> Told:
        self._cut_avro(target[1]["manifest_path"])
        return Told(FindingKind.DAMAGED_FILE, target[1]["manifest_path"])

    def lose_list(self, target: tuple[str, Record]) -> Told:
        Path(target[0]).unlink()
        return Told(FindingKind.MISSING_FILE, target[0])

    def cut_list(self, target: tuple[str, Record]) -> Told:
        self._cut_avro(target[0])
        return Told(FindingKind.DAMAGED_FILE, target[0])

    def change_total(self, name: str) -> Told:
        builder, snapshot = self._builder, self._builder.metadata.current_snapshot()
        assert snapshot is not None
        wrong = replace(snapshot, summary={**snapshot.summary, name: "123456789"})
        snapshots = builder.metadata.snapshots
        builder.set_snapshots([wrong if each == snapshot else each for each in snapshots])
        kind = FindingKind.SNAPSHOT_CHANGES
        if name.startswith("total"):
            kind = FindingKind.SNAPSHOT_TOTALS
        return Told(kind, builder.metadata_location, field=f"{name} of snapshot")

    # Rewritten metadata.

    def _of_column(self, kind: FindingKind, entry: Entry, column: NestedField) -> Told:
        name = self._builder.schema.find_name(column.field_id)
        return Told(kind, entry.path, "rows", field=str(name))

    def _put(self, entry: Entry, name: str, column: NestedField, value: Any) -> None:
        kept = [each for each in entry.file[name] or () if each["key"] != column.field_id]
        self._set(entry, **{name: [*kept, {"key": column.field_id, "value": value}]})

    def _set(self, entry: Entry, **values: Any) -> None:
        self._change(entry, lambda records: records[entry.at]["data_file"].update(values))

    def _change(self, entry: Entry, change: Callable[[list[Record]], object]) -> None:
        """Changes a manifest; all lists that have it know its length."""
        path = entry.manifest["manifest_path"]
        length = change_records(path, change)

        def resize(records: list[Record]) -> None:
            for manifest in records:
                if manifest["manifest_path"] == path:
                    manifest["manifest_length"] = length

        for snapshot in self._builder.metadata.snapshots:
            change_records(str(snapshot.manifest_list), resize)

    def _set_listed(self, path: str, manifest: Record, **values: Any) -> None:
        def change(records: list[Record]) -> None:
            for each in records:
                if each["manifest_path"] == manifest["manifest_path"]:
                    each.update(values)

        change_records(path, change)

    def _cut_avro(self, path: str) -> None:
        data = Path(path).read_bytes()
        # Without all of its blocks, it would be a whole file.
        least = len(split_avro(data)[0]) + 1
        Path(path).write_bytes(data[: least + self._at(len(data) - least)])

    def _other(self, number: int) -> int:
        """Another number of at least 0."""
        more = self._draw(st.sampled_from([1, -1, 3, -3]))
        return number + more if number + more >= 0 else number - more

    def _at(self, length: int) -> int:
        """A place in so many bytes; sizes of files are not the same in each run."""
        return int(self._draw(st.integers(0, 9_999)) * length // 10_000)

    def _one_of(self, items: Sequence[Any]) -> Any:
        return items[self._draw(st.integers(0, len(items) - 1))]


def _count(name: str) -> Damage:
    return Damage(
        lambda table: table.with_map(name),
        lambda table, target: table.change_count(name, target),
    )


def _records(path: str) -> list[Record]:
    with open(path, "rb") as file:
        return list(fastavro.reader(file))  # type: ignore[arg-type]


def _format(entry: Entry) -> str:
    return str(entry.file["file_format"]).lower()


_T = DamagedTable
DAMAGES = {
    "missing file": Damage(_T.files, _T.lose_file),
    "truncated file": Damage(_T.files, _T.cut_file),
    "flipped bit of a vector": Damage(_T.vectors, _T.flip_vector, 3),
    "record count": Damage(_T.files, _T.change_rows),
    "file size": Damage(_T.files, _T.change_size),
    "split offsets": Damage(_T.with_offsets, _T.change_offsets),
    "value count": _count("value_counts"),
    "null count": _count("null_value_counts"),
    "NaN count": _count("nan_value_counts"),
    "column size": Damage(lambda table: table.with_map("value_counts"), _T.change_column_size),
    "bound": Damage(_T.excluded, _T.exclude_value),
    "bound of another type": Damage(_T.numbers, _T.spoil_bound),
    "sequence number of a file": Damage(_T.with_numbers, _T.change_number, 2),
    "doubled entry": Damage(_T.files, _T.double_entry),
    "no equality ids": Damage(_T.by_key, _T.lose_keys, 2),
    "no place of a vector": Damage(_T.vectors, _T.lose_place, 3),
    "vector of a missing file": Damage(_T.vectors, _T.miss_target, 3),
    "repeated row ids": Damage(_T.with_row_ids, _T.repeat_row_ids, 3),
    "delete past the end": Damage(_T.on_main, _T.delete_past_the_end, 2),
    "counts of a manifest": Damage(_T.manifests, _T.change_counts),
    "least sequence number": Damage(_T.with_min_numbers, _T.raise_min_number, 2),
    "sequence number of a manifest": Damage(_T.with_min_numbers, _T.raise_number, 2),
    "partition summary": Damage(_T.summaries, _T.narrow_summary),
    "missing manifest": Damage(_T.manifests, _T.lose_manifest),
    "truncated manifest": Damage(_T.manifests, _T.cut_manifest),
    "missing manifest list": Damage(_T.manifests, _T.lose_list),
    "truncated manifest list": Damage(_T.manifests, _T.cut_list),
    "summary": Damage(_T.totals, _T.change_total),
}
"""All that is tried, by name."""
