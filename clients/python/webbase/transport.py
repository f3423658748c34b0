"""Requests and answers: connections, timeouts, tokens, and which requests are sent again.

A request that only reads is sent again after a lost connection, 429 and 503, with pauses (those that the server asks
for in Retry-After), until nothing has worked for `patience` seconds. Others are sent once: nobody knows whether a
request whose answer was lost has changed something.
"""

import email.utils
import http.client
import json
import random
import ssl
import time
import urllib.parse
import zlib
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple

from .errors import ApiError, ConnectionLost, Unavailable, WebBaseError, error_for

PIECE = 1 << 16
LINE_MAX = 1 << 29
ERROR_MAX = 1 << 16
PAUSE_MIN, PAUSE_MAX = 0.1, 10.0

# What a connection can fail with; ValueError is what http.client raises when it was closed meanwhile.
LOST = (OSError, http.client.HTTPException)

Parameters = Mapping[str, Any]


def encode(parameters: Parameters) -> str:
    """As a query. None: left out; True and False: 1 and 0; a list: repeated."""
    pairs: List[Tuple[str, str]] = []
    for name, value in parameters.items():
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if one is not None:
                pairs.append((name, str(int(one)) if isinstance(one, bool) else str(one)))
    return urllib.parse.urlencode(pairs)


class Answer:
    """An answer whose body was not read yet. Close it, or use it with `with`."""

    def __init__(self, connection: http.client.HTTPConnection, response: http.client.HTTPResponse):
        self._connection, self._response = connection, response
        self.status = response.status

    def __enter__(self) -> "Answer":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    def header(self, name: str) -> Optional[str]:
        return self._response.getheader(name)

    def headers(self) -> Dict[str, str]:
        return dict(self._response.getheaders())

    def pieces(self) -> Iterator[bytes]:
        """The body. Raises ConnectionLost if it ends before its end."""
        inflater = zlib.decompressobj(31) if self.header("Content-Encoding") == "gzip" else None
        try:
            while True:
                piece = self._response.read1(PIECE)
                if not piece:
                    break
                yield inflater.decompress(piece) if inflater else piece
        except (*LOST, ValueError, zlib.error) as error:
            raise ConnectionLost("the answer was cut short: %s" % (error or type(error).__name__)) from error
        if not self._response.chunked and self._response.length:
            raise ConnectionLost("the answer was cut short: %d bytes are missing" % self._response.length)

    def lines(self) -> Iterator[bytes]:
        """The lines of the body, without their ends, as they arrive."""
        rest: List[bytes] = []
        size = 0
        for piece in self.pieces():
            first, *more = piece.split(b"\n")
            rest.append(first)
            size += len(first)
            if size > LINE_MAX:
                raise WebBaseError("a line of the answer is longer than %d bytes" % LINE_MAX)
            if more:
                yield b"".join(rest)
                yield from more[:-1]
                rest, size = [more[-1]], len(more[-1])
        if any(rest):
            yield b"".join(rest)

    def read(self) -> bytes:
        return b"".join(self.pieces())


class Transport:
    def __init__(self, url: str, token: Optional[str], timeout: float, patience: float,
                 context: Optional[ssl.SSLContext]):
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("%r is not the URL of a server" % url)
        self.url = "%s://%s" % (parts.scheme, parts.netloc.rpartition("@")[2])
        self._secure, self._host, self._port = parts.scheme == "https", parts.hostname, parts.port
        self._base = parts.path.rstrip("/")
        self._token, self._timeout, self._context = token, timeout, context
        self.patience = patience

    def _connect(self) -> http.client.HTTPConnection:
        if self._secure:
            return http.client.HTTPSConnection(self._host, self._port, timeout=self._timeout, context=self._context)
        return http.client.HTTPConnection(self._host, self._port, timeout=self._timeout)

    def _send(self, method: str, path: str, body: Optional[bytes], headers: Mapping[str, str]) -> Answer:
        connection = self._connect()
        fields = {"User-Agent": "webbase-python", **headers}
        if self._token:
            fields["Authorization"] = "Bearer " + self._token
        try:
            connection.request(method, self._base + path, body, fields)
            answer = Answer(connection, connection.getresponse())
        except LOST as error:
            connection.close()
            raise ConnectionLost("%s does not answer: %s" % (self.url, error or type(error).__name__)) from error
        if answer.status < 400:
            return answer
        with answer:
            raise refusal(answer)

    def open(self, method: str, path: str, parameters: Parameters = {}, body: Optional[bytes] = None,
             headers: Mapping[str, str] = {}, again: Optional[bool] = None) -> Answer:
        """An answer that is not an error. again: whether the request may be sent more than once; by default, if it only
        reads."""
        query = encode(parameters)
        pauses = Pauses(self.patience)
        while True:
            try:
                return self._send(method, path + ("?" + query if query else ""), body, headers)
            except (ConnectionLost, Unavailable) as error:
                if not (method in ("GET", "HEAD") if again is None else again):
                    raise
                pauses.wait(error)

    def read(self, method: str, path: str, parameters: Parameters = {}, body: Optional[bytes] = None,
             headers: Mapping[str, str] = {}, again: Optional[bool] = None) -> bytes:
        """The whole body of an answer. A request that only reads is sent again if it is cut short."""
        pauses = Pauses(self.patience)
        while True:
            try:
                with self.open(method, path, parameters, body, {"Accept-Encoding": "gzip", **headers}, again) as answer:
                    return answer.read()
            except ConnectionLost as error:
                if not (method in ("GET", "HEAD") if again is None else again):
                    raise
                pauses.wait(error)

    def json(self, method: str, path: str, parameters: Parameters = {}, value: Any = None,
             again: Optional[bool] = None) -> Any:
        body = None if value is None else json.dumps(value).encode()
        headers = {} if value is None else {"Content-Type": "application/json"}
        return json.loads(self.read(method, path, parameters, body, headers, again))


class Pauses:
    """Waits longer and longer, and raises the error when patience is over. reset() is for what worked meanwhile."""

    def __init__(self, patience: float):
        self._patience = patience
        self.reset()

    def reset(self) -> None:
        self._since: Optional[float] = None
        self._pause = PAUSE_MIN

    def wait(self, error: WebBaseError) -> None:
        now = time.monotonic()
        self._since = now if self._since is None else self._since
        asked = error.retry_after if isinstance(error, ApiError) else None
        pause = asked if asked is not None else self._pause * random.uniform(0.5, 1)
        if now + pause > self._since + self._patience:
            raise error
        time.sleep(pause)
        self._pause = min(2 * self._pause, PAUSE_MAX)


def refusal(answer: Answer) -> ApiError:
    """What the server says about its refusal."""
    text = b""
    try:
        for piece in answer.pieces():
            text += piece
            if len(text) > ERROR_MAX:
                break
        message = str(json.loads(text)["error"])
    except (WebBaseError, ValueError, KeyError, TypeError):
        message = "the server answered with status %d" % answer.status
    return error_for(answer.status, message, seconds(answer.header("Retry-After")))


def seconds(text: Optional[str]) -> Optional[float]:
    """Retry-After: a number of seconds, or a date."""
    if not text:
        return None
    if text.strip().isdigit():
        return float(text)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time())
    except (TypeError, ValueError):
        return None
