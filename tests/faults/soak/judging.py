"""What became of it all: each criterion printed with its figures, and whether it is met."""

from collections import Counter
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from tests.faults.fleet import Fleet
from tests.faults.soak.posting import Poster
from tests.faults.soak.provider import Planner
from tests.faults.soak.transitions import illegal
from tests.faults.soak.work import Work
from tests.faults.stack import eventually
from tests.faults.test_runs import names
from tests.security.web import Web

SCRAPED_SECONDS = 60
HOW_RUNS_ENDED = (
    "SELECT runner, state, task_status, count(*) FROM plans_run GROUP BY 1, 2, 3 ORDER BY 1, 2"
)
_OF_PROJECT = (
    " FROM diagnostics_event AS e JOIN diagnostics_project AS p ON p.id = e.project_id"
    " WHERE p.slug = "
)
DEGRADED = f"SELECT e.correlation_id {_OF_PROJECT} 'soak' AND kind = 'degraded' ORDER BY 1"
STORED = f"SELECT event_id::text, count(*) {_OF_PROJECT} 'outside' GROUP BY 1"
LEASES = (
    "SELECT (SELECT count(*) FROM plans_run WHERE lease_until IS NOT NULL)"
    " + (SELECT count(*) FROM plans_runstep WHERE lease_until IS NOT NULL)"
    " + (SELECT count(*) FROM agents_goal WHERE lease_until IS NOT NULL)"
)
WAITING = "SELECT count(*) FROM diagnostics_outboxmessage WHERE sent_at IS NULL"
ATTEMPTS = (
    "SELECT g.correlation_id,"
    ' count(*) FILTER (WHERE a.errors @> \'[{"code": "lost"}]\'),'
    " (SELECT count(*) FROM diagnostics_event AS e WHERE e.kind = 'parse_invalid'"
    "   AND e.correlation_id = g.correlation_id)"
    " FROM agents_goal AS g LEFT JOIN agents_attempt AS a ON a.goal_id = g.id GROUP BY 1"
)


