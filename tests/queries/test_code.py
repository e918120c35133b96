"""Queries as code: for every user with a placeholder for the key, for some with a token of its own."""

import re
from datetime import timedelta
from html import unescape

import pytest
from django.urls import reverse

from console.snippets import LANGUAGES
from storage.models import Activity, RegisteredSas
from storage.tables import tables


@pytest.fixture
def address(account):
    tables.create(account, "People")
    return reverse("queries:code", args=("acme", "People"))


def code_of(response):
    (found,) = re.findall(r'<pre class="snippet"[^>]*>(.*?)</pre>', response.content.decode(), re.DOTALL)
    return unescape(found)


def test_shows_the_query_of_the_address(visit, address):
    client = visit("victor")
    for language in list(LANGUAGES):
        response = client.get(address, {"f": "Age ge 30", "s": "Name", "top": "25", "lang": language})
        code = code_of(response)
        assert all(word in code for word in ("Age ge 30", "Name", "25", "People")), language
        assert "http://testserver/acme" in code or language == "az", language
        assert response["Cache-Control"].startswith("max-age=0"), language


def test_reads_entities_by_their_keys_where_that_is_all(visit, address):
    text = "PartitionKey eq 'a' and (RowKey eq '1' or RowKey eq '2')"
    victor = visit("victor")
    assert "ThreadPoolExecutor" in code_of(victor.get(address, {"f": text}))
    assert "get_entity('a', '1')" in code_of(
        victor.get(address, {"f": "PartitionKey eq 'a' and RowKey eq '1'"})
    )


def test_leaves_out_what_only_the_console_understands_and_says_so(visit, address):
    response = visit("victor").get(address, {"f": "contains(Name,'<b>') and Age ge 30", "sort": "Name"})
    assert "contains" not in code_of(response)
    assert "Age ge 30" in code_of(response)
    content = response.content.decode()
    assert "<code>contains(Name,&#x27;&lt;b&gt;&#x27;)</code>" in content
    assert "not on Azure" in content


def test_says_when_azure_would_refuse_the_code(visit, address):
    text = " or ".join(f"not (Age eq {age})" for age in range(16))
    victor = visit("victor")
    content = victor.get(address, {"f": text}).content.decode()
    assert "16 comparisons; Azure allows 15 in a filter" in content
    assert "not on Azure" not in victor.get(address, {"f": "Age eq 1"}).content.decode()


def test_writes_a_token_of_an_hour_into_it_for_those_who_manage_access(now, visit, proven, address):
    eve = visit("eve")
    assert "Include a SAS token" not in eve.get(address).content.decode()
    assert eve.post(address).status_code == 403
    assert visit("max").post(address).status_code == 302
    max_ = proven("max")
    assert "Include a SAS token" in max_.get(address).content.decode()

    response = max_.post(f"{address}?f=Age+ge+30&lang=curl")

    (issued,) = RegisteredSas.objects.all()
    assert dict(issued.parameters)["sp"] == "r"
    assert dict(issued.parameters)["tn"] == "People"
    assert issued.expires_at == now.replace(microsecond=0) + timedelta(hours=1)
    (signature,) = re.findall(r"sig=([^\"&]+)", code_of(response))
    assert response["Cache-Control"].startswith("max-age=0")
    kept = str(list(Activity.objects.values())) + str(list(RegisteredSas.objects.values()))
    assert signature not in kept
    assert signature not in max_.get(address).content.decode()
