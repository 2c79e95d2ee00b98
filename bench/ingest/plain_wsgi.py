"""The product with one address only, the plain endpoint's."""

from django.conf import settings
from django.core.wsgi import get_wsgi_application

settings.ROOT_URLCONF = "bench.ingest.plain_urls"
# What one writes first stands behind all of the middleware.
settings.MIDDLEWARE.remove("config.ingest_middleware.IngestMiddleware")
application = get_wsgi_application()
