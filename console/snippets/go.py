"""Go, aztables; an entity is JSON in ASCII there, which every string of Go can hold."""

from console.snippets.parts import Place, Snippet, document, quoted
from storage.domain.entity import Entity


def write(place: Place, entity: Entity) -> list[Snippet]:
    key = f"{quoted(entity.key.partition_key)}, {quoted(entity.key.row_key)}"
    whole = f"[]byte({quoted(document(entity))})"
    show = "\n\tfmt.Println(string(found.Value))"
    merge = "&aztables.UpdateEntityOptions{UpdateMode: aztables.UpdateModeMerge}"
    return [
        Snippet("Get Entity", _go(place, f"found, err := table.GetEntity(ctx, {key}, nil)", show)),
        Snippet("Insert Entity", _go(place, f"_, err = table.AddEntity(ctx, {whole}, nil)")),
        Snippet("Merge Entity", _go(place, f"_, err = table.UpdateEntity(ctx, {whole}, {merge})")),
        Snippet("Delete Entity", _go(place, f"_, err = table.DeleteEntity(ctx, {key}, nil)")),
    ]


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
