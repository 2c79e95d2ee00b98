"""What the two agents of the demo are asked to do, with the plans that do it."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class ScriptedStep:
    """A step of a good plan, and what its tool returns."""

    title: str
    tool: str
    args: dict[str, Any]
    output: Any
    after: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Scenario:
    """A goal, the steps that reach it, and the sentence that closes it."""

    goal: str
    steps: tuple[ScriptedStep, ...]
    answer: str
    # Each with whether the last attempt may drop it.
    constraints: tuple[tuple[str, bool], ...] = field(default=())

    @property
    def outputs(self) -> dict[str, Any]:
        """What each tool returns, by its name."""
        return {step.tool: step.output for step in self.steps}


SUPPORT_SCENARIOS = (
    Scenario(
        "Refund order 4411 and tell the customer.",
        (
            ScriptedStep(
                "Look up the order",
                "orders.get",
                {"id": 4411},
                {"id": 4411, "total": "84.50", "currency": "EUR", "state": "delivered"},
            ),
            ScriptedStep(
                "Refund it in full",
                "refunds.create",
                {"order": 4411, "amount": "$step_1.output.total"},
                {"refund": "rf-2207", "state": "accepted"},
                (1,),
            ),
            ScriptedStep(
                "Write to the customer",
                "mail.send",
                {"template": "refund_done", "order": 4411},
                {"queued": True},
                (2,),
            ),
        ),
        "Order 4411 was refunded and the customer was told.",
        (("Refund no more than was paid.", False),),
    ),
    Scenario(
        "Merge the open tickets about the export that stops at 90 percent.",
        (
            ScriptedStep(
                "Search the tickets",
                "tickets.search",
                {"text": "export stops at 90 percent", "state": "open"},
                {"tickets": [3120, 3127, 3131, 3140]},
            ),
            ScriptedStep(
                "Merge them into the oldest",
                "tickets.merge",
                {"into": 3120, "from": "$step_1.output.tickets"},
                {"merged": 3},
                (1,),
            ),
            ScriptedStep(
                "Leave a note",
                "tickets.comment",
                {
                    "ticket": 3120,
                    "text": "Three reports of the same fault joined here.",
                },
                {"comment": 88213},
                (2,),
            ),
        ),
        "Three tickets were merged into ticket 3120.",
    ),
    Scenario(
        "Tell customers with a delivery promised for Friday that it will be Monday.",
        (
            ScriptedStep(
                "List the deliveries",
                "deliveries.list",
                {"promised": "friday"},
                {"count": 41, "list": "dl-553"},
            ),
            ScriptedStep(
                "Move the date",
                "deliveries.move",
                {"list": "$step_1.output.list", "to": "monday"},
                {"moved": 41},
                (1,),
            ),
            ScriptedStep(
                "Write to the customers",
                "mail.send",
                {"template": "delivery_moved", "list": "dl-553"},
                {"queued": 41},
                (1,),
            ),
            ScriptedStep(
                "Note it for the shift",
                "notes.add",
                {"text": "41 deliveries moved to Monday"},
                {"note": 912},
                (2, 3),
            ),
        ),
        "41 deliveries were moved to Monday and their customers were told.",
        (
            ("One mail per customer.", False),
            ("Use the short form of the letter.", True),
        ),
    ),
)

OPERATIONS_SCENARIOS = (
    Scenario(
        "Find out why the nightly import is late and post a summary.",
        (
            ScriptedStep(
                "Read the import log",
                "logs.search",
                {"unit": "import", "since": "02:00"},
                {"lines": 214, "slowest": "lock wait on table stock"},
            ),
            ScriptedStep(
                "Check the database load",
                "metrics.query",
                {"name": "locks_waiting", "hours": 8},
                {"max": 37, "at": "03:12"},
            ),
            ScriptedStep(
                "Post the summary",
                "chat.post",
                {"room": "night-shift", "text": "$step_1.output.slowest"},
                {"message": "m-20031"},
                (1, 2),
            ),
        ),
        "The import waited for a lock on the stock table from 03:12 on.",
    ),
    Scenario(
        "Renew the certificates that end this month and list what was renewed.",
        (
            ScriptedStep(
                "List certificates",
                "certificates.list",
                {"ending_within_days": 30},
                {"names": ["api.example.org", "shop.example.org"]},
            ),
            ScriptedStep(
                "Renew them",
                "certificates.renew",
                {"names": "$step_1.output.names"},
                {"renewed": 2},
                (1,),
            ),
            ScriptedStep(
                "Reload the proxies",
                "proxies.reload",
                {"group": "edge"},
                {"reloaded": 6},
                (2,),
            ),
        ),
        "Two certificates were renewed and six proxies were reloaded.",
        (("Reload outside of office hours.", True),),
    ),
    Scenario(
        "Compare the disk growth of the three archive hosts and warn if one fills up.",
        (
            ScriptedStep(
                "Measure the growth",
                "metrics.query",
                {
                    "name": "disk_growth",
                    "hosts": ["archive-1", "archive-2", "archive-3"],
                },
                {"archive-1": 0.4, "archive-2": 0.5, "archive-3": 2.9},
            ),
            ScriptedStep(
                "Work out the days left",
                "template",
                {"text": "archive-3 is full in 11 days"},
                {"text": "archive-3 is full in 11 days"},
                (1,),
            ),
            ScriptedStep(
                "Open a ticket",
                "tickets.create",
                {"queue": "storage", "text": "$step_2.output.text"},
                {"ticket": 3155},
                (2,),
            ),
        ),
        "Host archive-3 is full in 11 days; ticket 3155 was opened.",
    ),
)


def plan_of(scenario: Scenario) -> dict[str, Any]:
    """Write the good plan of a scenario as a payload of the contract."""
    return {
        "steps": [
            {
                "step_id": f"step_{position}",
                "title": step.title,
                "dependencies": [f"step_{earlier}" for earlier in step.after],
                "tool": {"name": step.tool, "args": step.args},
            }
            for position, step in enumerate(scenario.steps, start=1)
        ]
    }


def proposal_of(scenario: Scenario, cycle: int) -> dict[str, Any]:
    """Write the good next step of a cycle; the end after the last step."""
    if cycle > len(scenario.steps):
        return {"kind": "finish", "answer": scenario.answer}
    step = scenario.steps[cycle - 1]
    return {"kind": "call_tool", "tool": step.tool, "args": step.args}
