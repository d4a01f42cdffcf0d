"""Common mistakes are told in full: what is wrong, what was expected, what to do."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_line import Command

from icebergds import Catalog
from icebergds.cli.main import main

_NO_FILE = "no metadata file (v<N>.metadata.json or <N>-<uuid>.metadata.json) in"
_SAID = {
    # What is named does not exist.
    "count db.event": f"table lake.db.event: {_NO_FILE} LAKE/db/event/metadata; "
    "did you mean db.events?",
    "count nolake.db.events": f"table lake.nolake.db.events: {_NO_FILE} "
    "LAKE/nolake/db/events/metadata; there is no namespace nolake.db; no catalog nolake is "
    "configured (there are: lake), so this is a name in the default catalog",
    "count /nowhere/t": f"table /nowhere/t: {_NO_FILE} /nowhere/t/metadata; give the table's root "
    "directory, a metadata file, or a catalog and an identifier (--catalog)",
    "list dbs": "catalog lake has no namespace dbs: LAKE/dbs is not a directory, or is a table; "
    "did you mean db?",
    "health db.evens": f"table lake.db.evens: {_NO_FILE} LAKE/db/evens/metadata; did you mean "
    "db.events?; nor is db.evens a namespace or a catalog",
    "list --catalog nope": "catalog nope is not configured (configured are lake); give "
    "--warehouse DIRECTORY or --uri ADDRESS, or configure it by the environment variable "
    "PYICEBERG_CATALOG__NOPE__WAREHOUSE or .pyiceberg.yaml; catalogs other than of directories "
    "have a uri",
    "list --catalog c -p type=filesystem": "catalog c is a file system catalog and needs a "
    "warehouse: give --warehouse '<directory of the warehouse>'",
    "list --catalog c -p type=sql": "catalog c is an SQL catalog and needs a database: give "
    "--uri 'postgresql://user:password@host/database' or 'sqlite:////path/to/catalog.db'",
    "list --catalog c --uri x://h": "catalog c: its type cannot be inferred from the scheme 'x' of "
    "its uri; give --property type=, one of dynamodb, filesystem, glue, hadoop, hive, jdbc, rest, "
    "s3tables, sql",
    "list --catalog c --uri sqlite:////nowhere/c.db": "catalog c: its database "
    "sqlite:////nowhere/c.db cannot be used for a catalog: unable to open database file",
    "list --catalog c --uri thrift://127.0.0.1:9": "catalog c: its Hive Metastore cannot be "
    "reached (127.0.0.1:9: Connection refused); check that one runs there, and the catalog's uri",
    "scan db.events --snapshot 42": "table lake.db.events: snapshot 42 does not exist; the table "
    "has 2, newest ID",
    "scan db.events --branch nope": "table lake.db.events: no branch 'nope'; it has audit, main",
    "append db.events rows.csv --branch nope -y": "table lake.db.events has no branch 'nope', but "
    "audit, main; to create it from the head of main, run icebergds branch",
    "rollback db.events --snapshot 42 -y": "table lake.db.events: there is no snapshot 42; the "
    "table has 2, which icebergds snapshots lists",
    "expire db.events --snapshot 42": "table lake.db.events: snapshot 42 cannot be expired: the "
    "table does not have it (it has 2 snapshots); icebergds snapshots lists them",
    "tag db.events v1 --keep-days -1 -y": "--keep-days -1: expected a number above 0",
    "tag db.events v1 --keep-days inf -y": "--keep-days inf: expected a number above 0",
    "diff @v1 @": "@v1: expected a table before the @, such as db.t@v1",
    "diff db.events@v2 @": "table lake.db.events has no branch or tag 'v2'; there are main, audit",
    "register db.x /nowhere/v1.metadata.json -y": "table lake.db.x cannot be registered: there is "
    "no metadata file /nowhere/v1.metadata.json",
    # Columns and conditions.
    "count db.events --where 'idd > 1'": "column idd does not exist: did you mean id?",
    "count db.events --where 'id >'": "filter 'id >' is not a condition of Spark SQL, at or before "
    ">; write one condition, such as \"id > 5 AND name LIKE 'a%'\"",
    "scan db.events --columns ids": "no column 'ids'; did you mean id? The columns are: id, name, "
    "day, _file, _pos, _spec_id, _partition, _deleted",
    "diff db.events@audit @ --by ids": "--by 'ids': not a column that both sides have, with one "
    "type; did you mean 'id'?",
    "create table db.new 'id int' --partition 'days(id)' -y": "--partition 'days(id)': day does "
    "not apply to column 'id' of type int",
    "create table db.new 'id integr' -y": "schema 'id integr': column 'id' has the type integr: "
    "did you mean integer?",
    "create table db.new 'id int' --identifier x -y": "--identifier: column x does not exist: "
    "there are id",
    # Options.
    "scan db.events --branch main --tag v1": "--branch and --tag contradict each other: each "
    "chooses a snapshot; give one of them",
    "scan db.events --limit -1": "--limit -1: expected an integer of at least 0",
    "scan db.events --format csv --out nowhere/x": "--out nowhere/x: expected a file in a "
    "directory that exists",
    "verify db.events --depth all": "--depth 'all': expected one of metadata, footers, rows",
    "expire db.events --older-than 7x": "--older-than '7x': expected an age, such as 7d or 12h, or "
    "a time, such as TIME",
    "orphans db.events --older-than 1h": "--older-than 3600 seconds is less than 24 hours ago: "
    "files of writes that are still under way would be removed, and their commits would leave a "
    "table that cannot be read; give a time before TIME, or an age of at least a day",
    "orphans db.events --option a=1": "--option a: it is unknown. There are stream-results, "
    "other-tables, wrong-counts",
    "compact db.events --option a=1": "--where and --option are of the action itself: give "
    "--apply, or leave them out",
    "maintain db.events --max-seconds 0": "--max-seconds 0.0: expected a number of seconds above 0",
    "set db.events a -y": "property 'a': expected KEY=VALUE",
    "upgrade db.events 9 -y": "format version 9: expected 1, 2 or 3",
    # What is there already, and what is not confirmed.
    "create table db.events 'id int' -y": "table lake.db.events already exists at LAKE/db/events",
    "branch db.events audit -y": "table lake.db.events: branch 'audit' exists already, at snapshot "
    "ID; to move it, give its new place and --replace",
    "drop table db.events": "drop table db.events of catalog lake, and keep its files: nothing was "
    "changed, as nobody can be asked here; give --yes to do it",
    "drop namespace db -y": "catalog lake: namespace db is not empty: LAKE/db contains events; "
    "files of dropped tables count, too",
    # Files.
    "append db.events rows.txt -y": "file rows.txt: expected a name that ends in .parquet, .csv, "
    ".tsv, .json, .jsonl, .ndjson; rename it",
    "append db.events text.parquet -y": "file text.parquet cannot be read: Parquet file size is 2 "
    "bytes, smaller than the minimum file footer (8 bytes)",
    "append db.events cut.json -y": "file cut.json cannot be read: line 3 is not JSON: Expecting "
    "',' delimiter in column 1; the value began in line 2",
    "append db.events twice.json -y": "file twice.json cannot be read: line 1: an object of JSON "
    "has 'id' twice; leave one of them out, or rename it",
    "append db.events twice.csv -y": "file twice.csv cannot be read: the file has 'id' twice; "
    "leave one of them out, or rename it",
    "append db.events twice.parquet -y": "column 'id' of table lake.db.events is given twice, as "
    "'id' and 'id'; rename or drop one",
    "append db.events day.csv -y": "file day.csv cannot be read: column day, date: invalid value "
    "'x'",
    "append db.events utf16.json -y": "file utf16.json cannot be read: byte 0 is not UTF-8, of "
    "which JSON is; save the file as UTF-8",
    "append db.events others.csv -y": "file others.csv cannot be read: the table has no column "
    "'ids'; did you mean id?",
}
_SAID |= {
    # Locations, names that are given twice, words of Python.
    "drop table /data/db/t -y": "/data/db/t is a location; this needs a name in a catalog, such as "
    "db.events",
    "set db.events a=1 a=2 -y": "property a is given twice; give it once",
    "set nosuch a=1 --namespace -y --catalog s --uri sqlite:///s.db": "catalog s has no namespace "
    "nosuch; create it with icebergds create namespace",
    "create table db.u 'u uuid' -y": "schema 'u uuid': column 'u' has the type uuid: a schema as "
    "text does not take this type; create the table in Python, with icebergds.Schema",
    "create namespace db.events.inner.most -y": "namespace lake.db.events.inner.most cannot be "
    "created: lake.db.events is a table, not a namespace; to write to a branch of that table, use "
    "--branch",
    "fleet maintain --check": "--check: give the policy to check with --policy FILE",
    "append db.events folder.csv -y": "Invalid value for 'FILE': file 'folder.csv' is a directory; "
    "see icebergds append --help",
}
_USAGE = {
    "scn db.events": "No such command 'scn'. Did you mean 'scan'? See icebergds --help",
    "fleet nosuch": "No such command 'nosuch'; see icebergds fleet --help",
    "scan": "Missing argument 'TABLE'; see icebergds scan --help",
    "scan db.events --nope": "No such option: --nope (Possible options: --property); see "
    "icebergds scan --help",
    "append db.events nofile.csv": "Invalid value for 'FILE': file 'nofile.csv' does not exist; "
    "see icebergds append --help",
}


@pytest.fixture
def files(lake: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of files that cannot be appended, and a branch `audit` of the table."""
    lake.load_table("db.events").manage_snapshots().create_branch("audit").commit()
    monkeypatch.chdir(tmp_path)
    texts = {
        "rows.txt": "1",
        "rows.csv": "id\n1\n",
        "text.parquet": "no",
        "cut.json": '{"id": 1}\n{"id": 2\n{"id": 3}\n',
        "twice.json": '{"id": 1, "id": 2}',
        "twice.csv": "id,id\n1,2\n",
        "others.csv": "ids\n1\n",
        "day.csv": "id,day\n1,2024-01-31\n2,x\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "utf16.json").write_bytes('{"id": 1}'.encode("utf-16"))
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["id", "id"])
    pq.write_table(twice, tmp_path / "twice.parquet")
    return tmp_path


