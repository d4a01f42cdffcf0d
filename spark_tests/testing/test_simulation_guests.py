"""Simulations in which PyIceberg writes to the same tables, and whose results others read."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from unittest import mock

import pytest
from effort import IS_NIGHTLY, given_seed, rounds
from final_readers import FinalReaders
from moto_server import MotoServer
from oracles.duckdb_reader import DuckDBReader
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.expressions.visitors import ROWS_MUST_MATCH, _StrictMetricsEvaluator
from rest_server import RestServer

from icebergds.errors import InvalidOptionError
from icebergds.testing import simulate as command
from icebergds.testing.simulation.findings import FindingKind
from icebergds.testing.simulation.injected import FaultKind
from icebergds.testing.simulation.pyiceberg_writer import PYICEBERG
from icebergds.testing.simulation.shrinking import command_of, simulate_apart
from icebergds.testing.simulation.steps import Outcome
from icebergds.testing.simulation.world import SimulationOptions, SimulationResult, simulate

pytestmark = pytest.mark.interop

# A table of version 2 with the group as partition.
_SEED = 26
_ALONE = SimulationOptions(_SEED, 8, actors=frozenset({PYICEBERG}), faults=0, tables=1)
_TOGETHER = SimulationOptions(
    _SEED,
    16,
    actors=frozenset({PYICEBERG, "append", "delete", "update", "compaction"}),
    at_once=4,
    tables=1,
)


@pytest.fixture(scope="module")
def readers() -> Iterator[FinalReaders]:
    with DuckDBReader() as duckdb:
        yield FinalReaders(duckdb)


def test_nothing_is_found_where_pyiceberg_writes_too(readers: FinalReaders) -> None:
    result = simulate(_TOGETHER, at_end=readers.compare)
    _check_sound(result, readers)
    assert _outcomes(result)[Outcome.DONE] > 2
    assert readers.read.keys() == {"PyIceberg", "DuckDB"}


@pytest.mark.skipif(not IS_NIGHTLY, reason="nightly")
def test_nothing_is_found_from_new_seeds_where_pyiceberg_writes_too(readers: FinalReaders) -> None:
    first = given_seed() or 0
    outcomes = Counter[Outcome]()
    for number in range(rounds("ICEBERGDS_SIMULATIONS", pull=0, nightly=4)):
        options = SimulationOptions(first + number, 100, guests=frozenset({PYICEBERG}))
        result = simulate(options, at_end=readers.compare)
        _check_sound(result, readers)
        outcomes += _outcomes(result)
    assert outcomes[Outcome.DONE] > 0


@pytest.mark.skipif(not IS_NIGHTLY, reason="nightly")
def test_others_read_what_simulations_leave(readers: FinalReaders) -> None:
    first, before = given_seed() or 0, readers.read.total()
    for number in range(rounds("ICEBERGDS_SIMULATIONS", pull=0, nightly=4)):
        result = simulate(SimulationOptions(first + number, 60, faults=0), at_end=readers.compare)
        _check_sound(result, readers)
    assert readers.read.total() > before


@pytest.mark.skipif(not IS_NIGHTLY, reason="nightly")
def test_nothing_is_found_on_s3(moto: MotoServer) -> None:
    moto.client("s3").create_bucket(Bucket="lake")
    options = SimulationOptions(
        given_seed() or 0,
        40,
        guests=frozenset({PYICEBERG}),
        storage="s3://lake/simulations",
        properties=moto.s3_properties,
    )
    with DuckDBReader() as duckdb:
        readers = FinalReaders(duckdb, moto.s3_properties)
        result = simulate(options, at_end=readers.compare)
    _check_sound(result, readers)
    assert result.commits > result.tables


def test_nothing_is_found_on_a_rest_catalog(rest: RestServer) -> None:
    first, steps = given_seed() or 1, 100 if IS_NIGHTLY else 15
    guests = frozenset({PYICEBERG} if IS_NIGHTLY else ())
    for number in range(rounds("ICEBERGDS_SIMULATIONS", pull=1, nightly=4)):
        properties = {"uri": rest.uri(rest.new_catalog())}
        options = SimulationOptions(
            first + number, steps, guests=guests, catalog="rest", properties=properties
        )
        result = simulate(options)
        assert [str(finding) for finding in result.findings] == []
        assert result.commits > result.tables


def test_the_same_seed_gives_the_same_run_with_pyiceberg() -> None:
    options = replace(_TOGETHER, steps=8, faults=0.5)
    one, other = (simulate_apart(options) for _ in range(2))
    assert one.trace == other.trace
    assert (one.calls, one.switches, one.faults) == (other.calls, other.switches, other.faults)
    assert _outcomes(one).total() > 0


def test_what_pyiceberg_does_not_support_is_refused() -> None:
    """It writes no table of version 3."""
    result = simulate(replace(_ALONE, seed=31, steps=4))
    assert result.findings == ()
    assert set(_outcomes(result)) <= {Outcome.REFUSED, Outcome.NOTHING}
    assert _outcomes(result)[Outcome.REFUSED] > 0


def test_pyiceberg_is_imported_only_if_it_is_asked_for() -> None:
    program = """
