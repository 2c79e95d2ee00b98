"""Made-up documents with and without secrets, to measure what a redactor finds and leaves.

    from bench.redaction_corpus import make_corpus

Everything is made from a seed at run time: no file holds anything that looks like a secret.
A positive document knows its secrets as they stand in the text; a negative one must be left
alone to the letter.
"""

# ruff: noqa: E501, RUF001, S311 - templates on one line, look-alikes, seeded chance
import base64
import html
import json
import re
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from urllib.parse import quote

from bench.redaction_plain import NEGATIVES, PROSE, WORDS

POSITIVE, NEGATIVE = 438, 127
ALPHABETS = {
    "alnum": string.ascii_letters + string.digits,
    "lower": string.ascii_lowercase + string.digits,
    "upper": string.ascii_uppercase + string.digits,
    "base32": string.ascii_uppercase + "234567",
    "hex": "0123456789abcdef",
    "digit": string.digits,
    "nonzero": "123456789",
    "letter": string.ascii_letters,
    "base64": string.ascii_letters + string.digits + "+/",
    "url": string.ascii_letters + string.digits + "-_",
    "sign": string.ascii_letters + string.digits + "!#$%*?^+.-_",
}
PLACE = re.compile(r"\{(\w+):(\d+)(?:-(\d+))?\}")


@dataclass(frozen=True, slots=True)
class Document:
    """A text; `secrets` as they stand in it, none in a negative document."""

    category: str
    text: str
    secrets: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    # More than the secret that may be masked with it, such as the frame of a PEM block.
    frame: tuple[str, ...] = ()
    # So many characters of a secret in a row are a leak.
    leak_from: int = 6
    # The result is cut to so many bytes; what is left out then is no loss.
    limit: int | None = None


def fill(template: str, random: Random) -> str:
    """Fill `{alnum:20}`, `{hex:8-12}` with characters of the alphabet, `{uuid:1}` too."""

    def piece(found: re.Match[str]) -> str:
        if found[1] == "uuid":
            return _uuid(random)
        least = int(found[2])
        length = random.randint(least, int(found[3] or least))
        return "".join(random.choice(ALPHABETS[found[1]]) for _ in range(length))

    return PLACE.sub(piece, template)


def _uuid(random: Random) -> str:
    digits = "".join(random.choice("0123456789abcdef") for _ in range(32))
    ends = ((0, 8), (8, 12), (12, 16), (16, 20), (20, 32))
    return "-".join(digits[first:last] for first, last in ends)


