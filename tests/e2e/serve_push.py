#!/usr/bin/env python3
"""POST /api/push: who may push what, what becomes of it, and what is refused without a trace."""
import base64, concurrent.futures, json, socket

from e2e import *
from serving import *

PROVIDER = 'provider-1234567890'


def repository(folder):
    repo = folder / 'r'
    call(repo, 'init', '--history', 'all')
    return repo


def serving(repo, *args):
    return Server(repo, '--push-token', PROVIDER + '=h.test', *args, token=TOKEN)


def stored(repo, url):
    p = call(repo, 'get', url, status=None)
    return p.stdout if p.returncode == 0 else None


def announced(repo):
    """The pages that are marked as pushed after the next update."""
    call(repo, 'update')
    p = call(repo, 'webdb', 'pages', '--json', status=None)     # there is no webdb if nothing was ever learnt
    return sorted(r['url'] for r in lines(p.stdout) if 'pushed' in r['flags'])


def pushed(s, body, token=PROVIDER, **counts):
    r = s.post('/api/push', body, token)
    assert r.status == 200, (r.status, r.body)
    for name, count in counts.items():
        assert r.json()[name] == count, r.body
    return r.json()


def not_pushed(s, body, status, words='', token=PROVIDER):
    r = s.post('/api/push', body, token)
    assert r.status == status and words in r.json()['error'], (r.status, r.body)


@test
def announcements_reach_webdb(folder):
    repo = repository(folder)
    with serving(repo) as s:
        pushed(s, {'host': 'h.test', 'key': 'k', 'urlList': ['http://h.test/1', 'https://sub.h.test:8443/2']},
               accepted=2, changed=2)
        pushed(s, {'changed': ['http://h.test/3'], 'gone': ['http://h.test/4']}, accepted=2, changed=1, gone=1)
        pushed(s, {'url': 'http://h.test/5#part'}, accepted=1, pages=0, stored=0)
        pushed(s, {'url': 'http://anywhere.test/6'}, token=TOKEN, accepted=1)
        # A page that is not known cannot be gone.
        assert announced(repo) == sorted(
            ['http://h.test/1', 'https://sub.h.test:8443/2', 'http://h.test/3', 'http://h.test/5',
             'http://anywhere.test/6'])
        assert s.stop() == 0


@test
def pages_become_captures(folder):
    repo, url = repository(folder), 'http://h.test/page'
    with serving(repo) as s:
        pushed(s, {'pages': [{'url': url, 'html': '<title>One</title><a href="/linked">ibex</a>',
                              'time': '2026-01-02T03:04:05Z', 'headers': {'ETag': '"1"', 'X-A': ['b', 'c']}}]},
               accepted=1, pages=1, stored=1, unchanged=0, barred=0)
        pushed(s, {'pages': [{'url': url, 'html': '<title>Two</title>'},
                             {'url': 'http://h.test/raw', 'type': 'application/x-thing; charset=koi8-r', 'status': 206,
                              'body_base64': base64.b64encode(bytes(range(256))).decode(), 'lifetime': 3}]}, stored=2)
        assert pushed(s, {'pages': [{'url': url, 'html': '<title>Two</title>'}]})['unchanged'] == 1
        assert stored(repo, url) == b'<title>Two</title>' and stored(repo, 'http://h.test/raw') == bytes(range(256))
        head = call(repo, 'get', url, '--at', '2026-01-02T03:04:05Z', '--headers').stdout.decode().splitlines()
        assert head[0] == 'HTTP/1.1 200 OK' and head[1:5] == ['ETag: "1"', 'X-A: b', 'X-A: c',
                                                              'Content-Type: text/html; charset=utf-8'], head
        assert head[5] == 'X-WebBase-Provider: h.test', head
        facts = ask(repo, 'get', 'http://h.test/raw')[0]
        assert (facts['type'], facts['charset'], facts['status']) == ('application/x-thing', 'koi8-r', 206), facts
        versions = ask(repo, 'versions', url)
        assert [v['captures'] for v in versions] == [1, 2] and versions[0]['time'] == '2026-01-02T03:04:05.000Z'
        assert s.get('/api/page', url=url)['length'] == 18
        pushed(s, {'pages': [{'url': 'http://else.test/', 'html': 'x'}]}, token=TOKEN, stored=1)
        assert b'X-WebBase-Provider: operator' in call(repo, 'get', 'http://else.test/', '--headers').stdout
    call(repo, 'update')
    assert ask(repo, 'webdb', 'page', url)[0]['status'] == 200
    assert ask(repo, 'webdb', 'page', 'http://h.test/linked')[0]['status'] in (0, None)
    verified(repo)


