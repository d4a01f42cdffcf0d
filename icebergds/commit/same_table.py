"""Checks that a name still belongs to the table that an operation is about."""

from __future__ import annotations

from icebergds.commit.operations import TableState
from icebergds.errors import ValidationError


def require_same_table(uuid: str | None, state: TableState) -> None:
    """Checks that a table was not dropped and re-created under its name.

    Args:
        uuid: of the table that the operation began with; None if it has none.

    Raises:
        ValidationError: the table has another UUID.
    """
    found = state.metadata.table_uuid
    if uuid is not None and found != uuid:
        raise ValidationError(
            f"table {state.name} was dropped and re-created during this operation: its UUID is "
            f"{found}, expected {uuid}; read the table again and repeat the operation"
        )