# Tokens as their makers document them.
TOKENS = (
    "sk-{alnum:20}T3BlbkFJ{alnum:20}", "sk-proj-{url:74}T3BlbkFJ{url:74}",
    "sk-svcacct-{url:60}", "sk-admin-{url:60}", "sk-ant-api03-{url:93}AA",
    "sk-ant-admin01-{url:93}AA", "sk-or-v1-{hex:64}", "AIza{url:35}", "ya29.{url:120}",
    "GOCSPX-{url:28}", "1//0{url:40}", "AKIA{base32:16}", "ASIA{base32:16}", "ghp_{alnum:36}",
    "gho_{alnum:36}", "ghu_{alnum:36}", "ghs_{alnum:36}", "ghr_{alnum:76}",
    "github_pat_{alnum:22}_{alnum:59}", "glpat-{url:20}", "gldt-{url:20}", "glrt-{url:20}",
    "glptt-{hex:40}", "GR1348941{url:20}", "xoxb-{digit:12}-{digit:12}-{alnum:24}",
    "xoxp-{digit:11}-{digit:11}-{digit:12}-{hex:32}", "xapp-1-A{upper:10}-{digit:13}-{hex:64}",
    "xoxe.xoxp-1-{alnum:160}", "https://hooks.slack.com/services/<<T{upper:8}/B{upper:8}/{alnum:24}>>",
    "sk_live_{alnum:24}", "rk_live_{alnum:24}", "sk_test_{alnum:99}", "whsec_{alnum:32}",
    "AC{hex:32}", "SK{hex:32}", "SG.{url:22}.{url:43}", "key-{hex:32}", "npm_{alnum:36}",
    "pypi-AgEIcHlwaS5vcmc{url:150}", "dckr_pat_{url:27}", "hf_{letter:34}", "gsk_{alnum:52}",
    "r8_{alnum:37}", "pplx-{alnum:48}", "xai-{alnum:80}", "dop_v1_{hex:64}", "doo_v1_{hex:64}",
    "HRKU-{uuid:1}", "v1.0-{hex:24}-{hex:146}", "NRAK-{upper:27}", "NRII-{url:32}",
    "https://<<{hex:32}>>@o{digit:6}.ingest.sentry.io/{digit:7}", "sntrys_{base64:80}", "glsa_{alnum:32}_{hex:8}",
    "glc_{base64:60}", "M{alnum:23}.{alnum:6}.{url:27}", "{nonzero:1}{digit:8}:AA{url:33}",
    "shpat_{hex:32}", "shpss_{hex:32}", "EAAA{url:60}", "sq0csp-{url:43}", "lin_api_{alnum:40}",
    "secret_{alnum:43}", "ntn_{digit:11}{alnum:35}", "figd_{url:40}", "pat{alnum:14}.{hex:64}",
    "ATATT3xFfGF0{url:180}={upper:8}", "dapi{hex:32}", "pscale_tkn_{url:43}", "pscale_pw_{url:43}",
    "sbp_{hex:40}", "dp.pt.{alnum:43}", "dp.st.prd.{alnum:43}", "hvs.{url:90}", "hvb.{url:140}",
    "{alnum:14}.atlasv1.{url:67}", "pul-{hex:40}", "AGE-SECRET-KEY-1{upper:58}",
    "eyJhbGciOiJIUzI1NiJ9.eyJ{url:60}.{url:43}", "fs_{hex:12}_{url:43}", "nvapi-{url:64}",
    "tvly-{alnum:32}", "lsv2_pt_{hex:32}_{hex:10}", "pcsk_{alnum:6}_{alnum:60}", "phc_{alnum:43}",
    "PMAK-{hex:24}-{hex:34}", "rubygems_{hex:48}", "cio{alnum:32}", "tskey-auth-{alnum:16}-{alnum:32}",
    "AccountKey=<<{base64:86}==>>", "{alnum:3}8Q~{url:34}", "do1_{hex:32}", "sk-lf-{uuid:1}",
    "https://discord.com/api/webhooks/<<{digit:18}/{url:68}>>", "nfp_{alnum:36}", "vc_{hex:1}{alnum:23}",
    "re_{alnum:8}_{alnum:24}", "fw_{alnum:24}", "xkeysib-{hex:64}-{alnum:16}", "CFPAT-{url:43}",
)  # fmt: skip


def note(random: Random, secret: str) -> str:
    """A line of talk around a token."""
    before, after = random.choice(PROSE), random.choice(PROSE)
    return f"{before} {random.choice(WORDS)} {secret} {after}"


CARRIERS: tuple[Callable[[Random, str], str], ...] = (
    note,
    lambda r, s: json.dumps({"user": r.choice(WORDS), "value": s, "n": r.randint(1, 99)}),
    lambda r, s: json.dumps({"log": json.dumps({"msg": f"sent {s}", "ok": True})}),
    lambda r, s: json.dumps(json.dumps(json.dumps({"a": s, "b": "c\nd"}))),
    lambda r, s: f"service:\n  name: {r.choice(WORDS)}\n  credential: {s}\n  retries: 3\n",
    lambda r, s: f"<config><name>{r.choice(WORDS)}</name><item id='4'>{s}</item></config>",
    lambda r, s: f"GET /v1/items HTTP/1.1\nHost: api.example.org\nAuthorization: Bearer {s}\nAccept: */*",
    lambda r, s: f"https://api.example.org/v2/items?page=2&access={quote(s, safe='')}&sort=asc",
    lambda r, s: f"2026-11-21T10:00:0{r.randint(0, 9)}Z ERROR worker[{r.randint(9, 999)}]: call failed with {s}: 401",
    lambda r, s: f'Traceback (most recent call last):\n  File "/app/main.py", line 3, in run\nValueError: bad value {s!r}',
    lambda r, s: f"## Setup\n\n1. Open the console\n2. Paste `{s}` there\n\n| a | b |\n|---|---|\n| x | {s} |",
    lambda r, s: f"client = Client(\n    '{s}',\n    timeout=30,\n)\nclient.run()  # starts",
    lambda r, s: f"alice: which one?\nbob: {s}, but only for staging\nalice: thanks",
    lambda r, s: f"({s})",
    lambda r, s: f"export THING={s}; make deploy",
    lambda r, s: f"curl -s -H 'X-Auth: {s}' https://example.org/a | jq .",
    lambda r, s: f"values=[{s},{r.randint(1, 9)}]",
    lambda r, s: f"{r.choice(WORDS)},{s},{r.choice(WORDS)}\r\n",
)  # fmt: skip


