"""Pages of encrypted Parquet files: that only chosen ones are read, and that each is checked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from built.data_files import encrypting, read_batches, rows_of, with_id, write_parquet
from built.schemas import optional
from effort import some

from icebergds.encryption.key_metadata import KeyMetadata
from icebergds.errors import CorruptFileError
from icebergds.expr.bind import bind
from icebergds.expr.nodes import TRUE, Expr, Operation, Predicate, and_
from icebergds.formats.parquet import page_pruning
from icebergds.formats.parquet.encryption import decryption_options
from icebergds.formats.parquet.page_index import PageIndex
from icebergds.spec.schema import Schema
from icebergds.spec.types import LONG, STRING

KEY = KeyMetadata(b"0123456789012345", b"1234567890123456")
SCHEMA = Schema((optional(1, "n", LONG), optional(2, "s", STRING)))
FIELDS = [with_id("n", pa.int64(), 1), with_id("s", pa.string(), 2)]
ROWS: list[tuple[object, ...]] = [(n, f"s{n % 7}") for n in range(95)]


@pytest.fixture(scope="module", autouse=True)
def _worth_it() -> Iterator[None]:
    """Pages are skipped in small files too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(page_pruning, "_MIN_BYTES", 0)
        patch.setattr(page_pruning, "_MIN_GAP", 1)
        yield


def _file(path: Path, key: KeyMetadata = KEY, **more: object) -> str:
    """`ROWS` in row groups of 40 and pages of ten; texts have dictionaries."""
    return write_parquet(
        path / "f.parquet",
        FIELDS,
        list(zip(*ROWS, strict=True)),
        row_group_size=40,
        write_page_index=True,
        max_rows_per_page=10,
        write_batch_size=5,
        use_dictionary=["s"],
        compression="none",
        **encrypting(key, **more),
    )


def _between(low: int, high: int) -> Expr:
    least, greatest = Operation.GT_EQ, Operation.LT_EQ
    return bind(and_(Predicate(least, "n", (low,)), Predicate(greatest, "n", (high,))), SCHEMA)


def _read(
    location: str, row_filter: Expr, key: KeyMetadata = KEY, schema: Schema = SCHEMA
) -> list[tuple[object, ...]]:
    """The rows that are read."""
    reads = read_batches(location, schema, row_filter=row_filter, key=key)
    positions = [read.first_position + at for read in reads for at in range(read.num_rows)]
    rows = [row for read in reads for row in rows_of(read)]
    assert rows == [ROWS[position][: len(schema.fields)] for position in positions]
    return rows


def _pages(location: str, group: int, leaf: int) -> list[tuple[int, int]]:
    """Offset and size of the pages of a column chunk; the dictionary page is the first."""
    with pa.OSFile(location) as handle:
        metadata = pq.read_metadata(location, **decryption_options(KEY))
        pages = PageIndex(handle, metadata, KEY).pages(group, leaf)
    found = list(zip(pages.offsets.tolist(), pages.sizes.tolist(), strict=True))
    head = found[0][0] - pages.start
    return [(pages.start, head), *found] if head else found


