"""Python, azure-data-tables."""

from console.snippets.parts import Place, Snippet
from storage.domain.edm import Edm, EdmValue, write_datetime
from storage.domain.entity import Entity


def write(place: Place, entity: Entity) -> list[Snippet]:
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