def provider_token(random: Random) -> Document:
    """A provider's token in any carrier."""
    whole, secret = token(random, TOKENS)
    text = random.choice(CARRIERS)(random, whole)
    return Document("token", text, (_shown(secret, text),))


def token(random: Random, templates: Sequence[str]) -> tuple[str, str]:
    """Fill a template; gives it whole, and the secret part that << >> mark in it."""
    whole = fill(random.choice(templates), random)
    marked = re.search("<<(.*)>>", whole)
    whole = whole.replace("<<", "").replace(">>", "")
    return whole, marked[1] if marked else whole


def _shown(secret: str, text: str) -> str:
    forms = (
        secret,
        quote(secret, safe=""),
        json.dumps(secret)[1:-1],
        html.escape(secret),
    )
    return next((form for form in forms if form in text), secret)


def _pem_body(random: Random) -> list[str]:
    lines = [fill("{base64:64}", random) for _ in range(random.randint(4, 12))]
    return [*lines, fill("{base64:20}", random) + "=="]


def pem(random: Random) -> Document:
    """A private key: whole, without END, on one line, escaped, indented."""
    kind = random.choice(("RSA ", "EC ", "", "OPENSSH ", "ENCRYPTED ", "DSA "))
    lines = _pem_body(random)
    begin, end = (
        f"-----BEGIN {kind}PRIVATE KEY-----",
        f"-----END {kind}PRIVATE KEY-----",
    )
    shape = random.randint(0, 7)
    whole = "\n".join((begin, *lines, end))
    if shape == 0:
        text = f"the key:\n{whole}\nand that is all"
    elif shape == 1:
        text = "it was cut\n" + "\n".join((begin, *lines))[: -random.randint(1, 90)]
    elif shape == 2:
        text = json.dumps({"name": "x", "key": whole, "port": 22})
    elif shape == 3:
        text = json.dumps(json.dumps({"key": whole}))
    elif shape == 4:
        text = f"KEY='{begin} {' '.join(lines)} {end}' make run"
    elif shape == 5:
        text = "tls:\n  key: |\n    " + whole.replace("\n", "\n    ") + "\n  port: 443\n"
    elif shape == 6:
        text = whole.replace("\n", "\r\n") + "\r\n"
    else:
        text = f"b'{whole}'".replace("\n", "\\n")
    frame = (begin, end, *lines, lines[-1][:-2])
    return Document("pem", text, tuple(lines[1:-2]), frame=frame)


HEADERS = (
    ("Authorization: Bearer {0}", "{url:30-60}"),
    ("Authorization: Basic {0}", "{base64:24-40}"),
    ("authorization: token {0}", "{hex:40}"),
    ("Proxy-Authorization: Basic {0}", "{base64:24}"),
    ("X-Api-Key: {0}", "{alnum:24-40}"),
    ("x-api-key={0}", "{alnum:32}"),
    ("Cookie: sessionid={0}; theme=dark", "{lower:32}"),
    ("Set-Cookie: sid={0}; Path=/; HttpOnly", "{url:40}"),
    ("api-key: {0}", "{hex:32}"),
    ("Ocp-Apim-Subscription-Key: {0}", "{hex:32}"),
    ("X-Auth-Token: {0}", "{hex:32}"),
    ("X-Vault-Token: {0}", "{alnum:26}"),
    ("PRIVATE-TOKEN: {0}", "{url:20}"),
    ("X-Amz-Security-Token: {0}", "{base64:120}"),
    ("DD-API-KEY: {0}", "{hex:32}"),
    ("X-Goog-Api-Key: {0}", "{url:39}"),
    ("Authorization: Digest username=\"a\", response=\"{0}\"", "{hex:32}"),
    ("Authorization: ApiKey {0}", "{base64:40}"),
    ("X-CSRF-Token: {0}", "{alnum:32}"),
)  # fmt: skip


