"""Notices in the management API: a user's notices and mutes, and rules and webhooks."""

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from django.http import Http404
from django.shortcuts import get_object_or_404
from django.urls import URLPattern
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from storage.core import registry
from storage.domain.access.roles import Capability
from storage.domain.refusals import AnyReason, Reason, Refused
from storage.models import Account, ApiToken, NoticeMute, Webhook
from storage.notices import delivery, presentation, readers, rules, serializers, webhooks
from storage.notices.webhooks import WebhookFields
from storage.rest import access, problems
from storage.rest.answers import page_of
from storage.rest.documentation import operation
from storage.rest.lookups import or_404
from storage.rest.paging import Page
from storage.rest.problems import Problem, invalid
from storage.rest.routing import ACCOUNT, api_path
from storage.rest.views import ApiViewSet

_FIELDS: Final[Mapping[AnyReason, str]] = {
    Reason.WEBHOOK_URL: "/url",
    Reason.NO_NOTICE_KIND: "/kind",
    Reason.NO_NOTICE_THRESHOLD: "/threshold",
    Reason.NOTICE_THRESHOLD: "/threshold",
}


def _problem(error: Refused) -> Problem:
    pointer = _FIELDS.get(error.refusal.reason)
    return Problem(problems.CONFLICT, str(error)) if pointer is None else invalid(str(error), pointer)


class NoticeViewSet(ApiViewSet):
    tag = "Notices"
    capabilities = {"index": Capability.READ, "retrieve": Capability.READ, "mark_seen": Capability.READ}

    @operation(
        "list_notices",
        "List notices",
        "Returns the notices that the token's user may see, the newest first. Those that are resolved are kept for"
        " 90 days.",
        answer=page_of(serializers.NoticeSerializer),
        query=serializers.NoticeParameters,
    )
    def index(self, request: Request) -> Response:
        parameters = self.read_query()
        matching = self._visible()
        if parameters["account"]:
            matching = matching.filter(account__name=parameters["account"])
        if parameters["kind"]:
            matching = matching.filter(kind=parameters["kind"])
        if parameters["state"] != "all":
            matching = matching.filter(resolved_at__isnull=parameters["state"] == "open")
        return self.answer_newest(matching, lambda shown: [presentation.view(it) for it in shown])

    @operation("get_notice", "Get a notice", answer=serializers.NoticeSerializer)
    def retrieve(self, request: Request, notice: int) -> Response:
        found = get_object_or_404(self._visible(), pk=notice)
        return self.answer(presentation.view(found))

    @operation(
        "mark_notices_seen",
        "Mark notices as seen",
        "The bell of the console then shows only what is news after that.",
        body=serializers.SeenSerializer,
        answer=serializers.UnseenSerializer,
        example={"until": "2026-11-30T18:00:00Z"},
    )
    def mark_seen(self, request: Request) -> Response:
        readers.mark_seen(self.token.user, upto=self.read_body().get("until") or timezone.now())
        return self.answer({"unseen": readers.unseen(self.token.user).count()})

    def _visible(self) -> Any:
        found, token = readers.visible(self.token.user), self.token
        return found if token.account_id is None else found.filter(account=token.account_id)


class MuteViewSet(ApiViewSet):
    """Muted notices of the token's user; a token limited to one account sees and changes only its mutes."""

    tag = "Notices"
    capabilities = {"index": Capability.READ, "create": Capability.READ, "destroy": Capability.READ}

    @operation(
        "list_notice_mutes",
        "List what mutes notices",
        "Returns what the token's user has muted.",
        answer=page_of(serializers.MuteSerializer),
    )
    def index(self, request: Request) -> Response:
        return self.answer_page(Page(self._mutes()))

    @operation(
        "mute_notices",
        "Mute notices",
        "Hides the notices that match all members from the token's user, and sends no e-mail about them. Others still"
        " see them, and webhooks still get them.",
        body=serializers.NewMuteSerializer,
        answer=serializers.MuteSerializer,
        problems=[problems.CONFLICT, problems.NOT_FOUND],
        example={"account": "shop", "kind": "key.old"},
    )
    def create(self, request: Request) -> Response:
        body = self.read_body()
        name = body.get("account", "")
        account = access.find_account(self.token, name, Capability.READ)[0] if name else None
        if account is None and self.token.account_id is not None:
            raise Problem(problems.FORBIDDEN, "The token is limited to one account; mute notices of that.")
        try:
            made = readers.mute(
                self.token.user,
                account=account,
                kind=body.get("kind", ""),
                subject=body.get("subject"),
            )
        except Refused as error:
            raise _problem(error) from None
        return self.answer(made)

    @operation("unmute_notices", "Unmute notices")
    def destroy(self, request: Request, mute: int) -> Response:
        is_known = any(it.pk == mute for it in self._mutes())
        if not is_known or not readers.unmute(self.token.user, mute):
            raise Http404
        return Response(status=204)

    def _mutes(self) -> list[NoticeMute]:
        found, account_id = readers.mutes(self.token.user), self.token.account_id
        return found if account_id is None else [it for it in found if it.account_id == account_id]


