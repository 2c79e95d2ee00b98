"""The product with one address only, the plain endpoint's."""

from django.conf import settings
from django.core.wsgi import get_wsgi_application

settings.ROOT_URLCONF = "bench.ingest.plain_urls"
application = get_wsgi_application()
