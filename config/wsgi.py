"""The web application."""

import os

from django.core.wsgi import get_wsgi_application
from django.urls import get_resolver

from config.gc_tuning import freeze_loaded_objects

# Threads of one web process share connections; see config.database.
os.environ.setdefault("FAILSOFT_DATABASE_POOL_SIZE", "8")

application = get_wsgi_application()
# Load every view before the first request.
get_resolver().url_patterns  # noqa: B018 - loads on access
freeze_loaded_objects()
