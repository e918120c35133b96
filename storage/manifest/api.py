"""Manifests in the management API: planning, application, and accounts as manifests."""

from rest_framework.request import Request
from rest_framework.response import Response

from storage.accounts import accounts
from storage.activity.activity import ChangedSince
from storage.domain.access.roles import Capability
from storage.domain.refusals import Refused
from storage.manifest import applying, planning, present, serializers
from storage.manifest.applying import PlanRefused
from storage.manifest.declared import Action, Change, Manifest, Resource
from storage.manifest.resources import KINDS
from storage.models import Account
from storage.people import members
from storage.rest import access, etags, problems
from storage.rest.documentation import IF_MATCH, operation
from storage.rest.problems import FieldError, Problem
from storage.rest.routing import api_path
from storage.rest.views import ApiViewSet

_EXAMPLE = {
    "accounts": {
        "shop": {
            "label": "Shop",
            "protected": True,
            "members": {"alice": "owner"},
            "tables": {"orders": {"indexes": ["Customer"], "policies": {"reports": {"permission": "r"}}}},
        }
    }
}


class ManifestViewSet(ApiViewSet):
    """Manifest operations; each change to an account requires the same rights as making that change alone."""

    tag = "Manifests"
    capabilities = dict.fromkeys(("retrieve", "plan", "apply"), Capability.CONFIGURE)

    @operation(
        "get_manifest",
        "Get the manifest of accounts",
        "Declares accounts as they are, to begin with infrastructure as code. Webhooks are left out, because their URLs"
        " often contain a token. Takes the role maintainer.",
        answer=serializers.ManifestSerializer,
        query=serializers.ManifestParameters,
        problems=[problems.NOT_FOUND, problems.FORBIDDEN],
    )
    def retrieve(self, request: Request) -> Response:
        names = self.read_query()["account"]
        found = [self._maintained(name) for name in names] if names else self._all_maintained()
        return Response({"accounts": {account.name: present.describe(account) for account in found}})

    @operation(
        "plan_manifest",
        "Plan a manifest",
        "Returns what would be created, changed and deleted, so that the accounts are what the manifest declares;"
        " changes nothing. Takes the role maintainer. Send the ETag of the plan as `If-Match` to apply exactly it.",
        body=serializers.ManifestSerializer,
        answer=serializers.PlanSerializer,
        query=serializers.PlanParameters,
        problems=[problems.NOT_FOUND],
        has_etag=True,
        example=_EXAMPLE,
    )
    def plan(self, request: Request) -> Response:
        return self.answer_with_etag({"changes": self._plan(self._read(), prunes=self.read_query()["prune"])})

    @operation(
        "apply_manifest",
        "Apply a manifest",
        "Makes the accounts what the manifest declares and returns what was changed. Takes the rights that the changes"
        " take one by one. All changes of an account are made, or none; accounts follow each other by name. 409 lists"
        " the changes that are refused, of which none is made. Applying it again changes nothing.",
        body=serializers.ManifestSerializer,
        answer=serializers.PlanSerializer,
        query=serializers.PlanParameters,
        headers=[IF_MATCH],
        problems=[problems.NOT_FOUND, problems.CONFLICT, problems.PRECONDITION, problems.NO_METHOD],
        example=_EXAMPLE,
    )
    def apply(self, request: Request) -> Response:
        manifest, prunes = self._read(), self.read_query()["prune"]
        planned = self._plan(manifest, prunes=prunes)
        is_fixed = etags.check_match(request, self.serialize({"changes": planned}))
        try:
            done = applying.apply(
                manifest,
                by=self.by,
                prunes=prunes,
                planned=planned if is_fixed else None,
                check=self._check_change,
            )
        except PlanRefused as refused:
            raise _problem_of(refused) from None
        except ChangedSince:
            raise Problem(problems.PRECONDITION) from None
        except Refused as refused:
            raise Problem(problems.CONFLICT, str(refused)) from None
        return self.answer({"changes": done})

    def _read(self) -> Manifest:
        found: Manifest = self.read_body()["manifest"]
        return found

    def _plan(self, manifest: Manifest, *, prunes: bool) -> list[Change]:
        for name in manifest:
            if accounts.exists(name) or not self._creates_accounts():
                self._maintained(name)
        return planning.plan(manifest, prunes=prunes)

    def _creates_accounts(self) -> bool:
        return self.token.user.is_admin and self.token.account_id is None

    def _maintained(self, name: str) -> Account:
        account, _role = access.find_account(self.token, name, Capability.CONFIGURE)
        return account

    def _all_maintained(self) -> list[Account]:
        found = members.visible_accounts(self.token.user, Capability.CONFIGURE)
        return list(found if self.token.account_id is None else found.filter(pk=self.token.account_id))

    def _check_change(self, change: Change) -> None:
        access.check_scope(self.token, KINDS[change.resource].capability)
        if change.resource is Resource.ACCOUNT and change.action is Action.CREATE:
            access.check_server(self.token)
        elif accounts.exists(change.account):
            access.find_account(self.token, change.account, KINDS[change.resource].capability)


def _problem_of(refused: PlanRefused) -> Problem:
    errors = [FieldError(it.problem, _pointer(it)) for it in refused.changes]
    return Problem(problems.CONFLICT, "Some changes are refused; nothing was changed.", errors=errors)


_SECTIONS = {
    Resource.SERVICE_PROPERTIES: "service_properties",
    Resource.MEMBER: "members",
    Resource.TABLE: "tables",
    Resource.POLICIES: "policies",
    Resource.INDEX: "indexes",
    Resource.WEBHOOK: "webhooks",
    Resource.NOTICE_RULE: "notice_rules",
    Resource.SNAPSHOT_SCHEDULE: "snapshot_schedule",
    Resource.REHEARSAL_SET: "rehearsal_sets",
}


def _pointer(change: Change) -> str:
    """Return the JSON pointer to a change in its manifest."""
    table = ("tables", change.table) if change.table else ()
    steps = ("accounts", change.account, *table, _SECTIONS.get(change.resource, ""), change.name)
    return "".join(f"/{step.replace('~', '~0').replace('/', '~1')}" for step in steps if step)


urlpatterns = [
    api_path("manifest", ManifestViewSet, "manifest", get="retrieve"),
    api_path("manifest/plan", ManifestViewSet, "manifest-plan", post="plan"),
    api_path("manifest/apply", ManifestViewSet, "manifest-apply", post="apply"),
]
