"""Import of a file in steps: upload, column mapping, check and execution."""

import json
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, replace
from functools import wraps
from typing import Any, Final

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from console.entities.typed_input import TYPES
from console.grid.tabular import ReportView
from console.jobs.presentation import JobView
from console.site import time_zones
from console.site.access import RoleNeeded, account_required, actor_of, role_of, table_required
from console.site.refusals import describe_refusal, notify_refusals
from console.site.responses import render, render_page, wants_json
from console.site.toasts import notify_success
from console.site.typed_text import field_text
from console.transfer import encodings
from console.transfer.column_part import ColumnPart, count_certain
from console.transfer.formats import (
    FormatView,
    describe_values,
    reading_choices,
    reading_value,
)
from console.transfer.keys import has_irregular_key, view_keys, view_proposals
from console.transfer.mapping_form import read_mapping
from console.transfer.presentation import (
    DELIMITERS,
    FORMATS,
    MISFITS,
    MODES,
    ChangeView,
    GroupView,
    describe_guess,
    describe_reject,
)
from storage.domain.access.roles import Capability, may
from storage.domain.errors import StorageError
from storage.domain.refusals import Reason, Refused
from storage.domain.values.numbers import read_number
from storage.entities.writing import WriteMode
from storage.jobs.states import JobStatus
from storage.models import Account, ImportDraft, Table
from storage.rest.lookups import or_404
from storage.tables import tables
from storage.tabular.encodings import ENCODINGS
from storage.tabular.layout import FileFormat, FileRefused, Wishes
from storage.tabular.mapping import Column, OnMisfit
from storage.tabular.proposals import ProposedColumn
from storage.tabular.rejects import Repair
from storage.transfer import import_drafts, import_jobs
from storage.transfer.import_drafts import DraftFile

PASTED: Final = "pasted.txt"
DraftView = Callable[[HttpRequest, ImportDraft], HttpResponseBase]


@require_http_methods(["GET", "POST"])
@table_required(Capability.WRITE)
def start(request: HttpRequest, table: Table) -> HttpResponse:
    """Receive a file for a table, whole or to be uploaded in pieces by a script."""
    return _start(request, table.account, table)


@require_http_methods(["GET", "POST"])
@account_required(Capability.MANAGE_TABLES)
def start_new(request: HttpRequest, account: Account) -> HttpResponse:
    """Receive a file for a table named in the form, which need not exist."""
    return _start(request, account, None)


def _start(request: HttpRequest, account: Account, table: Table | None) -> HttpResponse:
    error = ""
    if request.method == "POST":
        try:
            return _take(request, account, table)
        except (Refused, StorageError) as refused:
            error = describe_refusal(refused)
        if wants_json(request):
            return JsonResponse({"error": error}, status=422)
    context = {
        "page_layout": "base.html" if table is None else "table_inner.html",
        "table": table,
        "error": error,
        "name": request.POST.get("table", ""),
        "drafts": import_drafts.listed(account, "" if table is None else table.name, by=actor_of(request)),
        "text": field_text(request.POST.get("text", "")),
    }
    return render_page(request, "console/transfer/start.html", context, status=422 if error else 200)


def _take(request: HttpRequest, account: Account, table: Table | None) -> HttpResponse:
    name = request.POST.get("table", "") if table is None else table.name
    by = actor_of(request)
    if wants_json(request):
        size = read_number(request.POST.get("size", "")) or 0
        draft = import_drafts.create(
            account, name, request.POST.get("name", ""), size, by=by, language=_language(request)
        )
        return JsonResponse({"address": reverse("transfer:upload", args=(account.name, draft.pk))})
    sent = request.FILES.get("file")
    content = field_text(request.POST.get("text", "")).encode() if sent is None else sent.read()
    if not content:
        raise FileRefused(Reason.FILE_ROWS_EMPTY)
    draft = import_drafts.create(
        account,
        name,
        PASTED if sent is None else sent.name or "",
        len(content),
        by=by,
        language=_language(request),
    )
    import_drafts.receive(draft, 0, content, by=by)
    return redirect("transfer:map", account.name, draft.pk)


