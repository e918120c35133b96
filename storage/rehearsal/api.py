"""Rehearsals and sets of rules in the management API."""

from collections.abc import Mapping
from typing import Any, Final

from django.http import Http404
from django.shortcuts import get_object_or_404
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from storage.activity.catalog_change import invalidating_catalogs
from storage.domain.access.roles import Capability
from storage.domain.refusals import AnyReason, Refused
from storage.models import Rehearsal
from storage.people import idempotency_keys
from storage.rehearsal import rehearsals, serializers, summaries
from storage.rehearsal.report import dump_report, make_report
from storage.rehearsal.subject import RehearsalReason
from storage.rehearsal.summaries import summarize
from storage.rest import idempotency, problems
from storage.rest.answers import page_of
from storage.rest.documentation import IDEMPOTENCY_KEY, operation
from storage.rest.paging import Page, PageParameters, take_page
from storage.rest.problems import Problem, invalid
from storage.rest.routing import ACCOUNT, api_path
from storage.rest.views import AccountScopedViewSet

_FIELDS: Final[Mapping[AnyReason, str]] = {
    RehearsalReason.NO_SUCH_SET: "/set",
    RehearsalReason.SET_NAME: "/set",
    RehearsalReason.READY_SET_NAME: "/set",
    RehearsalReason.RULES_MALFORMED: "/rules",
    RehearsalReason.TABLE_NAME: "/table",
}
_OWN: Final = "own-rules"  # name of rules that a request starts without one
_EXAMPLE_RULES: Final = [
    {"name": "throttle", "effect": "throttle", "when": {"operations": ["writes"], "share": 0.2}},
]


def _problem(refused: Refused) -> Problem:
    refusal = refused.refusal
    if "number" in refusal.facts:  # its position among the rules
        return invalid(str(refused), f"/rules/{int(str(refusal.facts['number'])) - 1}")
    pointer = _FIELDS.get(refusal.reason)
    return Problem(problems.CONFLICT, str(refused)) if pointer is None else invalid(str(refused), pointer)


class RehearsalViewSet(AccountScopedViewSet):
    tag = "Rehearsals"
    capabilities = {
        "index": Capability.READ,
        "create": Capability.MANAGE_TABLES,
        "retrieve": Capability.READ,
        "stop": Capability.MANAGE_TABLES,
        "report": Capability.READ,
        "requests": Capability.READ,
    }

    @operation(
        "list_rehearsals",
        "List rehearsals",
        "The latest first; they are kept for 30 days.",
        answer=page_of(serializers.RehearsalSerializer),
        query=PageParameters,
    )
    def index(self, request: Request, account: str) -> Response:
        return self.answer_newest(rehearsals.of_account(self.account), summarize)

    @operation(
        "start_rehearsal",
        "Start a rehearsal of failures",
        "Clients of the account meet the failures of a set of rules, such as throttling, lost answers and short pages,"
        " until it ends. The account must allow it by `may_rehearse`, and can have one rehearsal at a time.",
        body=serializers.NewRehearsalSerializer,
        answer=serializers.RehearsalSerializer,
        is_creation=True,
        headers=[IDEMPOTENCY_KEY],
        problems=[problems.CONFLICT, problems.KEY_REUSED],
        example={"set": "bad-day", "seed": 7, "duration": "10m"},
    )
    def create(self, request: Request, account: str) -> Response:
        data = self.read_body()
        key, digest = idempotency.read_key(request), idempotency.request_digest(request)
        try:
            started, is_new = idempotency.retry_concurrent(lambda: self._start(data, key, digest))
        except Refused as refused:
            raise _problem(refused) from None
        return self.answer_created(*summarize([started]), is_new=is_new)

    def _start(self, data: dict[str, Any], key: str, digest: str) -> tuple[Rehearsal, bool]:
        with invalidating_catalogs():
            record = idempotency.find(self.token, key, digest, timezone.now()) if key else None
            if record is not None:
                return self._find(int(record.fingerprint)), False
            started = rehearsals.start(
                self.account,
                data["set"] or _OWN,
                rules=data.get("rules"),
                table=data["table"],
                seed=data.get("seed"),
                scale=data["scale"],
                duration=data["duration"],
                by=self.by,
            )
            if key:
                idempotency_keys.save(self.token, key, digest, self.account, str(started.pk))
            return started, True

    @operation("get_rehearsal", "Get a rehearsal", answer=serializers.RehearsalSerializer)
    def retrieve(self, request: Request, account: str, rehearsal: int) -> Response:
        return self.answer(*summarize([self._find(rehearsal)]))

    @operation(
        "stop_rehearsal",
        "Stop a rehearsal",
        "One that has ended stays as it is.",
        answer=serializers.RehearsalSerializer,
    )
    def stop(self, request: Request, account: str, rehearsal: int) -> Response:
        found = self._find(rehearsal)
        rehearsals.stop(found, by=self.by)
        return self.answer(*summarize([found]))

    @operation(
        "get_rehearsal_report",
        "Get the report on a rehearsal",
        "Says what each client did with the failures, also while the rehearsal runs, and compares it with the rehearsal"
        " before.",
        answer=serializers.ReportSerializer,
    )
    def report(self, request: Request, account: str, rehearsal: int) -> Response:
        return self.answer(dump_report(make_report(self._find(rehearsal))))

    @operation(
        "list_rehearsed_requests",
        "List the requests of a rehearsal",
        "Returns requests with their answers, in the order in which they were answered, also those that no rule has"
        " struck; at most 50,000 of a client.",
        answer=page_of(serializers.RehearsedExchangeSerializer),
        query=serializers.RehearsedRequestParameters,
    )
    def requests(self, request: Request, account: str, rehearsal: int) -> Response:
        read = self.read_query()
        exchanges = summaries.exchanges(
            self._find(rehearsal),
            agent=read["agent"],
            is_faulted=read["faulted"],
            after=self.read_number_cursor(read["cursor"]) or 0,
            top=read["limit"] + 1,
        )
        return self.answer_page(take_page(exchanges, read["limit"], lambda it: str(it.id)))

    def _find(self, pk: int) -> Rehearsal:
        return get_object_or_404(rehearsals.of_account(self.account), pk=pk)


