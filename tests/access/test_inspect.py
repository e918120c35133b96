"""The inspector of pasted credentials: it names the mistake and stores nothing."""

import logging
import re
from dataclasses import replace
from html import unescape

import pytest
from django.utils import translation

from console.access.sas import labels
from console.models import SavedUrl
from console.site.sentences import translate
from storage.accounts import accounts, sealed_keys
from storage.domain.sas import TableSas, sign, write
from storage.inspector import Mistake, UnreadableText
from storage.inspector.reports import FieldKind, Finding
from storage.inspector.sentences import describe
from storage.models import Activity, RegisteredSas, SeenCredential
from storage.tables import tables

INSPECT = "/ui/inspect/"
HTMX = {"HX-Request": "true"}
TOKEN = TableSas(
    version="2019-02-02",
    table="people",
    permissions="r",
    expiry="2099-01-01T00:00:00Z",
    start_partition="a",
    end_partition="b",
)


@pytest.fixture
def table(account):
    return tables.create(account, "people")


@pytest.fixture
def keys(account):
    return sealed_keys.keys_of(account)


@pytest.fixture
def paste(visit):
    """Return `paste("max", text)`, which pastes a text as max and returns the answer."""

    def paste(name, text, **more):
        return visit(name).post(INSPECT, {"text": text, **more}, headers=HTMX)

    return paste


def shown(answer):
    """Return the text of the page on one line, as a reader sees it."""
    text = re.sub(r"<[^>]+>", "", answer.content.decode()).replace("&#x27;", "'").replace("&quot;", '"')
    return " ".join(text.split())


def test_a_form_that_anybody_may_use(visit):
    page = visit("sam").get(INSPECT)
    assert page.status_code == 200
    assert "no-store" in page["Cache-Control"]
    assert page.context["managed"] == []
    max_ = visit("max")
    assert [account.name for account in max_.get(INSPECT).context["managed"]] == ["acme"]
    assert max_.get(INSPECT + "?account=acme").context["chosen"] == "acme"
    assert visit("victor").get(INSPECT + "?account=acme").context["chosen"] == ""


def test_s5_a_good_token_is_explained(paste, table, keys):
    answer = paste("max", write(sign(TOKEN, "acme", keys[1])))
    assert answer.status_code == 200
    assert b"<html" not in answer.content
    text = shown(answer)
    assert "This is accepted Signed with key2 of acme." in text
    assert "Can query entities in people with PartitionKey from a to b" in text
    assert "Proves that the token was created with the account key." in text
    assert "Problems" not in text
    assert 'data-copy="r\n\n2099-01-01T00:00:00Z\n/table/acme/people' in answer.content.decode()


def test_s5_names_what_is_wrong_with_a_token(paste, table, keys):
    answer = paste("max", write(sign(replace(TOKEN, expiry="2020-01-01"), "acme", keys[0])), account="acme")
    assert "403 AuthenticationFailed" in shown(answer)
    assert "The token expired at 2020-01-01T00:00:00Z." in shown(answer)


def test_s5_names_a_wrong_key(paste, table, keys):
    assert "The signature doesn't match any key" in shown(
        paste("max", write(sign(TOKEN, "acme", b"?" * 64)), account="acme")
    )
    other = accounts.add("other")
    text = write(sign(TOKEN, "acme", sealed_keys.keys_of(other)[0]))
    # a user without access to the other account's keys does not learn that one of them signed the token
    assert "a different account" not in shown(paste("max", text, account="acme"))
    assert "It was signed with key1 of a different account, other." in shown(
        paste("ada", text, account="acme")
    )


def test_without_the_keys_all_but_the_signature_is_explained(paste, table, keys):
    expired = write(sign(replace(TOKEN, expiry="2020-01-01"), "acme", b"?" * 64))
    text = shown(paste("victor", f"http://testserver/acme/people?{expired}"))
    assert "Cannot check whether this is accepted" in text
    assert "which you cannot view. Ask: alice, max" in text
    assert "The token expired" in text
    assert "The signature doesn't match" not in text


def test_a_stranger_does_not_learn_which_accounts_there_are(paste, table, keys):
    for name in ["acme", "nothere"]:
        token = write(sign(TOKEN, name, b"?" * 64))
        text = shown(paste("sam", f"http://testserver/{name}/people?{token}"))
        assert f"Checking this requires the keys of {name}. Its maintainers can check it." in text, name
        assert "alice" not in text, name


def test_a_viewer_of_one_account_cannot_try_its_keys(paste, table, keys):
    good, bad = (write(sign(TOKEN, "acme", key)) for key in (keys[0], b"?" * 64))
    address = "http://testserver/acme/people?"
    first, second = (shown(paste("eve", address + token)) for token in (good, bad))
    assert re.sub(r"….{4}", "", first) == re.sub(r"….{4}", "", second)


def test_says_what_it_cannot_explain(paste):
    for text in ["", "hello"]:
        answer = paste("sam", text)
        assert answer.status_code == 422, text
        assert "Nothing to explain" in shown(answer), text


