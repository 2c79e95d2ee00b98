"""All addresses: the apps', sign-in, administration and health."""

from django.contrib import admin
from django.urls import include, path

from config.administration import prepare_administration
from config.readiness import healthz, readyz

prepare_administration()

handler400 = "diagnostics.views.errors.bad_request"
handler403 = "diagnostics.views.errors.not_allowed"
handler404 = "diagnostics.views.errors.not_found"
handler429 = "diagnostics.views.errors.too_many"
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
