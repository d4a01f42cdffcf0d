"""A deletion of all files of a dropped table that fails or dies anywhere can be repeated."""

from __future__ import annotations

import random
from contextlib import suppress
from itertools import product
from pathlib import Path

import pytest
from actions import Places
from built.api_tables import TABLE
from effort import IS_NIGHTLY

from icebergds import delete_reachable_files, load_catalog
from icebergds.errors import IcebergError
from icebergds.testing.faults import Crash, Fault, Faults, When
from icebergds.testing.faulty_system import DISK, faulty_system


@pytest.mark.parametrize("error", [DISK, Crash()], ids=["error", "crash"])
@pytest.mark.parametrize("lasting", [False, True], ids=["once", "lasting"])
def test_it_goes_on_where_it_failed(
    places: Places, rng: random.Random, error: BaseException, lasting: bool
) -> None:
    place = places("binpack", "sqlite")
    location = place.table.metadata_location
    # Nothing leads to what a failed write left.
    foreign = {path for path in place.files if path.name == "orphan.parquet"}

    def run(faults: Faults) -> None:
        place.restore()
        load_catalog("lake", **place.catalog).drop_table(TABLE)
        with faulty_system(faults), suppress(IcebergError, Crash):
            delete_reachable_files(location)

    counting = Faults(counted=None)
    run(counting)
    assert place.files_now() == foreign
    ways = list(product(range(len(counting.calls)), (When.BEFORE, When.AFTER)))
    for call, when in ways if IS_NIGHTLY else rng.sample(ways, 3):
        run(Faults([Fault(call, when, error, lasting)], counted=None))
        named = f"{counting.calls[call]} {call} {when}"
        if place.files_now() - foreign:
            assert Path(location) in place.files_now(), named
            assert delete_reachable_files(location).failed_files_count == 0, named
        assert place.files_now() == foreign, named
