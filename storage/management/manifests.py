"""Destinations of `apply`: the local database, or a server through the management API."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final, Protocol

import requests
from django.core.management.base import CommandError
from rest_framework.exceptions import ValidationError

from storage.accounts import accounts
from storage.activity.activity import ChangedSince, command_actor
from storage.management.command import find_usable_account
from storage.manifest import applying, planning, present
from storage.manifest.applying import PlanRefused
from storage.manifest.declared import Change
from storage.manifest.serializers import read_manifest, write_plan
from storage.rest.exceptions import problem_of

_TIMEOUT: Final = 600  # seconds: an account may have thousands of tables
_CHANGED: Final = "The accounts have changed since the plan was made; plan again."


class Server(Protocol):
    """Destination of manifests; changes have the JSON of the management API."""

    def plan(self, manifest: Mapping[str, Any], *, prunes: bool) -> list[dict[str, Any]]: ...

    def apply(self, manifest: Mapping[str, Any], *, prunes: bool, as_planned: bool) -> list[dict[str, Any]]:
        """Apply a manifest; with ``as_planned``, raise CommandError if the changes differ from the last plan."""

    def show(self, names: Sequence[str]) -> dict[str, Any]: ...


class LocalServer:
    """Local database as the destination of manifests."""

    def __init__(self) -> None:
        self._planned: list[Change] = []

    def plan(self, manifest: Mapping[str, Any], *, prunes: bool) -> list[dict[str, Any]]:
        try:
            self._planned = planning.plan(read_manifest(manifest), prunes=prunes)
        except ValidationError as error:
            problem = problem_of(error)
            assert problem is not None
            raise CommandError(_describe(problem.serialize(""))) from None
        return _written(self._planned)

    def apply(self, manifest: Mapping[str, Any], *, prunes: bool, as_planned: bool) -> list[dict[str, Any]]:
        planned = self._planned if as_planned else None
        try:
            done = applying.apply(read_manifest(manifest), by=command_actor(), prunes=prunes, planned=planned)
        except ChangedSince:
            raise CommandError(_CHANGED) from None
        except PlanRefused as refused:
            raise CommandError("\n".join(it.problem for it in refused.changes)) from None
        return _written(done)

    def show(self, names: Sequence[str]) -> dict[str, Any]:
        found = [find_usable_account(name) for name in names] or accounts.usable().order_by("name")
        return {"accounts": {account.name: present.describe(account) for account in found}}


def _written(changes: Sequence[Change]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = write_plan(changes)["changes"]
    return found


class RemoteServer:
    """Remote server as the destination, with an API token."""

    def __init__(self, url: str, token: str) -> None:
        self._url = f"{url.rstrip('/')}/ui/api/v1/manifest"
        self._token = token
        self._etag = ""

    def plan(self, manifest: Mapping[str, Any], *, prunes: bool) -> list[dict[str, Any]]:
        answer = self._send("POST", "/plan", json=manifest, params=_parameters(prunes=prunes))
        self._etag = answer.headers["ETag"]
        found: list[dict[str, Any]] = answer.json()["changes"]
        return found

    def apply(self, manifest: Mapping[str, Any], *, prunes: bool, as_planned: bool) -> list[dict[str, Any]]:
        headers = {"If-Match": self._etag} if as_planned else {}
        answer = self._send(
            "POST", "/apply", json=manifest, params=_parameters(prunes=prunes), headers=headers
        )
        changes: list[dict[str, Any]] = answer.json()["changes"]
        return changes

    def show(self, names: Sequence[str]) -> dict[str, Any]:
        found: dict[str, Any] = self._send("GET", "", params={"account": list(names)}).json()
        return found

    def _send(
        self, method: str, path: str, *, headers: Mapping[str, str] | None = None, **options: Any
    ) -> requests.Response:
        try:
            answer = requests.request(
                method,
                self._url + path,
                headers=headers,
                auth=self._authorize,  # as a header, an entry of .netrc would replace it
                timeout=_TIMEOUT,
                allow_redirects=False,
                **options,
            )
        except requests.RequestException as error:
            raise CommandError(f"{self._url} does not answer: {error}") from None
        if answer.status_code == HTTPStatus.PRECONDITION_FAILED:
            raise CommandError(_CHANGED)
        if answer.status_code != HTTPStatus.OK:
            raise CommandError(_describe(_problem(answer)))
        return answer

    def _authorize(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {self._token}"
        return request


def _parameters(*, prunes: bool) -> dict[str, str]:
    return {"prune": "true"} if prunes else {}


def _problem(answer: requests.Response) -> Mapping[str, Any]:
    try:
        problem = answer.json()
    except requests.JSONDecodeError:
        problem = None
    return problem if isinstance(problem, dict) else {"title": f"The server answered {answer.status_code}"}


def _describe(problem: Mapping[str, Any]) -> str:
    """Format problem details as lines, each with its place in the manifest."""
    lines = [problem.get("detail") or f"{problem.get('title', 'The server refused the request')}."]
    for error in problem.get("errors", ()):
        place = error.get("pointer", "#").removeprefix("#").lstrip("/").replace("/", ".")
        lines.append(f"  {place}: {error['detail']}")
    return "\n".join(lines)
