"""Requirements of every answer, whatever the request was."""

import json
import re
from xml.etree import ElementTree

from tests.faults.connection import Answer

NAMESPACE = "{http://schemas.microsoft.com/ado/2007/08/dataservices/metadata}"
GUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
ENDING = re.compile(rf"\nRequestId:({GUID})\nTime:\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{{7}}Z\Z")
UNAVAILABLE = {(503, "ServerBusy"), (500, "OperationTimedOut")}


def check_answer(answer: Answer, *, head: bool = False) -> None:
    """Check that an answer is a success or a well-formed refusal; raises AssertionError."""
    assert answer.status < 500 or answer.status == 501, answer
    assert answer.headers.get("server"), answer
    assert re.fullmatch(GUID, answer.headers["x-ms-request-id"]), answer
    if answer.status >= 400:
        check_error(answer, head=head)
    elif answer.headers.get("content-type", "").startswith("application/json") and not head:
        json.loads(answer.body)


def check_error(answer: Answer, *, head: bool = False) -> None:
    assert (answer.status == 501) == (answer.code == "NotImplemented"), answer
    assert re.fullmatch("[A-Za-z0-9]+", answer.code), answer
    if head:
        return
    code, message = read_error(answer)
    assert code == answer.code, answer
    ending = ENDING.search(message)
    assert ending and ending[1] == answer.headers["x-ms-request-id"], answer


def read_error(answer: Answer) -> tuple[str, str]:
    """Code and message of the body."""
    if answer.headers["content-type"].startswith("application/json"):
        error = json.loads(answer.body)["odata.error"]
        assert set(error) == {"code", "message"} and set(error["message"]) == {"lang", "value"}, answer
        return error["code"], error["message"]["value"]
    assert answer.headers["content-type"].startswith("application/xml"), answer
    root = ElementTree.fromstring(answer.body)
    assert root.tag == f"{NAMESPACE}error", answer
    code, message = root.findtext(f"{NAMESPACE}code"), root.findtext(f"{NAMESPACE}message")
    assert code and message, answer
    return code, message


def is_failed_change_set(answer: Answer) -> bool:
    return answer.status == 202 and re.search(rb"^HTTP/1\.1 [45]", answer.body, re.MULTILINE) is not None


def check_api_answer(answer: Answer) -> None:
    """Check an answer of the management API: JSON, and problem details for refusals."""
    assert answer.status < 500 and answer.status != 401, answer
    kind = answer.headers.get("content-type", "")
    if answer.status >= 400:
        assert kind.startswith("application/problem+json"), answer
        problem = json.loads(answer.body)
        assert problem["status"] == answer.status and problem["title"] and problem["type"], answer
    elif kind.startswith("application/json"):
        json.loads(answer.body)


def check_page_answer(answer: Answer) -> None:
    """Check an answer of the console: a page or a part of one, a redirection, a file, or nothing."""
    assert answer.status < 500, answer
    kind = answer.headers.get("content-type", "")
    if 300 <= answer.status < 400 and answer.status != 304:
        assert answer.headers["location"], answer
        assert not answer.headers["location"].startswith("/ui/login/"), "the session has ended"
    elif answer.body:
        assert kind, answer
        if kind.startswith("text/"):
            text = answer.body.decode()
            assert "Traceback (most recent" not in text, answer
        if kind.startswith("application/json"):
            json.loads(answer.body)
