"""Paths of the management API, which the console includes under /ui/api/v1/."""

from typing import Any

from django.urls import URLPattern, path

from storage.api import documentation
from storage.api.views import (
    accounts,
    bulk_edit,
    changes,
    comments,
    diff,
    history,
    indexes,
    jobs,
    manifest,
    metrics,
    notices,
    requests,
    sas,
    service,
    snapshots,
    tables,
    transfer,
    undo,
)

ACCOUNT = "accounts/<str:account>"
TABLE = f"{ACCOUNT}/tables/<str:table>"
SNAPSHOT = f"{ACCOUNT}/snapshots/<str:snapshot>"
TOKEN = f"{ACCOUNT}/sas/<str:fingerprint>"
WEBHOOK = "webhooks/<int:webhook>"


def _path(route: str, view_set: Any, name: str, **actions: str) -> URLPattern:
    """Route the methods of a path to the ``actions`` of a view set."""
    found: URLPattern = path(route, view_set.as_view(actions), name=f"api-{name}")
    return found


def _webhooks(scope: str, prefix: str, view_set: Any, rules: Any) -> list[URLPattern]:
    """Return the paths of the webhooks and rules of an account, or of the server."""
    return [
        _path(f"{scope}webhooks", view_set, f"{prefix}webhooks", get="index", post="create"),
        _path(
            f"{scope}{WEBHOOK}",
            view_set,
            f"{prefix}webhook",
            get="retrieve",
            patch="partial_update",
            delete="destroy",
        ),
        _path(f"{scope}{WEBHOOK}/test", view_set, f"{prefix}webhook-test", post="test"),
        _path(f"{scope}{WEBHOOK}/secret", view_set, f"{prefix}webhook-secret", post="renew_secret"),
        _path(f"{scope}{WEBHOOK}/deliveries", view_set, f"{prefix}webhook-deliveries", get="deliveries"),
        _path(f"{scope}notice-rules", rules, f"{prefix}notice-rules", get="index"),
        _path(f"{scope}notice-rules/<str:kind>", rules, f"{prefix}notice-rule", put="update"),
    ]


