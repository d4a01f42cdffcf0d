"""Tasks of maintenance as a Spark job."""

from __future__ import annotations

import os
import time

import pytest
from pyspark.sql import SparkSession

from icebergds.errors import InvalidDataError
from icebergds.operations.runner import TaskAttempt
from icebergds.spark.runner import SparkRunner


def test_each_item_is_a_task_and_results_keep_their_order(spark: SparkSession) -> None:
    def name(item: str, attempt: TaskAttempt) -> tuple[str, int, int]:
        time.sleep(0.1 if item == "a" else 0)
        return item.upper(), attempt.partition_id, attempt.attempt_id

    done = SparkRunner(spark).run(name, ["a", "b", "c"])
    assert [(text, number) for text, number, _ in done] == [("A", 0), ("B", 1), ("C", 2)]
    assert len({attempt for _, _, attempt in done}) == 3


def test_tasks_run_outside_of_this_process(spark: SparkSession) -> None:
    done = SparkRunner(spark).run(lambda item, attempt: os.getpid(), [1])
    assert done != [os.getpid()]


def test_an_error_of_ours_arrives_as_it_was_raised(spark: SparkSession) -> None:
    def fail(item: int, attempt: TaskAttempt) -> None:
        raise InvalidDataError(f"table t: {item} is wrong;\nremove it")

    with pytest.raises(InvalidDataError, match=r"^table t: 7 is wrong;\nremove it$"):
        SparkRunner(spark).run(fail, [7])


def test_items_are_made_one_after_the_other(spark: SparkSession) -> None:
    done = SparkRunner(spark).run(lambda item, attempt: item + 1, iter(range(3)))
    assert done == [1, 2, 3]


def test_nothing_runs_without_items(spark: SparkSession) -> None:
    assert SparkRunner(spark).run(lambda item, attempt: item, []) == []
