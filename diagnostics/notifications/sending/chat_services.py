"""Services of apprise by where they lead: a fixed place, or this very machine."""

# Their address holds tokens, never a host: they always speak to the service itself.
FIXED = frozenset(
    {
        "betterstack",
        "discord",
        "firehydrant",
        "flock",
        "gchat",
        "googlechat",
        "ilert",
        "incidentio",
        "msteams",
        "opsgenie",
        "pagerduty",
        "pagertree",
        "pbul",
        "pover",
        "pushover",
        "signl4",
        "slack",
        "spike",
        "splunk",
        "squadcast",
        "telegram",
        "tgram",
        "twilio",
        "twist",
        "victorops",
        "webex",
        "workflow",
        "workflows",
        "wxteams",
        "zulip",
    }
)

# They show something on, or write a file of, the machine that they run on.
HERE_ONLY = frozenset(
    {
        "blink1",
        "dbus",
        "file",
        "glib",
        "gnome",
        "kde",
        "macosx",
        "qt",
        "syslog",
        "windows",
    }
)
