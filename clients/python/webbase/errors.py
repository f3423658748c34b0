"""What can go wrong, as exceptions. Each message is a sentence of the server, or says which connection was lost."""

from typing import Optional, Type


class WebBaseError(Exception):
    """All exceptions of this package."""


class ConnectionLost(WebBaseError):
    """There is no server, it went away, or it said nothing for longer than the timeout."""


class Incomplete(WebBaseError):
    """Something in the repository cannot be read. It is raised after everything else was delivered. left_out: how many
    captures are missing; None if it is not known."""

    def __init__(self, message: str, left_out: Optional[int] = None):
        super().__init__(message)
        self.left_out = left_out


class ApiError(WebBaseError):
    """The server refused a call."""

    def __init__(self, status: int, message: str, retry_after: Optional[float] = None):
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after


class BadRequest(ApiError):
    """400: a parameter is missing or wrong; the message names it."""


class Denied(ApiError):
    """401, 403, 421: a token is needed, this one is not sufficient, or the server has another name."""


class NotFound(ApiError):
    """404: there is no such page, snapshot, stream or crawl."""


class TooLarge(ApiError):
    """413: what was sent is too large."""


class Unavailable(ApiError):
    """429, 503: try again later. Calls that only read do so by themselves."""


_KINDS = {400: BadRequest, 401: Denied, 403: Denied, 404: NotFound, 413: TooLarge, 421: Denied, 429: Unavailable,
          503: Unavailable}


def error_for(status: int, message: str, retry_after: Optional[float]) -> ApiError:
    kind: Type[ApiError] = _KINDS.get(status, ApiError)
    return kind(status, message, retry_after)
