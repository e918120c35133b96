"""Links to pages that can fix the causes of a refused request."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Final

from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from storage.domain.access.roles import Capability, Role, may
from storage.domain.errors import StorageError
from storage.domain.requests.cleaning import LEFT_OUT
from storage.domain.requests.observed import Authentication
from storage.domain.values.kinds import AccountKind
from storage.domain.values.names import fold_table_name
from storage.inspector import Finding, Mistake
from storage.models import RecordedRequest
from storage.requests.explanations import Cause


@dataclass(frozen=True, slots=True)
class Remedy:
    label: str | Promise
    address: str
    icon: str


_OF_TOKEN: Final = frozenset(
    {
        Mistake.EXPIRED,
        Mistake.NOT_YET_VALID,
        Mistake.PERMISSION,
        Mistake.HTTPS_ONLY,
        Mistake.ADDRESS_OUTSIDE,
        Mistake.NO_TABLE_SERVICE,
        Mistake.RESOURCE_TYPE,
        Mistake.NOT_BY_TOKEN,
        Mistake.OTHER_TABLE,
        Mistake.OUTSIDE_RANGE,
    }
)
_OF_POLICY: Final = frozenset(
    {
        Mistake.POLICY_MISSING,
        Mistake.POLICY_RENAMED,
        Mistake.POLICY_CONFLICT,
        Mistake.POLICY_INCOMPLETE,
    }
)
_OF_KEY: Final = frozenset(
    {
        Mistake.RETIRED_KEY,
        Mistake.OTHER_ACCOUNT_KEY,
        Mistake.DEVELOPMENT_KEY,
        Mistake.KEY_NOT_DECODED,
        Mistake.UNKNOWN_KEY,
        Mistake.NO_AUTHORIZATION,
        Mistake.ACCOUNT_NOT_DOUBLED,
        Mistake.ACCOUNT_DOUBLED,
    }
)
_SETTINGS: Final[Mapping[Mistake, tuple[str, Promise]]] = {
    Mistake.NETWORK: ("access", _("Network access")),
    Mistake.KEYS_NOT_ACCEPTED: ("access", _("Network access")),
    Mistake.ACCOUNT_DISABLED: ("access", _("Network access")),
    Mistake.READ_ONLY: ("guard", _("Protection")),
}
# fields of a new token that are filled in from the refused one
_FIELDS: Final[Mapping[str, str]] = {"tn": "table", "si": "policy", "sip": "address"}


def find_remedies(request: RecordedRequest, causes: list[Cause], role: Role) -> list[Remedy]:
    """Return the distinct pages, in order of the causes they fix."""
    remedies = {
        it.address: it
        for cause in causes
        if isinstance(cause, Finding)
        for it in _remedies(request, cause, role)
    }
    return list(remedies.values())


def _remedies(request: RecordedRequest, cause: Finding, role: Role) -> Iterator[Remedy]:
    account, mistake, details = request.account.name, cause.mistake, dict(cause.details)
    if mistake is Mistake.FILTER and "filter" in details and _table(request, request.table_name):
        repaired = {"f": _ask_for_values(details["filter"])}
        address = reverse("entities:index", args=(account, request.table_name), query=repaired)
        yield Remedy(_("Open the repaired query"), address, "table-2")
    if mistake is Mistake.TABLE_MISSING and "similar" in details:
        name = details["similar"]
        yield Remedy(
            gettext("Open %(name)s") % {"name": name},
            reverse("entities:index", args=(account, name)),
            "table-2",
        )
    if mistake in _SETTINGS and may(role, Capability.OWN):
        fragment, label = _SETTINGS[mistake]
        yield Remedy(label, reverse("accounts:settings", args=(account,), fragment=fragment), "settings")
    if not may(role, Capability.MANAGE_ACCESS):
        return
    parameters = dict((request.report or {}).get("parameters", ()))
    policy = details.get("policy") or parameters.get("si", "")
    table = _table(request, parameters.get("tn") or request.table_name)
    if (mistake in _OF_POLICY or (mistake in _OF_TOKEN and policy)) and table:
        yield Remedy(_("Edit the policy"), reverse("policies:show", args=(account, table)), "shield")
    if mistake in _OF_TOKEN and not policy:
        fields = {"kind": "account"} if "ss" in parameters else {}
        known = {name: value for name, value in parameters.items() if value != LEFT_OUT}
        fields |= {name: known[it] for it, name in _FIELDS.items() if known.get(it)}
        letters = known.get("sp", "")
        query: dict[str, str | list[str]] = {**fields, "permissions": list(letters)}
        yield Remedy(_("Renew the token"), reverse("sas:new", args=(account,), query=query), "ticket")
    is_known = request.authentication == Authentication.SAS and request.credential
    if is_known and (
        mistake is Mistake.BLOCKED or (mistake in _OF_TOKEN and getattr(request, "sas_label", ""))
    ):
        address = reverse("sas:show", args=(account, request.credential))
        yield Remedy(_("Open the token"), address, "ticket")
    if mistake in _OF_KEY:
        yield Remedy(_("Keys and connection strings"), reverse("accounts:keys", args=(account,)), "key-round")


def _ask_for_values(text: str) -> str:
    """Replace the values of a logged filter, which are not kept, by parameters that the page asks for."""
    numbers = count(1)
    return re.sub(LEFT_OUT, lambda _: f"{{{{value{next(numbers)}}}}}", text)


def _table(request: RecordedRequest, name: str) -> str:
    """Return a valid table name; otherwise empty, as clients may send any text."""
    try:
        fold_table_name(name, AccountKind(request.account.kind))
    except StorageError:
        return ""
    return name
