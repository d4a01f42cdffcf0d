"""Files of other writers that have a page index, read by page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from built.data_files import open_file, read_batches, rows_of
from built.schemas import optional
from corpus import corpus_dir
from effort import some

from icebergds.encryption.key_metadata import KeyMetadata
from icebergds.errors import UnsupportedFeatureError
from icebergds.expr.bind import bind
from icebergds.expr.names import quote_name
from icebergds.expr.nodes import TRUE, Expr, Operation, Predicate, or_
from icebergds.formats.arrow.filter import filter_mask
from icebergds.formats.data_file.read_request import PositionedBatch, ReadRequest
from icebergds.formats.parquet import page_pruning, page_reader
from icebergds.spec.schema import Schema
from icebergds.spec.types import LONG, STRING, VARIANT, IcebergType, StructType, is_scalar

# Java Iceberg 1.12.0 wrote them with `withFileEncryptionKey` and `withAADPrefix`: 400 rows of long,
# string, double, struct<long, string> and decimal(20, 2), most with nulls, in pages of 20 after the
# first one; and 420 such rows, in pages of version 2.
ENCRYPTED = Path(__file__).with_name("java_encrypted_pages.parquet")
ENCRYPTED_V2 = Path(__file__).with_name("java_encrypted_pages_v2.parquet")
ENCRYPTED_BY = KeyMetadata(b"0123456789012345", b"1234567890123456")


def test_java_files_read_by_page_give_the_rows_of_reading_them_whole(monkeypatch):
    assert filtered(monkeypatch, some(files_with_page_index(), 40)) > 100


def test_an_encrypted_java_file_read_by_page_gives_the_rows_of_reading_it_whole(monkeypatch):
    assert filtered(monkeypatch, [ENCRYPTED], ENCRYPTED_BY) == 15
    schema = Schema((optional(1, "id", LONG), optional(2, "s", STRING)))
    row_filter = bind(Predicate(Operation.EQ, "id", (305,)), schema)
    read = read_batches(str(ENCRYPTED), schema, row_filter=row_filter, key=ENCRYPTED_BY)
    rows = [row for batch in read for row in rows_of(batch)]
    assert (305, "s4") in rows
    # Those of a page.
    assert len(rows) == 20


def test_encrypted_java_files_with_pages_of_version_2_are_refused_by_name():
    schema = Schema((optional(2, "s", STRING),))
    for row_filter in (TRUE, bind(Predicate(Operation.EQ, "s", ("s4",)), schema)):
        with pytest.raises(UnsupportedFeatureError, match=r"java_encrypted_pages_v2.* version 2 "):
            read_batches(str(ENCRYPTED_V2), schema, row_filter=row_filter, key=ENCRYPTED_BY)


def filtered(monkeypatch, paths: Iterable[Path], key: KeyMetadata | None = None) -> int:
    """How many filters gave the same rows of the files, read by page and read whole."""
    monkeypatch.setattr(page_pruning, "_MIN_BYTES", 0)
    monkeypatch.setattr(page_pruning, "_MIN_GAP", 1)
    monkeypatch.setattr(page_pruning, "_MAX_SHARE", 2)
    failed = []
    read_leaf = page_reader._open_leaf

    def open_leaf(*args):
        try:
            return read_leaf(*args)
        except Exception as error:
            failed.append(repr(error))
            raise

    monkeypatch.setattr(page_reader, "_open_leaf", open_leaf)
    asked = 0
    for path in paths:
        with open_file(str(path), key=key) as reader:
            flat = tuple(f for f in reader.file_schema.fields if is_flat(f.field_type))
            schema = Schema(flat)
            whole = list(reader.batches(ReadRequest(schema)))
            for row_filter in filters(schema, whole):
                asked += 1
                paged = reader.batches(ReadRequest(schema, {}, row_filter, 300))
                expected = selected(schema, whole, row_filter)
                assert selected(schema, paged, row_filter) == expected, f"{path}: {row_filter}"
    assert failed == []
    return asked


def files_with_page_index() -> list[Path]:
    found = {}
    for path in sorted(corpus_dir().rglob("*.parquet")):
        content = path.read_bytes()
        if content[:4] != b"PAR1" or content[-4:] != b"PAR1" or content in found:
            continue
        try:
            metadata = pq.read_metadata(path)
        except (pa.ArrowInvalid, OSError):
            continue  # Damaged on purpose.
        if metadata.num_row_groups and metadata.row_group(0).column(0).has_column_index:
            found[content] = path
    return list(found.values())


def filters(schema: Schema, reads: Sequence[PositionedBatch]) -> list[Expr]:
    """Filters on the values that scalar columns hold."""
    return [
        bind(predicate, schema)
        for place, field in enumerate(schema.fields[:3])
        if is_scalar(field.field_type)
        for predicate in predicates(field.name, [read.batch.column(place) for read in reads])
    ]


def is_flat(field_type: IcebergType) -> bool:
    """Whether pages of rows are pages of values; shredded variants may hold arrays."""
    if isinstance(field_type, StructType):
        return all(is_flat(field.field_type) for field in field_type.fields)
    return is_scalar(field_type) and field_type != VARIANT


def predicates(name: str, arrays: Sequence[pa.Array]) -> list[Expr]:
    values = pa.chunked_array(arrays) if arrays else pa.chunked_array([[]])
    try:
        known = sorted(set(pc.drop_null(values).to_pylist()))
    except (TypeError, pa.ArrowException, ValueError):
        return []
    if not known or any(value != value for value in known):
        return []
    name = quote_name((name,))
    middle = known[len(known) // 2]
    return [
        Predicate(Operation.EQ, name, (middle,)),
        Predicate(Operation.LT, name, (middle,)),
        Predicate(Operation.GT_EQ, name, (known[-1],)),
        Predicate(Operation.IS_NULL, name),
        or_(Predicate(Operation.NOT_EQ, name, (known[0],)), Predicate(Operation.IS_NULL, name)),
    ]


def selected(
    schema: Schema, reads: Iterable[PositionedBatch], row_filter: Expr
) -> tuple[list[int], str]:
    """Positions of the rows that a filter selects, and the rows; NaN is equal as text."""
    places = {field.field_id: at for at, field in enumerate(schema.fields)}
    positions: list[int] = []
    rows: list[object] = []
    for read in reads:
        batch = read.batch
        mask = filter_mask(row_filter, batch, lambda at, b=batch: b.column(places[at]))
        positions += [read.first_position + at for at in pc.indices_nonzero(mask).to_pylist()]
        rows += batch.filter(mask).to_pylist()
    return positions, repr(rows)