class Judge:
    """Looks at the database, the stubs' logs and /metrics when all is over."""

    def __init__(self, fleet: Fleet, work: Work, planner: Planner) -> None:
        self.fleet, self.work, self.planner = fleet, work, planner
        self.failed: list[str] = []

    def rule(self, name: str, *figures: object, met: bool) -> None:
        """Print one criterion."""
        say("ok  " if met else "FAIL", f"{name}:", *figures)
        if not met:
            self.failed.append(name)

    def judge_work(self) -> None:
        """Runs, goals, their states and effects."""
        ask = self.fleet.ask
        for row in ask(HOW_RUNS_ENDED):
            say("    runs:", *row)
        ended = dict(ask("SELECT id::text, state FROM plans_run WHERE meta IS NOT NULL"))
        missing = self.work.runs.keys() - ended.keys()
        self.rule(
            "every run acknowledged has ended",
            len(ended),
            "of",
            len(self.work.runs),
            "and those of goals",
            met=not missing,
        )
        goals = ask("SELECT correlation_id, status, outcome FROM agents_goal")
        say("    goals:", dict(Counter(f"{status} {outcome}" for _, status, outcome in goals)))
        over = {"completed", "failed"}
        is_over = len(goals) == len(self.work.goals) and {row[1] for row in goals} <= over
        self.rule("every goal acknowledged has ended, once", len(goals), met=is_over)
        seen = ask("SELECT of, before, after, count(*) FROM soak_transition GROUP BY 1, 2, 3")
        wrong = illegal([(of, before, after) for of, before, after, _ in seen])
        self.rule(
            "no illegal transition", sum(row[3] for row in seen), "changes", wrong, met=not wrong
        )
        twice = ask(TERMINAL_TWICE)
        self.rule("one terminal state each", len(twice), "with more", met=not twice)
        self._judge_effects([row[0] for row in goals if row[1] == "completed"])

    def _judge_effects(self, completed: list[str]) -> None:
        effects = Counter(self.fleet.noted("effects"))
        wanted = [name for effect in self.work.runs.values() for name in effect]
        for correlation_id in completed:
            wanted += names(f"goal{correlation_id.rpartition('-')[2]}")
        lost = [name for name in wanted if name not in effects]
        doubled = [name for name, count in effects.items() if count > 1]
        calls = len(self.fleet.noted("calls"))
        self.rule(
            "each (run, step) effect once",
            len(wanted),
            "wanted, lost",
            len(lost),
            "doubled",
            len(doubled),
            "calls",
            calls,
            lost[:5],
            met=not (lost or doubled),
        )

    def judge_planning(self) -> None:
        """Invalid answers and degraded goals against their events."""
        served = self.planner.served
        rows = {reference: told for reference, *told in self.fleet.ask(ATTEMPTS)}
        wrong, lost, events = [], 0, 0
        for number in self.work.goals:
            died, found = rows[f"soak-goal-{number}"]
            given = served[number, "invalid"]
            if not given - died <= found <= given:
                wrong.append(number)
            lost, events = lost + given - found, events + found
        say(
            "    calls served:",
            {kind: self.planner.count(kind) for kind in ("good", "invalid", "hang", "reset")},
        )
        self.rule(
            "parse_invalid events = invalid replies served",
            events,
            "=",
            self.planner.count("invalid"),
            "-",
            lost,
            "that died with their worker",
            wrong[:5],
            met=not wrong,
        )
        failed = "SELECT correlation_id FROM agents_goal WHERE status = 'failed' ORDER BY 1"
        told = DEGRADED
        runs, degraded = self.fleet.ask(failed), self.fleet.ask(told)
        self.rule(
            "one degraded event for each degraded goal",
            len(degraded),
            "=",
            len(runs),
            met=runs == degraded,
        )

    def judge_events(self, poster: Poster) -> None:
        """Every event that was acknowledged is stored once."""
        rows: dict[str, int] = dict(self.fleet.ask(STORED))
        lost = [one for one in poster.acknowledged if one not in rows]
        doubled = [one for one, count in rows.items() if count > 1]
        figures = (
            len(poster.acknowledged),
            "acknowledged,",
            poster.resent,
            "sent again, stored",
            len(rows),
            "lost",
            len(lost),
            "doubled",
            len(doubled),
        )
        met = not (lost or doubled or poster.unequal) and len(rows) == len(set(poster.acknowledged))
        self.rule("every acknowledged event stored exactly once", *figures, met=met)
        refused = poster.client.refused + self.work.client.refused
        self.rule("nothing but 2xx, 429, 503 answered", len(refused), refused[:3], met=not refused)

    def judge_rest(self, web: Web) -> None:
        """Leases, messages, and the counters of Prometheus."""
        eventually(lambda: self.fleet.ask(WAITING) == [(0,)], 30)
        leases, waiting = self.fleet.ask(LEASES)[0][0], self.fleet.ask(WAITING)[0][0]
        self.rule("no stale lease", leases, met=leases == 0)
        self.rule("outbox empty", waiting, met=waiting == 0)
        counted = _read_counters(web)
        stored: dict[Any, int] = dict(
            self.fleet.ask("SELECT kind, count(*) FROM diagnostics_event GROUP BY 1")
        )
        same = {kind: int(count) for kind, count in counted.items() if count} == stored
        self.rule(
            "Prometheus counters = row counts",
            dict(sorted(stored.items())),
            "" if same else dict(counted),
            met=same,
        )


TERMINAL_TWICE = (
    "SELECT of, id FROM soak_transition WHERE after IN"
    " ('ended', 'poison', 'final', 'completed', 'failed') GROUP BY 1, 2 HAVING count(*) > 1"
)


def _read_counters(web: Web) -> Counter[str]:
    """Return how many events of each kind /metrics tells, over all models."""
    said: list[tuple[int, bytes]] = []

    def is_scraped() -> bool:
        said.append(web.ask("GET", "/metrics", None, {}))
        return said[-1][0] == 200

    # Who scrapes comes again; a machine that is too busy once is no wrong figure.
    assert eventually(is_scraped, SCRAPED_SECONDS), said[-1]
    body = said[-1][1]
    counted: Counter[str] = Counter()
    for family in text_string_to_metric_families(body.decode()):
        if family.name == "failsoft_events":
            for sample in family.samples:
                counted[sample.labels["kind"]] += int(sample.value)
    return counted


def say(*words: object) -> None:
    """Print a line."""
    print(*words, flush=True)  # noqa: T201 - a command
