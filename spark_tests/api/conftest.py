"""Puts helpers of the neighbouring suites on the path: strategies of values, DuckDB's reader."""

from __future__ import annotations

import sys
from pathlib import Path

for _folder in ("formats", "scan"):
    sys.path.append(str(Path(__file__).parents[1] / _folder))
