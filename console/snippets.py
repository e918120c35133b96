"""Code that works on one entity, for every client that people use; the credential comes from the environment."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from storage.domain import edm, encoding
from storage.domain.edm import Edm, EdmValue, write_datetime
from storage.domain.entity import Entity, EntityKey


@dataclass(frozen=True, slots=True)
class Place:
    """Where a snippet goes to; ``endpoint`` is of the account, without a slash at its end."""

    endpoint: str
    account: str
    table: str


@dataclass(frozen=True, slots=True)
class Snippet:
    title: str  # of the operation; the service's own word
    code: str


@dataclass(frozen=True, slots=True)
class Language:
    slug: str
    name: str
    write: Callable[[Place, Entity], list[Snippet]]


# literals

_UNSEEN = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]")


def quoted(text: str) -> str:
    """A literal of JavaScript, C# and JSON."""
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(text, ensure_ascii=False))


def in_shell(text: str) -> str:
    """One word of a shell; what would not be seen is escaped as bash and zsh read it."""
    if _UNSEEN.search(text) is None and text.isprintable():
        return "'" + text.replace("'", "'\\''") + "'"
    return "$'" + "".join(map(_in_ansi, text)) + "'"


def _in_ansi(character: str) -> str:
    if character in "\\'":
        return "\\" + character
    if character.isprintable() and _UNSEEN.search(character) is None:
        return character
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def document(entity: Entity) -> str:
    """The entity as one line of ASCII JSON, as a request carries it."""
    members = [
        f'"PartitionKey":{edm.quote(entity.key.partition_key)}',
        f'"RowKey":{edm.quote(entity.key.row_key)}',
    ]
    for name, value in entity.properties.items():
        if encoding.annotated(value):
            members.append(f'{edm.quote(name + "@odata.type")}:"{value.type.value}"')
        members.append(f"{edm.quote(name)}:{encoding.write(value)}")
    return "{" + ",".join(members) + "}"


def address(place: Place, key: EntityKey) -> str:
    """Everything but the unreserved characters is escaped, so that no shell and no literal sees any other."""
    partition_key, row_key = (quote(part.replace("'", "''"), safe="'") for part in key)
    return f"{place.endpoint}/{place.table}(PartitionKey='{partition_key}',RowKey='{row_key}')"


# Python


def python(place: Place, entity: Entity) -> list[Snippet]:
    partition_key, row_key = entity.key
    types = {value.type for value in entity.properties.values()}
    arguments = f"{partition_key!r}, {row_key!r}"
    merged = "mode=UpdateMode.MERGE"
    return [
        Snippet("Get Entity", _python(place, f"entity = table.get_entity({arguments})\nprint(entity)")),
        Snippet("Insert Entity", _python(place, f"table.create_entity({_python_entity(entity)})", types)),
        Snippet(
            "Merge Entity",
            _python(
                place, f"table.update_entity({_python_entity(entity)}, {merged})", types, more=["UpdateMode"]
            ),
        ),
        Snippet("Delete Entity", _python(place, f"table.delete_entity({arguments})")),
    ]


def _python(place: Place, body: str, types: set[Edm] | None = None, more: list[str] | None = None) -> str:
    names = ["TableClient", *(more or [])]
    imports = ["import os"]
    found = types or set()
    if found & {Edm.INT64, Edm.DATETIME}:
        names += ["EdmType", "EntityProperty"]
    if Edm.GUID in found:
        imports.append("from uuid import UUID")
    return (
        "\n".join(imports)
        + "\n\nfrom azure.core.credentials import AzureNamedKeyCredential\n"
        + f"from azure.data.tables import {', '.join(sorted(names))}\n\n"
        + f'credential = AzureNamedKeyCredential({place.account!r}, os.environ["TABLES_ACCOUNT_KEY"])\n'
        + f"table = TableClient({place.endpoint!r}, {place.table!r}, credential=credential)\n\n{body}\n"
    )


def _python_entity(entity: Entity) -> str:
    members = {"PartitionKey": repr(entity.key.partition_key), "RowKey": repr(entity.key.row_key)}
    members |= {name: _python_value(value) for name, value in entity.properties.items()}
    return "{\n" + "".join(f"    {name!r}: {value},\n" for name, value in members.items()) + "}"


