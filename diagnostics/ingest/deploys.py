"""Deploys as agents, pipelines and people report them."""

from typing import Any

from diagnostics.ingest.deploy_items import PostedDeploy
from diagnostics.ingest.models import Deploy
from diagnostics.redaction.rules import redactor_of
from diagnostics.selection.fields import LONGEST_VALUE
from failsoft.json_values import clean_text

NOTE_BYTES = 2_000


def record_deploy(project_id: int, posted: PostedDeploy) -> tuple[Deploy, bool]:
    """Store a deploy, redacted; return the row and whether it is new."""
    redact = redactor_of(project_id)
    names = posted.model_dump(include={"source", "environment", "version"})
    identity: dict[str, Any] = {
        "project_id": project_id,
        "at": posted.at,
        "kind": posted.kind.value,
        **{
            name: text and redact(clean_text(text), LONGEST_VALUE, is_name=True).text
            for name, text in names.items()
        },
    }
    note = redact(clean_text(posted.note), NOTE_BYTES).text
    return Deploy.objects.get_or_create(**identity, defaults={"note": note})
