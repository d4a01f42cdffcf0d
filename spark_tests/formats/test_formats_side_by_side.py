"""How many manifests are read at once, and by whom they are decoded."""

from __future__ import annotations

import gc
import multiprocessing
import os
import threading
from contextlib import suppress

import pytest

from icebergds.formats.manifests.side_by_side import (
    decoding,
    manifest_decoders,
    manifest_readers,
    reading_ahead,
    uncollected,
)
from icebergds.io.fileio import FileIO
from icebergds.spec.manifest import ManifestFile

IO = FileIO()
KB, MB = 1 << 10, 1 << 20
CORES = min(4, os.cpu_count() or 1)


def manifests(*lengths: int, where: str = "/lake") -> list[ManifestFile]:
    return [ManifestFile(f"{where}/{at}.avro", size, 0) for at, size in enumerate(lengths)]


@pytest.mark.parametrize(
    ("lengths", "most_bytes", "decoders"),
    [
        ((), None, 1),
        ((10, 500 * KB), None, 1),
        ((10, 2 * MB), None, CORES),
        ((10, 2 * MB), 4 * MB, min(2, CORES)),
        ((10, 8 * MB), 4 * MB, 1),
    ],
)
def test_one_thread_decodes_small_manifests(
    lengths: tuple[int, ...], most_bytes: int | None, decoders: int
) -> None:
    assert manifest_decoders(manifests(*lengths), most_bytes) == decoders
    assert manifest_readers(IO, manifests(*lengths), most_bytes) == decoders


@pytest.mark.parametrize(
    ("length", "most_bytes", "readers"),
    [(10, None, 24), (300 * KB, None, 8), (300 * KB, MB, 3), (8 * MB, MB, 1)],
)
def test_more_threads_read_remote_manifests(
    length: int, most_bytes: int | None, readers: int
) -> None:
    remote = manifests(length, 1, where="s3://lake")
    assert manifest_readers(IO, remote, most_bytes) == readers


def test_manifests_that_are_near_are_not_fetched_ahead() -> None:
    assert reading_ahead(IO, manifests(10, 20)) is IO


def test_small_manifests_are_decoded_in_turn() -> None:
    entered = threading.Event()

    def enter() -> None:
        with decoding(10):
            entered.set()

    with decoding(10):
        other = threading.Thread(target=enter)
        other.start()
        assert not entered.wait(0.2)
        # Large ones have turns of their own.
        with decoding(MB):
            pass
    other.join(60)
    assert entered.is_set()


def decode_in_a_fork(done: multiprocessing.synchronize.Event) -> None:
    with decoding(10):
        done.set()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a fork")
def test_a_fork_does_not_wait_for_threads_that_it_lacks() -> None:
    processes = multiprocessing.get_context("fork")
    done = processes.Event()
    with decoding(10):
        fork = processes.Process(target=decode_in_a_fork, args=(done,))
        fork.start()
        assert done.wait(60)
    fork.join(60)


def test_python_collects_no_garbage_until_the_last_thread_has_made_its_objects() -> None:
    seen = []
    inside, leave = threading.Event(), threading.Event()

    def other() -> None:
        with uncollected():
            inside.set()
            leave.wait()

    thread = threading.Thread(target=other)
    thread.start()
    inside.wait()
    with suppress(KeyError), uncollected():
        seen.append(gc.isenabled())
        raise KeyError
    seen.append(gc.isenabled())
    leave.set()
    thread.join()
    assert [*seen, gc.isenabled()] == [False, False, True]


def test_who_has_switched_the_collection_off_finds_it_off() -> None:
    gc.disable()
    try:
        with uncollected():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
