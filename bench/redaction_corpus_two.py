"""A second set of made-up documents: other carriers, families and tricks than the first.

It was written after the rules were tuned on the first set and is only measured against: what it
shows is what the rules do with texts nobody thought of.
"""

# ruff: noqa: E501, RUF001, S311, S608 - templates on one line, foreign signs, chance
import base64
import html
import json
from collections.abc import Callable
from random import Random
from urllib.parse import quote

from bench.redaction_corpus import NEGATIVE, Document, fill, luhn
from bench.redaction_plain import WORDS

TOKENS = (
    "sk-ant-sid01-{url:86}AA", "sk-proj-{url:120}", "sk-{alnum:48}", "ghp_{alnum:36}",
    "github_pat_11{upper:20}_{alnum:59}", "glpat-{url:27}.01.{lower:9}", "AKIA{base32:16}",
    "ya29.a0Af{url:160}", "AIzaSy{url:33}", "xoxb-{digit:13}-{digit:13}-{alnum:24}",
    "xoxc-{digit:12}-{digit:12}-{digit:12}-{hex:64}", "hf_{letter:34}", "npm_{alnum:36}",
    "pypi-AgENdGVzdC5weXBpLm9yZw{url:140}", "SG.{url:22}.{url:43}", "sk_live_51{alnum:97}",
    "rk_test_{alnum:24}", "whsec_{base64:32}", "shpat_{hex:32}", "sq0atp-{url:22}",
    "dop_v1_{hex:64}", "hvs.CAES{url:90}", "glsa_{alnum:32}_{hex:8}", "NRAK-{upper:27}",
    "lin_api_{alnum:40}", "figd_{url:40}", "dapi{hex:32}-2", "pscale_tkn_{url:43}",
    "sbp_{hex:40}", "dp.st.dev_eu.{alnum:43}", "ATATT3xFfGF0T{url:180}={hex:8}",
    "eyJhbGciOiJSUzI1NiIsImtpZCI6{alnum:12}.eyJ{url:200}.{url:342}", "gsk_{alnum:52}",
    "pplx-{alnum:48}", "r8_{alnum:37}", "xai-{alnum:80}", "nvapi-{url:64}", "tvly-dev-{alnum:32}",
    "AGE-SECRET-KEY-1{base32:58}", "fs_{hex:16}_{url:43}", "phx_{alnum:43}", "sntryu_{hex:64}",
    "EAACEdEose0cBA{alnum:120}", "LTAI{alnum:20}", "AKCp8{alnum:68}", "PMAK-{hex:24}-{hex:34}",
    "rubygems_{hex:48}", "xkeysib-{hex:64}-{alnum:16}", "tskey-client-{alnum:17}-{alnum:32}",
    "secret_{alnum:43}", "ntn_{digit:11}{alnum:35}", "CCIPAT_{alnum:22}_{hex:40}",
)  # fmt: skip

CARRIERS: tuple[Callable[[Random, str], str], ...] = (
    lambda r, s: f"[default]\nname = {r.choice(WORDS)}\nvalue = {s}\nregion = eu-north-1\n",
    lambda r, s: f"INSERT INTO settings VALUES (7, '{r.choice(WORDS)}', '{s}', NULL);",
    lambda r, s: f'resource "x" "y" {{\n  value = "{s}"\n  size  = 3\n}}',
    lambda r, s: f"密钥：{s}，请勿外传",
    lambda r, s: f"🔑{s}🔒 done",
    lambda r, s: f"*{s}*",
    lambda r, s: f"<https://example.org/a|{s}> posted by Maria",
    lambda r, s: f"PS C:\\> $env:THING = \"{s}\"; ./run.ps1",
    lambda r, s: f"{{Name:worker Value:{s} Retries:3}}",
    lambda r, s: f"array(2) {{ ['value'] => string(40) \"{s}\" }}",
    lambda r, s: f"query {{ login(value: \"{s}\") {{ id name }} }}",
    lambda r, s: f"<![CDATA[{s}]]>",
    lambda r, s: f"history\n  41  ls -la\n  42  echo {s} | wl-copy\n  43  exit",
    lambda r, s: f"~~{s}~~ was rotated, see the wiki",
    lambda r, s: f"Nov 21 03:14:07 host app[812]: retry({s}) -> 401 Unauthorized",
    lambda r, s: f"a={r.randint(1, 9)};b={s};c=3",
    lambda r, s: f"/api/{quote(s, safe='')}/items",
    lambda r, s: json.dumps({"a": [[{"b": [s]}]]}),
    lambda r, s: f"1. first\n2. {s}\n3. third",
    lambda r, s: f"\t\"{s}\",\n",
    lambda r, s: f"key<{s}>key",
    lambda r, s: f"{s}\n{s}",
    lambda r, s: f"Der Zugang lautet {s} und gilt bis Mai.",
    lambda r, s: f"assert client.token == {s!r}, 'wrong one'",
    lambda r, s: f"event: message\ndata: {{\"delta\": \"{s}\"}}\n\n",
)  # fmt: skip