urlpatterns = [
    path("schema", documentation.show, name="api-schema"),
    _path("token", service.TokenViewSet, "token", get="retrieve"),
    _path("replicas", service.ReplicaViewSet, "replicas", get="index"),
    _path("backup", service.BackupViewSet, "backup", get="retrieve"),
    _path("manifest", manifest.ManifestViewSet, "manifest", get="retrieve"),
    _path("manifest/plan", manifest.ManifestViewSet, "manifest-plan", post="plan"),
    _path("manifest/apply", manifest.ManifestViewSet, "manifest-apply", post="apply"),
    _path("jobs", jobs.JobListViewSet, "jobs", get="index"),
    _path("jobs/<int:job>", jobs.JobViewSet, "job", get="retrieve"),
    _path("jobs/<int:job>/cancel", jobs.JobViewSet, "job-cancel", post="cancel"),
    _path("jobs/<int:job>/pause", jobs.JobViewSet, "job-pause", post="pause"),
    _path("jobs/<int:job>/resume", jobs.JobViewSet, "job-resume", post="resume"),
    _path("jobs/<int:job>/files/<int:file>", jobs.JobViewSet, "job-file", get="download"),
    _path("notices", notices.NoticeViewSet, "notices", get="index"),
    _path("notices/seen", notices.NoticeViewSet, "notices-seen", post="mark_seen"),
    _path("notices/<int:notice>", notices.NoticeViewSet, "notice", get="retrieve"),
    _path("notice-mutes", notices.MuteViewSet, "notice-mutes", get="index", post="create"),
    _path("notice-mutes/<int:mute>", notices.MuteViewSet, "notice-mute", delete="destroy"),
    *_webhooks("", "server-", notices.ServerWebhookViewSet, notices.ServerRuleViewSet),
    _path("accounts", accounts.AccountListViewSet, "accounts", get="index", post="create"),
    _path(
        ACCOUNT, accounts.AccountViewSet, "account", get="retrieve", patch="partial_update", delete="destroy"
    ),
    _path(f"{ACCOUNT}/freeze", accounts.AccountViewSet, "freeze", post="freeze"),
    _path(f"{ACCOUNT}/thaw", accounts.AccountViewSet, "thaw", post="thaw"),
    _path(f"{ACCOUNT}/copy", accounts.AccountViewSet, "copy", get="check_copy", post="copy"),
    _path(f"{ACCOUNT}/export", accounts.AccountViewSet, "account-export", post="export"),
    _path(f"{ACCOUNT}/connection-string", accounts.KeyViewSet, "connection-string", get="connection"),
    _path(f"{ACCOUNT}/keys", accounts.KeyViewSet, "keys", get="index"),
    _path(f"{ACCOUNT}/keys/<str:key>/rotate", accounts.KeyViewSet, "key-rotate", post="rotate"),
    _path(f"{ACCOUNT}/tables", tables.TableViewSet, "tables", get="index", post="create"),
    _path(TABLE, tables.TableViewSet, "table", get="retrieve", patch="partial_update", delete="destroy"),
    _path(f"{TABLE}/restore", tables.TableViewSet, "table-restore", post="restore"),
    _path(f"{TABLE}/distribute", tables.TableViewSet, "table-distribute", post="distribute"),
    _path(f"{TABLE}/undistribute", tables.TableViewSet, "table-undistribute", post="undistribute"),
    _path(f"{TABLE}/policies", tables.PolicyViewSet, "policies", get="retrieve", put="update"),
    _path(f"{TABLE}/indexes", indexes.IndexViewSet, "indexes", get="index", post="create"),
    _path(f"{TABLE}/indexes/<str:property>", indexes.IndexViewSet, "index", get="retrieve", delete="destroy"),
    _path(f"{TABLE}/bulk-edit", bulk_edit.BulkEditViewSet, "bulk-edit", post="edit"),
    _path(f"{TABLE}/import", transfer.ImportViewSet, "import", post="run"),
    _path(f"{TABLE}/export", transfer.ExportViewSet, "export", get="export", post="start"),
    _path(f"{ACCOUNT}/changes", changes.ChangeViewSet, "changes", get="index"),
    _path(f"{TABLE}/history", history.HistoryViewSet, "history", get="index"),
    _path(f"{ACCOUNT}/metrics", metrics.MetricsViewSet, "metrics", get="retrieve"),
    _path(f"{TABLE}/metrics", metrics.MetricsViewSet, "table-metrics", get="retrieve_table"),
    _path(f"{ACCOUNT}/deployments", metrics.MetricsViewSet, "deployments", post="mark"),
    _path(f"{ACCOUNT}/snapshots", snapshots.SnapshotViewSet, "snapshots", get="index", post="create"),
    _path(
        SNAPSHOT,
        snapshots.SnapshotViewSet,
        "snapshot",
        get="retrieve",
        patch="partial_update",
        delete="destroy",
    ),
    _path(f"{SNAPSHOT}/restore", snapshots.SnapshotViewSet, "snapshot-restore", post="restore"),
    _path(
        f"{ACCOUNT}/snapshot-schedule",
        snapshots.SnapshotScheduleViewSet,
        "snapshot-schedule",
        get="retrieve",
        put="update",
        delete="destroy",
    ),
    _path(f"{ACCOUNT}/branches", snapshots.BranchViewSet, "branches", get="index", post="create"),
    _path(f"{ACCOUNT}/reset", snapshots.BranchViewSet, "reset", post="reset"),
    _path(f"{ACCOUNT}/diff", diff.DiffViewSet, "diff", get="show"),
    _path(f"{ACCOUNT}/diff/entities", diff.DiffViewSet, "diff-entities", get="entities"),
    _path(f"{ACCOUNT}/diff/apply", diff.DiffViewSet, "diff-apply", post="apply"),
    _path(f"{ACCOUNT}/sas", sas.SasViewSet, "sas-list", get="index", post="create"),
    _path(TOKEN, sas.SasViewSet, "sas", get="retrieve"),
    _path(f"{TOKEN}/block", sas.SasViewSet, "sas-block", post="block"),
    _path(f"{TOKEN}/unblock", sas.SasViewSet, "sas-unblock", post="unblock"),
    _path(
        f"{ACCOUNT}/service-properties",
        service.ServicePropertiesViewSet,
        "service-properties",
        get="retrieve",
        put="update",
    ),
    _path(f"{ACCOUNT}/members", service.MemberViewSet, "members", get="index"),
    _path(f"{ACCOUNT}/members/<str:user>", service.MemberViewSet, "member", put="update", delete="destroy"),
    *_webhooks(f"{ACCOUNT}/", "", notices.WebhookViewSet, notices.RuleViewSet),
    _path(f"{ACCOUNT}/comments", comments.CommentViewSet, "comments", get="index"),
    _path(f"{TABLE}/comments", comments.CommentViewSet, "table-comments", post="create"),
    _path(
        f"{ACCOUNT}/comments/<int:thread>", comments.CommentViewSet, "thread", get="retrieve", patch="resolve"
    ),
    _path(
        f"{ACCOUNT}/comments/<int:thread>/replies",
        comments.CommentViewSet,
        "replies",
        get="replies",
        post="reply",
    ),
    _path(
        f"{ACCOUNT}/comments/<int:thread>/replies/<int:comment>",
        comments.CommentViewSet,
        "reply",
        patch="edit",
        delete="destroy",
    ),
    _path(f"{ACCOUNT}/undo", undo.UndoViewSet, "undo", post="undo"),
    _path(f"{ACCOUNT}/requests", requests.RequestViewSet, "requests", get="index"),
    _path(f"{ACCOUNT}/requests/<uuid:request_id>", requests.RequestViewSet, "request", get="retrieve"),
    _path(f"{ACCOUNT}/request-statistics", requests.RequestViewSet, "request-statistics", get="statistics"),
    _path(f"{ACCOUNT}/activity", service.ActivityViewSet, "activity", get="index"),
]
