"""A client for `webbase serve`.

    import webbase

    client = webbase.Client("http://127.0.0.1:8080")
    for hit in client.search("archive"):
        print(hit["url"], hit["title"])

It needs nothing but Python. README.md has more examples, and docs/http.md of WebBase describes every call.
"""

from .client import Client, Memento
from .errors import (ApiError, BadRequest, ConnectionLost, Denied, Incomplete, NotFound, TooLarge, Unavailable,
                     WebBaseError)
from .stream import Stream

__version__ = "0.1.0"

__all__ = ["ApiError", "BadRequest", "Client", "ConnectionLost", "Denied", "Incomplete", "Memento", "NotFound",
           "Stream", "TooLarge", "Unavailable", "WebBaseError"]