def provider_token(random: Random) -> Document:
    """A token in a carrier of the second kind."""
    secret = fill(random.choice(TOKENS), random)
    text = random.choice(CARRIERS)(random, secret)
    shown = secret if secret in text else quote(secret, safe="")
    return Document("token", text, (shown,))


PAIRS: tuple[tuple[str, str], ...] = (
    ("spring.datasource.password={0}\nserver.port=8080", "{alnum:14}"),
    ("[mysqld]\nuser=app\npassword={0}\nport=3306", "{sign:14}"),
    ("machine example.org login anna password {0}", "{alnum:12}"),
    ("PGPASSWORD={0} psql -h db -U app", "{alnum:12}"),
    ('$config["db_pass"] = "{0}";', "{alnum:12}"),
    (":secret_key_base => '{0}',", "{hex:64}"),
    ('<input type="password" name="password" value="{0}">', "{alnum:12}"),
    ('<connection user="sa" password="{0}" timeout="3"/>', "{alnum:14}"),
    ("stringData:\n  api-key: {0}\n  mode: fast", "{hex:40}"),
    ('"auths": {{"registry.example.org": {{"auth": "{0}"}}}}', "{base64:48}"),
    ("//registry.npmjs.org/:_authToken={0}", "{uuid:1}"),
    ('provider "x" {{\n  secret_key = "{0}"\n}}', "{base64:40}"),
    ("User(name='anna', password='{0}', active=True)", "{sign:12}"),
    ("{{'refresh_token': '{0}', 'expires_in': 3600}}", "{url:64}"),
    ("client_id=web&client_secret={0}&grant_type=code", "{url:40}"),
    ("secrets:\n  - name: DB_PASSWORD\n    value: {0}\n  - name: MODE\n    value: fast", "{alnum:16}"),
    ("ENV API_TOKEN {0}", "{alnum:32}"),
    ("export AWS_SECRET_ACCESS_KEY=\"{0}\"", "{base64:40}"),
    ("mqtt.password: '{0}'", "{alnum:12}"),
    ("encryptionKey := []byte(\"{0}\")", "{alnum:32}"),
    ("String apiKey = \"{0}\";", "{alnum:32}"),
    ("let accessToken: string = '{0}'", "{url:40}"),
    ("private const val SIGNING_SECRET = \"{0}\"", "{hex:32}"),
    ("?X-Amz-Signature={0}&X-Amz-Date=20261121T000000Z", "{hex:64}"),
    ("webhook_secret: >-\n  {0}\nother: 1", "{alnum:32}"),
    ("Config{{Host:db Password:{0} Port:5432}}", "{alnum:14}"),
    ("password={0} user=app host=db", "{sign:13}"),
    ("\"password\" : \"{0}\" ,", "{alnum:6} {alnum:6}"),
    ("passwd\t{0}\tactive", "{alnum:12}"),
    ("PASSWORD='{0}' ./deploy.sh", "{sign:16}"),
    ("key_pass={0}", "{lower:14}"),
    ("jdbc.password = {0}", "{lower:12}"),
)  # fmt: skip


def key_value(random: Random) -> Document:
    """A value behind a name, in files and code of other kinds."""
    template, alphabet = random.choice(PAIRS)
    value = fill(alphabet, random)
    text = template.format(value)
    if random.random() < 0.3:
        text = json.dumps({"stdout": text, "code": 0})
    return Document("key_value", text, (value,))


HEADERS = (
    ("authorization", "Bearer {url:43}"), ("Authorization", "Basic {base64:32}"), ("X-Auth-Key", "{hex:37}"),
    ("x-api-key", "{alnum:40}"), ("Cookie", "auth={url:50}; lang=en"), ("X-Gitlab-Token", "{url:20}"),
    ("X-Shopify-Access-Token", "{hex:32}"), ("CF-Access-Client-Secret", "{hex:64}"),
    ("X-Figma-Token", "{alnum:30}"), ("apikey", "{alnum:32}"), ("X-Amz-Security-Token", "{base64:200}"),
    ("Authorization", "Token token={hex:20}"), ("Authorization", "GenieKey {uuid:1}"),
    ("X-Session-Token", "{alnum:32}"), ("Set-Cookie", "JSESSIONID={hex:32}; HttpOnly"),
)  # fmt: skip