# secrets


def secrets_in(keys):
    """Texts that hold a secret, with the secret."""
    key = sealed_keys.encode_key(keys[0])
    token = sign(TOKEN, "acme", keys[0])
    mac = "m" * 43 + "="
    yield f"AccountName=acme;AccountKey={key};Foo={key};TableEndpoint=http://testserver/acme", key
    yield f"AccountName=acme;{key};TableEndpoint=http://testserver/acme", key
    yield f"http://testserver/acme/people?{write(token)}", token.signature
    yield f"GET /acme/people?{write(token)} HTTP/1.1\nHost: testserver", token.signature
    yield f"TableEndpoint=http://testserver/acme;SharedAccessSignature={write(token)}", token.signature
    yield f"GET /acme/people HTTP/1.1\nHost: testserver\nAuthorization: SharedKey acme:{mac}", mac
    yield f"curl http://testserver/acme/people -H 'Authorization: Bearer {mac}' --frob={mac}", mac


def test_no_secret_comes_back(visit, table, keys, caplog):
    client = visit("max")
    for text, secret in secrets_in(keys):
        with caplog.at_level(logging.DEBUG):
            answers = [client.post(INSPECT, {"text": text}, headers=headers) for headers in ({}, HTMX)]
        for answer in answers:
            assert answer.status_code == 200, text
            assert "no-store" in answer["Cache-Control"], text
            page = answer.content.decode()
            assert secret not in page, text
            assert secret not in page.replace("%2B", "+").replace("%2F", "/").replace("%3D", "="), text
            assert answer.context["text"] == "", text
        assert secret not in caplog.text, text


def test_nothing_is_kept(paste, table, keys):
    before = [model.objects.count() for model in (Activity, RegisteredSas, SeenCredential, SavedUrl)]
    for text, _ in secrets_in(keys):
        paste("max", text)
    assert [model.objects.count() for model in (Activity, RegisteredSas, SeenCredential, SavedUrl)] == before


def test_only_what_holds_no_secret_stays_in_the_field(visit, keys):
    text = "GET /acme/people HTTP/1.1\nHost: testserver"
    max_ = visit("max")
    page = max_.post(INSPECT, {"text": text}).content.decode()
    assert "GET /acme/people HTTP/1.1" in page
    assert "Nothing was stored" not in page
    # and nothing is read from the address
    key = sealed_keys.encode_key(keys[0])
    page = max_.get(INSPECT, {"text": f"AccountName=acme;AccountKey={key}"})
    assert key not in page.content.decode()
    assert "report" not in page.context


def test_markup_is_text(paste):
    answer = paste("max", "GET /<script>alert(1)</script>/people HTTP/1.1\nHost: <img src=x>\nX: <b>")
    assert b"<script>" not in answer.content
    assert b"<img src=x>" not in answer.content


# words


def test_every_part_of_a_report_has_words():
    assert set(labels.UNREADABLE_TEXTS) == set(UnreadableText)
    assert set(labels.FIELD_TEXTS) == set(FieldKind)


def sentence_of(mistake, value):
    """Return a mistake's sentence with the same value for each placeholder, and the number of these placeholders."""
    places = re.findall(r"%\((\w+)\)s", mistake.value)
    details = tuple((name, {"seconds": "7200"}.get(name, value)) for name in dict.fromkeys(places))
    return describe(Finding(mistake, details)), sum(name != "seconds" for name in places)


def test_sentences_hold_what_was_found_and_no_markup_of_it():
    for mistake in Mistake:
        sentence, number = sentence_of(mistake, "<i>&")
        told = translate(sentence)
        assert "%" not in re.sub(r"%2B|%252B", "", told)
        assert "<i>" not in told
        assert told.count("&lt;i&gt;&amp;") == number
        assert str(sentence).count("<i>&") == number


def test_both_doors_say_the_same():
    for mistake in Mistake:
        sentence, _ = sentence_of(mistake, "x")
        with translation.override("en"):
            told = re.sub(r"<[^>]+>", "", translate(sentence))
        assert unescape(told) == str(sentence)
        with translation.override("tr"):
            assert translate(sentence) != told


def test_a_detail_that_another_version_did_not_keep_is_left_out():
    sentence = describe(Finding(Mistake.PERMISSION, (("permissions", "r"), ("operation", "DeleteEntity"))))
    assert str(sentence) == "sp=r does not permit DeleteEntity, which needs …."
    assert translate(sentence).endswith("which needs ….")


@pytest.mark.parametrize(
    ("seconds", "told"), [("7140", "119 minutes"), ("7200", "2 hours"), ("172800", "2 days")]
)
def test_tells_how_far_a_clock_is_off(seconds, told):
    sentence = describe(Finding(Mistake.CLOCK_SKEW, (("seconds", seconds), ("now", "x"))))
    assert f"The date is {told} away" in translate(sentence)
    assert f"The date is {told} away" in str(sentence)
