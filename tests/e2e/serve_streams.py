#!/usr/bin/env python3
"""Streams over HTTP: servers that are killed and restarted, clients at once, tokens, and pages that are taken down."""
import collections, http.client, re, shutil, signal, time, urllib.parse, zlib

from e2e import *
from serving import *


def page(n, word='first', date='2026-01-02T03:04:05Z', filler=b''):
    return Page('http://s%d.example/p/%d' % (n % 7, n), b'<title>page %d</title><p>%s number%d</p>' % (n, word.encode(), n) + filler, date)


def corpus(folder, count, random_=None, name='r'):
    repo = folder / name
    call(repo, 'init', '--history', 'all')
    done(ask(repo, 'import', archive(folder / (name + '.warc'), [
        page(n, filler=b'<!--%s-->' % random_.randbytes(1500).hex().encode() if random_ else b'') for n in range(count)])))
    call(repo, 'update')
    call(repo, 'index')
    return repo, [page(n).url for n in range(count)]


class Killer:
    """Kills the server again and again, and restarts it at the same port."""

    def __init__(self, server, random_):
        self.server, self.random, self.going, self.kills = server, random_, True, 0
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while self.going:
            time.sleep(self.random.uniform(0.05, 0.4))
            self.server.kill()
            self.kills += 1
            self.server.start()

    def stop(self):
        self.going = False
        self.thread.join()


def urls_of(form, data):
    if form == 'jsonl':
        return [x['url'] for x in lines(data)]
    if form == 'urls':
        return data.decode().split('\n')[:-1]
    if form == 'warc.gz':
        out = b''
        while data:
            d = zlib.decompressobj(31)
            out, data = out + d.decompress(data), d.unused_data
        data = out
    return [u.decode() for u in re.findall(rb'WARC-Type: (?:response|conversion)\r\n(?:[^\r\n]+\r\n)*?WARC-Target-URI: ([^\r]*)', data)] \
        or [u.decode() for u in re.findall(rb'WARC-Target-URI: ([^\r]*)', data)]


