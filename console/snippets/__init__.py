"""Code snippets for an entity or a query: a template per client language, filled with its literals."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pprint import pformat
from typing import Any, Final
from urllib.parse import quote

from django.template.loader import render_to_string

from console.snippets import literals
from console.snippets.literals import write_arguments
from storage.domain.entities.annotations import ODATA_TYPE
from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.filters.ast import Filter
from storage.domain.filters.literals import write_literal
from storage.domain.filters.writer import write
from storage.domain.values import edm, encoding
from storage.domain.values.edm import Edm, EdmValue


@dataclass(frozen=True, slots=True)
class Target:
    """Table that a snippet uses."""

    endpoint: str  # the account's endpoint, without a trailing slash
    account: str
    table: str
    token: str = (
        ""  # a SAS token to include; without one, the snippet reads a credential from the environment
    )


@dataclass(frozen=True, slots=True)
class Query:
    """Query of a snippet; ``keys`` are set if its filter names single entities."""

    filter: Filter | None
    select: tuple[str, ...] = ()
    top: int = 50  # entities of a page
    keys: tuple[EntityKey, ...] = ()


@dataclass(frozen=True, slots=True)
class Snippet:
    title: str  # the name of the operation, not translated
    code: str


@dataclass(frozen=True, slots=True)
class Language:
    """Client language; its templates are named by ``slug``."""

    slug: str
    name: str
    quote: Callable[[str], str]  # writes a string
    write_value: Callable[[EdmValue], str] = encoding.write  # writes a property
    # tells whether a property needs its type beside it, as a property of its own
    declares: Callable[[EdmValue], bool] = lambda _value: False
    # writes the placeholder in a filter, from its number and literal, for clients that bind or escape strings
    bind: Callable[[int, str], str] | None = None

    def write(self, target: Target, entity: Entity) -> list[Snippet]:
        key = [entity.key]
        return [
            Snippet("Get Entity", self._render("get", target, key)),
            Snippet("Insert Entity", self._write_entities("insert", target, [entity])),
            Snippet("Merge Entity", self._write_entities("merge", target, [entity])),
            Snippet("Delete Entity", self._render("delete", target, key)),
        ]

    def write_insertion(self, target: Target, entities: Sequence[Entity]) -> str:
        """Write a program that inserts all entities, in Python or JavaScript."""
        return self._write_entities("insert", target, entities) if entities else ""

    def _write_entities(self, operation: str, target: Target, entities: Sequence[Entity]) -> str:
        words = {name: write_arguments(name, value) for name, value in _values(entities[0]).items()}
        return self._render(
            operation,
            target,
            [entity.key for entity in entities],
            is_written=True,
            types={value.type.short_name for entity in entities for value in entity.properties.values()},
            entities=[
                (*map(self.quote, entity.key), list(self._write_properties(entity))) for entity in entities
            ],
            json=self.quote(_write_json(entities[0])),
            arguments=[self.quote(word) for argument in words.values() for word in argument],
            left_out=[name for name, argument in words.items() if not argument],
        )

    def _write_properties(self, entity: Entity) -> Iterator[tuple[str, str]]:
        for name, value in entity.properties.items():
            yield self.quote(name), self.write_value(value)
            if self.declares(value):
                yield self.quote(name + ODATA_TYPE), self.quote(value.type.value)

    def write_query(self, target: Target, query: Query) -> str:
        texts: list[str] = []

        def write_bound(value: EdmValue) -> str:
            if value.type is not Edm.STRING or self.bind is None:
                return write_literal(value)
            texts.append(self.quote(str(value.value)))
            return self.bind(len(texts) - 1, texts[-1])

        text = write(query.filter, write_bound) if query.filter is not None and not query.keys else ""
        return self._render(
            ("query", "get", "get several")[min(len(query.keys), 2)],
            target,
            query.keys,
            is_query=True,
            filter=text,
            filter_literal=self.quote(text),
            # the SDK of Python only replaces parameters between spaces; all parentheses left belong to the filter
            spaced_filter=self.quote(text.replace("(", "( ").replace(")", " )")),
            filter_option=self.quote(f"$filter={text}"),
            texts=texts,
            names=query.select,
            select=[self.quote(name) for name in query.select],
            select_option=self.quote(f"$select={','.join(query.select)}"),
            top=str(query.top),
        )

    def _render(self, operation: str, target: Target, keys: Sequence[EntityKey], **context: Any) -> str:
        address = f"{target.endpoint}/{target.table}"
        context |= {
            "operation": operation,
            "target": target,
            "endpoint": self.quote(target.endpoint),
            "account": self.quote(target.account),
            "table": self.quote(target.table),
            "table_address": self.quote(address),
            "token": self.quote(target.token) if target.token else "",
            "address": self.quote(f"{address}?{target.token}" if target.token else address),
            "has_empty_key": any(not part for key in keys for part in key),
            "is_insecure": target.endpoint.startswith("http:"),
            "keys": [tuple(map(self.quote, key)) for key in keys],
            "urls": [_entity_url(address, key) for key in keys],
        }
        if keys:
            context["partition_key"], context["row_key"] = context["keys"][0]
        return render_to_string(f"console/snippets/{self.slug}.txt", context).rstrip("\n") + "\n"


LANGUAGES: Final[Mapping[str, Language]] = {
    language.slug: language
    for language in (
        Language("python", "Python", repr, literals.write_python, bind=lambda number, _literal: f"@p{number}"),
        # the tag puts the quotation marks around a text and doubles those in it
        Language(
            "javascript", "JavaScript", literals.quote_json, literals.write_javascript,
            bind=lambda _number, literal: f"${{{literal}}}",
        ),
        Language(
            "csharp", "C#", literals.quote_json, literals.write_csharp, literals.is_special_in_csharp,
            lambda number, _literal: f"{{text{number}}}",
        ),
        Language(
            "go", "Go", literals.quote_json, bind=lambda _number, literal: f"'\" + escape({literal}) + \"'"
        ),
        Language("curl", "curl", literals.quote_shell),  # with a SAS token: a shell cannot sign requests
        Language("az", "Azure CLI", literals.quote_shell),
    )
}  # fmt: skip


_API_LANGUAGES: Final = (("python", "Python"), ("javascript", "JavaScript"), ("curl", "curl"))


def write_api_calls(address: str, body: Mapping[str, Any]) -> list[Snippet]:
    """Return snippets in several languages that POST to the management API, with the token in the environment."""
    context = {
        "python": pformat(body, width=100, sort_dicts=False),
        "json": literals.write_json(body, indent=2),
        "shell": literals.quote_shell(literals.write_json(body)),
        "python_address": repr(address),
        "json_address": literals.quote_json(address),
        "shell_address": literals.quote_shell(address),
    }
    return [
        Snippet(name, render_to_string(f"console/snippets/api_{slug}.txt", context).rstrip("\n") + "\n")
        for slug, name in _API_LANGUAGES
    ]


def _values(entity: Entity) -> dict[str, EdmValue]:
    """Return the keys and properties of an entity."""
    partition_key, row_key = (EdmValue(Edm.STRING, part) for part in entity.key)
    return {"PartitionKey": partition_key, "RowKey": row_key, **entity.properties}


def _write_json(entity: Entity) -> str:
    """Serialize an entity as a request body, one line of ASCII JSON."""
    members = []
    for name, value in _values(entity).items():
        if value.type is Edm.DOUBLE or encoding.needs_annotation(value):
            members.append(f'{edm.quote(name + ODATA_TYPE)}:"{value.type.value}"')
        text = encoding.write(value)
        members.append(f"{edm.quote(name)}:{edm.quote(text) if literals.is_negative_zero(value) else text}")
    return "{" + ",".join(members) + "}"


def _entity_url(address: str, key: EntityKey) -> str:
    """Return the URL of an entity with all reserved characters escaped, safe in shells and literals."""
    partition_key, row_key = (quote(part.replace("'", "''"), safe="'") for part in key)
    return f"{address}(PartitionKey='{partition_key}',RowKey='{row_key}')"
