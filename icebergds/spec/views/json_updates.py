"""Writes view updates as JSON (REST catalog specification: `ViewUpdate`)."""

from __future__ import annotations

from typing import Any

from icebergds.spec.json.updates import update_to_json
from icebergds.spec.views.json import view_version_to_json
from icebergds.spec.views.updates import AddViewVersion, SetCurrentViewVersion, ViewUpdate


def view_update_to_json(update: ViewUpdate) -> dict[str, Any]:
    """The JSON object of a view update."""
    match update:
        case AddViewVersion(view_version=version):
            return {"action": "add-view-version", "view-version": view_version_to_json(version)}
        case SetCurrentViewVersion(view_version_id=version_id):
            return {"action": "set-current-view-version", "view-version-id": version_id}
        case _:
            return update_to_json(update)
