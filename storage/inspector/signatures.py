"""Search for the text that was signed: the right one with a mistake or two in it, or signed with another key."""

import binascii
import hmac
import re
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, Final, NamedTuple
from urllib.parse import quote, unquote

from storage.domain.requests.routes import SECONDARY
from storage.domain.values.names import DEVELOPMENT_ACCOUNT
from storage.inspector.facts import Facts, ManagedAccount
from storage.inspector.reports import Finding, Mistake, finding

_MANY: Final = 2  # mistakes in combination
_SIZE: Final = 32  # bytes of a signature
_LONGEST: Final = 256  # characters of a possible signature
_SEARCHED: Final = (
    8192  # characters of the signed text; a thousand variants of a longer one would take too long
)


@dataclass(frozen=True, slots=True)
class Draft:
    """A text to sign: formats of its lines, and the values of the fields that they name."""

    fields: Mapping[str, str]
    lines: tuple[str, ...]
    newline: str = "\n"
    has_final_newline: bool = False
    is_encoded: bool = False

    def write(self) -> bytes:
        fields = self.fields
        if self.is_encoded:
            fields = {name: quote(value, safe="/") for name, value in fields.items()}
        text = self.newline.join(line.format_map(fields) for line in self.lines)
        return (text + self.newline * self.has_final_newline).encode("utf-8", "surrogateescape")


@dataclass(frozen=True, slots=True)
class Variation:
    """A mistake in a draft: the fields that it changes, and other attributes."""

    mistake: Finding
    fields: Mapping[str, str] = field(default_factory=dict)
    others: Mapping[str, Any] = field(default_factory=dict)

    def apply(self, draft: Draft) -> Draft:
        return replace(draft, fields={**draft.fields, **self.fields}, **self.others)


def vary(mistake: Finding, fields: Mapping[str, str] | None = None, **others: Any) -> Variation:
    return Variation(mistake, fields or {}, others)


def vary_newlines(*, has_final_newline: bool) -> list[Variation]:
    return [
        vary(finding(Mistake.NEWLINE), newline="\r\n"),
        vary(finding(Mistake.ESCAPED_NEWLINE), newline="\\n"),
        vary(finding(Mistake.FINAL_NEWLINE), has_final_newline=not has_final_newline),
    ]


def other_accounts(account: str, facts: Facts) -> Iterator[tuple[str, Finding]]:
    """Yield the account names that a client may have signed instead."""
    for name in {account + SECONDARY, *facts.accounts, DEVELOPMENT_ACCOUNT} - {account}:
        mistake = Mistake.SECONDARY_ACCOUNT if name.endswith(SECONDARY) else Mistake.OTHER_ACCOUNT
        yield name, finding(mistake, account=name)


class Mac(NamedTuple):
    """A decoded signature, and what had to be corrected to decode it."""

    value: bytes
    corrected: tuple[Finding, ...] = ()


class SigningKey(NamedTuple):
    """A key to try; ``is_near`` keys belong to the account itself and are also tried with two mistakes."""

    value: bytes
    mistakes: tuple[Finding, ...] = ()
    is_near: bool = True


def search(
    draft: Draft,
    usual: Sequence[Variation],
    rare: Iterable[Variation],
    macs: Sequence[Mac],
    keys: Sequence[SigningKey],
    depth: int = _MANY,
) -> tuple[Finding, ...] | None:
    """Find the fewest mistakes that explain the signature: empty for a valid one, None if nothing explains it.

    At most ``depth`` of them concern the text. ``rare`` ones are not combined with others.
    """
    if sum(map(len, draft.fields.values())) > _SEARCHED:
        depth = 0
    for mistakes, changed in _vary(draft, usual, rare, depth) if macs else ():
        text = changed.write()
        for key in keys:
            if key.is_near or len(mistakes) < _MANY:
                computed = hmac.digest(key.value, text, "sha256")
                for mac in macs:
                    if hmac.compare_digest(computed, mac.value):
                        return (*mac.corrected, *key.mistakes, *mistakes)
    return None


def _vary(
    draft: Draft, usual: Sequence[Variation], rare: Iterable[Variation], depth: int
) -> Iterator[tuple[tuple[Finding, ...], Draft]]:
    """Yield the draft as it should be, then with one mistake, then with two."""
    yield (), draft
    if depth > 0:
        for variations in (usual, rare):
            for one in variations:
                yield (one.mistake,), one.apply(draft)
    if depth >= _MANY:
        for one, other in combinations(usual, 2):
            if one.mistake.mistake is not other.mistake.mistake:
                yield (one.mistake, other.mistake), other.apply(one.apply(draft))


# how a signature may have changed on its way, and how to restore it
_CORRECTIONS: Final[Sequence[tuple[Finding, Callable[[str], str]]]] = (
    (finding(Mistake.PLUS_AS_SPACE, name="sig"), lambda text: text.replace(" ", "+")),
    (finding(Mistake.ENCODED_TWICE, name="sig"), lambda text: unquote(text).replace(" ", "+")),
    (finding(Mistake.URL_SAFE_BASE64), lambda text: text.replace("-", "+").replace("_", "/")),
)
_HEXADECIMAL = re.compile(rb"[0-9a-fA-F]{64}")


def read_macs(signature: str) -> list[Mac]:
    """Decode a signature, as it is and corrected."""
    if len(signature) > 3 * _LONGEST:
        return []
    macs = list(_decode(signature, ()))
    for mistake, correct in _CORRECTIONS:
        if correct(signature) != signature:
            macs += _decode(correct(signature), (mistake,))
    return macs


def _decode(text: str, corrected: tuple[Finding, ...]) -> Iterator[Mac]:
    padded = text.rstrip("=") + "=" * (-len(text.rstrip("=")) % 4)
    try:
        value = b64decode(padded.encode(), validate=True)
    except (binascii.Error, ValueError):
        value = b""
    for raw in (text.encode(), value):
        if _HEXADECIMAL.fullmatch(raw):
            yield Mac(bytes.fromhex(raw.decode()), (*corrected, finding(Mistake.HEXADECIMAL)))
    if len(value) == _SIZE:
        yield Mac(value, corrected if padded == text else (*corrected, finding(Mistake.PADDING)))


def candidate_keys(account: ManagedAccount, facts: Facts) -> list[SigningKey]:
    """Return the valid keys first, then keys that people confuse with them."""
    keys = [SigningKey(key.value) for key in account.accepted_keys]
    keys += (
        SigningKey(key.value, (finding(Mistake.RETIRED_KEY, key=key.name),))
        for key in account.keys
        if not key.is_accepted
    )
    # the text of a key signs if a client forgets to decode it
    keys += (
        SigningKey(binascii.b2a_base64(key.value, newline=False), (finding(Mistake.KEY_NOT_DECODED),))
        for key in account.keys
    )
    if facts.development is not None:
        keys.append(SigningKey(facts.development.value, (finding(Mistake.DEVELOPMENT_KEY),)))
    keys += (
        SigningKey(
            key.value, (finding(Mistake.OTHER_ACCOUNT_KEY, key=key.name, account=other.name),), is_near=False
        )
        for other in facts.accounts.values()
        if other.name != account.name
        for key in other.keys
    )
    return list({key.value: key for key in reversed(keys)}.values())[::-1]
