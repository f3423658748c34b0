#!/usr/bin/env python3
"""serve --replay-listen, as programs see it: whose origin is whose, redirects, ranges, cookies, types, and who is let in."""
import re, socket

from e2e import Page, archive, ask, call, command, run, test
from serving import Server

TIME, SITE = '20260102030405', 'https://www.a-b.example'
LABELS = TIME + '-https-www-a--b-example'


class Replaying(Server):
    """A server with a second address: .base is its name, and at() asks an origin below it."""

    def start(self):
        super().start()
        while not self.out:
            assert self.process.poll() is None, self.errors()
        found = re.fullmatch(r'replaying at (https?)://(.*)/\n', self.out[0])
        assert found, self.out
        self.base, self.main = found[2], self.port
        return self

    def ask_at(self, host, path, method='GET', **fields):
        """Asks the second address under a host; fields: Sec_Fetch_Dest='iframe'."""
        self.port = self.replay_port
        try:
            return self.ask(path, method, {'Host': host, **{k.replace('_', '-'): v for k, v in fields.items()}})
        finally:
            self.port = self.main

    @property
    def replay_port(self):
        return int(self.base.rpartition(':')[2])

    def at(self, labels, path, method='GET', **fields):
        return self.ask_at('%s.%s' % (labels, self.base), path, method, **fields)


def reachable(port):
    with socket.socket() as s:
        return s.connect_ex(('127.0.0.1', port)) == 0


def stored(folder, *pages):
    call(folder / 'r', 'init', '--history', 'all')
    ask(folder / 'r', 'import', archive(folder / 'a.warc', pages))
    return folder / 'r'


def serving(repo, *args):
    return Replaying(repo, '--replay-listen', '127.0.0.1:0', *args)


@test
def hosts_are_read_strictly(folder):
    with serving(stored(folder, Page(SITE + '/', b'<p>stored', '2026-01-02T03:04:05Z'))) as s:
        page = s.at(LABELS, '/', Sec_Fetch_Dest='iframe')
        assert page.status == 200 and b'<p>stored' in page.body and b'/-webbase-/client.js' in page.body, page.body
        for labels in (LABELS.upper(), LABELS + '-', 'x.' + LABELS, TIME + '-https-www.a-b.example', TIME + '-https443-www-a--b-example',
                       '20261302030405-https-a-example', TIME + '-file-a-example', TIME, 'www'):
            assert s.at(labels, '/', Sec_Fetch_Dest='iframe').status == 400, labels
        for host in ('evil.example', 'evil.example:%d' % s.replay_port, LABELS + '.evil.example', LABELS + '.localhost:1', LABELS + '.localhost',
                     'localhost.evil.example:%d' % s.replay_port, 'archive'):
            assert s.ask_at(host, '/').status == 421, host
        # Neither address serves what is the other's.
        for path in ('/', '/dash', '/api/stat', '/assets/webbase.css', '/metrics', '/healthz', '/cdx?url=x'):
            reply = s.at(LABELS, path)
            assert reply.status == (200 if path == '/' else 404), (path, reply.status)
            assert s.ask_at(s.base, path).status == (200 if path == '/' else 404), path
        for name in (LABELS + '.' + s.base, LABELS + '.localhost:%d' % s.main):
            assert s.ask('/', headers={'Host': name}).status == 421 and s.ask('/web/%s/%s/' % (TIME, SITE), headers={'Host': name}).status == 421
        assert s.at(LABELS, '/', 'DELETE').status == 405 and s.ask_at(s.base, '/', 'POST').status == 405


