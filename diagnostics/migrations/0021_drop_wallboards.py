"""Wallboards are gone; the Grafana boards in docs/grafana show the same."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("diagnostics", "0020_series_names")]

    operations = [migrations.DeleteModel("Wallboard")]