def slowed(*args):
    """A client whose output is taken slowly, so that it is still there when the server is killed."""
    return subprocess.Popen(command(None, 'stream', *args), stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def take(process, random_, out):
    while part := os.read(process.stdout.fileno(), 1 << 17):
        out.append(part)
        time.sleep(random_.uniform(0, 0.01))


@test
def a_server_that_is_killed_again_and_again(folder):
    """Clients resume: every record once; with names and workers, at most the stated repeats."""
    random_ = rng('kills')
    repo, want = corpus(folder, 4000, random_)
    with Server(repo) as s:
        jobs = [(form, ['--format', form]) for form in ('jsonl', 'warc', 'warc.gz', 'text', 'urls')]
        jobs += [('jsonl', ['--order', '-url']), ('jsonl', ['--latest']), ('jsonl', ['--partition', '1/2']), ('jsonl', ['--partition', '2/2'])]
        named = [('jsonl', ['--name', 'nightly'])]
        joined = [('jsonl', ['--join', 'crew']) for _ in range(3)]
        clients = []
        for form, args in jobs + named + joined:
            p, out = slowed(s.url, *args), []
            t = threading.Thread(target=take, args=(p, random_, out))
            t.start()
            clients.append((form, args, p, out, t))
        killer = Killer(s, random_)
        wait_for(lambda: killer.kills >= 8, 'the server was killed eight times')
        killer.stop()
        for form, args, p, out, t in clients:
            t.join(PATIENCE)
            assert p.wait(PATIENCE) == 0, (args, p.stderr.read())
        got = [urls_of(form, b''.join(out)) for form, args, p, out, t in clients]
        for (form, args), have in zip(jobs[:7], got):
            assert len(have) == len(want) and set(have) == set(want), (args, len(have), len(set(have)), killer.kills)
        assert sorted(got[7] + got[8]) == sorted(want)
        print('# %d kills; named repeated %d, joined %d' % (killer.kills, len(got[9]) - len(want), len(sum(got[10:], [])) - len(want)))
        assert got[9] == list(dict.fromkeys(got[9])) and set(got[9]) == set(want), (len(got[9]), len(set(got[9])))
        shared = collections.Counter(sum(got[10:], []))
        assert set(shared) == set(want), (len(shared), len(want))
        assert sum(shared.values()) - len(want) <= 1000 * len(joined) * killer.kills, sum(shared.values())
        assert s.ask('/api/stream?format=urls').body.count(b'\n') == len(want)


@test
def a_client_that_is_killed(folder):
    """Its name goes on where it had acknowledged; of its workers, others get the rest."""
    random_ = rng('clients')
    repo, want = corpus(folder, 4000, random_)
    with Server(repo) as s:
        p = slowed(s.url, '--name', 'nightly')
        first = b''.join(p.stdout.readline() for _ in range(1500))
        p.kill()
        first = lines(first + p.stdout.read())
        p.wait(PATIENCE)
        rest = wait_for(lambda: lines(call(None, 'stream', s.url, '--name', 'nightly', '--patience', '60').stdout), 'the name is free')
        assert {x['url'] for x in first + rest} == set(want)
        assert len(first) + len(rest) - len(want) <= 1000, (len(first), len(rest))
        crew = [slowed(s.url, '--join', 'crew') for _ in range(3)]
        lost = lines(b''.join(crew[0].stdout.readline() for _ in range(100)))
        crew[0].kill()
        got = []
        threads = [threading.Thread(target=lambda p=p: got.extend(lines(p.stdout.read()))) for p in crew[1:]]
        for t in threads:
            t.start()
        lost += lines(crew[0].stdout.read())
        for t in threads:
            t.join(PATIENCE)
        counted = collections.Counter(x['url'] for x in got)
        assert set(counted) | {x['url'] for x in lost} == set(want) and max(counted.values()) == 1, (len(counted), len(lost))


@test
def slow_clients_slow_only_themselves(folder):
    random_ = rng('slow')
    repo, want = corpus(folder, 3000, random_)
    with Server(repo) as s:
        idle = [socket.create_connection((s.host, s.port), timeout=PATIENCE) for _ in range(20)]
        for n, c in enumerate(idle):
            c.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
            c.sendall(b'GET /api/stream?format=%s HTTP/1.0\r\n\r\n' % (b'jsonl', b'warc', b'wire')[n % 3])
            c.recv(100)
        for _ in range(3):
            assert s.ask('/api/stream?format=urls').body.count(b'\n') == len(want)
            assert call(None, 'stream', s.url, '--format', 'urls').stdout.count(b'\n') == len(want)
        assert s.memory() < 300 << 20, s.memory()
        body = read_all(idle[0])
        assert body.count(b'"url":"http://s') >= len(want) - 1      # and they still get everything
        for c in idle:
            c.close()


@test
def wrk_and_a_stream_at_once(folder):
    if not shutil.which('wrk'):
        raise Skip('wrk is not installed: scripts/deps bench')
    repo, want = corpus(folder, 3000, rng('wrk'))
    with Server(repo) as s:
        wrk = subprocess.Popen(['wrk', '-t1', '-c20', '-d4', s.url + '/api/search?q=number7'], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        while wrk.poll() is None:
            assert call(None, 'stream', s.url, '--format', 'urls').stdout.count(b'\n') == len(want)
        text = wrk.stdout.read().decode()
        assert 'Socket errors' not in text and 'Non-2xx' not in text and int(re.search(r'(\d+) requests in', text)[1]) > 100, text


@test
def tokens(folder):
    repo, want = corpus(folder, 300)
    other, _ = corpus(folder, 10, name='other')
    with Server(repo) as s, Server(other) as t:
        rows = [line.split('\t') for line in s.ask('/api/stream?format=urls&tokens=1').body.decode().split('\n')[:-1]]
        assert [u for u, _ in rows] and sorted(u for u, _ in rows) == sorted(want)
        token = rows[99][1]
        t.ask('/api/stream', resume=token).error(400, 'another repository')
        for wrong in (token[:-1], token + 'A', token[:20] + ('A' if token[20] != 'A' else 'B') + token[21:], 'x', '%00', '../../x'):
            s.ask('/api/stream', resume=wrong).error(400, 'token')
        # A new generation, a compaction and a new server do not matter.
        done(ask(repo, 'import', archive(folder / 'new.warc', [page(n, 'second', '2026-02-02T03:04:05Z') for n in range(200)])))
        call(repo, 'update')
        call(repo, 'index')
        call(repo, 'compact')
        s.kill()
        s.start()
        rest = [x for x in lines(s.ask('/api/stream', resume=token).body)]
        assert [x['url'] for x in rest] == [u for u, _ in rows[100:]] and all('first' in x['text'] for x in rest)


def asked(server, **params):
    """The records of a stream, and whether it was whole. A request that does not end fails the test."""
    try:
        reply = server.ask('/api/stream', format='urls', **params)
        return reply.body.split(b'\n')[:-1], reply.status == 200
    except http.client.IncompleteRead as e: # cut: something is missing
        return e.partial.split(b'\n')[:-1], False


@test
def streams_over_a_damaged_catalog_end(folder):
    """Whatever page of the catalog is damaged: streams end, and so does the server when it is told to."""
    for design in 'Incr[hash,hash]', 'Incr[hash,log]':
        repo = folder / ('r-' + design[10:-1])
        call(repo, 'init', '--design', design, '--history', 'all')
        for day in 1, 2:
            call(repo, 'import', archive(folder / 'day.warc', [page(n, 'day%d' % day, '2026-01-0%dT00:00:00Z' % day)
                                                               for n in range(60)]))
        call(repo, 'snapshot', '--name', 'mine')
        ways = {'snapshot': 'mine'}, {'snapshot': 'mine', 'order': 'url'}, {'versions': '1'}
        with Server(repo) as s:
            whole = [len(asked(s, **way)[0]) for way in ways]
            assert whole == [60, 60, 120], whole
            sound, cut = (repo / 'catalog.wbt').read_bytes(), 0
            for at in range(2 * 4096 + 100, len(sound), 3 * 4096):
                data = bytearray(sound)
                data[at] ^= 1
                (repo / 'catalog.wbt').write_bytes(data)
                for way, count in zip(ways, whole):
                    records, complete = asked(s, **way)
                    cut += not complete
                    assert len(records) == count if complete else len(records) <= count, (at, way, len(records))
            (repo / 'catalog.wbt').write_bytes(sound)
            assert cut, 'nothing that was damaged is needed'


@test
def streams_over_a_damaged_block_deliver_the_rest(folder):
    """In every format, however small it is; then the body is cut, and the server goes on."""
    pages = [Page('http://a.example/%d' % n, random.Random(n).randbytes(3000), type='text/plain') for n in range(60)]
    repo = folder / 'r'
    for n in range(2):
        done(ask(repo, 'import', archive(folder / ('%d.warc' % n), pages[30 * n:30 * n + 30])))
    call(repo, 'update')
    call(repo, 'index')
    segment = sorted(repo.glob('pages/*.seg'))[0]
    raw = bytearray(segment.read_bytes())
    raw[30000] ^= 1
    segment.write_bytes(raw)
    with Server(repo) as s:
        want = sorted(p.url for p in pages if s.ask('/api/page', url=p.url).status == 200)
        assert 0 < len(want) < 60, len(want)
        for form in ('urls', 'warc', 'text', 'jsonl', 'warc'):
            with contextlib.closing(s.connect()) as c:
                c.request('GET', '/api/stream?format=' + form)
                try:
                    c.getresponse().read()
                    raise AssertionError('%s ends as if it were complete' % form)
                except http.client.IncompleteRead as e:
                    body = e.partial.decode('latin-1')
            found = re.findall(r'http://a.example/\d+(?=["\s])', body)
            assert sorted(found) == want, (form, len(found), len(want))


@test
def a_named_stream_whose_newest_place_is_damaged(folder):
    """The answer says that records come a second time, and so does the client of webbase."""
    repo, urls = corpus(folder, 40)
    with Server(repo) as s:
        r = s.ask('/api/stream', format='urls', tokens=1, name='mine')
        assert r.field('WebBase-Warning') is None, r.fields
        token = r.body.split(b'\n')[19].split(b'\t')[1].decode()
        assert s.post('/api/stream/acknowledge?' + urllib.parse.urlencode({'name': 'mine', 'token': token}), b'').status == 200
        file = repo / 'streams' / 'names' / 'mine.stream'
        sound = file.read_bytes()
        newest = max(range(0, len(sound), 8192), key=lambda at: int.from_bytes(sound[at + 8:at + 16], 'little'))
        data = bytearray(sound)
        data[newest + 100] ^= 1
        file.write_bytes(data)
        r = s.ask('/api/stream', format='urls', name='mine')
        assert 'mine.stream is damaged' in r.field('WebBase-Warning'), r.fields
        assert len(urls_of('urls', r.body)) > 20, 'it goes on from the place before'
        p = call(None, 'stream', s.url, '--name', 'mine', '--format', 'urls')
        assert b'mine.stream is damaged' in p.stderr, p.stderr
        for at in range(100, len(data), 8192):
            data[at] = sound[at] ^ 1
        file.write_bytes(data)
        assert 'drop' in s.ask('/api/stream', format='urls', name='mine').error(500, 'mine.stream')


def left_behind(repo):
    """(holds of streams, names, files on the shelf)"""
    shelf = repo / 'streams/shelf'
    return ([h for x in ask(repo, 'snapshot', 'list') for h in x['held_by'] if h.startswith('stream')],
            sorted(x['name'] for x in ask(repo, 'stream', 'list') if 'name' in x),
            len(list(shelf.iterdir())) if shelf.exists() else 0)


def abandoned(s, *paths, headers={}):
    """The statuses of requests whose clients go away after the head."""
    def leave(path):
        with contextlib.closing(s.connect()) as c:
            c.request('GET', '/api/stream?' + path, headers=headers)
            return c.getresponse().status
    # A name is busy until the server has noticed that its last client has gone.
    return [wait_for(lambda: (status := leave(path)) != 503 and status, 'the name is free', s) for path in paths]


@test
def what_readers_leave_behind_is_bounded(folder):
    repo, want = corpus(folder, 200)
    operator = {'Authorization': 'Bearer ' + TOKEN}
    with Server(repo, token=TOKEN) as s:
        many = ['format=jsonl&' + x for x in ('', 'order=url', 'order=-date', 'query=first', 'order=rank', 'lang=en')] * 2
        assert abandoned(s, *many) == [200] * 12
        assert left_behind(repo) == (['stream readers'], [], 0), left_behind(repo)
        # Snapshots that they have made for themselves go, the oldest first.
        assert set(abandoned(s, *['latest=1'] * 18, *['versions=1'] * 2)) <= {200}
        assert left_behind(repo)[0] == ['stream readers'] * 16, left_behind(repo)
        # Names: a few, and none that an owner has begun.
        names = ['n%d' % i for i in range(20)]
        assert abandoned(s, *['name=' + n for n in names]) == [200] * 16 + [429] * 4
        assert left_behind(repo)[1] == sorted(names[:16]) and len(left_behind(repo)[0]) == 16
        assert s.ask('/api/stream', name='n17').field('Retry-After') == '60'
        assert abandoned(s, 'join=n18', 'name=n3') == [429, 200]
        assert call(repo, 'stream', '--name', 'own', '--format', 'urls', '--limit', '5').stdout.count(b'\n') == 5
        assert abandoned(s, 'name=theirs', 'join=crew', headers=operator) == [200, 200]
        for name in ('own', 'theirs', 'crew'):
            assert abandoned(s, 'name=' + name, 'join=' + name) == [403, 403]
            s.ask('/api/stream', name=name).error(403, name, 'token')
            s.ask('/api/stream/acknowledge', 'POST', body='name=%s&token=x' % name).error(403, name, 'token')
        token = s.ask('/api/stream', name='theirs', headers=operator).field('WebBase-Token')
        for headers, status in (({}, 403), (operator, 200)):
            r = s.ask('/api/stream/acknowledge', 'POST', headers, urllib.parse.urlencode({'name': 'theirs', 'token': token}))
            assert r.status == status, r.body
        # An owner may take over a reader's name, which is then the owner's.
        assert abandoned(s, 'name=n2', headers=operator) == [200] and abandoned(s, 'name=n2', 'name=new') == [403, 200]
        # Tokens of readers work again, in every order, also with another server.
        for more in ('', '&order=url', '&order=-rank', '&query=first', '&latest=1'):
            rows = [x.split('\t') for x in s.ask('/api/stream?format=urls&tokens=1' + more).body.decode().split('\n')[:-1]]
            assert sorted(u for u, _ in rows) == sorted(want), more
            s.kill()
            s.start()
            rest = s.ask('/api/stream', resume=rows[149][1], format='urls').body.decode().split('\n')[:-1]
            assert rest == [u for u, _ in rows[150:]], more
        # A server that starts again has no room for more.
        assert set(abandoned(s, *['latest=1'] * 3)) == {200}
        assert left_behind(repo)[0].count('stream readers') == 16 and left_behind(repo)[2] == 0, left_behind(repo)
    verified(repo)


@test
def pages_of_other_sites_change_nothing(folder):
    repo, want = corpus(folder, 50)
    operator = {'Authorization': 'Bearer ' + TOKEN}
    with Server(repo, token=TOKEN) as s:
        before = ask(repo, 'stat')[0]['snapshots']
        for other in ({'Origin': 'http://evil.example'}, {'Origin': 'null'}, {'Origin': 'http://%s:1' % s.host},
                      {'Sec-Fetch-Site': 'cross-site'}, {'Sec-Fetch-Site': 'same-site', **operator}):
            for what in ('name=x', 'join=x', 'latest=1', 'versions=1', 'name=x&order=url'):
                s.ask('/api/stream?' + what, headers=other).error(403, 'another site')
            for path in ('/api/stream/acknowledge?name=x&token=y', '/api/push', '/api/control/pause', '/api/expunge'):
                s.ask(path, 'POST', {**operator, **other}, b'{"what":"%s"}' % want[0].encode()).error(403, 'another site')
            for what in ('', '&order=url'):     # reading is possible
                assert sorted(s.ask('/api/stream?format=urls' + what, headers=other).body.decode().split()) == sorted(want)
            assert s.ask('/api/stat', headers=other).status == 200
        assert left_behind(repo) == ([], [], 0) and ask(repo, 'stat')[0]['snapshots'] == before, left_behind(repo)
        for own in ({'Origin': s.url}, {'Sec-Fetch-Site': 'same-origin'}, {'Sec-Fetch-Site': 'none'}):
            assert abandoned(s, 'name=x', 'latest=1', headers=own) == [200, 200]
        assert s.ask('/api/push', 'POST', {**operator, 'Origin': s.url}, json.dumps({'urlList': want[:1]})).status == 200


@test
def acknowledgements_in_a_form(folder):
    repo, want = corpus(folder, 60)
    form = {'Content-Type': 'application/x-www-form-urlencoded'}
    with Server(repo) as s:
        rows = lines(s.ask('/api/stream', name='reader').body)
        others = lines(s.ask('/api/stream', name='other', order='url').body)
        body = urllib.parse.urlencode({'name': 'reader', 'token': rows[24]['token']})
        r = s.ask('/api/stream/acknowledge', 'POST', form, body)
        assert r.status == 200 and r.json() == {'ok': True}, r.body
        assert [x['url'] for x in lines(s.ask('/api/stream', name='reader').body)] == [x['url'] for x in rows[25:]]
        # What readers have begun has one holder; a token of another stream is refused nevertheless.
        s.ask('/api/stream/acknowledge', 'POST', form, urllib.parse.urlencode(
            {'name': 'reader', 'token': others[40]['token']})).error(400, 'another stream')
        s.ask('/api/stream/acknowledge', 'POST', form, 'name=reader').error(400, 'token')
        s.ask('/api/stream/acknowledge', 'POST', form, 'name=nobody&token=' + rows[0]['token']).error(404, 'nobody')
        s.ask('/api/stream/acknowledge', 'POST', {'Content-Type': 'application/json'}, '{}').error(400, 'form')
        s.ask('/api/stream/acknowledge', 'POST', form, 'a=b&' * 2000).error(400, 'parameters')
        s.ask('/api/stream/acknowledge', 'POST', form, 'a' * 70000).error(413)
        with contextlib.closing(s.connect()) as c:      # a worker of a shared stream
            c.request('GET', '/api/stream?format=urls&tokens=1&join=crew&limit=10')
            r = c.getresponse()
            for _ in range(10):
                r.readline()
            answer = s.ask('/api/stream/acknowledge', 'POST', form, 'join=crew&worker=%s&position=9' % r.headers['WebBase-Worker'])
            assert answer.status == 200 and r.read() == b'', answer.body


@test
def a_page_that_is_taken_down_during_streams(folder):
    """Streams under way are not disturbed. After that, no call shows the page, and no new stream delivers it."""
    random_ = rng('down')
    repo, want = corpus(folder, 3000, random_)
    forms = ['jsonl', 'warc', 'warc.gz', 'text', 'urls', 'wire', 'jsonl&order=-url', 'jsonl&versions=1', 'jsonl&latest=1', 'jsonl&name=x', 'warc&order=date']
    with Server(repo) as s:
        streams = []
        for form in forms:
            c = socket.create_connection((s.host, s.port), timeout=PATIENCE)
            c.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
            c.sendall(('GET /api/stream?format=%s HTTP/1.0\r\n\r\n' % form).encode())
            streams.append((form, c, [c.recv(1000)]))
        token = s.ask('/api/stream?format=urls&tokens=1').body.decode().split('\n')[0].split('\t')[1]
        victim, mark = page(1500).url, b'number1500'
        call(repo, 'expunge', victim)
        digits = '20260102030405'
        for path in ('/web/%s/%s' % (digits, victim), '/web/%sid_/%s' % (digits, victim), '/web/' + victim, '/timemap/link/' + victim,
                     '/api/page?url=' + victim, '/api/versions?url=' + victim, '/api/similar?url=' + victim):
            r = s.ask(path)
            assert r.status in (404, 410) and mark not in r.body, (path, r.status, r.body[:200])
        assert s.get('/api/search', q='number1500')['hits'] == []
        for path in ('/cdx?url=' + victim, '/cdx?url=*.example', '/cdx/search/cdx?url=*.example&output=json'):
            assert victim.encode() + b'"' not in s.ask(path).body and victim.encode() + b' ' not in s.ask(path).body, path
        # New streams, which share scans with those under way: what they read was read before the takedown.
        for form in forms:
            if 'name' not in form and form not in ('warc.gz', 'wire'):
                body = s.ask('/api/stream?format=' + form).body
                assert victim.encode() + b'\n' not in body and mark not in body, form
        for more in ([], ['--latest'], ['--versions'], ['--resume', token], ['--format', 'warc']):      # wire
            got = call(None, 'stream', s.url, *more).stdout
            assert mark not in got and got.count(b'\n') >= len(want) - 2, (more, got.count(b'\n'))
        # Those under way may have sent the page already; they all come to their end.
        for form, c, got in streams:
            got.append(read_all(c))
            c.close()
            body = b''.join(got)
            assert form in ('warc.gz', 'wire') or body.count(b's1.example') > 400, (form, body.count(b's1.example'))
    verified(repo)


run()
