"""The first sign-in of a user whom the command has added: the generated password is changed before anything else."""

import re

import requests


def sign_in_first(base: str, user: str, generated: str) -> tuple[requests.Session, str]:
    """Return a session of the user, and the password that was chosen; ``base``: the server's URL."""
    session = requests.Session()
    session.headers["Accept-Language"] = "en"
    page = session.get(f"{base}/ui/login/")
    page = _post(session, page, login=user, password=generated)
    chosen = "a password of many words"
    page = _post(session, page, current=generated, password=chosen, repeated=chosen)
    assert page.url.endswith("/ui/"), page.url
    return session, chosen


def _post(session: requests.Session, page: requests.Response, **fields: str) -> requests.Response:
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page.text)
    assert token is not None, page.url
    form = {"csrfmiddlewaretoken": token[1], **fields}
    return session.post(page.url, form, headers={"Referer": page.url}, timeout=60)
