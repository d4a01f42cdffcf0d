#!/usr/bin/env bash
# In numpy 2.4, `np.unique` of a million different integers takes several times as long as in 2.2:
# it puts them into a hash table and sorts what is left, which pays only if few of them differ.
# Version 2.2 sorts them and drops repetitions.
#
# Options that return more than the values (`return_index`, ...) still have it sort.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cat > "$folder/compare.py" <<'PY'
from time import process_time

import numpy as np

values = np.random.default_rng(1).permutation(1_000_000)
few = values % 100


def sorted_distinct(numbers):
    ascending = np.sort(numbers)
    return ascending[np.append(True, ascending[1:] != ascending[:-1])]


def seconds(call, numbers):
    """The least CPU time of seven runs."""
    found = []
    for _ in range(7):
        started = process_time()
        call(numbers)
        found.append(process_time() - started)
    return min(found)


def ratio(numbers):
    assert (np.unique(numbers) == sorted_distinct(numbers)).all()
    times = seconds(np.unique, numbers) / seconds(sorted_distinct, numbers)
    return "more than 4 times as long" if times > 4 else "less than twice as long" if times < 2 else times


print(f"numpy {np.__version__}: all different {ratio(values)}, few different {ratio(few)}")
PY

for version in 2.2.6 2.4.6; do
    python3 -m venv "$folder/$version"
    "$folder/$version/bin/pip" install --quiet "numpy==$version"
    "$folder/$version/bin/python" "$folder/compare.py"
done | tee "$folder/seen"

diff "$folder/seen" - <<'SEEN'
numpy 2.2.6: all different less than twice as long, few different less than twice as long
numpy 2.4.6: all different more than 4 times as long, few different less than twice as long
SEEN
echo "as seen before"
