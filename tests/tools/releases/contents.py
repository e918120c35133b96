"""Contents that are put into a server of a release through its public interfaces, and answers that later versions
must keep.
"""

import base64
import hmac
import json
import re
import time
from datetime import UTC, datetime
from urllib.parse import parse_qs, urlsplit

from azure.core.credentials import AzureNamedKeyCredential
from azure.data.tables import (
    AccountSasPermissions,
    ResourceTypes,
    TableAccessPolicy,
    TableAnalyticsLogging,
    TableCorsRule,
    TableMetrics,
    TableRetentionPolicy,
    TableSasPermissions,
    UpdateMode,
    generate_account_sas,
    generate_table_sas,
)

from tests.tools.releases.doors import EXACT

ACCOUNT = "shop"
END = datetime(2199, 1, 1, tzinfo=UTC)
PEOPLE = f"a/{ACCOUNT}/t/people/"
LONG_FILTER = " or ".join(f"Name eq '{'x' * 40}{number}'" for number in range(50)) + " or Name eq 'Ada'"
# changed by other requests, by time, or by an upgrade on purpose
_VOLATILE = {"requests_24h", "last_used_at", "history_days", "kept_until", "adaptive_indexes"}

# each type with its borders, written as a client may write it
EXACT_ENTITIES = (
    (
        r'{"PartitionKey":"types","RowKey":"all","Text":"a\u0000\u0001\n\ud83d\ude00","Surrogate":"\ud800","Empty":"",'
        r'"Int":-2147483648,"Long":"9223372036854775807","Long@odata.type":"Edm.Int64","Yes":true,"No":false,'
        r'"Zero":-0.0,"Tiny":4.9E-324,"Huge":1.7976931348623157E308,"Whole":"5","Whole@odata.type":"Edm.Double",'
        r'"NaN":"NaN","NaN@odata.type":"Edm.Double","Up":"Infinity","Up@odata.type":"Edm.Double",'
        r'"Down":"-Infinity","Down@odata.type":"Edm.Double","First":"1601-01-01T00:00:00Z",'
        r'"First@odata.type":"Edm.DateTime","Last":"9999-12-31T23:59:59.9999999Z","Last@odata.type":"Edm.DateTime",'
        r'"Guid":"c9da6455-213d-42c9-9a79-3e9149a57833","Guid@odata.type":"Edm.Guid",'
        r'"Bytes":"AP/+","Bytes@odata.type":"Edm.Binary","No_bytes":"","No_bytes@odata.type":"Edm.Binary"}'
    ),
    r'{"PartitionKey":"","RowKey":"","Both":"keys are empty"}',
    r'{"PartitionKey":"o\u0027Hara \"&<b>","RowKey":"\u4e2d\u6587 \ud83d\ude00","Name":"\u0130stanbul"}',
    json.dumps(
        {"PartitionKey": "中" * 1024, "RowKey": "文" * 1024, "Name": "more bytes than an index entry has"}
    ),
    json.dumps({"PartitionKey": "wide", "RowKey": "", **{f"P{number:03}": number for number in range(252)}}),
    json.dumps(
        {"PartitionKey": "large", "RowKey": "", **{f"S{number}": "é" * 32_000 for number in range(2)}}
    ),
)


def fill(doors):
    """Fill a server that has the users maria (admin), jo and ada, and return what is needed to read it."""
    doors.api(
        "accounts",
        {
            "name": ACCOUNT,
            "label": "Shop",
            "description": "İşler\n中文",
            "colour": "#336699",
            "labels": {"a": "b"},
        },
    )
    doors.api(f"accounts/{ACCOUNT}/members/jo", {"role": "editor"}, "PUT")
    key = doors.keys(ACCOUNT)["key1"]
    credential = AzureNamedKeyCredential(ACCOUNT, key)
    sas = generate_account_sas(
        credential,
        ResourceTypes.from_string("sco"),
        AccountSasPermissions.from_string("rwdlacu"),
        expiry=END,
    )
    made = {"sas": sas, "tokens": {}, "key": key}
    with doors.service(ACCOUNT, key) as service:
        _fill_tables(doors, service, made)
        _fill_access(doors, service, credential, made)
        if doors.has("/snapshots"):
            _fill_past(doors, service, made)
    _fill_console(doors, made)
    doors.api("accounts", {"name": "guarded"})
    doors.api(
        "accounts/guarded", {"protected": True, "read_only": True, "networks": ["192.0.2.0/24"]}, "PATCH"
    )
    doors.api("accounts", {"name": "frozen"})
    doors.api("accounts/frozen/freeze", {})
    return made


