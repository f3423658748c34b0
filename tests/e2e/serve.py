#!/usr/bin/env python3
"""webbase serve: every call, its errors, its paging, and who may ask."""
import collections, concurrent.futures, pathlib, re, signal, ssl, stat, threading, time

from crawlserver import until
from e2e import *
from serving import *

HUB = 'http://hub.example/'


def page(n, word='first', date='2026-01-02T03:04:05Z'):
    body = '<html lang=en><title>page %d</title><p>%s number%d %s</p><a href="%s">to the hub %d</a>' % (
        n, word, n, 'quokka' if n % 4 == 0 else 'wombat', HUB, n)
    return Page('http://s%d.example/p/%d' % (n % 3, n), body.encode(), date)


class Corpus:
    def __init__(self, folder, name='r'):
        self.folder, self.repo, self.files = folder, folder / name, 0
        call(self.repo, 'init', '--history', 'all')

    def put(self, pages):
        self.files += 1
        done(ask(self.repo, 'import', archive(self.folder / ('%s-%d.warc' % (self.repo.name, self.files)), pages)))

    def publish(self):
        call(self.repo, 'update')
        call(self.repo, 'index')


def corpus(folder):
    c = Corpus(folder)
    links = ''.join('<a href="http://s%d.example/p/%d">number %d</a>' % (n % 3, n, n) for n in range(60))
    c.put([Page(HUB, ('<title>hub</title><p>everything quokka</p>' + links).encode())] + [page(n) for n in range(60)])
    c.put([page(n, 'second', '2026-02-03T04:05:06Z') for n in range(10)])
    c.publish()
    return c


# ---- hosts ---------------------------------------------------------------------------

@test
def only_its_own_names(folder):
    c = corpus(folder)
    calls = ('/api/stat', '/api/search?q=quokka', '/api/stream?format=urls', '/metrics', '/healthz', '/', '/nothing', '/page?url=' + HUB)

    def statuses(s, *hosts, target='', version='1.1'):
        return {s.raw(('GET %s%s HTTP/%s\r\n%sConnection: close\r\n\r\n' % (
            target, call_, version, ''.join('Host: %s\r\n' % h for h in hosts))).encode())[9:12].decode() for call_ in calls}
    with Server(c.repo) as s:
        for host in ('localhost', 'LOCALHOST.:%d' % s.port, 'archive:%d' % s.port, '127.0.0.1:%d' % s.port, '[::1]:%d' % s.port):
            assert statuses(s, host) == {'200', '404'}, host
            assert statuses(s, host, target='http://' + host) == {'200', '404'}, host
        for host in ('attacker.example', 'localhost.attacker.example:%d' % s.port, '127.0.0.1.attacker.example', '2130706433', '192.0.2.1', ''):
            assert statuses(s, host) == {'421'}, host
        assert statuses(s, 'localhost', target='http://attacker.example') == {'421'}
        assert statuses(s, 'attacker.example', target='http://localhost') == {'421'}
        assert statuses(s) == {'400'} == statuses(s, 'localhost', 'localhost'), 'Host must be there once'
        assert statuses(s, version='1.0') == {'200', '404'}
        for path in calls:
            r = s.ask(path, headers={'Host': 'attacker.example', 'X-Forwarded-Host': 'localhost', 'Accept': 'text/html'})
            r.error(421, 'attacker.example', '--allow-host')
            assert s.ask(path, headers={'X-Forwarded-Host': 'attacker.example'}).status in (200, 404)
    with Server(c.repo, '--allow-host', 'Archive.Example', '--allow-host', 'b\xfccher.example:81', '--public', listen='0.0.0.0:0') as s:
        for host in ('archive.example', 'archive.example:%d' % s.port, 'xn--bcher-kva.example:81', 'localhost:%d' % s.port, '127.0.0.1:1'):
            assert statuses(s, host) == {'200', '404'}, host
        for host in ('attacker.example', 'xn--bcher-kva.example', '192.0.2.1', 'sub.archive.example'):
            assert statuses(s, host) == {'421'}, host
    for wrong in ('a/b', '', 'user@host', 'http://archive.example'):
        refused(c.repo, '--allow-host', 'serve', '--listen', '127.0.0.1:0', '--allow-host', wrong, status=2, one_line=False)


# ---- calls ---------------------------------------------------------------------------