def _python_value(value: EdmValue) -> str:
    match value:
        case (Edm.INT64, int(number)):
            return f"EntityProperty({number}, EdmType.INT64)"
        case (Edm.DATETIME, int(ticks)):
            # a datetime would lose the seventh digit
            return f"EntityProperty({write_datetime(ticks)!r}, EdmType.DATETIME)"
        case (Edm.GUID, str(text)):
            return f"UUID({text!r})"
        case (Edm.DOUBLE, float(number)):
            return (
                repr(number) if number == number and abs(number) != float("inf") else f'float("{number!r}")'
            )
    return repr(value.value)


# JavaScript


def javascript(place: Place, entity: Entity) -> list[Snippet]:
    arguments = f"{quoted(entity.key.partition_key)}, {quoted(entity.key.row_key)}"
    whole = _javascript_entity(entity)
    return [
        Snippet(
            "Get Entity",
            _javascript(place, f"const entity = await table.getEntity({arguments});\nconsole.log(entity);"),
        ),
        Snippet("Insert Entity", _javascript(place, f"await table.createEntity({whole});")),
        Snippet("Merge Entity", _javascript(place, f'await table.updateEntity({whole}, "Merge");')),
        Snippet("Delete Entity", _javascript(place, f"await table.deleteEntity({arguments});")),
    ]


def _javascript(place: Place, body: str) -> str:
    insecure = ", { allowInsecureConnection: true }" if place.endpoint.startswith("http:") else ""
    return (
        'import { AzureNamedKeyCredential, TableClient } from "@azure/data-tables";\n\n'
        f"const credential = new AzureNamedKeyCredential({quoted(place.account)}, process.env.TABLES_ACCOUNT_KEY);\n"
        f"const table = new TableClient({quoted(place.endpoint)}, {quoted(place.table)}, credential{insecure});\n\n"
        f"{body}\n"
    )


def _javascript_entity(entity: Entity) -> str:
    members = {"partitionKey": quoted(entity.key.partition_key), "rowKey": quoted(entity.key.row_key)}
    members |= {quoted(name): _javascript_value(value) for name, value in entity.properties.items()}
    return "{\n" + "".join(f"  {name}: {value},\n" for name, value in members.items()) + "}"


def _javascript_value(value: EdmValue) -> str:
    match value:
        case (Edm.STRING, str(text)):
            return quoted(text)
        case (Edm.BOOLEAN | Edm.INT32, _):
            return encoding.write(value)
    # a number of JavaScript has one type and 53 bits, its Date three digits after the second
    return f'{{ type: "{value.type.value.removeprefix("Edm.")}", value: "{_plain(value)}" }}'


def _plain(value: EdmValue) -> str:
    return encoding.write(value).strip('"')


# C#


def csharp(place: Place, entity: Entity) -> list[Snippet]:
    arguments = f"{_csharp_text(entity.key.partition_key)}, {_csharp_text(entity.key.row_key)}"
    whole = f"var entity = new TableEntity({arguments})\n{_csharp_properties(entity)};\n"
    return [
        Snippet(
            "Get Entity",
            _csharp(
                place,
                f"TableEntity entity = await table.GetEntityAsync<TableEntity>({arguments});\n"
                'Console.WriteLine(string.Join(", ", entity));',
            ),
        ),
        Snippet("Insert Entity", _csharp(place, f"{whole}await table.AddEntityAsync(entity);")),
        Snippet(
            "Merge Entity",
            _csharp(place, f"{whole}await table.UpdateEntityAsync(entity, ETag.All, TableUpdateMode.Merge);"),
        ),
        Snippet("Delete Entity", _csharp(place, f"await table.DeleteEntityAsync({arguments});")),
    ]


def _csharp(place: Place, body: str) -> str:
    return (
        "using Azure;\nusing Azure.Data.Tables;\n\n"
        f"var credential = new TableSharedKeyCredential({quoted(place.account)}, "
        'Environment.GetEnvironmentVariable("TABLES_ACCOUNT_KEY"));\n'
        f"var table = new TableClient(new Uri({quoted(place.endpoint)}), {quoted(place.table)}, credential);\n\n"
        f"{body}\n"
    )


def _csharp_text(text: str) -> str:
    return quoted(text)


def _csharp_properties(entity: Entity) -> str:
    lines = [f"    [{quoted(name)}] = {_csharp_value(value)},\n" for name, value in entity.properties.items()]
    return "{\n" + "".join(lines) + "}"


