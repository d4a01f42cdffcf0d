"""Files are written in another thread, while the caller makes what follows."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from icebergds.io.remote_files import WriteBehind

# More than a pipe holds that nobody reads.
_PART = 2**20


def written_to(pipe: int) -> WriteBehind:
    def put(data: bytes) -> None:
        with os.fdopen(pipe, "wb") as whole:
            whole.write(data)

    return WriteBehind(lambda: os.fdopen(pipe, "wb"), put, _PART)


def test_the_next_part_is_made_while_one_is_written() -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as source, ThreadPoolExecutor(1) as pool:
        file = written_to(writing)
        assert file.write(b"a" * _PART) == _PART
        assert file.write(b"b") == 1
        assert file.tell() == _PART + 1
        read = pool.submit(source.read)
        file.close()
        assert read.result() == b"a" * _PART + b"b"


def test_parts_are_written_in_order() -> None:
    reading, writing = os.pipe()
    parts = [bytes([number]) * size for number, size in enumerate([1, _PART, 0, 3 * _PART, 5, 7])]
    with os.fdopen(reading, "rb") as source, ThreadPoolExecutor(1) as pool:
        read = pool.submit(source.read)
        file = written_to(writing)
        for part in parts:
            file.write(part)
            file.flush()
        file.close()
        file.close()
        assert read.result() == b"".join(parts)


def test_a_file_of_one_part_is_written_at_once() -> None:
    reading, writing = os.pipe()
    whole: list[bytes] = []
    with os.fdopen(reading, "rb"), os.fdopen(writing, "wb") as pipe:
        file = WriteBehind(lambda: pipe, whole.append, _PART)
        file.write(b"a" * _PART)
        file.close()
    assert whole == [b"a" * _PART]


def test_an_error_is_raised_by_a_later_call_and_by_closing() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    file = written_to(writing)
    file.write(bytes(_PART))
    file.write(bytes(_PART))
    with pytest.raises(BrokenPipeError):
        file.write(bytes(1))
    with pytest.raises(BrokenPipeError):
        file.close()
    assert file.closed
    file.close()