def header(random: Random) -> Document:
    """A header as clients and servers print it."""
    name, template = random.choice(HEADERS)
    value = fill(template, random)
    secret = (
        value.split("; ")[0].split(" ")[-1].split("=", 1)[-1]
        if "=" in value
        else value.split(" ")[-1]
    )
    texts = (
        f"Request headers: {{{name}=[{value}], Accept=[*/*]}}",
        f'req.Header.Set("{name}", "{value}")',
        f"-H '{name}: {value}' \\\n  -d '{{}}'",
        f"h2 [{name}: {value}]",
        json.dumps({"headers": [{"name": name, "value": value}]}),
        f"{{{name!r}: {value!r}, 'Accept': '*/*'}}",
        f'proxy_set_header {name} "{value}";',
        f"<b>{name}:</b> {html.escape(value)}<br>",
    )
    return Document("header", random.choice(texts), (secret,))


ADDRESSES = (
    ("cockroachdb://root:{0}@crdb:26257/defaultdb", "{alnum:16}"),
    ("mongodb://u1:{0}@h1:27017,h2:27017/admin?replicaSet=rs", "{sign:12}"),
    ("https://oauth2:{0}@gitlab.example.org/a/b", "{alnum:20}"),
    ("git+https://anna:{0}@example.org/x.git", "{alnum:20}"),
    ("smb://EXAMPLE;anna:{0}@files/share", "{alnum:10}"),
    ("Data Source=db;Initial Catalog=x;User ID=a;Password={0}", "{alnum:14}"),
    ("mssql+pyodbc://sa:{0}@db/x?driver=ODBC", "{sign:12}"),
    ("redis+sentinel://:{0}@s1:26379/mymaster", "{alnum:24}"),
    ("wss://anna:{0}@chat.example.org/ws", "{alnum:14}"),
    ("elasticsearch: https://elastic:{0}@es:9200", "{alnum:20}"),
    ("nats://tok:{0}@nats:4222", "{alnum:22}"),
    ("ldaps://cn=x:{0}@dc.example.org:636", "{alnum:10}"),
)  # fmt: skip


def address(random: Random) -> Document:
    """A connection address of another kind."""
    template, alphabet = random.choice(ADDRESSES)
    value = fill(alphabet, random)
    url = template.format(value)
    texts = (
        f"({url})",
        f"url: '{url}'",
        f"dial {url}: i/o timeout",
        json.dumps([url, 1]),
        f"[db]({url})",
        f"a\n{url}\nb",
        f"{url},",
    )
    return Document("address", random.choice(texts), (value,))


def wrapped(random: Random) -> Document:
    """Encodings of secrets as other systems make them."""
    secret = fill(random.choice(TOKENS[:30]), random)
    inner = random.choice(
        (
            secret,
            f"token={secret}",
            f'{{"secret":"{secret}"}}',
            f"https://x:{secret}@h/a",
        )
    ).encode()
    encoded = random.choice((
        base64.b64encode(inner).decode(),
        base64.encodebytes(inner).decode().strip(),
        base64.b64encode(base64.b64encode(inner)).decode(),
        base64.urlsafe_b64encode(b"x" + inner).decode(),
        inner.hex(), "0x" + inner.hex(),
        quote("".join(f"%{byte:02X}" for byte in inner), safe=""),
    ))  # fmt: skip
    texts = (
        f"data:\n  value: {encoded}\n",
        f"blob={encoded}",
        f"({encoded})",
        json.dumps({"raw": encoded}),
        f"decode('{encoded}')",
    )
    shown = encoded if "\n" not in encoded else max(encoded.split("\n"), key=len)
    # Of what is escaped sign by sign, the name before a secret is none.
    core = quote("".join(f"%{byte:02X}" for byte in secret.encode()), safe="")
    shown = core if core in encoded else shown
    return Document(
        "wrapped",
        random.choice(texts),
        (shown,),
        frame=(encoded,),
        leak_from=24 if "%" in encoded else 8,
    )


def truncated(random: Random) -> Document:
    """A token that the end of the text, or dots, cut off."""
    template = random.choice([t for t in TOKENS if t.index("{") > 3])
    head = template[: template.index("{")]
    secret = fill(template, random)
    kept = secret[: len(head) + random.randint(6, 16)]
    text = random.choice(("", "x ", '[{"a": "b", "c": "', "auth: ", "`")) + kept
    return Document(
        "truncated",
        text + random.choice(("", "", "…", "...")),
        (kept[len(head) :],),
        frame=(kept,),
    )


