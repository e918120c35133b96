"""Design of a table for display: findings, partitions, keys, kinds of entities and queries."""

from collections import Counter
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Final

from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from console.queries.access_paths import PATHS, PathText
from console.site.addresses import address_of, path_of
from console.site.tags import grouped
from storage.core import registry
from storage.core.subject import Hook
from storage.design.advice import PATTERNS, QueryUse
from storage.design.design import Design, Shape, TableSummary, describe_filter
from storage.design.findings import DesignKind, Finding, Weight
from storage.design.keys import KeyName
from storage.design.kinds import EntityKind, MixedProperty
from storage.domain.filters.access_plan import AccessPath
from storage.domain.filters.ast import Filter
from storage.domain.filters.writer import write
from storage.domain.values.edm import Edm, EdmValue
from storage.editing.filters.narrowing import ConditionKind, build_condition, fits_in_url
from storage.editing.filters.types import other_types_filter
from storage.models import Table

_DOCUMENT: Final = "design"
_FIRST: Final = 10  # partitions, clients and properties that are named
_QUERIES: Final = 30


@dataclass(frozen=True, slots=True)
class WeightText:
    """Label of a weight, with the kind and icon of its badge."""

    label: Promise
    kind: str
    icon: str


WEIGHTS: Final = {
    Weight.PROBLEM: WeightText(_("Problem"), "danger", "triangle-alert"),
    Weight.HINT: WeightText(_("Hint"), "info", "info"),
    Weight.GOOD: WeightText(_("Good"), "ok", "circle-check"),
}
_OF_PARTITIONS: Final = (DesignKind.SKEWED, DesignKind.HOT_PARTITION)


@dataclass(frozen=True, slots=True)
class Example:
    """Key or property, with the address of the grid that shows its entities; empty if none can."""

    text: str
    address: str


def _grid_address(table: Table, text: str) -> str:
    return address_of("entities:index", table.account.name, table.name, f=text)


def _key_example(table: Table, key: KeyName, text: str) -> Example:
    value = EdmValue(Edm.STRING, text)
    condition = write(build_condition(key.value, ConditionKind.IS, value)) if fits_in_url(value) else ""
    return Example(text, _grid_address(table, condition) if condition else "")


def _other_types(mixed: MixedProperty) -> str:
    """Return a filter that finds the values that do not have the most frequent type; empty if none can."""
    main, *others = (type_ for type_, _number in mixed.types)
    return other_types_filter(mixed.name, main, others)


@dataclass(frozen=True)
class FindingView:
    """Finding for display."""

    it: Finding
    table: Table
    shape: Shape

    @property
    def weight(self) -> WeightText:
        return WEIGHTS[self.it.weight]

    @property
    def title(self) -> str:
        return gettext(self.it.kind.value.title)

    @property
    def text(self) -> str:
        return gettext(self.it.kind.value.text) % self.it.write_facts(grouped)

    @property
    def key(self) -> str:
        return str(self.it.facts.get("key", ""))

    @property
    def pattern(self) -> str:
        """Return the title of the pattern that would serve a query; empty for other findings."""
        advice = self.it.query.advice if self.it.query else None
        return gettext(PATTERNS[advice.pattern].title) if advice else ""

    @property
    def examples(self) -> list[Example]:
        if self.key:
            return [_key_example(self.table, KeyName(self.key), text) for text in self.it.examples]
        if self.it.kind in _OF_PARTITIONS:
            return [_key_example(self.table, KeyName.PARTITION, text) for text in self.it.examples]
        return [
            Example(gettext("Entities with another type"), _grid_address(self.table, text))
            for mixed in self.shape.mixed
            if mixed.name in self.it.examples and (text := _other_types(mixed))
        ]

    @cached_property
    def edit_address(self) -> str:
        return _edit_address(self.table, self.it.edit)

    @property
    def document_address(self) -> str:
        return _document_address(self.it.kind.value.section)


def _edit_address(table: Table, edit: object) -> str:
    """Return the address of the page that makes an edit; empty without one, or while bulk edits are left out."""
    pages = registry.hooks(Hook.EDIT_PAGE)
    if not pages or not isinstance(edit, dict):
        return ""
    address: str = pages[0](table, edit.get("filter", ""), edit["operations"])
    return address


def _document_address(section: str) -> str:
    """Return the address of a section of the document; empty while the help has none."""
    names = {entry.name for subject in registry.present() for entry in subject.help_entries}
    return f"{path_of('help:document', _DOCUMENT)}#{section}" if _DOCUMENT in names else ""


@dataclass(frozen=True, slots=True)
class ClassView:
    """Size class of partitions, and their number as a percentage of the largest class."""

    least: int
    partitions: int
    entities: int
    percent: float

    @property
    def label(self) -> str:
        return f"{grouped(self.least)}–{grouped(10 * self.least - 1)}"


@dataclass(frozen=True, slots=True)
class PartitionView:
    """Partition with its share of the entities in percent."""

    example: Example
    entities: int
    size: int
    percent: float


@dataclass(frozen=True, slots=True)
class KindView:
    """Kind of entities for display."""

    it: EntityKind
    table: Table
    entities: int  # in the whole table
    percent: float

    @property
    def properties(self) -> list[tuple[str, float]]:
        """Return the first properties, with the percentage of the entities that have them."""
        return [(name, _percent(share)) for name, share in self.it.properties[:_FIRST]]

    @property
    def further(self) -> int:
        return max(0, len(self.it.properties) - _FIRST)

    @property
    def example_address(self) -> str:
        key = self.it.example
        if not all(fits_in_url(EdmValue(Edm.STRING, text)) for text in key):
            return ""
        arguments = (self.table.account.name, self.table.name)
        query = {"pk": key.partition_key, "rk": key.row_key}
        return reverse("entities:show", args=arguments, query=query)

    @property
    def filter_address(self) -> str:
        return _grid_address(self.table, self.it.filter) if self.it.filter else ""


