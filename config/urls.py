"""All URLs: the apps, sign-in, admin and health."""

from django.contrib import admin
from django.urls import include, path

from config.administration import prepare_administration
from config.oidc import begin, end
from config.packages import package, packages, wheel
from config.readiness import healthz, readyz
from config.sign_in import OIDC

prepare_administration()

handler400 = "diagnostics.web.errors.bad_request"
handler403 = "diagnostics.web.errors.not_allowed"
handler404 = "diagnostics.web.errors.not_found"
handler429 = "diagnostics.web.errors.too_many"
handler500 = "diagnostics.web.errors.server_error"

urlpatterns = [
    path("healthz", healthz, name="healthz"),
    path("readyz", readyz, name="readyz"),
    path("packages/simple/", packages, name="packages"),
    path("packages/simple/failsoft/", package, name="package"),
    path("packages/<str:name>", wheel, name="wheel"),
    path(f"accounts/oidc/{OIDC}/login/", begin),
    path(f"accounts/oidc/{OIDC}/login/callback/", end),
    path("accounts/", include("allauth.urls")),
    path("admin/", admin.site.urls),
    path("", include("agents.urls")),
    path("", include("plans.urls")),
    path("", include("diagnostics.urls")),
]