@test
def the_plain_name_leads_to_the_stage(folder):
    with serving(stored(folder, Page(SITE + '/', b'<p>stored', '2026-01-02T03:04:05Z'))) as s:
        path = '/web/%s/%s/' % (TIME, SITE)
        for host in (s.base, '127.0.0.1:%d' % s.replay_port):
            program = s.ask_at(host, path)
            assert program.status == 200 and "script-src 'none'" in program.field('Content-Security-Policy'), program.fields
            browser = s.ask_at(host, path, Sec_Fetch_Dest='document')
            assert browser.status == 302 and browser.field('Location') == 'http://127.0.0.1:%d%s' % (s.main, path), browser.fields
        assert all(reachable(port) for port in (s.main, s.replay_port))
        alone = s.at(LABELS, '/x?y', Sec_Fetch_Dest='document')
        assert alone.status == 302 and alone.field('Location') == 'http://127.0.0.1:%d/web/%s/%s/x?y' % (s.main, TIME, SITE)
        old = s.at(LABELS, '/', User_Agent='Mozilla/5.0')   # it does not say what it asks for: no scripts
        assert old.status == 200 and "script-src 'none'" in old.field('Content-Security-Policy')
        stage = s.ask(path, headers={'Sec-Fetch-Dest': 'document'})
        assert 'src="http://%s.%s/"' % (LABELS, s.base) in stage.body.decode(), stage.body
        assert 'allow-same-origin' in stage.body.decode() and 'allow-top' not in stage.body.decode() and 'allow-popups' not in stage.body.decode()
        elsewhere = s.ask(path, headers={'Sec-Fetch-Dest': 'document', 'Host': 'archive'})   # a machine that localhost does not lead to
        assert 'src="/web/%smp_/%s/"' % (TIME, SITE) in elsewhere.body.decode() and 'allow-scripts' not in elsewhere.body.decode()

    assert not any(reachable(port) for port in (s.main, s.replay_port))   # it was stopped by SIGTERM


@test
def only_origins_of_replay_may_read(folder):
    with serving(stored(folder, Page(SITE + '/', b'<p>stored', '2026-01-02T03:04:05Z'))) as s:
        ours = 'http://%s-https-other-example.%s' % (TIME, s.base)
        for origin, allowed in ((ours, True), ('http://localhost:%d' % s.replay_port, False), ('null', False), ('https://evil.example', False),
                                (ours.replace('http:', 'https:'), False), (ours + '.evil.example', False), ('http://127.0.0.1:%d' % s.main, False),
                                ('http://x.%s' % s.base, False)):
            for method in ('GET', 'OPTIONS'):
                reply = s.at(LABELS, '/', method, Origin=origin, Sec_Fetch_Dest='empty')
                assert reply.field('Access-Control-Allow-Origin') == (origin if allowed else None), (origin, reply.fields)
                assert allowed or reply.field('Access-Control-Allow-Credentials') is None
            assert s.ask('/api/stat', headers={'Origin': origin}).field('Access-Control-Allow-Origin') is None
        preflight = s.at(LABELS, '/', 'OPTIONS', Origin=ours, Access_Control_Request_Headers='x-mine')
        assert preflight.status == 204 and preflight.field('Access-Control-Allow-Headers') == 'x-mine'


@test
def redirects_stay_at_their_time(folder):
    moved = lambda url, to, status=301: Page(url, b'moved', status='%d Moved' % status, headers=['Location: ' + to])
    with serving(stored(folder, moved('http://www.a-b.example/', SITE + '/'), moved(SITE + '/a', '/a/', 308), moved(SITE + '/out', 'https://other.example:8443/x#y', 307),
                        moved(SITE + '/loop', SITE + '/loop'), Page(SITE + '/a/', b'<a href=x>', '2026-01-02T03:04:06Z'),
                        Page(SITE + '/', b'front', '2026-01-02T03:04:07Z'))) as s:
        def leads(labels, path):
            reply = s.at(labels, path, Sec_Fetch_Dest='iframe')
            return reply.status, reply.field('Location')
        assert leads(TIME + '-http-www-a--b-example', '/') == (301, 'http://%s.%s/' % (LABELS, s.base))
        assert leads(LABELS, '/') == (200, None)
        assert leads(LABELS, '/a') == (308, 'http://%s.%s/a/' % (LABELS, s.base))
        assert leads(LABELS, '/a/') == (200, None)
        assert leads(LABELS, '/out') == (307, 'http://%s-https8443-other-example.%s/x#y' % (TIME, s.base))
        assert leads(LABELS, '/loop') == (301, None)
        to = s.at(LABELS, '/-webbase-/to/https://%s.example/x' % ('l' * 50), Sec_Fetch_Dest='empty')
        assert to.status == 307 and re.match(r'http://l{50}\.example\.%s-https--[0-9a-f]{32}\.' % TIME, to.field('Location')), to.fields
        long = re.match(r'http://(.*)\.%s/x$' % re.escape(s.base), to.field('Location'))[1]
        assert s.at(long, '/x', Sec_Fetch_Dest='iframe').status == 404 and s.at(long.replace('l.', 'm.'), '/x').status == 400


