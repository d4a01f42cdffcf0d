"""Simulates concurrent writers of tables on storage and catalogs that fail, and audits the tables.

    python -m icebergds.testing.simulate --seed 7 --steps 500
    python -m icebergds.testing.simulate --minutes 10
    python -m icebergds.testing.simulate --seed 7 --steps 500 --shrink
    python -m icebergds.testing.simulate --kill --minutes 2

Everything is drawn from the seed: the same options give the same run. With --kill, processes, time
and deaths are real. The exit code is 1 if something was found, and 2 if the simulation cannot run.
docs/reliability.md says what is checked.
"""

from __future__ import annotations

import argparse
import logging
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from icebergds.errors import IcebergError
from icebergds.testing.simulation.findings import Finding
from icebergds.testing.simulation.killing import KillOptions, KillResult, run_killed
from icebergds.testing.simulation.places import LOCAL
from icebergds.testing.simulation.shrinking import command_of, shrink
from icebergds.testing.simulation.world import (
    ACTORS,
    GUESTS,
    SimulationOptions,
    SimulationResult,
    simulate,
)

_HASH_SEED = "PYTHONHASHSEED"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    given = _parser().parse_args(arguments)
    logging.disable(logging.CRITICAL)
    try:
        if given.kill:
            return _run_killed(given)
        options = _options(given)
        if given.minutes is not None:
            return _run_for(options, given.minutes * 60)
        return _run_once(options, given)
    except (IcebergError, ImportError) as error:
        print(f"the simulation cannot run: {error}", file=sys.stderr)
        return 2
    finally:
        logging.disable(logging.NOTSET)


def figures_of(results: Sequence[SimulationResult]) -> str:
    """The figures of simulations as text."""
    faults: Counter[str] = Counter()
    outcomes: Counter[str] = Counter()
    for result in results:
        faults.update({str(kind): count for kind, count in result.faults.items()})
        for (_, outcome), count in result.outcomes.items():
            outcomes[str(outcome)] += count
    seconds = sum(result.seconds for result in results)
    steps, calls = sum(r.steps for r in results), sum(r.calls for r in results)
    rate = 60 / seconds if seconds else 0
    return _lines(
        ("seeds", _listed([result.options.seed for result in results])),
        ("tables", f"{sum(result.tables for result in results):,}"),
        ("steps", f"{steps:,} ({steps * rate:,.0f} a minute): {_counts(outcomes)}"),
        ("calls", f"{calls:,} ({calls * rate:,.0f} a minute) of storage and catalog"),
        ("switches", f"{sum(r.switches for r in results):,} between processes"),
        ("commits", f"{sum(r.commits for r in results):,}"),
        ("snapshots", f"{sum(r.snapshots for r in results):,}"),
        ("read", f"{sum(r.reads for r in results):,} times the rows of a snapshot"),
        ("faults", f"{faults.total():,}: {_counts(faults)}"),
        ("kills", f"{sum(r.kills for r in results):,}"),
        ("findings", f"{sum(len(r.findings) for r in results):,}"),
    )


def figures_of_kills(result: KillResult) -> str:
    """The figures of processes that were killed as text."""
    outcomes = Counter({str(outcome): count for outcome, count in result.outcomes.items()})
    return _lines(
        ("seed", str(result.options.seed)),
        ("steps", f"{result.steps:,}: {_counts(outcomes)}"),
        ("snapshots", f"{result.snapshots:,}"),
        ("kills", f"{result.kills:,} in {result.seconds:,.0f} s"),
        ("findings", f"{len(result.findings):,}"),
    )


def _run_once(options: SimulationOptions, given: argparse.Namespace) -> int:
    result = simulate(options)
    if given.trace:
        print("\n".join(result.trace))
    print(figures_of([result]))
    if not result.findings:
        return 0
    _show(result)
    if given.shrink:
        smaller = shrink(options, progress=print)
        print("\n".join(smaller.trace))
        _show(smaller)
    return 1