def _language(request: HttpRequest) -> str:
    """Return the browser's preferred language, such as tr-TR, or an empty string."""
    return re.split("[,;]", request.headers.get("Accept-Language", ""))[0].strip()[:35]


def draft_required(view: DraftView) -> Callable[..., HttpResponseBase]:
    """Pass the user's draft in the URL to the view; raises 404 without one."""

    @never_cache
    @account_required(Capability.WRITE)
    @wraps(view)
    def find(request: HttpRequest, account: Account, /, draft: int) -> HttpResponseBase:
        import_draft = or_404(import_drafts.get(account, draft, by=actor_of(request)))
        return view(request, import_draft)

    return find


@require_http_methods(["GET", "POST"])
@draft_required
def upload(request: HttpRequest, draft: ImportDraft) -> HttpResponseBase:
    """Write a piece of the file at ``start``; respond with the size so far, where the upload continues."""
    if draft.file is None:
        raise Http404
    size = draft.file.size
    if request.method == "POST":
        start = read_number(request.GET.get("start", "")) or 0
        try:
            size = import_drafts.receive(draft, start, request.body, by=actor_of(request))
        except Refused as refused:
            return JsonResponse({"error": describe_refusal(refused)}, status=422)
    address = reverse("transfer:map", args=(draft.account.name, draft.pk)) if size == draft.size else ""
    return JsonResponse({"size": size, "next": address})


@require_POST
@draft_required
def discard(request: HttpRequest, draft: ImportDraft) -> HttpResponseBase:
    """Delete a draft with its file, and return to the page for files."""
    import_drafts.discard(draft)
    notify_success(request, _("Discarded the import of %(file)s.") % {"file": draft.file_name})
    exists = tables.get_or_new(draft.account, draft.table_name).pk is not None
    name = "transfer:start" if exists else "transfer:start_new"
    return redirect(name, draft.account.name, *[draft.table_name][:exists])


@require_http_methods(["GET", "POST"])
@draft_required
def map_columns(request: HttpRequest, draft: ImportDraft) -> HttpResponseBase:
    """Show a file's layout and column mapping, save changes, or check all rows."""
    if draft.job is not None:
        return redirect("transfer:run", draft.account.name, draft.pk)
    error, needs_keys = "", False
    if request.method == "POST":
        try:
            _save_mapping(request.POST, draft)
            if "reread" in request.POST or "read_as" in request.POST:
                import_drafts.read_otherwise(draft, _read_wishes(request.POST, draft))
            if "check" in request.POST:
                import_drafts.check(draft, by=actor_of(request))
                return redirect("transfer:check", draft.account.name, draft.pk)
        except (Refused, StorageError) as refused:
            needs_keys = isinstance(refused, Refused) and refused.refusal.reason is Reason.FILE_ROWS_NO_KEY
            error = "" if needs_keys else describe_refusal(refused)
    return _show_map(request, draft, error, needs_keys=needs_keys)


def _save_mapping(sent: QueryDict, draft: ImportDraft) -> None:
    if "partition_key" in sent:  # else the file could not be read
        mapping = read_mapping(sent, import_drafts.read(draft))
        import_drafts.save_mapping(draft, mapping, _read_mode(sent))


def _read_wishes(sent: QueryDict, draft: ImportDraft) -> Wishes:
    format_, delimiter = sent.get("format", ""), sent.get("delimiter", "")
    return replace(
        import_drafts.wishes_of(draft),
        format=FileFormat(format_) if format_ in list(FileFormat) else None,
        encoding=_read_encoding(sent, draft),
        delimiter=delimiter if delimiter in DELIMITERS else "",
        sheet=field_text(sent.get("sheet", "")),
        has_header=sent.get("header") != "no",
    )