def header(random: Random) -> Document:
    """A header with a credential, in the shapes requests are logged in."""
    template, value = random.choice(HEADERS)
    secret = fill(value, random)
    line = template.format(secret)
    name, _, rest = line.partition(": ")
    shapes = [
        f"POST /v1/x HTTP/1.1\r\nHost: a.example\r\n{line}\r\nContent-Length: 12\r\n\r\n{{}}",
        f'curl -H "{line}" https://example.org/v1/models',
        f"< HTTP/1.1 200\n< Date: Sat\n> {line}\n> Accept: */*",
    ]
    if rest:
        shapes += [
            json.dumps({"method": "GET", "headers": {"Accept": "*/*", name: rest}}),
            f"headers={{'Accept': '*/*', '{name}': '{rest}'}} status=200",
            json.dumps({"request": json.dumps({"headers": {name: rest}})}),
            f"[('Host', 'x'), ('{name}', '{rest}')]",
            f"{name.upper()}: {rest}",
        ]
    return Document("header", random.choice(shapes), (secret,))


URLS = (
    ("postgres://app:{0}@db.internal:5432/main", "{alnum:12-24}"),
    ("postgresql+psycopg://svc:{0}@10.0.0.4/main?sslmode=require", "{sign:16}"),
    ("mysql://root:{0}@mysql/shop", "{alnum:10}"),
    ("mongodb+srv://admin:{0}@cluster0.ab1cd.mongodb.net/test", "{alnum:16}"),
    ("redis://:{0}@cache:6379/0", "{alnum:32}"),
    ("rediss://default:{0}@x.upstash.io:6379", "{alnum:32}"),
    ("amqp://guest:{0}@mq:5672//", "{alnum:9}"),
    ("https://user:{0}@git.example.org/a/b.git", "{alnum:20}"),
    ("ftp://anna:{0}@files.example.org/in", "{lower:9}"),
    ("smtp://mailer%40example.org:{0}@smtp.example.org:587", "{alnum:14}"),
    ("jdbc:postgresql://db/main?user=app&password={0}&ssl=true", "{alnum:14}"),
    ("jdbc:oracle:thin:scott/{0}@//db:1521/orcl", "{alnum:10}"),
    ("Server=tcp:db,1433;Database=shop;User Id=sa;Password={0};Encrypt=true", "{alnum:14}"),
    ("host=db user=app password={0} dbname=main", "{alnum:14}"),
    ("app:{0}@tcp(db:3306)/shop?parseTime=true", "{alnum:14}"),
    ("DefaultEndpointsProtocol=https;AccountName=x;AccountKey={0}==;EndpointSuffix=core", "{base64:86}"),
    ("Endpoint=sb://x.servicebus.windows.net/;SharedAccessKeyName=root;SharedAccessKey={0}=", "{base64:43}"),
    ("ldap://cn=admin,dc=x:{0}@ldap.example.org", "{alnum:12}"),
    ("sftp://deploy:{0}@10.1.2.3:22/srv", "{sign:12}"),
    ("clickhouse://default:{0}@ch:9000/logs", "{alnum:18}"),
)  # fmt: skip


