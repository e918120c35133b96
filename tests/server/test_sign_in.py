"""The file of sign-in providers: what it may say, and what it is refused for."""

import json

import pytest

from storage.domain.access.roles import Role
from storage.server import options
from storage.server.refusal import Refusal
from tests.docs.pages import blocks
from tests.live_server import ROOT
from tests.server.test_options import SIGN_IN

PLAIN = {"issuer": "https://a.example", "client_id": "tablero", "client_secret_env": "A_SECRET"}


def read(folder, *entries, **environ):
    file = folder / "providers.json"
    file.write_text(entries[0] if isinstance(entries[0], str) else json.dumps(entries))
    return options.read(
        {"TABLERO_LOGIN_PROVIDERS": str(file), "A_SECRET": " what we know\n", **environ}
    ).sign_in


def test_missing_options_have_the_defaults_of_a_single_provider(tmp_path):
    one, other = read(tmp_path, PLAIN, **SIGN_IN)
    assert (one.id, one.name) == ("login.example.org-realms-main", "Login.example.org")
    assert (other.id, other.name, other.client_secret) == ("a.example", "a.example", "what we know")
    assert not (other.admits_everyone or other.links_by_email or other.signs_out)
    assert (other.scopes, other.groups_claim) == (("openid", "profile", "email"), "groups")


def test_the_example_of_the_documentation(tmp_path):
    (example,) = blocks(ROOT / "docs" / "access.md", "json")
    (tmp_path / "entra.secret").write_text("from the file\n")
    company, partners = read(tmp_path, example, KEYCLOAK_SECRET="from the environment")
    assert (company.id, company.client_secret) == ("company", "from the file")
    assert company.is_admin(["tablero-admins"]) and not company.is_admin(["shop-developers"])
    assert company.roles_of(["shop-developers", "everyone"]) == {"shop": Role.EDITOR, "shared": Role.VIEWER}
    assert partners.client_secret == "from the environment"
    assert partners.admits(["/tablero"], "") and not partners.admits([], "")


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        ("[", "are not JSON"),
        ("{}", "must be a list of objects"),
        ("[1]", "provider 1 in .* must be an object"),
        ({"issuer": ""}, "issuer is missing"),
        ({"issuer": "http://a.example"}, "issuer must be a URL that begins with https://"),
        ({"client_id": 1}, "client_id must be a string"),
        ({"client_secret": "open"}, r"unknown setting 'client_secret' \(did you mean client_secret_"),
        ({"client_secret_env": ""}, "needs client_secret_file or client_secret_env"),
        ({"client_secret_file": "x"}, "needs client_secret_file or client_secret_env, and not both"),
        ({"client_secret_env": "", "client_secret_file": "none"}, "none cannot be read: No such file"),
        ({"client_secret_env": "NO_SUCH"}, "client_secret_env names no secret"),
        ({"id": "Company!"}, "id must be of the letters"),
        ({"admits": "some"}, "admits must be invited or everyone"),
        ({"scopes": ["email"]}, "scopes must include openid"),
        ({"admin_groups": "admins"}, "admin_groups must be a list of strings"),
        ({"signs_out": "no"}, "signs_out must be true or false"),
        ({"roles": {"dev": "editor"}}, "roles must be as"),
        ({"roles": {"dev": {"acme": "admin"}}}, "with a role of viewer, editor, maintainer, owner"),
        ({"roles": []}, "roles must be as"),
    ],
)
def test_refuses(tmp_path, entry, sentence):
    with pytest.raises(Refusal, match=sentence):
        read(tmp_path, entry if isinstance(entry, str) else {**PLAIN, **entry})


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({}, "id"),
        ({"id": "another"}, "issuer"),
        ({"id": "another", "issuer": "https://b.example", "name": "a.example"}, "name"),
    ],
)
def test_refuses_two_that_could_be_confused(tmp_path, change, what):
    with pytest.raises(Refusal, match=f"Two sign-in providers have the {what}"):
        read(tmp_path, PLAIN, {**PLAIN, **change})


def test_refuses_a_missing_file(tmp_path):
    with pytest.raises(Refusal, match="cannot be read: No such file"):
        options.read({"TABLERO_LOGIN_PROVIDERS": str(tmp_path / "none")})
