"""The web application."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
# Threads of one web process share connections; see config.database.
os.environ.setdefault("FAILSOFT_DATABASE_POOL_SIZE", "8")

application = get_wsgi_application()
