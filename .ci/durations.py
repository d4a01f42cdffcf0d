#!/usr/bin/env python3
"""Writes how long tests take to `spark_tests/durations.json`, by which work is divided.

PYTEST_ADDOPTS="-vv --durations=0" make test | tee test.log
.ci/durations.py test.log
"""

from __future__ import annotations

import json
import re
import sys
from collections import defaultdict
from pathlib import Path

_LINE = re.compile(r"^([\d.]+)s (call|setup|teardown)\s+((\S+?\.py)::[^\[\n]+)", re.MULTILINE)
_KEPT = Path(__file__).parent.parent / "spark_tests/durations.json"


def main(log: str) -> None:
    modules: dict[str, float] = defaultdict(float)
    cases: dict[str, list[float]] = defaultdict(list)
    for seconds, phase, test, module in _LINE.findall(Path(log).read_text(errors="replace")):
        modules[module] += float(seconds)
        if phase == "call":
            cases[test.strip()].append(float(seconds))
    kept = {name: round(total) for name, total in modules.items() if total >= 10}
    kept |= {
        name: round(sum(found) / len(found), 1)
        for name, found in cases.items()
        if sum(found) >= 2 and len(found) > 1
    }
    # What only the nightly profile runs stays as it was measured there.
    kept = json.loads(_KEPT.read_text()) | kept
    _KEPT.write_text(json.dumps(kept, indent=0, sort_keys=True) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
