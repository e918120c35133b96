"""Paths of the management API, which the console includes under /ui/api/v1/; those of rooms are in their ``api``."""

from django.urls import path

from storage.api.views import (
    accounts,
    changes,
    history,
    indexes,
    jobs,
    metrics,
    sas,
    service,
    snapshots,
    tables,
    transfer,
)
from storage.core import registry
from storage.rest import documentation
from storage.rest.routing import ACCOUNT, TABLE, api_path

SNAPSHOT = f"{ACCOUNT}/snapshots/<str:snapshot>"
TOKEN = f"{ACCOUNT}/sas/<str:fingerprint>"

urlpatterns = [
    path("schema", documentation.show, name="api-schema"),
    api_path("token", service.TokenViewSet, "token", get="retrieve"),
    api_path("activity", service.ServerActivityViewSet, "server-activity", get="index"),
    api_path("replicas", service.ReplicaViewSet, "replicas", get="index"),
    api_path("backup", service.BackupViewSet, "backup", get="retrieve"),
    api_path("jobs", jobs.JobListViewSet, "jobs", get="index"),
    api_path("jobs/<int:job>", jobs.JobViewSet, "job", get="retrieve"),
    api_path("jobs/<int:job>/cancel", jobs.JobViewSet, "job-cancel", post="cancel"),
    api_path("jobs/<int:job>/pause", jobs.JobViewSet, "job-pause", post="pause"),
    api_path("jobs/<int:job>/resume", jobs.JobViewSet, "job-resume", post="resume"),
    api_path("jobs/<int:job>/files/<int:file>", jobs.JobViewSet, "job-file", get="download"),
    api_path("accounts", accounts.AccountListViewSet, "accounts", get="index", post="create"),
    api_path(
        ACCOUNT, accounts.AccountViewSet, "account", get="retrieve", patch="partial_update", delete="destroy"
    ),
    api_path(f"{ACCOUNT}/freeze", accounts.AccountViewSet, "freeze", post="freeze"),
    api_path(f"{ACCOUNT}/thaw", accounts.AccountViewSet, "thaw", post="thaw"),
    api_path(f"{ACCOUNT}/copy", accounts.AccountViewSet, "copy", get="check_copy", post="copy"),
    api_path(f"{ACCOUNT}/export", accounts.AccountViewSet, "account-export", post="export"),
    api_path(f"{ACCOUNT}/connection-string", accounts.KeyViewSet, "connection-string", get="connection"),
    api_path(f"{ACCOUNT}/keys", accounts.KeyViewSet, "keys", get="index"),
    api_path(f"{ACCOUNT}/keys/<str:key>/rotate", accounts.KeyViewSet, "key-rotate", post="rotate"),
    api_path(f"{ACCOUNT}/keys/<str:key>/end", accounts.KeyViewSet, "key-end", post="end"),
    api_path(f"{ACCOUNT}/tables", tables.TableViewSet, "tables", get="index", post="create"),
    api_path(TABLE, tables.TableViewSet, "table", get="retrieve", patch="partial_update", delete="destroy"),
    api_path(f"{TABLE}/restore", tables.TableViewSet, "table-restore", post="restore"),
    api_path(f"{TABLE}/distribute", tables.TableViewSet, "table-distribute", post="distribute"),
    api_path(f"{TABLE}/undistribute", tables.TableViewSet, "table-undistribute", post="undistribute"),
    api_path(f"{TABLE}/policies", tables.PolicyViewSet, "policies", get="retrieve", put="update"),
    api_path(f"{TABLE}/indexes", indexes.IndexViewSet, "indexes", get="index", post="create"),
    api_path(
        f"{TABLE}/indexes/<str:property>", indexes.IndexViewSet, "index", get="retrieve", delete="destroy"
    ),
    api_path(f"{TABLE}/import", transfer.ImportViewSet, "import", post="run"),
    api_path(f"{TABLE}/export", transfer.ExportViewSet, "export", get="export", post="start"),
    api_path(f"{ACCOUNT}/changes", changes.ChangeViewSet, "changes", get="index"),
    api_path(f"{TABLE}/history", history.HistoryViewSet, "history", get="index"),
    api_path(f"{ACCOUNT}/metrics", metrics.MetricsViewSet, "metrics", get="retrieve"),
    api_path(f"{TABLE}/metrics", metrics.MetricsViewSet, "table-metrics", get="retrieve_table"),
    api_path(f"{ACCOUNT}/deployments", metrics.MetricsViewSet, "deployments", post="mark"),
    api_path(f"{ACCOUNT}/snapshots", snapshots.SnapshotViewSet, "snapshots", get="index", post="create"),
    api_path(
        SNAPSHOT,
        snapshots.SnapshotViewSet,
        "snapshot",
        get="retrieve",
        patch="partial_update",
        delete="destroy",
    ),
    api_path(f"{SNAPSHOT}/restore", snapshots.SnapshotViewSet, "snapshot-restore", post="restore"),
    api_path(
        f"{ACCOUNT}/snapshot-schedule",
        snapshots.SnapshotScheduleViewSet,
        "snapshot-schedule",
        get="retrieve",
        put="update",
        delete="destroy",
    ),
    api_path(f"{ACCOUNT}/branches", snapshots.BranchViewSet, "branches", get="index", post="create"),
    api_path(f"{ACCOUNT}/reset", snapshots.BranchViewSet, "reset", post="reset"),
    api_path(f"{ACCOUNT}/sas", sas.SasViewSet, "sas-list", get="index", post="create"),
    api_path(TOKEN, sas.SasViewSet, "sas", get="retrieve", patch="partial_update"),
    api_path(f"{TOKEN}/block", sas.SasViewSet, "sas-block", post="block"),
    api_path(f"{TOKEN}/unblock", sas.SasViewSet, "sas-unblock", post="unblock"),
    api_path(
        f"{ACCOUNT}/service-properties",
        service.ServicePropertiesViewSet,
        "service-properties",
        get="retrieve",
        put="update",
    ),
    api_path(f"{ACCOUNT}/members", service.MemberViewSet, "members", get="index"),
    api_path(
        f"{ACCOUNT}/members/<str:user>", service.MemberViewSet, "member", put="update", delete="destroy"
    ),
    api_path(f"{ACCOUNT}/activity", service.ActivityViewSet, "activity", get="index"),
    *(pattern for module in registry.api_modules() for pattern in module.urlpatterns),
]