def _percent(share: float) -> float:
    return min(99.9, max(0.1, round(100 * share, 1))) if share < 1 else 100


@dataclass(frozen=True)
class QueryView:
    """Queries of one shape for display."""

    it: QueryUse
    table: Table
    writes_a_day: float
    copied_bytes: int

    @property
    def path(self) -> PathText | None:
        return PATHS.get(self.it.path)

    @property
    def clients(self) -> list[tuple[str, int]]:
        return list(self.it.count.clients[:_FIRST])

    @property
    def here(self) -> str:
        """Return what this server reads."""
        if self.it.indexed:
            return gettext("A property index finds the candidates, and only those are read.")
        if self.it.path in (AccessPath.PARTITION_RANGE, AccessPath.TABLE_SCAN):
            return gettext("Reads as many entities as Azure, unless a property has an index.")
        return gettext("Reads the key index, as Azure does.")

    @property
    def ratio(self) -> int | None:
        """Return how many entities Azure reads for one that it returns, if there are more."""
        ratio = self.it.read_for_one
        return None if ratio is None or round(ratio) <= 1 else round(ratio)

    @property
    def title(self) -> str:
        """Return the title of the pattern that would serve the queries; empty if none is known."""
        return gettext(PATTERNS[self.it.advice.pattern].title) if self.it.advice else ""

    @property
    def text(self) -> str:
        return gettext(PATTERNS[self.it.advice.pattern].text) if self.it.advice else ""

    @property
    def steps(self) -> list[str]:
        advice = self.it.advice
        if advice is None:
            return []
        facts = asdict(advice.copy) if advice.copy else {}
        return [gettext(step) % facts for step in PATTERNS[advice.pattern].steps]

    @property
    def writes_again(self) -> bool:
        return self.it.advice is not None and PATTERNS[self.it.advice.pattern].writes_again

    @property
    def writes(self) -> int:
        """Return how many writes a day second copies would add."""
        return round(self.writes_a_day)

    @cached_property
    def edit_address(self) -> str:
        return _edit_address(self.table, self.it.edit)

    @property
    def document_address(self) -> str:
        return _document_address(self.it.advice.pattern.value) if self.it.advice else ""


class DesignView:
    """Design of a table for display; ``root`` is the filter of a query that a reader asks about."""

    def __init__(self, design: Design, root: Filter | None = None) -> None:
        self.it, self.table, self._root = design, design.table, root
        self.shape, self.partitions = design.shape, design.shape.partitions

    @cached_property
    def findings(self) -> list[FindingView]:
        return [FindingView(it, self.table, self.shape) for it in self.it.findings]

    @cached_property
    def counts(self) -> list[tuple[WeightText, int]]:
        """Return the number of findings of each weight."""
        return [
            (text, number)
            for weight, text in WEIGHTS.items()
            if (number := sum(it.weight is weight for it in self.it.findings))
        ]

    @property
    def keys(self) -> list[tuple[str, list[FindingView]]]:
        """Return the findings about each key."""
        return [(key.value, [it for it in self.findings if it.key == key.value]) for key in KeyName]

    @property
    def classes(self) -> list[ClassView]:
        most = max((it.partitions for it in self.partitions.classes), default=1)
        return [
            ClassView(it.least, it.partitions, it.entities, 100 * it.partitions / most)
            for it in self.partitions.classes
        ]

    @property
    def largest(self) -> list[PartitionView]:
        return [
            PartitionView(
                _key_example(self.table, KeyName.PARTITION, it.key),
                it.entities,
                it.size,
                _percent(it.entities / self.partitions.entities),
            )
            for it in self.partitions.largest[:_FIRST]
        ]

    @property
    def kinds(self) -> list[KindView]:
        total = sum(it.entities for it in self.shape.kinds)
        scale = self.partitions.entities / total if total else 0.0
        return [
            KindView(it, self.table, round(it.entities * scale), _percent(it.entities / total))
            for it in self.shape.kinds
        ]

    @property
    def asked(self) -> QueryView | None:
        """Return the query that the reader asks about."""
        if self._root is None:
            return None
        described = describe_filter(self._root, self.shape, self.table)
        sent = next((it for it in self.it.queries if it.count.shape == described.count.shape), None)
        return self._view(sent or described)

    @property
    def queries(self) -> list[QueryView]:
        return [self._view(it) for it in self.it.queries[:_QUERIES]]

    @property
    def further_queries(self) -> int:
        return max(0, len(self.it.queries) - _QUERIES)

    @property
    def busiest(self) -> Example:
        return _key_example(self.table, KeyName.PARTITION, self.it.traffic.partition)

    @property
    def busiest_percent(self) -> float:
        return _percent(self.it.traffic.share)

    def _view(self, use: QueryUse) -> QueryView:
        return QueryView(use, self.table, self.it.writes_a_day, self.partitions.size)


@dataclass(frozen=True)
class SummaryView:
    """Table with its problems, for the list of an account."""

    it: TableSummary

    @property
    def table(self) -> Table:
        return self.it.table

    @cached_property
    def problems(self) -> list[tuple[str, int]]:
        """Return the titles of the problems, each with their number."""
        titles = Counter(gettext(it.kind.value.title) for it in self.it.problems)
        return list(titles.items())
