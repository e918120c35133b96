"""JavaScript, @azure/data-tables."""

from console.snippets.parts import Place, Snippet, plain, quoted
from storage.domain import encoding
from storage.domain.edm import Edm, EdmValue
from storage.domain.entity import Entity


def write(place: Place, entity: Entity) -> list[Snippet]:
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
    return f'{{ type: "{value.type.value.removeprefix("Edm.")}", value: "{plain(value)}" }}'