def _indexes(location: str, group: int, leaf: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Offset and size of the offset index and of the column index."""
    with pa.OSFile(location) as handle:
        metadata = pq.read_metadata(location, **decryption_options(KEY))
        chunk = PageIndex(handle, metadata, KEY).chunk(group, leaf)
    return (chunk[4][1], chunk[5][1]), (chunk[6][1], chunk[7][1])


@pytest.mark.parametrize("length", [16, 24, 32])
@pytest.mark.parametrize("prefix", [b"p", None])
def test_only_pages_that_may_match_are_read(
    tmp_path: Path, length: int, prefix: bytes | None
) -> None:
    key = KeyMetadata(bytes(range(length)), prefix)
    location = _file(tmp_path, key, store_aad_prefix=False)
    assert _read(location, _between(33, 45), key) == ROWS[30:50]
    assert _read(location, TRUE, key) == ROWS


def test_a_prefix_that_the_file_has_is_used(tmp_path: Path) -> None:
    location = _file(tmp_path, store_aad_prefix=True)
    assert _read(location, _between(33, 45)) == ROWS[30:50]
    assert _read(location, _between(33, 45), KeyMetadata(KEY.encryption_key)) == ROWS[30:50]


def test_nothing_else_is_even_looked_at(tmp_path: Path) -> None:
    """Neither other row groups nor other columns, nor other pages of this column."""
    location, numbers = _file(tmp_path), Schema(SCHEMA.fields[:1])
    offset, size = _pages(location, 1, 0)[1]
    indexes = min(start for group in range(3) for start, _ in _indexes(location, group, 0))
    content = bytearray(Path(location).read_bytes())
    for start, stop in ((4, offset), (offset + size, indexes)):
        content[start:stop] = b"\xee" * (stop - start)
    Path(location).write_bytes(content)
    row_filter = _between(53, 55)
    assert _read(location, row_filter, schema=numbers) == [(n,) for n in range(50, 60)]
    with pytest.raises(CorruptFileError):
        _read(location, _between(53, 65), schema=numbers)


def test_remote_files_are_read_by_page(tmp_path: Path) -> None:
    store = fsspec.filesystem("memory")
    store.pipe("/encrypted/f.parquet", Path(_file(tmp_path)).read_bytes())
    try:
        assert _read("memory:///encrypted/f.parquet", _between(33, 45)) == ROWS[30:50]
    finally:
        store.rm("/encrypted", recursive=True)


def test_pages_without_tags_are_not_read_alone(tmp_path: Path) -> None:
    """A changed byte of theirs would not be noticed: row groups are read by Arrow."""
    location = _file(tmp_path, encryption_algorithm="AES_GCM_CTR_V1")
    assert _read(location, _between(33, 45)) == ROWS[:80]


def _refused(location: str, content: bytes) -> None:
    stored = Path(location).read_bytes()
    Path(location).write_bytes(content)
    try:
        with pytest.raises(CorruptFileError, match="cannot be decrypted") as caught:
            _read(location, _between(33, 45))
    finally:
        Path(location).write_bytes(stored)
    assert location in str(caught.value)
    assert str(KEY.encryption_key)[2:-1] not in str(caught.value)
    assert KEY.encryption_key.hex() not in str(caught.value)


def test_a_changed_byte_of_what_is_read_is_refused(tmp_path: Path) -> None:
    location = _file(tmp_path)
    parts = {
        "dictionary": _pages(location, 0, 1)[0],
        "page of numbers": _pages(location, 0, 0)[3],
        "page of texts": _pages(location, 0, 1)[4],
        "page of another row group": _pages(location, 1, 0)[0],
        "offset index": _indexes(location, 0, 0)[0],
        "column index": _indexes(location, 1, 0)[1],
        "offset index of a column without a filter": _indexes(location, 1, 1)[0],
    }
    stored = Path(location).read_bytes()
    for offset, size in parts.values():
        # The length before each module, the nonce, the ciphertext and the tag.
        for at in some(range(offset, offset + size), 12):
            changed = bytearray(stored)
            changed[at] ^= 0x10
            _refused(location, bytes(changed))
    assert _read(location, _between(33, 45)) == ROWS[30:50]


def test_parts_that_took_the_place_of_others_are_refused(tmp_path: Path) -> None:
    location = _file(tmp_path)
    pages, later = _pages(location, 0, 0), _pages(location, 1, 0)
    swaps = {
        "pages": (pages[2], pages[3]),
        "pages of row groups": (pages[3], later[3]),
        "offset indexes": (_indexes(location, 0, 0)[0], _indexes(location, 1, 0)[0]),
        "column indexes": (_indexes(location, 0, 0)[1], _indexes(location, 1, 0)[1]),
    }
    stored = Path(location).read_bytes()
    for (one, size), (other, _) in swaps.values():
        changed = bytearray(stored)
        changed[one : one + size] = stored[other : other + size]
        changed[other : other + size] = stored[one : one + size]
        assert changed != stored
        _refused(location, bytes(changed))


def test_a_page_of_another_file_is_refused(tmp_path: Path) -> None:
    """It has the same key, and the file's own identifier differs."""
    location = _file(tmp_path)
    (tmp_path / "other").mkdir()
    other = Path(_file(tmp_path / "other")).read_bytes()
    changed = bytearray(Path(location).read_bytes())
    for offset, size in _pages(location, 0, 0):
        changed[offset : offset + size] = other[offset : offset + size]
    _refused(location, bytes(changed))