def routes():
    """(path, whether it is a prefix, methods, access, whether people read it) of src/serve/routes.c."""
    text = (ROOT / 'src/serve/routes.c').read_text()
    found = re.findall(r'^    \{"(/[^"]*)", (true|false), ([A-Z |]+), WB_ACCESS_(\w+), \w+, (true|false),', text, re.M)
    assert len(found) >= 17
    return [(path, prefix == 'true', methods, access, people == 'true') for path, prefix, methods, access, people in found]


def refusal(reply, status, people, *words):
    """An error as JSON, or as a page where people read it."""
    if not people:
        return reply.error(status, *words)
    assert reply.status == status and reply.field('Content-Type') == 'text/html; charset=utf-8', reply.fields
    assert all(word in reply.body.decode() for word in words), reply.body


def declared_parameters():
    """The parameters of each route of src/serve/routes.c."""
    text = (ROOT / 'src/serve/routes.c').read_text().replace('\\\n', ' ')
    macros = dict(re.findall(r'#define (\w+) +("[^\n]*)', text))
    macros.update(re.findall(r'#define (WB_STREAM_PARAMS) +("[^\n]*)', (ROOT / 'src/stream/stream.h').read_text().replace('\\\n', ' ')))
    for name, value in macros.items():
        text = re.sub(r'\b%s\b' % name, lambda _: value, text)
    rows = re.findall(r'^    \{"(/[^"]*)",[^"]*?, wb_handle_\w+,\s*(NULL|[^}]*)\},', text, re.M)
    assert len(rows) == len(routes())
    return {path: set(' '.join(re.findall(r'"([^"]*)"', names)).split()) for path, names in rows}


@test
def the_description_and_the_manual_list_every_call(folder):
    description = json.loads((ROOT / 'src/serve/web/openapi.json').read_text())
    described, schemas = description['paths'], description['components']['schemas']
    manual = (ROOT / 'docs/http.md').read_text()
    # Pages for people and their files are not calls of the API.
    calls = {path: methods for path, prefix, methods, *_ in routes() if path.startswith(('/api', '/cdx', '/web/', '/timemap', '/metrics', '/healthz'))}
    bare = {re.sub(r'\{.*', '', path) for path in described}
    assert bare == set(calls), (bare ^ set(calls))
    for path, ways in described.items():
        want = {'GET': {'get'}, 'POST': {'post'}}.get(calls[re.sub(r'\{.*', '', path)].strip(), {'get', 'post'})
        assert set(ways) == want, (path, ways.keys())
    declared = declared_parameters()
    for path in described:
        route = re.sub(r'\{.*', '', path)
        for way in described[path].values():
            query = {x['name'] for x in way.get('parameters', ()) if x['in'] == 'query'}
            assert query == declared[route], (path, query ^ declared[route])
            form = way.get('requestBody', {}).get('content', {}).get('application/x-www-form-urlencoded')
            assert not form or set(schemas[form['schema']['$ref'].rpartition('/')[2]]['properties']) == query, path
    # What the handlers ask for is in the table, too. The names of a stream are compared in tests/unit/stream.
    asked = set()
    for file in (ROOT / 'src/serve').glob('*.c'):
        asked |= set(re.findall(r'wb_(?:http_param|call_(?:param|required|number|flag))\([\w>-]+, "(\w+)"', file.read_text()))
    known = set().union(*declared.values())
    assert len(asked) > 20 and asked <= known, asked - known
    for path in calls:
        assert '`' + path in manual or ' ' + path in manual, '%s is not in docs/http.md' % path
    for path in re.findall(r'^#+ .*?(?:GET|POST) (/[^ `?\n]*)', manual, re.M):
        assert any(path == r or (prefix and path.startswith(r)) for r, prefix, *_ in routes()), path


