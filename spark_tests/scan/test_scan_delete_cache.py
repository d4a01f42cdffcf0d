from __future__ import annotations

import threading
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, strategies as st

from icebergds.errors import CorruptFileError
from icebergds.scan.read.delete_cache import DELETES, DeleteCache


def _get(cache: DeleteCache, key: object, value: bytes, max_bytes: int = 100) -> bytes:
    return cache.get_or_load(key, lambda: value, len, max_bytes)


def test_a_value_is_loaded_once() -> None:
    cache = DeleteCache()
    assert _get(cache, "a", b"first") == b"first"
    assert _get(cache, "a", b"second") == b"first"


def test_the_least_recently_used_value_goes_first() -> None:
    cache = DeleteCache()
    for key in ("a", "b"):
        _get(cache, key, b"x" * 50)
    _get(cache, "a", b"")
    _get(cache, "c", b"x" * 50)
    assert _get(cache, "a", b"new") == b"x" * 50
    assert _get(cache, "b", b"new") == b"new"


def test_a_value_larger_than_the_bound_is_used_and_displaces_nothing() -> None:
    cache = DeleteCache()
    _get(cache, "a", b"x" * 60)
    assert _get(cache, "b", b"y" * 101) == b"y" * 101
    assert cache.nbytes == 60
    assert _get(cache, "b", b"again") == b"again"


def test_the_bound_of_a_call_holds_from_then_on() -> None:
    cache = DeleteCache()
    for key in range(10):
        _get(cache, key, b"x" * 10)
    _get(cache, "new", b"x" * 10, max_bytes=30)
    assert cache.nbytes == 30


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 40))), st.integers(0, 60))
def test_what_is_kept_follows_a_simple_model(calls: list[tuple[int, int]], bound: int) -> None:
    cache = DeleteCache()
    model: OrderedDict[int, int] = OrderedDict()
    for key, size in calls:
        expected = model.get(key, size)
        assert len(_get(cache, key, b"x" * size, bound)) == expected
        if key in model:
            model.move_to_end(key)
        elif size <= bound:
            model[key] = size
            while sum(model.values()) > bound:
                model.popitem(last=False)
        assert cache.nbytes == sum(model.values())


def test_threads_that_ask_at_a_time_share_one_load() -> None:
    cache = DeleteCache()
    loads: list[int] = []
    may_end = threading.Event()

    def load() -> bytes:
        loads.append(1)
        may_end.wait(10)
        return b"value"

    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(cache.get_or_load, "k", load, len) for _ in range(8)]
        may_end.set()
        assert {future.result() for future in asked} == {b"value"}
    assert len(loads) == 1


def test_loading_one_key_does_not_hold_up_another() -> None:
    cache = DeleteCache()
    started, may_end = threading.Event(), threading.Event()

    def slow() -> bytes:
        started.set()
        may_end.wait(10)
        return b"slow"

    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(cache.get_or_load, "slow", slow, len)
        assert started.wait(10)
        assert _get(cache, "fast", b"fast") == b"fast"
        assert not asked.done()
        may_end.set()
        assert asked.result() == b"slow"


def test_a_loader_may_ask_for_other_keys() -> None:
    cache = DeleteCache()
    outer = cache.get_or_load("outer", lambda: _get(cache, "inner", b"inner") + b"!", len)
    assert outer == b"inner!"
    assert _get(cache, "inner", b"") == b"inner"


def test_a_failed_load_is_raised_and_not_kept() -> None:
    cache = DeleteCache()

    def fail() -> bytes:
        raise CorruptFileError("f is damaged")

    with pytest.raises(CorruptFileError, match="f is damaged"):
        cache.get_or_load("k", fail, len)
    assert _get(cache, "k", b"ok") == b"ok"


def test_threads_that_wait_for_a_failing_load_get_its_error() -> None:
    cache = DeleteCache()
    started, may_end = threading.Event(), threading.Event()

    def fail() -> bytes:
        started.set()
        may_end.wait(10)
        raise CorruptFileError("f is damaged")

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(cache.get_or_load, "k", fail, len)
        assert started.wait(10)
        second = pool.submit(cache.get_or_load, "k", fail, len)
        may_end.set()
        for future in (first, second):
            with pytest.raises(CorruptFileError):
                future.result()


def test_an_interrupted_load_leaves_waiting_threads_to_load_themselves() -> None:
    cache = DeleteCache()
    started, may_end = threading.Event(), threading.Event()

    def interrupted() -> bytes:
        started.set()
        may_end.wait(10)
        raise KeyboardInterrupt

    def ask_interrupted() -> None:
        with pytest.raises(KeyboardInterrupt):
            cache.get_or_load("k", interrupted, len)

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(ask_interrupted)
        assert started.wait(10)
        second = pool.submit(_get, cache, "k", b"mine")
        may_end.set()
        first.result()
        assert second.result() == b"mine"


def test_cleared_values_are_loaded_again() -> None:
    cache = DeleteCache()
    _get(cache, "a", b"old")
    cache.clear()
    assert cache.nbytes == 0
    assert _get(cache, "a", b"new") == b"new"


def test_there_is_one_cache_a_process() -> None:
    try:
        assert DELETES.get_or_load("test", lambda: b"1", len) == b"1"
        assert DELETES.get_or_load("test", lambda: b"2", len) == b"1"
    finally:
        DELETES.clear()
