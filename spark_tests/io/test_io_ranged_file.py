"""Files that are read by ranges of bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given, strategies as st

from icebergds.io import ranged_file
from icebergds.io.ranged_file import Range, RangedFile

_DATA = bytes(range(256)) * 40


@dataclass
class Store:
    """A file in a storage; what was asked of it."""

    data: bytes
    asked: list[list[Range]] = field(default_factory=list)
    asked_size: int = 0

    def fetch(self, ranges: Sequence[Range]) -> list[bytes]:
        self.asked.append(list(ranges))
        if any(start >= len(self.data) for start, _ in ranges):
            raise OSError("the range begins behind the end")
        return [self.data[start:end] for start, end in ranges]

    def size(self) -> int:
        self.asked_size += 1
        return len(self.data)

    def open(self, size: int | None = None, first: Range | None = None) -> RangedFile:
        return RangedFile(self.fetch, self.size, size, first)


@pytest.fixture
def small_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    make_small(monkeypatch)


def make_small(patch: pytest.MonkeyPatch) -> None:
    """Sets sizes at which small files are read in several ways."""
    for name, size in {"_TAIL": 64, "_WHOLE": 128, "_GAP": 16, "_PART": 100, "_LEAST": 8}.items():
        patch.setattr(ranged_file, name, size)


def test_a_small_file_is_read_by_one_request() -> None:
    store = Store(_DATA)
    file = store.open(len(_DATA))
    file.seek(1000)
    assert file.read(100) == _DATA[1000:1100]
    file.seek(-8, 2)
    assert file.read() == _DATA[-8:]
    assert store.asked == [[(0, len(_DATA) + 1)]]
    assert store.asked_size == 0


@pytest.mark.usefixtures("small_sizes")
def test_the_end_of_a_large_file_is_read_first() -> None:
    store = Store(_DATA)
    file = store.open(len(_DATA))
    file.seek(-64, 2)
    assert file.read() == _DATA[-64:]
    assert store.asked == [[(len(_DATA) - 64, len(_DATA) + 1)]]


@pytest.mark.usefixtures("small_sizes")
@pytest.mark.parametrize("told", [0, 1, len(_DATA) - 1, len(_DATA) + 1, len(_DATA) * 2])
def test_a_wrong_size_is_found_out(told: int) -> None:
    store = Store(_DATA)
    file = store.open(told)
    assert file.size == len(_DATA)
    assert file.read() == _DATA
    assert store.asked_size == 1


def test_an_empty_file_is_empty() -> None:
    assert Store(b"").open(0).read() == b""
    assert Store(b"").open().read() == b""


def test_a_missing_file_is_missing() -> None:
    def fetch(_: Sequence[Range]) -> list[bytes]:
        raise FileNotFoundError("f")

    with pytest.raises(FileNotFoundError):
        RangedFile(fetch, lambda: 0, 10)


def test_another_failure_is_told() -> None:
    def fetch(_: Sequence[Range]) -> list[bytes]:
        raise PermissionError("f")

    with pytest.raises(PermissionError):
        RangedFile(fetch, lambda: 10, 10)


def test_a_first_range_takes_the_place_of_the_end() -> None:
    store = Store(_DATA)
    file = store.open(len(_DATA), (300, 400))
    file.seek(300)
    assert file.read(100) == _DATA[300:400]
    assert store.asked == [[(300, 400)]]
    assert Store(_DATA[:350]).open(len(_DATA), (300, 400)).size == 350


@pytest.mark.usefixtures("small_sizes")
def test_ranges_that_are_near_are_prefetched_together() -> None:
    store = Store(_DATA)
    file = store.open()
    file.prefetch([(500, 520), (0, 10), (20, 30), (1000, 1250)])
    assert store.asked == [[(0, 30), (500, 520), (1000, 1100), (1100, 1200), (1200, 1250)]]
    for start, end in [(0, 30), (505, 515), (1050, 1250)]:
        file.seek(start)
        assert file.read(end - start) == _DATA[start:end]
    assert len(store.asked) == 1


@pytest.mark.usefixtures("small_sizes")
def test_streams_are_read_on_together() -> None:
    store = Store(_DATA)
    file = store.open()
    streams = [(0, 1000), (2000, 4000)]
    file.stream(streams, 300)
    at = [start for start, _ in streams]
    for _ in range(20):
        for number, step in enumerate((50, 100)):
            file.seek(at[number])
            assert file.read(step) == _DATA[at[number] : at[number] + step]
            at[number] += step
    assert len(store.asked) < 20
    assert len(store.asked[0]) > 1


_OFFSETS = st.integers(0, len(_DATA) + 10)
_RANGES = st.lists(st.tuples(_OFFSETS, _OFFSETS).map(sorted).map(tuple), max_size=5)
_STEPS = st.one_of(
    st.tuples(st.just("read"), _OFFSETS, st.integers(-1, 400)),
    st.tuples(st.just("prefetch"), _RANGES, st.none()),
    st.tuples(st.just("stream"), _RANGES, st.integers(1, 1000)),
)


@given(size=st.one_of(st.none(), st.just(len(_DATA)), _OFFSETS), steps=st.lists(_STEPS))
def test_reads_are_those_of_the_file(
    size: int | None, steps: list[tuple[str, object, int]]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        make_small(patch)
        file = Store(_DATA).open(size)
        for kind, what, number in steps:
            if kind == "read":
                assert isinstance(what, int)
                file.seek(what)
                end = len(_DATA) if number < 0 else what + number
                assert file.read(number) == _DATA[what:end]
                assert file.tell() == max(what, min(end, len(_DATA)))
            else:
                within = [(a, min(b, len(_DATA))) for a, b in what if a < len(_DATA)]  # type: ignore
                file.prefetch(within) if kind == "prefetch" else file.stream(within, number)
