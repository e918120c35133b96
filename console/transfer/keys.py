"""Key editor of an import: chips of columns, and advice."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Self

from django.http import QueryDict
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from console.site.tags import grouped
from console.site.typed_text import field_text
from storage.domain.values.numbers import read_number
from storage.tabular import key_proposals
from storage.tabular.key_proposals import KeyNote, KeyProposal, NoteKind
from storage.tabular.mapping import (
    GUID,
    ROW_NUMBER,
    ColumnMapping,
    MappingRefused,
    Template,
    can_be_in_template,
)
from storage.tabular.proposals import Proposal

_KEYS: Final = {"partition_key": "PartitionKey", "row_key": "RowKey"}
_SEPARATOR: Final = "-"
_MISSING: Final = _("Choose the %(key)s: press one of the proposals, or columns below.")
_CHIPS: Final = 12  # columns that are shown at once
_GENERATED: Final[Mapping[str, Promise]] = {
    ROW_NUMBER: _("row number"),
    GUID: _("new GUID"),
}
_NOTES: Final[Mapping[NoteKind, Promise]] = {
    NoteKind.DIFFERENT: _("%(key)s repeats: %(number)s values"),
    NoteKind.UNIQUE: _("%(key)s is unique"),
    NoteKind.UNIQUE_WITHIN: _("%(key)s is unique within each partition"),
    NoteKind.ONE_PARTITION: _("all entities are in one partition"),
    NoteKind.OWN_PARTITIONS: _("each entity is in its own partition"),
    NoteKind.REPEATED: _("%(number)s of %(rows)s rows repeat the keys of an earlier row"),
    NoteKind.MISSING: _("%(key)s is empty in %(number)s of %(rows)s rows"),
    NoteKind.FORBIDDEN: _("%(key)s is too long or contains / \\ # ? in %(number)s of %(rows)s rows"),
    NoteKind.SORTED_AS_TEXT: _("numbers are sorted as text: 10 comes before 9"),
    NoteKind.ROW_NUMBERS: _("another file has the same row numbers"),
    NoteKind.RANDOM: _("importing the file again creates new entities"),
}


@dataclass(frozen=True, slots=True)
class NoteView:
    """Note on a key; ``kind`` is a badge: ok, warn or danger."""

    text: str
    kind: str

    @classmethod
    def of_note(cls, note: KeyNote, template: str) -> Self:
        """Describe a note on the key of a template."""
        known = {"key": "".join(map(str, _labels(template)))}
        text = str(_NOTES[note.kind]) % {
            **known,
            "number": grouped(note.number),
            "rows": grouped(note.rows),
        }
        return cls(text, "danger" if note.is_serious else "warn" if note.is_against else "ok")


@dataclass(frozen=True, slots=True)
class ChipView:
    """Chip for a column or generated value of a key; ``value`` is sent when it is pressed."""

    value: str
    label: str | Promise
    is_pressed: bool
    is_generated: bool = False


@dataclass(frozen=True, slots=True)
class KeyView:
    """Key as chosen; ``separator`` is None if the texts between its columns differ."""

    name: str
    title: str
    template: str
    parts: Sequence[str | Promise]
    chips: Sequence[ChipView]
    separator: str | None
    notes: Sequence[NoteView]
    error: str

    @property
    def first_chips(self) -> list[ChipView]:
        """Return the likely chips and pressed ones."""
        columns = [chip for chip in self.chips if not chip.is_generated]
        return [chip for place, chip in enumerate(columns) if place < _CHIPS or chip.is_pressed]

    @property
    def other_chips(self) -> list[ChipView]:
        columns = [chip for chip in self.chips if not chip.is_generated]
        return [chip for chip in columns[_CHIPS:] if not chip.is_pressed]

    @property
    def generated_chips(self) -> list[ChipView]:
        return [chip for chip in self.chips if chip.is_generated]


@dataclass(frozen=True, slots=True)
class ProposalView:
    """Proposed keys; ``number`` is their index."""

    number: int
    proposal: KeyProposal
    is_chosen: bool

    @property
    def partition_key(self) -> list[str | Promise]:
        return _labels(self.proposal.partition_key)

    @property
    def row_key(self) -> list[str | Promise]:
        return _labels(self.proposal.row_key)

    @property
    def reason(self) -> str:
        """Return the arguments for and against the keys."""
        it = self.proposal
        keys = ((it.partition_key, it.partition_notes), (it.row_key, it.row_notes))
        return " · ".join(NoteView.of_note(note, template).text for template, notes in keys for note in notes)


def view_keys(
    mapping: ColumnMapping, proposal: Proposal, shown: Collection[str], *, is_required: bool = False
) -> list[KeyView]:
    """Return both keys with notes from the first rows, and errors for missing ones if they are required.

    Columns that are neither likely nor pressed have a chip if they are among those ``shown``.
    """
    notes: Mapping[str, Sequence[KeyNote]] = {}
    try:
        assessment = key_proposals.assess(mapping.partition_key, mapping.row_key, proposal.sample)
        notes = {"partition_key": assessment.partition_notes, "row_key": assessment.row_notes}
    except MappingRefused:  # the page shows it
        pass
    views = []
    for name, title in _KEYS.items():
        template = getattr(mapping, name)
        is_assessed = template and (name == "partition_key" or mapping.partition_key)
        views.append(
            KeyView(
                name,
                title,
                template,
                _labels(template),
                _chips(name, template, proposal, shown),
                _separator(template),
                [NoteView.of_note(note, template) for note in notes.get(name, ())] if is_assessed else [],
                str(_MISSING) % {"key": title} if is_required and not template else "",
            )
        )
    return views


def view_proposals(mapping: ColumnMapping, proposal: Proposal) -> list[ProposalView]:
    chosen = mapping.partition_key, mapping.row_key
    return [
        ProposalView(number, it, (it.partition_key, it.row_key) == chosen)
        for number, it in enumerate(proposal.keys.proposals)
    ]


def has_irregular_key(mapping: ColumnMapping) -> bool:
    """Return whether a key cannot be shown as chips, because of texts or errors."""
    return any(
        template and not _is_regular(template) for template in (mapping.partition_key, mapping.row_key)
    )


def _is_regular(template: str) -> bool:
    parts = _parts(template)
    return (len(parts) == 1 and parts[0][0]) or _separator(template) is not None


def _labels(template: str) -> list[str | Promise]:
    """Return the parts of a key template as display texts."""
    return [_GENERATED.get(part, part) if is_column else part for is_column, part in _parts(template)]


def _parts(template: str) -> tuple[tuple[bool, str], ...]:
    """Return the parts of a template; none if it is invalid."""
    try:
        return Template.read(template).parts
    except MappingRefused:
        return ()


def _chips(name: str, template: str, proposal: Proposal, shown: Collection[str]) -> list[ChipView]:
    pressed = {part for is_column, part in _parts(template) if is_column}
    likely = [
        part
        for it in proposal.keys.proposals
        for is_column, part in _parts(it.partition_key if name == "partition_key" else it.row_key)
        if is_column and part not in _GENERATED
    ]
    relevant = {*pressed, *likely, *shown}
    names = filter(can_be_in_template, dict.fromkeys((*likely, *proposal.names)))
    places = {it: place for place, it in enumerate(proposal.names)}
    chips = [
        ChipView(f"{name}:{places[it]}", it, it in pressed) for it in names if it in places and it in relevant
    ]
    generated = (ChipView(f"{name}:{it}", label, it in pressed, True) for it, label in _GENERATED.items())
    return [*chips, *generated]


def _separator(template: str) -> str | None:
    """Return the text between all columns of a key; None for one column or differing texts."""
    parts = _parts(template)
    columns = [part for is_column, part in parts if is_column]
    texts = [part for is_column, part in parts if not is_column]
    if len(columns) < 2:
        return None
    separator = texts[0] if texts else ""
    return separator if list(parts) == _joined(columns, separator) else None


def _joined(columns: Sequence[str], separator: str) -> list[tuple[bool, str]]:
    parts = [it for column in columns for it in ((False, separator), (True, column))][1:]
    return [it for it in parts if it != (False, "")]


def read_keys(
    sent: QueryDict, proposal: Proposal, now: ColumnMapping, base: ColumnMapping | None
) -> ColumnMapping:
    """Return the mapping with the keys and pressed chips of a form; raises MappingRefused.

    ``base`` is the mapping with which the form was rendered, if known.
    """
    views = view_proposals(now, proposal)
    pressed = next((it.proposal for it in views if str(it.number) == sent.get("keys")), None)
    if pressed is not None:
        return replace(now, partition_key=pressed.partition_key, row_key=pressed.row_key)
    chosen: dict[str, str] = {}
    for name in _KEYS:
        template = field_text(sent.get(name, ""))
        drawn = getattr(now if base is None else base, name)
        chosen[name] = getattr(now, name) if template == drawn else template
        separator = sent.get(f"separator:{name}")
        is_changed = separator is not None and separator != _separator(drawn)
        if separator is not None and is_changed and _separator(chosen[name]) is not None:
            columns = Template.read(chosen[name]).names
            chosen[name] = Template.of_parts(_joined(columns, separator)).text
    name, _, column = sent.get("toggle", "").partition(":")
    if name in chosen:
        part = column if column in _GENERATED else _find_name(column, proposal.names)
        if part:
            chosen[name] = _toggle(chosen[name], part)
    return replace(now, partition_key=chosen["partition_key"], row_key=chosen["row_key"])


def _find_name(number: str, names: Sequence[str]) -> str:
    place = read_number(number)
    return names[place] if place is not None and place < len(names) else ""


def _toggle(template: str, column: str) -> str:
    """Append a column to a key, or remove it."""
    parts = list(Template.read(template).parts)
    if (True, column) not in parts:
        separator = _separator(template)
        if parts and parts[-1][0]:
            parts.append((False, _SEPARATOR if separator is None else separator))
        return Template.of_parts(it for it in (*parts, (True, column)) if it != (False, "")).text
    place = parts.index((True, column))
    # with the text between the column and the one before, or after
    follows = place > 1 and parts[place - 2][0] and not parts[place - 1][0]
    is_first = not any(is_column for is_column, _ in parts[:place])
    is_followed = is_first and [is_column for is_column, _ in parts[place + 1 : place + 3]] == [False, True]
    del parts[place - follows : place + 1 + is_followed]
    return Template.of_parts(parts).text
