"""The chat and paging services that a channel may name, and what their addresses may say.

A parameter that names a file, an address or another host is in no list: apprise would read
it with the rights of the sender.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import unquote

_EVERYWHERE = frozenset({"format", "overflow"})
# `+Header=`, `-parameter=` and `:field=` add to what is sent to a receiver of one's own.
_ADDITIONS = ("+", "-", ":")


_SCHEME = re.compile(r"[A-Za-z0-9]{1,20}")


class ChatAddressError(Exception):
    """The address of a chat or paging service is refused; the message says why."""


@dataclass(frozen=True, slots=True)
class Service:
    """A module of apprise, and the parameters that an address of its may have."""

    module: str
    parameters: frozenset[str] = frozenset()
    takes_additions: bool = False


def _service(module: str, parameters: str = "", *, additions: bool = False) -> Service:
    return Service(module, _EVERYWHERE | set(parameters.split()), additions)


_JSON = _service("custom_json", "method", additions=True)
_FORM = _service("custom_form", "method", additions=True)
_XML = _service("custom_xml", "method", additions=True)
_MATTERMOST = _service("mattermost", "channel channels team botname mode to")
_ROCKET = _service("rocketchat", "mode to")
_NTFY = _service("ntfy", "priority xtags mode token auth to")
_GOTIFY = _service("gotify", "priority")
_MATRIX = _service("matrix", "mode version msgtype token to")
_TALK = _service("nextcloudtalk", "secret silent")
_WORKFLOWS = _service("workflows", "id sig ver api-version pa powerautomate wrap")
_WEBEX = _service("webexteams", "token mode to")
_SPLUNK = _service("splunk", "apikey routing_key route entity_id")

SERVICES = {
    "betterstack": _service("betterstack", "token from to policy alert team_wait"),
    "discord": _service("discord", "tts thread footer fields flags ping"),
    "firehydrant": _service("firehydrant", "token level priority dedup tags"),
    "flock": _service("flock", "to"),
    "form": _FORM,
    "forms": _FORM,
    "gchat": _service("google_chat", "workspace key token thread"),
    "gotify": _GOTIFY,
    "gotifys": _GOTIFY,
    "ilert": _service("ilert", "key dedup priority route"),
    "incidentio": _service("incidentio", "source token dedup"),
    "json": _JSON,
    "jsons": _JSON,
    "matrix": _MATRIX,
    "matrixs": _MATRIX,
    "mmost": _MATTERMOST,
    "mmosts": _MATTERMOST,
    "nctalk": _TALK,
    "nctalks": _TALK,
    "ntfy": _NTFY,
    "ntfys": _NTFY,
    "opsgenie": _service("opsgenie", "region priority entity alias tags to"),
    "pagerduty": _service("pagerduty", "group class region severity dedup"),
    "pagertree": _service("pagertree", "thirdparty tid dedup urgency tags"),
    "pbul": _service("pushbullet", "to"),
    "pover": _service("pushover", "priority sound interval expire to"),
    "rocket": _ROCKET,
    "rockets": _ROCKET,
    "signl4": _service("signl4", "service location alerting_scenario filtering external_id dedup"),
    "slack": _service("slack", "footer blocks timestamp mode token to"),
    "spike": _service("spike"),
    "splunk": _SPLUNK,
    "squadcast": _service("squadcast", "key region dedup priority"),
    "tgram": _service("telegram", "detect silent preview topic thread mdv to content"),
    "twilio": _service("twilio", "from sid token apikey method to"),
    "twist": _service("twist", "to"),
    "victorops": _SPLUNK,
    "webex": _WEBEX,
    "workflow": _WORKFLOWS,
    "workflows": _WORKFLOWS,
    "wxteams": _WEBEX,
    "xml": _XML,
    "xmls": _XML,
    "zulip": _service("zulip", "to token"),
}


def check_address(address: str) -> Service:
    """Return the service of an address; ChatAddressError names what it may not say."""
    scheme, separator, rest = address.partition("://")
    service = SERVICES.get(scheme.lower())
    # What is no scheme may be a secret, which no message repeats.
    if not separator or not _SCHEME.fullmatch(scheme) or not address.isprintable():
        raise ChatAddressError("this is not an address such as slack://…")
    if service is None:
        supported = ", ".join(SERVICES)
        raise ChatAddressError(
            f"the service {scheme}:// is not supported; supported are {supported}"
        )
    query = rest.partition("?")[2].replace(";", "&")
    names = [pair.partition("=")[0] for pair in query.split("&") if pair]
    check_parameters(service, map(unquote, names))
    return service


def check_parameters(service: Service, names: Iterable[str]) -> None:
    """Refuse a parameter that the service's addresses may not have."""
    for name in names:
        if service.takes_additions and name.startswith(_ADDITIONS):
            continue
        if name.lower().strip() not in service.parameters:
            allowed = ", ".join(sorted(service.parameters))
            raise ChatAddressError(
                f"the parameter {name[:40]!r} is not allowed here; allowed are {allowed}"
            )