class _ScopedViewSet(ApiViewSet):
    """Base of view sets for an account or, with ``account`` None, for the server, which requires an admin."""

    account: Account | None = None

    def resolve_target(self, token: ApiToken, capability: Capability) -> None:
        if "account" in self.kwargs:
            self.account, _role = access.find_account(token, self.kwargs["account"], capability)
        else:
            access.check_server(token)


class RuleViewSet(_ScopedViewSet):
    tag = "Notices"
    capabilities: ClassVar[Mapping[str, Capability]] = {
        "index": Capability.READ,
        "update": Capability.CONFIGURE,
    }

    @operation(
        "list_notice_rules",
        "List the notices of an account",
        "Returns which kinds of notices there are, and from which value on.",
        answer=page_of(serializers.RuleSerializer),
    )
    def index(self, request: Request, account: str = "") -> Response:
        return self.answer_page(Page(rules.for_account(self.account)))

    @operation(
        "set_notice_rule",
        "Change a kind of notice",
        "Turns a kind on or off, for everyone, and sets its threshold.",
        body=serializers.RuleChangeSerializer,
        answer=serializers.RuleSerializer,
        example={"enabled": True, "threshold": 5},
    )
    def update(self, request: Request, kind: str, account: str = "") -> Response:
        body = self.read_body()
        if rules.find(self.account, kind) is None:
            raise Http404
        try:
            rules.change(
                self.account,
                registry.notice_kinds()[kind],
                is_on=body["enabled"],
                threshold=body["threshold"],
                by=self.by,
            )
        except Refused as error:
            raise _problem(error) from None
        return self.answer(rules.find(self.account, kind))


