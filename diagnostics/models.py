"""The models of this app, for Django to find."""

from diagnostics.accounts import models as accounts
from diagnostics.alerting import incident_models, notification_models, rule_models, series_detectors
from diagnostics.failures import models as failures
from diagnostics.ingest import models as ingest
from diagnostics.prices import models as prices
from diagnostics.redaction import rules as redaction
from diagnostics.reports import models as reports
from diagnostics.store import models as store
from diagnostics.store import run_models
from diagnostics.verdict import ratings