def address(random: Random) -> Document:
    """A connection address with a password."""
    template, value = random.choice(URLS)
    secret = fill(value, random)
    url = template.format(secret)
    texts = (
        f"DATABASE_URL={url}",
        json.dumps({"url": url, "pool": 5}),
        f"could not connect to {url}: timeout expired",
        f"db:\n  url: {url}\n  pool: 5\n",
        f'OperationalError: connection to "{url}" refused',
        json.dumps({"e": json.dumps({"dsn": url})}),
        f"use `{url}` locally",
        f"{random.choice(PROSE)} {url}",
    )
    return Document("address", random.choice(texts), (secret,))


NAMES = (
    "password", "db_password", "DB_PASS", "passwd", "secret", "client_secret", "clientSecret",
    "api_key", "apiKey", "API-KEY", "access_token", "refreshToken", "auth_token", "secret_key",
    "SECRET_KEY", "aws_secret_access_key", "private_key", "encryption_key", "MYSQL_ROOT_PASSWORD",
    "smtp_pass", "passphrase", "pwd", "session_token", "webhook_secret", "signing_secret",
    "OPENAI_API_KEY", "jwt_secret", "bot_token", "token", "credentials", "admin_password",
    "azure_client_secret", "datadog_api_key", "CF_API_TOKEN", "master_key", "account_key",
    "storageKey", "x-functions-key", "spring.datasource.password", "consumerSecret",
)  # fmt: skip
VALUES = (
    "{alnum:10-16}", "{hex:32}", "{alnum:24-40}", "{base64:40}", "{sign:12-20}", "{lower:20}",
    "{letter:1}{digit:2}{sign:8}", "{alnum:6}-{alnum:6}-{alnum:6}",
)  # fmt: skip
PAIRS: tuple[Callable[[str, str], str], ...] = (
    lambda n, v: json.dumps({"name": "a", n: v, "port": 1}),
    lambda n, v: json.dumps({"body": json.dumps({n: v, "x": 1})}),
    lambda n, v: f"{n}: {v}\nport: 8080\n",
    lambda n, v: f'app:\n  {n}: "{v}"\n  debug: false\n',
    lambda n, v: f"{n}={v}\nDEBUG=1\n",
    lambda n, v: f"export {n.upper()}='{v}'",
    lambda n, v: f"<{n}>{html.escape(v)}</{n}><port>1</port>",
    lambda n, v: f"https://example.org/cb?{n}={quote(v, safe='')}&state=ok",
    lambda n, v: str({"host": "h", n: v, "n": 3}),
    lambda n, v: f"Config(host='h', {n.replace('-', '_')}='{v}', retries=3)",
    lambda n, v: f'{n} = "{v}"  # from the vault',
    lambda n, v: f"level=info msg=start {n}={v} port=80",
    lambda n, v: f"set {n} to {v} and restart",
    lambda n, v: f"| {n} | {v} |",
    lambda n, v: f'<add key="{n}" value="{html.escape(v)}"/>',
    lambda n, v: f"-D{n}={v} -jar app.jar",
    lambda n, v: f'"{n}" => "{v}",',
    lambda n, v: f"run --{n.lower().replace('_', '-')} {v} --verbose",
    lambda n, v: json.dumps([{"name": n, "value": v}]),
    lambda n, v: f"const {n.replace('-', '_')} = `{v}`;",
)  # fmt: skip


def key_value(random: Random) -> Document:
    """An opaque value behind the name of a secret."""
    value = fill(random.choice(VALUES), random)
    text = random.choice(PAIRS)(random.choice(NAMES), value)
    return Document("key_value", text, (_shown(value, text),))


def wrapped(random: Random) -> Document:
    """A secret that was encoded whole: base64, hex, percent."""
    _, secret = token(random, TOKENS[:40])
    inner = random.choice(
        (
            secret,
            f"user:{secret}",
            json.dumps({"api_key": secret}),
            f"password={secret}\n",
        )
    ).encode()
    by_character = random.choice(("%{:02x}", "\\x{:02x}", "&#{};", "%{:02X}", "\\u{:04x}"))
    dress = random.choice((
        base64.b64encode(inner).decode(),
        base64.urlsafe_b64encode(inner).decode(),
        inner.hex(),
        inner.hex().upper(),
        base64.b64encode(inner).decode().rstrip("="),
        "".join(by_character.format(byte) for byte in inner),
        "".join(by_character.format(byte) for byte in inner),
    ))  # fmt: skip
    core = "".join(by_character.format(byte) for byte in secret.encode())
    texts = (
        f"data: {dress}",
        f'{{"payload": "{dress}"}}',
        f"{random.choice(PROSE)} {dress} {random.choice(PROSE)}",
        f"echo {dress} | base64 -d",
        f"https://example.org/?q={dress}&p=1",
    )
    return Document(
        "wrapped",
        random.choice(texts),
        (core if core in dress else dress,),
        frame=(dress,),
        leak_from=30 if core in dress else 6,
    )