@pytest.mark.parametrize("words", [*_SAID, *_USAGE])
def test_a_mistake_is_told_on_one_line_and_as_json(
    files: Path,
    lake: Catalog,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: str,
) -> None:
    def run(*more: str) -> tuple[str, str]:
        monkeypatch.setattr(sys, "argv", ["icebergds", *shlex.split(words), *more])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 2
        printed = capsys.readouterr()
        return _settled(printed.out, lake), _settled(printed.err, lake)

    told = _SAID.get(words) or _USAGE[words]
    assert run() == ("", f"error: {told}\n")
    out, err = run("--json")
    assert err == ""
    assert out.count("\n") == 1
    message = json.loads(out)["error"]["message"]
    assert message == told.partition("; see icebergds")[0].partition(" See icebergds")[0]


@pytest.mark.parametrize(
    "words", ["list {}", "health {}", "create namespace {} -y", "drop table {} -y"]
)
def test_a_misspelt_catalog_is_told_by_its_name_where_there_is_no_default(
    lake: Catalog, icebergds: Command, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    monkeypatch.delenv("PYICEBERG_DEFAULT_CATALOG")
    ran = icebergds(*words.format("lke.db.events").split())
    assert (ran.status, ran.out) == (2, "")
    assert ran.err == (
        "error: lke.db.events begins with no configured catalog (there are: lake; did you mean "
        "lake?; give --warehouse LOCATION, or for a catalog of a server --uri ADDRESS)\n"
    )


def _settled(text: str, lake: Catalog) -> str:
    """The text without what differs from run to run."""
    text = text.replace(lake.properties["warehouse"], "LAKE")
    text = re.sub(r"\b\d{15,19}\b", "ID", text)
    return re.sub(r"\b\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME", text)
