"""Many processes commit to one table of each catalog that is a service of AWS."""

from __future__ import annotations

from pathlib import Path

from aws_concurrency import check_no_commit_is_lost
from moto_server import MotoServer


def test_glue_loses_no_commit(moto: MotoServer, tmp_path: Path) -> None:
    check_no_commit_is_lost(moto.properties("glue") | {"warehouse": str(tmp_path)})


def test_dynamodb_loses_no_commit(moto: MotoServer, tmp_path: Path) -> None:
    check_no_commit_is_lost(moto.properties("dynamodb") | {"warehouse": str(tmp_path)})


def test_s3_tables_loses_no_commit(moto: MotoServer) -> None:
    check_no_commit_is_lost(moto.s3_tables_properties(), deletes_files=False)
