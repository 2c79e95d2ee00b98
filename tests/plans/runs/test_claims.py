"""Claims: one holder at a time, decided by the database and its clock alone."""

import threading
from typing import Any

import pytest
from django.db import connection, transaction

from diagnostics.accounts.models import Project
from diagnostics.store.leases import LeaseLostError
from plans.models.run import Run
from plans.runs.claims import RunClaim, claim_run, lease
from plans.runs.submission import submit_run


@pytest.fixture
def run(project: Project, chain: dict[str, Any]) -> Run:
    return submit_run(project.pk, chain, "c")


def _shift_clock(seconds: float) -> None:
    """Let the database's clock, the only one that counts, stand elsewhere (C15)."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL failsoft.clock_shift = %s", [f"{seconds} seconds"])


def test_each_claim_has_a_higher_token_than_the_last(run: Run) -> None:
    first = claim_run(run.id)
    _shift_clock(lease().total_seconds() + 1)
    second = claim_run(run.id)
    assert first is not None
    assert second is not None
    assert second.token == first.token + 1


def test_c15_a_lease_ends_by_the_databases_clock(run: Run) -> None:
    assert claim_run(run.id) is not None
    _shift_clock(lease().total_seconds() - 5)
    assert claim_run(run.id) is None
    _shift_clock(lease().total_seconds() + 5)
    assert claim_run(run.id) is not None


def test_a_renewed_lease_lasts_from_now(run: Run) -> None:
    claim = claim_run(run.id)
    assert claim is not None
    _shift_clock(50)
    claim.renew()
    _shift_clock(100)
    assert claim_run(run.id) is None


def test_an_older_claim_can_neither_renew_nor_release(run: Run) -> None:
    old = claim_run(run.id)
    assert old is not None
    _shift_clock(lease().total_seconds() + 1)
    assert claim_run(run.id) is not None
    with pytest.raises(LeaseLostError):
        old.renew()
    with pytest.raises(LeaseLostError):
        old.release(state=Run.State.QUEUED)


def test_the_third_start_is_the_last(run: Run) -> None:
    for start in range(1, 4):
        _shift_clock(start * (lease().total_seconds() + 1))
        assert claim_run(run.id) is not None
    _shift_clock(4 * (lease().total_seconds() + 1))
    assert claim_run(run.id) is None


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_of_many_workers_at_once_one_gets_the_run(chain: dict[str, Any]) -> None:
    project = Project.objects.create(slug="race", name="Race")
    run = submit_run(project.pk, chain, "c")
    start = threading.Barrier(6)
    claims: list[RunClaim | None] = []

    def claim() -> None:
        start.wait()
        try:
            with transaction.atomic():
                claims.append(claim_run(run.id))
        finally:
            connection.close()

    workers = [threading.Thread(target=claim) for _ in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(claims) == 6
    assert sum(claim is not None for claim in claims) == 1
