"""The form that starts a copy from or to another service."""

import io
import json
from ipaddress import ip_network

import pytest

from storage.copies.copy_jobs import COPY_OUT_JOB
from storage.models import Job
from storage.runtime import job_runner
from storage.tables import tables

pytestmark = pytest.mark.django_db(transaction=True)
PATH = "/ui/a/acme/copy/"
FILE = f"{PATH}file/"
TEXT = "AccountName=acme;AccountKey=c2VjcmV0;TableEndpoint=http://127.0.0.1:1/acme;"


def test_private_addresses_are_refused_at_the_field_with_the_command(visit, account):
    client, form = visit("max"), {"direction": "in", "tables": "p* q", "deletes": "on", "with_settings": "on"}
    for url in ("http://127.0.0.1:1/acme", "https://10.0.0.1/", "https://nothing.invalid/", "https://[::1]/"):
        text = f"AccountName=acme;AccountKey=c2VjcmV0;TableEndpoint={url};"
        answer = client.post(PATH, {**form, "service": text})
        page = answer.content.decode()
        assert answer.status_code == 422 and "is a private address, which is blocked" in page
        assert "tablero copy env:SERVICE acme --table &#x27;p*&#x27; --table q --delete</pre>" in page
        assert "c2VjcmV0" not in page
    assert not Job.objects.exists()


def test_a_maintainer_starts_a_copy_and_sees_its_result(visit, add_entity, settings):
    settings.COPY_NETWORKS = [ip_network("127.0.0.0/8")]
    client = visit("max")
    assert "Other service" in client.get(PATH).content.decode()
    wrong = client.post(PATH, {"direction": "in", "service": "AccountName=acme;AccountKey=c2VjcmV0=x=%"})
    assert wrong.status_code == 422 and "c2VjcmV0" not in wrong.content.decode()
    wrong = client.post(PATH, {"direction": "in", "service": TEXT, "filter": "Age eqq 1"})
    assert wrong.status_code == 422 and "Did you mean eq?" in wrong.content.decode()
    assert not Job.objects.exists()

    answer = client.post(PATH, {"direction": "out", "service": TEXT, "tables": "p* q", "rate": "5"})
    job = Job.objects.get()
    assert (answer.status_code, answer["Location"]) == (302, f"/ui/jobs/{job.pk}/")
    assert (job.kind, job.arguments["options"]["tables"]) == (COPY_OUT_JOB.name, ["p*", "q"])
    assert "c2VjcmV0" not in json.dumps(job.arguments)
    job_runner.run_all()
    page = client.get(answer["Location"]).content.decode()
    assert "Copy to http://127.0.0.1:1/acme" in page and "cannot be reached" in page
    assert f'href="{PATH}?again={job.pk}"' in page and "/resume/" not in page
    again = client.get(f"{PATH}?again={job.pk}").content.decode()
    assert 'value="p* q"' in again and "c2VjcmV0" not in again
    assert "Enter them again" in again


def test_all_errors_of_a_form_are_shown_together(visit):
    wrong = {"direction": "in", "service": "AccountName=x;AccountKey=%", "filter": "N eq", "rename": "a"}
    page = visit("max").post(PATH, wrong).content.decode()
    for text in ("not base64", "a must be written as OLD=NEW", 'id="id_filter_error"'):
        assert text in page


def azurite_file(*accounts):
    keys = {"PartitionKey": "p", "RowKey": "1"}
    collections = [
        {"name": "$TABLES_COLLECTION$", "data": [{"account": it, "table": "people"} for it in accounts]},
        *({"name": f"{it}$people", "data": [{"properties": {**keys, "N": 1}}]} for it in accounts),
    ]
    return json.dumps({"collections": collections}).encode()


def test_a_file_of_azurite_is_sent_in_pieces_previewed_and_copied(visit, account):
    client, content = visit("max"), azurite_file("one", "two")
    begun = client.post(
        FILE, {"name": "db.json", "size": len(content)}, headers={"Accept": "application/json"}
    )
    address, half = begun.json()["address"], len(content) // 2
    for start in (0, half):
        piece = content[:half] if start == 0 else content[half:]
        sent = client.post(f"{address}?start={start}", piece, content_type="application/octet-stream").json()
    assert client.get(address).json() == sent and visit("ada").get(address).status_code == 404
    page = client.get(sent["next"]).content.decode()
    assert "db.json" in page and '<option value="two">' in page

    number = sent["next"].rpartition("=")[2]
    chosen = {"options": "1", "file": number, "file_account": "two", "rename": "people=persons"}
    answer = client.post(FILE, {**chosen, "dry_run": "on"})
    job_runner.run_all()
    page = client.get(answer["Location"]).content.decode()
    assert "Preview a copy from db.json two" in page and "To write" in page
    again = client.get(f"{FILE}?again={Job.objects.get().pk}").content.decode()
    assert 'value="people=persons"' in again and '<option value="two" selected>' in again
    answer = client.post(FILE, chosen)
    job_runner.run_all()
    page = client.get(answer["Location"]).content.decode()
    assert ">equal</span>" in page and 'href="/ui/a/acme/t/persons/"' in page
    assert tables.names(account) == ["persons"]


def test_a_small_file_needs_no_script_and_a_large_file_is_refused(visit):
    client = visit("max")
    sent = client.post(FILE, {"file": io.BytesIO(azurite_file("one"))})
    assert sent.status_code == 302 and "What is copied" in client.get(sent["Location"]).content.decode()
    sent = client.post(FILE, {"file": io.BytesIO(b"a,b")})
    refused = client.get(sent["Location"])
    assert refused.status_code == 422 and "is not a file of Azurite" in refused.content.decode()
    assert client.post(FILE).status_code == 422
    assert client.get(f"{FILE}?file=0").status_code == 422
