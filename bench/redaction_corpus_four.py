"""A fourth, small set: 60 documents written when the rules stood, and not tuned to.

Other formats than the three before: what tools print on a terminal, notes between people,
settings of build systems, all around secrets whose shapes the rules were given before.
"""

# ruff: noqa: E501, S311 - templates on one line, seeded chance
import base64
from random import Random

from bench.redaction_corpus import Document, fill

# category, text with a hole, what fills it
WRITTEN: tuple[tuple[str, str, str], ...] = (
    ("token", "Pushed tag 1.4 with token § to origin", "ghp_{alnum:36}"),
    ("token", "W 10:02:11 sdk: key=§ quota exceeded", "sk-proj-{url:120}"),
    ("token", "anthropic.AuthenticationError: invalid x-api-key (§)", "sk-ant-api03-{url:93}AA"),
    ("token", "agent said: 'I will use § for the search tool'", "tvly-dev-{alnum:32}"),
    ("token", "remote: fatal: bad credential '§'", "glpat-{url:20}"),
    ("token", "{\"embeds\":[{\"title\":\"leak\",\"description\":\"||§||\"}]}", "xoxb-{digit:12}-{digit:12}-{alnum:24}"),
    ("token", "rotate § before Monday!!!", "AKIA{base32:16}"),
    ("token", "§ <- paste this into Postman", "PMAK-{hex:24}-{hex:34}"),
    ("token", "set -x\n+ login §\nLogin Succeeded", "dckr_pat_{url:27}"),
    ("token", "[cell 4] os.environ['HF'] = '§'", "hf_{letter:34}"),
    ("token", "ci: masked? no: §", "npm_{alnum:36}"),
    ("token", "trace: attr.thing=§;dur=12ms", "SG.{url:22}.{url:43}"),
    ("header", "> authorization: Bearer §\n< HTTP/1.1 403 Forbidden", "{url:48}"),
    ("header", "x-api-key=§ accept=*/*", "{alnum:40}"),
    ("header", "Cookie: cf_clearance=§; lang=de", "{url:60}"),
    ("header", "hdr[\"Authorization\"] = \"Basic §\"", "{base64:32}"),
    ("header", ".header(\"X-Auth-Token\", \"§\")", "{hex:40}"),
    ("header", "grpc-metadata-authorization: Bearer §", "{alnum:44}"),
    ("address", "Using broker amqp://app:§@mq.internal:5672/prod", "{alnum:18}"),
    ("address", "SQLALCHEMY_DATABASE_URI = 'postgresql://u:§@db/x'", "{alnum:16}"),
    ("address", "cloning https://bot:§@git.example.org/a.git ...", "{alnum:20}"),
    ("address", "Server=db;Uid=sa;Pwd=§;Database=x", "{alnum:14}"),
    ("address", "-e REDIS_URL=redis://:§@cache:6379/2", "{alnum:24}"),
    ("address", "GET /cb?access_token=§&state=x HTTP/1.1", "{url:48}"),
    ("key_value", "gradle: signing.password=§", "{alnum:14}"),
    ("key_value", "<server><id>r</id><password>§</password></server>", "{alnum:14}"),
    ("key_value", "-----\ndb_password  = \"§\"\ndb_user = \"app\"", "{alnum:16}"),
    ("key_value", "\"clientSecret\" : \"§\",", "{url:40}"),
    ("key_value", "config.secret_key_base = \"§\"", "{hex:64}"),
    ("key_value", "ansible_become_password: §", "{alnum:14}"),
    ("key_value", "auth_token => §", "{alnum:32}"),
    ("key_value", "&api_key=§&format=json", "{alnum:32}"),
    ("key_value", "STRIPE_WEBHOOK_SECRET: '§'", "{alnum:32}"),
    ("key_value", "| API token | §  |", "{alnum:40}"),
    ("prose", "the vpn password is § until Friday", "{alnum:12}"),
    ("prose", "Bonjour, le mot de passe : §", "{alnum:12}"),
    ("prose", "Hallo, das Kennwort lautet § (bitte ändern)", "{alnum:12}"),
    ("prose", "ログインのパスワードは§です。", "{alnum:12}"),
    ("prose", "password -> §", "{alnum:12}"),
    ("prose", "use § as the API key", "{alnum:32}"),
    ("card", "Card ending? full: §", "4539578763621486"),
    ("card", "paid (§) yesterday", "5500 0055 5555 5559"),
)  # fmt: skip
PLAIN = (
    "request_id={uuid:1} took 12 ms", "sha512-{base64:86}==", "commit {hex:40}", "model=gpt-4o tokens=812",
    "password must not be empty", "api_key: ${API_KEY}", "Authorization: Bearer <token>", "export TOKEN=$(cat token)",
    "secret_name = \"web\"", "the key is under the mat", "token bucket: 10/s", "digest: sha256:{hex:64}",
)  # fmt: skip


def make_corpus(seed: int) -> tuple[list[Document], list[Document]]:
    """Give 48 positive and 12 negative documents."""
    random = Random(f"four{seed}")
    positive = []
    for category, text, template in WRITTEN:
        secret = fill(template, random)
        positive.append(Document(category, text.replace("§", secret), (secret,)))
    for template in ("ghp_{alnum:36}", "sk-proj-{url:60}", "xai-{alnum:80}"):
        secret = fill(template, random)
        cut = secret[:20]
        wrapped = base64.b64encode(f"key={secret}".encode()).decode()
        positive.append(Document("truncated", f"got {cut}", (cut[8:],), frame=(cut,)))
        positive.append(Document("wrapped", f"blob {wrapped}", (wrapped,)))
    return positive, [Document("negative", fill(text, random)) for text in PLAIN]
