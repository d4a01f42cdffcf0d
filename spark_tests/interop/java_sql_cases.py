"""The scripts for the statements of Java Iceberg's own tests, of all kinds."""

from __future__ import annotations

import java_definition_cases
import java_merge_cases
import java_procedure_cases
import java_read_cases
import java_row_cases
import java_type_cases
import java_view_cases
from sql_cases import SqlCase

_KINDS = (
    java_definition_cases,
    java_row_cases,
    java_merge_cases,
    java_read_cases,
    java_type_cases,
    java_procedure_cases,
    java_view_cases,
)

JAVA_CASES: dict[str, SqlCase] = {
    name: case for kind in _KINDS for name, case in kind.CASES.items()
}
"""Names of cases are those of namespaces."""
