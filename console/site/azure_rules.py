"""Rules of Azure that only strict accounts insist on, for display."""

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from django.utils.translation import gettext as _

from storage.domain.requests.strictness import RULES, RuleFacts


@dataclass(frozen=True, slots=True)
class SourceView:
    """Link to a page that a rule is known from."""

    address: str

    @property
    def label(self) -> str:
        parts = urlsplit(self.address)
        if parts.hostname != "github.com":
            return _("Documentation")
        _empty, _owner, repository, _issues, number = parts.path.split("/")
        return f"{repository} #{number}"


@dataclass(frozen=True, slots=True)
class RuleView:
    """Rule for display."""

    facts: RuleFacts

    @property
    def sentence(self) -> str:
        return _(self.facts.sentence)

    @property
    def status(self) -> int:
        return self.facts.error.status

    @property
    def code(self) -> str:
        return self.facts.error.__name__

    @property
    def sources(self) -> Iterator[SourceView]:
        return map(SourceView, self.facts.sources)


def list_rules() -> list[RuleView]:
    """Return the rules that decide whether a request is served, without those that only change a message."""
    return [RuleView(facts) for facts in RULES.values() if not facts.is_only_wording]