@test
def every_call_answers(folder):
    c = corpus(folder)
    with Server(c.repo) as s:
        r = s.get('/api/search', q='quokka', limit=3, facet='site', explain=1)
        assert len(r['hits']) == 3 and r['total'] == 16 and r['exact'] is True and r['generation'] == 1, r
        assert {'url', 'title', 'score', 'snippet', 'rank', 'time'} <= set(r['hits'][0]), r['hits'][0]
        r = s.get('/api/page', url=page(3).url)
        assert r['url'] == page(3).url and r['status'] == 200 and r['time'] == '2026-02-03T04:05:06.000Z', r
        assert s.get('/api/page', url=page(3).url, at='2026-01-10')['time'] == '2026-01-02T03:04:05.000Z'
        assert s.get('/api/page', url=r['id'])['url'] == page(3).url
        snapshots = s.get('/api/snapshots')['snapshots']
        assert snapshots and s.get('/api/page', url=page(3).url, snapshot=snapshots[0]['snapshot'])['url'] == page(3).url
        r = s.get('/api/versions', url=page(3).url)
        assert len(r['versions']) == 2 and r['gone'] is None, r
        assert s.get('/api/stat')['pages'] == 61
        assert s.get('/api/similar', url=page(3).url, limit=5)['url'] == page(3).url
        r = s.ask('/metrics')
        assert r.status == 200 and r.field('Content-Type').startswith('text/plain') and b'webbase_' in r.body
        assert s.get('/healthz') == {'ok': True}
        assert s.get('/api/openapi.json')['openapi']
        assert s.ask('/cdx', url=page(3).url).body.count(b'\n') == 2
        r = s.ask('/web/' + HUB)
        assert r.status == 302 and r.field('Location') == '/web/20260102030405/' + HUB
        r = s.ask('/timemap/link/' + page(3).url)
        assert r.status == 200 and r.body.count(b'memento"') == 2, r.body
        assert s.ask('/api/stream', format='urls').body.count(b'\n') == 61


@test
def hits_and_links_are_paged_to_the_end(folder):
    c = corpus(folder)
    with Server(c.repo) as s:
        whole = [h['url'] for h in s.get('/api/search', q='number', limit=1000)['hits']]
        assert len(whole) == 61 and len(set(whole)) == 61
        for size in (1, 7, 61, 100):
            got, offset = [], 0
            while hits := s.get('/api/search', q='number', limit=size, offset=offset)['hits']:
                assert [h['rank'] for h in hits] == list(range(offset + 1, offset + len(hits) + 1))
                got, offset = got + [h['url'] for h in hits], offset + size
            assert got == whole, size
        for way in ('in', 'out'):
            whole = s.get('/api/links', url=HUB, dir=way)
            assert len(whole['links']) == 60 and whole['next'] is None
            for size in (1, 7, 59, 60, 61):
                got, after = [], 0
                while after is not None:
                    r = s.get('/api/links', url=HUB, dir=way, limit=size, after=after)
                    assert len(r['links']) <= size
                    got, after = got + r['links'], r['next']
                assert got == whole['links'], (way, size)
        assert s.get('/api/links', url=HUB, dir='in', after=4000000000)['links'] == []


@test
def wrong_parameters_are_named(folder):
    c = corpus(folder)
    token = '0' * 40
    with Server(c.repo) as s:
        for status, word, path in (
                (400, 'q', '/api/search'), (400, 'q', '/api/search?q='), (400, 'limit', '/api/search?q=a&limit=x'),
                (400, 'limit', '/api/search?q=a&limit=-1'), (400, 'limit', '/api/search?q=a&limit=' + '9' * 30),
                (400, 'offset', '/api/search?q=a&offset=1000001'), (400, 'sort', '/api/search?q=a&sort=sideways'),
                (400, 'facet', '/api/search?q=a&facet=colour'), (400, 'explain', '/api/search?q=a&explain=perhaps'),
                (400, '', '/api/search?q=(a'), (400, '', '/api/search?q=%22a'),
                (400, 'url', '/api/page'), (400, 'url', '/api/versions?x=1'), (404, 'nowhere', '/api/page?url=http://nowhere.example/'),
                (404, 'nowhere', '/api/versions?url=http://nowhere.example/'), (400, 'at', '/api/page?url=%s&at=soon' % HUB),
                (400, 'snapshot', '/api/page?url=%s&at=2026-01-01&snapshot=1' % HUB), (404, '77', '/api/page?url=%s&snapshot=77' % HUB),
                (400, 'dir', '/api/links?url=' + HUB), (400, 'dir', '/api/links?url=%s&dir=up' % HUB),
                (404, 'nowhere', '/api/links?dir=in&url=http://nowhere.example/'), (400, 'limit', '/api/links?dir=in&url=%s&limit=10001' % HUB),
                (404, 'nowhere', '/api/similar?url=http://nowhere.example/'), (400, 'limit', '/api/similar?url=%s&limit=101' % HUB),
                (400, 'format', '/api/stream?format=xml'), (400, 'order', '/api/stream?order=up'), (400, 'colour', '/api/stream?colour=1'),
                (400, 'sites', '/api/stream?sites=/etc/passwd'), (400, 'partition', '/api/stream?partition=3/2'),
                (400, 'token', '/api/stream?resume=' + token), (404, '99', '/api/stream?snapshot=99'),
                (400, 'name', '/api/stream?name=a/b'), (400, 'join', '/api/stream?name=a&join=b'),
                (400, 'url', '/cdx'), (400, 'matchType', '/cdx?url=a.example&matchType=all'), (400, 'from', '/cdx?url=a.example&from=May'),
                (400, 'to', '/cdx?url=a.example&to=202613'), (400, 'limit', '/cdx?url=a.example&limit=--1'),
                (400, 'sort', '/cdx?url=a.example&sort=up'), (400, 'closest', '/cdx?url=a.example&sort=closest'),
                (400, 'fl', '/cdx?url=a.example&fl=url,colour'), (400, 'filter', '/cdx?url=a.example&filter=200'),
                (400, 'filter', '/cdx?url=a.example&filter=~status:(2'), (400, 'collapse', '/cdx?url=a.example&collapse=url:0'),
                (400, 'page', '/cdx?url=a.example*&page=-1'), (400, 'pageSize', '/cdx?url=a.example*&pageSize=0'),
                (400, 'resumeKey', '/cdx?url=a.example*&resumeKey=x'), (400, 'output', '/cdx?url=a.example&output=xml'),
                (400, 'only http', '/web/ftp://a.example/'), (400, '/web/', '/web/'), (404, 'nowhere', '/web/http://nowhere.example/'),
                (404, 'nowhere', '/web/2026/http://nowhere.example/'), (404, 'nowhere', '/timemap/link/http://nowhere.example/'),
                (404, '/nothing', '/nothing'), (404, '', '/api'), (404, '', '/api/search/'), (404, '', '/assets/../token')):
            r = s.ask(path)
            if not path.startswith('/web/'):      # errors for people may be pages
                r.error(status, word)
            assert r.status == status, (path, r.status, r.body)
        r = s.ask('/web/http://a.example/', headers={'Accept-Datetime': 'tomorrow'})
        assert r.status in (400, 404), r.status
        assert s.ask('/web/' + HUB, headers={'Accept-Datetime': 'tomorrow'}).status == 400
        s.ask('/api/stream/acknowledge?name=x', method='POST').error(400, 'token')
        s.ask('/api/stream/acknowledge?join=x&worker=1&position=2', method='POST').error(404, 'x')
        s.ask('/api/stream/acknowledge?name=nobody&token=%s' % token, method='POST').error(404, 'nobody')


