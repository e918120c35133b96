"""curl, with a shared access signature since a shell cannot sign, and the Azure CLI."""

import re
from typing import Final

from console.snippets.parts import UNSEEN, Place, Query, Snippet, address, document, plain
from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.filters import write
from storage.domain.values.edm import Edm, EdmValue


def write_curl(place: Place, entity: Entity) -> list[Snippet]:
    one = f'"{address(place, entity.key)}?$TABLES_SAS"'
    body = f"  -H 'Content-Type: application/json' \\\n  --data-raw {in_shell(document(entity))}\n"
    return [
        Snippet("Get Entity", f"curl {one} \\\n  -H 'Accept: application/json;odata=minimalmetadata'\n"),
        Snippet("Insert Entity", f'curl -X POST "{place.endpoint}/{place.table}?$TABLES_SAS" \\\n{body}'),
        Snippet("Merge Entity", f"curl -X MERGE {one} \\\n  -H 'If-Match: *' \\\n{body}"),
        Snippet("Delete Entity", f"curl -X DELETE {one} \\\n  -H 'If-Match: *'\n"),
    ]


def write_az(place: Place, entity: Entity) -> list[Snippet]:
    key = f"  --partition-key {in_shell(entity.key.partition_key)} \\\n  --row-key {in_shell(entity.key.row_key)}"
    pairs = [f"PartitionKey={entity.key.partition_key}", f"RowKey={entity.key.row_key}"]
    passed = {name: value for name, value in entity.properties.items() if not _is_beyond_shell(value)}
    left_out = [
        f"# {name} cannot be passed on a command line\n" for name in entity.properties if name not in passed
    ]
    for name, value in passed.items():
        text = value.value if isinstance(value.value, str) else plain(value)
        pairs.append(f"{name}={text}")
        if value.type is not Edm.STRING:
            pairs.append(f"{name}@odata.type={value.type.value}")
    whole = "  --entity " + " \\\n    ".join(map(in_shell, pairs))

    def command(verb: str, rest: str) -> str:
        return (
            ("".join(left_out) if rest is whole else "")
            + f"# AZURE_STORAGE_CONNECTION_STRING holds the connection string\n"
            f"az storage entity {verb} --table-name {place.table} \\\n{rest}\n"
        )

    return [
        Snippet("Get Entity", command("show", key)),
        Snippet("Insert Entity", command("insert", whole)),
        Snippet("Merge Entity", command("merge", whole)),
        Snippet("Delete Entity", command("delete", key)),
    ]


_SENT: Final = "'Accept: application/json;odata=minimalmetadata'"


def write_curl_query(place: Place, query: Query) -> str:
    token = place.token or "$TABLES_SAS"
    options = [f"--data-urlencode {in_shell('$select=' + ','.join(query.select))}"] if query.select else []
    if query.keys:
        urls = " \\\n".join(f'  "{address(place, key)}?{token}"' for key in query.keys)
        many = " --parallel" if len(query.keys) > 1 else ""
        return f"curl --get{many} {' '.join([*options, f'-H {_SENT}'])} \\\n{urls}\n"
    if query.filter is not None:
        options.insert(0, f"--data-urlencode {in_shell('$filter=' + write(query.filter))}")
    options.append(f"--data-urlencode {in_shell(f'$top={query.top}')}")
    lines = [f'curl --get "{place.endpoint}/{place.table}()?{token}"', *options, f"-H {_SENT}"]
    return " \\\n  ".join(lines) + "\n"


def write_az_query(place: Place, query: Query) -> str:
    commands = [_az_show(place, query, key) for key in query.keys] or [_az_list(place, query)]
    if place.token:
        return "".join(commands)
    return "# AZURE_STORAGE_CONNECTION_STRING holds the connection string\n" + "".join(commands)


def _az_show(place: Place, query: Query, key: EntityKey) -> str:
    words = [f"--partition-key {in_shell(key.partition_key)}", f"--row-key {in_shell(key.row_key)}"]
    return _az(place, "show", words, query.select)


def _az_list(place: Place, query: Query) -> str:
    words = [f"--num-results {query.top}"]
    if query.filter is not None:
        words.insert(0, f"--filter {in_shell(write(query.filter))}")
    return _az(place, "query", words, query.select)


def _az(place: Place, verb: str, words: list[str], select: tuple[str, ...]) -> str:
    if select:
        words.append(f"--select {' '.join(map(in_shell, select))}")
    if place.token:
        words += [
            f"--account-name {place.account}",
            f"--table-endpoint {in_shell(place.endpoint)}",
            f"--sas-token {in_shell(place.token)}",
        ]
    return " \\\n  ".join([f"az storage entity {verb} --table-name {place.table}", *words]) + "\n"


def _is_beyond_shell(value: EdmValue) -> bool:
    return value.type is Edm.STRING and _NO_ARGUMENT.search(str(value.value)) is not None


_NO_ARGUMENT = re.compile("[\x00\ud800-\udfff]")


def in_shell(text: str) -> str:
    """One word of a shell; what would not be seen is escaped as bash and zsh read it."""
    if UNSEEN.search(text) is None and text.isprintable():
        return "'" + text.replace("'", "'\\''") + "'"
    return "$'" + "".join(map(_in_ansi, text)) + "'"


def _in_ansi(character: str) -> str:
    if character in "\\'":
        return "\\" + character
    if character.isprintable() and UNSEEN.search(character) is None:
        return character
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
