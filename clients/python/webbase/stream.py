"""A stream: pages of one snapshot, each exactly once, although connections break and servers are restarted.

Every record has a token, the place behind it. When a connection is lost, a stream without a name is asked for again with
the token of the last record, so nothing comes twice. A stream with a name goes on where the server was told by commit()
that everything had arrived; what the consumer got after that is passed over here.

If the consumer itself dies, it begins again at the last place that it knows for certain:

  with a name      the last commit(): what came after it comes again
  without a name   the token that the consumer has kept with its data (in the same transaction): nothing comes again
"""

import json
from typing import Any, Dict, Iterator, List, Optional

from .answers import Record
from .errors import ConnectionLost, Incomplete, WebBaseError
from .transport import Answer, Pauses, Transport

# A server that answers, but cuts the body again and again before the next record, cannot read what is there.
CUTS_MAX = 5


class Stream:
    def __init__(self, transport: Transport, parameters: Dict[str, Any]):
        self._transport, self._parameters = transport, parameters
        self._name: Optional[str] = parameters.get("name")
        self._pauses = Pauses(transport.patience)
        self._answer: Optional[Answer] = None
        self._lines: Iterator[bytes] = iter(())
        self._got = self._ended = False
        self._cuts = 0
        self._skip: Optional[str] = None
        self._committed: Optional[str] = None
        #: The place behind the last record that was delivered.
        self.token: Optional[str] = parameters.get("resume")
        #: How often the connection was lost. If there was no reason for it, something in the store may be damaged.
        self.interruptions = 0
        #: A sentence of the server if the stream goes on from an older place, so that records come a second time.
        self.warning: Optional[str] = None
        self._open()

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._answer:
            self._answer.close()
        self._answer = None

    def _open(self) -> None:
        parameters = self._parameters
        if self.token and not self._name:
            parameters = {"resume": self.token}     # it stands for the whole request
        self.close()
        self._answer = self._transport.open("GET", "/api/stream", {**parameters, "format": "jsonl"})
        self._lines = self._answer.lines()
        self.warning = self._answer.header("WebBase-Warning") or self.warning
        start = self._answer.header("WebBase-Token")
        if self._got and self._name:
            self._skip = self.token if start != self.token else None
        else:
            self.token = start or self.token

    def __iter__(self) -> Iterator[Record]:
        return self

    def __next__(self) -> Record:
        while not self._ended:
            try:
                if not self._answer:
                    self._open()
                record = self._take()
                self._pauses.reset()
                self._cuts = 0
            except ConnectionLost as error:
                self._lose(error)
                continue
            if record is None:
                self._end()
            elif self._skip is None:
                self._got, self.token = True, record["token"]
                return record
            elif record["token"] == self._skip:
                self._skip = None
        raise StopIteration

    def _lose(self, error: ConnectionLost) -> None:
        self._cuts += self._answer is not None      # otherwise there was no answer at all
        self.close()
        self.interruptions += 1
        if self._cuts >= CUTS_MAX:
            raise Incomplete("the stream is cut at the same place again and again: something that it should deliver "
                             "cannot be read") from error
        self._pauses.wait(error)

    def _take(self) -> Optional[Record]:
        line = next(self._lines, None)
        if line is None:
            return None
        try:
            record: Record = json.loads(line)
        except ValueError as error:
            raise ConnectionLost("the stream was cut within a record") from error
        return record

    def _end(self) -> None:
        self._ended = True
        self.close()
        if self._skip is not None:
            raise WebBaseError("the stream %s ended before the place that it had reached before" % self._name)

    def commit(self) -> None:
        """Tells the server that everything that was delivered has arrived for good. Only for streams with a name."""
        if not self._name:
            raise ValueError("a stream without a name has nothing to commit: keep its token instead")
        if not self.token or self.token == self._committed:
            return
        # To say so twice is the same as once, so it is said again if an answer is lost.
        self._transport.json("POST", "/api/stream/acknowledge", {"name": self._name, "token": self.token}, again=True)
        self._committed = self.token

    def batches(self, size: int = 500) -> Iterator[List[Record]]:
        """Lists of up to `size` records. When the next list is asked for, the one before is taken to have arrived for
        good; so a consumer that fails or leaves the loop gets its last list again."""
        batch: List[Record] = []
        for record in self:
            batch.append(record)
            if len(batch) >= size:
                yield batch
                batch = []
                if self._name:
                    self.commit()
        if batch:
            yield batch
        if self._name:
            self.commit()