def _fill_tables(doors, service, made):
    for name, description in (("people", "Who they are"), ("Empty", ""), ("deleted", "It comes back")):
        doors.api(f"accounts/{ACCOUNT}/tables", {"name": name, "description": description, "tags": ["demo"]})
    for text in EXACT_ENTITIES:
        doors.insert(ACCOUNT, "people", text, made["sas"])
    people = service.get_table_client("people")
    for row, name in (("ada", "Ada"), ("grace", "Grace"), ("kay", "Kay"), ("gone", "Gone")):
        people.create_entity({"PartitionKey": "se", "RowKey": row, "Name": name, "Age": 36})
    people.update_entity({"PartitionKey": "se", "RowKey": "grace", "Born": datetime(1906, 12, 9, tzinfo=UTC)})
    people.update_entity({"PartitionKey": "se", "RowKey": "kay", "Only": b"this"}, mode=UpdateMode.REPLACE)
    people.delete_entity("se", "gone")
    rows = [{"PartitionKey": "batch", "RowKey": f"{number:03}", "Number": number} for number in range(100)]
    people.submit_transaction([("create", row) for row in rows])
    people.submit_transaction(
        [("upsert", {**row, "Odd": True}) for row in rows[1::2]] + [("delete", rows[0])]
    )
    deleted = service.get_table_client("deleted")
    deleted.create_entity({"PartitionKey": "p", "RowKey": "r", "Kept": True})
    made["deleted"] = doors.entities(ACCOUNT, "deleted", made["sas"])
    doors.api(f"accounts/{ACCOUNT}/tables/deleted", method="DELETE")


def _fill_access(doors, service, credential, made):
    people = service.get_table_client("people")
    people.set_table_access_policy(
        {
            "reader": TableAccessPolicy(permission="r", start=datetime(2020, 1, 1, tzinfo=UTC), expiry=END),
            "open": TableAccessPolicy(permission="raud"),
            "bare": None,
        }
    )
    keep = TableRetentionPolicy(enabled=True, days=5)
    service.set_service_properties(
        analytics_logging=TableAnalyticsLogging(read=True, write=False, delete=True, retention_policy=keep),
        hour_metrics=TableMetrics(enabled=True, include_apis=True, retention_policy=keep),
        cors=[
            TableCorsRule(
                ["https://example.com"], ["GET", "PUT"], allowed_headers=["x-*"], max_age_in_seconds=9
            )
        ],
    )
    for label, permissions in (("report", "r"), ("blocked", "ra")):
        token = {"label": label, "table": "people", "permissions": permissions, "expires_at": END.isoformat()}
        issued = doors.api(f"accounts/{ACCOUNT}/sas", token)
        made["tokens"][label] = issued["token"].lstrip("?")
    doors.api(f"accounts/{ACCOUNT}/sas/{issued['fingerprint']}/block", {})
    made["tokens"]["policy"] = generate_table_sas(credential, "people", policy_id="reader")
    made["tokens"]["writer"] = generate_table_sas(
        credential, "people", permission=TableSasPermissions(add=True), expiry=END
    )


