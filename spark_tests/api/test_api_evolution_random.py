"""Random sequences of evolutions, writes, deletes and transactions, against a plain model."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest
from built.contents import unused_files
from effort import examples
from hypothesis import HealthCheck, given, strategies as st
from strategies.evolving_table import EvolvingTable

from icebergds import load_table


@pytest.mark.parametrize("version", [1, 2, 3])
def test_every_branch_and_tag_has_its_rows_whatever_evolves(tmp_path: Path, version: int) -> None:
    numbers = count()

    @examples(80, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def check(data: st.DataObject) -> None:
        made = EvolvingTable(data.draw, tmp_path, f"t{next(numbers)}", version)
        for _ in range(data.draw(st.integers(4, 14))):
            made.step()
            assert made.found() == made.expected()
        for ref in made.rows:
            assert made.found(ref) == made.expected(ref)
        # As another process finds it.
        loaded = load_table(made.table.location())
        assert loaded.metadata == made.table.metadata
        assert unused_files(loaded) == set()

    check()