def truncated(random: Random) -> Document:
    """A token cut somewhere past the part it is recognised by, at the end of the text."""
    template = random.choice([t for t in TOKENS if re.match(r"[A-Za-z_.-]{3,}[^{<]*\{\w+:\d\d", t)])
    head = template[: template.index("{")]
    secret = fill(template, random).replace("<<", "").replace(">>", "")
    head = head.replace("<<", "")
    kept = secret[: len(head) + random.randint(6, max(7, len(secret) - len(head)))]
    text = random.choice((note(random, "")[:60] + " ", '{"value": "', "key=", "Bearer ", "'"))
    return Document("truncated", text + kept, (kept[len(head) :],), frame=(kept,))


def spoken(random: Random) -> Document:
    """A secret told in a sentence."""
    value = fill(
        random.choice(("{alnum:10}", "{lower:8}{digit:3}", "{sign:12}", "{hex:20}")),
        random,
    )
    if value.isalpha():
        value += "7"
    name = random.choice(
        (
            "password",
            "passphrase",
            "API key",
            "secret",
            "token",
            "PIN code",
            "access key",
        )
    )
    texts = (
        f"The {name} is {value}, please do not share it.",
        f"my {name} is '{value}'",
        f"Please log in with the {name} {value} and tell me what you see.",
        f"the {name} for the staging server is {value}.",
        f"I changed the {name} to {value} yesterday",
        f"use {value} as the {name}",
        f"Her {name} was {value} until May.",
        f"{name.capitalize()}: {value}",
        f"log in as anna with {name} {value}",
        f"the {name} should be set to {value}",
        f"({name} = {value})",
        f"it asked for the {name}, I typed {value} and it worked",
    )
    return Document("prose", random.choice(texts), (value,))


FULL = str.maketrans({chr(c): chr(c + 0xFEE0) for c in range(0x21, 0x7F)})
LOOKS = str.maketrans("aeopcxysijAEOPCXKMTBH", "аеорсхуѕіјАЕОРСХКМТВН")
ZERO = ("\u200b", "\u200c", "\u200d", "\u2060", "\ufeff", "\u00ad")


def disguised(random: Random) -> Document:
    """A token with invisible, full-width or look-alike characters in it."""
    _, secret = token(random, [t for t in TOKENS[:60] if "<<" not in t])
    shape = random.randint(0, 3)
    if shape == 0:
        worn = random.choice(ZERO).join(secret)
    elif shape == 1:
        worn = secret.translate(FULL)
    elif shape == 2:
        worn = secret.translate(LOOKS)
    else:
        at = random.randint(1, 5)
        worn = secret[:at] + random.choice(ZERO) + secret[at:]
    text = random.choice(
        (
            f"{random.choice(PROSE)} {worn} ok",
            json.dumps({"v": worn}, ensure_ascii=False),
        )
    )
    return Document("disguised", text, (worn,))


def card(random: Random) -> Document:
    """A card number with a right sum."""
    head, length = random.choice(
        (
            ("4", 16),
            ("51", 16),
            ("55", 16),
            ("2221", 16),
            ("34", 15),
            ("37", 15),
            ("6011", 16),
            ("3530", 16),
        )
    )
    digits = head + fill(f"{{digit:{length - len(head) - 1}}}", random)
    digits += luhn(digits)
    gap = random.choice(("", " ", "-"))
    groups = (4, 6, 5) if length == 15 else (4, 4, 4, 4)
    parts, at = [], 0
    for size in groups:
        parts.append(digits[at : at + size])
        at += size
    number = gap.join(parts)
    texts = (
        f"card {number} exp 12/29",
        json.dumps({"pan": number}),
        f"paid with {number}.",
        f"<n>{number}</n>",
        f"pan={number}&x=1",
    )
    return Document("card", random.choice(texts), (number,))


