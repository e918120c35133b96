"""Bearer tokens against keys made here, from a file and from a real server on loopback."""

import asyncio
import hmac
import json
import logging
import time
from contextlib import suppress
from datetime import datetime
from random import Random

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from storage.access import identity as module
from storage.access import key_set
from storage.access.identity import CLOCK_SKEW, SIZE_LIMIT, Identity
from storage.access.key_set import PAUSE, STALE
from storage.domain.access.grants import OWNER, ROLES
from storage.domain.access.identity import Trust
from storage.domain.errors import AuthenticationFailed, InvalidAuthenticationInfo, ServerBusy
from tests.cost import costs_less_than
from tests.issuer import (
    AUDIENCE,
    CONFIGURATION,
    CONTRIBUTOR,
    EC_KEY,
    ED_KEY,
    ISSUER,
    OTHER_KEY,
    READER,
    RSA_KEY,
    claims,
    jwk,
    segment,
    serving,
    token,
)

WEAK_KEY = rsa.generate_private_key(65537, 1024)


@pytest.fixture
def keys(tmp_path):
    """Write the file of the issuer's keys; a test that needs other keys overwrites it."""
    file = tmp_path / "keys.json"
    write_keys(file, jwk(RSA_KEY, "one"), jwk(EC_KEY, "two"), jwk(ED_KEY, "three"))
    return file


def write_keys(file, *found):
    file.write_text(json.dumps({"keys": found}))


@pytest.fixture
def identity(keys):
    return Identity(trust(keys))


def trust(where, **changes):
    return Trust(**{"issuer": ISSUER, "audiences": (AUDIENCE,), "keys": str(where), **changes})


async def ask(identity, text, account="account1", now=None):
    return await identity.grant(text, account, time.time() if now is None else now)


async def detail_of(identity, text, error=AuthenticationFailed):
    with pytest.raises(error) as refusal:
        await ask(identity, text)
    assert len(text) < 4 or text not in repr(refusal.value.details)
    return refusal.value.details["AuthenticationErrorDetail"]


async def test_grants_what_the_role_allows(identity):
    assert await ask(identity, token()) == (ROLES[READER], "ada")
    assert await ask(identity, token(roles=[CONTRIBUTOR])) == (ROLES[CONTRIBUTOR], "ada")
    # only account keys may read the rows of deleted tables
    assert [grant.reads_deleted_tables for grant in (OWNER, *ROLES.values())] == [True, False, False, False]


