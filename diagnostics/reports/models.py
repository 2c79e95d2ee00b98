"""Reports: subscriptions, stored reports and deliveries."""

from functools import lru_cache
from urllib.parse import parse_qsl

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from diagnostics import clock
from diagnostics.accounts.models import Project, SavedView
from diagnostics.constraints import NamedRow, check, index, known, person, unique
from diagnostics.selection.query_language import Query, write_query
from diagnostics.selection.selection import read_selection

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


# A report has one query and many readers, each of whose mails names it.
@lru_cache(maxsize=1_024)
def read_filter(query: str) -> str:
    """Return a query string in the language of the filter bar."""
    selection = read_selection(dict(parse_qsl(query)))
    return write_query(Query(selection.terms, selection.text.words))


class Cadence(models.TextChoices):
    """How often a report is sent; its period starts at the end of the previous one."""

    DAILY = "daily"
    WEEKDAYS = "weekdays"
    WEEKLY = "weekly"
    MONTHLY = "monthly"


class Subscription(models.Model):
    """A person or address that receives a report, at a local time in its zone.

    For a saved view or a query; both empty means the whole project.
    """

    project = models.ForeignKey(
        Project, models.CASCADE, related_name="subscriptions", db_index=False
    )
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.CASCADE,
        related_name="subscriptions",
        null=True,
        blank=True,
    )
    # A recipient without an account; empty if `user` is set.
    address = models.EmailField(blank=True, default="")
    view = models.ForeignKey(SavedView, models.SET_NULL, related_name="+", null=True, blank=True)
    query = models.TextField(blank=True, default="")
    cadence = models.CharField(max_length=16, choices=Cadence, default=Cadence.WEEKLY)
    # Of a weekly one: 0 is Monday.
    weekday = models.PositiveSmallIntegerField(null=True, blank=True)
    # Of a monthly one; the last day in shorter months.
    month_day = models.PositiveSmallIntegerField(null=True, blank=True)
    at = models.TimeField()
    zone = models.CharField(max_length=64, default="UTC")
    only_when_changed = models.BooleanField(default=False)
    # When it is due next: claiming a slot advances it.
    next_at = models.DateTimeField()
    paused_until = models.DateTimeField(null=True, blank=True)
    unsubscribed_at = models.DateTimeField(null=True, blank=True)
    # Part of every signed link: changing it revokes all links.
    token = models.CharField(max_length=32)
    created_by = person(blank=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        constraints = [
            check(
                "diagnostics_subscription_has_one_reader",
                Q(user__isnull=False, address="") | (Q(user__isnull=True) & ~Q(address="")),
            ),
            known("diagnostics_subscription_cadence_known", "cadence", Cadence),
            check(
                "diagnostics_subscription_weekday_when_weekly",
                Q(cadence="weekly", weekday__range=(0, 6))
                | (~Q(cadence="weekly") & Q(weekday__isnull=True)),
            ),
            check(
                "diagnostics_subscription_day_when_monthly",
                Q(cadence="monthly", month_day__range=(1, 31))
                | (~Q(cadence="monthly") & Q(month_day__isnull=True)),
            ),
        ]
        indexes = [
            # Read by the beat: due subscriptions, earliest first.
            index("diagnostics_subscription_due", "next_at", Q(unsubscribed_at__isnull=True)),
            # Read by the page of reports.
            index("diagnostics_subscription_mine", "project user"),
        ]

    def __str__(self) -> str:
        return f"{self.cadence} to {self.user or self.address}"

    @property
    def title(self) -> str:
        """The title of its reports: the view, else the filter, else the project."""
        return self.view.name if self.view else read_filter(self.query) or self.project.name

    @property
    def recipient(self) -> str:
        """The address of its mails; empty if the person has none."""
        return self.user.email if self.user else self.address

    @property
    def is_paused(self) -> bool:
        return self.paused_until is not None and self.paused_until > clock.now()

    @property
    def when(self) -> str:
        """When it is sent: `every Monday at 08:00, Europe/Berlin`."""
        match self.cadence:
            case "weekly":
                day = f"every {DAYS[self.weekday or 0]}"
            case "monthly":
                day = f"on day {self.month_day} of the month"
            case "weekdays":
                day = "Monday to Friday"
            case _:
                day = "every day"
        return f"{day} at {self.at:%H:%M}, {self.zone}"


class Report(NamedRow):
    """The report of a period; created once for all identical subscriptions."""

    named = "{0.subject}"
    project = models.ForeignKey(Project, models.CASCADE, related_name="reports", db_index=False)
    view = models.ForeignKey(SavedView, models.SET_NULL, related_name="+", null=True, blank=True)
    title = models.CharField(max_length=200)
    query = models.TextField(blank=True, default="")
    cadence = models.CharField(max_length=16, choices=Cadence)
    zone = models.CharField(max_length=64)
    period_start = models.DateTimeField()
    period_end = models.DateTimeField()
    # Of title, query, cadence and zone: equal for identical reports.
    digest = models.CharField(max_length=32)
    subject = models.CharField(max_length=200)
    # Figures and names (diagnostics.reports.document), the source of every rendering.
    document = models.JSONField()
    # Whether it has any news.
    has_news = models.BooleanField()
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            # Read by every delivery: the report of its period, if it exists.
            unique("diagnostics_report_once_a_period", "project digest period_start period_end"),
            known("diagnostics_report_cadence_known", "cadence", Cadence),
            check("diagnostics_report_period_is_not_empty", Q(period_end__gt=F("period_start"))),
        ]
        indexes = [
            # Read by the archive, newest first.
            index("diagnostics_report_newest", "project -period_end -id"),
            # Read by the purge.
            index("diagnostics_report_made", "created_at"),
        ]