def _fill_console(doors, made):
    jo = doors.browser("jo")
    form = f"{PEOPLE}queries/new/"
    state = "f=Name+eq+'Ada'&cols=PartitionKey,RowKey,Name&top=25&view=json"
    jo.post_form(
        form,
        form,
        name="Adas",
        description="One",
        filter="Name eq 'Ada'",
        keeps_view="on",
        is_shared="on",
        state=state,
    )
    seen = re.search('name="seen" value="([^"]+)"', jo.show(f"{PEOPLE}q/adas/edit/").text)[1]
    jo.post_form(f"{PEOPLE}q/adas/update/", form, state="f=Age+eq+36&top=25", seen=seen)
    made["saved_url"] = parse_qs(urlsplit(jo.show(f"{PEOPLE}?f={LONG_FILTER}").url).query)["k"][0]
    jo.post_form(f"{PEOPLE}layouts/", form, name="Mine", cols="Age,Name", tables="peo*")
    jo.post_form(f"{PEOPLE}star/", form, starred="1")
    looks = {"language": "tr", "time_zone": "Europe/Istanbul", "theme": "dark", "density": "compact"}
    jo.post_form("me/", "me/", **looks, edit_mode="direct")
    ada = doors.get(ACCOUNT, "people(PartitionKey='se',RowKey='ada')", made["sas"])
    fields = {"key": _encode("se", "ada"), "etag": ada.headers["ETag"], "type": "Edm.Int32", "value": "37"}
    jo.post_form(f"{PEOPLE}cell/", form, property="Age", **fields)
    jo.post_form(f"{PEOPLE}delete/", form, key=_encode("se", "kay"))
    doors.api(f"accounts/{ACCOUNT}/tables/people", {"description": "Changed", "tags": ["x"]}, "PATCH")
    ada = doors.browser("ada")
    ada.post_form("me/again/", "me/again/", password=doors.passwords["ada"])
    made["authenticator"] = re.search("<code>([A-Z2-7]{32})</code>", ada.show("me/security/app/").text)[1]
    ada.post_form("me/security/app/", "me/", code=_code_of(made["authenticator"]))


