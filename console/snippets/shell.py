"""curl, with a SAS token because a shell cannot sign requests, and the Azure CLI."""

import re
from typing import Final

from console.snippets.parts import UNSEEN, Query, Snippet, Target, entity_url, write_json, write_plain
from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.filters.writer import write
from storage.domain.values.edm import Edm, EdmValue


def write_curl(target: Target, entity: Entity) -> list[Snippet]:
    one = f'"{entity_url(target, entity.key)}?$TABLES_SAS"'
    body = f"  -H 'Content-Type: application/json' \\\n  --data-raw {quote_shell(write_json(entity))}\n"
    return [
        Snippet("Get Entity", f"curl {one} \\\n  -H 'Accept: application/json;odata=minimalmetadata'\n"),
        Snippet("Insert Entity", f'curl -X POST "{target.endpoint}/{target.table}?$TABLES_SAS" \\\n{body}'),
        Snippet("Merge Entity", f"curl -X MERGE {one} \\\n  -H 'If-Match: *' \\\n{body}"),
        Snippet("Delete Entity", f"curl -X DELETE {one} \\\n  -H 'If-Match: *'\n"),
    ]


def write_az(target: Target, entity: Entity) -> list[Snippet]:
    key = f"  --partition-key {quote_shell(entity.key.partition_key)} \\\n  --row-key {quote_shell(entity.key.row_key)}"
    pairs = [f"PartitionKey={entity.key.partition_key}", f"RowKey={entity.key.row_key}"]
    passed = {name: value for name, value in entity.properties.items() if not _cannot_pass(value)}
    left_out = [
        f"# {name} cannot be passed on a command line\n" for name in entity.properties if name not in passed
    ]
    for name, value in passed.items():
        text = value.value if isinstance(value.value, str) else write_plain(value)
        pairs.append(f"{name}={text}")
        if value.type is not Edm.STRING:
            pairs.append(f"{name}@odata.type={value.type.value}")
    whole = "  --entity " + " \\\n    ".join(map(quote_shell, pairs))

    def command(verb: str, rest: str) -> str:
        return (
            ("".join(left_out) if rest is whole else "")
            + f"# AZURE_STORAGE_CONNECTION_STRING holds the connection string\n"
            f"az storage entity {verb} --table-name {target.table} \\\n{rest}\n"
        )

    return [
        Snippet("Get Entity", command("show", key)),
        Snippet("Insert Entity", command("insert", whole)),
        Snippet("Merge Entity", command("merge", whole)),
        Snippet("Delete Entity", command("delete", key)),
    ]


_SENT: Final = "'Accept: application/json;odata=minimalmetadata'"


def write_curl_query(target: Target, query: Query) -> str:
    token = target.token or "$TABLES_SAS"
    options = [f"--data-urlencode {quote_shell('$select=' + ','.join(query.select))}"] if query.select else []
    if query.keys:
        urls = " \\\n".join(f'  "{entity_url(target, key)}?{token}"' for key in query.keys)
        many = " --parallel" if len(query.keys) > 1 else ""
        return f"curl --get{many} {' '.join([*options, f'-H {_SENT}'])} \\\n{urls}\n"
    if query.filter is not None:
        options.insert(0, f"--data-urlencode {quote_shell('$filter=' + write(query.filter))}")
    options.append(f"--data-urlencode {quote_shell(f'$top={query.top}')}")
    lines = [f'curl --get "{target.endpoint}/{target.table}()?{token}"', *options, f"-H {_SENT}"]
    return " \\\n  ".join(lines) + "\n"


def write_az_query(target: Target, query: Query) -> str:
    commands = [_az_show(target, query, key) for key in query.keys] or [_az_list(target, query)]
    if target.token:
        return "".join(commands)
    return "# AZURE_STORAGE_CONNECTION_STRING holds the connection string\n" + "".join(commands)


def _az_show(target: Target, query: Query, key: EntityKey) -> str:
    words = [f"--partition-key {quote_shell(key.partition_key)}", f"--row-key {quote_shell(key.row_key)}"]
    return _az(target, "show", words, query.select)


def _az_list(target: Target, query: Query) -> str:
    words = [f"--num-results {query.top}"]
    if query.filter is not None:
        words.insert(0, f"--filter {quote_shell(write(query.filter))}")
    return _az(target, "query", words, query.select)


def _az(target: Target, verb: str, words: list[str], select: tuple[str, ...]) -> str:
    if select:
        words.append(f"--select {' '.join(map(quote_shell, select))}")
    if target.token:
        words += [
            f"--account-name {target.account}",
            f"--table-endpoint {quote_shell(target.endpoint)}",
            f"--sas-token {quote_shell(target.token)}",
        ]
    return " \\\n  ".join([f"az storage entity {verb} --table-name {target.table}", *words]) + "\n"


def _cannot_pass(value: EdmValue) -> bool:
    return value.type is Edm.STRING and _NO_ARGUMENT.search(str(value.value)) is not None


_NO_ARGUMENT = re.compile("[\x00\ud800-\udfff]")


def quote_shell(text: str) -> str:
    """Quote a shell word; invisible characters are escaped for bash and zsh."""
    if UNSEEN.search(text) is None and text.isprintable():
        return "'" + text.replace("'", "'\\''") + "'"
    return "$'" + "".join(map(_escape_ansi, text)) + "'"


def _escape_ansi(character: str) -> str:
    if character in "\\'":
        return "\\" + character
    if character.isprintable() and UNSEEN.search(character) is None:
        return character
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
