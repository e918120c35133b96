"""Code snippets for an entity or a query, in each client language."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from console.snippets import csharp, go, javascript, python, shell
from console.snippets.parts import Query, Snippet, Target
from storage.domain.entities.entity import Entity

__all__ = ["LANGUAGES", "Language", "Query", "Snippet", "Target"]


@dataclass(frozen=True, slots=True)
class Language:
    slug: str
    name: str
    write: Callable[[Target, Entity], list[Snippet]]
    write_query: Callable[[Target, Query], str]


LANGUAGES: Final[Mapping[str, Language]] = {
    language.slug: language
    for language in (
        Language("python", "Python", python.write, python.write_query),
        Language("javascript", "JavaScript", javascript.write, javascript.write_query),
        Language("csharp", "C#", csharp.write, csharp.write_query),
        Language("go", "Go", go.write, go.write_query),
        Language("curl", "curl", shell.write_curl, shell.write_curl_query),
        Language("az", "Azure CLI", shell.write_az, shell.write_az_query),
    )
}