def _code_of(authenticator):
    """Return what an authenticator app shows."""
    moment = (int(time.time()) // 30).to_bytes(8)
    digest = hmac.digest(base64.b32decode(authenticator), moment, "sha1")
    number = int.from_bytes(digest[digest[-1] & 15 :][:4]) & 0x7FFFFFFF
    return f"{number % 1_000_000:06}"


def _encode(partition_key, row_key):
    """Return the key of an entity as the console writes it in addresses and forms."""
    text = json.dumps([partition_key, row_key], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _fill_past(doors, service, made):
    """Add what versions have that keep history: a snapshot, a branch, an index of a property, changes after them."""
    doors.api(f"accounts/{ACCOUNT}/snapshots", {"name": "first"})
    doors.api(f"accounts/{ACCOUNT}/branches", {"name": "branched"})
    doors.api(f"accounts/{ACCOUNT}/tables/people/indexes", {"property": "Name"})
    people = service.get_table_client("people")
    made["before"] = people.get_entity("se", "grace").metadata["timestamp"].isoformat()
    people.update_entity({"PartitionKey": "se", "RowKey": "grace", "Age": 38})
    people.delete_entity("batch", "001")


def read(doors, made):
    """Return what all doors answer; reading changes nothing of it."""
    results = {
        "activity": [it for it in doors.pages("accounts/shop/activity?limit=500") if _is_old(it, made)]
    }
    made.setdefault("last", max(it["id"] for it in results["activity"]))
    results["accounts"] = doors.pages("accounts")
    for it in results["accounts"]:
        of = f"accounts/{it['name']}"
        results[of] = {
            "tables": doors.pages(f"{of}/tables"),
            "deleted": doors.pages(f"{of}/tables?state=deleted"),
            "keys": doors.keys(it["name"]),
            "members": doors.pages(f"{of}/members"),
            "sas": [sas for sas in doors.pages(f"{of}/sas") if sas["is_registered"]],
            "service properties": doors.api(f"{of}/service-properties"),
        }
    sas = made["sas"]
    results["policies"] = doors.api("accounts/shop/tables/people/policies")
    results["entities"] = {name: doors.entities("shop", name, sas) for name in ("people", "Empty")}
    results["points"] = [
        doors.get("shop", f"people(PartitionKey='{partition}',RowKey='{row}')", sas).text.replace(
            doors.url, ""
        )
        for partition, row in (("", ""), ("types", "all"), ("中" * 1024, "文" * 1024))
    ]
    results["tokens"] = {
        label: doors.get("shop", "people(PartitionKey='se',RowKey='ada')", token).status_code
        for label, token in made["tokens"].items()
    }
    jo = doors.browser("jo")
    results["sign-ins"] = {name: doors.browser(name).is_signed_in for name in ("maria", "jo")}
    results["saved query"] = parse_qs(urlsplit(jo.show(f"{PEOPLE}q/adas/").url).query)
    results["versions"] = [str(it["number"]) for it in _earlier_versions(jo)]
    saved = jo.show(f"{PEOPLE}?k={made['saved_url']}")
    results["saved address"] = [saved.status_code, ">Ada<" in saved.text, ">Grace<" in saved.text]
    results["layout"] = parse_qs(urlsplit(jo.show(PEOPLE).url).query)
    results["preferences"] = re.findall(
        '(?:lang|data-theme|data-density)="([^"]*)"', saved.text.partition("<head>")[0]
    )
    results["bookmark"] = "people" in jo.show("").text
    if "before" in made:
        results |= _read_past(doors, made)
    return results


def _earlier_versions(jo):
    """Return what 1.0 and older kept of a saved query beside its latest version."""
    _latest, *earlier = json.loads(jo.show(f"{PEOPLE}q/adas/versions/").text) or [None]
    return earlier


def _is_old(entry, made):
    return entry["id"] <= made.get("last", entry["id"])


def _read_past(doors, made):
    past = {**EXACT, "x-tablero-as-of": made["before"]}
    return {
        "history": doors.pages("accounts/shop/tables/people/history?pk=se&rk=grace"),
        "snapshots": doors.pages("accounts/shop/snapshots"),
        "branches": doors.pages("accounts/shop/branches"),
        "indexes": [it["property"] for it in doors.pages("accounts/shop/tables/people/indexes")],
        "as of": doors.entities("shop", "people", made["sas"], past),
    }


def use(doors, made):
    """Undo old entries of the activity log, restore a table, sign in by an authenticator; return what is wrong then."""
    ada = doors.browser("ada")
    ada.post_form("login/mfa/", "login/mfa/", code=_code_of(made["authenticator"]))
    jo = doors.browser("jo")
    done = {
        it["verb"]: it["id"] for it in doors.pages("accounts/shop/activity?limit=500") if _is_old(it, made)
    }
    for verb in ("entity.change", "entity.delete"):
        jo.post_form(f"undo/{done[verb]}/", f"{PEOPLE}queries/new/", next=f"/ui/{PEOPLE}")
    doors.browser("maria").post_form(f"undo/{done['table.change']}/", f"{PEOPLE}queries/new/", next="/ui/")
    doors.api("accounts/shop/tables/deleted/restore", {})
    people = doors.entities("shop", "people", made["sas"])
    expected = {"description": "Who they are", "deleted": made["deleted"], "second factor": True}
    results = {
        "description": doors.api("accounts/shop/tables/people")["description"],
        "deleted": doors.entities("shop", "deleted", made["sas"]),
        "second factor": ada.show("me/").url.endswith("/me/"),
    }
    if made["found"]["versions"]:
        expected["earlier query"] = ["Adas", "One", "Name eq 'Ada'"]
        [first] = _earlier_versions(jo)
        results["earlier query"] = [first["name"], first["description"], first["content"]["f"]]
    for row, expression, value in (("ada", r'"Age":(\d+)', "36"), ("kay", '"Only":"([^"]*)"', "dGhpcw==")):
        expected[row] = value
        results[row] = re.search(f'(?s)"RowKey":"{row}".*?{expression}', people)[1]
    return list(differences(expected, results))


def _unordered(value):
    """Return the sorted members of a JSON answer, all characters beyond ASCII escaped.

    Servers up to 1.0 had another order, line feeds between members, and did not escape the keys that they read.
    """
    if not isinstance(value, str) or '"PartitionKey":' not in value:
        return value
    return sorted(_MEMBER.findall(_NOT_ASCII.sub(lambda match: json.dumps(match[0])[1:-1], value)))


_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")
_STRING = r'"(?:[^"\\]|\\.)*"'
_MEMBER = re.compile(rf"{_STRING}:(?:{_STRING}|[^\s,{{}}\[\]]+)")


def differences(expected, answered, path=""):
    """Return where an answer lacks something; what later versions add to an answer is left out."""
    if isinstance(expected, dict) and isinstance(answered, dict):
        for name, value in expected.items():
            if name not in _VOLATILE:
                yield from differences(value, answered.get(name, "(missing)"), f"{path}/{name}")
    elif isinstance(expected, list) and isinstance(answered, list) and len(expected) == len(answered):
        for number, pair in enumerate(zip(expected, answered, strict=True)):
            yield from differences(*pair, f"{path}/{number}")
    elif _unordered(expected) != _unordered(answered):
        yield f"{path}: {expected!r} became {answered!r}"