@test
def nothing_of_a_refused_push_is_done(folder):
    repo = repository(folder)
    good = {'url': 'http://h.test/good', 'html': 'good'}
    with serving(repo) as s:
        for foreign in ('http://other.test/', 'http://noth.test/', 'http://h.test.evil.test/', 'http://test/',
                        'http://user:h.test@evil.test/', 'http://h.test./'):
            not_pushed(s, {'urlList': ['http://h.test/good', foreign]}, 403, 'nothing was done')
            not_pushed(s, {'pages': [good, {'url': foreign, 'html': 'x'}], 'urlList': ['http://h.test/good']}, 403)
        for bad in ({'url': 'http://h.test/'}, {'url': 'http://h.test/', 'html': 'x', 'time': '2999-01-01'},
                    {'url': 'http://h.test/', 'type': 'text/html', 'body_base64': 'eA'}, 7):
            not_pushed(s, {'pages': [good, bad], 'gone': ['http://h.test/good']}, 400, 'page 2')
        not_pushed(s, {'urlList': ['http://h.test/good', 'ftp://h.test/']}, 400, 'urlList 2')
        not_pushed(s, {'urlList': ['http://h.test/%d' % i for i in range(10001)]}, 413, '10000')
        for text in (b'', b'{', b'{}', b'[]', b'null', b'\xff', b'[' * 100000, b'{"a":' * 100000,
                     b'http://h.test/good'):
            not_pushed(s, text, 400)
        not_pushed(s, b'{"x":[' + b'0,' * 2000000 + b'0]}', 413, 'values')
        not_pushed(s, {'url': 'http://h.test/good'}, 401, token=None)
        not_pushed(s, {'url': 'http://h.test/good'}, 401, token='wrong')
        assert s.ask('/api/push').status == 405
        assert s.stop() == 0
    assert announced(repo) == [] and ask(repo, 'stat')[0]['pages'] == 0


@test
def large_bodies_are_refused_unread(folder):
    repo = repository(folder)
    with serving(repo) as s:
        for head in ('Content-Length: 4000000000', 'Content-Length: %d' % ((64 << 20) + 1)):
            with socket.create_connection((s.host, s.port), timeout=PATIENCE) as c:
                c.sendall(('POST /api/push HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n%s\r\n\r\n' %
                           (PROVIDER, head)).encode())
                assert c.recv(1000).startswith(b'HTTP/1.1 413'), head
        # As large as a page can be.
        body = b'x' * (47 << 20)
        pushed(s, {'pages': [{'url': 'http://h.test/large', 'type': 'a/b',
                              'body_base64': base64.b64encode(body).decode()}]}, stored=1)
        assert stored(repo, 'http://h.test/large') == body
        not_pushed(s, {'pages': [{'url': 'http://h.test/larger', 'html': 'x' * (49 << 20)}]}, 413, 'larger')


@test
def a_takedown_holds(folder):
    repo = repository(folder)
    with serving(repo) as s:
        pushed(s, {'pages': [{'url': 'http://h.test/a', 'html': 'a'}, {'url': 'http://h.test/b', 'html': 'b'}]})
        call(repo, 'expunge', 'http://h.test/a')
        pushed(s, {'pages': [{'url': 'http://h.test/a', 'html': 'again'}, {'url': 'http://h.test/b', 'html': 'new'}]},
               stored=1, barred=1)
        assert stored(repo, 'http://h.test/a') is None and stored(repo, 'http://h.test/b') == b'new'
        call(repo, 'expunge', 'http://h.test/a', '--allow')
        pushed(s, {'pages': [{'url': 'http://h.test/a', 'html': 'again'}]}, stored=1, barred=0)


