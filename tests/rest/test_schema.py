"""The OpenAPI document: valid, complete, and what the pages show of it."""

import pytest
from django.test import Client
from drf_spectacular.drainage import GENERATOR_STATS, reset_generator_stats
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.validation import validate_schema
from jsonschema import Draft202012Validator

from console.help import api_reference
from storage.domain.access.roles import Scope
from storage.rest import documentation, problems
from tests.fixtures import API

FILES = ["text/csv", "application/x-ndjson", "application/octet-stream"]


@pytest.fixture(scope="module")
def document():
    return documentation.document()


def operations(document):
    return [
        (f"{method} {path}", operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]


def test_it_is_valid_and_nothing_had_to_be_guessed(capsys):
    reset_generator_stats()
    validate_schema(SchemaGenerator().get_schema(request=None, public=True))
    assert capsys.readouterr().err == ""
    assert not GENERATOR_STATS


def test_defaults_are_values_that_the_parameters_allow(document):
    """A generated client sends them, and generators leave out operations whose defaults are invalid."""
    for name, operation in operations(document):
        for parameter in operation.get("parameters", ()):
            schema = parameter["schema"]
            if "default" in schema and "$ref" not in schema:
                validator = Draft202012Validator(schema)
                assert validator.is_valid(schema["default"]), (name, parameter["name"])
    for name, component in document["components"]["schemas"].items():
        for member, schema in component.get("properties", {}).items():
            if "default" in schema and "$ref" not in str(schema):
                assert Draft202012Validator(schema).is_valid(schema["default"]), (name, member)


def test_paths_begin_at_the_server(document):
    assert [server["url"] for server in document["servers"]] == ["/"]
    assert all(path.startswith(f"{API}/") for path in document["paths"])


def test_lists_have_items_and_next(document):
    schemas = document["components"]["schemas"]
    lists = [name for name in schemas if name.endswith("List")]
    assert len(lists) > 10
    for name in lists:
        assert {"items", "next"} <= schemas[name]["properties"].keys(), name


def test_every_operation_says_what_it_does(document):
    ids = [operation["operationId"] for _, operation in operations(document)]
    assert len(set(ids)) == len(ids)
    for name, operation in operations(document):
        assert operation["summary"], name
        assert operation["security"] == [{"token": []}], name
        assert operation["x-scope"] in set(Scope), name
        assert {"401", "403", "429", "503"} <= operation["responses"].keys(), name
        body = operation.get("requestBody", {}).get("content", {})
        types = FILES if operation["operationId"] == "import_table" else ["application/json"]
        assert list(body) in ([], types), name
        if body:
            assert all(content["examples"] for content in body.values()), name
            assert {"400", "413", "415"} <= operation["responses"].keys(), name


def test_bodies_take_nothing_else_and_problems_are_problem_details(document):
    for name, component in document["components"]["schemas"].items():
        if name.endswith("Request"):
            assert component["additionalProperties"] is False, name
    for name, operation in operations(document):
        for status, answer in operation["responses"].items():
            if status >= "400":
                assert list(answer["content"]) == [problems.MEDIA_TYPE], (name, status)


@pytest.mark.django_db
def test_the_page_shows_all_of_it(document, cast):
    client = Client()
    client.force_login(cast["victor"])
    page = client.get("/ui/api/docs/")
    assert page.status_code == 200
    text = page.content.decode()
    for name, operation in operations(document):
        assert f'id="{operation["operationId"]}"' in text, name
    for kind in problems.PROBLEM_TYPES:
        assert f'id="problem-{kind.name}"' in text
    assert "<script" not in text.partition("</head>")[2]
    assert "style=" not in text
    assert API in text


def test_members_of_members_are_listed():
    results = {operation.id: operation for group in api_reference.groups() for operation in group.operations}
    policies = results["set_policies"]
    assert [member.name for member in policies.body][:3] == ["items", "items[].id", "items[].access_policy"]
    assert policies.curl.startswith('curl -H "Authorization: Bearer $TABLERO_TOKEN" -X PUT \\\n  -H')
    assert results["list_accounts"].curl.endswith('"$TABLERO_URL/ui/api/v1/accounts"')