class RehearsalSetViewSet(AccountScopedViewSet):
    tag = "Rehearsals"
    capabilities = {
        "index": Capability.READ,
        "update": Capability.MANAGE_TABLES,
        "destroy": Capability.MANAGE_TABLES,
    }

    @operation(
        "list_rehearsal_sets",
        "List sets of rules for rehearsals",
        "Returns the ready ones, which every account has, then those of the account's own.",
        answer=page_of(serializers.RuleSetSerializer),
    )
    def index(self, request: Request, account: str) -> Response:
        return self.answer_page(Page(rehearsals.sets(self.account)))

    @operation(
        "set_rehearsal_set",
        "Add or replace a set of rules",
        "A running rehearsal keeps the rules with which it was started.",
        body=serializers.RuleSetChangeSerializer,
        answer=serializers.RuleSetSerializer,
        problems=[problems.CONFLICT],
        example={"description": "Throttles writes.", "rules": _EXAMPLE_RULES},
    )
    def update(self, request: Request, account: str, name: str) -> Response:
        body = self.read_body()
        try:
            rehearsals.check_name(name)
        except Refused as refused:
            raise Problem(problems.CONFLICT, str(refused)) from None
        try:
            saved = rehearsals.save_set(
                self.account, name, body["rules"], text=body["description"], by=self.by
            )
        except Refused as refused:
            raise _problem(refused) from None
        return self.answer(saved)

    @operation("delete_rehearsal_set", "Delete a set of rules", problems=[problems.CONFLICT])
    def destroy(self, request: Request, account: str, name: str) -> Response:
        try:
            rehearsals.delete_set(self.account, name, by=self.by)
        except Refused:
            raise Http404 from None
        return Response(status=204)


_REHEARSAL: Final = f"{ACCOUNT}/rehearsals/<int:rehearsal>"
urlpatterns = [
    api_path(f"{ACCOUNT}/rehearsals", RehearsalViewSet, "rehearsals", get="index", post="create"),
    api_path(_REHEARSAL, RehearsalViewSet, "rehearsal", get="retrieve"),
    api_path(f"{_REHEARSAL}/stop", RehearsalViewSet, "rehearsal-stop", post="stop"),
    api_path(f"{_REHEARSAL}/report", RehearsalViewSet, "rehearsal-report", get="report"),
    api_path(f"{_REHEARSAL}/requests", RehearsalViewSet, "rehearsal-requests", get="requests"),
    api_path(f"{ACCOUNT}/rehearsal-sets", RehearsalSetViewSet, "rehearsal-sets", get="index"),
    api_path(
        f"{ACCOUNT}/rehearsal-sets/<str:name>",
        RehearsalSetViewSet,
        "rehearsal-set",
        put="update",
        delete="destroy",
    ),
]
