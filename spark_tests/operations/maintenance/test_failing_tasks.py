"""Files of tasks that fail, or end after another has failed, are deleted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from actions import CATALOGS, Places, act

from icebergds.api import rewrite, table_maintenance
from icebergds.errors import StorageError
from icebergds.operations.runner import LocalRunner, TaskAttempt


class _FailingRunner:
    """Of the tasks the last fails; that it does is known before the others have ended."""

    def run(
        self,
        task: Callable[[Any, TaskAttempt], Any],
        items: Sequence[Any],
        discard: Callable[[], int] | None = None,
    ) -> list[Any]:
        assert discard is not None
        assert discard() == 0
        LocalRunner().run(task, items)
        assert discard() > 0
        assert discard() == 0
        raise StorageError("the last task failed")


@pytest.mark.parametrize("kind", CATALOGS)
@pytest.mark.parametrize("action", ["binpack", "convert", "position deletes"])
def test_files_of_tasks_that_end_late_are_deleted(
    places: Places, monkeypatch: pytest.MonkeyPatch, kind: str, action: str
) -> None:
    place = places(action, kind)
    for module in (rewrite, table_maintenance):
        monkeypatch.setattr(module, "task_runner", lambda _: _FailingRunner())
    with pytest.raises(StorageError, match=r"the last task failed.*nothing was committed"):
        act(place.table, action)
    assert place.files_now() == place.files
    assert place.table.metadata_location == place.metadata_location
