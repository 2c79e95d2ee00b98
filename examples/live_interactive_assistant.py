"""An assistant for the terminal: a goal a line, planned with retries, until an empty line.

    python3 examples/live_interactive_assistant.py

`/retries 3`, `/feedback off`, `/simplify off` and `/stub on` set the retry policy of the goals that
follow; `/policy` shows it. What a person has not set is the installation's.
"""

import sys
from collections.abc import Iterator

from failsoft_client import Client, Record, RefusedError, describe_attempts, open_client

SWITCHES = {
    "/feedback": "send_error_feedback",
    "/simplify": "simplify_on_final_attempt",
    "/stub": "use_stub_fallback",
}


def say(text: object) -> None:
    """Write a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def ask(prompt: str) -> str:
    """Read a line; empty at the end of the input."""
    sys.stdout.write(prompt)
    sys.stdout.flush()
    return sys.stdin.readline().strip()


def read_lines() -> Iterator[str]:
    """Lines until an empty one."""
    while line := ask("goal> "):
        yield line


def set_policy(retry: Record, line: str) -> str:
    """Carry out a command; give what is to be told."""
    name, _, value = line.partition(" ")
    if name == "/retries" and value.isdecimal():
        retry["max_retries"] = int(value)
    elif name in SWITCHES and value in ("on", "off"):
        retry[SWITCHES[name]] = value == "on"
    elif name != "/policy":
        return "commands: /retries N, /feedback on|off, /simplify on|off, /stub on|off, /policy"
    return f"retry policy: {retry or 'that of the installation'}"


def work(client: Client, goal_text: str, retry: Record) -> None:
    """Work on one goal to its end, asking the person what only a person knows."""
    goal = client.submit({"goal": goal_text, "mode": "next_step", "retry": retry})
    record = client.wait(goal)
    while record["status"] == "waiting_user":
        answer = ask(f"{record['next_user_question']}\nanswer> ")
        client.answer(goal, {"text": answer or "no answer"})
        record = client.wait(goal)
    for line in describe_attempts(record):
        say(f"  {line}")
    say(record["user_text"])
    for line in record["help"]:  # type: ignore[attr-defined] # JSON
        say(f"  {line}")


def main() -> int:
    """Talk until an empty line or the end of the input."""
    client, retry = open_client(), Record()
    for line in read_lines():
        if line.startswith("/"):
            say(set_policy(retry, line))
            continue
        try:
            work(client, line, retry)
        except RefusedError as error:
            say(f"refused: {error}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
