"""icebergds errors in what Spark says of a failed task."""

from __future__ import annotations

import pytest
from pyspark.errors import PythonException

from icebergds.errors import CorruptFileError, InvalidDataError
from icebergds.spark.errors import printed_error
from icebergds.spark.scan import count_rows

LINES = (
    "column 'id' of row 7:\n  is 'x'\n\n\texpected long\nat least (once) in two files\nat rows(3)"
)
TRACEBACK = f"""Traceback (most recent call last):
  File "/app/icebergds/write/task.py", line 206, in write
    raise InvalidDataError(message)
icebergds.errors.InvalidDataError: {LINES}
"""
FRAMES = """
	at org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(\
PythonRunner.scala:572)
	at org.apache.spark.sql.execution.python.PythonArrowOutput$$anon$1.<init>(Output.scala:118)
	at java.base/jdk.internal.reflect.DirectMethodHandleAccessor.invoke(Unknown Source)
	at java.base/java.lang.Thread.run(Thread.java:840)
"""
ABORTED = (
    "Job aborted due to stage failure: Task 0 in stage 3.0 failed 1 times, most recent failure: "
    "Lost task 0.0 in stage 3.0 (TID 5) (host executor driver): "
    f"org.apache.spark.api.python.PythonException: {TRACEBACK}{FRAMES}"
)
TEXTS = {
    "bare": f"An exception was thrown from the Python worker:\n{TRACEBACK.strip()}",
    "frames": f"An exception was thrown from the Python worker.\n{TRACEBACK}{FRAMES}",
    "driver": f"{ABORTED}\nDriver stacktrace:",
    "jvm": f"{TRACEBACK}\n\nJVM stacktrace:\norg.apache.spark.SparkException: Job aborted",
    "no frames": "[PYTHON_DATA_SOURCE_ERROR] Failed to create Python data source instance: "
    f"icebergds.errors.InvalidDataError: {LINES}\n SQLSTATE: 38000",
    "cause": f"{ABORTED}\nDriver stacktrace:{FRAMES}Caused by: "
    f"org.apache.spark.api.python.PythonException: {TRACEBACK}{FRAMES}\t... 1 more\n",
    "state": f"[PYTHON_DATA_SOURCE_ERROR] Failed to plan: {TRACEBACK} SQLSTATE: 38000",
    "state in the line": f"[PYTHON_DATA_SOURCE_ERROR] {TRACEBACK.strip()} SQLSTATE: 38000",
    "shown in another": f"{TRACEBACK}\nThe above exception was the direct cause of the following "
    'exception:\n\nTraceback (most recent call last):\n  File "w.py", line 1\nSystemExit: 1\n',
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_the_message_has_all_its_lines_and_no_others(text: str) -> None:
    found = printed_error(text)
    assert isinstance(found, InvalidDataError)
    assert str(found) == LINES


def test_a_count_raises_what_its_tasks_raised() -> None:
    class Frame:
        def count(self) -> int:
            raise PythonException(TEXTS["driver"])

    with pytest.raises(InvalidDataError) as raised:
        count_rows(Frame())  # type: ignore[arg-type]
    assert str(raised.value) == LINES


def test_of_several_errors_the_last_is_meant() -> None:
    last = "icebergds.errors.CorruptFileError: a.parquet is damaged:\nno footer"
    found = printed_error(f"{TRACEBACK}\nDuring handling of the above exception, another\n{last}")
    assert isinstance(found, CorruptFileError)
    assert str(found) == "a.parquet is damaged:\nno footer"


@pytest.mark.parametrize(
    "text",
    [
        "Traceback (most recent call last):\nValueError: x",
        "icebergds.errors.NoSuchError: x",
        "icebergds.errors.annotations: x",
        "the class icebergds.errors.InvalidDataError: in a sentence",
    ],
)
def test_other_texts_have_no_error_of_ours(text: str) -> None:
    assert printed_error(text) is None
