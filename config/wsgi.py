"""The web application."""

import os

from django.core.wsgi import get_wsgi_application
from django.urls import get_resolver

from config.gc_tuning import set_aside_what_stays

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
# Threads of one web process share connections; see config.database.
os.environ.setdefault("FAILSOFT_DATABASE_POOL_SIZE", "8")

application = get_wsgi_application()
# Every view is loaded before the first request, not during it.
get_resolver().url_patterns  # noqa: B018 - loads on access
set_aside_what_stays()
