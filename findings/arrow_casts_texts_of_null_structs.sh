#!/usr/bin/env bash
# Arrow cannot cast a nullable struct with a field of text to one with a field of time, if a row has
# no struct at all: it parses the text that the missing struct does not have.
#
# A null text is cast to a null time. But where the struct itself is null, pyarrow stores an empty
# text in its child that is not null, and the cast of a struct looks at its children alone. Whoever
# parses nested JSON as texts first, and casts them to the table's types, fails at the first null
# struct; in a list, too. Children that are cast one by one, under the struct's own nulls, work.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pyarrow==26.0.1

"$folder/venv/bin/python" - <<'PY' | tee "$folder/seen"
import pyarrow as pa

texts, times = (pa.struct([("at", kind)]) for kind in (pa.string(), pa.timestamp("us")))


def told(rows, kind, wanted):
    try:
        return pa.array(rows, kind).cast(wanted).to_pylist()
    except pa.ArrowInvalid as error:
        return f"{type(error).__name__}: {error}"


print("pyarrow", pa.__version__)
print("null text:", told([{"at": None}], texts, times))
print("null struct:", told([None], texts, times))
print("in a list:", told([[None]], pa.list_(texts), pa.list_(times)))
column = pa.array([None], texts)
child = column.flatten()[0].cast(pa.timestamp("us"))
print("child alone:", pa.StructArray.from_arrays([child], ["at"], mask=column.is_null()).to_pylist())
PY

diff "$folder/seen" - <<'SEEN'
pyarrow 26.0.1
null text: [{'at': None}]
null struct: ArrowInvalid: Failed to parse string: '' as a scalar of type timestamp[us]
in a list: ArrowInvalid: Failed to parse string: '' as a scalar of type timestamp[us]
child alone: [None]
SEEN
