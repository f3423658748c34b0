#!/usr/bin/env python3
"""webbase serve against hostile clients, hostile pages and damaged files: a request may fail, the server does not."""
import re, resource, shutil

from e2e import *
from serving import *

EVIL = '<script>alert(1)</script>'


def corpus(folder, count=300):
    repo = folder / 'r'
    call(repo, 'init', '--history', 'all')
    done(ask(repo, 'import', archive(folder / 'a.warc', [
        Page('http://s%d.example/p/%d' % (n % 3, n), b'<title>page %d</title><p>number%d</p>%s' % (n, n, b'word ' * 200)) for n in range(count)] + [
        Page('http://evil.example/%22%3E%3Cscript%3E', b'<title>"\'><script>alert(1)</script>&lt;b&gt;</title><p>hostile</p><script>top.location="x"</script>'
             b'<base href="//x.example/"><meta http-equiv=refresh content="0;url=http://x.example/"><img src=x onerror=alert(1)>')])))
    call(repo, 'update')
    call(repo, 'index')
    return repo


def status(answer):
    return int(answer.split(b' ', 2)[1]) if answer.startswith(b'HTTP/1.1 ') else None


@test
def malformed_requests(folder):
    random_ = rng('malformed')
    repo = corpus(folder)
    good = b'GET /api/search?q=number7 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n'
    with Server(repo) as s:
        for data, want in ((b'\r\n\r\n\r\n', 400), (b'GET\r\n\r\n', 400), (b'GET / HTTP/9.9\r\nHost: localhost\r\n\r\n', 505), (b'\x16\x03\x01\x02\x00' * 50, 400),
                           (b'GET /healthz HTTP/1.1\r\n\r\n', 400), (b'GET /' + b'a' * 70000 + b' HTTP/1.1\r\nHost: localhost\r\n\r\n', 414),
                           (b'GET /healthz HTTP/1.1\r\nHost: localhost\r\n' + b'A: b\r\n' * 200 + b'\r\n', 431),
                           (b'GET /healthz HTTP/1.1\r\nHost: localhost\r\nA: ' + b'b' * 70000 + b'\r\n\r\n', 431),
                           (b'POST /api/stream/acknowledge HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\n', 400),
                           (b'POST /api/stream/acknowledge HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n', 413)):
            got = status(s.raw(data))
            assert got == want or (want == 400 and got in (413, 501)), (data[:60], got)
        for _ in range(300):
            bad = bytearray(good)
            for _ in range(random_.randrange(1, 5)):
                at = random_.randrange(len(bad))
                bad[at:at + random_.randrange(3)] = random_.randbytes(random_.randrange(4))
            with socket.create_connection((s.host, s.port), timeout=PATIENCE) as c:
                c.sendall(bad)
                c.shutdown(socket.SHUT_WR)
                read_all(c)
        assert status(s.raw(good)) == 200


@test
def paths_and_parameters_are_only_text(folder):
    repo = corpus(folder)
    with Server(repo) as s:
        for path in ('/assets/../../token', '/assets/%2e%2e/token', '/assets//etc/passwd', '/web/file:///etc/passwd', '/../token', '//etc/passwd',
                     '/api/page?url=file:///etc/passwd', '/api/stream?sites=/etc/passwd', '/api/stream?name=../x', '/api/stream?join=../x', '/api/stream?snapshot=../x'):
            r = s.ask(path)
            assert r.status in (400, 404) and b'root:' not in r.body, (path, r.status)
        for path in ('/api/search?q=%s', '/api/page?url=http://%s', '/cdx?url=%s', '/web/http://a.example/%s', '/timemap/link/http://a.example/%s', '/nothing/%s',
                     '/api/links?dir=in&url=%s', '/cdx?url=a.example&filter=~url:%s', '/api/search?q=a&sort=%s'):
            for text in (EVIL, '"\'><svg onload=alert(1)>', 'a\r\nSet-Cookie: x=1\r\n\r\n', '\0\x7f\xff', '${7*7}{{7*7}}', "' OR 1=1 --", '%s%n' * 50, '(' * 5000, 'a' * 30000, '\u202e\ud7ff'):
                r = s.ask(path % urllib.parse.quote(text, safe=''))
                assert r.status < 500 and r.field('Set-Cookie') is None, (path, text[:20], r.status, r.body[:200])
                assert 'html' not in (r.field('Content-Type') or '') or EVIL.encode() not in r.body, path
        r = s.get('/api/search', q='hostile')['hits'][0]
        assert EVIL not in r['snippet'], r
        digits = '20260102030405'
        for path in ('/web/%s/', '/web/%sid_/'):
            r = s.ask(path % digits + 'http://evil.example/%22%3E%3Cscript%3E')
            assert r.status == 200, r.status
            policy = r.field('Content-Security-Policy')
            assert 'sandbox' in policy and 'allow-same-origin' not in policy and 'allow-top-navigation' not in policy.split(), policy
        assert s.get('/healthz') == {'ok': True}


