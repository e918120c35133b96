"""Python, azure-data-tables."""

from collections.abc import Sequence

from console.snippets.parts import BoundFilter, Query, Snippet, Target
from storage.domain.entities.entity import Entity
from storage.domain.values.edm import Edm, EdmValue, write_datetime


def write(target: Target, entity: Entity) -> list[Snippet]:
    partition_key, row_key = entity.key
    types = {value.type for value in entity.properties.values()}
    arguments = f"{partition_key!r}, {row_key!r}"
    merged = "mode=UpdateMode.MERGE"
    return [
        Snippet("Get Entity", _python(target, f"entity = table.get_entity({arguments})\nprint(entity)")),
        Snippet("Insert Entity", _python(target, f"table.create_entity({_python_entity(entity)})", types)),
        Snippet(
            "Merge Entity",
            _python(
                target, f"table.update_entity({_python_entity(entity)}, {merged})", types, more=["UpdateMode"]
            ),
        ),
        Snippet("Delete Entity", _python(target, f"table.delete_entity({arguments})")),
    ]


def write_query(target: Target, query: Query) -> str:
    select = f", select={list(query.select)!r}" if query.select else ""
    if len(query.keys) == 1:
        partition_key, row_key = query.keys[0]
        read = f"entity = table.get_entity({partition_key!r}, {row_key!r}{select})"
        return _python(target, f"{read}\nprint(entity)")
    if query.keys:
        keys = "".join(f"    ({partition_key!r}, {row_key!r}),\n" for partition_key, row_key in query.keys)
        read = (
            f"keys = [\n{keys}]\n\n\ndef read(key):\n    try:\n        return table.get_entity(*key{select})\n"
            "    except ResourceNotFoundError:\n        return None\n\n\n"
            "with ThreadPoolExecutor(8) as pool:\n    for entity in pool.map(read, keys):\n"
            "        if entity is not None:\n            print(entity)"
        )
        imports = [
            "from concurrent.futures import ThreadPoolExecutor",
            "from azure.core.exceptions import ResourceNotFoundError",
        ]
        return _python(target, read, imports=imports)
    return _python(target, f"entities = {_listing(query)}\nfor entity in entities:\n    print(entity)")


def _listing(query: Query) -> str:
    bound = BoundFilter(query.filter, lambda number, _text: f"@p{number}")
    lines = []
    if query.filter is not None:
        # the SDK only replaces parameters between spaces; all parentheses left belong to the filter
        lines.append(repr(bound.text.replace("(", "( ").replace(")", " )") if bound.texts else bound.text))
    if bound.texts:
        parameters = {f"p{number}": text for number, text in enumerate(bound.texts)}
        lines.append(f"parameters={parameters!r}")
    if query.select:
        lines.append(f"select={list(query.select)!r}")
    lines.append(f"results_per_page={query.top}")
    name = "query_entities" if query.filter is not None else "list_entities"
    return f"table.{name}(\n" + "".join(f"    {line},\n" for line in lines) + ")"


def _python(
    target: Target,
    body: str,
    types: set[Edm] | None = None,
    more: Sequence[str] = (),
    imports: Sequence[str] = (),
) -> str:
    names = ["TableClient", *more]
    standard = ["import os"] if not target.token else []
    standard += [line for line in imports if " azure" not in line]
    foreign = [line for line in imports if " azure" in line]
    found = types or set()
    if found & {Edm.INT64, Edm.DATETIME}:
        names += ["EdmType", "EntityProperty"]
    if Edm.GUID in found:
        standard.append("from uuid import UUID")
    kind = "AzureSasCredential" if target.token else "AzureNamedKeyCredential"
    key = f'{target.account!r}, os.environ["TABLES_ACCOUNT_KEY"]'
    return (
        "".join(f"{line}\n" for line in standard)
        + ("\n" if standard else "")
        + f"from azure.core.credentials import {kind}\n"
        + "".join(f"{line}\n" for line in foreign)
        + f"from azure.data.tables import {', '.join(sorted(names))}\n\n"
        + f"credential = {kind}({repr(target.token) if target.token else key})\n"
        + f"table = TableClient({target.endpoint!r}, {target.table!r}, credential=credential)\n\n{body}\n"
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
