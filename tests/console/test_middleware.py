"""What every page says about itself."""

from django.http import HttpResponse
from django.test import RequestFactory

from console.middleware import response_headers


def test_headers():
    request = RequestFactory().get("/ui/")
    response = response_headers(lambda request: HttpResponse())(request)
    assert response["Cache-Control"] == "private, no-cache"
    assert response["Vary"] == "Cookie, HX-Request, HX-Request-Type"
    assert "camera=()" in response["Permissions-Policy"]


def test_a_view_may_say_more():
    request = RequestFactory().get("/ui/")
    response = response_headers(lambda request: HttpResponse(headers={"Cache-Control": "no-store"}))(request)
    assert response["Cache-Control"] == "no-store"