def _csharp_value(value: EdmValue) -> str:
    match value:
        case (Edm.STRING, str(text)):
            return _csharp_text(text)
        case (Edm.INT64, int(number)):
            return f"{number}L" if number > -(2**63) else "long.MinValue"
        case (Edm.DOUBLE, float(number)):
            return _csharp_double(number)
        case (Edm.DATETIME, _):
            return f'DateTimeOffset.Parse("{_plain(value)}")'
        case (Edm.GUID, _):
            return f'Guid.Parse("{_plain(value)}")'
        case (Edm.BINARY, _):
            return f'Convert.FromBase64String("{_plain(value)}")'
    return encoding.write(value)


def _csharp_double(number: float) -> str:
    names = {"nan": "double.NaN", "inf": "double.PositiveInfinity", "-inf": "double.NegativeInfinity"}
    return names.get(repr(number), f"{number!r}d")


# Go


def go(place: Place, entity: Entity) -> list[Snippet]:
    key = f"{_go_text(entity.key.partition_key)}, {_go_text(entity.key.row_key)}"
    whole = f"[]byte({_go_text(document(entity))})"
    show = "\n\tfmt.Println(string(found.Value))"
    merge = "&aztables.UpdateEntityOptions{UpdateMode: aztables.UpdateModeMerge}"
    return [
        Snippet("Get Entity", _go(place, f"found, err := table.GetEntity(ctx, {key}, nil)", show)),
        Snippet("Insert Entity", _go(place, f"_, err = table.AddEntity(ctx, {whole}, nil)")),
        Snippet("Merge Entity", _go(place, f"_, err = table.UpdateEntity(ctx, {whole}, {merge})")),
        Snippet("Delete Entity", _go(place, f"_, err = table.DeleteEntity(ctx, {key}, nil)")),
    ]


def _go_text(text: str) -> str:
    """Go's own strings are UTF-8; JSON inside one is ASCII."""
    return quoted(text)


def _go(place: Place, call: str, after: str = "") -> str:
    imports = ["context", *(["fmt"] if after else []), "os"]
    lines = "".join(f'\t"{name}"\n' for name in imports)
    check = "\tif err != nil {\n\t\tpanic(err)\n\t}"
    where = f"{place.endpoint}/{place.table}"
    return (
        f'package main\n\nimport (\n{lines}\n\t"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"\n)\n\n'
        "func main() {\n\tctx := context.Background()\n"
        f"\tcredential, err := aztables.NewSharedKeyCredential({quoted(place.account)}, "
        f'os.Getenv("TABLES_ACCOUNT_KEY"))\n{check}\n'
        f"\ttable, err := aztables.NewClientWithSharedKey({quoted(where)}, credential, nil)\n{check}\n"
        f"\t{call}\n{check}{after}\n}}\n"
    )


# curl, with a shared access signature: a shell cannot sign


def curl(place: Place, entity: Entity) -> list[Snippet]:
    one = f'"{address(place, entity.key)}?$TABLES_SAS"'
    body = f"  -H 'Content-Type: application/json' \\\n  --data-raw {in_shell(document(entity))}\n"
    return [
        Snippet("Get Entity", f"curl {one} \\\n  -H 'Accept: application/json;odata=minimalmetadata'\n"),
        Snippet("Insert Entity", f'curl -X POST "{place.endpoint}/{place.table}?$TABLES_SAS" \\\n{body}'),
        Snippet("Merge Entity", f"curl -X MERGE {one} \\\n  -H 'If-Match: *' \\\n{body}"),
        Snippet("Delete Entity", f"curl -X DELETE {one} \\\n  -H 'If-Match: *'\n"),
    ]


# az


def az(place: Place, entity: Entity) -> list[Snippet]:
    key = f"  --partition-key {in_shell(entity.key.partition_key)} \\\n  --row-key {in_shell(entity.key.row_key)}"
    pairs = [f"PartitionKey={entity.key.partition_key}", f"RowKey={entity.key.row_key}"]
    passed = {name: value for name, value in entity.properties.items() if not _is_beyond_shell(value)}
    left_out = [f"# no command line can carry {name}\n" for name in entity.properties if name not in passed]
    for name, value in passed.items():
        text = value.value if isinstance(value.value, str) else _plain(value)
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


def _is_beyond_shell(value: EdmValue) -> bool:
    return value.type is Edm.STRING and _NO_ARGUMENT.search(str(value.value)) is not None


_NO_ARGUMENT = re.compile("[\x00\ud800-\udfff]")

LANGUAGES: Final[Mapping[str, Language]] = {
    language.slug: language
    for language in (
        Language("python", "Python", python),
        Language("javascript", "JavaScript", javascript),
        Language("csharp", "C#", csharp),
        Language("go", "Go", go),
        Language("curl", "curl", curl),
        Language("az", "Azure CLI", az),
    )
}
