"""All addresses: the apps', sign-in, administration and health."""

from django.contrib import admin
from django.urls import include, path

from config.readiness import healthz, readyz

handler500 = "diagnostics.views.errors.server_error"

urlpatterns = [
    path("healthz", healthz, name="healthz"),
    path("readyz", readyz, name="readyz"),
    path("accounts/", include("allauth.urls")),
    path("admin/", admin.site.urls),
    path("", include("agents.urls")),
    path("", include("plans.urls")),
    path("", include("diagnostics.urls")),
]
