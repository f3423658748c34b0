"""The calls of the server, one method each."""

import json
import ssl
import urllib.parse
from typing import Any, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Union, cast

from . import answers
from .errors import Incomplete, WebBaseError
from .stream import Stream
from .transport import Transport

SEARCH_STEP, LINKS_STEP, VERSIONS_STEP, CAPTURES_STEP = 100, 1000, 1000, 5000
OFFSET_MAX = 1_000_000
REDIRECTS_MAX = 10
# With these, an answer cannot be asked for in parts.
WHOLE = {"sort", "closest", "reverse", "collapse", "collapseTime", "limit", "offset", "page", "showResumeKey", "resumeKey"}


class Memento(NamedTuple):
    """A capture of a page, as it was received."""
    url: str
    time: Optional[str]
    type: Optional[str]
    body: bytes
    headers: Dict[str, str]


class Client:
    """A server. It can be used by several threads, and needs no closing.

    timeout: seconds that the server may say nothing. patience: seconds for which calls that only read are tried again.
    """

    def __init__(self, url: str = "http://127.0.0.1:8080", token: Optional[str] = None, *, timeout: float = 60,
                 patience: float = 60, context: Optional[ssl.SSLContext] = None):
        self._transport = Transport(url, token, timeout, patience, context)

    def __repr__(self) -> str:
        return "Client(%r)" % self._transport.url

    def _get(self, path: str, **parameters: Any) -> Any:
        return self._transport.json("GET", path, parameters)

    # ---- search

    def search(self, query: str, *, sort: Optional[str] = None, one_per_site: bool = False,
               limit: Optional[int] = None, quick: bool = True) -> Iterator[answers.Hit]:
        """The hits, best first; they are asked for as they are used."""
        offset = 0
        while limit is None or offset < limit:
            step = SEARCH_STEP if limit is None else min(SEARCH_STEP, limit - offset)
            hits = self.search_answer(query, sort=sort, one_per_site=one_per_site, quick=quick, limit=step,
                                      offset=offset)["hits"]
            yield from hits
            offset += len(hits)
            if len(hits) < step or offset >= OFFSET_MAX:
                return

    def search_answer(self, query: str, *, limit: int = 10, offset: int = 0, sort: Optional[str] = None,
                      facet: Sequence[str] = (), one_per_site: bool = False, explain: bool = False,
                      quick: bool = False) -> answers.SearchAnswer:
        """One answer, with its total, facets and plan."""
        return cast(answers.SearchAnswer, self._get(
            "/api/search", q=query, limit=limit, offset=offset, sort=sort, facet=list(facet),
            one_per_site=one_per_site or None, explain=explain or None, quick=quick or None))

    def complete(self, query: str, limit: int = 8) -> List[Dict[str, Any]]:
        """What a query that is being typed may become, the best first."""
        return cast(List[Dict[str, Any]], self._get("/api/complete", q=query, limit=limit)["completions"])

    # ---- pages

    def page(self, url: str, *, at: Optional[str] = None, snapshot: Union[int, str, None] = None) -> answers.Page:
        """The facts about a page, or about its version at a time or in a snapshot."""
        return cast(answers.Page, self._get("/api/page", url=url, at=at, snapshot=snapshot))

    def get(self, url: str, at: Optional[str] = None) -> Memento:
        """The bytes of a page: the newest ones, or those of a time (YYYYMMDDhhmmss, or a beginning of it)."""
        path = "/web/%sid_/%s" % (at or "99991231235959", _in_path(url))
        for _ in range(REDIRECTS_MAX):
            with self._transport.open("GET", path) as answer:
                place = answer.header("Location") if 300 <= answer.status < 400 else None
                if not place or answer.header("Memento-Datetime"):
                    return Memento(url, answer.header("Memento-Datetime"), answer.header("Content-Type"),
                                   answer.read(), answer.headers())
                path = _on_this_server(place)
        raise WebBaseError("%s leads from capture to capture" % url)

    def versions(self, url: str) -> Iterator[answers.Version]:
        """The versions of a page, oldest first."""
        after: Optional[int] = 0
        while after is not None:
            part = self._get("/api/versions", url=url, limit=VERSIONS_STEP, after=after)
            yield from part["versions"]
            after = part["next"]

    def links(self, url: str, direction: str) -> Iterator[answers.Link]:
        """The pages that link to a page ("in"), or to which it links ("out")."""
        after: Optional[int] = 0
        while after is not None:
            part = self._get("/api/links", url=url, dir=direction, limit=LINKS_STEP, after=after)
            yield from part["links"]
            after = part["next"]

    def similar(self, url: str, limit: int = 10) -> List[answers.SimilarPage]:
        return cast(List[answers.SimilarPage], self._get("/api/similar", url=url, limit=limit)["similar"])

    # ---- captures

    def captures(self, url: str, **parameters: Any) -> Iterator[answers.Capture]:
        """Captures from /cdx, in the order of URL key and time. Parameters have the names that docs/http.md gives, such
        as matchType, filter, limit; `from_` is from. Raises Incomplete at the end if some could not be read."""
        asked = {name.rstrip("_"): value for name, value in parameters.items()}
        asked.update(url=url, output="json")
        in_parts = not WHOLE & set(asked)
        if in_parts:
            asked.update(limit=CAPTURES_STEP, showResumeKey=1)
        lost: Optional[Incomplete] = None
        key: Optional[str] = ""
        while key is not None:
            key = None
            with self._transport.open("GET", "/cdx", asked) as answer:
                for line in answer.lines():
                    row = json.loads(line)
                    if "error" in row:
                        lost = Incomplete(row["error"], row["left_out"] + ((lost.left_out or 0) if lost else 0))
                    elif "resumeKey" in row and in_parts:
                        key = row["resumeKey"]
                    else:
                        yield row
            asked["resumeKey"] = key
        if lost:
            raise lost

    def calendar(self, url: str) -> Dict[str, Any]:
        """When a page was captured, as counts for each quarter of an hour."""
        return cast(Dict[str, Any], self._get("/api/calendar", url=url))

    def listing(self, url: str, **parameters: Any) -> Iterator[Dict[str, Any]]:
        """The URLs of a site ("HOST/*", "PREFIX*", "*.HOST") with their captures."""
        after: Optional[str] = None
        while True:
            part = self._get("/api/captures", **{**parameters, "url": url, "after": after})
            yield from part["rows"]
            after = part["next"]
            if after is None:
                return

    def embedded(self, url: str, time: Optional[str] = None) -> Dict[str, Any]:
        """The files that a stored page is shown with."""
        return cast(Dict[str, Any], self._get("/api/embedded", url=url, time=time))

    def timemap(self, url: str) -> str:
        """All captures of a URL as links (RFC 7089)."""
        return self._transport.read("GET", "/timemap/link/" + _in_path(url)).decode()

    # ---- streams

    def stream(self, *, name: Optional[str] = None, resume: Optional[str] = None, **selection: Any) -> Stream:
        """A whole collection. The selection has the names that docs/http.md gives, such as site, since, order."""
        asked = {"name": name, "resume": resume, **selection}
        return Stream(self._transport, {k: v for k, v in asked.items() if v is not None})

    def stream_bytes(self, format: str, **selection: Any) -> Iterator[bytes]:
        """The bytes of a stream in another format, such as warc.gz. Raises ConnectionLost if they are cut short."""
        with self._transport.open("GET", "/api/stream", {"format": format, **selection}) as answer:
            yield from answer.pieces()

    # ---- the repository

    def stat(self) -> Dict[str, Any]:
        return cast(Dict[str, Any], self._get("/api/stat"))

    def snapshots(self) -> List[answers.Snapshot]:
        return cast(List[answers.Snapshot], self._get("/api/snapshots")["snapshots"])

    def dash(self, since: Optional[int] = None) -> Dict[str, Any]:
        return cast(Dict[str, Any], self._get("/api/dash", since=since))

    def history(self, metric: Optional[str] = None, range: Optional[str] = None, **parameters: Any) -> Dict[str, Any]:
        """The numbers of the dashboard over time."""
        asked = {name.rstrip("_"): value for name, value in parameters.items()}
        return cast(Dict[str, Any], self._get("/api/history", **{"metric": metric, "range": range, **asked}))

    def sites(self, **parameters: Any) -> List[Dict[str, Any]]:
        """Sites that crawls were told of."""
        return cast(List[Dict[str, Any]], self._get("/api/sites", **parameters)["sites"])

    def fetches(self, **parameters: Any) -> List[Dict[str, Any]]:
        """The latest requests of crawls, newest first. Needs the operator's token."""
        return cast(List[Dict[str, Any]], self._get("/api/fetches", **parameters)["fetches"])

    def orders(self, limit: int = 100) -> List[Dict[str, Any]]:
        """What operators told servers to do, newest first. Needs the operator's token."""
        return cast(List[Dict[str, Any]], self._get("/api/orders", limit=limit)["orders"])

    def openapi(self) -> Dict[str, Any]:
        return cast(Dict[str, Any], self._get("/api/openapi.json"))

    def metrics(self) -> str:
        """In the text format of Prometheus."""
        return self._transport.read("GET", "/metrics").decode()

    def healthy(self) -> bool:
        """Whether the repository can be read."""
        return bool(self._get("/healthz")["ok"])

    def is_operator(self) -> bool:
        """Whether the token is the operator's. Raises Denied if it is not."""
        return bool(self._get("/api/token")["ok"])

    # ---- what changes something; these are sent once

    def push(self, *, changed: Iterable[str] = (), gone: Iterable[str] = (),
             pages: Iterable[Mapping[str, Any]] = ()) -> answers.PushAnswer:
        """Announces pages that are new, changed or gone, and sends whole ones."""
        body = {"changed": list(changed), "gone": list(gone), "pages": [dict(page) for page in pages]}
        return cast(answers.PushAnswer, self._transport.json("POST", "/api/push", value={k: v for k, v in body.items() if v}))

    def control(self, order: str, *, site: Optional[str] = None, delay: Optional[float] = None) -> List[Dict[str, Any]]:
        """pause, resume, stop or delay. Returns what each crawl says."""
        body = {"site": site, "delay": delay}
        said = self._transport.json("POST", "/api/control/" + urllib.parse.quote(order, safe=""),
                                    value={k: v for k, v in body.items() if v is not None})
        return cast(List[Dict[str, Any]], said["crawls"])

    def expunge(self, what: str, *, allow: bool = False) -> answers.ExpungeAnswer:
        """Takes a URL or a host down everywhere, and keeps it out; or lets it in again."""
        return cast(answers.ExpungeAnswer, self._transport.json("POST", "/api/expunge", value={"what": what, "allow": allow}))


def _in_path(url: str) -> str:
    """A URL behind another path. Its own escapes and its query stay as they are."""
    return urllib.parse.quote(url.partition("#")[0], safe="%/:?&=+,;@!$'()*~[]|")


def _on_this_server(place: str) -> str:
    """The path and query of a redirect of this server: what is behind the first slash after the host."""
    if place.startswith("/"):
        return place
    return "/" + place.partition("://")[2].partition("/")[2]
