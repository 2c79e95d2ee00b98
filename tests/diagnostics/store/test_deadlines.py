"""Work in a worker ends by its deadline, whatever it does, and leaves a usable connection."""

import threading
from collections.abc import Callable
from contextlib import suppress

import pytest
from django.db import DatabaseError, connection, transaction

from diagnostics.accounts.models import Project
from diagnostics.store.deadlines import OutOfTimeError, deadline, try_work
from diagnostics.store.sql import fetch

SLEEP = "SELECT pg_sleep(60)"


def run_for_ever() -> None:
    while True:
        sum(range(1_000))


def sleep_in_a_transaction() -> None:
    with transaction.atomic():
        Project.objects.create(slug="p", name="P")
        fetch(SLEEP)


def run_in_a_transaction() -> None:
    """Take every exception for a fault of its own."""
    with transaction.atomic():
        Project.objects.create(slug="p", name="P")
        with suppress(Exception):
            run_for_ever()


def go_on_after_a_statement() -> None:
    with suppress(DatabaseError), transaction.atomic():
        fetch(SLEEP)
    run_for_ever()


def leave_a_transaction_open() -> None:
    transaction.atomic().__enter__()
    run_in_a_transaction()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "work",
    [
        sleep_in_a_transaction,
        run_in_a_transaction,
        go_on_after_a_statement,
        leave_a_transaction_open,
    ],
)
def test_work_is_stopped_and_its_transaction_rolled_back(work: Callable[[], None]) -> None:
    with pytest.raises(OutOfTimeError), deadline(0.1):
        work()
    assert not connection.in_atomic_block
    assert not Project.objects.exists()


@pytest.mark.django_db
def test_a_fault_of_its_own_stays_what_it_is() -> None:
    with pytest.raises(ZeroDivisionError), deadline(30):
        raise ZeroDivisionError


def test_a_second_thread_has_no_deadline() -> None:
    ended = []

    def work() -> None:
        with deadline(0.01):
            sum(range(1_000_000))
        ended.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert ended


@pytest.mark.django_db
def test_inside_another_the_outer_deadline_goes_on() -> None:
    with pytest.raises(OutOfTimeError), deadline(0.1), deadline(60):
        run_for_ever()


@pytest.mark.django_db
def test_work_that_fails_or_takes_too_long_is_left() -> None:
    def fail() -> int:
        raise ZeroDivisionError

    def run() -> int:
        run_for_ever()
        return 1

    assert [try_work("work", 1, work, 0.1) for work in (fail, run, lambda: 7)] == [0, 0, 7]
