"""Masking rules by which a branch replaces personal values, and suggestions for them."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Self

from storage.domain.entities.entity import KEY_PROPERTIES
from storage.domain.refusals import Reason, Refused

CONSTANT_LIMIT: Final = 200  # characters
_CONSTANT = re.compile(r"[ !#-\[\]-~]*")  # characters that JSON does not escape


class Mask(StrEnum):
    """Method of masking a value. Equal values get equal replacements, unless they are blanked or set to a constant."""

    HASH = "hash"  # a String by h: and 20 digits, a number or Guid by another one
    NAME = "name"  # by a made-up name
    EMAIL = "email"  # by an address at example.com
    PHONE = "phone"  # by other digits in the same form
    BLANK = "blank"  # by an empty String, a zero, and so on
    CONSTANT = "constant"  # by a text
    REMOVE = "remove"
    KEEP = "keep"


class MaskingError(Refused, ValueError):
    """Reason why masking rules are invalid."""


@dataclass(frozen=True, slots=True)
class MaskingRule:
    """Masking rule for one property; ``text`` is the replacement of the constant mask."""

    mask: Mask
    text: str = ""

    @classmethod
    def read(cls, written: str) -> Self:
        """Parse a rule such as `hash` or `constant:text`; raises MaskingError."""
        name, _, text = written.partition(":")
        if name not in Mask._value2member_map_ or (text and name != Mask.CONSTANT):
            names = ", ".join(Mask)
            raise MaskingError(Reason.UNKNOWN_MASK, text=written, masks=names)
        if len(text) > CONSTANT_LIMIT or not _CONSTANT.fullmatch(text):
            raise MaskingError(Reason.MASKING_CONSTANT, most=CONSTANT_LIMIT)
        return cls(Mask(name), text)

    def __str__(self) -> str:
        return f"{self.mask}:{self.text}" if self.mask is Mask.CONSTANT else self.mask.value


# by property, and those by the name of the table
Rules = Mapping[str, MaskingRule]
TableRules = Mapping[str, Rules]


def read_rules(written: Mapping[str, str]) -> dict[str, MaskingRule]:
    """Parse the rules of a table by property, without those that keep values; raises MaskingError."""
    rules = {name: MaskingRule.read(text) for name, text in written.items()}
    for name in KEY_PROPERTIES:
        if name in rules and rules[name].mask not in (Mask.HASH, Mask.KEEP):
            raise MaskingError(Reason.KEY_MASK, property=name)
    if "Timestamp" in rules:
        raise MaskingError(Reason.TIMESTAMP_MASK)
    return {name: rule for name, rule in rules.items() if rule.mask is not Mask.KEEP}


_EMAIL = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+")
_PEOPLE: Final = "first|last|full|sur|given|family|middle|nick|maiden|user|display|contact|customer"
_NUMBERS: Final = r"iban|ssn|passport|national_?id|licen[cs]e|(card|account|tax)_?(no|number|id)"
_PLACES: Final = "street|address|birth|^dob$|zip|postal|password|secret"
_PERSON = re.compile(
    "^(customer|client|buyer|recipient|employee|author|owner|person|patient|student|member|holder|contact|assignee)$",
    re.IGNORECASE,
)
# such as Zoë O’Brien, and 王小明
_FULL_NAME = re.compile("[^\\W\\d_]+([ .'’-]+[^\\W\\d_]+)+|[\u4e00-\u9fff]{2,4}")
_BY_NAME: Final = tuple(
    (re.compile(pattern, re.IGNORECASE), mask)
    for pattern, mask in (
        ("e?mail", Mask.EMAIL),
        ("phone|mobile|^tel|telefon|fax", Mask.PHONE),
        (f"^({_PEOPLE})?_?name$", Mask.NAME),
        (_NUMBERS, Mask.HASH),
        (_PLACES, Mask.BLANK),
    )
)


def propose(name: str, examples: Iterable[object]) -> Mask | None:
    """Suggest a mask for a property whose name or sample values look personal; None if nothing does."""
    examples = list(examples)
    if any(isinstance(value, str) and _EMAIL.fullmatch(value) for value in examples):
        return Mask.HASH if name in KEY_PROPERTIES else Mask.EMAIL
    if name in KEY_PROPERTIES:
        return None
    if _PERSON.search(name) and any(isinstance(it, str) and _FULL_NAME.fullmatch(it) for it in examples):
        return Mask.NAME
    return next((mask for pattern, mask in _BY_NAME if pattern.search(name)), None)
