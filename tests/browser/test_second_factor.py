"""A security key of Chromium's own: added, then asked for at the next sign-in (S22)."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from tests.browser.conftest import PASSWORD, Open, Reader

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
KEY = {
    "protocol": "ctap2",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}


def plug_in_key(reader: Reader) -> None:
    """Give the browser a key that touches itself."""
    wire = reader.context.new_cdp_session(reader.page)
    wire.send("WebAuthn.enable")
    wire.send("WebAuthn.addVirtualAuthenticator", {"options": KEY})


def test_s22_a_passkey_is_added_and_signs_in(
    open_reader: Open, person: User, settings: Any
) -> None:
    settings.FAILSOFT_REQUIRE_MFA = True
    User.objects.filter(pk=person.pk).update(is_staff=True)
    reader = open_reader()
    page = reader.page
    reader.open("/accounts/login/")
    plug_in_key(reader)
    page.fill("[name=login]", "ann")
    page.fill("[name=password]", PASSWORD)
    page.press("[name=password]", "Enter")
    # Staff without a second factor land here, whatever they ask for.
    page.wait_for_url("**/accounts/2fa/")
    reader.open("/accounts/2fa/webauthn/add/")
    page.fill("[name=name]", "this laptop")
    page.check("[name=passwordless]")
    page.click("#mfa_webauthn_add")
    page.wait_for_url("**/accounts/2fa/recovery-codes/**")
    assert reader.axe_violations() == []
    reader.open("/")
    assert page.url.endswith("/")
    page.context.clear_cookies()
    reader.open("/accounts/login/")
    page.click("#passkey_login")
    page.wait_for_url(reader.base_url + "/")
    reader.check()