@test
def bytes_types_and_cookies(folder):
    when = '2026-01-02T03:04:05Z'
    with serving(stored(folder, Page(SITE + '/film', bytes(range(256)) * 40, when, type='video/mp4'), Page(SITE + '/typeless', b'alert(1)', when, type='text/plain'),
                        Page(SITE + '/big.txt', b'word ' * 2000, when, type='text/plain'),
                        Page(SITE + '/c', b'<p>c', when, headers=['Set-Cookie: id=1; Domain=.example; Expires=Wed, 21 Oct 2015 07:28:00 GMT; Path=/p; HttpOnly; SameSite=Strict']))) as s:
        part = s.at(LABELS, '/film', Range='bytes=10-19', Sec_Fetch_Dest='video')
        assert part.status == 206 and part.body == bytes(range(10, 20)) and part.field('Content-Range') == 'bytes 10-19/10240', part.fields
        assert s.at(LABELS, '/film', Range='bytes=99999-').status == 416
        head = s.at(LABELS, '/film', 'HEAD')
        assert head.status == 200 and head.field('Content-Length') == '10240' and head.body == b''
        assert s.at(LABELS, '/big.txt', Accept_Encoding='gzip').field('Content-Encoding') == 'gzip'
        assert s.at(LABELS, '/typeless', Sec_Fetch_Dest='script').field('Content-Type').startswith('text/javascript')
        assert s.at(LABELS, '/typeless', Sec_Fetch_Dest='iframe').field('Content-Type').startswith('text/plain')
        cookie = s.at(LABELS, '/c', Sec_Fetch_Dest='iframe')
        assert cookie.field('Set-Cookie') == 'id=1; Path=/p; HttpOnly; Secure; SameSite=None; Partitioned', cookie.fields
        assert cookie.field('Memento-Datetime') == 'Fri, 02 Jan 2026 03:04:05 GMT'
        again = s.at(LABELS, '/c', Sec_Fetch_Dest='iframe', If_None_Match=cookie.field('ETag'))
        assert again.status == 304
        assert s.at(LABELS, '/c', Service_Worker='script').status == 403
        missing = s.at(LABELS, '/none', Sec_Fetch_Dest='iframe')
        assert missing.status == 404 and b'Not in the archive' in missing.body and 'sandbox' in missing.field('Content-Security-Policy')
        # A browser would complain about a style sheet or a script of another type, as it did not about the live page.
        for dest, kind in (('style', 'text/css'), ('script', 'text/javascript'), ('worker', 'text/javascript')):
            for file in (s.at(LABELS, '/none', Sec_Fetch_Dest=dest),
                         s.ask('/web/%s/%s/none' % (TIME, SITE), headers={'Sec-Fetch-Dest': dest})):
                assert (file.status, file.field('Content-Type'), file.body) == (404, kind, b''), (file.status, file.fields)
        assert s.at(LABELS, '/none', Sec_Fetch_Dest='empty').field('Content-Type') == 'application/json'
        sent = s.at(LABELS, '/c', 'POST', Sec_Fetch_Dest='iframe')
        assert sent.status == 404 and b'What forms sent' in sent.body
        main = s.ask('/web/%s/%s/none' % (TIME, SITE), headers={'Sec-Fetch-Dest': 'document'})
        assert main.status == 404 and b'Not in the archive' in main.body and b'href="%s/none"' % SITE.encode() in main.body


@test
def a_name_behind_a_proxy(folder):
    repo = stored(folder, Page(SITE + '/', b'<p>stored', '2026-01-02T03:04:05Z'))
    with serving(repo, '--replay-host', 'https://replay.example', '--allow-host', 'archive.example') as s:
        assert s.base == 'replay.example'
        stage = s.ask('/web/%s/%s/' % (TIME, SITE), headers={'Sec-Fetch-Dest': 'document', 'Host': 'archive.example'})
        assert 'src="https://%s.replay.example/"' % LABELS in stage.body.decode()
        assert 'frame-src https://*.replay.example;' in stage.field('Content-Security-Policy')
    def bad(*args):
        p = call(repo, 'serve', '--listen', '127.0.0.1:0', *args, status=None)
        assert p.returncode, args
        return p.stderr.decode()
    assert 'needs --replay-listen' in bad('--replay-host', 'replay.example')
    for name in ('http://[::1]', '127.0.0.1', 'a/b', 'x' * 70 + '.example'):
        assert '--replay-host' in bad('--replay-listen', '127.0.0.1:0', '--replay-host', name), name
    assert "not 'nowhere'" in bad('--replay-listen', 'nowhere')


run()