@test
def methods(folder):
    """HEAD says what GET says, without the body; other methods are refused."""
    c = corpus(folder)
    with Server(c.repo) as s:
        for path in ('/api/search?q=quokka', '/api/page?url=' + HUB, '/api/stat', '/cdx?url=' + HUB, '/web/20260102030405/' + HUB,
                     '/timemap/link/' + HUB, '/metrics', '/healthz', '/api/openapi.json', '/api/page', '/nothing',
                     '/api/stream?format=urls', '/cdx?url=s1.example*'):
            got, head = s.ask(path), s.ask(path, method='HEAD')
            assert head.status == got.status and head.body == b'', path
            assert head.field('Content-Type') == got.field('Content-Type'), path
        for path, prefix, methods, access, people in routes():
            r = s.ask(path + ('http://x.example/' if prefix else ''), method='DELETE')
            refusal(r, 405, people)
            assert r.field('Allow'), path
        for path in ('/api/search?q=a', '/cdx?url=a.example', '/healthz'):
            assert s.ask(path, method='POST', body=b'').field('Allow') == 'GET, HEAD'
        assert s.ask('/api/stream/acknowledge').field('Allow') == 'POST'
        assert s.ask('/api/search?q=quokka', body=b'x' * 100).status == 413


@test
def not_one_generation_yet(folder):
    c = Corpus(folder)
    c.put([page(n) for n in range(20)])
    with Server(c.repo) as s:
        for path in ('/api/search?q=quokka', '/api/links?dir=in&url=' + HUB, '/api/similar?url=' + HUB, '/cdx?url=s1.example*'):
            s.ask(path).error(503, 'index')
        assert s.get('/api/page', url=page(3).url)['url'] == page(3).url
        assert s.ask('/cdx', url=page(3).url).body.count(b'\n') == 1
        assert s.ask('/web/20260102030405/' + page(3).url).status == 200
        assert s.ask('/api/stream', format='urls').body.count(b'\n') == 20
        assert s.get('/healthz') == {'ok': True} and s.get('/api/stat')['pages'] == 20
        c.publish()
        wait_for(lambda: s.ask('/api/search?q=quokka').status == 200, 'the first generation is there')


