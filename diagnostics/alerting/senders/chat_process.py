"""The program that sends one message to a chat or paging service, and then ends.

apprise resolves names, follows answers and opens files by itself. So the interpreter watches
every socket and file of this process (PEP 578): it connects to public addresses only, the
very ones that were looked at, and opens no file but Python's own and those of apprise's store.
It ends itself when its time is over, whatever it waits for.

Reads an order from standard input, as JSON, and writes `{"error": ..., "service": ...}`, with the
`status` and `retry_after` of the last HTTP answer.
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
from collections.abc import Mapping, Sequence
from html import escape
from ipaddress import ip_address
from pathlib import Path
from threading import Timer
from typing import Any
from urllib.parse import quote

import requests
from apprise import AppriseAsset, NotifyFormat, NotifyType, PersistentStoreMode
from apprise.conversion import convert_between
from apprise.logger import LogCapture
from apprise.plugins.base import NotifyBase
from apprise.utils.parse import parse_list

from diagnostics.alerting.senders.chat_services import (
    LIMITS,
    ChatAddressError,
    check_address,
    check_parameters,
    native_scheme,
)
from diagnostics.outbound.addresses import ForbiddenAddressError, is_public
from diagnostics.outbound.retry_after import find_retry_after

SOCKET_SECONDS = 5.0
LIFE_SECONDS = 60
# Answers are read whole: a large one ends this process and no other.
MEMORY_BYTES = 768 * 1024 * 1024
ERROR_CHARACTERS = 2_000
SOCKET_EVENTS = frozenset({"socket.connect", "socket.sendto", "socket.sendmsg"})
_PREFIX = re.compile(r"^\S+ \S+ - \S+ - ")
# All that is repeated of an answer of 200, which may hold a token.
_ERROR = re.compile(rb'"(?:error|message|description)"\s*:\s*"[^"]*"')
# What a service would take for a call to everybody, or for a link under other words: it comes
# from names of models and runs.
_MARKUP = re.compile(r"@(?=[\w*&!])|<(?=!|users/|at>|\w+:)|\](?=\()", re.IGNORECASE)
_SPACE = "\N{ZERO WIDTH SPACE}"
# It adds markup or a line end to a title that it puts into the text.
TITLE_ROOM = 32
Order = Mapping[str, Any]
Heard = requests.Response | requests.RequestException


def main() -> None:
    """Send what standard input asks for and say how it went."""
    # Whoever started it may have been killed.
    signal.alarm(LIFE_SECONDS)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    order = json.load(sys.stdin)
    answers = listen()
    limit = Timer(order["seconds"], _give_up, [order["seconds"], answers])
    limit.start()
    answer = send(order, answers)
    limit.cancel()
    json.dump(answer, sys.stdout)


def listen() -> list[Heard]:
    """Return the list that every HTTP answer to this process, or its lack, is added to."""
    answers: list[Heard] = []
    send_plainly = requests.Session.send

    def send_and_note(*given: Any, **options: Any) -> requests.Response:
        try:
            answer = send_plainly(*given, **options)
        except requests.RequestException as error:
            answers.append(error)
            raise
        answers.append(answer)
        return answer

    requests.Session.send = send_and_note  # type: ignore[method-assign]
    return answers


def _give_up(seconds: float, answers: Sequence[Heard]) -> None:
    """End this process, whatever it waits for: its start on a busy machine is not counted."""
    json.dump(_refused(f"no answer within {seconds:g} s", answers), sys.stdout)
    sys.stdout.flush()
    os._exit(0)


def send(order: Order, answers: Sequence[Heard] = ()) -> dict[str, Any]:
    """Send a message.

    The order: `address`, `title`, `topic`, `body`, its `links`, `tone`, `attributes` of the
    service, the folder `storage`, `allow_private`, and the `seconds` until it is given up.
    """
    mimetypes.init()
    try:
        kind = find_service(str(order["address"]))
        watch(str(order["storage"]), allow_private=bool(order["allow_private"]))
        service = open_service(kind, order)
        error = _notify(service, order)
    except (ChatAddressError, ForbiddenAddressError) as refusal:
        return _refused(str(refusal))
    if error:
        return _refused(error, answers)
    return {"error": "", "service": str(service.service_name)}


def _refused(words: str, answers: Sequence[Heard] = ()) -> dict[str, Any]:
    """Return why it was not sent, with the words of the last answer."""
    last = answers[-1] if answers else None
    if not isinstance(last, requests.Response):
        # The kind of exception: its text holds the address.
        cause = getattr(last.args[0], "reason", last) if last and last.args else last
        text = f"{words} ({type(cause).__name__})" if last else words
        return {"error": text, "status": 0, "retry_after": ""}
    body = last.content or b""
    wait = find_retry_after(last.headers, body)
    if last.ok:
        reason = _ERROR.search(body)
        body = reason[0] if reason else b""
    text = f"{words}: {body.decode('utf-8', 'replace')}".rstrip(": \n")
    return {"error": text[:ERROR_CHARACTERS], "status": last.status_code, "retry_after": wait}


def find_service(address: str) -> type[NotifyBase]:
    scheme = native_scheme(address) or address.partition("://")[0].lower()
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
            path = Path(os.path.realpath(os.fsdecode(values[0])))
            if not any(path.is_relative_to(folder) for folder in folders):
                raise PermissionError(f"a message to a service opens no file: {path.name}")

    sys.addaudithook(check)


def open_service(kind: type[NotifyBase], order: Order) -> NotifyBase:
    """Return the service of an address, ready to be asked."""
    parse = kind.parse_native_url if native_scheme(order["address"]) else kind.parse_url
    asset = AppriseAsset(
        app_id="Failsoft",
        app_desc="Failsoft",
        http_redirects=False,
        # The pictures would be loaded from elsewhere, and are not ours.
        image_url_mask="",
        image_url_logo="",
        storage_path=order["storage"],
        storage_mode=PersistentStoreMode.FLUSH,
    )
    try:
        parsed = parse(order["address"]) or {}
        # As apprise reads them, whatever we have read.
        check_parameters(check_address(order["address"]), parsed["qsd"])
        service = kind(**{**parsed, "asset": asset})
    except (KeyError, TypeError):
        # Its message repeats the token that it does not like.
        raise ChatAddressError("this is not an address of the service") from None
    service.socket_connect_timeout = service.socket_read_timeout = SOCKET_SECONDS
    for name, value in order["attributes"].items():
        # What the address says of itself comes first; of `action` it says nothing.
        if name == "action" or not parsed.get(name):
            setattr(service, name, value)
    if kind.__name__ == "NotifyOpsgenie":
        _correct_opsgenie(service, is_over=order["tone"] == NotifyType.SUCCESS)
    return service


def _correct_opsgenie(service: Any, *, is_over: bool) -> None:  # noqa: ANN401 - apprise's
    """Have Opsgenie open an alert for a test as well, and close alerts by their alias.

    apprise sends no test, and closes what has the id of a request, which no alert has.
    """
    fetch = service._fetch
    service.mapping = dict.fromkeys(NotifyType, "new")

    def fetch_by_alias(method: Any, url: str, payload: Any) -> Any:  # noqa: ANN401 - apprise's
        if not (is_over and service.alias):
            return fetch(method, url, payload)
        close = f"{url}/{quote(service.alias, safe='')}/close"
        note = {"source": payload["source"], "note": payload["description"]}
        return fetch(method, close, note, {"identifierType": "alias"})

    service._fetch = fetch_by_alias


def _preview(service: Any, title: str) -> None:  # noqa: ANN401 - apprise's
    """Have Slack show the title where it shows no attachments, which is all that apprise sends.

    Without a `fallback` a phone's lock screen says "no preview available".
    """
    post = service._send

    def post_with_fallback(url: str, payload: Any, *given: Any, **options: Any) -> Any:  # noqa: ANN401 - apprise's
        for attachment in payload.get("attachments", ()):
            attachment["fallback"] = escape(_MARKUP.sub(rf"\g<0>{_SPACE}", title), quote=False)
        return post(url, payload, *given, **options)

    service._send = post_with_fallback


def _notify(service: NotifyBase, order: Order) -> str:
    """Return what went wrong, empty when the service took it."""
    form = service.resolve_format(NotifyFormat.TEXT)
    title, body = fit(service, form, order)
    if service.service_name == "Slack":
        _preview(service, str(order["title"]))
    with LogCapture(level=logging.WARNING) as log:  # type: ignore[no-untyped-call] # apprise's
        taken = service.notify(
            body=body,
            title=title,
            notify_type=order["tone"],
            body_format=form,
            body_passthrough=form is NotifyFormat.MARKDOWN,
        )
        lines = ["the service did not take it", *filter(str.strip, log.getvalue().splitlines())]
    return "" if taken else _PREFIX.sub("", lines[-1])


def fit(service: Any, form: NotifyFormat, order: Order) -> tuple[str, str]:  # noqa: ANN401 - apprise's
    """Return title and text as the service takes them: what is too long loses lines, not links."""
    module = type(service).__module__.rpartition(".")[2]
    most_title, most = LIMITS.get(module, (service.title_maxlen, service.body_maxlen))
    title, head, links = (str(order[name]) for name in ("title", "body", "links"))
    if module == "pagerduty":
        # Its summary is one line, which is read out; the rest has a field of 512 KB.
        service.details = {"text": f"{head}\n{links}", **service.details}
        return "", _cut(title, most)
    if module == "zulip":
        # Its title is the topic, under which the messages of an incident stay together.
        title, head = str(order["topic"]), f"{title}\n{head}"
    if not module.startswith("custom_"):
        title, head = (_MARKUP.sub(rf"\g<0>{_SPACE}", text) for text in (title, head))

    def write(text: str) -> str:
        # Names may hold what a service takes for markup. In Markdown, escapes would break links.
        if form is not NotifyFormat.MARKDOWN:
            text = convert_between(NotifyFormat.TEXT, form, text)  # type: ignore[no-untyped-call] # apprise's
        # One line end alone is a space in a card of Teams.
        return text.replace("\n", "\n\n") if module == "workflows" else text

    if most_title <= 0 and service.title_maxlen <= 0:
        title = write(_cut(title, most // 2))
        most -= len(title.encode()) + TITLE_ROOM
    elif len(title.encode()) > most_title:
        head = f"{title}\n{head}"
        title = _cut(title, most_title)
    body = write(f"{head}\n{links}")
    while head and (over := len(body.encode()) - most) > 0:
        shorter = head[: -(over // 4) - 1]
        head = shorter.rpartition("\n")[0] or shorter
        body = write(f"{head}…\n{links}")
    return title, body


def _cut(text: str, most_bytes: int) -> str:
    if len(text.encode()) <= most_bytes:
        return text
    start = text.encode()[: max(most_bytes - len("…".encode()), 0)].decode(errors="ignore")
    return f"{start}…" if start else ""


def _check_peer(peer: Any) -> None:  # noqa: ANN401 - an address of any family
    address = str(peer[0]) if isinstance(peer, tuple) and peer else str(peer)
    try:
        is_allowed = is_public(ip_address(address.partition("%")[0]))
    except ValueError:
        is_allowed = False
    if not is_allowed:
        raise ForbiddenAddressError(f"the service resolves to {address}, which is not public")


if __name__ == "__main__":
    main()
