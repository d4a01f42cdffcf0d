"""Registers sessions that set `spark.icebergpy.register`, without a call.

Every Python process imports this at its start (`icebergds.pth`), Spark's workers too, so it imports
nothing before a program imports the sessions of classic PySpark.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    # Importing these would take longer than everything else here.
    from collections.abc import Callable
    from typing import Any

_SESSIONS = "pyspark.sql.session"
_SETTING = "spark.icebergpy.register"


class _Waiting:
    """Finds the module of the sessions before Python's own finders do."""

    @staticmethod
    def find_spec(name: str, *_: Any) -> Any:
        if name != _SESSIONS:
            return None
        sys.meta_path.remove(_Waiting)
        from importlib.util import find_spec

        spec = find_spec(name)
        loader: Any = None if spec is None else spec.loader
        if loader is not None:
            loader.exec_module = _registering(loader.exec_module)
        return spec


def _registering(execute: Callable[[Any], None]) -> Callable[[Any], None]:
    def executed(module: Any) -> None:
        from functools import wraps

        execute(module)
        if module.__name__ != _SESSIONS:
            # One loader may load many modules, such as those of a zip file in Spark's workers.
            return
        begin = module.SparkSession.__init__

        @wraps(begin)
        def begun(self: Any, *args: Any, **kwargs: Any) -> None:
            begin(self, *args, **kwargs)
            if self._jsparkSession.conf().get(_SETTING, "false") == "true":
                _register(self)

        module.SparkSession.__init__ = begun

    return executed


def _register(spark: Any) -> None:
    from icebergds import register
    from icebergds.spark.registered import registered

    # Copies of a registered session, and further objects for it, are registered already.
    if registered(spark) is None:
        register(spark, sql=True)


sys.meta_path.insert(0, _Waiting)
