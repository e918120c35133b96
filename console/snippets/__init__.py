"""Code that works on one entity, for every client that people use; the credential comes from the environment."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from console.snippets import csharp, go, javascript, python, shell
from console.snippets.parts import Place, Snippet
from storage.domain.entity import Entity

__all__ = ["LANGUAGES", "Language", "Place", "Snippet"]


@dataclass(frozen=True, slots=True)
class Language:
    slug: str
    name: str
    write: Callable[[Place, Entity], list[Snippet]]


LANGUAGES: Final[Mapping[str, Language]] = {
    language.slug: language
    for language in (
        Language("python", "Python", python.write),
        Language("javascript", "JavaScript", javascript.write),
        Language("csharp", "C#", csharp.write),
        Language("go", "Go", go.write),
        Language("curl", "curl", shell.write_curl),
        Language("az", "Azure CLI", shell.write_az),
    )
}
