"""The two breakers of a cycle: quality for its attempts, transport for each call.

1. Before the first attempt: quality allows retries or, while open, one attempt or none.
2. Before each call transport admits or denies it; after it, its result is reported.
3. After the last attempt: quality gets the result, if a call was made and answered.
"""

from dataclasses import dataclass, replace
from typing import Self

from django.conf import settings

from agents.breakers.models import DENY
from agents.breakers.store import BreakerScope, acquire, renew, report
from agents.llm.provider import RefusedContentError
from agents.llm.transport import Reply
from failsoft.retry.breaker import Admission, Allowed, BreakerKind, CallVerdict, Denied, Ticket
from failsoft.retry.engine import Ending, Exhausted, Succeeded
from failsoft.retry.policy import RetryPolicy


@dataclass(slots=True)
class Guard:
    """The breakers of one cycle, and what they have admitted."""

    transport: BreakerScope
    quality: BreakerScope
    admission: Admission | None = None
    call: Ticket | None = None
    calls: int = 0

    @classmethod
    def of(cls, project_id: int, provider: str, model: str, operation: str) -> Self:
        transport = BreakerScope(project_id, provider, model, operation, BreakerKind.TRANSPORT)
        return cls(transport, replace(transport, kind=BreakerKind.QUALITY))

    def limit(self, policy: RetryPolicy, attempts_made: int) -> RetryPolicy:
        """Return the policy that quality allows; without retries it ends with the attempts made."""
        self.admission = acquire(self.quality)
        if isinstance(self.admission, Allowed) or settings.FAILSOFT_BREAKER_POLICY == DENY:
            return policy
        retry = policy.retry.model_copy(update={"max_attempts": max(attempts_made, 1)})
        return replace(policy, retry=retry)

    def admit_call(self) -> Denied | None:
        """Request one call; None if it is admitted."""
        if isinstance(self.admission, Denied) and settings.FAILSOFT_BREAKER_POLICY == DENY:
            return self.admission
        admission = acquire(self.transport)
        if isinstance(admission, Denied):
            return admission
        self.call = admission.ticket
        self.calls += 1
        return None

    @property
    def is_probing(self) -> bool:
        """Whether the admitted call is a probe, which is not retried."""
        return self.call is not None and self.call.probe is not None

    def renew(self) -> None:
        if isinstance(self.admission, Allowed):
            renew(self.quality, self.admission.ticket)
        if self.call is not None:
            renew(self.transport, self.call)

    def settle_call(self, reply: Reply) -> None:
        """Report the result of the call.

        One that was never sent, or refused for what it contains, counts as nothing: a goal that
        is too long must not stop the others.
        """
        if self.call is None:
            return
        ticket, self.call = self.call, None
        if reply.completion is not None:
            report(self.transport, ticket, CallVerdict.GOOD)
        elif not reply.was_sent or isinstance(reply.error, RefusedContentError | None):
            report(self.transport, ticket, CallVerdict.NOTHING)
        else:
            retry_after_seconds = reply.error.retry_after_seconds
            report(self.transport, ticket, CallVerdict.BAD, retry_after_seconds)

    def settle_attempts(self, ending: Ending) -> None:
        """Report how the attempts ended; without a call they count as nothing."""
        if not isinstance(self.admission, Allowed):
            return
        verdict = CallVerdict.NOTHING
        if self.calls and isinstance(ending, Succeeded):
            verdict = CallVerdict.GOOD
        if self.calls and isinstance(ending, Exhausted):
            verdict = CallVerdict.BAD
        report(self.quality, self.admission.ticket, verdict)
