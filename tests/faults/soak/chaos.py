"""Everything is killed at random for a while; prints what was lost, doubled or failed.

    python -m tests.faults.soak.chaos [--seconds 420] [--lease 60] [--every 4] [--kills 42]
        [--seed 7]

Every `every` seconds a run of five steps or a goal is handed in over REST, events are posted,
and webhooks, mails and reports become due. Meanwhile `kill -9` hits workers, their children,
upkeep, the web server, the scheduler, PostgreSQL and Valkey. The planner makes no mistakes: a
goal that fails has failed because of the kills. `lease` is that of runs and steps.
"""

import argparse
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from email import message_from_bytes
from pathlib import Path
from random import Random
from threading import Thread

import django

from tests import embedded
from tests.faults.soak.asking import Client, make_keys
from tests.faults.soak.judging import Judge, say
from tests.faults.soak.posting import Poster
from tests.faults.soak.provider import Planner
from tests.faults.soak.servers import Database, KeptFleet
from tests.faults.soak.transitions import watch
from tests.faults.soak.trouble import KEEPING, Trouble
from tests.faults.soak.work import Work
from tests.faults.stack import eventually, free_port
from tests.security.web import Web

os.environ.update(embedded.settings_for_tests())
django.setup()

from tests.diagnostics.alerting.notifications.building import Hook, Mailbox, mail_server, receiving  # noqa: E402 - after setup

DEFAULTS = {"seconds": 420, "lease": 60, "every": 4, "kills": 42, "seed": 7}
GOAL_SECONDS = 300
AFTERWARDS_SECONDS = 300
WEB_SECONDS = 240
VISIBILITY_SECONDS = 1800
EVENTS_A_SECOND = 5
SET_UP = """
import sys, django; django.setup()
from datetime import timedelta
from random import Random
from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.alerting.notification_models import Notification
from diagnostics.reports.models import Subscription
from diagnostics.reports.subscriptions import schedule_of
from tests.diagnostics.alerting.notifications.building import (
    happen,
    make_channel,
    make_incident,
    make_rule,
)
hook, seconds = sys.argv[1], int(sys.argv[2])
project, chance, now = Project.objects.get(slug="soak"), Random(1), clock.now()
make_channel(project, "webhook", hook, digest_above=1000)
make_channel(project, "email", digest_above=1000)
rule = make_rule(project, is_enabled=False)
for number in range(40):
    happen(make_incident(project, f"m-{number}", rule=rule))
for row in Notification.objects.all():
    row.next_attempt_at = now + timedelta(seconds=chance.uniform(20, seconds))
    row.save(update_fields=["next_attempt_at"])
for number in range(20):
    at = now + timedelta(seconds=chance.uniform(20, seconds))
    made = Subscription(project=project, address=f"reader-{number}@example.org", cadence="daily",
        zone="UTC", token="t" * 22, at=at.time().replace(microsecond=0))
    made.next_at = schedule_of(made).after(now).at
    made.save()
"""
OPEN = (
    "SELECT 1 FROM plans_run WHERE meta IS NULL"
    " UNION ALL SELECT 1 FROM agents_goal WHERE ended_at IS NULL"
    " UNION ALL SELECT 1 FROM diagnostics_notification WHERE state = 'queued'"
    " UNION ALL SELECT 1 FROM diagnostics_reportdelivery"
    " WHERE state = 'waiting' AND lease_until IS NULL LIMIT 1"
)
SENT_MESSAGES = (
    "SELECT task, max(n), sum(n), count(*) FROM (SELECT task, kwargs, count(*) AS n"
    " FROM diagnostics_outboxmessage WHERE queue IN ('plan', 'steps') GROUP BY 1, 2) AS rows"
    " GROUP BY 1 ORDER BY 1"
)
# Time that a goal was given and did not use, in seconds.
FAILED = (
    "SELECT correlation_id, outcome, execution_eval::text,"
    " extract(epoch FROM ended_at - started_at)"
    "  - coalesce((budget ->> 'waited_seconds')::float, 0)"
    " FROM agents_goal WHERE status = 'failed'"
)
NOTIFICATIONS = (
    "SELECT c.kind, n.state, count(*) FROM diagnostics_notification AS n"
    " JOIN diagnostics_channel AS c ON c.id = n.channel_id GROUP BY 1, 2"
)
KEYS = (
    "SELECT key::text FROM diagnostics_notification AS n"
    " JOIN diagnostics_channel AS c ON c.id = n.channel_id WHERE c.kind = 'webhook'"
)
MAILS = (
    "SELECT count(*) FROM diagnostics_notification AS n"
    " JOIN diagnostics_channel AS c ON c.id = n.channel_id WHERE c.kind = 'email'"
)
# A sender that was killed holds its reports for a quarter of an hour: they are late, not lost.
REPORTS = (
    "SELECT message_id, state = 'waiting' AND lease_until IS NOT NULL"
    " FROM diagnostics_reportdelivery"
)