@test
def a_new_generation_is_picked_up(folder):
    c = corpus(folder)
    with Server(c.repo) as s:
        assert s.get('/api/search', q='third')['total'] == 0
        open_ = s.connect()
        for round_ in range(2, 5):
            word = 'round%d' % round_
            c.put([page(n, word, '2026-03-0%dT00:00:00Z' % round_) for n in range(30)])
            c.publish()
            wait_for(lambda: s.get('/api/search', q=word)['generation'] == round_, 'generation %d is used' % round_)
            # Once one answer has come from it, all do, on old connections, too.
            for _ in range(40):
                open_.request('GET', '/api/search?q=' + word)
                assert json.loads(open_.getresponse().read())['total'] == 30
        open_.close()


@test
def a_query_that_runs_out_of_time_says_so(folder):
    random_, c = rng('time'), Corpus(folder)
    c.put([Page('http://t.example/%d' % n, html(random_)) for n in range(12000)])
    c.publish()
    query = ' OR '.join('%s* OR "%s %s"' % (a[0], a, b) for a in WORDS for b in WORDS)
    with Server(c.repo, '--query-time', '1ms') as s:
        r = s.get('/api/search', q=query[:8000].rsplit(' OR ', 1)[0], limit=10)
        assert r['cut'] is True and r['exact'] is False, {k: r[k] for k in r if k != 'hits'}
        assert s.get('/api/search', q='log', limit=1)['hits'] is not None
    with Server(c.repo, '--query-time', '300') as s:
        r = s.get('/api/search', q='log', limit=10)
        assert 'cut' not in r and r['exact'] is True and r['total'] > 5000, {k: r[k] for k in r if k != 'hits'}


# ---- access --------------------------------------------------------------------------

def address(number):
    return '10.%d.%d.%d' % (number >> 16 & 255, number >> 8 & 255, number & 255)


@test
def wrong_tokens_are_slowed_down(folder):
    c = corpus(folder)
    with Server(c.repo) as s:
        own = (c.repo / 'token').read_text().strip()

        def attempt(token, client):
            began = time.monotonic()
            r = s.ask('/api/token', headers={'Authorization': 'Bearer ' + token, 'X-Forwarded-For': client})
            return r.status, time.monotonic() - began, r
        for _ in range(20):
            assert attempt('guess', '192.0.2.1')[0] == 401
        slow = [attempt('guess', '192.0.2.1') for _ in range(4)]
        assert [x[0] for x in slow] == [401] * 4 and sum(x[1] for x in slow) >= 4 * 0.25, slow
        assert attempt(own, '192.0.2.1')[0] == 200
        assert s.ask('/api/stat').status == 200      # who sends no token is not concerned
        with concurrent.futures.ThreadPoolExecutor(80) as pool:
            many = list(pool.map(lambda _: attempt('guess', '192.0.2.1'), range(80)))
            other = pool.submit(attempt, own, '192.0.2.2').result()
        assert other[0] == 200
        statuses = collections.Counter(x[0] for x in many)
        assert set(statuses) == {401, 429} and statuses[401] >= 40, statuses
        assert all(x[2].field('Retry-After') for x in many if x[0] == 429)


@test
def who_may_read(folder):
    c = corpus(folder)
    tried = []
    with Server(c.repo) as s:
        assert s.ask('/api/stat').status == 200
        file = c.repo / 'token'
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        own = file.read_text().strip()
    with Server(c.repo, listen='0.0.0.0:0') as s:
        assert (c.repo / 'token').read_text().strip() == own
        for path, prefix, methods, access, people in routes():
            full, way = path + ('http://x.example/' if prefix else ''), 'GET' if 'GET' in methods else 'POST'
            r = s.ask(full, method=way)
            if access == 'ANYONE':
                assert r.status in (200, 404), (path, r.status)
                continue
            refusal(r, 401, people, 'token')
            assert r.field('WWW-Authenticate').startswith('Bearer'), path
            for wrong in ('Bearer x', 'Bearer ' + own[:-1], 'Bearer ' + own + 'x', 'Basic ' + own, own, 'Bearer', 'Bearer '):
                tried.append(wrong)      # each by another client of a proxy on this machine, because they are slowed down
                assert s.ask(full, method=way, headers={'Authorization': wrong, 'X-Forwarded-For': address(len(tried))}).status == 401, wrong
            assert s.ask(full, method=way, headers={'Authorization': 'Bearer ' + own}).status not in (401, 403), path
            assert s.ask(full + '?token=' + own, method=way).status == 401, 'tokens are not parameters'
        assert call(None, 'stream', s.url, '--format', 'urls', '--patience', '1', status=1).stderr
        got = call(None, 'stream', s.url, '--format', 'urls', '--token', own).stdout
        assert got.count(b'\n') == 61
    with Server(c.repo, '--public', listen='0.0.0.0:0') as s:
        assert s.ask('/api/stat').status == 200
    with Server(c.repo, '--token', 'the-operators-own', listen='[::]:0') as s:
        s.host = '::1'
        assert s.ask('/api/stat').status == 401
        assert s.ask('/api/stat', headers={'Authorization': 'Bearer ' + own}).status == 401
        assert s.ask('/api/stat', headers={'authorization': 'bearer the-operators-own'}).status == 200
    assert (c.repo / 'token').read_text().strip() == own
    refused(c.repo, 'token', 'serve', '--listen', '127.0.0.1:0', '--token', 'short')
    refused(c.repo, '--key', 'serve', '--listen', '127.0.0.1:0', '--key', folder / 'x', status=2, one_line=False)