import sys
import icebergds.testing.simulate
assert "pyiceberg" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_an_actor_that_cannot_take_part_is_an_error() -> None:
    with pytest.raises(InvalidOptionError, match="type sql or rest, not 'filesystem'"):
        simulate(replace(_ALONE, catalog="filesystem"))
    with pytest.raises(InvalidOptionError, match="needs a storage that PyIceberg has"):
        simulate(replace(_ALONE, storage="memory"))
    with (
        mock.patch.dict(sys.modules, {"pyiceberg": None}),
        pytest.raises(InvalidOptionError, match="pip install 'pyiceberg"),
    ):
        simulate(_ALONE)


def test_the_command_has_pyiceberg_take_part(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--seed", str(_SEED), "--steps", "2", "--actor", "append", "--tables", "1"]
    assert command.main([*arguments, "--with", PYICEBERG, "--faults", "0", "--trace"]) == 0
    assert "(pyiceberg, " in capsys.readouterr().out
    options = SimulationOptions(1, guests=frozenset({PYICEBERG}))
    assert "--with pyiceberg" in command_of(options)


# What is broken on purpose is found.


def test_a_commit_of_pyiceberg_that_is_lost_is_found() -> None:
    def commit(catalog: Any, table: Any, requirements: Any, updates: Any) -> Any:
        staged = catalog._update_and_stage_table(
            catalog.load_table(table.name()), table.name(), requirements, updates
        )
        return mock.Mock(metadata=staged.metadata, metadata_location=staged.metadata_location)

    with mock.patch.object(SqlCatalog, "commit_table", commit):
        assert FindingKind.LOST_COMMIT in _found(_ALONE)


def test_rows_that_a_part_of_a_delete_of_pyiceberg_loses_are_found() -> None:
    with mock.patch.object(_StrictMetricsEvaluator, "eval", return_value=ROWS_MUST_MATCH):
        assert FindingKind.WRONG_ROWS in _found(replace(_ALONE, steps=20))


def test_a_refusal_after_a_commit_is_found() -> None:
    plain = SqlCatalog.commit_table

    def commit(*arguments: Any) -> Any:
        plain(*arguments)
        raise NotImplementedError("Writing V3 is not yet supported")

    with mock.patch.object(SqlCatalog, "commit_table", commit):
        assert FindingKind.COMMITTED_AFTER_FAILURE in _found(_ALONE)


def test_an_unknown_error_of_pyiceberg_is_found() -> None:
    with mock.patch.object(SqlCatalog, "commit_table", side_effect=KeyError("key")):
        assert FindingKind.UNEXPECTED_ERROR in _found(_ALONE)


def _found(options: SimulationOptions) -> set[FindingKind]:
    return {finding.kind for finding in simulate(options).findings}


def _outcomes(result: SimulationResult) -> Counter[Outcome]:
    """What became of PyIceberg's steps."""
    return Counter(
        {outcome: n for (actor, outcome), n in result.outcomes.items() if actor == PYICEBERG}
    )


def _check_sound(result: SimulationResult, readers: FinalReaders) -> None:
    assert [str(finding) for finding in result.findings] == [], result.options
    assert readers.problems == [], result.options
    assert FaultKind.OWN_CONFLICT not in result.faults or not _outcomes(result)