class WebhookViewSet(_ScopedViewSet):
    tag = "Webhooks"
    capabilities: ClassVar[Mapping[str, Capability]] = dict.fromkeys(
        ("index", "create", "retrieve", "partial_update", "destroy", "test", "renew_secret", "deliveries"),
        Capability.MANAGE_ACCESS,
    )

    @operation(
        "list_webhooks",
        "List webhooks",
        "Those of the server get the notices of all accounts too.",
        answer=page_of(serializers.WebhookSerializer),
    )
    def index(self, request: Request, account: str = "") -> Response:
        return self.answer_page(Page(list(webhooks.for_account(self.account))))

    @operation(
        "create_webhook",
        "Create a webhook",
        "Messages are signed as in Standard Webhooks, with the secret that only this response shows.",
        body=serializers.WebhookFieldsSerializer,
        answer=serializers.NewWebhookSerializer,
        is_creation=True,
        problems=[problems.CONFLICT],
        example={"name": "chat", "url": "https://chat.example.com/hooks/7", "kinds": ["errors.high"]},
    )
    def create(self, request: Request, account: str = "") -> Response:
        try:
            secret, made = webhooks.create(self.account, WebhookFields(**self.read_body()), by=self.by)
        except Refused as error:
            raise _problem(error) from None
        made.secret = secret  # type: ignore[attr-defined]
        return self.answer_created(made, is_new=True)

    @operation("get_webhook", "Get a webhook", answer=serializers.WebhookSerializer)
    def retrieve(self, request: Request, webhook: int, account: str = "") -> Response:
        return self.answer(self._find(webhook))

    @operation(
        "change_webhook",
        "Change a webhook",
        "Members that are left out do not change. Turning it on again forgets that it failed.",
        body=serializers.WebhookChangeSerializer,
        answer=serializers.WebhookSerializer,
        problems=[problems.CONFLICT],
        example={"enabled": False},
    )
    def partial_update(self, request: Request, webhook: int, account: str = "") -> Response:
        stored = self._find(webhook)
        now = {name: getattr(stored, name) for name in ("name", "url", "kinds", "enabled", "format")}
        try:
            changes = self.read_body()
            if "url" in changes:  # another host may take another format
                now["format"] = ""
            changed = webhooks.change(stored, WebhookFields(**{**now, **changes}), by=self.by)
        except Refused as error:
            raise _problem(error) from None
        return self.answer(changed)

    @operation("delete_webhook", "Delete a webhook", "What was not delivered yet is dropped.")
    def destroy(self, request: Request, webhook: int, account: str = "") -> Response:
        webhooks.remove(self._find(webhook), by=self.by)
        return Response(status=204)

    @operation(
        "test_webhook",
        "Test a webhook",
        "Sends a message of the type `notice.test` now, and answers how that went.",
        answer=serializers.DeliverySerializer,
    )
    def test(self, request: Request, webhook: int, account: str = "") -> Response:
        return self.answer(delivery.test(self._find(webhook), timezone.now()))

    @operation(
        "renew_webhook_secret",
        "Renew the secret of a webhook",
        "The former secret signs no more messages from now on.",
        answer=serializers.SecretSerializer,
    )
    def renew_secret(self, request: Request, webhook: int, account: str = "") -> Response:
        return self.answer({"secret": webhooks.renew_secret(self._find(webhook), by=self.by)})

    @operation(
        "list_webhook_deliveries",
        "List what a webhook was sent",
        "The latest 200, newest first; they are kept for 90 days.",
        answer=page_of(serializers.DeliverySerializer),
    )
    def deliveries(self, request: Request, webhook: int, account: str = "") -> Response:
        return self.answer_page(Page(delivery.for_webhook(self._find(webhook))))

    def _find(self, pk: int) -> Webhook:
        return or_404(webhooks.find(self.account, pk))


class ServerRuleViewSet(RuleViewSet):
    operation_suffix = "_of_server"
    capabilities: ClassVar[Mapping[str, Capability]] = dict.fromkeys(RuleViewSet.capabilities, Capability.OWN)


class ServerWebhookViewSet(WebhookViewSet):
    operation_suffix = "_of_server"
    capabilities: ClassVar[Mapping[str, Capability]] = dict.fromkeys(
        WebhookViewSet.capabilities, Capability.GRANT
    )


_WEBHOOK: Final = "webhooks/<int:webhook>"


def _webhooks(scope: str, prefix: str, view_set: Any, rules: Any) -> list[URLPattern]:
    """Return the URL paths of webhooks and rules, for an account or the server."""
    return [
        api_path(f"{scope}webhooks", view_set, f"{prefix}webhooks", get="index", post="create"),
        api_path(
            f"{scope}{_WEBHOOK}",
            view_set,
            f"{prefix}webhook",
            get="retrieve",
            patch="partial_update",
            delete="destroy",
        ),
        api_path(f"{scope}{_WEBHOOK}/test", view_set, f"{prefix}webhook-test", post="test"),
        api_path(f"{scope}{_WEBHOOK}/secret", view_set, f"{prefix}webhook-secret", post="renew_secret"),
        api_path(f"{scope}{_WEBHOOK}/deliveries", view_set, f"{prefix}webhook-deliveries", get="deliveries"),
        api_path(f"{scope}notice-rules", rules, f"{prefix}notice-rules", get="index"),
        api_path(f"{scope}notice-rules/<str:kind>", rules, f"{prefix}notice-rule", put="update"),
    ]


urlpatterns = [
    api_path("notices", NoticeViewSet, "notices", get="index"),
    api_path("notices/seen", NoticeViewSet, "notices-seen", post="mark_seen"),
    api_path("notices/<int:notice>", NoticeViewSet, "notice", get="retrieve"),
    api_path("notice-mutes", MuteViewSet, "notice-mutes", get="index", post="create"),
    api_path("notice-mutes/<int:mute>", MuteViewSet, "notice-mute", delete="destroy"),
    *_webhooks("", "server-", ServerWebhookViewSet, ServerRuleViewSet),
    *_webhooks(f"{ACCOUNT}/", "", WebhookViewSet, RuleViewSet),
]
