"""Reads as if no set of deleted keys fitted in memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import strategies as st

from icebergds.scan.read import deletes
from icebergds.scan.read.delete_cache import DELETES


@contextmanager
def keys_in_parts() -> Iterator[None]:
    """Applies equality deletes a batch of keys at a time, in the block."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(deletes, "_most_bytes", lambda plan: 0)
        DELETES.clear()
        yield
    DELETES.clear()


@contextmanager
def perhaps_in_parts(data: st.DataObject) -> Iterator[None]:
    """`keys_in_parts` in some of the examples."""
    if data.draw(st.booleans()):
        with keys_in_parts():
            yield
    else:
        yield