def _read_encoding(sent: QueryDict, draft: ImportDraft) -> str:
    """Return the selected encoding; empty if the page only shows the detected one."""
    pressed, listed = sent.get("read_as", ""), sent.get("encoding", "")
    if pressed in ENCODINGS:
        return pressed
    if not import_drafts.wishes_of(draft).encoding:
        with suppress(Refused):
            if listed == import_drafts.read(draft).rows.layout.encoding:
                return ""
    return listed if listed in ENCODINGS else ""


def _read_mode(sent: QueryDict) -> WriteMode:
    mode = sent.get("mode", "")
    return WriteMode(mode) if mode in list(WriteMode) else WriteMode.MERGE


def _show_map(request: HttpRequest, draft: ImportDraft, error: str, *, needs_keys: bool) -> HttpResponse:
    is_chosen = "reread" in request.POST
    wishes = _read_wishes(request.POST, draft) if is_chosen else import_drafts.wishes_of(draft)
    context: dict[str, Any] = {
        "draft": draft,
        "error": error,
        "formats": FORMATS.items(),
        "encodings": encodings.groups(),
        "delimiters": DELIMITERS.items(),
        "types": TYPES,
        "mode": draft.mode,
        "modes": [(it.value, label, note) for it, (label, note) in MODES.items()],
        "reading": asdict(wishes),
        "step": "map",
    }
    try:
        file = import_drafts.read(draft)
        context |= {
            "layout": file.rows.layout,
            "sheets": [(it, it) for it in file.rows.layout.sheets],
            "readings": encodings.readings_of(file.rows.layout),
            "reading": asdict(file.rows.layout),
            "mapping": file.mapping,
            "is_kept": file.is_kept,
        }
        zones = [("", "UTC"), *((it, it) for it in time_zones.names())]
        part = ColumnPart.of_form(request.POST, file)
        certain, certain_read = count_certain(file)
        context |= {
            "zones": zones,
            "part": part,
            "base": json.dumps(part.mapping(file).dump()),
            "columns": _columns(file, part),
            "certain": certain,
            "certain_read": certain_read,
            "misfits": MISFITS.items(),
            "keys": view_keys(file.mapping, file.proposal, part.names, is_required=needs_keys),
            "is_advanced": "advanced" in request.POST or has_irregular_key(file.mapping),
            "key_proposals": view_proposals(file.mapping, file.proposal),
            "names": file.proposal.names,
            "rows": file.proposal.rows,
        }
        if file.mapping.partition_key and file.mapping.row_key:
            context["sample"] = _sample(draft, file)
    except (Refused, StorageError) as refused:
        context["error"] = error or describe_refusal(refused)
    status = 422 if context["error"] or needs_keys else 200
    return render_page(request, "console/transfer/map.html", context, status=status)


def _columns(file: DraftFile, part: ColumnPart) -> list[dict[str, Any]]:
    in_keys = file.mapping.whole_keys()
    listed = {it.source: it for it in file.mapping.columns}
    columns = []
    for number, proposed in part.columns:
        source = proposed.column.source
        column = listed.get(source, proposed.column)
        is_as_proposed = (column.type, column.format) == (proposed.column.type, "")
        views = [FormatView(place, it, file.mapping.zone) for place, it in enumerate(proposed.formats)]
        reading = reading_value(column.type, column.format)
        columns.append(
            {
                "number": number,
                "name": source,
                "examples": proposed.examples,
                "is_key": source in in_keys,
                "target": column.target,
                "reading": reading,
                "readings": reading_choices(column, proposed.formats),
                "before": reading_value(proposed.column.type, ""),
                "file_type": "" if proposed.file_type is None else proposed.file_type.short_name,
                "why": _describe_reading(column, proposed),
                "is_sure": proposed.is_sure or not is_as_proposed,
                "formats": views if is_as_proposed else [],
                "chosen": next((it for it in views if it.value == reading and not is_as_proposed), None),
                "on_misfit": column.on_misfit.value,
                "has_misfits": column.on_misfit is not OnMisfit.REJECT
                or any(it.value == reading and it.misfits for it in views),
            }
        )
    return columns


