"""The two breakers before a ladder: quality for the ladder, transport for each of its calls.

1. The ladder begins: quality lets it climb, or, while open, allows one attempt or none.
2. Before each call transport is asked; after it, retries of the transport included, it is told.
3. The ladder has ended: quality is told, if a call was made and the ladder came to an answer.
"""

from dataclasses import dataclass, replace
from typing import Self

from django.conf import settings

from agents.breakers.models import DENY
from agents.breakers.store import BreakerScope, ask, renew, tell
from agents.llm.transport import Reply
from failsoft.retry.breaker import Admission, Allowed, BreakerKind, CallVerdict, Denied, Ticket
from failsoft.retry.engine import Ending, Exhausted, LadderPolicy, Succeeded


@dataclass(slots=True)
class Guard:
    """The breakers of one ladder, and what they have let through."""

    transport: BreakerScope
    quality: BreakerScope
    ladder: Admission | None = None
    call: Ticket | None = None
    calls: int = 0

    @classmethod
    def of(cls, project_id: int, provider: str, model: str, operation: str) -> Self:
        """The guard of a model's operation."""
        transport = BreakerScope(project_id, provider, model, operation, BreakerKind.TRANSPORT)
        return cls(transport, replace(transport, kind=BreakerKind.QUALITY))

    def limit(self, policy: LadderPolicy, attempts_made: int) -> LadderPolicy:
        """Ask for a ladder; without leave to retry it ends with the attempts that were made."""
        self.ladder = ask(self.quality)
        if isinstance(self.ladder, Allowed) or settings.FAILSOFT_BREAKER_POLICY == DENY:
            return policy
        retry = policy.retry.model_copy(update={"max_retries": max(attempts_made, 1)})
        return replace(policy, retry=retry)

    def admit_call(self) -> Denied | None:
        """Ask for one call; None when it may be made."""
        if isinstance(self.ladder, Denied) and settings.FAILSOFT_BREAKER_POLICY == DENY:
            return self.ladder
        admission = ask(self.transport)
        if isinstance(admission, Denied):
            return admission
        self.call = admission.ticket
        self.calls += 1
        return None

    @property
    def is_probing(self) -> bool:
        """Whether the call that was let through is a probe: it is not sent again."""
        return self.call is not None and self.call.probe is not None

    def renew(self) -> None:
        """Hold what probes there are for another lease."""
        if isinstance(self.ladder, Allowed):
            renew(self.quality, self.ladder.ticket)
        if self.call is not None:
            renew(self.transport, self.call)

    def settle_call(self, reply: Reply) -> None:
        """Tell what came of the call; one that could not even be tried says nothing."""
        if self.call is None:
            return
        ticket, self.call = self.call, None
        if reply.completion is not None:
            tell(self.transport, ticket, CallVerdict.GOOD)
        elif reply.error is None or not reply.was_sent:
            tell(self.transport, ticket, CallVerdict.NOTHING)
        else:
            wanted = reply.error.retry_after_seconds
            tell(self.transport, ticket, CallVerdict.BAD, wanted)

    def settle_ladder(self, ending: Ending) -> None:
        """Tell how the ladder ended; one that only repeated what was stored says nothing."""
        if not isinstance(self.ladder, Allowed):
            return
        verdict = CallVerdict.NOTHING
        if self.calls and isinstance(ending, Succeeded):
            verdict = CallVerdict.GOOD
        if self.calls and isinstance(ending, Exhausted):
            verdict = CallVerdict.BAD
        tell(self.quality, self.ladder.ticket, verdict)
