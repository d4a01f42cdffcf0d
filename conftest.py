"""Makes helpers in `spark_tests` importable from every test folder."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "spark_tests"))
