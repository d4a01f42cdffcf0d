#!/usr/bin/env bash
# Arrow writes the earliest timestamps of nanoseconds as text, also in CSV, and cannot read them
# again: the first incomplete second of their range is refused.
#
# 64 bits of nanoseconds begin at 1677-09-21 00:12:43.145224192. The parser seems to need the whole
# second 00:12:43 before it adds the fraction, and that is outside of the range.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pyarrow==26.0.1

"$folder/venv/bin/python" - <<'PY' | tee "$folder/seen"
import io

import pyarrow as pa
from pyarrow import csv

kind = pa.timestamp("ns")
print("pyarrow", pa.__version__)
for value in (-(2**63) + 1, -(2**63) + 1_000_000_000):
    times = pa.array([value], kind)
    text = times.cast(pa.string())[0].as_py()
    file = io.BytesIO()
    csv.write_csv(pa.table({"at": times}), file)
    for name, read in (
        ("cast", lambda: pa.array([text]).cast(kind)[0]),
        (
            "CSV",
            lambda: csv.read_csv(
                io.BytesIO(file.getvalue()),
                convert_options=csv.ConvertOptions(column_types={"at": kind}),
            )["at"][0],
        ),
    ):
        try:
            print(f"{name} of {text}: {'the same' if read().value == value else 'another'}")
        except pa.ArrowInvalid:
            print(f"{name} of {text}: refused")
PY

diff "$folder/seen" - <<'SEEN'
pyarrow 26.0.1
cast of 1677-09-21 00:12:43.145224193: refused
CSV of 1677-09-21 00:12:43.145224193: refused
cast of 1677-09-21 00:12:44.145224192: the same
CSV of 1677-09-21 00:12:44.145224192: the same
SEEN
