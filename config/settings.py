"""Django's settings; every variable value comes from Configuration."""

import os
import secrets
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlsplit

from csp.constants import NONE, SELF
from django.http.request import split_domain_port

from agents.fix_patterns import status
from agents.goals import state
from config.configuration import configuration
from config.database import database_settings
from config.logging import configure_logging
from config.mail import mail_settings
from config.sign_in import IDLE_MINUTES, SESSION_HOURS, sign_in_settings

CONFIGURATION = configuration()
BASE_DIR = Path(__file__).resolve().parent.parent

DEBUG = CONFIGURATION.debug
# Without a database there are no sessions, so a key for this process is enough.
SECRET_KEY = CONFIGURATION.secret_key.get_secret_value() or secrets.token_urlsafe(50)
# All settings by environment variable, except for URLs that contain a password.
globals().update(CONFIGURATION.by_variable(without={"database_url", "email_url"}))
FAILSOFT_WORKSPACE_DIR = (
    CONFIGURATION.workspace_dir or CONFIGURATION.data_dir / "workspaces"
).absolute()

_base = urlsplit(CONFIGURATION.base_url)
_secure = _base.scheme == "https"
ALLOWED_HOSTS = CONFIGURATION.allowed_hosts or sorted(
    {split_domain_port(_base.netloc)[0], "localhost", "127.0.0.1"}
)
CSRF_TRUSTED_ORIGINS = [f"{_base.scheme}://{_base.netloc}"]

INSTALLED_APPS = [
    "config.apps.FailsoftConfig",
    # Ordered from the lowest layer up, which is the order of a repeated redaction.
    "diagnostics",
    "plans",
    "agents",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
    "allauth.usersessions",
    "csp",
    "django_htmx",
    "drf_spectacular",
    "rest_framework",
]

MIDDLEWARE = [
    "config.proxy.ProxyMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "config.ingest_middleware.IngestMiddleware",
    # Before files are served: the documentation has the policy of every other page.
    "csp.middleware.CSPMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "config.accounts.SessionLimits",
    "config.second_factor.RequireSecondFactor",
]

ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

# Times of a database, a role or an environment with another style are not read by psycopg.
os.environ["PGDATESTYLE"] = "ISO"
DATABASES = {
    "default": database_settings(CONFIGURATION.database_url, CONFIGURATION.database_pool_size)
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTHENTICATION_BACKENDS = ["allauth.account.auth_backends.AuthenticationBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "/"
globals().update(sign_in_settings(CONFIGURATION))
FAILSOFT_SESSION_SECONDS = SESSION_HOURS * 3600
FAILSOFT_IDLE_SECONDS = IDLE_MINUTES * 60
FAILSOFT_OIDC_ALLOWED_DOMAINS = [domain.lower() for domain in CONFIGURATION.oidc_allowed_domains]
# Failed sign-ins are counted in a cache that all processes share.
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.db.DatabaseCache",
        "LOCATION": "failsoft_cache",
        "OPTIONS": {"MAX_ENTRIES": 100_000},
    }
}

TIME_ZONE = "UTC"
USE_I18N = False
FORMAT_MODULE_PATH = "config.formats"

STATIC_URL = "static/"
STATIC_ROOT = CONFIGURATION.data_dir.absolute() / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
# The documentation, below /docs/, where `make site` or a release has built it.
_site = BASE_DIR / "site"
WHITENOISE_ROOT = _site if _site.is_dir() else None
WHITENOISE_INDEX_FILE = True
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"
        if CONFIGURATION.static_hashed and not DEBUG
        else "django.contrib.staticfiles.storage.StaticFilesStorage"
    },
}

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "base-uri": [NONE],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
        "object-src": [NONE],
        "img-src": [SELF, "data:"],
    }
}
SECURE_SSL_REDIRECT = _secure
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$", r"^metrics$"]
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if _secure else None
SECURE_HSTS_SECONDS = 31_536_000 if _secure else 0
# Hosts below this one are somebody else's, so nothing is said of them, nor to preload lists.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]
SESSION_COOKIE_SECURE = _secure
CSRF_COOKIE_SECURE = _secure
CSRF_COOKIE_HTTPONLY = True
CSRF_FAILURE_VIEW = "diagnostics.web.errors.csrf_failed"

REST_FRAMEWORK = {
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["diagnostics.rest.bodies.StrictParser"],
    "DEFAULT_AUTHENTICATION_CLASSES": [],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_SCHEMA_CLASS": "diagnostics.rest.resources.AddressSchema",
    "UNAUTHENTICATED_USER": None,
    "EXCEPTION_HANDLER": "diagnostics.rest.faults.answer_fault",
}
# Goals, runs and items of batches have different statuses.
_ENUMS: dict[str, Iterable[str]] = {
    "AfterLastCheckEnum": ("abort", "continue"),
    "CountedEnum": ("runs", "calls"),
    "DeployKindEnum": ("release", "prompt", "schema", "validator"),
    "FailureStateEnum": ("new", "ongoing", "regressed", "resolved", "muted"),
    "FixPatternModeEnum": status.PatternMode,
    "GoalModeEnum": state.GoalMode,
    "GoalStatusEnum": state.Status,
    "RunStateEnum": ("queued", "running", "ended", "poison"),
    "VerdictStateEnum": ("ok", "degrading", "not_enough_data"),
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Failsoft",
    "DESCRIPTION": "Planning and plan execution that fails softly, and tells you why.",
    "VERSION": "1",
    # 3.1 is the first version with JSON Schema, where null is a type.
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "diagnostics.rest.resources.add_examples",
    ],
    "ENUM_NAME_OVERRIDES": {
        **{name: [(word, word) for word in words] for name, words in _ENUMS.items()},
        "BreakerStateEnum": "agents.breakers.models.STATES",
    },
}

DEFAULT_FROM_EMAIL = CONFIGURATION.email_from
globals().update(mail_settings(CONFIGURATION.email_url))

LOGGING = configure_logging(CONFIGURATION.log_level)
