"""What redaction finds, leaves and costs.

    python -m bench.redact [--quick | --ratios] [--seeds 1 2 2026-11-25]

Recall by category and the share of benign text that is kept, over eight sets of made-up documents
(bench/redaction/five.toml ... eleven.toml); CPU time of a clean KB, of one with a secret, of
hostile 64 KiB, and by length, with the growth exponent. `--ratios` prints costs alone, as multiples
of those of clean texts.
"""

# ruff: noqa: S311 - seeded chance
import argparse
import statistics
import time
import tomllib
from collections.abc import Mapping, Sequence
from functools import partial
from random import Random

from bench.database import say
from bench.growth import exponent, seconds_of, timed
from bench.redaction.documents import Document, kept_share, recall
from bench.redaction.sets import first_run, make_set
from bench.redaction.templates import FOLDER, WORDS, fill
from failsoft.redaction import Redactor
from failsoft.redaction.rules import load_rule_set

HOSTILE_CHARACTERS = 65_536
SETS = ("five", "six", "seven", "eight", "nine", "ten_tuned", "ten", "eleven")
COSTS: dict[str, list[str]] = tomllib.loads((FOLDER / "costs.toml").read_text(encoding="utf-8"))


def clean_text(characters: int) -> str:
    """Plain text of that length without anything to mask."""
    random = Random(characters)
    text = " ".join(random.choice(WORDS["prose"][:5]) for _ in range(characters // 30 + 1))
    return text.encode("ascii", "ignore").decode()[:characters]


def make_redactor() -> Redactor:
    """The redactor as a process has it: shipped rules, a few known values."""
    random = Random(8)
    values = [fill("{alnum:24}", random) for _ in range(6)]
    return Redactor(load_rule_set(), dict.fromkeys(values, "known"), is_lasting=True)


def print_costs(redactor: Redactor, rounds: int) -> None:
    """CPU of short texts, of hostile ones, and how it grows with the length."""
    clean = clean_text(1024)
    token = fill("sk-ant-api03-{url:60}", Random(1))
    pair = fill('{"password": "{alnum:16}"}', Random(1))
    for name, text, goal in (
        ("clean KB", clean, 5),
        ("KB with a token", clean[:480] + f" {token} " + clean[:470], 25),
        ("KB with a password", clean[:490] + f" {pair} " + clean[:490], 25),
    ):
        cost = seconds_of(partial(redactor.redact, text), rounds, 200)
        say(f"{name:24} {cost * 1e6:8.1f} us   goal {goal}")
    print_growth(redactor, rounds)
    worst = max(
        (seconds_of(partial(redactor.redact, text), 3), unit)
        for unit in COSTS["hostile"]
        for text in [(unit * HOSTILE_CHARACTERS)[:HOSTILE_CHARACTERS]]
    )
    say(f"{'worst hostile 64 KiB':24} {worst[0] * 1e3:8.1f} ms   goal 100  {worst[1]!r}")


def print_ratios(redactor: Redactor, rounds: int) -> None:
    """CPU of hostile texts and of a KB with a secret as multiples of clean ones, interleaved."""
    hostile = {unit: (unit * HOSTILE_CHARACTERS)[:HOSTILE_CHARACTERS] for unit in COSTS["hostile"]}
    shares = ratios_to(redactor, clean_text(HOSTILE_CHARACTERS), hostile, rounds, 1)
    say(f"{'hostile / clean 64 KiB':24} goal 30")
    for unit, share in sorted(shares.items(), key=lambda pair: -pair[1])[:10]:
        say(f"{share:10.0f}x  {unit!r}")
    clean, random = clean_text(1024), Random(1)
    secrets = {
        template: f"{clean[:480]} {fill(template, random)} {clean[480:960]}"
        for template in COSTS["one_secret"]
    }
    shares = ratios_to(redactor, clean, secrets, 3 * rounds, 50)
    say(f"{'KB with a secret / clean':24} goal 6")
    for template, share in shares.items():
        say(f"{share:10.1f}x  {template}")


def ratios_to(
    redactor: Redactor, clean: str, others: Mapping[str, str], rounds: int, batch: int
) -> dict[str, float]:
    """Median CPU of each text as a multiple of the clean one's; each round takes all in turn."""
    texts = {"": clean, **others}
    taken: dict[str, list[float]] = {name: [] for name in texts}
    for _ in range(rounds):
        for name, text in texts.items():
            repeats = batch if name else max(batch, 20)
            taken[name].append(timed(partial(redactor.redact, text), batch=repeats))
    middle = {name: statistics.median(seconds) for name, seconds in taken.items()}
    return {name: middle[name] / middle[""] for name in others}


def print_growth(redactor: Redactor, rounds: int) -> None:
    """CPU of clean texts of 2, 20 and 200 KB and the exponent."""
    sizes = (2_000, 20_000, 200_000)
    costs = []
    for size in sizes:
        text = clean_text(size)
        costs.append(seconds_of(partial(redactor.redact, text), rounds, 10))
    shown = ", ".join(
        f"{size // 1000} KB {cost * 1e6:.1f} us" for size, cost in zip(sizes, costs, strict=True)
    )
    say(f"{'growth, clean':24} {shown}; exponent {exponent(sizes, costs):.2f}")


def redact_ours(documents: Sequence[Document]) -> tuple[list[str], float]:
    """Our results, and the CPU seconds of documents without known values of their own."""
    plain = make_redactor()
    rules = load_rule_set()
    for document in documents:
        plain.redact(document.text)
    outs = []
    begun = time.process_time()
    for document in documents:
        redactor = plain
        if document.known:
            redactor = Redactor(rules, dict.fromkeys(document.known, "known"))
        outs.append(redactor.redact(document.text, document.limit).text)
    return outs, time.process_time() - begun


def print_recall(name: str, seeds: Sequence[int]) -> None:
    """One table: recall by category, negatives untouched, benign text kept, CPU a document."""
    made = [make_set(name, seed) for seed in seeds]
    positive = [document for found, _ in made for document in found]
    negative = [document for _, others in made for document in others]
    outs, seconds = redact_ours([*positive, *negative])
    say(f"\nset {name}: {len(positive)} positive, {len(negative)} negative documents")
    counts = recall(positive, outs[: len(positive)])
    for category, (good, all_of) in counts.items():
        say(f"{category:28}{good / all_of:16.3f}")
    first = first_run(name)
    for kind in ("provider", "key_value"):
        good, all_of = _of_kind(kind, counts)
        if all_of:
            beside = f"   first run {first[kind]:.3f}" if kind in first else ""
            say(f"{kind + ' in all':28}{good / all_of:16.3f}{beside}")
    say(f"{'negatives untouched':28}{untouched(negative, outs[len(positive) :]):16.3f}")
    say(f"{'benign text kept':28}{kept(positive, outs[: len(positive)]):16.3f}")
    say(f"{'us a document':28}{seconds / len(outs) * 1e6:16.1f}")


def _of_kind(kind: str, counts: Mapping[str, tuple[int, int]]) -> tuple[int, int]:
    """Add up the categories of a kind."""
    of_kind = [pair for category, pair in counts.items() if category.split(",")[0] == kind]
    return sum(good for good, _ in of_kind), sum(all_of for _, all_of in of_kind)


def seed_of(text: str) -> int:
    """Return a seed from a number or from a day: 2026-11-25 is 20261125."""
    return int(text.replace("-", ""))


def untouched(documents: Sequence[Document], outs: Sequence[str]) -> float:
    """The share of texts that came back to the letter."""
    return statistics.mean(
        document.text == out for document, out in zip(documents, outs, strict=True)
    )


def kept(documents: Sequence[Document], outs: Sequence[str]) -> float:
    """The share of benign characters around secrets that is left."""
    pairs = [kept_share(document, out) for document, out in zip(documents, outs, strict=True)]
    return sum(left for _, left in pairs) / sum(total for total, _ in pairs)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seeds", type=seed_of, nargs="+", default=[2026])
    parser.add_argument("--ratios", action="store_true")
    options = parser.parse_args()
    if options.ratios:
        print_ratios(make_redactor(), 5)
        return
    print_costs(make_redactor(), 3 if options.quick else 15)
    for name in SETS[:1] if options.quick else SETS:
        print_recall(name, options.seeds)


if __name__ == "__main__":
    main()
