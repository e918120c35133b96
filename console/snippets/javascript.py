"""JavaScript, @azure/data-tables."""

from console.snippets.parts import BoundFilter, Query, Snippet, Target, quote_literal, write_plain
from storage.domain.entities.entity import Entity
from storage.domain.values import encoding
from storage.domain.values.edm import Edm, EdmValue


def write(target: Target, entity: Entity) -> list[Snippet]:
    arguments = f"{quote_literal(entity.key.partition_key)}, {quote_literal(entity.key.row_key)}"
    whole = _javascript_entity(entity)
    return [
        Snippet(
            "Get Entity",
            _javascript(target, f"const entity = await table.getEntity({arguments});\nconsole.log(entity);"),
        ),
        Snippet("Insert Entity", _javascript(target, f"await table.createEntity({whole});")),
        Snippet("Merge Entity", _javascript(target, f'await table.updateEntity({whole}, "Merge");')),
        Snippet("Delete Entity", _javascript(target, f"await table.deleteEntity({arguments});")),
    ]


def write_query(target: Target, query: Query) -> str:
    select = f"[{', '.join(map(quote_literal, query.select))}]"
    options = f"{{ queryOptions: {{ select: {select} }} }}" if query.select else ""
    after = f", {options}" if options else ""
    if len(query.keys) == 1:
        arguments = ", ".join(map(quote_literal, query.keys[0]))
        return _javascript(
            target, f"const entity = await table.getEntity({arguments}{after});\nconsole.log(entity);"
        )
    if query.keys:
        keys = "".join(f"  [{', '.join(map(quote_literal, key))}],\n" for key in query.keys)
        read = (
            "const read = async ([partitionKey, rowKey]) => {\n  try {\n"
            f"    return await table.getEntity(partitionKey, rowKey{after});\n"
            "  } catch (error) {\n    if (error.statusCode !== 404) throw error;\n  }\n};\n"
            "for (const entity of await Promise.all(keys.map(read))) if (entity) console.log(entity);"
        )
        return _javascript(target, f"const keys = [\n{keys}];\n{read}")
    return _javascript(
        target,
        f"{_listing(query, select)}\n"
        f"for await (const page of entities.byPage({{ maxPageSize: {query.top} }})) {{\n"
        "  for (const entity of page) console.log(entity);\n}",
        names=["odata"] if query.filter is not None else [],
    )


def _listing(query: Query, select: str) -> str:
    options = []
    if query.filter is not None:
        # the tag puts the quotation marks around a text and doubles those in it
        text = BoundFilter(query.filter, lambda _number, text: f"${{{quote_literal(text)}}}").text
        options.append(f"filter: odata`{text}`")
    if query.select:
        options.append(f"select: {select}")
    inner = "".join(f"    {option},\n" for option in options)
    return f"const entities = table.listEntities({{\n  queryOptions: {{\n{inner}  }},\n}});"


def _javascript(target: Target, body: str, names: list[str] | None = None) -> str:
    insecure = ", { allowInsecureConnection: true }" if target.endpoint.startswith("http:") else ""
    kind = "AzureSASCredential" if target.token else "AzureNamedKeyCredential"
    secret = (
        quote_literal(target.token)
        if target.token
        else f"{quote_literal(target.account)}, process.env.TABLES_ACCOUNT_KEY"
    )
    imported = ", ".join([kind, "TableClient", *(names or [])])
    return (
        f'import {{ {imported} }} from "@azure/data-tables";\n\n'
        f"const credential = new {kind}({secret});\n"
        f"const table = new TableClient({quote_literal(target.endpoint)}, "
        f"{quote_literal(target.table)}, credential{insecure});\n\n"
        f"{body}\n"
    )


def _javascript_entity(entity: Entity) -> str:
    members = {
        "partitionKey": quote_literal(entity.key.partition_key),
        "rowKey": quote_literal(entity.key.row_key),
    }
    members |= {quote_literal(name): _javascript_value(value) for name, value in entity.properties.items()}
    return "{\n" + "".join(f"  {name}: {value},\n" for name, value in members.items()) + "}"


def _javascript_value(value: EdmValue) -> str:
    match value:
        case (Edm.STRING, str(text)):
            return quote_literal(text)
        case (Edm.BOOLEAN | Edm.INT32, _):
            return encoding.write(value)
    # a number of JavaScript has one type and 53 bits, its Date three digits after the second
    return f'{{ type: "{value.type.short_name}", value: "{write_plain(value)}" }}'
