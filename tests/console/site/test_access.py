"""Access to every address of the console, by every role and method, on the same data."""

import re
from http.cookies import SimpleCookie
from itertools import cycle, groupby
from urllib.parse import urlsplit

import pytest
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.test import Client, RequestFactory
from django.urls import URLResolver, get_resolver, resolve, reverse

from console.site import roles
from console.site.access import account_required, admin_required
from storage.accounts import accounts, sealed_keys
from storage.accounts.accounts import NewAccount
from storage.domain.access.roles import LEAST_ROLE, Capability, Role, may
from tests.console.addresses import ANSWERS, ARGUMENTS, EVERYBODY, PAGES
from tests.console.markup import MAIN_NAVIGATION, find_faults

UNNAMED = {"", "ui", "ui/healthz", "ui/readyz", "ui/metrics"}  # redirects, and what machines ask

STREAMS = {"grid:live"}  # can only be tested on a server: tests/browser/test_live.py


def test_every_address_is_in_the_table():
    results = list(every(get_resolver().url_patterns))
    assert {str(pattern.pattern) for _, pattern in results if not pattern.name} <= UNNAMED
    # the addresses of the management API have a table of their own
    names = {
        f"{namespace}{pattern.name}"
        for namespace, pattern in results
        if pattern.name and not pattern.name.startswith("api-")
    }
    listed = set(ANSWERS) | STREAMS
    missing, others = sorted(names - listed), sorted(listed - names)
    assert not missing, f"tests/console/addresses.py: add {missing} to the table"
    assert not others, f"tests/console/addresses.py: remove {others} from the table"


def every(patterns, namespace=""):
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            yield from every(
                pattern.url_patterns, f"{pattern.namespace}:" if pattern.namespace else namespace
            )
        else:
            yield namespace, pattern


FORM = re.compile(r'<form\b(?=[^>]*method="post")[^>]*action="([^"]*)"[^>]*>(.*?)</form>', re.DOTALL)


def asked(answers):
    """Yield who asks, and the status: of those who get the same, the ones at the border to the others.

    Views ask for a role by a decorator, which lets through from a role on: see its tests below.
    """
    for status, alike in groupby(EVERYBODY, key=answers.get):
        least, *others = alike
        if status == 403:
            yield [least, *others][-1], status
            continue
        yield least, status
        if status == 200:
            if "victor" in others[:-1]:  # he sees accounts and has the fewest permissions
                yield "victor", status
            if others:
                yield others[-1], status


def part_of(name):
    """Return the part of the console to which an address belongs; names without a namespace are allauth's."""
    return name.rpartition(":")[0] or "sign-in"


@pytest.mark.parametrize("part", list(dict.fromkeys(map(part_of, ANSWERS))))
def test_every_address_answers_by_role_and_method(visit, add_entity, part):
    """Compare each answer with the table; the changes of one visitor are undone before the next.

    Refused requests ask for a part of a page, so that the answer is a sentence instead of a page. Those who may
    least read Turkish, and those who may most the other languages in turn.
    """
    add_entity("se", "ada", Name="Ada")
    clients = {name: visit(name) for name in EVERYBODY}
    for client in clients.values():
        client.put("/ui/me/time-zone/")  # a session is recorded once, and not in what is undone
    languages = cycle(["en", "zh-hans"])
    wrong = []
    for name in (name for name in ANSWERS if part_of(name) == part):
        address = reverse(name, args=ARGUMENTS[name])
        for method, answers in ANSWERS[name].items():
            for visitor, status in asked(answers):
                if visitor is None and status == 302 and method != next(iter(ANSWERS[name])):
                    continue  # strangers are sent away before the method counts
                if part == "help" and visitor in {"victor", "ada"}:
                    continue  # these pages are the same for everybody
                client = Client(headers={"HX-Request": "true"} if status >= 400 else None)
                client.cookies = SimpleCookie(clients[visitor].cookies.output(header="", sep=";"))
                language = next(languages) if visitor == "ada" and status == 200 else "tr"
                client.cookies["tablero_language"] = language
                with transaction.atomic():
                    answer = client.generic(method, address)
                    transaction.set_rollback(True)
                faults = [f"{answer.status_code} instead of {status}"] if answer.status_code != status else []
                if method == "GET" and answer.status_code == 200:
                    faults += [f"a form of {it}" for it in forms_in_vain(answer, visitor)]
                    faults += find_faults(answer, language) if visitor and name in PAGES else []
                wrong += [f"{name}: {method} by {visitor or 'nobody'}: {fault}" for fault in faults]
    assert wrong == []


def test_pages_behind_a_proof_have_their_structure_in_every_language(proven, table):
    client = proven("ada")
    behind = [name for name in PAGES if ANSWERS[name]["GET"]["ada"] == 302]
    assert len(behind) > 10
    wrong = []
    for language in MAIN_NAVIGATION:
        client.cookies["tablero_language"] = language
        for name in behind:
            answer = client.get(reverse(name, args=ARGUMENTS[name]), follow=True)
            wrong += [f"{name} in {language}: {fault}" for fault in find_faults(answer, language)]
    assert wrong == []


def forms_in_vain(answer, who):
    """Find the addresses of forms of a page that its reader may not send."""
    page = answer.content.decode()
    targets = {action for action, content in FORM.findall(page) if "<button" in content}
    targets |= set(re.findall(r'\bformaction="([^"]*)"', page))
    names = {resolve(urlsplit(target).path).view_name for target in targets}
    return [name for name in names if ANSWERS[name].get("POST", {}).get(who) == 403]


def test_visitors_are_sent_to_sign_in_and_back(client, db):
    assert client.get("/ui/a/acme/t/people/")["Location"] == "/ui/login/?next=/ui/a/acme/t/people/"


def test_permissions_grow_with_the_role():
    for capability in Capability:
        for role in Role:
            assert may(role, capability) == (role >= LEAST_ROLE[capability])
    assert [sum(may(role, capability) for capability in Capability) for role in Role] == [1, 2, 5, 7]


def request_of(user):
    request = RequestFactory().get("/ui/")
    request.user = user
    return request


def test_a_view_asks_for_a_role(cast, account):
    for who in ["alice", "max", "eve", "victor", "ada"]:
        role = Role.OWNER if who == "ada" else cast[who].memberships.get().role
        for capability in Capability:
            view = account_required(capability)(lambda request, known_account: known_account)
            if role >= LEAST_ROLE[capability]:
                assert view(request_of(cast[who]), account="acme") == account, who
            else:
                with pytest.raises(PermissionDenied, match=roles.label(LEAST_ROLE[capability])):
                    view(request_of(cast[who]), account="acme")


def test_an_admin_view_names_the_admin(cast):
    with pytest.raises(PermissionDenied, match="Admin"):
        admin_required(lambda request: "done")(request_of(cast["alice"]))


def test_an_account_that_must_not_be_used_here(visit, settings):
    accounts.add("devs", NewAccount(sealed_keys.DEVELOPMENT_KEY))
    assert visit("ada").get("/ui/a/devs/").status_code == 200
    settings.DEVELOPMENT_ACCOUNT_ALLOWED = False
    assert visit("ada").get("/ui/a/devs/").status_code == 404
    assert b"devs" not in visit("ada").get("/ui/").content
