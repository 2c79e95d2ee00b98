import socket

import pytest
import redis
from django.db import connection
from pytest_socket import SocketConnectBlockedError


@pytest.mark.django_db
def test_the_suite_runs_on_its_own_postgresql() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SHOW listen_addresses")
        assert cursor.fetchone() == ("",)
        cursor.execute("SHOW fsync")
        assert cursor.fetchone() == ("off",)


def test_a_test_cannot_leave_the_machine() -> None:
    with (
        socket.socket() as client,
        pytest.warns(UserWarning, match="tried to use"),
        pytest.raises(SocketConnectBlockedError),
    ):
        client.connect(("192.0.2.1", 80))


def test_the_broker_starts_on_demand(broker_url: str) -> None:
    path = broker_url.removeprefix("redis+socket://").split("?")[0]
    with redis.Redis(unix_socket_path=path) as client:
        assert client.ping()
