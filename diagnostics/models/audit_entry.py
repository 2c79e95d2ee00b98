"""What people changed: entries that are only ever added, chained by their hashes.

The table is made by plain SQL in a migration, with triggers that refuse every change, and
it refers to no other: an entry outlives the person and the project it names (S24).
"""

from django.db import models


class AuditEntry(models.Model):
    """One change by one person; `hash` covers it and the entry before it."""

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

    def __str__(self) -> str:
        return f"{self.chain}:{self.number} {self.action}"