class DeliveryState(models.TextChoices):
    """Waiting is retried until sent or failed; the others are never sent."""

    WAITING = "waiting"
    SENT = "sent"
    FAILED = "failed"
    UNCHANGED = "unchanged"
    NO_ACCESS = "no_access"
    CANCELLED = "cancelled"


class ReportDelivery(NamedRow):
    """A report to a subscription, and the delivery of its mail."""

    named = "{0.state} #{0.pk}"
    State = DeliveryState

    project = models.ForeignKey(Project, models.CASCADE, related_name="+", db_index=False)
    subscription = models.ForeignKey(
        Subscription, models.CASCADE, related_name="deliveries", db_index=False
    )
    report = models.ForeignKey(
        Report, models.SET_NULL, related_name="deliveries", null=True, blank=True
    )
    period_start = models.DateTimeField()
    period_end = models.DateTimeField()
    # Starts of the periods skipped since the previous report.
    skipped = models.JSONField(default=list, blank=True)
    state = models.CharField(max_length=16, choices=DeliveryState, default=DeliveryState.WAITING)
    tries = models.PositiveSmallIntegerField(default=0)
    next_attempt_at = models.DateTimeField()
    # The claim that holds the lease: results of another claim are ignored.
    claim = models.PositiveIntegerField(default=0)
    lease_until = models.DateTimeField(null=True, blank=True)
    # The same for every try, so that a second copy can be recognised.
    message_id = models.CharField(max_length=255)
    last_error = models.TextField(blank=True, default="")
    created_at = models.DateTimeField()
    sent_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name_plural = "report deliveries"
        constraints = [
            # At most one delivery per period.
            unique(
                "diagnostics_reportdelivery_once_a_period", "subscription period_start period_end"
            ),
            known("diagnostics_reportdelivery_state_known", "state", DeliveryState),
        ]
        indexes = [
            # Read by the sender: due deliveries, oldest first.
            index("diagnostics_delivery_due", "next_attempt_at id", Q(state="waiting")),
            # Read by every page, to show failed deliveries.
            index("diagnostics_delivery_failed", "project -created_at", Q(state="failed")),
            # Read by the purge.
            index("diagnostics_delivery_made", "created_at"),
        ]