@test
def updates_read_what_a_running_server_took(folder):
    repo = repository(folder)
    with serving(repo) as s:
        for n in range(3):
            pushed(s, {'pages': [{'url': 'http://h.test/page/%d' % n, 'html': 'x'}], 'url': 'http://h.test/new/%d' % n})
            assert announced(repo) == ['http://h.test/new/%d' % i for i in range(n + 1)]
            assert ask(repo, 'webdb', 'page', 'http://h.test/page/%d' % n)[0]['status'] == 200
        # However many pushes there are, they share their logs.
        assert len(list((repo / 'journal').iterdir())) <= 3
        assert s.stop() == 0
    verified(repo)


@test
def a_token_can_have_several_hosts(folder):
    repo = repository(folder)
    with serving(repo, '--push-token', PROVIDER + '=Other.TEST', '--push-token', 'second-token=port.test:8080') as s:
        pushed(s, {'urlList': ['http://h.test/', 'http://a.other.test/']}, accepted=2)
        pushed(s, {'url': 'http://port.test:8080/'}, token='second-token', accepted=1)
        not_pushed(s, {'url': 'http://port.test/'}, 403, token='second-token')
        not_pushed(s, {'url': 'http://h.test/'}, 403, token='second-token')
    for bad in ('x', '=h.test', 'token=', 'token=a b', 'token=h.test/path', 'token=u@h.test'):
        refused(repo, '--push-token', 'serve', '--push-token', bad, status=2, one_line=False)


@test
def many_at_once_beside_an_import(folder):
    repo = repository(folder)
    random_ = rng('many')
    archive(folder / 'a.warc', some_pages(random_, 2000))
    with serving(repo) as s:
        def push(n):
            return pushed(s, {'pages': [{'url': 'http://h.test/%d/%d' % (n, i), 'html': 'page %d %d' % (n, i)}
                                        for i in range(20)], 'url': 'http://h.test/new/%d' % n}, stored=20)

        with concurrent.futures.ThreadPoolExecutor(9) as pool:
            imported = pool.submit(call, repo, 'import', folder / 'a.warc')
            list(pool.map(push, range(40)))
            imported.result()
        assert s.stop() == 0
    assert ask(repo, 'stat')[0]['pages'] == 2000 + 40 * 20
    assert len(announced(repo)) == 40
    verified(repo)


@test
def a_kill_loses_nothing_that_was_acknowledged(folder):
    repo, acknowledged = repository(folder), []
    with serving(repo) as s:
        def push(n):
            try:
                if s.post('/api/push', {'pages': [{'url': 'http://h.test/%d' % n, 'html': 'page %d' % n}]},
                          PROVIDER).status == 200:
                    acknowledged.append(n)
            except OSError:
                pass
            except http.client.HTTPException:
                pass
            if len(acknowledged) == 20:
                s.kill()

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            list(pool.map(push, range(100)))
    assert len(acknowledged) >= 20
    for n in acknowledged:
        assert stored(repo, 'http://h.test/%d' % n) == b'page %d' % n, n
    verified(repo)


@test
def floods_are_slowed_down(folder):
    repo = repository(folder)
    with serving(repo) as s:
        codes = [s.post('/api/push', b'{}', PROVIDER).status for _ in range(100)]
        assert set(codes) == {400}, codes
        for _ in range(100000):
            r = s.post('/api/push', b'{}', PROVIDER)
            if r.status == 429:
                break
        assert r.status == 429 and int(r.field('Retry-After')) >= 1, r.status
        # Others are not affected.
        pushed(s, {'url': 'http://h.test/'}, token=TOKEN)
        wait_for(lambda: s.post('/api/push', {'url': 'http://h.test/'}, PROVIDER).status == 200, 'it may push again')


@test
def the_command_takes_whole_pages_too(folder):
    repo = repository(folder)
    (folder / 'push.json').write_text(json.dumps({'pages': [{'url': 'http://any.test/', 'html': 'x'}],
                                                  'gone': ['http://any.test/old']}))
    said = done(ask(repo, 'push', folder / 'push.json'))
    assert said == {'event': 'done', 'changed': 0, 'gone': 1, 'refused': 0, 'pages': 1, 'stored': 1, 'unchanged': 0,
                    'barred': 0}, said
    assert stored(repo, 'http://any.test/') == b'x'


run()
