"""Shrinks a simulation that has found something to few steps and few faults (`shrink`)."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence
from dataclasses import replace
from multiprocessing.connection import Connection

from icebergds.testing.simulation.determinism import import_all
from icebergds.testing.simulation.places import LOCAL
from icebergds.testing.simulation.world import SimulationOptions, SimulationResult, simulate

_MOST_RUNS = 200


def shrink(
    options: SimulationOptions, progress: Callable[[str], object] = lambda _: None
) -> SimulationResult:
    """Leaves steps out, and then faults, as long as a finding of the same kind comes.

    What a step draws does not depend on other steps, so that those that are left do much the same.

    Args:
        progress: called with what was left out.

    Returns:
        The smallest simulation that was found, with its options; the given one if it finds nothing.
    """
    result = simulate_apart(options)
    if not result.findings:
        return result
    kind, runs = result.findings[0].kind, 0

    def smaller(tried: SimulationOptions) -> bool:
        nonlocal result, runs
        runs += 1
        found = simulate_apart(tried)
        if any(finding.kind is kind for finding in found.findings):
            result = found
            return True
        return False

    numbers = sorted(options.only or range(1, _last(result) + 1))
    chunk = max(1, len(numbers) // 2)
    while runs < _MOST_RUNS:
        before = len(numbers)
        for start in reversed(range(0, len(numbers), chunk)):
            fewer = numbers[:start] + numbers[start + chunk :]
            if fewer and runs < _MOST_RUNS and smaller(_with_steps(result, fewer)):
                numbers = fewer
        progress(f"{len(numbers)} steps after {runs} runs")
        if chunk == 1 and len(numbers) == before:
            break
        chunk = max(1, min(chunk // 2, len(numbers)))
    for number in numbers:
        calm = result.options.without_faults | {number}
        if runs < _MOST_RUNS:
            smaller(replace(result.options, without_faults=calm))
    for at_once in (1, 2, 3):
        if smaller(replace(result.options, at_once=at_once)):
            break
    return result


def command_of(options: SimulationOptions) -> str:
    """The command that runs a simulation again."""
    words = ["python -m icebergds.testing.simulate", f"--seed {options.seed}"]
    words.append(f"--steps {options.steps}")
    if options.catalog != "sql":
        words.append(f"--catalog {options.catalog}")
    if options.storage != LOCAL:
        words.append(f"--storage {options.storage}")
    words += [f"--actor '{actor}'" for actor in sorted(options.actors or ())]
    words += [f"--with {guest}" for guest in sorted(options.guests)]
    if options.only is not None:
        words.append(f"--only {_listed(options.only)}")
    if options.without_faults:
        words.append(f"--without-faults {_listed(options.without_faults)}")
    words += [] if options.faults is None else [f"--faults {options.faults}"]
    words += [] if options.at_once is None else [f"--at-once {options.at_once}"]
    words += [] if options.tables is None else [f"--tables {options.tables}"]
    return " ".join(words)


def _listed(numbers: frozenset[int]) -> str:
    return ",".join(map(str, sorted(numbers)))


def _last(result: SimulationResult) -> int:
    """The last step that matters: what was found was found then."""
    return min(result.options.steps, max(finding.step for finding in result.findings) + 20)


def _with_steps(result: SimulationResult, numbers: Sequence[int]) -> SimulationOptions:
    return replace(result.options, only=frozenset(numbers))


def simulate_apart(options: SimulationOptions) -> SimulationResult:
    """Runs a simulation in a process of its own, so that earlier ones in this one do not matter."""
    import_all()
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_send, args=(options, theirs))
    process.start()
    theirs.close()
    try:
        result: SimulationResult = ours.recv()
    finally:
        process.join()
    return result


def _send(options: SimulationOptions, connection: Connection) -> None:
    connection.send(simulate(options))