class Chaos(Trouble):
    """Kills of every part."""

    def choose(self) -> Callable[[], None]:
        """Return the next kill: half of them hit what executes work."""
        return self.chance.choice(
            [
                self.kill_child,
                self.kill_child,
                self.kill_worker,
                self.kill_worker,
                self.kill_upkeep,
                self.kill_web,
                self.kill_beat,
                self.restart_database,
                self.restart_broker,
            ]
        )

    def kill_upkeep(self) -> None:
        """Kill the worker of the other queues."""
        self.fleet.kill_and_restart("upkeep")

    def kill_web(self) -> None:
        """Kill the web server."""
        self.fleet.kill_and_restart("web")

    def kill_beat(self) -> None:
        """Kill the scheduler."""
        self.fleet.kill_and_restart("beat")


class ChaosFleet(KeptFleet):
    """The whole product as it is deployed, the web server too."""

    def start_all(self, web_port: int) -> None:
        """Start every part and wait until it works."""
        self.start_broker(*KEEPING)
        for name in ("worker0", "worker1"):
            self.start_worker(name, "plan,steps", 2)
        self.start_worker("upkeep", "fold,notify,report", 1)
        self.start_beat()
        words = ["granian", "--interface", "wsgi", "--host", "127.0.0.1"]
        words += ["--port", str(web_port), "--workers", "1", "--blocking-threads", "4"]
        self._start("web", *words, "--no-access-log", "config.wsgi:application")


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser()
    for name, default in DEFAULTS.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--keep-logs", type=Path, help="copy all logs there at the end")
    options = parser.parse_args()
    with ExitStack() as stack:
        folder = stack.enter_context(embedded.throw_away_folder())
        is_fine = _go(options, folder, stack)
        if options.keep_logs:
            options.keep_logs.mkdir(parents=True, exist_ok=True)
            for path in folder.glob("*.log"):
                (options.keep_logs / path.name).write_bytes(path.read_bytes())
    sys.exit(0 if is_fine else 1)


def _go(options: argparse.Namespace, folder: Path, stack: ExitStack) -> bool:
    mail_port, web_port = free_port(), free_port()
    box = stack.enter_context(mail_server(mail_port))
    hook, hook_url = stack.enter_context(receiving())
    planner = Planner(options.seed, {})
    stack.callback(planner.server.shutdown)
    database = Database(folder, signal.SIGKILL)
    database.start()
    stack.callback(database.stop)
    fleet = ChaosFleet(folder, database.url)
    fleet.env |= {
        "FAILSOFT_RUN_LEASE_SECONDS": str(options.lease),
        "FAILSOFT_BROKER_VISIBILITY_SECONDS": str(VISIBILITY_SECONDS),
        "FAILSOFT_EMAIL_URL": f"smtp://127.0.0.1:{mail_port}",
        "FAILSOFT_HTTP_ALLOW_PRIVATE": "true",
    }
    stack.callback(fleet.end)
    fleet.migrate()
    watch(database.url)
    keys = make_keys(fleet, planner.url)
    fleet.start_all(web_port)
    web = Web(web_port, fleet.processes["web"])
    is_up = eventually(lambda: web.ask("GET", "/readyz", None, {})[0] == 200, WEB_SECONDS)
    assert is_up, fleet.tail()
    fleet.call(SET_UP, hook_url, str(options.seconds - 60))
    work = Work(Client(web, keys[0]), goal_seconds=GOAL_SECONDS)
    poster = Poster(Client(web, keys[1]), options.seconds * EVENTS_A_SECOND, Random(1))
    poster.pace = 100 / EVENTS_A_SECOND
    poster.start()
    trouble = Chaos(fleet, database, ["worker0", "worker1"], Random(options.seed))
    _disturb(options, trouble, work)
    return _judge(fleet, work, planner, poster, hook, box)