def certificate(folder):
    """A new certificate with its key."""
    subprocess.run(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '3',
                    '-subj', '/CN=localhost', '-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', folder / 'key.pem',
                    '-out', folder / 'cert.pem'], check=True, capture_output=True)
    return (folder / 'cert.pem').read_bytes() + (folder / 'key.pem').read_bytes()


@test
def with_tls(folder):
    c = corpus(folder)
    (folder / 'both.pem').write_bytes(certificate(folder))
    for args in (['--certificate', folder / 'cert.pem', '--key', folder / 'key.pem'], ['--certificate', folder / 'both.pem']):
        with Server(c.repo, *args) as s:
            assert s.scheme == 'https' and s.get('/api/stat')['pages'] == 61
            assert s.ask('/web/' + HUB).field('Link').count('https://127.0.0.1') == 2      # timegate and timemap
            context = ssl.create_default_context(cafile=str(folder / 'cert.pem'))
            with socket.create_connection(('127.0.0.1', s.port)) as plain, context.wrap_socket(plain, server_hostname='127.0.0.1') as t:
                assert t.version() in ('TLSv1.2', 'TLSv1.3')
                t.sendall(b'GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
                assert t.recv(100).startswith(b'HTTP/1.1 200 ')
            s.raw(b'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')      # not TLS: only this connection ends
            assert s.ask('/healthz').status == 200
            assert b'certificate' in call(None, 'stream', s.url, status=1).stderr
            got = call(None, 'stream', s.url, '--format', 'urls', '--ca-file', folder / 'cert.pem').stdout
            assert got.count(b'\n') == 61
    serial = lambda s: ssl.PEM_cert_to_DER_cert(ssl.get_server_certificate(('127.0.0.1', s.port)))
    (folder / 'live.pem').write_bytes((folder / 'both.pem').read_bytes())
    with Server(c.repo, '--certificate', folder / 'live.pem') as s:
        before = serial(s)
        for text, said, renewed in ((b'nonsense', 'the certificate stays', False), (certificate(folder), 'is in use', True)):
            (folder / 'live.pem').write_bytes(text)
            s.process.send_signal(signal.SIGHUP)
            until(lambda: said in s.said())
            assert (serial(s) != before) is renewed
    refused(c.repo, 'nothing.pem', 'serve', '--listen', '127.0.0.1:0', '--certificate', folder / 'nothing.pem')
    refused(c.repo, 'key.pem', 'serve', '--listen', '127.0.0.1:0', '--certificate', folder / 'key.pem')


@test
def what_cannot_be_served(folder):
    refused(folder / 'nothing', 'nothing', 'serve', '--listen', '127.0.0.1:0')
    c = Corpus(folder)
    refused(c.repo, 'elsewhere', 'serve', '--listen', 'elsewhere', one_line=False)
    with Server(c.repo) as s:
        refused(c.repo, str(s.port), 'serve', '--listen', '127.0.0.1:%d' % s.port)
        assert s.ask('/healthz').status == 200      # an empty repository


def samples(text):
    """What /metrics says: {(name, labels): value}. Each family is described once, before its samples."""
    out, described = {}, []
    for line in text.decode().splitlines():
        if line.startswith('# HELP '):
            described.append(line.split()[2])
        elif not line.startswith('#'):
            name, labels, value = re.fullmatch(r'(\w+)(?:\{(.*)\})? (\S+)', line).groups()
            assert any(name.startswith(d) for d in described[-1:]), line
            key = (name, tuple(sorted(re.findall(r'(\w+)="([^"]*)"', labels or ''))))
            assert key not in out, line
            out[key] = float(value)
    assert len(set(described)) == len(described)
    return out


@test
def caches_stay_within_memory_and_old_generations_go(folder):
    c = corpus(folder)
    assert b'--memory takes a number of bytes' in call(c.repo, 'serve', '--memory', 'much', status=2).stderr
    with Server(c.repo, '--memory', '4M') as s:
        def kept(cache=None):
            found = {dict(labels)['cache']: v for (name, labels), v in samples(s.ask('/metrics').body).items() if name == 'webbase_cache_bytes'}
            assert set(found) >= {'catalog', 'blocks', 'segments', 'texts', 'streams', 'generations'}, found
            return found[cache] if cache else sum(found.values())

        def many():
            threads = [threading.Thread(target=s.ask, args=('/api/search',), kwargs={'q': 'quokka number%d' % n}) for n in range(24)]
            [t.start() for t in threads]
            [t.join() for t in threads]
            return kept('generations')

        s.get('/api/search', q='quokka')
        one = kept('generations')
        wait_for(lambda: many() >= 2 * one > 0, 'two workers have the generation', s)
        for n in range(60):
            s.ask('/view/http://s%d.example/p/%d' % (n % 3, n))
        assert kept() <= 4e6, kept()
        assert samples(s.ask('/metrics').body)[('webbase_cache_limit_bytes', ())] == 4e6
        c.put([page(n, 'third', '2026-03-03T04:05:06Z') for n in range(5)])
        c.publish()
        wait_for(lambda: s.get('/api/search', q='third')['total'] == 5, 'the new generation answers', s)
        wait_for(lambda: '/index/00000001/' not in pathlib.Path('/proc/%d/maps' % s.process.pid).read_text(),
                 'idle workers let go of the old generation', s)


@test
def backups_in_metrics_and_on_the_dashboard(folder):
    """What is safe, and that a backup fails; without the names of places, which the command says."""
    repo, vault = folder / 'r', folder / 'the-vault'
    call(repo, 'import', archive(folder / 'a.warc', some_pages(rng('backups'), 30)))

    def gauge(s, name):
        return samples(s.ask('/metrics').body).get(('webbase_backup_' + name, (('kind', 'file'), ('vault', '1'))))

    with Server(repo) as s:
        assert b'webbase_backup' not in s.ask('/metrics').body and s.get('/api/stat')['backup'] == []
        assert b'<section id="backups" hidden>' in s.ask('/dash').body
        begin = time.time()
        call(repo, 'backup', 'file://%s' % vault)
        assert begin - 2 <= gauge(s, 'safe_timestamp_seconds') <= time.time() + 1
        for name, value in (('safe_pages', 30), ('failing', 0), ('following', 0), ('error_timestamp_seconds', 0), ('unsafe_age_seconds', 0)):
            assert gauge(s, name) == value, (name, gauge(s, name))
        row, = ask(repo, 'stat')[0]['backup']
        assert row['url'] == 'file://%s' % vault and row['pages'] == 30 and row['safe'] and row['since'], row
        assert s.get('/api/stat')['backup'] == s.get('/api/dash')['stat']['backup'] == [dict(row, url=None)]
        assert b'<section id="backups">' in s.ask('/dash').body
        # The directory is away, as if it were not mounted.
        vault.rename(folder / 'away')
        vault.write_text('')
        call(repo, 'import', archive(folder / 'b.warc', some_pages(rng('more'), 10, 'more.example')))
        refused(repo, vault, 'backup', 'file://%s' % vault)
        assert gauge(s, 'failing') == 1 and begin - 2 <= gauge(s, 'error_timestamp_seconds') <= time.time() + 1
        assert str(vault) in ask(repo, 'stat')[0]['backup'][0]['error'] and gauge(s, 'safe_pages') == 30
        assert str(vault).encode() in call(repo, 'stat').stdout
        for path in ('/dash', '/api/dash', '/api/stat', '/metrics'):
            assert b'the-vault' not in s.ask(path).body, path
        assert 'Backup 1 fails' in s.get('/api/dash')['state']['problem'] and b'Backup 1 fails' in s.ask('/dash').body
        vault.unlink()
        (folder / 'away').rename(vault)
        follower = subprocess.Popen(command(repo, 'backup', 'file://%s' % vault, '--follow'), stdout=subprocess.DEVNULL)
        try:
            wait_for(lambda: (gauge(s, 'failing'), gauge(s, 'safe_pages'), gauge(s, 'following')) == (0, 40, 1), 'it goes on', s)
            assert not s.get('/api/dash')['state']['problem']
        finally:
            heed(follower)
            follower.terminate()
            assert follower.wait(PATIENCE) == 0
        assert gauge(s, 'following') == 0 and gauge(s, 'safe_pages') == 40


@test
def what_requests_leave_in_the_heaps_goes_back(folder):
    r = rng('heaps')
    words = ['w%d' % n for n in range(5000)]
    line = lambda: '<p><a href=/%d>%s</a> %s' % (r.randrange(60), r.choice(words), ' '.join(r.choices(words, k=30)))
    pages = [Page('http://s.example/%d' % n, ('<title>t</title>' + ''.join(line() for _ in range(1000))).encode(),
                  '2026-01-02T03:04:05Z') for n in range(60)]
    repo = folder / 'r'
    call(repo, 'init')
    call(repo, 'import', archive(folder / 'a.warc', pages))
    call(repo, 'index')
    with Server(repo) as s:
        own = lambda: int(re.search(r'RssAnon:\s+(\d+)', pathlib.Path('/proc/%d/status' % s.process.pid).read_text())[1])

        def ask(first):
            for n in range(first, 60, 12):
                assert s.ask('/web/20260102030405/http://s.example/%d' % n).status == 200
                assert s.ask('/page?url=http://s.example/%d' % n).status == 200
            assert s.ask('/api/stream?limit=20').status == 200

        def gives_back():
            """Nobody asks for anything after the requests, so only what was freed can go. If that has just gone, there is
            little left to give back; then it is tried again."""
            with concurrent.futures.ThreadPoolExecutor(12) as pool:
                list(pool.map(ask, range(12)))
            most, end = own(), time.monotonic() + 15
            while own() > most - 1024 and time.monotonic() < end:
                time.sleep(0.1)
            return own() <= most - 1024
        wait_for(gives_back, 'a megabyte is given back', s)


@test
def nodes_in_metrics_and_on_the_dashboard(folder):
    pages = some_pages(rng('nodes'), 200)
    call(folder / 'one', 'init')
    with Server(folder / 'one') as s:
        text = s.ask('/dash').body.decode()
        assert '<section id="nodes" hidden>' in text and len(s.get('/api/dash')['nodes']) == 1
    repo = folder / 'three'
    call(repo, 'init', '--design', 'Batch[U(hash,log),R(uniform,hashed-log)]', '--nodes', '2')
    call(repo, 'import', archive(folder / 'a.warc', pages[:150]))
    call(repo, 'transfer')
    call(repo, 'import', archive(folder / 'b.warc', pages[150:]))
    with Server(repo) as s:
        for down in (False, True):
            table = {r['node']: r for r in ask(repo, 'nodes')}
            found = samples(s.ask('/metrics').body)
            of = lambda name, node, **more: found.get(('webbase_node_' + name, tuple(sorted([('node', str(node)), *more.items()]))))
            assert sorted(table) == [1, 2, 101] and sum(r['pages'] for r in table.values()) == 200, table
            for n, row in table.items():
                assert of('info', n, role=row['role'], organisation=row['organisation']) == 1, (n, found)
                for state in ('idle', 'streaming', 'storing', 'down'):
                    assert of('state', n, state=state) == (state == row['state']), (n, state)
                assert of('pages', n) == row['pages'], n
                for kind in ('get', 'put', 'stream'):
                    assert of('requests', n, kind=kind) is not None, (n, kind)
                for name in ('capacity', 'used', 'free'):
                    value = of(name + '_bytes', n)
                    assert (value is None) == (row['state'] == 'down'), (n, name)
                    assert value is None or name == 'free' or value == row[name], (n, name, value, row)
            said = s.get('/api/dash')['nodes']
            assert [r['node'] for r in said] == [1, 2, 101] and not any('dir' in r or 'why' in r for r in said), said
            assert [r['state'] for r in said] == ['idle', 'down' if down else 'idle', 'idle'], said
            text = s.ask('/dash').body.decode()
            assert '<section id="nodes">' in text and 'Batch[U(hash,log),R(uniform,hashed-log)]' in text
            rows = re.search(r'<tbody id="node-rows">(.*?)</tbody>', text, re.S)[1]
            assert rows.count('<tr>') == 3 and rows.count('<td>update</td>') == 1 and rows.count('<td>down</td>') == down, rows
            if not down:
                (repo / 'node2').rename(folder / 'away')
        (folder / 'away').rename(repo / 'node2')


run()
