"""The chat and paging services that a channel may name, and what their addresses may say.

A parameter that names a file, an address or another host is in no list: apprise would read
it with the rights of the sender.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

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


# Schemes, the module of apprise, and the parameters that their addresses may have.
_TABLE = (
    ("betterstack", "betterstack", "token from to policy alert team_wait"),
    ("discord", "discord", "tts thread footer fields flags ping"),
    ("firehydrant", "firehydrant", "token level priority dedup tags"),
    ("flock", "flock", "to"),
    ("form forms", "custom_form", "method"),
    ("gchat", "google_chat", "workspace key token thread threadkey"),
    ("gotify gotifys", "gotify", "priority"),
    ("ilert", "ilert", "key dedup priority route"),
    ("incidentio", "incidentio", "source token dedup"),
    ("json jsons", "custom_json", "method"),
    ("matrix matrixs", "matrix", "mode version msgtype token to"),
    ("mmost mmosts", "mattermost", "channel channels team botname mode to"),
    ("nctalk nctalks", "nextcloudtalk", "secret silent"),
    ("ntfy ntfys", "ntfy", "priority xtags mode token auth to"),
    ("opsgenie", "opsgenie", "region priority entity alias tags to"),
    ("pagerduty", "pagerduty", "group class region severity dedup"),
    ("pagertree", "pagertree", "thirdparty tid dedup urgency tags"),
    ("pbul", "pushbullet", "to"),
    ("pover", "pushover", "priority sound interval expire to"),
    ("rocket rockets", "rocketchat", "mode to"),
    ("signl4", "signl4", "service location alerting_scenario filtering external_id dedup"),
    ("slack", "slack", "footer blocks timestamp mode token to"),
    ("spike", "spike", ""),
    ("splunk victorops", "splunk", "apikey routing_key route entity_id"),
    ("squadcast", "squadcast", "key region dedup priority"),
    ("tgram", "telegram", "detect silent preview topic thread mdv to content"),
    ("twilio", "twilio", "from sid token apikey method to"),
    ("twist", "twist", "to"),
    ("webex wxteams", "webexteams", "token mode to"),
    ("workflow workflows", "workflows", "id sig ver api-version pa powerautomate wrap sp sv"),
    ("xml xmls", "custom_xml", "method"),
    ("zulip", "zulip", "to token"),
)
# The most that a title and a text may have, in UTF-8 bytes, which no service counts as fewer than
# it has, where apprise does not say so itself. No title: it becomes the first line of the text.
LIMITS: Mapping[str, tuple[int, int]] = {
    "discord": (0, 2_000),
    "google_chat": (0, 4_000),
    # A longer message becomes an attachment.
    "ntfy": (250, 4_000),
    "opsgenie": (130, 15_000),
    "rocketchat": (0, 5_000),
    # Header and section of Block Kit have 150 and 3,000, escapes among them.
    "slack": (140, 2_800),
    "splunk": (250, 20_000),
    # Teams takes cards of 28 KB, and cuts a title to one line.
    "workflows": (0, 20_000),
}
SERVICES = {
    scheme: Service(module, _EVERYWHERE | set(parameters.split()), module.startswith("custom_"))
    for schemes, module, parameters in _TABLE
    for scheme in schemes.split()
}


# Hosts of the addresses that services themselves show, and the schemes that these stand for.
NATIVE: Mapping[str, str] = {
    r"chat\.googleapis\.com": "gchat",
    r"discord(app)?\.com": "discord",
    r"hooks\.slack(-gov)?\.com": "slack",
    r".+\.(logic\.azure|api\.powerplatform)\.com": "workflows",
}


def native_scheme(address: str) -> str:
    """Return the scheme of an https address that a service shows; empty for any other address."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return ""
    if parts.scheme != "https":
        return ""
    hosts = (scheme for host, scheme in NATIVE.items() if re.fullmatch(host, parts.hostname or ""))
    return next(hosts, "")


def check_address(address: str) -> Service:
    """Return the service of an address; ChatAddressError names what it may not say."""
    scheme, separator, rest = address.partition("://")
    scheme = native_scheme(address) or scheme
    service = SERVICES.get(scheme.lower())
    # What is no scheme may be a secret, which no message repeats.
    if not separator or not _SCHEME.fullmatch(scheme) or not address.isprintable():
        raise ChatAddressError("this is not an address such as slack://…")
    if service is None:
        supported = ", ".join(sorted(SERVICES))
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
