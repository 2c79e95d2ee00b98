"""HTTP to an MCP server: only where tools may connect to, and answers of bounded size."""

from collections.abc import AsyncIterator

import anyio.to_thread
import httpx2

from diagnostics.outbound.addresses import choose_target

MAX_ANSWER_BYTES = 4 * 1024 * 1024


class AnswerTooLargeError(httpx2.ReadError):
    """The server's answer is larger than 4 MiB."""


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Looks at the address of every request, and connects to the one it looked at (S17)."""

    def __init__(self, *, allow_private: bool) -> None:
        self._allow_private = allow_private
        self._inner = httpx2.AsyncHTTPTransport(trust_env=False)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send the request to the pinned address under its own name."""
        response = await self._inner.handle_async_request(await self._pin(request))
        assert isinstance(response.stream, httpx2.AsyncByteStream)  # noqa: S101 - an async transport's
        response.stream = _Bounded(response.stream)
        return response

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()

    async def _pin(self, request: httpx2.Request) -> httpx2.Request:
        target = await anyio.to_thread.run_sync(
            lambda: choose_target(str(request.url), allow_private=self._allow_private)
        )
        headers = httpx2.Headers(request.headers)
        headers["Host"] = target.authority
        return httpx2.Request(
            request.method,
            request.url.copy_with(host=str(target.address), port=target.port),
            headers=headers,
            stream=request.stream,
            # Certificates are checked against the name, not the address.
            extensions={**request.extensions, "sni_hostname": target.host},
        )


class _Bounded(httpx2.AsyncByteStream):
    def __init__(self, inner: httpx2.AsyncByteStream) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._inner:
            size += len(chunk)
            if size > MAX_ANSWER_BYTES:
                raise AnswerTooLargeError(f"more than {MAX_ANSWER_BYTES} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()