def spoken(random: Random) -> Document:
    """Sentences about a secret."""
    value = fill(
        random.choice(
            (
                "{letter:4}{digit:4}",
                "{alnum:11}",
                "{letter:5}-{digit:3}-{letter:5}",
                "{sign:10}7a",
            )
        ),
        random,
    )
    texts = (
        f"Hi! The new password: {value} (valid until Friday)",
        f"For the VPN, the passphrase is now {value}.",
        f"try {value} as your password",
        f"the admin password has been reset to {value}",
        f"he gave me the password {value!r} over the phone",
        f"my old API key, {value}, no longer works",
        f"sign in with anna@example.org / password {value}",
        f"the wifi password of the office is “{value}”",
        f"Das Passwort lautet {value}.",
        f"password = {value}, user = anna",
        f"The access token you need is {value}",
        f"the secret you asked for is: {value}",
    )
    return Document("prose", random.choice(texts), (value,))


BOLD = {
    first + place: chr(bold + place)
    for first, bold, count in ((65, 0x1D5D4, 26), (97, 0x1D5EE, 26), (48, 0x1D7EC, 10))
    for place in range(count)
}
GREEK = str.maketrans("aoivkpABEHIKMNOPTXYZ", "αοινκρΑΒΕΗΙΚΜΝΟΡΤΧΥΖ")


def disguised(random: Random) -> Document:
    """Tokens in bold mathematical letters, Greek ones, with marks and invisible signs."""
    secret = fill(random.choice(TOKENS[:40]), random)
    worn = random.choice((
        secret.translate(BOLD), secret.translate(GREEK),
        "\u2063".join(secret), "\u0301".join(secret), "\u180e".join(secret), "\ufe0f".join(secret),
        "".join(f"\\u{ord(c):04x}" for c in secret), "".join(f"&#x{ord(c):x};" for c in secret),
    ))  # fmt: skip
    return Document(
        "disguised",
        random.choice((f"got {worn} here", f"«{worn}»")),
        (worn,),
        leak_from=24,
    )


PEM_FRAMES = (
    "-----BEGIN PGP PRIVATE KEY BLOCK-----", "-----END PGP PRIVATE KEY BLOCK-----", "=ab1c",
    "Proc-Type: 4,ENCRYPTED", "DEK-Info: AES-128-CBC,00",
)  # fmt: skip


def pem(random: Random) -> Document:
    """Private keys of other makers and shapes."""
    lines = [fill("{base64:64}", random) for _ in range(random.randint(3, 9))]
    kind = random.choice(("", "RSA ", "EC ", "OPENSSH ", "SSH2 ENCRYPTED "))
    begin, end = (
        f"-----BEGIN {kind}PRIVATE KEY-----",
        f"-----END {kind}PRIVATE KEY-----",
    )
    shapes = (
        "\n".join(
            (
                "-----BEGIN PGP PRIVATE KEY BLOCK-----",
                "",
                *lines,
                "=ab1c",
                "-----END PGP PRIVATE KEY BLOCK-----",
            )
        ),
        "\n".join(f"> {line}" for line in (begin, *lines, end)),
        "".join(f'"{line}\\n"\n' for line in (begin, *lines, end)),
        "\n".join(
            (
                begin,
                "Proc-Type: 4,ENCRYPTED",
                "DEK-Info: AES-128-CBC,00",
                "",
                *lines,
                end,
            )
        ),
        begin + "".join(lines) + end,
        "\n".join(f"2026-11-21 10:00:0{n} | {line}" for n, line in enumerate((begin, *lines, end))),
        begin + "\\r\\n" + "\\r\\n".join(lines),
    )
    return Document(
        "pem",
        random.choice(shapes),
        tuple(lines[:-1]),
        frame=(*PEM_FRAMES, begin, end, *lines),
        leak_from=12,
    )


def card(random: Random) -> Document:
    """Card numbers where shops and banks write them."""
    digits = random.choice(("4", "52", "54", "2720", "6011", "65", "3589"))
    digits += fill(f"{{digit:{15 - len(digits)}}}", random)
    digits += luhn(digits)
    grouped = random.choice(
        (
            digits,
            "-".join(digits[at : at + 4] for at in range(0, 16, 4)),
            "\u00a0".join(digits[at : at + 4] for at in range(0, 16, 4)),
        )
    )
    texts = (
        f"Visa:{grouped}",
        f"<pan>{grouped}</pan>",
        f"'{grouped}'",
        f"{grouped}\n12/29 123",
        f"cc={grouped};",
        f"({grouped})",
    )
    return Document("card", random.choice(texts), (grouped,))


