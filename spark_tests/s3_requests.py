"""Counts the requests that this process sends to S3, and makes each of them last a while."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

# So that requests that are made side by side meet.
_SECONDS = 0.02


class Requests:
    """What was asked of S3.

    Attributes:
        made: how often what.
        most: how many at once, at most.
    """

    def __init__(self) -> None:
        self.made: Counter[str] = Counter()
        self.most = self._now = 0
        self._spans: list[tuple[float, float]] = []

    @property
    def in_turn(self) -> int:
        """How many followed each other; those that were under way together count once."""
        count, last = 0, float("-inf")
        for end, start in sorted((end, start) for start, end in self._spans):
            if start >= last:
                count, last = count + 1, end
        return count

    async def answer(self, call: Any, *args: Any, **kwargs: Any) -> Any:
        self.made[args[1]] += 1
        self._now += 1
        self.most = max(self.most, self._now)
        started = time.monotonic()
        await asyncio.sleep(_SECONDS)
        try:
            return await call(*args, **kwargs)
        finally:
            self._now -= 1
            self._spans.append((started, time.monotonic()))


@contextmanager
def counted(refused: Callable[[str, dict[str, Any]], bool] | None = None) -> Iterator[Requests]:
    """Counts requests.

    Args:
        refused: which requests fail, by their method and arguments; they are not sent.
    """
    from s3fs import S3FileSystem

    requests, call = Requests(), S3FileSystem._call_s3

    async def counting(fs: Any, method: str, *args: Any, **kwargs: Any) -> Any:
        if refused is not None and refused(method, kwargs):
            raise PermissionError("refused")
        return await requests.answer(call, fs, method, *args, **kwargs)

    with mock.patch.object(S3FileSystem, "_call_s3", counting):
        yield requests
