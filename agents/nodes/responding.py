"""`respond_node`: tell how it ended, or what is wanted, and store it with the terminal event."""

from django.db import transaction

from agents.core.responding import respond as compose
from agents.nodes.terminal import outcome_of, record_end
from agents.nodes.walk import Walk
from agents.policies import owner_of
from diagnostics import clock
from diagnostics.core.cleaning import clean_text
from diagnostics.redaction.redacting import redact
from plans import working

ANSWER_BYTES = 8 * 1024


def respond(walk: Walk) -> None:
    """End the goal, or let it wait; one transaction, fenced by the claim."""
    goal = walk.goal
    outcome = outcome_of(walk)
    answer = walk.decision.get("answer") or None
    said = redact(clean_text(answer), ANSWER_BYTES) if answer else None
    message = compose(walk.state, outcome, goal.correlation_id, said)
    columns = walk.state.model_dump(mode="json", exclude={"cycle"})
    with transaction.atomic():
        if walk.state.status.is_terminal:
            columns |= {"outcome": outcome, "ended_at": clock.now()}
            working.expire(goal.project_id, owner_of(goal))
        walk.claim.release(**columns, user_text=message.text, help=list(message.help))
        record_end(walk)
