"""Wallboards are gone; the Grafana boards in docs/grafana show the same."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("diagnostics", "0019_usage_sent")]

    operations = [migrations.DeleteModel("Wallboard")]
