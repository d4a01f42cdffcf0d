"""Says what the Python API says in the words of the command line.

Errors name arguments of Python, options of Spark and methods, as most who read them write Python.
"""

from __future__ import annotations

import re

_NAMED = (
    "by|columns|depth|expire_older_than|identifier_fields|limit|location|max_bytes|max_seconds|"
    "older_than|retain_last|strategy|timestamp"
)
# Arguments whose options are called otherwise.
_RENAMED = {"identifier_fields": "identifier", "partition_spec": "partition", "sort_order": "sort"}

# Ways to name a catalog, which statements of SQL lack on the command line, too.
_OF_CATALOGS = (
    (
        r"give its properties, such as load_catalog\(.*?\) or option\(.*?\), or configure it for "
        r"all: spark\.icebergpy\.\S+ in a registered session, (?:the )?(environment.*?), or "
        r"\.pyiceberg\.yaml",
        r"give --warehouse DIRECTORY or --uri ADDRESS, or configure it by the \1 or "
        r".pyiceberg.yaml",
    ),
    (
        r"configure it in the registered session: spark\.conf\.set\(.*?\), or for a catalog of a "
        r"server also spark\.conf\.set\(.*?\)",
        "give --warehouse LOCATION, or for a catalog of a server --uri ADDRESS",
    ),
    (
        r"set its warehouse, such as spark\.icebergpy\.\S+ in a registered session, or "
        r"option\('catalog\.warehouse', '<directory>'\)",
        "give --warehouse DIRECTORY",
    ),
    (r", or spark\.icebergpy\.\S+ in a registered session", ""),
    (r"set option\('catalog', '([^']*)'\)(?: or catalog='<name>')?", r"give --catalog \1"),
    (r"\(option\('catalog', \.\.\.\)\)", "(--catalog)"),
    (r"set option\('catalog\.(uri|warehouse)', ('[^']*')\)", r"give --\1 \2"),
    (r"set option\('catalog\.type', \.\.\.\) to one of", "give --property type=, one of"),
    (r"; if the table was moved, map the locations in its metadata .* 'location-map'", ""),
    (
        r"(location_map=\{[^}]*\}) of load_table and load_catalog, or the option 'location-map' of "
        "a DataFrame",
        r"\1 of load_table in Python",
    ),
)
_OF_OPTIONS = (
    (r"options '(branch|tag)' and '(branch|tag)' contradict", r"--\1 and --\2 contradict"),
    (r"options 'snapshot-id' and '(branch|tag)' contradict", r"--snapshot and --\1 contradict"),
    (
        r"expected an age, such as timedelta\(days=7\), a datetime .*, or milliseconds since 1970",
        "expected an age, such as 7d or 12h, or a time, such as 2026-01-31T12:00:00Z",
    ),
    (r"\bdatetime\.timedelta\((\w+)=(-?[\d.]+)\)", r"\2 \1"),
    (r"\bsuch as timedelta\(days=7\)", "such as 7d"),
    (
        r"create it with create_namespace\('[^']*'\) or CREATE NAMESPACE",
        "create it with icebergds create namespace",
    ),
    (
        r"use the option 'branch'$",
        "use --branch",
    ),
    (
        r"is a metadata column, which the filter of a load does not support; filter the DataFrame",
        "is a metadata column, which --where does not support; select the rows with icebergds sql",
    ),
    (
        r"give the schema as icebergds\.Schema with the types of icebergds\.types",
        "create the table in Python, with icebergds.Schema",
    ),
    (
        r", or add it to the table by update_schema\(allow_incompatible_changes=True\)",
        "",
    ),
    (r"\. Only remove_orphan_files with a file_list takes a later time", ""),
    (
        r"^unknown option '([^']*)'(.*?) Options of \w+:",
        r"--option \1: it is unknown\2 There are",
    ),
    (
        r"set option 'create-branch' to 'true', or run ALTER TABLE .*? BRANCH",
        "run icebergds branch",
    ),
    (
        r"use replace_(?:branch|tag), in SQL CREATE OR REPLACE \w+",
        "give its new place and --replace",
    ),
    (
        r"set_current_snapshot makes any snapshot current",
        "icebergds branch TABLE main ID --replace makes any snapshot current",
    ),
    (r", to a branch with the option 'create-branch' = 'true'", ""),
    (r"list them with table\.snapshots\(\)", "icebergds snapshots lists them"),
    (
        r"which snapshots\(\) and the metadata table snapshots list",
        "which icebergds snapshots lists",
    ),
    (r"\(with_rows=False\)", "with --summary"),
    (r"\brepair=True\b", "--repair"),
    (r"^format_version = (\S+):", r"format version \1:"),
)
_ARGUMENT = re.compile(rf"^({_NAMED})(?: = |(?=: ))")
_DEFINITION = re.compile(r"^(partition_spec|sort_order) (?=')")


def catalog_words(text: str) -> str:
    """An error with the options of the command line for those that choose a catalog."""
    return _replaced(text, _OF_CATALOGS)


def own_words(text: str) -> str:
    """An error or an answer with all options of the command line."""
    text = _replaced(catalog_words(text), _OF_OPTIONS)
    for pattern in (_ARGUMENT, _DEFINITION):
        text = pattern.sub(_option, text)
    return text


def _option(found: re.Match[str]) -> str:
    option = _RENAMED.get(found[1], found[1]).replace("_", "-")
    return f"--{option}{' ' if found[0].endswith(' ') else ''}"


def _replaced(text: str, words: tuple[tuple[str, str], ...]) -> str:
    for pattern, replacement in words:
        text = re.sub(pattern, replacement, text)
    return text
