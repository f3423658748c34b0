#!/usr/bin/env python3
"""A server while a transfer of a batch design is under way, or a node is down: no new scan can begin, and everything
else goes on."""
import http.client, json, os, signal, subprocess, threading

from e2e import *
from serving import *

DESIGN = 'Batch[U(hash,log),R(hash,log)]'


def batch_repository(folder, count=300):
    """Some pages are visible and indexed, others wait."""
    repo, pages = folder / 'r', some_pages(rng('serve transfer'), 2 * count)
    call(repo, 'init', '--design', DESIGN)
    call(repo, 'import', archive(folder / 'a.warc', pages[:count]))
    call(repo, 'transfer')
    call(repo, 'index')
    call(repo, 'import', archive(folder / 'b.warc', pages[count:]))
    return repo, pages[:count], pages[count:]


class HeldTransfer:
    """A transfer that has begun and cannot go on, because an export is under way that nobody reads."""

    def __init__(self, repo):
        self.export = subprocess.Popen(command(repo, 'export', '--warc', '-'), stdout=subprocess.PIPE)
        self.export.stdout.read(1000)
        self.transfer = subprocess.Popen(command(repo, 'transfer', '--json'), stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for p in (self.export, self.transfer):
            p.kill()
            p.wait()

    def finish(self):
        self.export.stdout.read()
        assert self.export.wait(PATIENCE) == 0
        out, err = self.transfer.communicate(timeout=PATIENCE)
        assert self.transfer.returncode == 0, err
        return lines(out)[-1]


def others_work(server, pages):
    assert server.get('/healthz') == {'ok': True}
    assert server.get('/api/page', url=pages[0].url)['url'] == pages[0].url
    assert server.ask('/web/id_/' + pages[1].url).status in (200, 302, 404)
    assert server.get('/api/search', q='catalog')['hits'], 'nothing is found'
    assert server.get('/api/stat')['pages'] >= len(pages)
    assert server.ask('/metrics').status == 200 and server.ask('/dash').status == 200


def until_streams_are_refused(server):
    """A stream that was let in before the transfer began, but had not begun to read, waits and is cut after a while."""
    def refused():
        try:
            return server.ask('/api/stream', format='urls').status == 503
        except http.client.IncompleteRead:
            return False
    wait_for(refused, 'the transfer keeps streams out')


@test
def streams_are_refused_and_everything_else_works(folder):
    repo, pages, waiting = batch_repository(folder)
    with Server(repo) as server, HeldTransfer(repo) as held:
        stream = lambda **more: server.ask('/api/stream', format='urls', **more)
        until_streams_are_refused(server)
        # More at once than there are workers, of all kinds: none of them may keep a worker.
        replies, threads = [], []
        count = 12 * os.cpu_count()
        for n in range(count):
            more = ({}, {'order': 'url'}, {'latest': 1}, {'versions': 1}, {'name': 'n%d' % n}, {'join': 'shared'})[n % 6]
            threads.append(threading.Thread(target=lambda more=more: replies.append(stream(**more))))
            threads[-1].start()
        others_work(server, pages)
        for t in threads:
            t.join(PATIENCE)
        assert len(replies) == count and all(not t.is_alive() for t in threads)
        for r in replies:
            r.error(503, 'transfer')
            assert int(r.field('Retry-After')) > 0, r.fields
        client = subprocess.Popen(command(None, 'stream', server.url, '--latest', '--format', 'urls'), stdout=subprocess.PIPE)
        wait_for(lambda: b'status="5xx"} ' in server.ask('/metrics').body, 'the client was refused')
        others_work(server, pages)
        assert client.poll() is None, 'the client has given up'
        assert held.finish()['added'] == len(waiting)
        out, _ = client.communicate(timeout=PATIENCE)
        assert client.returncode == 0 and len(out.split()) == len(pages) + len(waiting), len(out.split())
        assert stream().body.count(b'\n') == len(pages)            # of the generation that is indexed
    verified(repo)


@test
def a_server_stops_while_streams_wait(folder):
    repo, pages, _ = batch_repository(folder)
    with HeldTransfer(repo) as held:
        with Server(repo) as server:        # which is sent SIGTERM at the end, and must end properly
            until_streams_are_refused(server)
            threads = [threading.Thread(target=lambda: server.ask('/api/stream', format='urls')) for _ in range(12 * os.cpu_count())]
            for t in threads:
                t.start()
            others_work(server, pages)
            for t in threads:
                t.join(PATIENCE)
        held.finish()


@test
def a_transfer_that_is_stopped_in_the_middle(folder):
    """Its locks stay, so streams are refused; readers of pages do not need them."""
    repo, pages, waiting = batch_repository(folder, 2000)
    with Server(repo) as server:
        transfer = subprocess.Popen(command(repo, 'transfer', '--json'), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            assert json.loads(transfer.stdout.readline())['stage'] == 'isolate'
            transfer.send_signal(signal.SIGSTOP)
            for _ in range(2 * os.cpu_count()):
                r = server.ask('/api/stream', format='urls', latest=1)
                if r.status == 200:     # it had ended before it could be stopped
                    break
                r.error(503, 'transfer')
                others_work(server, pages)
        finally:
            transfer.send_signal(signal.SIGCONT)
        assert transfer.wait(PATIENCE) == 0, transfer.stderr.read()
        assert server.ask('/api/stream', format='urls', latest=1).body.count(b'\n') == len(pages) + len(waiting)
    verified(repo)


@test
def a_stream_under_way_keeps_the_transfer_waiting(folder):
    """It ends as it should. New ones are refused meanwhile: a server that is never without would keep it waiting for
    ever."""
    repo, pages, waiting = batch_repository(folder, 2000)
    with Server(repo) as server:
        slow = server.connect()
        slow.request('GET', '/api/stream?format=warc')
        reply = slow.getresponse()
        first = reply.read(1000)
        transfer = subprocess.Popen(command(repo, 'transfer'), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        wait_for(lambda: server.ask('/api/stream', format='urls').status == 503, 'the transfer')
        assert transfer.poll() is None, 'the transfer did not wait'
        assert len(first + reply.read()) > 1000 * len(pages) // 10
        slow.close()
        assert transfer.wait(PATIENCE) == 0, transfer.stderr.read()
        assert ask(repo, 'stat')[0]['pages'] == len(pages) + len(waiting)
        assert server.ask('/api/stream', format='urls').status == 200


@test
def a_node_that_is_down(folder):
    """A client that needs it is told so before anything is sent, and can try again; everybody else gets an answer."""
    for number, design in enumerate(('Incr[hash,log]', 'Incr[uniform,hash]', 'Incr[hash,hashed-log]', 'Batch[U(hash,log),R(hash,log)]')):
        repo, away, pages = folder / str(number), folder / 'away', some_pages(rng('node down'), 200)
        call(repo, 'init', '--design', design, '--nodes', '2')
        for i in range(0, 200, 20):
            call(repo, 'import', archive(folder / 'a.warc', pages[i:i + 20]))
        if 'Batch' in design:
            call(repo, 'transfer')
        call(repo, 'index')
        with Server(repo) as server:
            stream = lambda **more: server.ask('/api/stream', **{'format': 'jsonl', **more})
            first = stream()
            token = [json.loads(line) for line in first.body.splitlines()][19]['token']
            held = len(ask(repo, 'snapshot', 'list'))
            (repo / 'node2').rename(away)
            refusals = [stream(), stream(format='wire'), stream(format='urls'), stream(latest=1), stream(order='url'),
                        stream(versions=1), stream(resume=token), stream(name='mine'), stream(join='ours'), stream(partition='1/2')]
            gone = [p for p in pages if server.ask('/api/page', url=p.url).status != 200]
            assert len(gone) < 200 and (gone or 'hash]' in design), (design, len(gone))
            if gone:                                # bucket files that a server has open stay usable
                refusals.append(server.ask('/api/page', url=gone[0].url))
                refusals.append(server.ask('/cdx', url=gone[0].url))
                r = server.ask('/web/' + gone[0].url)
                r = server.ask(r.field('Location').replace(server.url, '')) if r.status == 302 else r
                assert r.status == 503 and b'node 2 is down' in r.body, (design, r.status, r.body[:200])
            for i, r in enumerate(refusals):
                assert r.status == 503, (design, i, r.status, r.body[:200])
                r.error(503, 'node 2 is down')
                assert int(r.field('Retry-After')) > 0, (design, i, r.fields)
            there = next(p for p in pages if p not in gone)
            assert server.get('/api/page', url=there.url)['url'] == there.url
            assert server.get('/api/stat')['pages'] == 200
            assert len(ask(repo, 'snapshot', 'list')) <= held, 'refused streams hold snapshots'
            away.rename(repo / 'node2')
            for more in ({}, {'latest': 1}, {'order': 'url'}, {'name': 'mine'}):
                assert stream(format='urls', **more).body.count(b'\n') == 200, (design, more)
            assert stream(format='urls', resume=token).body.count(b'\n') == 180, design


@test
def a_selection_that_does_not_need_the_node(folder):
    """Where pages are found by their ids, the pages of a site can be streamed while a node is down that has none of
    them."""
    repo, pages = folder / 'r', [Page('http://s%d.example/' % i, b'page %d' % i) for i in range(60)]
    call(repo, 'init', '--design', 'Incr[hash,hashed-log]', '--nodes', '2')
    call(repo, 'import', archive(folder / 'a.warc', pages))
    with Server(repo) as server:
        (repo / 'node2').rename(folder / 'away')
        there = [server.ask('/api/page', url=p.url).status == 200 for p in pages]
        assert 0 < sum(there) < 60
        for page, is_there in zip(pages[:20], there):
            r = server.ask('/api/stream', format='urls', latest=1, site=page.url.split('/')[2])
            assert (r.status, r.body.count(b'\n')) == (200, 1) if is_there else r.status == 503, (page.url, is_there, r.status, r.body)
        (folder / 'away').rename(repo / 'node2')


run()
