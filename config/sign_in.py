"""Settings of Django and allauth for sign-in, from Configuration."""

from typing import Any
from urllib.parse import urlsplit

from config.configuration import Configuration

SESSION_HOURS = 12
IDLE_MINUTES = 30
REAUTHENTICATION_MINUTES = 10
# The limits of failed sign-ins of one name and of one address.
BAD_SIGN_INS = "8/15m/key,50/15m/ip"
OIDC = "sso"


def sign_in_settings(configuration: Configuration) -> dict[str, Any]:
    """Return the settings of sign-in, sessions, second factors and OpenID Connect."""
    return {
        "SESSION_COOKIE_AGE": SESSION_HOURS * 3600,
        **_account_settings(configuration),
        **_mfa_settings(configuration),
        "SOCIALACCOUNT_PROVIDERS": {"openid_connect": {"APPS": _oidc_apps(configuration)}},
    }


def _account_settings(configuration: Configuration) -> dict[str, Any]:
    return {
        "ACCOUNT_ADAPTER": "config.accounts.ClosedAccountAdapter",
        "ACCOUNT_LOGIN_METHODS": {"username", "email"},
        "ACCOUNT_FORMS": {"login": "config.accounts.SignInForm"},
        "ACCOUNT_SIGNUP_FIELDS": ["username*", "email*", "password1*", "password2*"],
        "ACCOUNT_EMAIL_VERIFICATION": "none",
        "ACCOUNT_EMAIL_SUBJECT_PREFIX": "",
        # Do not reveal which addresses have an account.
        "ACCOUNT_EMAIL_UNKNOWN_ACCOUNTS": False,
        # An address that somebody only typed stays free for its owner.
        "ACCOUNT_PREVENT_ENUMERATION": "strict",
        "ACCOUNT_LOGOUT_ON_GET": False,
        "ACCOUNT_LOGOUT_ON_PASSWORD_CHANGE": False,
        # Sessions always end with SESSION_COOKIE_AGE.
        "ACCOUNT_SESSION_REMEMBER": True,
        "ACCOUNT_REAUTHENTICATION_TIMEOUT": REAUTHENTICATION_MINUTES * 60,
        "ACCOUNT_RATE_LIMITS": {"login_failed": BAD_SIGN_INS, "login": "120/m/ip"},
        "ACCOUNT_DEFAULT_HTTP_PROTOCOL": urlsplit(configuration.base_url).scheme,
        "SOCIALACCOUNT_ADAPTER": "config.oidc.KnownPeopleAdapter",
        "SOCIALACCOUNT_EMAIL_AUTHENTICATION": False,
        "SOCIALACCOUNT_STORE_TOKENS": False,
        "SOCIALACCOUNT_REQUESTS_TIMEOUT": 5,
        "ALLAUTH_TRUSTED_PROXY_COUNT": configuration.trusted_proxies,
    }


def _mfa_settings(configuration: Configuration) -> dict[str, Any]:
    return {
        "MFA_ADAPTER": "config.second_factor.SealedFactors",
        "MFA_SUPPORTED_TYPES": ["totp", "webauthn", "recovery_codes"],
        "MFA_PASSKEY_LOGIN_ENABLED": True,
        # Administrators create accounts, so there is no address to verify.
        "MFA_ALLOW_UNVERIFIED_EMAIL": True,
        "MFA_TOTP_ISSUER": "Failsoft",
        "MFA_TOTP_TOLERANCE": 1,
        # Browsers accept http:// only on loopback.
        "MFA_WEBAUTHN_ALLOW_INSECURE_ORIGIN": urlsplit(configuration.base_url).scheme == "http",
    }


def _oidc_apps(configuration: Configuration) -> list[dict[str, Any]]:
    if not configuration.oidc_issuer:
        return []
    app = {
        "provider_id": OIDC,
        "name": configuration.oidc_name,
        "client_id": configuration.oidc_client_id,
        "secret": "",
        "settings": {"server_url": configuration.oidc_issuer, "oauth_pkce_enabled": True},
    }
    return [app]
