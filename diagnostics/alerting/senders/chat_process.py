"""The program that sends one message to a chat or paging service, and then ends.

apprise resolves names, follows answers and opens files by itself. So the interpreter watches
every socket and file of this process (PEP 578): it connects to public addresses only, the
very ones that were looked at, and opens no file but Python's own and those of apprise's store.
It ends itself when its time is over, whatever it waits for.

Reads an order from standard input, as JSON, and writes `{"error": ..., "service": ...}`.
"""

import importlib
import json
import logging
import mimetypes
import os
import re
import resource
import signal
import sys
from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path
from threading import Timer
from typing import Any

from apprise import AppriseAsset, NotifyFormat, PersistentStoreMode
from apprise.conversion import convert_between
from apprise.logger import LogCapture
from apprise.plugins.base import NotifyBase
from apprise.utils.parse import parse_list

from diagnostics.alerting.senders.chat_services import (
    ChatAddressError,
    check_address,
    check_parameters,
)
from diagnostics.outbound.addresses import ForbiddenAddressError, is_public

SOCKET_SECONDS = 5.0
LIFE_SECONDS = 60
# Answers are read whole: a large one ends this process and no other.
MEMORY_BYTES = 768 * 1024 * 1024
ERROR_CHARACTERS = 2_000
SOCKET_EVENTS = frozenset({"socket.connect", "socket.sendto", "socket.sendmsg"})
_PREFIX = re.compile(r"^\S+ \S+ - \S+ - ")
Order = Mapping[str, Any]


def main() -> None:
    """Send what standard input asks for and say how it went."""
    # Whoever started it may have been killed.
    signal.alarm(LIFE_SECONDS)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    order = json.load(sys.stdin)
    limit = Timer(order["seconds"], _give_up, [order["seconds"]])
    limit.start()
    answer = send(order)
    limit.cancel()
    json.dump(answer, sys.stdout)


def _give_up(seconds: float) -> None:
    """End this process, whatever it waits for: its start on a busy machine is not counted."""
    json.dump({"error": f"no answer within {seconds:g} s", "service": ""}, sys.stdout)
    sys.stdout.flush()
    os._exit(0)


def send(order: Order) -> dict[str, str]:
    """Send a message.

    The order: `address`, `title`, `body`, `tone`, `attributes` of the service, the folder
    `storage`, `allow_private`, and the `seconds` until it is given up.
    """
    mimetypes.init()
    try:
        kind = find_service(str(order["address"]))
        watch(str(order["storage"]), allow_private=bool(order["allow_private"]))
        service = open_service(kind, order)
        error = _notify(service, order)
    except (ChatAddressError, ForbiddenAddressError) as refusal:
        return {"error": str(refusal), "service": ""}
    return {"error": error[:ERROR_CHARACTERS], "service": str(service.service_name)}


def find_service(address: str) -> type[NotifyBase]:
    """Return the class that speaks to the service of an address."""
    scheme = address.partition("://")[0].lower()
    module = importlib.import_module(f"apprise.plugins.{check_address(address).module}")
    for plugin in vars(module).values():
        if isinstance(plugin, type) and issubclass(plugin, NotifyBase):
            schemes = parse_list(plugin.protocol, plugin.secure_protocol)  # type: ignore[no-untyped-call] # apprise's
            if scheme in schemes:
                return plugin
    raise ChatAddressError(f"{scheme}:// is not supported by this version of apprise")


def watch(storage: str, *, allow_private: bool) -> None:
    """Refuse from now on what leads inside: it cannot be switched off again."""
    kept = (sys.prefix, sys.base_prefix, storage)
    folders = tuple(Path(folder).resolve() for folder in kept)

    def check(event: str, values: tuple[Any, ...]) -> None:
        if event in SOCKET_EVENTS and not allow_private:
            _check_peer(values[1])
        elif event == "open" and not isinstance(values[0], int):
            _check_file(values[0], folders)

    sys.addaudithook(check)


def open_service(kind: type[NotifyBase], order: Order) -> NotifyBase:
    """Return the service of an address, ready to be asked."""
    parsed = kind.parse_url(order["address"])
    if not parsed:
        raise ChatAddressError("this is not an address of the service")
    # As apprise reads them, whatever we have read.
    check_parameters(check_address(order["address"]), parsed["qsd"])
    asset = AppriseAsset(
        app_id="Failsoft",
        app_desc="Failsoft",
        http_redirects=False,
        # Opsgenie closes an alert by a number that it gave when it was opened.
        storage_path=order["storage"],
        storage_mode=PersistentStoreMode.FLUSH,
    )
    try:
        service = kind(**{**parsed, "asset": asset})
    except TypeError:
        # Its message repeats the token that it does not like.
        raise ChatAddressError("this is not an address of the service") from None
    service.socket_connect_timeout = service.socket_read_timeout = SOCKET_SECONDS
    for name, value in order["attributes"].items():
        # What the address says of itself comes first; of `action` it says nothing.
        if name == "action" or not getattr(service, name, None):
            setattr(service, name, value)
    return service


def _notify(service: NotifyBase, order: Order) -> str:
    """Return what went wrong, empty when the service took it."""
    # Names may hold what a service takes for markup. In Markdown, escapes would break the links.
    form, options = service.resolve_format(NotifyFormat.TEXT), {**order}
    for name in ("body", "title") if service.title_maxlen <= 0 else ("body",):
        if form is not NotifyFormat.MARKDOWN:
            options[name] = convert_between(NotifyFormat.TEXT, form, options[name])  # type: ignore[no-untyped-call] # apprise's
    with LogCapture(level=logging.WARNING) as log:  # type: ignore[no-untyped-call] # apprise's
        taken = service.notify(
            body=options["body"],
            title=options["title"],
            notify_type=order["tone"],
            body_format=form,
            body_passthrough=form is NotifyFormat.MARKDOWN,
        )
        lines = ["the service did not take it", *filter(str.strip, log.getvalue().splitlines())]
    return "" if taken else _PREFIX.sub("", lines[-1])


def _check_peer(peer: Any) -> None:  # noqa: ANN401 - an address of any family
    address = str(peer[0]) if isinstance(peer, tuple) and peer else str(peer)
    try:
        is_allowed = is_public(ip_address(address.partition("%")[0]))
    except ValueError:
        is_allowed = False
    if not is_allowed:
        raise ForbiddenAddressError(f"the service resolves to {address}, which is not public")


def _check_file(name: str | bytes, folders: tuple[Path, ...]) -> None:
    path = Path(os.path.realpath(os.fsdecode(name)))
    if not any(path.is_relative_to(folder) for folder in folders):
        raise PermissionError(f"a message to a service opens no file: {path.name}")


if __name__ == "__main__":
    main()