def luhn(digits: str) -> str:
    """Give the last digit that makes the sum right."""
    total = 0
    for place, digit in enumerate(reversed(digits)):
        value = int(digit) * (2 if place % 2 == 0 else 1)
        total += value - 9 if value > 9 else value
    return str(-total % 10)


def known_value(random: Random) -> Document:
    """A registered value in one of many encodings, sometimes cut off at the end."""
    value = fill(
        random.choice(
            (
                "{alnum:12}",
                "{sign:16}",
                "{lower:8}",
                "{alnum:6}/+ =&{alnum:6}",
                "{alnum:5}\"'<{alnum:7}",
            )
        ),
        random,
    )
    raw = value.encode()
    forms = (
        value, json.dumps(value)[1:-1], json.dumps(json.dumps(value)[1:-1])[1:-1],
        quote(value, safe=""), quote(quote(value, safe=""), safe=""), html.escape(value),
        base64.b64encode(raw).decode(), base64.b64encode(b"x" + raw).decode()[2:],
        base64.urlsafe_b64encode(b"u:" + raw).decode()[3:], raw.hex(), raw.hex().upper(),
        repr(value)[1:-1],
    )  # fmt: skip
    form = random.choice(forms)
    text = f"{random.choice(PROSE)} <{form}> {random.choice(PROSE)}"
    if random.random() < 0.2:
        cut_at = random.randint(min(12, len(form)), len(form))
        form = form[:cut_at]
        text = f"{random.choice(PROSE)} {form}"
    return Document("known", text, (form,), known=(value,))


MAKERS: tuple[tuple[Callable[[Random], Document], int], ...] = (
    (provider_token, 120), (pem, 24), (header, 40), (address, 40), (key_value, 60),
    (wrapped, 30), (truncated, 32), (spoken, 24), (disguised, 24), (card, 20), (known_value, 24),
)  # fmt: skip


def make_corpus(seed: int) -> tuple[list[Document], list[Document]]:
    """Give 438 positive and 127 negative documents."""
    random = Random(seed)
    positive = [make(random) for make, count in MAKERS for _ in range(count)]
    return positive, [_negative(random) for _ in range(NEGATIVE)]


def _negative(random: Random) -> Document:
    return Document("negative", fill(random.choice(NEGATIVES), random))


def leaks(document: Document, out: str) -> bool:
    """Ask whether some characters in a row of a secret are left in the text."""
    out = re.sub(r"\[REDACTED:[a-z0-9_-]+\]", "\0", out)
    return any(
        secret[at : at + document.leak_from] in out
        for secret in document.secrets
        for at in range(max(1, len(secret) - document.leak_from + 1))
    )


def kept_share(document: Document, out: str) -> tuple[int, int]:
    """Count the characters of the benign words of an uncut text, and of those that are left."""
    if document.limit is not None:
        return 0, 0
    benign = document.text
    gone = {*document.secrets, *document.frame}
    gone |= {json.dumps(part)[1:-1] for part in gone}
    benign = re.sub(r"\\+[nr]", " ", benign)
    for secret in sorted(gone, key=len, reverse=True):
        benign = benign.replace(secret, "\0")
    words = [part for part in re.findall(r"[^\s\0]+", benign) if len(part) > 1]
    kept, at = 0, 0
    for word in words:
        found = out.find(word, at)
        if found >= 0:
            kept, at = kept + len(word), found + len(word)
    return sum(map(len, words)), kept


def recall(documents: Sequence[Document], outs: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Count by category how many documents leak nothing, and how many there are."""
    counts: dict[str, tuple[int, int]] = {}
    for document, out in zip(documents, outs, strict=True):
        good, all_of = counts.get(document.category, (0, 0))
        counts[document.category] = (good + (not leaks(document, out)), all_of + 1)
    return counts