def _run_for(options: SimulationOptions, seconds: float) -> int:
    """Simulates one seed after another, until the time is over or something is found."""
    started, results = time.monotonic(), list[SimulationResult]()
    while time.monotonic() - started < seconds:
        results.append(simulate(replace(options, seed=options.seed + len(results))))
        if results[-1].findings:
            break
    print(figures_of(results))
    _show(results[-1])
    return 1 if results[-1].findings else 0


def _run_killed(given: argparse.Namespace) -> int:
    options = KillOptions(
        _seed(given),
        (given.minutes or 1) * 60,
        given.at_once or 3,
        given.catalog,
        given.storage,
        dict(given.property),
    )
    result = run_killed(options)
    print(figures_of_kills(result))
    _show_findings(result.findings)
    return 1 if result.findings else 0


def _show(result: SimulationResult) -> None:
    _show_findings(result.findings)
    if result.findings:
        print(_lines(("again", command_of(result.options))))


def _show_findings(findings: Iterable[Finding]) -> None:
    for finding in findings:
        print(_lines(("found", str(finding))))


def _lines(*lines: tuple[str, str]) -> str:
    return "\n".join(f"{name:<10}{text}" for name, text in lines)


def _listed(seeds: Sequence[int]) -> str:
    return f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"


def _counts(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in sorted(counts.items())) or "none"


def _seed(given: argparse.Namespace) -> int:
    return random.SystemRandom().getrandbits(32) if given.seed is None else int(given.seed)


def _options(given: argparse.Namespace) -> SimulationOptions:
    return SimulationOptions(
        _seed(given),
        given.steps,
        None if given.only is None else _numbers(given.only),
        _numbers(given.without_faults),
        frozenset(given.actor) or None,
        frozenset(given.guests),
        given.faults,
        given.at_once,
        given.tables,
        given.catalog,
        given.storage,
        dict(given.property),
    )


def _at_least_one(text: str) -> int:
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"{text}: expected 1 or more")
    return number


def _numbers(text: str) -> frozenset[int]:
    return frozenset(int(number) for number in text.split(",") if number)


def _property(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"{text!r}: expected NAME=VALUE")
    return name, value


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m icebergds.testing.simulate", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add = parser.add_argument
    add("--seed", type=int, help="by default drawn, and shown")
    add("--steps", type=int, default=300, help="of a seed; 300 by default")
    add("--minutes", type=float, help="simulate one seed after another for so long")
    add("--catalog", default="sql", help="a type of catalogs; by default sql, with SQLite")
    add("--storage", default=LOCAL, help="local (default), memory, or a location such as s3://a/b")
    add(
        "--property",
        type=_property,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a property of the catalog or the storage; may be given again",
    )
    add(
        "--actor",
        action="append",
        default=[],
        choices=list(ACTORS),
        help="who takes part; may be given again",
    )
    add(
        "--with",
        dest="guests",
        action="append",
        default=[],
        choices=list(GUESTS),
        help="another library that takes part too; may be given again",
    )
    add("--faults", type=float, help="the part of the steps that have faults, from 0 to 1")
    add("--at-once", type=int, help="how many processes run at once")
    add("--tables", type=_at_least_one, help="how many tables there are")
    add("--only", help="the numbers of the steps to run, with commas")
    add("--without-faults", default="", help="the numbers of steps without faults, with commas")
    add("--shrink", action="store_true", help="find the fewest steps that have such a finding")
    add("--trace", action="store_true", help="print what each step did")
    add("--kill", action="store_true", help="kill real processes, for a minute or --minutes")
    return parser


if __name__ == "__main__":
    if os.environ.get(_HASH_SEED) is None:
        # The order of sets must be the same in each run.
        command = [sys.executable, "-m", "icebergds.testing.simulate", *sys.argv[1:]]
        os.execve(sys.executable, command, {**os.environ, _HASH_SEED: "0"})
    sys.exit(main())
