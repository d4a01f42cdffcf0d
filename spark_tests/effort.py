"""How hard the tests try: how many examples and rounds, and what their random choices start from.

`ICEBERGDS_PROFILE` chooses between two profiles:

- `pull`, the default: an eighth of the examples, a few rounds and a part of the cases, the same in
  every run; of the cases of a test that takes long, by `durations.json`, two or what two seconds
  are enough for;
- `nightly`: all examples, rounds and cases, different ones in every run.

`ICEBERGDS_SEED` sets where random choices start: it repeats a nightly run that failed, and gives
`pull` other examples than those of every run. Failing tests that choose at random print both.
"""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import HealthCheck, settings

_T = TypeVar("_T")

PROFILE = os.environ.get("ICEBERGDS_PROFILE", "pull")
IS_NIGHTLY = PROFILE == "nightly"
SECONDS: dict[str, float] = json.loads((Path(__file__).parent / "durations.json").read_text())
"""How long modules take, and one case of a test with several, if long (`.ci/durations.py`)."""

_SECONDS_OF_A_TEST = 2
_ON_OLDEST_SPARK = version("pyspark").startswith("4.1.")


def start() -> None:
    """Loads the profile; test processes that are started from here on have the same seed."""
    if PROFILE not in ("pull", "nightly"):
        raise ValueError(f"ICEBERGDS_PROFILE is {PROFILE!r}; expected pull or nightly")
    if IS_NIGHTLY:
        os.environ.setdefault("ICEBERGDS_SEED", str(random.SystemRandom().getrandbits(32)))
    # How long an example takes says more about the machine than about the code.
    settings.register_profile(
        PROFILE,
        max_examples=scaled(100),
        derandomize=given_seed() is None,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    settings.load_profile(PROFILE)


def given_seed() -> int | None:
    """What random choices start from; None if they are the same in every run."""
    given = os.environ.get("ICEBERGDS_SEED")
    return None if given is None else int(given)


def environment() -> str:
    """The variables that repeat this run's random choices."""
    variables = {"ICEBERGDS_PROFILE": PROFILE, "ICEBERGDS_SEED": given_seed()}
    return " ".join(f"{name}={value}" for name, value in variables.items() if value is not None)


def examples(full: int = 100, **more: Any) -> settings:
    """Settings of a property that takes `full` examples in the nightly profile, else an eighth."""
    return settings(max_examples=scaled(full), **more)


def rounds(variable: str, *, pull: int, nightly: int) -> int:
    """How often to repeat what depends on chance or timing; an environment variable overrides."""
    return int(os.environ.get(variable, nightly if IS_NIGHTLY else pull))


def some(items: Sequence[_T], pull: int) -> list[_T]:
    """All items in the nightly profile, else so many: the first, the last, and evenly between."""
    last = len(items) - 1
    if IS_NIGHTLY or last < pull:
        return list(items)
    return [items[round(at * last / (pull - 1))] for at in range(pull)]


def cases_of(test: str) -> int:
    """How many cases of a test run in the profile.

    Args:
        test: its id, as pytest shows it, without the case.
    """
    if _ON_OLDEST_SPARK and test.startswith("spark_tests/spark/"):
        # The newest Spark runs the others.
        return 2
    seconds = SECONDS.get(test)
    return sys.maxsize if seconds is None else max(2, round(_SECONDS_OF_A_TEST / seconds))


def scaled(full: int) -> int:
    """A number of examples, by the profile."""
    return full if IS_NIGHTLY else max(2, full // 8)
