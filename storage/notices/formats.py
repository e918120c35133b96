"""Formats of messages to webhooks: our own signed JSON, and those that Slack and Microsoft Teams take as they are."""

import json
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any, Final
from urllib.parse import urlsplit

from storage.core.notices import Severity
from storage.notices.kinds import NoticeEvent
from storage.notices.presentation import NoticeView


class WebhookFormat(StrEnum):
    """Format of the messages to a webhook. The values are stored."""

    JSON = "json"  # Standard Webhooks
    SLACK = "slack"  # https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks
    # an Adaptive Card: https://learn.microsoft.com/microsoftteams/platform/webhooks-and-connectors/how-to/connectors-using
    TEAMS = "teams"


# hosts of incoming webhooks; those that start with a dot are domains
_HOSTS: Final[Mapping[WebhookFormat, tuple[str, ...]]] = {
    WebhookFormat.SLACK: ("hooks.slack.com", "hooks.slack-gov.com"),
    WebhookFormat.TEAMS: (
        ".webhook.office.com",
        ".logic.azure.com",
        ".powerplatform.com",
        "outlook.office.com",
    ),
}
_TITLES: Final = {
    NoticeEvent.OPENED: "New notice",
    NoticeEvent.CHANGED: "News",
    NoticeEvent.RESOLVED: "Resolved",
    NoticeEvent.TEST: "Test",
}
_TEST_TEXT: Final = "This webhook works."
_SIGNS: Final = {Severity.ERROR: "\N{LARGE RED CIRCLE}", Severity.WARNING: "\N{LARGE YELLOW CIRCLE}"}
_RESOLVED_SIGN: Final = "\N{WHITE HEAVY CHECK MARK}"
_COLOURS: Final = {Severity.ERROR: "Attention", Severity.WARNING: "Warning"}


def guess_format(url: str) -> WebhookFormat:
    """Return the format that the host of a URL takes."""
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return WebhookFormat.JSON
    for format_, hosts in _HOSTS.items():
        if any(host == it or (it.startswith(".") and host.endswith(it)) for it in hosts):
            return format_
    return WebhookFormat.JSON


def write_body(format_: str, event: NoticeEvent, now: datetime, notice: NoticeView | None) -> str:
    """Return the body of a message; an unknown format of a newer version is written as our own."""
    match format_:
        case WebhookFormat.SLACK:
            content = _write_slack(event, notice)
        case WebhookFormat.TEAMS:
            content = _write_teams(event, notice)
        case _:
            content = _write_json(event, now, notice)
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))


def _write_json(event: NoticeEvent, now: datetime, notice: NoticeView | None) -> dict[str, Any]:
    """Return the payload in the Standard Webhooks format."""
    content: dict[str, Any] = {"type": f"notice.{event}", "timestamp": now.isoformat(), "data": {}}
    if notice is not None:
        content["data"] = {
            "id": notice.id,
            "kind": notice.kind,
            "severity": notice.severity,
            "account": notice.account,
            "subject": notice.subject,
            "text": notice.text,
            "facts": notice.facts,
            "link": notice.link,
            "opened_at": notice.opened_at.isoformat(),
            "resolved_at": None if notice.resolved_at is None else notice.resolved_at.isoformat(),
        }
    return content


def _title(event: NoticeEvent, notice: NoticeView | None) -> str:
    """Return a line such as ``Resolved: Slow requests (shop)``."""
    if notice is None:
        return f"Tablero: {_TITLES[event]}"
    account = f" ({notice.account})" if notice.account else ""
    return f"{_TITLES[event]}: {notice.kind.condition.title}{account}"


def _link(notice: NoticeView | None) -> str:
    """Return the URL of the page that helps; empty if the address of the console is not known."""
    return notice.link if notice is not None and notice.link.startswith("http") else ""


def _write_slack(event: NoticeEvent, notice: NoticeView | None) -> dict[str, Any]:
    """Return a message with blocks, and a text for notifications."""
    sign = "" if notice is None else _SIGNS.get(notice.severity, "")
    if event is NoticeEvent.RESOLVED:
        sign = _RESOLVED_SIGN
    title, text = _title(event, notice), _TEST_TEXT if notice is None else notice.text
    shown = f"{sign} *{_escape_slack(title)}*\n{_escape_slack(text)}".strip()
    if link := _link(notice):
        shown += f"\n<{_escape_slack(link)}|Open in Tablero>"
    block = {"type": "section", "text": {"type": "mrkdwn", "text": shown}}
    return {"text": _escape_slack(f"{title}: {text}"), "blocks": [block]}


def _escape_slack(text: str) -> str:
    """Escape the three control characters of Slack, so that a name cannot mention anybody or link."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _write_teams(event: NoticeEvent, notice: NoticeView | None) -> dict[str, Any]:
    """Return a message with an Adaptive Card, whose plain text runs have no markup."""
    colour = "Default" if notice is None else _COLOURS.get(notice.severity, "Default")
    if event is NoticeEvent.RESOLVED:
        colour = "Good"
    card: dict[str, Any] = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": [
            _rich_text(_title(event, notice), weight="Bolder", size="Medium", color=colour),
            _rich_text(_TEST_TEXT if notice is None else notice.text),
        ],
    }
    if link := _link(notice):
        card["actions"] = [{"type": "Action.OpenUrl", "title": "Open in Tablero", "url": link}]
    attachment = {
        "contentType": "application/vnd.microsoft.card.adaptive",
        "contentUrl": None,
        "content": card,
    }
    return {"type": "message", "attachments": [attachment]}


def _rich_text(text: str, **look: str) -> dict[str, Any]:
    """Return a text without Markdown, which a TextBlock would read."""
    return {"type": "RichTextBlock", "inlines": [{"type": "TextRun", "text": text, **look}]}
