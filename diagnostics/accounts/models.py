"""Projects and members, keys, invitations, profiles, saved views, audit entries."""

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.urls import NoReverseMatch, reverse

from diagnostics.constraints import NamedRow, check, index, known, person, unique
from diagnostics.redaction.fields import RedactedCharField


class Project(NamedRow):
    """A tenant."""

    slug = models.SlugField(max_length=63, unique=True)
    name = RedactedCharField(max_length=200)
    created_at = models.DateTimeField(db_default=Now(), editable=False)


class Membership(NamedRow):
    """A user's role in a project."""

    named = "{0.user} in {0.project} as {0.role}"

    class Role(models.TextChoices):
        """What a member may do: read, act on goals, or change settings."""

        VIEWER = "viewer"
        OPERATOR = "operator"
        ADMIN = "admin"

    project = models.ForeignKey(Project, models.CASCADE, related_name="memberships")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=16, choices=Role)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        constraints = [
            unique("diagnostics_membership_once_a_project", "project user"),
            known("diagnostics_membership_role_known", "role", "viewer operator admin"),
        ]


class ApiKey(NamedRow):
    """The public half of `fs_<key_id>_<secret>` and the SHA-256 of the secret half."""

    named = "{0.name} ({0.key_id})"
    key_id = models.CharField(max_length=32, unique=True)
    project = models.ForeignKey(Project, models.CASCADE, related_name="api_keys")
    name = RedactedCharField(max_length=200)
    secret_hash = models.BinaryField(max_length=32)
    scopes = ArrayField(models.CharField(max_length=16))
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    # Written at most once a minute, so that a busy key is not a hot row.
    last_used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = "API key"
        verbose_name_plural = "API keys"
        constraints = [
            check(
                "diagnostics_api_key_scopes_known",
                Q(scopes__contained_by=["ingest", "read", "admin"]),
            )
        ]


class AuditEntry(NamedRow):
    """A change by a user or key; `hash` covers it and the previous entry."""

    named = "{0.chain}:{0.number} {0.action}"
    # The installation's own entries lie in chain 0, a project's in the chain of its number.
    chain = models.BigIntegerField()
    number = models.BigIntegerField()
    at = models.DateTimeField()
    actor_id = models.BigIntegerField(null=True)
    actor = models.TextField()
    action = models.TextField()
    target = models.TextField()
    # Canonical JSON as text: a hash needs the very bytes.
    details = models.TextField()
    address = models.TextField(null=True)
    hash = models.BinaryField()

    class Meta:
        managed = False
        db_table = "diagnostics_auditentry"
        verbose_name_plural = "audit entries"


class Invitation(NamedRow):
    """An invitation link, stored as the SHA-256 of its secret; `used_at` is set once."""

    named = "{0.role} of {0.project_id}"
    project = models.ForeignKey(Project, models.CASCADE, related_name="invitations", db_index=False)
    role = models.CharField(max_length=16, choices=Membership.Role)
    email = models.EmailField(blank=True, default="")
    token_hash = models.BinaryField(max_length=32, unique=True)
    created_by = person(blank=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)
    used_by = person(blank=False)
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [known("diagnostics_invitation_role_known", "role", "viewer operator admin")]
        indexes = [
            # Read by the members page: the open ones, newest first.
            index(
                "diagnostics_invitation_open",
                "project -created_at",
                Q(used_at=None, revoked_at=None),
            )
        ]


class Profile(NamedRow):
    """Time zone and theme of a user; without a row, those of the browser."""

    named = "profile of {0.user_id}"

    class Theme(models.TextChoices):
        SYSTEM = "system"
        LIGHT = "light"
        DARK = "dark"

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, models.CASCADE, primary_key=True, related_name="profile"
    )
    # An IANA name; empty is the browser's.
    zone = models.CharField(max_length=64, blank=True, default="")
    theme = models.CharField(max_length=8, choices=Theme, default=Theme.SYSTEM, db_default="system")

    class Meta:
        constraints = [known("diagnostics_profile_theme_known", "theme", "system light dark")]


SAVED_PAGES = {
    "now": "Now",
    "models": "Models",
    "failures": "Failures",
    "runs": "Runs",
    "incidents": "Incidents",
    "compare": "Compare",
    "prompts": "Prompts",
}
"""Pages that can be saved, by URL name."""
Person = AbstractBaseUser | AnonymousUser


class SavedView(NamedRow):
    """A saved page: its URL name and query string.

    `query` is written as `diagnostics.selection.selection.Selection.query` writes it. Its
    owner changes it; when shared, every member of the project may open it.
    """

    project = models.ForeignKey(Project, models.CASCADE, related_name="saved_views", db_index=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="saved_views")
    name = RedactedCharField(max_length=100)
    page = models.CharField(max_length=64)
    query = models.TextField(blank=True, default="")
    is_shared = models.BooleanField(default=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        constraints = [
            # Read by every filter bar: the project's views, by owner.
            unique("diagnostics_savedview_name_once_an_owner", "project owner name"),
            check("diagnostics_savedview_is_named", ~Q(name="")),
        ]

    @property
    def address(self) -> str:
        """The URL of the view; that of the Now page if its page no longer exists."""
        try:
            path = reverse(self.page)
        except NoReverseMatch:
            path = reverse("now")
        return f"{path}?{self.query}" if self.query else path

    @staticmethod
    def open_to(project_id: int, person: Person) -> "models.QuerySet[SavedView]":
        """Return the views that a user may open: their own, and shared ones."""
        views = SavedView.objects.filter(project_id=project_id)
        allowed = views.filter(Q(owner_id=person.pk or 0) | Q(is_shared=True))
        return allowed.select_related("owner").order_by("name", "pk")