def _describe_reading(column: Column, proposed: ProposedColumn) -> str | Promise:
    """Explain a column's type or format; empty for a user's own choice."""
    if column.format and column.type is not None:
        return describe_values(column.type, column.format)
    if proposed.file_type is not None or column.type is not proposed.column.type:
        return ""
    return describe_guess(proposed)


def _sample(draft: ImportDraft, file: DraftFile) -> list[dict[str, Any]]:
    """Return the first rows in order, each with the keys of its entity or the reason for its rejection."""
    chunk = import_drafts.sample(draft, file)
    lines: list[dict[str, Any]] = [{"line": row.line, "key": entity.key} for row, entity in chunk.entities]
    lines += ({"line": it.row.line, "problem": describe_reject(it, it.text)} for it in chunk.rejects)
    return sorted(lines, key=lambda line: int(line["line"]))


@require_GET
@draft_required
def check(request: HttpRequest, draft: ImportDraft) -> HttpResponseBase:
    """Show the progress of the check, then the predicted result."""
    job = draft.check_job
    if draft.job is not None or job is None:
        return redirect("transfer:run" if draft.job else "transfer:map", draft.account.name, draft.pk)
    shown = JobView(job, may_change=True)
    context: dict[str, Any] = {"draft": draft, "it": shown, "step": "check"}
    if job.status == JobStatus.DONE or shown.goes_on:
        context["groups"] = [GroupView(*it) for it in enumerate(import_jobs.groups_of(job))]
    if job.status == JobStatus.DONE:
        outcome = import_jobs.outcome_of(job)
        context |= {"outcome": outcome, "writable": outcome.written, "report": ReportView(outcome.report)}
        with suppress(Refused, StorageError):  # the page of the columns shows the refusal
            context["changes"] = list(map(ChangeView, import_drafts.sample_changes(draft)))
    is_progress = "progress" in request.GET
    if is_progress and shown.goes_on:
        return render(request, "console/transfer/_check_progress.html", context)
    response = render_page(request, "console/transfer/check.html", context)
    if is_progress:
        response.headers["HX-Retarget"] = "#check"
    return response


@require_POST
@draft_required
def repair(request: HttpRequest, draft: ImportDraft) -> HttpResponseBase:
    """Apply a repair to a group of rejected rows and check again."""
    job, how = draft.check_job, request.POST.get("how", "")
    number = read_number(request.POST.get("group", ""))
    if job is None or str(job.pk) != request.POST.get("check") or number is None or how not in list(Repair):
        raise Http404
    groups = import_jobs.groups_of(job)
    if number >= len(groups):
        raise Http404
    with notify_refusals(request):
        import_drafts.repair(draft, groups[number], Repair(how), by=actor_of(request))
    return redirect("transfer:check", draft.account.name, draft.pk)


@require_http_methods(["GET", "POST"])
@draft_required
def run(request: HttpRequest, draft: ImportDraft) -> HttpResponseBase:
    """Start the import, or show its progress and result."""
    if request.method == "POST":
        exists = tables.get_or_new(draft.account, draft.table_name).pk is not None
        if not exists and not may(role_of(request), Capability.MANAGE_TABLES):
            raise RoleNeeded(Capability.MANAGE_TABLES, draft.account)
        with notify_refusals(request):
            if draft.job is not None or import_drafts.is_checked(draft):
                import_drafts.run(draft, by=actor_of(request))
                return redirect("transfer:run", draft.account.name, draft.pk)
    if draft.job is None:
        return redirect("transfer:check", draft.account.name, draft.pk)
    context = {"draft": draft, "it": JobView(draft.job, may_change=True), "step": "run"}
    return render(request, "console/transfer/run.html", context)
