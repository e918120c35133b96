"""Go, aztables. Entities are ASCII JSON, which any Go string can hold."""

from typing import Final

from console.snippets.parts import BoundFilter, Query, Snippet, Target, quote_literal, write_json
from storage.domain.entities.entity import Entity


def write(target: Target, entity: Entity) -> list[Snippet]:
    key = f"{quote_literal(entity.key.partition_key)}, {quote_literal(entity.key.row_key)}"
    whole = f"[]byte({quote_literal(write_json(entity))})"
    show = "\n\tfmt.Println(string(found.Value))"
    merge = "&aztables.UpdateEntityOptions{UpdateMode: aztables.UpdateModeMerge}"
    return [
        Snippet("Get Entity", _go(target, f"found, err := table.GetEntity(ctx, {key}, nil)", show)),
        Snippet("Insert Entity", _go(target, f"_, err = table.AddEntity(ctx, {whole}, nil)")),
        Snippet("Merge Entity", _go(target, f"_, err = table.UpdateEntity(ctx, {whole}, {merge})")),
        Snippet("Delete Entity", _go(target, f"_, err = table.DeleteEntity(ctx, {key}, nil)")),
    ]


def write_query(target: Target, query: Query) -> str:
    select = f'to.Ptr("{",".join(query.select)}")'
    if query.keys:
        keys = "".join(f"\t\t{{{', '.join(map(quote_literal, key))}}},\n" for key in query.keys)
        # GetEntity of this client takes no $select
        body = (
            f"\tfor _, key := range [][2]string{{\n{keys}\t}} {{\n"
            "\t\tfound, err := table.GetEntity(ctx, key[0], key[1], nil)\n"
            "\t\tvar failure *azcore.ResponseError\n"
            "\t\tif errors.As(err, &failure) && failure.StatusCode == 404 {\n\t\t\tcontinue\n\t\t}\n"
            "\t\tif err != nil {\n\t\t\tpanic(err)\n\t\t}\n\t\tfmt.Println(string(found.Value))\n\t}"
        )
        return _program(target, body, ["context", "errors", "fmt", "os"], [_CORE])
    bound = BoundFilter(query.filter, lambda _number, text: f"'\" + escape({quote_literal(text)}) + \"'")
    lines = []
    if bound.texts:
        lines.append('\tescape := strings.NewReplacer("\'", "\'\'").Replace')
    options = [f"Top: to.Ptr(int32({query.top}))"]
    if query.filter is not None:
        lines.append(f'\tfilter := "{bound.text}"')
        options.insert(0, "Filter: &filter")
    if query.select:
        options.append(f"Select: {select}")
    lines += [
        f"\tpages := table.NewListEntitiesPager(&aztables.ListEntitiesOptions{{{', '.join(options)}}})",
        "\tfor pages.More() {",
        "\t\tpage, err := pages.NextPage(ctx)",
        "\t\tif err != nil {\n\t\t\tpanic(err)\n\t\t}",
        "\t\tfor _, entity := range page.Entities {\n\t\t\tfmt.Println(string(entity))\n\t\t}\n\t}",
    ]
    names = ["context", "fmt", "os", *(["strings"] if bound.texts else [])]
    return _program(target, "\n".join(lines), names, [_TO])


_CORE: Final = "github.com/Azure/azure-sdk-for-go/sdk/azcore"
_TO: Final = f"{_CORE}/to"


def _go(target: Target, call: str, after: str = "") -> str:
    names = ["context", *(["fmt"] if after else []), "os"]
    return _program(target, f"\t{call}\n{_CHECK}{after}", names)


def _program(target: Target, body: str, names: list[str], more: list[str] | None = None) -> str:
    where = f"{target.endpoint}/{target.table}"
    if target.token:
        names = [name for name in names if name != "os"]
        client = f"table, err := aztables.NewClientWithNoCredential({quote_literal(f'{where}?{target.token}')}, nil)"
    else:
        client = f"table, err := aztables.NewClientWithSharedKey({quote_literal(where)}, credential, nil)"
    lines = "".join(f'\t"{name}"\n' for name in names)
    modules = sorted({*(more or []), "github.com/Azure/azure-sdk-for-go/sdk/data/aztables"})
    others = "".join(f'\t"{name}"\n' for name in modules)
    credential = (
        ""
        if target.token
        else f"\tcredential, err := aztables.NewSharedKeyCredential({quote_literal(target.account)}, "
        f'os.Getenv("TABLES_ACCOUNT_KEY"))\n{_CHECK}\n'
    )
    return (
        f"package main\n\nimport (\n{lines}\n{others})\n\n"
        f"func main() {{\n\tctx := context.Background()\n{credential}\t{client}\n{_CHECK}\n{body}\n}}\n"
    )


_CHECK: Final = "\tif err != nil {\n\t\tpanic(err)\n\t}"