def _disturb(options: argparse.Namespace, trouble: Chaos, work: Work) -> None:
    until = time.monotonic() + options.seconds
    submitting = Thread(target=_submit, args=(work, until, options.every), daemon=True)
    submitting.start()
    for left in range(options.kills, 0, -1):
        pause = max(0.0, until - time.monotonic()) / left
        time.sleep(trouble.chance.uniform(0.2, 1.8) * pause)
        if time.monotonic() > until:
            break
        kill = trouble.choose()
        kill()
        trouble.done[kill.__name__] += 1
    time.sleep(max(0.0, until - time.monotonic()))
    submitting.join()
    kills = sum(trouble.done.values())
    say(f"{kills} kills in {options.seconds} s, lease {options.lease} s:", dict(trouble.done))


def _submit(work: Work, until: float, every: float) -> None:
    number = 0
    while time.monotonic() < until:
        (work.submit_goal if number % 2 else work.submit_run)(number // 2)
        number += 1
        time.sleep(every)


def _judge(
    fleet: KeptFleet, work: Work, planner: Planner, poster: Poster, hook: Hook, box: Mailbox
) -> bool:
    begun = time.monotonic()
    poster.pace = 0.0
    is_over = eventually(lambda: not fleet.ask(OPEN), AFTERWARDS_SECONDS)
    judge = Judge(fleet, work, planner)
    judge.rule("all has ended", round(time.monotonic() - begun), "s later", met=is_over)
    poster.join(AFTERWARDS_SECONDS)
    judge.judge_work()
    judge.judge_events(poster)
    _judge_goals(judge)
    _judge_letters(judge, hook, box)
    for task, most, messages, rows in fleet.ask(SENT_MESSAGES):
        say(f"    {task}: {messages} messages for {rows} rows, at most {most} for one")
    return not judge.failed


def _judge_goals(judge: Judge) -> None:
    failed = judge.fleet.ask(FAILED)
    for row in failed:
        say("    failed:", *row)
    early = [row for row in failed if row[3] < GOAL_SECONDS]
    judge.rule("goals that failed though they had time", len(early), met=not early)


def _judge_letters(judge: Judge, hook: Hook, box: Mailbox) -> None:
    """Lost, doubled under their own key as documented, and beyond that."""
    ask = judge.fleet.ask
    say("    notifications:", *ask(NOTIFICATIONS))
    posted = Counter(headers["webhook-id"] for headers, _ in hook.seen)
    _judge_keys(judge, "webhooks", posted, [key for (key,) in ask(KEYS)])
    mails = [message_from_bytes(envelope.original_content or b"") for envelope in box.taken]
    arrived = Counter(str(mail["Message-ID"]).strip() for mail in mails)
    reports: dict[str, bool] = dict(ask(REPORTS))
    due = [key for key, is_held in reports.items() if not is_held]
    say("    reports held by a killed sender:", len(reports) - len(due))
    _judge_keys(judge, "reports", Counter({k: arrived[k] for k in due}), due)
    alerts = Counter({k: n for k, n in arrived.items() if k not in reports})
    wanted = ask(MAILS)[0][0]
    doubled = sum(alerts.values()) - len(alerts)
    figures = (wanted, "due, lost", wanted - len(alerts), "doubled under one id", doubled)
    judge.rule("mails of alerts", *figures, met=len(alerts) == wanted)


def _judge_keys(judge: Judge, name: str, arrived: Counter[str], wanted: Iterable[str]) -> None:
    keys = set(wanted)
    lost = [key for key in keys if not arrived[key]]
    unknown = [key for key, count in arrived.items() if count and key not in keys]
    doubled = sum(arrived.values()) - sum(1 for n in arrived.values() if n)
    figures = (len(keys), "due, lost", len(lost), "doubled under one id", doubled)
    judge.rule(name, *figures, "under another", len(unknown), met=not (lost or unknown))


if __name__ == "__main__":
    main()