def known_value(random: Random) -> Document:
    """Registered values glued to other text, twice, across lines, and in pairs."""
    value = fill(random.choice(("{alnum:16}", "{sign:20}", "{lower:9}")), random)
    raw = value.encode()
    forms = (
        value, f"x{value}x", json.dumps(json.dumps([value]))[2:-2], base64.b64encode(b"anna:" + raw + b"!!").decode(),
        quote(quote(value, safe=""), safe=""), raw.hex().upper(), repr(raw), html.escape(value), "\u200b".join(value),
    )  # fmt: skip
    form = random.choice(forms)
    return Document(
        "known",
        f"a {form}{form} b",
        (form.strip("'\"b\\") if len(form) < 40 else form[8:-8],),
        known=(value,),
        leak_from=8,
    )


NEGATIVES = (
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{base64:43} anna@host",
    "docker pull ghcr.io/example/app:sha-{hex:7}",
    "+++ b/src/auth/token_store.py", "index {hex:7}..{hex:7} 100644",
    "python-{digit:1}.{digit:2}.{digit:1}-cp311-manylinux_2_28_x86_64.whl",
    "assert response.status_code == 401  # token expired",
    "class PasswordResetForm(forms.Form): pass", "from app.secrets import get_secret",
    "The secretary kept the key under the mat.", "Passwords are hashed with argon2id.",
    "token = next(tokens)", "for token in tokens: count += 1", "self.api_key = api_key",
    "api_key: Optional[str] = None", "password: SecretStr", "const { password } = req.body",
    "if (!token) return res.status(401)", "password=password, user=user",
    "access_token = response.json()['access_token']", "credentials = Credentials.from_file(path)",
    "--password-stdin", "read -s PASSWORD", "echo $GITHUB_TOKEN", "Bearer {{token}}",
    "secrets.GITHUB_TOKEN", "${{{{ secrets.API_KEY }}}}", "token_budget: 4000 tokens",
    "max_output_tokens=1024 temperature=0.2", "The model used 1,204 tokens.",
    "tokens/s: 48.2", "s3://bucket/path/to/key/part-00000.parquet",
    "kid: {hex:8}", "CVE-2024-{digit:5}", "ISBN 978-3-16-148410-0", "E = mc2 (1905)",
    "tel:+4930{digit:7}", "lat=52.520008&lon=13.404954", "{digit:13}", "0x{hex:8}",
    "v{digit:1}.{digit:2}.{digit:1}-beta.{digit:1}", "blob:{uuid:1}", "urn:uuid:{uuid:1}",
    "Cookie banner dismissed", "Set-Cookie header is missing", "basic auth, digest auth, no auth",
    "authorization_endpoint: https://idp.example.org/authorize", "Sign in with a passkey",
    "x-ratelimit-remaining-tokens: 149984", "sess = Session()", "pin the version to 1.4.2",
    "pat the dog", "sid the sloth", "salt and pepper, seed the garden", "key findings: 3 of 5",
    "The keynote is at 10:30", "Key: Am, tempo: 120", "turnkey solution", "webhooks are enabled",
    "postgres://localhost:5432/app", "redis://cache:6379/0", "amqp://mq:5672//",
    "https://example.org/@anna/status/{digit:18}", "git@example.org:a/b.git", "ftp://files.example.org",
    "a:b@c", "time 10:20@home", "user:pass syntax is deprecated", "{hex:64}  dist/app.tar.gz",
    "GOPATH=/root/go PATH=/usr/bin", "LANG=en_US.UTF-8", "#{hex:6}", "span-{hex:16}",
    "AKIA...", "sk-...", "ghp_...", "hf_...", "eyJ...", "xoxb-...", "sk-ant-api03-...",
    "YOUR_API_KEY", "<API_KEY>", "insert-your-token-here", "api_key=XXXXXXXX", "password=*****",
    "password: changeme", "password: <redacted>", "token: [hidden]", "secret: n/a", "pwd=$(cat pw)",
)  # fmt: skip

MAKERS: tuple[tuple[Callable[[Random], Document], int], ...] = (
    (provider_token, 120), (pem, 24), (header, 40), (address, 40), (key_value, 60),
    (wrapped, 30), (truncated, 32), (spoken, 24), (disguised, 24), (card, 20), (known_value, 24),
)  # fmt: skip


def make_corpus(seed: int) -> tuple[list[Document], list[Document]]:
    """Give 438 positive and 127 negative documents."""
    random = Random(f"two{seed}")
    positive = [make(random) for make, count in MAKERS for _ in range(count)]
    negative = [fill(random.choice(NEGATIVES), random) for _ in range(NEGATIVE)]
    return positive, [Document("negative", text) for text in negative]
