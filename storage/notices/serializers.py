"""Serializers of notices, their mutes and rules, and of webhooks and their deliveries."""

from typing import Any

from rest_framework import serializers

from storage.core import registry
from storage.models import NoticeDelivery, NoticeMute
from storage.notices.formats import WebhookFormat
from storage.notices.kinds import NoticeEvent
from storage.notices.presentation import NoticeView
from storage.notices.rules import Rule
from storage.rest.answers import TypedSerializer
from storage.rest.fields import (
    InstantField,
    StrictBooleanField,
    StrictCharField,
    StrictChoiceField,
    StrictFloatField,
    StrictSerializer,
)
from storage.rest.paging import PageParameters

KINDS = list(registry.notice_kinds())


class NoticeParameters(PageParameters):
    account = serializers.CharField(default="", max_length=24, help_text="Only those of this account.")
    kind = serializers.ChoiceField(choices=KINDS, default="", help_text="Only those of this kind.")
    state = serializers.ChoiceField(
        choices=["open", "resolved", "all"], default="open", help_text="Those that are muted are among all."
    )


class NoticeSerializer(TypedSerializer):
    of = NoticeView
    names = (
        *("id", "kind", "severity", "account", "subject", "text"),
        *("path", "link", "opened_at", "news_at", "resolved_at"),
    )
    help = {
        "account": "Empty for a notice of the server, or of the token's user.",
        "subject": "What in the account it is about, such as `key1`.",
        "text": "A sentence in English.",
        "path": "The page of the console that helps.",
        "link": "Its URL, if the server knows its own: `TABLERO_CONSOLE_URL`.",
        "news_at": "When people were told last.",
    }
    facts = serializers.DictField(help_text="What the sentence says.")


class SeenSerializer(StrictSerializer):
    until = InstantField(required=False, help_text="News until then is seen; by default, until now.")


class UnseenSerializer(serializers.Serializer[Any]):
    unseen = serializers.IntegerField(help_text="Open notices with news that the user has not seen.")


class NewMuteSerializer(StrictSerializer):
    account = StrictCharField(
        required=False, max_length=24, help_text="Only in this account; by default everywhere."
    )
    kind = StrictChoiceField(required=False, choices=KINDS, help_text="Only this kind; by default all.")
    subject = StrictCharField(
        required=False, allow_blank=True, max_length=128, help_text="Only about this; by default all."
    )


class MuteSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    account = serializers.SerializerMethodField(help_text="Empty: everywhere.")
    kind = serializers.CharField(help_text="Empty: all kinds.")
    subject = serializers.CharField(allow_null=True, help_text="Null: all.")
    created_at = InstantField()

    def get_account(self, mute: NoticeMute) -> str:
        return "" if mute.account is None else mute.account.name


class RuleSerializer(serializers.Serializer[Any]):
    kind = serializers.CharField()
    enabled = serializers.BooleanField(source="is_on")
    threshold = serializers.FloatField(allow_null=True, help_text="Null if the kind has none.")
    unit = serializers.SerializerMethodField(help_text="Of the threshold; empty if there is none.")

    def get_unit(self, rule: Rule) -> str:
        bounds = rule.kind.condition.threshold
        return "" if bounds is None else str(bounds.unit)


class RuleChangeSerializer(StrictSerializer):
    enabled = StrictBooleanField(default=True)
    threshold = StrictFloatField(default=None, allow_null=True, help_text="Null: the default of the kind.")


class WebhookFieldsSerializer(StrictSerializer):
    name = StrictCharField(max_length=64)
    url = StrictCharField(max_length=2000, help_text="`https://`, or `http://` in a network that is allowed.")
    kinds = serializers.ListField(
        child=StrictChoiceField(choices=KINDS), required=False, help_text="Empty: all kinds."
    )
    enabled = StrictBooleanField(required=False)
    format = StrictChoiceField(
        choices=[it.value for it in WebhookFormat],
        required=False,
        help_text="Of its messages: `json`, signed, or as Slack or Microsoft Teams take them. By default by the host.",
    )


class WebhookChangeSerializer(WebhookFieldsSerializer):
    name = StrictCharField(max_length=64, required=False)
    url = StrictCharField(max_length=2000, required=False)


class WebhookSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    name = serializers.CharField()
    url = serializers.CharField()
    kinds = serializers.ListField(child=serializers.CharField(), help_text="Empty: all kinds.")
    enabled = serializers.BooleanField()
    format = serializers.CharField(help_text="Of its messages.")
    author = serializers.CharField()
    created_at = InstantField()
    delivered_at = InstantField(allow_null=True, help_text="When it last accepted a message.")
    failures = serializers.IntegerField(help_text="Attempts that failed since then.")


class NewWebhookSerializer(WebhookSerializer):
    secret = serializers.CharField(help_text="Signs the messages; it is not shown again.")


class SecretSerializer(serializers.Serializer[Any]):
    secret = serializers.CharField(help_text="Signs the messages; it is not shown again.")


class DeliverySerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField(source="message_id", help_text="The `webhook-id` of the message.")
    event = serializers.ChoiceField(choices=[it.value for it in NoticeEvent])
    notice = serializers.SerializerMethodField(help_text="Null for a test.")
    attempts = serializers.IntegerField()
    status = serializers.IntegerField(allow_null=True, help_text="Of the last answer over HTTP.")
    error = serializers.CharField(help_text="Why the last attempt failed; else empty.")
    created_at = InstantField()
    next_attempt_at = InstantField(source="due_at", allow_null=True)
    delivered_at = InstantField(allow_null=True)

    def get_notice(self, delivery: NoticeDelivery) -> int | None:
        return delivery.notice_id
