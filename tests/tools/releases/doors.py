"""The public doors of a server of any version: the Table service, the management API, the console and the commands."""

import json
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import requests
from azure.core.credentials import AzureNamedKeyCredential
from azure.data.tables import TableServiceClient

from tests.live_server import clean_environment

EXACT = {
    "Accept": "application/json;odata=minimalmetadata",
    "DataServiceVersion": "3.0",
    "x-ms-version": "2019-02-02",
}
TIMEOUT = 60


def manage(checkout, data, *arguments):
    """Run a command of a checkout on a data folder, and return what it prints."""
    command, *rest = arguments
    done = subprocess.run(
        [sys.executable, "manage.py", command, "--data", str(data), *rest],
        cwd=checkout,
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


class Browser(requests.Session):
    """A person who is signed in to the console."""

    def __init__(self, url, name, password):
        super().__init__()
        self.base = f"{url}/ui/"
        self.headers["Accept-Language"] = "en"
        self.post_form("login/", login=name, password=password)
        self.is_signed_in = self.show("me/").url.endswith("/me/")

    def show(self, path):
        return self.get(self.base + path, timeout=TIMEOUT)

    def post_form(self, path, page="login/", **fields):
        """Send a form with the token of a page."""
        result = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', self.show(page).text)
        answer = self.post(
            self.base + path,
            {"csrfmiddlewaretoken": result[1], **fields},
            headers={"Referer": self.base + page},
            timeout=TIMEOUT,
        )
        assert answer.ok, answer.text[:1000]
        return answer


@dataclass
class Doors:
    url: str
    token: str = ""
    passwords: dict[str, str] = field(default_factory=dict)

    def api(self, path, body=None, method=""):
        """Return the answer of the management API without the address of the server."""
        answer = requests.request(
            method or ("GET" if body is None else "POST"),
            f"{self.url}/ui/api/v1/{path}",
            json=body,
            headers={"Authorization": f"Bearer {self.token}"},
            timeout=TIMEOUT,
        )
        assert answer.ok, answer.text[:1000]
        return json.loads(answer.text.replace(self.url, "")) if answer.text else None

    def pages(self, path):
        items = []
        while path:
            page = self.api(path)
            items += page["items"]
            path = (page.get("next") or "").removeprefix("/ui/api/v1/")
        return items

    def has(self, path):
        """Return whether the management API of this version has a path."""
        schema = requests.get(
            f"{self.url}/ui/api/v1/schema",
            headers={"Authorization": f"Bearer {self.token}", "Accept": "application/json"},
            timeout=TIMEOUT,
        )
        return path in schema.text

    def keys(self, account):
        return {it["name"]: it["value"] for it in self.api(f"accounts/{account}/keys")["items"]}

    def service(self, account, key):
        return TableServiceClient(f"{self.url}/{account}", credential=AzureNamedKeyCredential(account, key))

    def get(self, account, path, sas, headers=EXACT):
        return requests.get(f"{self.url}/{account}/{path}?{sas}", headers=headers, timeout=TIMEOUT)

    def insert(self, account, table, text, sas):
        """Insert an entity as JSON, byte for byte."""
        answer = requests.post(
            f"{self.url}/{account}/{table}?{sas}",
            text.encode(),
            headers={**EXACT, "Content-Type": "application/json", "Prefer": "return-no-content"},
            timeout=TIMEOUT,
        )
        assert answer.ok, answer.text[:1000]

    def entities(self, account, table, sas, headers=EXACT):
        """Return the entities of a table as the service sends them, with ETag and Timestamp, byte for byte."""
        parts, more = [], ""
        while True:
            answer = self.get(account, f"{table}()", f"{sas}{more}", headers)
            assert answer.ok, answer.text[:1000]
            lines = answer.text.partition('"value":[')[2].rstrip().removesuffix("}").removesuffix("]")
            parts.append(lines)
            partition = answer.headers.get("x-ms-continuation-NextPartitionKey")
            if partition is None:
                return "\n".join(parts)
            row = answer.headers.get("x-ms-continuation-NextRowKey", "")
            more = f"&NextPartitionKey={quote(partition)}&NextRowKey={quote(row)}"

    def browser(self, name):
        return Browser(self.url, name, self.passwords[name])


RELEASES = Path(__file__).parent