@pytest.mark.parametrize(
    ("key", "kid", "algorithms"),
    [
        (RSA_KEY, "one", ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"]),
        (EC_KEY, "two", ["ES256"]),
        (ED_KEY, "three", ["EdDSA"]),
    ],
)
async def test_accepts_every_algorithm_of_a_key(identity, key, kid, algorithms):
    for algorithm in algorithms:
        assert (await ask(identity, token(key, kid, algorithm)))[1] == "ada"


async def test_a_key_that_names_its_algorithm_is_good_for_no_other(keys, identity):
    write_keys(keys, jwk(RSA_KEY, "one", alg="PS256"))

    assert (await ask(identity, token(algorithm="PS256")))[1] == "ada"
    assert await detail_of(identity, token(algorithm="RS256")) == "Invalid token algorithm."


async def test_only_the_only_key_needs_no_name(keys, identity):
    assert await detail_of(identity, token(kid=None)) == "The token is signed with an unknown key."
    write_keys(keys, jwk(RSA_KEY, "one"))
    assert (await ask(Identity(trust(keys)), token(kid=None)))[1] == "ada"


async def test_tells_whose_token_it_is(identity):
    for changes, subject in (
        ({"oid": "1815"}, "1815"),
        ({"sub": None}, ""),
        ({"sub": "a" * 1000}, "a" * 256),
        ({"oid": {"x": 1}}, ""),
    ):
        assert (await ask(identity, token(**changes)))[1] == subject


async def test_accepts_each_audience(keys):
    audiences = (AUDIENCE, "https://account1.table.core.windows.net", "api://tablero")
    identity = Identity(trust(keys, audiences=audiences))
    for audience in (*audiences, ["x", AUDIENCE], ["api://tablero"]):
        assert (await ask(identity, token(aud=audience)))[1] == "ada"


async def test_finds_the_roles_in_another_claim(keys):
    identity = Identity(trust(keys, roles_claim="realm_access.roles"))
    assert await ask(identity, token(realm_access={"roles": [CONTRIBUTOR]})) == (ROLES[CONTRIBUTOR], "ada")
    refused, _ = await ask(identity, token())
    assert refused not in ROLES.values()


async def test_a_role_may_count_for_one_account_only(identity):
    text = token(roles=[f"{CONTRIBUTOR}@account1", READER])
    assert await ask(identity, text, "account1") == (ROLES[CONTRIBUTOR], "ada")
    assert await ask(identity, text, "account2") == (ROLES[READER], "ada")


# lifetime


@pytest.fixture
def now(monkeypatch):
    """Freeze the time at which tokens are verified."""
    seconds = int(time.time())

    class Clock(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.fromtimestamp(seconds, tz)

    monkeypatch.setattr(jwt.api_jwt, "datetime", Clock)
    return seconds


@pytest.mark.parametrize(
    ("claim", "sign", "detail"),
    [
        ("exp", -1, "Lifetime validation failed. The token is expired."),
        ("nbf", 1, "Lifetime validation failed. The token is not yet valid."),
        ("iat", 1, "Lifetime validation failed. The token is not yet valid."),
    ],
)
async def test_a_lifetime_ends_with_the_skew(identity, now, claim, sign, detail):
    assert (await ask(identity, token(**{claim: now + sign * (CLOCK_SKEW - 5)})))[1] == "ada"
    assert await detail_of(identity, token(**{claim: now + sign * (CLOCK_SKEW + 2)})) == detail


async def test_refuses_a_token_without(identity):
    for claim in ("exp", "iat", "iss", "aud"):
        assert await detail_of(identity, token(**{claim: None})) == f"The token has no {claim}."
    assert (await ask(identity, token(nbf=None)))[1] == "ada"


# forged tokens


@pytest.mark.parametrize(
    ("changes", "detail"),
    [
        *(
            ({"iss": issuer}, "Invalid token issuer.")
            for issuer in (f"{ISSUER}/", ISSUER.rpartition("/")[0], ISSUER.upper())
        ),
        *(
            ({"aud": audience}, "Invalid token audience.")
            for audience in (
                f"{AUDIENCE}.evil.example",
                f"{AUDIENCE}/",
                [AUDIENCE.upper()],
                {AUDIENCE: 1},
                [AUDIENCE, 5],
            )
        ),
        *(
            ({"kid": kid}, "The token is signed with an unknown key.")
            for kid in ("none such", "", "../../../../etc/passwd", "https://evil.example/keys.json", "ONE")
        ),
        ({"kid": "two"}, "Invalid token algorithm."),
        (
            {"kid": "two", "key": ec.generate_private_key(ec.SECP256K1()), "algorithm": "ES256K"},
            "Invalid token algorithm.",
        ),
        ({"key": OTHER_KEY}, "Invalid token signature."),
        ({"key": OTHER_KEY, "headers": {"jku": "https://evil.example"}}, "Invalid token signature."),
        ({"key": OTHER_KEY, "headers": {"jwk": jwk(OTHER_KEY, "one")}}, "Invalid token signature."),
    ],
)
async def test_refuses(identity, changes, detail):
    assert await detail_of(identity, token(**changes)) == detail


async def test_refuses_the_algorithm(identity):
    _, payload, signature = token().split(".")
    texts = [
        jwt.encode(claims(), None, algorithm="none", headers={"kid": "one"}),
        *(
            ".".join([segment({"alg": alg, "kid": "one"}), payload, signature])
            for alg in ("None", "nOnE", "", "RS1", "hs256")
        ),
    ]
    # signed with the public key as a secret
    public = RSA_KEY.public_key().public_bytes
    for secret in (
        public(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo),
        public(serialization.Encoding.DER, serialization.PublicFormat.PKCS1),
    ):
        text = f"{segment({'alg': 'HS256', 'typ': 'JWT', 'kid': 'one'})}.{segment(claims())}"
        texts.append(f"{text}.{segment(hmac.digest(secret, text.encode(), 'sha256'))}")
    for text in texts:
        assert await detail_of(identity, text) == "Invalid token algorithm."


async def test_refuses_a_token_whose_claims_were_changed(identity):
    header, _, signature = token().split(".")
    text = ".".join([header, segment(claims(roles=[CONTRIBUTOR])), signature])
    assert await detail_of(identity, text) == "Invalid token signature."


async def test_no_change_of_a_token_gets_in(identity):
    random = Random(1815)
    text = token()
    refused = 0
    for _ in range(1000):
        place, character = random.randrange(len(text)), chr(random.choice([*range(33, 127), 255]))
        changed = (
            text[:place] + random.choice(["", character, character * 3]) + text[place + random.randrange(3) :]
        )
        if changed.rstrip("=") != text:  # some issuers pad, and the library lets them
            with pytest.raises((AuthenticationFailed, InvalidAuthenticationInfo)):
                await ask(identity, changed)
            refused += 1
    assert refused > 800


@pytest.mark.parametrize(
    "jwks",
    [
        [{"kty": "oct", "kid": "one", "alg": "HS256", "k": segment(b"k" * 64)}],
        [jwk(WEAK_KEY, "one")],
        [jwk(RSA_KEY, "one", use="enc")],
        [jwk(RSA_KEY, 7)],
        [jwk(RSA_KEY, "one", alg="RSA-OAEP")],
        [jwk(RSA_KEY, "one", alg=["RS256"])],
        [jwk(RSA_KEY, "one", kty="EC")],
        [{"kid": "one"}, "one", None, 5, []],
        [],
    ],
)
async def test_a_set_without_a_key_that_signs_is_none(keys, identity, jwks):
    write_keys(keys, *jwks)
    with pytest.raises(ServerBusy):
        await ask(identity, token())


async def test_malformed_sets_of_keys_make_the_service_unavailable(keys):
    for text in ("", "[]", '{"keys": 5}', '{"keys": {}}', "{", "[" * 100_000, "\ud800"):
        keys.write_bytes(text.encode("utf-8", "surrogatepass"))
        with pytest.raises(ServerBusy):
            await ask(Identity(trust(keys)), token())


# text that is not a token


async def test_tells_what_is_no_token(identity):
    for text in [
        "", ".", "..", "...", "a.b.c", "abc", "é.é.é", "a" * (SIZE_LIMIT + 1),
        f"{segment([])}.{segment({})}.",
        f"{segment({'alg': 'RS256', 'kid': 5})}.{segment({})}.AAAA",
        f"{segment({'alg': 'RS256', 'kid': ['one']})}.{segment({})}.AAAA",
        f"{segment({'alg': 'RS256', 'kid': 'one', 'crit': ['x']})}.{segment({})}.AAAA",
        f"{segment({'alg': 'RS256', 'kid': 'one', 'b64': False, 'crit': ['b64']})}..AAAA",
        f"{segment(b'[' * 9000)}.{segment({})}.AAAA",
        f"{segment(b'{')}.{segment({})}.AAAA",
        f"{token()}.AAAA", f"{token()}, Bearer {token()}",
        token().replace(".", " ."), f"{token()}\n", f"Bearer {token()}",
    ]:  # fmt: skip
        await detail_of(identity, text, InvalidAuthenticationInfo)


@pytest.mark.parametrize("claim", ["exp", "nbf", "iat", "sub", "jti", "iss", "aud", "roles"])
async def test_no_claim_of_an_odd_kind_breaks_anything(keys, claim):
    for value in ([], {}, "x", 1e400, -1e400, 1e300, True, [[]], "\ud800", 10**4000):
        text = token(**{claim: value}) if claim != "iss" else _signed(claims() | {"iss": value})
        for trusted in (trust(keys), Trust()):
            with suppress(AuthenticationFailed, InvalidAuthenticationInfo):
                await ask(Identity(trusted), text)


def _signed(payload):
    signed = f"{segment({'alg': 'RS256', 'kid': 'one'})}.{segment(payload)}"
    return f"{signed}.{segment(jwt.get_algorithm_by_name('RS256').sign(signed.encode(), RSA_KEY))}"


async def test_no_token_comes_into_the_log(keys, identity, caplog):
    caplog.set_level(logging.DEBUG)
    texts = [token(), token(key=OTHER_KEY), token(kid="other"), token(exp=1), "a.b.c"]
    for text in texts:
        for path in (str(keys), "/no/such/file"):
            with suppress(AuthenticationFailed, InvalidAuthenticationInfo, ServerBusy):
                await ask(Identity(trust(path)), text)
    assert not any(part in caplog.text for text in texts[:4] for part in text.split("."))


# the emulator's way


async def test_without_an_issuer_accepts_any_token_that_has_not_expired(now):
    identity = Identity(Trust())
    assert await ask(identity, jwt.encode(claims(iss="x"), "s" * 32, algorithm="HS256")) == (OWNER, "ada")
    assert await ask(identity, token(key=OTHER_KEY, aud=None)) == (OWNER, "ada")
    expired = token(exp=now - CLOCK_SKEW - 1)
    assert await detail_of(identity, expired) == "Lifetime validation failed. The token is expired."
    early = token(nbf=now + CLOCK_SKEW + 2)
    assert await detail_of(identity, early) == "Lifetime validation failed. The token is not yet valid."
    assert await detail_of(identity, token(exp=None)) == "The token has no exp."
    await detail_of(identity, "a.b.c", InvalidAuthenticationInfo)


# memory


async def test_a_token_that_came_before_is_not_verified_again_until_it_ends(identity, monkeypatch):
    end = int(time.time()) + 60
    text = token(exp=end)
    await ask(identity, text)
    monkeypatch.setattr(module.jwt, "decode", None)

    with costs_less_than(0.2):  # 200 us each, where reading one takes several times that
        for _ in range(1000):
            assert await ask(identity, text, now=end + CLOCK_SKEW - 1) == (ROLES[READER], "ada")
    with pytest.raises(TypeError):
        await ask(identity, text, now=end + CLOCK_SKEW)


async def test_remembers_only_so_many(identity, monkeypatch):
    monkeypatch.setattr(module, "REMEMBERED", 3)
    first = token(sub="0")
    await ask(identity, first, account="x" * 10_000)
    for number in range(1, 5):
        await ask(identity, token(sub=str(number)))
        await ask(identity, first)
    assert len(identity._known) == 3
    assert sum(map(len, identity._known)) < 300
    assert not any(first.encode() in repr(known).encode() for known in identity._known.items())


async def test_many_at_once(identity):
    texts = [token(sub=str(number), roles=[READER if number % 2 else CONTRIBUTOR]) for number in range(20)]
    result = await asyncio.gather(*(ask(identity, text) for text in texts * 10))
    assert [subject for _, subject in result] == [str(number) for number in range(20)] * 10
    assert {grant for grant, _ in result} == {ROLES[READER], ROLES[CONTRIBUTOR]}


# keys that change


async def test_a_new_key_is_found_when_a_token_names_it(keys, identity):
    begin = time.time()
    await ask(identity, token(), now=begin)
    write_keys(keys, jwk(RSA_KEY, "one"), jwk(OTHER_KEY, "next"))

    assert (await ask(identity, token(OTHER_KEY, "next"), now=begin + PAUSE))[1] == "ada"


async def test_strangers_cannot_have_the_keys_fetched_all_the_time(issuer):
    identity = Identity(trust(f"{issuer.url}/keys"))
    begin = time.time()
    for number in range(100):
        with pytest.raises(AuthenticationFailed):
            await ask(identity, token(kid=str(number)), now=begin + number / 10)
    assert issuer.asked == ["/keys"]


async def test_a_key_that_is_taken_away_ends_its_tokens(keys, identity):
    begin, text = time.time(), token()
    await ask(identity, text, now=begin)
    write_keys(keys, jwk(OTHER_KEY, "next"))
    later = begin + key_set.FRESH + 1

    assert (await ask(identity, text, now=later))[1] == "ada"  # the keys are fetched on the side
    await identity._keys._loading

    with pytest.raises(AuthenticationFailed):
        await ask(identity, text, now=later)


async def test_removed_keys_are_refused_after_a_quiet_period(keys, identity):
    begin, text = time.time(), token(exp=int(time.time()) + 9000)
    await ask(identity, text, now=begin)
    write_keys(keys, jwk(OTHER_KEY, "next"))

    tries = [ask(identity, text, now=begin + key_set.QUIET + 1) for _ in range(3)]
    result = await asyncio.gather(*tries, return_exceptions=True)

    assert [type(error) for error in result] == [AuthenticationFailed] * 3


async def test_keys_that_cannot_be_fetched_again_are_good_for_a_while(keys, identity):
    begin, remembered = time.time(), token(exp=int(time.time()) + 9000)
    await ask(identity, remembered, now=begin)
    keys.unlink()

    for text, subject in ((remembered, "ada"), (token(sub="bob"), "bob")):
        assert (await ask(identity, text, now=begin + STALE - 60))[1] == subject
    with pytest.raises(ServerBusy):
        await ask(identity, token(kid="next"), now=begin + STALE - 60)
    for text in (remembered, token(sub="eve")):
        with pytest.raises(ServerBusy):
            await ask(identity, text, now=begin + STALE + 60)


# an issuer on the network


@pytest.fixture
def issuer(monkeypatch):
    monkeypatch.setattr(key_set, "TIMEOUT", 60)
    with serving() as found:
        yield found


async def test_fetches_the_keys_once_for_all_even_if_the_first_leaves(issuer):
    identity = Identity(trust(f"{issuer.url}/keys"))
    issuer.released.clear()
    waiting = [asyncio.create_task(ask(identity, token(sub=str(number)))) for number in range(20)]
    await asyncio.sleep(0.1)
    assert not any(task.done() for task in waiting)
    waiting[0].cancel()
    await asyncio.sleep(0)
    issuer.released.set()

    assert [subject for _, subject in await asyncio.gather(*waiting[1:])] == [str(n) for n in range(1, 20)]
    assert waiting[0].cancelled()
    assert issuer.asked == ["/keys"]


async def test_asks_the_issuer_where_its_keys_are(issuer):
    name = f"{issuer.url}/tenant/v2.0"
    issuer.has(f"/tenant/v2.0{CONFIGURATION}", {"issuer": name, "jwks_uri": f"{issuer.url}/keys"})

    identity = Identity(trust("", issuer=name))

    assert (await ask(identity, token(iss=name)))[1] == "ada"
    assert issuer.asked == [f"/tenant/v2.0{CONFIGURATION}", "/keys"]


@pytest.mark.parametrize(
    "configuration",
    [
        {"issuer": "{url}", "jwks_uri": "http://keys.example/keys"},
        {"issuer": "{url}", "jwks_uri": "file:///etc/passwd"},
        {"issuer": "{url}", "jwks_uri": "keys"},
        {"issuer": "{url}"},
        {"issuer": "https://evil.example", "jwks_uri": "{url}/keys"},
        {"jwks_uri": "{url}/keys"},
        [],
        "{",
    ],
)
async def test_refuses_a_configuration(issuer, configuration):
    text = json.dumps(configuration).replace("{url}", issuer.url).encode()
    issuer.has(CONFIGURATION, text)
    with pytest.raises(ServerBusy):
        await ask(Identity(trust("", issuer=issuer.url)), token(iss=issuer.url))
    assert issuer.asked == [CONFIGURATION]


@pytest.mark.parametrize("status", [302, 404, 500])
async def test_keys_come_with_200_or_not_at_all(issuer, status):
    issuer.has("/moved", b"", status, Location=f"{issuer.url}/keys")
    with pytest.raises(ServerBusy):
        await ask(Identity(trust(f"{issuer.url}/moved")), token())
    assert issuer.asked == ["/moved"]


async def test_keys_without_end_are_none(issuer, monkeypatch):
    monkeypatch.setattr(key_set, "SIZE_LIMIT", 100)
    with pytest.raises(ServerBusy):
        await ask(Identity(trust(f"{issuer.url}/keys")), token())


async def test_an_issuer_that_is_silent_is_given_up(issuer, monkeypatch, caplog):
    issuer.released.clear()
    identity = Identity(trust(f"{issuer.url}/keys"))
    begin = time.time()
    with monkeypatch.context() as patch:
        patch.setattr(key_set, "TIMEOUT", 0.2)
        with pytest.raises(ServerBusy):
            await ask(identity, token(), now=begin)
    async with asyncio.timeout(60):
        while not issuer.asked:  # noqa: ASYNC110 - the event is the issuer's
            await asyncio.sleep(0.01)
    with pytest.raises(ServerBusy):
        await ask(identity, token(), now=begin + 1)  # at once, not asked again
    assert issuer.asked == ["/keys"]
    assert caplog.messages == [f"The keys of {ISSUER} cannot be fetched: timed out"]
    issuer.released.set()

    assert (await ask(identity, token(), now=begin + PAUSE))[1] == "ada"
