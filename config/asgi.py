"""The web application, as loaded by an ASGI server."""

import os
import signal
import sys
from multiprocessing import current_process

import django
from django.conf import settings
from django.urls import get_resolver

from config.gc_tuning import freeze_loaded_objects
from config.local.launch import end_with_starter

# A forked worker of granian inherits a handler that only notes the signal in the copied memory, and
# installs its own once this module is loaded: a stop during the start was lost, and nothing ended.
# Nor did a worker end if granian was killed: it served on, beside the workers of the next one.
if current_process().name == "granian-worker":
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    end_with_starter(signal.SIGTERM)

# Threads of one web process share connections; see config.database.
os.environ.setdefault("FAILSOFT_DATABASE_POOL_SIZE", "16")
django.setup(set_prefix=False)

# Beside threads that compute, a request waits this long each time it needs the interpreter: with
# Python's default of 5 ms and three such threads, a post took 200 ms instead of 70.
sys.setswitchinterval(0.001)

from config.celery import app  # noqa: E402 - it needs the settings
from config.web import Application  # noqa: E402 - it imports models

application = Application(settings.FAILSOFT_WEB_THREADS)
# Load every view, and the client of the broker, before the first request.
get_resolver().url_patterns  # noqa: B018 - loads on access
app.connection_for_write().get_transport_cls()
freeze_loaded_objects()
