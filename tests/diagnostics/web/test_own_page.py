import pytest
from django.test import RequestFactory

from diagnostics.web.pages import own_page


@pytest.mark.parametrize(
    ("address", "page"),
    [
        ("/models?range=24h#breakers", "/models?range=24h#breakers"),
        ("http://testserver/models?range=24h", "/models?range=24h"),
        ("http://elsewhere/models", "/"),
        ("//elsewhere/models", "/"),
        ("http://testserver//elsewhere/models", "/"),
        ("http://testserver/\\elsewhere", "/"),
        ("http://testserver", "/"),
        ("models", "/"),
        ("", "/"),
    ],
)
def test_an_address_leads_to_a_page_of_this_console_or_nowhere(address: str, page: str) -> None:
    assert own_page(RequestFactory().get("/"), address, "/") == page
