"""C#, Azure.Data.Tables."""

from console.snippets.parts import Place, Snippet, plain, quoted
from storage.domain import encoding
from storage.domain.edm import Edm, EdmValue
from storage.domain.entity import Entity


def write(place: Place, entity: Entity) -> list[Snippet]:
    arguments = f"{quoted(entity.key.partition_key)}, {quoted(entity.key.row_key)}"
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


def _csharp_properties(entity: Entity) -> str:
    lines = [f"    [{quoted(name)}] = {_csharp_value(value)},\n" for name, value in entity.properties.items()]
    return "{\n" + "".join(lines) + "}"


def _csharp_value(value: EdmValue) -> str:
    match value:
        case (Edm.STRING, str(text)):
            return quoted(text)
        case (Edm.INT64, int(number)):
            return f"{number}L" if number > -(2**63) else "long.MinValue"
        case (Edm.DOUBLE, float(number)):
            return _csharp_double(number)
        case (Edm.DATETIME, _):
            return f'DateTimeOffset.Parse("{plain(value)}")'
        case (Edm.GUID, _):
            return f'Guid.Parse("{plain(value)}")'
        case (Edm.BINARY, _):
            return f'Convert.FromBase64String("{plain(value)}")'
    return encoding.write(value)


def _csharp_double(number: float) -> str:
    names = {"nan": "double.NaN", "inf": "double.PositiveInfinity", "-inf": "double.NegativeInfinity"}
    return names.get(repr(number), f"{number!r}d")
