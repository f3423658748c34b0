"""The answers of the server as types, for programs that check them. What may be missing is in a class of its own."""

from typing import Dict, List, Optional, TypedDict


class Link(TypedDict):
    url: str
    anchor: str


class Hit(TypedDict):
    rank: int
    url: str
    title: Optional[str]
    score: float
    snippet: Optional[str]
    time: Optional[str]


class FacetValue(TypedDict):
    value: str
    count: int


class _SearchExtras(TypedDict, total=False):
    cut: bool
    facets: Dict[str, List[FacetValue]]
    suggestion: str
    plan: str


class SearchAnswer(_SearchExtras):
    hits: List[Hit]
    total: int
    exact: bool
    ms: float
    generation: int
    limit: int


class Page(TypedDict):
    url: str
    key: str
    id: str
    time: str
    status: int
    type: Optional[str]
    charset: Optional[str]
    length: int
    md5: str
    sha1: str
    truncated: bool
    epoch: int


class Version(TypedDict):
    url: Optional[str]
    version: int
    time: str
    last_seen: str
    captures: int
    status: int
    type: Optional[str]
    length: int
    md5: Optional[str]
    sha1: Optional[str]


class SimilarPage(TypedDict):
    url: str
    title: Optional[str]
    score: float


class Snapshot(TypedDict):
    snapshot: int
    name: Optional[str]
    epoch: int
    time: str
    pages: int
    expires: Optional[str]
    held_by: List[str]


class _RecordExtras(TypedDict, total=False):
    revisit: bool


class Record(_RecordExtras):
    """A page of a stream."""
    url: str
    id: str
    time: str
    status: int
    type: Optional[str]
    lang: Optional[str]
    title: Optional[str]
    text: str
    links: List[Link]
    token: str


class Capture(TypedDict, total=False):
    urlkey: str
    timestamp: str
    url: str
    mime: str
    status: str
    digest: str
    length: str
    redirect: str


class PushAnswer(TypedDict):
    accepted: int
    changed: int
    gone: int
    pages: int
    stored: int
    unchanged: int
    barred: int


class ExpungeAnswer(TypedDict):
    pages: int
    known: int
    bytes: int
    left: int
