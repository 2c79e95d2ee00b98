"""An instant provider on loopback: one process, OpenAI's wire format, always the same plan.

    python -m bench.call_server          prints its port, answers until it is ended

To a request with tools it answers a call of the first one, to any other a text: each client gets
its answer in the way it asks for.
"""

import json
import re
import socket
import sys
import threading

PLAN = {
    "steps": [
        {
            "step_id": f"step_{number}",
            "title": f"Step {number}",
            "dependencies": [f"step_{number - 1}"] if number > 1 else [],
            "tool": {"name": "echo", "args": {"text": f"word {number}"}},
        }
        for number in range(1, 4)
    ]
}
LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
TOOL = re.compile(rb'"name": ?"([^"]+)"')
USAGE = {"prompt_tokens": 400, "completion_tokens": 90, "total_tokens": 490}


def answer_to(body: bytes) -> bytes:
    """The HTTP answer to a request's body."""
    message: dict[str, object] = {"role": "assistant", "content": json.dumps(PLAN)}
    reason = "stop"
    tool = TOOL.search(body.partition(b'"tools"')[2])
    if tool:
        function = {"name": tool[1].decode(), "arguments": json.dumps(PLAN)}
        call = {"id": "call_1", "type": "function", "function": function}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        reason = "tool_calls"
    envelope = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "instant",
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": USAGE,
    }
    body = json.dumps(envelope).encode()
    head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
    return head.encode() + b"\r\n" + body


def serve(connection: socket.socket) -> None:
    """Answer one connection until it is closed."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    held = b""
    with connection:
        while True:
            while b"\r\n\r\n" not in held:
                more = connection.recv(65_536)
                if not more:
                    return
                held += more
            head, _, body = held.partition(b"\r\n\r\n")
            found = LENGTH.search(head)
            length = int(found[1]) if found else 0
            while len(body) < length:
                body += connection.recv(65_536)
            connection.sendall(answer_to(body[:length]))
            held = body[length:]


def main() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    sys.stdout.write(f"{listener.getsockname()[1]}\n")
    sys.stdout.flush()
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=serve, args=[connection], daemon=True).start()


if __name__ == "__main__":
    main()
