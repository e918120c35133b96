"""C#, Azure.Data.Tables."""

from console.snippets.parts import BoundFilter, Query, Snippet, Target, quote_literal, write_plain
from storage.domain.entities.entity import Entity
from storage.domain.values import encoding
from storage.domain.values.edm import Edm, EdmValue


def write(target: Target, entity: Entity) -> list[Snippet]:
    arguments = f"{quote_literal(entity.key.partition_key)}, {quote_literal(entity.key.row_key)}"
    whole = f"var entity = new TableEntity({arguments})\n{_csharp_properties(entity)};\n"
    return [
        Snippet(
            "Get Entity",
            _csharp(
                target,
                f"TableEntity entity = await table.GetEntityAsync<TableEntity>({arguments});\n"
                'Console.WriteLine(string.Join(", ", entity));',
            ),
        ),
        Snippet("Insert Entity", _csharp(target, f"{whole}await table.AddEntityAsync(entity);")),
        Snippet(
            "Merge Entity",
            _csharp(
                target, f"{whole}await table.UpdateEntityAsync(entity, ETag.All, TableUpdateMode.Merge);"
            ),
        ),
        Snippet("Delete Entity", _csharp(target, f"await table.DeleteEntityAsync({arguments});")),
    ]


def write_query(target: Target, query: Query) -> str:
    names = f"new[] {{ {', '.join(map(quote_literal, query.select))} }}"
    select = f", select: {names}" if query.select else ""
    show = 'Console.WriteLine(string.Join(", ", entity));'
    if len(query.keys) == 1:
        arguments = ", ".join(map(quote_literal, query.keys[0]))
        read = f"TableEntity entity = await table.GetEntityAsync<TableEntity>({arguments}{select});"
        return _csharp(target, f"{read}\n{show}")
    if query.keys:
        keys = "".join(f"    ({', '.join(map(quote_literal, key))}),\n" for key in query.keys)
        read = f"keys.Select(key => table.GetEntityIfExistsAsync<TableEntity>(key.Item1, key.Item2{select}))"
        return _csharp(
            target,
            f"var keys = new[]\n{{\n{keys}}};\nvar entities = await Task.WhenAll({read});\n"
            'foreach (var found in entities) if (found.HasValue) Console.WriteLine(string.Join(", ", found.Value));',
            more=["System.Linq"],
        )
    bound = BoundFilter(query.filter, lambda number, _text: f"{{text{number}}}")
    lines = [f"string text{number} = {quote_literal(text)};" for number, text in enumerate(bound.texts)]
    if query.filter is not None:
        lines.append(f'string filter = TableClient.CreateQueryFilter($"{bound.text}");')
    filtering = "filter, " if query.filter is not None else ""
    lines.append(f"var entities = table.QueryAsync<TableEntity>({filtering}maxPerPage: {query.top}{select});")
    lines.append(f"await foreach (TableEntity entity in entities) {show}")
    return _csharp(target, "\n".join(lines))


def _csharp(target: Target, body: str, more: list[str] | None = None) -> str:
    arguments = f'{quote_literal(target.account)}, Environment.GetEnvironmentVariable("TABLES_ACCOUNT_KEY")'
    credential = (
        f"new AzureSasCredential({quote_literal(target.token)})"
        if target.token
        else f"new TableSharedKeyCredential({arguments})"
    )
    imports = "".join(f"using {name};\n" for name in sorted([*(more or []), "Azure", "Azure.Data.Tables"]))
    return (
        f"{imports}\nvar credential = {credential};\n"
        f"var table = new TableClient(new Uri({quote_literal(target.endpoint)}), "
        f"{quote_literal(target.table)}, credential);\n\n"
        f"{body}\n"
    )


def _csharp_properties(entity: Entity) -> str:
    lines = [
        f"    [{quote_literal(name)}] = {_csharp_value(value)},\n"
        for name, value in entity.properties.items()
    ]
    return "{\n" + "".join(lines) + "}"


def _csharp_value(value: EdmValue) -> str:
    match value:
        case (Edm.STRING, str(text)):
            return quote_literal(text)
        case (Edm.INT64, int(number)):
            return f"{number}L" if number > -(2**63) else "long.MinValue"
        case (Edm.DOUBLE, float(number)):
            return _csharp_double(number)
        case (Edm.DATETIME, _):
            return f'DateTimeOffset.Parse("{write_plain(value)}")'
        case (Edm.GUID, _):
            return f'Guid.Parse("{write_plain(value)}")'
        case (Edm.BINARY, _):
            return f'Convert.FromBase64String("{write_plain(value)}")'
    return encoding.write(value)


def _csharp_double(number: float) -> str:
    names = {"nan": "double.NaN", "inf": "double.PositiveInfinity", "-inf": "double.NegativeInfinity"}
    return names.get(repr(number), f"{number!r}d")
