"""Predicted effects of policy changes on tokens, compared with the code that authorizes requests."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.domain import sas
from storage.domain.access.grants import Operation
from storage.domain.access.policies import AccessPolicy, SignedIdentifier
from storage.domain.errors import StorageError
from storage.domain.sas.known import KnownToken, TokenState
from storage.domain.sas.tokens import TableSas
from storage.editing.policy_effects import EffectKind, predict_effects

NOW = datetime(2026, 11, 21, 20, tzinfo=UTC)
OPERATIONS = {
    "r": Operation.QUERY_ENTITIES,
    "a": Operation.INSERT_ENTITY,
    "u": Operation.UPDATE_ENTITY,
    "d": Operation.DELETE_ENTITY,
}
LATER, SOON, PAST = (f"{day}T00:00:00.0000000Z" for day in ("2027-01-01", "2026-11-22", "2026-11-20"))


def token(identifier="p", **said):
    return KnownToken("f" * 64, TableSas("2019-02-02", "people", identifier=identifier, **said), key=1)


def policy(permission=None, expiry=None, start=None, identifier="p"):
    return SignedIdentifier(identifier, AccessPolicy(start, expiry, permission))


def effect(before, after, known):
    (found,) = predict_effects(before, after, [known], NOW)
    return found


def test_reports_gained_and_lost_permissions():
    result = effect([policy("ra", LATER)], [policy("dr", LATER)], token())
    assert (result.kind, result.gained, result.lost) == (EffectKind.NARROWED, "d", "a")
    result = effect([policy("r", LATER)], [policy("udr", LATER)], token())
    assert (result.kind, result.gained, result.lost) == (EffectKind.WIDENED, "ud", "")
    assert effect([policy("ru", LATER)], [policy("ur", LATER)], token()).kind is EffectKind.UNCHANGED


def test_reports_shifts_of_times():
    result = effect([policy("r", LATER)], [policy("r", SOON)], token())
    assert (result.kind, result.expiry.is_later) == (EffectKind.NARROWED, False)
    result = effect([policy("r", SOON)], [policy("r", LATER)], token())
    assert (result.kind, result.expiry.is_later) == (EffectKind.WIDENED, True)
    result = effect([policy("r", LATER)], [policy("r", LATER, start=SOON)], token())
    assert (result.kind, result.is_paused, result.after) == (
        EffectKind.NARROWED,
        True,
        TokenState.NOT_YET_VALID,
    )
    result = effect([policy("r", LATER, start=SOON)], [policy("r", LATER)], token())
    assert (result.kind, result.start.is_later) == (EffectKind.WIDENED, False)


@pytest.mark.parametrize(
    ("after", "known", "state"),
    [
        ([], token(), TokenState.ORPHANED),
        ([policy("r", LATER, identifier="P")], token(), TokenState.ORPHANED),
        ([policy("r", PAST)], token(), TokenState.EXPIRED),
        ([policy("r")], token(), TokenState.CONFLICTING),
        ([policy(None, LATER)], token(), TokenState.CONFLICTING),
        ([policy("r", LATER, start=PAST)], token(start="2026-11-01"), TokenState.CONFLICTING),
    ],
)
def test_reports_revoked_and_revived_tokens(after, known, state):
    before = [policy("r", LATER)]
    result = effect(before, after, known)
    assert (result.kind, result.before, result.after) == (EffectKind.REVOKED, TokenState.ACTIVE, state)
    assert (result.gained, result.lost, result.expiry) == ("", "", None)
    assert effect(after, before, known).kind is EffectKind.REVIVED


def test_the_worst_comes_first():
    blocked = replace(token(identifier="e"), is_blocked=True)
    unnamed = token(identifier="", permissions="r", expiry=LATER)
    tokens = [*(token(identifier=name) for name in "abcd"), blocked, unnamed]
    before = [policy("ra" if name == "c" else "r", LATER, identifier=name) for name in "abce"]
    after = [policy("r", LATER, identifier=name) for name in "acd"]
    results = [(it.known.identifier, it.kind) for it in predict_effects(before, after, tokens, NOW)]
    assert results == [
        ("b", EffectKind.REVOKED),
        ("c", EffectKind.NARROWED),
        ("d", EffectKind.REVIVED),
        ("a", EffectKind.UNCHANGED),
        ("e", EffectKind.UNCHANGED),
    ]


INSTANTS = st.sampled_from([None, "", PAST, SOON, LATER, "2026-11-21T20:00:00.0000000Z"])
LETTERS = st.sets(st.sampled_from("raud")).map("".join)
POLICIES = st.builds(AccessPolicy, INSTANTS, INSTANTS, st.none() | LETTERS)
SETS = st.dictionaries(st.sampled_from("pq"), POLICIES | st.none()).map(
    lambda found: [SignedIdentifier(name, policy) for name, policy in found.items()]
)
TOKENS = st.builds(
    token,
    st.sampled_from("pq"),
    start=st.sampled_from(["", "2026-11-20", SOON]),
    expiry=st.sampled_from(["", "2026-11-20", LATER]),
    permissions=LETTERS,
)


def allowed(known, identifiers, now):
    """Return the letters of the operations that a request with the token may perform."""
    policies = {it.identifier: it.policy or AccessPolicy() for it in identifiers}
    if known.identifier not in policies:
        return set()
    try:
        grant = sas.authorize(
            known.token, policies[known.identifier], now=now.timestamp(), scheme="https", address="::1"
        )
    except StorageError:
        return set()
    return {letter for letter, operation in OPERATIONS.items() if grant.allows(operation, "people")}


@given(SETS, SETS, TOKENS)
def test_predictions_match_authorization(before, after, known):
    result = effect(before, after, known)
    was, will_be = allowed(known, before, NOW), allowed(known, after, NOW)
    working = {TokenState.ACTIVE, TokenState.EXPIRES_SOON}
    assert (result.before in working, result.after in working) == (bool(was), bool(will_be))
    if was and will_be:
        assert (set(result.gained), set(result.lost)) == (will_be - was, was - will_be)
    if was and not will_be:
        assert result.kind is EffectKind.REVOKED or result.is_paused
    if result.kind is EffectKind.UNCHANGED:
        for moment in (NOW, NOW + timedelta(days=2), NOW + timedelta(days=400)):
            assert allowed(known, before, moment) == allowed(known, after, moment)
    if result.kind is EffectKind.REVOKED:
        assert not any(allowed(known, after, NOW + timedelta(days=days)) for days in (0, 2, 400))