@test
def pages_that_would_grow(folder):
    """Rewriting a page adds at most twice its size, and those who look at such pages do not keep others waiting."""
    base = b'<base href="http://x.example/%s/">' % (b'b' * 30000)
    pages = {'links': base + b'<a href=x>y</a>' * 40000, 'srcset': base + b'<img srcset="' + b'x 1x,' * 40000 + b'">',
             'css': base + b'<style>' + b'a{b:url(x)}' * 40000 + b'</style>', 'attr': base + b"<p style='a:url(x)'>" * 20000,
             'refresh': base + b'<meta http-equiv=refresh content="0;url=x">' * 20000, 'quotes': b'<p style="a:url(x);' + b"'" * 400000 + b'">',
             'srcdoc': base + b"<iframe srcdoc='<a href=x>'></iframe>" * 20000, 'sheet': b"@import 'x';" * 40000}
    repo, long = folder / 'r', 'http://grow.example/' + 'x' * 20000
    ask(repo, 'import', archive(folder / 'a.warc', [Page('http://grow.example/' + name, body, type='text/css' if name == 'sheet' else 'text/html')
                                                    for name, body in pages.items()] + [Page(long, b'<p>numberlong')]))
    call(repo, 'update')
    call(repo, 'index')
    place = '/web/20260102030405/http://grow.example/'
    with Server(repo) as s:
        for name, body in pages.items():
            r = s.ask(place + name)
            assert r.status == 200 and len(r.body) <= 4 * len(body), (name, r.status, len(r.body), len(body))
        waiting = [socket.create_connection((s.host, s.port), timeout=PATIENCE) for _ in range(24)]
        for c in waiting:
            c.sendall(b'GET %slinks HTTP/1.1\r\nHost: %s:%d\r\nConnection: close\r\n\r\n' % (place.encode(), s.host.encode(), s.port))
        assert s.get('/healthz') == {'ok': True} and s.get('/api/search', q='numberlong')['total'] == 1
        answers = [read_all(c) for c in waiting]
        assert {status(a) for a in answers} <= {200, 503}, {status(a) for a in answers}
        assert all(status(a) == 200 or b'Retry-After: ' in a for a in answers)
        for c in waiting:
            c.close()
        r = s.ask(long.replace('http:', '/web/20260102030405/http:', 1))        # its URL is not repeated in eight fields
        assert r.status == 200 and sum(len(v) for _, v in r.fields) < 2000 and len(r.body) < 10000, len(r.body)


@test
def two_thousand_idle_connections(folder):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192) if hard > 0 else 8192, hard))
    repo = corpus(folder)
    with Server(repo) as s:
        for _ in range(200):
            s.ask('/api/search?q=number7')
        files, memory = s.files(), s.memory()
        idle = [socket.create_connection((s.host, s.port), timeout=PATIENCE) for _ in range(2000)]
        for n, c in enumerate(idle):
            if n % 2:
                c.send(b'GET /api/sear')
        for _ in range(50):
            assert s.ask('/api/search?q=number7').status == 200
        for c in idle:
            c.close()
        wait_for(lambda: s.files() <= files + 10, 'the files are closed')
        for _ in range(1000):
            s.ask('/api/search?q=number8')
        assert s.files() <= files + 10 and s.memory() < memory + (64 << 20), (files, s.files(), memory, s.memory())


@test
def damaged_files_while_it_runs(folder):
    """Whatever is damaged: the process stays up, no answer is wrong, and the health check answers."""
    random_ = rng('damage')
    repo = corpus(folder)
    good = folder / 'good'
    shutil.copytree(repo, good)
    calls = ['/api/search?q=number7', '/api/page?url=http://s1.example/p/7', '/cdx?url=*.example', '/web/20260102030405id_/http://s1.example/p/7',
             '/api/versions?url=http://s1.example/p/7', '/api/links?dir=out&url=http://s1.example/p/7', '/api/stream?format=urls', '/healthz', '/api/stat']
    def show(s, path):
        try:
            r = s.ask(path)
        except (http.client.HTTPException, OSError):
            return 'cut', b''
        return r.status, re.sub(rb'"ms":[0-9.e-]+', b'', r.body)
    files = [f.relative_to(repo) for f in sorted(repo.rglob('*')) if f.is_file() and f.stat().st_size > 100 and f.name not in ('token', 'lock')]
    with Server(repo) as s:
        want = {path: show(s, path) for path in calls}
        assert all(status == 200 for status, _ in want.values()), want
    for n, name in enumerate(random_.sample(files, min(len(files), 14))):
        copy = folder / str(n)
        shutil.copytree(good, copy)
        with Server(copy) as s:
            assert show(s, calls[0]) == want[calls[0]]
            data = bytearray((copy / name).read_bytes())
            for _ in range(20):
                data[random_.randrange(len(data))] ^= 1 << random_.randrange(8)
            with open(copy / name, 'r+b') as f:
                f.write(data)
            for path in calls * 2:
                assert s.process.poll() is None, (name, path, s.process.poll(), s.errors())
                got = show(s, path)
                assert got[0] in (200, 404, 500, 503, 'cut'), (name, path, got)
                if got[0] == 200 and path.startswith(('/web/', '/api/page')):      # what is shown is what was stored
                    assert got == want[path], (name, path, got)
            assert s.process.poll() is None, (name, s.errors())
            assert s.ask('/api/openapi.json').status == 200
        shutil.rmtree(copy)


run()
