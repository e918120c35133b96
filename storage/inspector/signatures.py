"""Diagnosis of invalid signatures: altered in transit, made with another key, or for another string to sign.

Only common mistakes are tried. For all others, the report shows the string to sign, to compare with the
client's.
"""

import binascii
import hmac
import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple
from urllib.parse import unquote

from storage.domain.requests.routes import SECONDARY
from storage.domain.values.names import DEVELOPMENT_ACCOUNT
from storage.inspector.facts import Facts, ManagedAccount
from storage.inspector.mistakes import Mistake
from storage.inspector.reports import Finding, finding

_HEXADECIMAL: Final = re.compile("[0-9a-fA-F]{64}")


class SigningKey(NamedTuple):
    """Candidate signing key; ``mistake`` is None for an accepted key."""

    value: bytes
    mistake: Finding | None = None


class OtherText(NamedTuple):
    """String that clients sign by mistake."""

    value: bytes
    mistake: Finding


def explain_signature(
    signature: str, text: bytes, others: Iterable[OtherText], account: ManagedAccount, facts: Facts
) -> list[Finding]:
    """Return the mistakes that explain an invalid signature of ``text``, or UNKNOWN_KEY if none does."""
    spellings = [(signature.encode(), None), *_correct(signature)]
    signers = [(text, key.value, key.mistake) for key in candidate_keys(account, facts)]
    signers += [(other.value, key.value, other.mistake) for other in others for key in account.accepted_keys]
    for signed, key, mistake in signers:
        computed = binascii.b2a_base64(hmac.digest(key, signed, "sha256"), newline=False)
        for spelling, correction in spellings:
            if hmac.compare_digest(computed, spelling):
                return [it for it in (correction, mistake) if it is not None]
    return [finding(Mistake.UNKNOWN_KEY, account=account.name)]


def _correct(signature: str) -> Iterator[tuple[bytes, Finding]]:
    """Yield the possible originals of a signature that was altered in transit."""
    for corrected, mistake in (
        (signature.replace(" ", "+"), finding(Mistake.PLUS_AS_SPACE, name="sig")),
        (unquote(signature), finding(Mistake.ENCODED_TWICE, name="sig")),
        (signature.replace("-", "+").replace("_", "/"), finding(Mistake.URL_SAFE_BASE64)),
        (signature.rstrip("=") + "=", finding(Mistake.PADDING)),
    ):
        if corrected != signature:
            yield corrected.encode(), mistake
    if _HEXADECIMAL.fullmatch(signature):
        yield binascii.b2a_base64(bytes.fromhex(signature), newline=False), finding(Mistake.HEXADECIMAL)


def candidate_keys(account: ManagedAccount, facts: Facts) -> list[SigningKey]:
    """Return the accepted keys, then keys often confused with them."""
    keys = [SigningKey(key.value) for key in account.accepted_keys]
    keys += (
        SigningKey(key.value, finding(Mistake.RETIRED_KEY, key=key.name))
        for key in account.keys
        if not key.is_accepted
    )
    # the text of a key signs if a client forgets to decode it
    keys += (
        SigningKey(binascii.b2a_base64(key.value, newline=False), finding(Mistake.KEY_NOT_DECODED))
        for key in account.keys
    )
    if facts.development is not None:
        keys.append(SigningKey(facts.development.value, finding(Mistake.DEVELOPMENT_KEY)))
    keys += (
        SigningKey(key.value, finding(Mistake.OTHER_ACCOUNT_KEY, key=key.name, account=other.name))
        for other in facts.accounts.values()
        if other.name != account.name
        for key in other.keys
    )
    return keys


def confused_accounts(account: str, facts: Facts) -> Iterator[tuple[str, Finding]]:
    """Yield account names that a client may have signed by mistake."""
    for name in sorted({account + SECONDARY, *facts.accounts, DEVELOPMENT_ACCOUNT} - {account}):
        yield name, finding(Mistake.OTHER_ACCOUNT, account=name)


def with_other_newlines(text: bytes) -> Iterator[OtherText]:
    yield OtherText(text.replace(b"\n", b"\r\n"), finding(Mistake.NEWLINE))
    yield OtherText(text.replace(b"\n", b"\\n"), finding(Mistake.ESCAPED_NEWLINE))
    for other in (text + b"\n", text.removesuffix(b"\n")):
        yield OtherText(other, finding(Mistake.FINAL_NEWLINE))
