"""What users need is imported from the package itself."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import icebergds
import icebergds.types
from icebergds import errors
from icebergds.errors import InvalidOptionError
from icebergds.spec import transforms, types as spec_types
from icebergds.spec.types import TypeId


def _classes(module: object, name: str) -> set[str]:
    return {
        found
        for found, member in inspect.getmembers(module, inspect.isclass)
        if member.__module__ == name
    }


def test_everything_exported_is_there() -> None:
    for name in icebergds.__all__:
        assert getattr(icebergds, name).__name__ == name
    assert set(icebergds.__all__) == set(icebergds._HOMES)
    assert dir(icebergds) == sorted(icebergds.__all__)


def test_checkers_of_types_see_every_name() -> None:
    tree = ast.parse(Path(icebergds.__file__).read_text())
    (guarded,) = (node for node in tree.body if isinstance(node, ast.If))
    imports = [node for node in guarded.body if isinstance(node, ast.ImportFrom)]
    seen = {alias.name: node.module for node in imports for alias in node.names}
    assert seen == icebergds._HOMES


def test_every_error_is_exported() -> None:
    assert _classes(errors, "icebergds.errors") - set(icebergds.__all__) == set()


def test_every_transform_is_exported() -> None:
    # Of tables that a later version has written.
    own = {"UnknownTransform"}
    found = _classes(transforms, "icebergds.spec.transforms")
    assert found - own - set(icebergds.__all__) == set()


def test_every_type_is_exported() -> None:
    classes = {name for name in _classes(spec_types, "icebergds.spec.types") if "Type" in name}
    assert classes - {"TypeId"} <= set(icebergds.types.__all__) <= set(icebergds.__all__)


def test_types_are_exported_under_one_name_each() -> None:
    found = {
        getattr(icebergds.types, name)().type_id
        for name in icebergds.types.__all__
        if not inspect.isclass(getattr(icebergds.types, name))
    }
    parametric = {TypeId.DECIMAL, TypeId.FIXED, TypeId.GEOMETRY, TypeId.GEOGRAPHY}
    assert found == set(TypeId) - parametric
    assert icebergds.LongType() == spec_types.LONG


@pytest.mark.parametrize("name", icebergds.__all__)
def test_methods_are_found_where_they_are_written(name: str) -> None:
    exported = getattr(icebergds, name)
    for member, method in inspect.getmembers(exported, inspect.isfunction):
        if not member.startswith("_"):
            owner = next(base for base in exported.__mro__ if member in vars(base))
            assert method.__module__ == owner.__module__
            assert method.__qualname__.startswith(f"{owner.__qualname__}.")


def test_names_that_need_spark_are_imported_with_it() -> None:
    from icebergds import MergeBuilder, RowCounts, TableScan

    assert MergeBuilder.execute
    assert RowCounts().deleted == 0
    assert TableScan.to_arrow


def test_an_older_pyspark_is_told_apart_from_a_fault_of_ours() -> None:
    program = (
        "import icebergds\n"
        "from pyspark.sql.pandas import functions\n"
        "del functions.arrow_udf  # as in PySpark 4.0\n"
        "icebergds.register\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "ImportError: icebergds.register needs PySpark 4.1 or later" in done.stderr
    assert "arrow_udf" in done.stderr


def test_importing_the_package_imports_its_version_alone() -> None:
    program = "import icebergds, sys; print([m for m in sys.modules if m.startswith('icebergds.')])"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "['icebergds.version']"


def test_the_public_types_import_neither_arrow_nor_spark() -> None:
    program = "import icebergds.types, sys; print({'pyarrow', 'pyspark'} & sys.modules.keys())"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "set()"


@pytest.mark.parametrize("given", ["long", icebergds.LongType, None])
def test_a_field_needs_a_type(given: object) -> None:
    with pytest.raises(InvalidOptionError, match=r"field 'id': .* expected a type, such as LongTy"):
        icebergds.NestedField(1, "id", given)  # type: ignore[arg-type]


def test_a_schema_takes_a_list_of_fields() -> None:
    field = icebergds.NestedField(1, "id", icebergds.LongType())
    assert icebergds.Schema([field]) == icebergds.Schema((field,))  # type: ignore[arg-type]


def test_a_schema_refuses_fields_that_are_not_in_a_list() -> None:
    field = icebergds.NestedField(1, "id", icebergds.LongType())
    with pytest.raises(InvalidOptionError, match=r"Schema\(\[NestedField\(...\), ...\]\)"):
        icebergds.Schema(field, field)  # type: ignore[arg-type]
    with pytest.raises(InvalidOptionError, match="the fields of a schema"):
        icebergds.Schema(["id"])  # type: ignore[list-item, arg-type]
