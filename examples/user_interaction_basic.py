"""One goal with a retry policy of its own, and the answer to its question, if it asks one.

    python3 examples/user_interaction_basic.py "Echo the word hello"
    python3 examples/user_interaction_basic.py --max-retries 3 --stub "Greet Ada by name"

Without options the installation's policy holds: see `manage.py show_retry`.
"""

import argparse
import sys

from failsoft_client import Client, Record, RefusedError, describe_attempts, open_client


def read_options() -> argparse.Namespace:
    """The goal, and the four options of the retry policy."""
    parser = argparse.ArgumentParser(description="submit one goal and wait for its end")
    parser.add_argument("goal")
    parser.add_argument("--mode", default="plan", choices=("plan", "next_step"))
    parser.add_argument("--max-retries", type=int, help="calls in total, 1 to 5")
    parser.add_argument("--no-feedback", action="store_true")
    parser.add_argument("--no-simplify", action="store_true")
    parser.add_argument("--stub", action="store_true", help="run a stub plan if need be")
    return parser.parse_args()


def make_retry(options: argparse.Namespace) -> Record:
    """Only what was said; the rest is the installation's."""
    retry: Record = {}
    if options.max_retries is not None:
        retry["max_retries"] = options.max_retries
    if options.no_feedback:
        retry["send_error_feedback"] = False
    if options.no_simplify:
        retry["simplify_on_final_attempt"] = False
    if options.stub:
        retry["use_stub_fallback"] = True
    return retry


def work(client: Client, options: argparse.Namespace) -> Record:
    """Submit, and answer questions until the goal has ended."""
    order = {"goal": options.goal, "mode": options.mode, "retry": make_retry(options)}
    goal = client.submit(order)
    record = client.wait(goal)
    while record["status"] == "waiting_user":
        sys.stdout.write(f"{record['next_user_question']}\n> ")
        sys.stdout.flush()
        client.answer(goal, {"text": sys.stdin.readline().strip() or "no answer"})
        record = client.wait(goal)
    return record


def main() -> int:
    """Run one goal; 0 when it was completed."""
    try:
        record = work(open_client(), read_options())
    except RefusedError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    lines = [f"retry policy: {record['retry']}", *describe_attempts(record)]
    lines += [f"{record['status']} ({record['outcome']}): {record['user_text']}"]
    lines += [str(line) for line in record["help"]]  # type: ignore[attr-defined] # JSON
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return 0 if record["status"] == "completed" else 1


if __name__ == "__main__":
    sys.exit(main())
