#!/usr/bin/env python3
"""clients/python: the calls of the manual, streams through servers that are killed, errors, and what is sent again."""
import http.server, itertools, re, socketserver, sqlite3, threading

from e2e import *
from serving import *

sys.path.insert(0, str(ROOT / 'clients/python'))
import webbase


def repository(folder):
    repo = folder / 'r'
    call(repo, 'init', '--history', 'all')
    copied = ' '.join('an example page of many words, number %d' % n for n in range(60))
    for k in range(3):
        done(ask(repo, 'import', archive(folder / ('%d.warc' % k), [
            Page('http://example.com/', b'<html lang=en><title>Example</title><p>An example page, state %d. <a href="/old">old</a> <a href="/b?c=d">b</a>' % k, '2026-01-0%dT00:00:00Z' % (k + 1)),
            Page('http://example.com/b?c=d', b'<title>b</title><p>See the <a href="http://example.com/">example</a>', '2026-01-0%dT00:00:00Z' % (k + 1)),
            Page('http://example.com/old', ('<title>Old</title><p>%s.' % copied).encode()), Page('http://example.com/copy', ('<title>Copy</title><p>%s.' % copied).encode())])))
    call(repo, 'update')
    call(repo, 'index')
    return repo


def sections(path):
    """[(heading, [(language, code)])] of a document."""
    found = [('', [])]
    text = path.read_text()
    for mark in re.finditer(r'(?m)^##+ (.*)$|^```(\w*)\n((?:.*\n)*?)```$', text):
        if mark[1]:
            found.append((mark[1], []))
        else:
            found[-1][1].append((mark[2], mark[3]))
    return found


@test
def the_examples_of_the_manual_work(folder):
    repo, names, ran = repository(folder), {}, 0
    with Server(repo, '--push-token', 's3cret-of-example=example.org', token=TOKEN) as s, contextlib.chdir(folder):
        for document in (ROOT / 'docs/http.md', ROOT / 'clients/python/README.md'):
            for heading, blocks in sections(document):
                for language, code in blocks:
                    if language != 'python':
                        continue
                    code = code.replace('http://127.0.0.1:8080', s.url).replace('"TOKEN"', repr(TOKEN))
                    with contextlib.redirect_stdout(sys.stderr):
                        exec(compile(code, '%s, %s' % (document.name, heading), 'exec'), names)
                    ran += 1
                    names['client'] = webbase.Client(s.url, TOKEN)      # as it was made at the top
        assert ran > 20 and names['seen'] > 0 and names['first'].body != names['newest'].body
        assert (folder / 'pages.warc.gz').stat().st_size > 500
        assert sqlite3.connect(folder / 'pages.db').execute('SELECT COUNT(*) FROM pages').fetchone()[0] == s.ask('/api/stream', format='urls').body.count(b'\n')
    # Every call has an example.
    for heading, blocks in sections(ROOT / 'docs/http.md'):
        if re.match(r'(GET|POST) ', heading) and heading != 'GET /cdx/search/cdx':
            assert any(language == 'python' for language, _ in blocks), '%s has no example in Python' % heading


@test
def the_commands_of_the_manual_work(folder):
    """Each block of a shell session with curl prints what the manual says."""
    repo, ran = repository(folder), 0
    with Server(repo, '--push-token', 's3cret-of-example=example.org') as s:
        for heading, blocks in sections(ROOT / 'docs/http.md'):
            for language, code in blocks:
                commands = re.findall(r'(?m)^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)', code)
                for line, printed in commands:
                    if line.startswith('curl'):
                        p = subprocess.run(['sh', '-ec', line.replace('http://127.0.0.1:8080', s.url)], capture_output=True, text=True, timeout=PATIENCE)
                        assert p.returncode == 0 and json.loads(p.stdout) == json.loads(printed), (heading, p)
                        ran += 1
    assert ran >= 1


# ---- streams ---------------------------------------------------------------------------------------

def large(folder, random_, count=3000):
    repo = folder / 'r'
    call(repo, 'init')
    done(ask(repo, 'import', archive(folder / 'a.warc', [
        Page('http://s%d.example/%d' % (n % 7, n), b'<title>%d</title><p>%s' % (n, random_.randbytes(1500).hex().encode())) for n in range(count)])))
    call(repo, 'update')
    call(repo, 'index')
    return repo, ['http://s%d.example/%d' % (n % 7, n) for n in range(count)]


@test
def a_stream_through_a_server_that_is_killed(folder):
    """kill -9 in the middle, again and again: every page exactly once, without a name and with one."""
    random_ = rng('kills')
    repo, want = large(folder, random_)
    interruptions = 0
    with Server(repo) as s:
        for selection in (dict(), dict(order='-url'), dict(name='nightly'), dict(name='all', latest=True)):
            places, got = [random_.randrange(1, 200), *random_.sample(range(200, len(want)), 3)], []
            with webbase.Client(s.url).stream(**selection) as stream:
                for record in stream:
                    got.append(record['url'])
                    if len(got) in places:
                        s.kill()
                        s.start()
                    if selection.get('name') and random_.random() < 0.01:
                        stream.commit()
                if selection.get('name'):
                    stream.commit()
                interruptions += stream.interruptions
            assert len(got) == len(want) and set(got) == set(want), (selection, len(got), len(set(got)))
        assert interruptions >= 1, 'the buffers hold less than the rest of a stream'
        for name in ('nightly', 'all'):
            assert list(webbase.Client(s.url).stream(name=name)) == [], name


CONSUMER = '''
import sqlite3, sys
sys.path.insert(0, %r)
import webbase
db = sqlite3.connect('out.db')
db.executescript('CREATE TABLE IF NOT EXISTS pages (url TEXT); CREATE TABLE IF NOT EXISTS place (token TEXT);')
place = db.execute('SELECT token FROM place').fetchone()
with webbase.Client(sys.argv[1]).stream(resume=place and place[0]) as stream:
    for n, record in enumerate(stream):
        db.execute('INSERT INTO pages VALUES (?)', (record['url'],))
        if n %% 50 == 49:
            db.execute('DELETE FROM place')
            db.execute('INSERT INTO place VALUES (?)', (stream.token,))
            db.commit()
    db.commit()
'''


@test
def a_consumer_that_is_killed(folder):
    """It keeps the token with its data, so nothing comes twice; the server dies meanwhile, too."""
    random_ = rng('consumer')
    repo, want = large(folder, random_)
    (folder / 'consumer.py').write_text(CONSUMER % str(ROOT / 'clients/python'))

    def kept():
        with contextlib.suppress(sqlite3.OperationalError), contextlib.closing(sqlite3.connect(folder / 'out.db')) as db:
            return [u for u, in db.execute('SELECT url FROM pages')]
        return []
    with Server(repo) as s:
        for at in sorted(random_.sample(range(50, len(want) - 500), 3)):
            p = subprocess.Popen([sys.executable, 'consumer.py', s.url], cwd=folder)
            wait_for(lambda: len(kept()) >= at or p.poll() is not None, 'the consumer got some')
            p.kill()
            p.wait(PATIENCE)
            s.kill()
            s.start()
        subprocess.run([sys.executable, 'consumer.py', s.url], cwd=folder, check=True, timeout=PATIENCE)
        got = kept()
        assert len(got) == len(want) and set(got) == set(want), (len(got), len(set(got)))


@test
def batches_are_repeated_only_if_they_failed(folder):
    random_ = rng('batches')
    repo, want = large(folder, random_, 700)
    with Server(repo) as s:
        client, got = webbase.Client(s.url), []
        with contextlib.suppress(ZeroDivisionError), client.stream(name='b') as stream:
            for n, batch in enumerate(stream.batches(100)):
                if n == 3:
                    1 / 0
                got += [r['url'] for r in batch]
        assert len(got) == 300
        with client.stream(name='b') as stream:
            for batch in stream.batches(100):
                got += [r['url'] for r in batch]
        assert len(got) == 700 and set(got) == set(want)
        with client.stream(name='b') as stream:
            assert list(stream) == []
        with client.stream() as stream:
            next(stream)
            try:
                stream.commit()
                raise AssertionError('a stream without a name was committed')
            except ValueError:
                pass


# ---- lists, errors, repetition ----------------------------------------------------------------------

@test
def lists_are_read_as_they_are_used(folder):
    random_ = rng('lists')
    repo, want = large(folder, random_, 300)
    with Server(repo) as s:
        client = webbase.Client(s.url)

        def asked(path):
            return int(re.search(r'_count\{path="%s"\} (\d+)' % path, client.metrics())[1])
        assert len(list(itertools.islice(client.search('type:text/html'), 5))) == 5
        assert asked('/api/search') == 1
        hits = list(client.search('type:text/html'))
        assert len(hits) == 300 == len({h['url'] for h in hits}) and [h['rank'] for h in hits] == list(range(1, 301))
        assert len(list(client.search('type:text/html', limit=150))) == 150
        webbase.client.CAPTURES_STEP = 70
        assert sorted(c['url'] for c in client.captures('example', matchType='domain')) == sorted(want)
        assert len(list(client.captures('example', matchType='domain', limit=7, reverse=True))) == 7
        assert client.get('http://s1.example/1').body.startswith(b'<title>1</title>')


@test
def errors_have_the_words_of_the_server(folder):
    repo = repository(folder)
    with Server(repo, token=TOKEN) as s:
        client, wrong = webbase.Client(s.url), webbase.Client(s.url, 'wrong-token-1234')
        for kind, status, word, what in (
                (webbase.NotFound, 404, 'nowhere.example', lambda: client.page('http://nowhere.example/')),
                (webbase.BadRequest, 400, 'dir', lambda: list(client.links('http://example.com/', 'up'))),
                (webbase.BadRequest, 400, 'nosuch', lambda: list(client.captures('example.com', nosuch=1))),
                (webbase.Denied, 401, 'token', lambda: client.push(changed=['http://a.example/'])),
                (webbase.Denied, 401, 'token', lambda: wrong.expunge('http://a.example/')),
                (webbase.BadRequest, 400, 'token', lambda: next(client.stream(resume='abc')))):
            try:
                what()
                raise AssertionError('no error: ' + word)
            except webbase.ApiError as error:
                assert type(error) is kind and error.status == status and word in str(error), (type(error), error.status, error)
        gone = webbase.Client('http://127.0.0.1:%d' % s.port, patience=0.5)
    try:
        gone.stat()
        raise AssertionError('there was no server')
    except webbase.ConnectionLost as error:
        assert '127.0.0.1' in str(error), error
    for url in ('ftp://x', 'nothing', ''):
        try:
            webbase.Client(url)
            raise AssertionError(url)
        except ValueError:
            pass


@test
def what_cannot_be_read_is_said(folder):
    """Lists end with an exception, streams deliver everything else and end, whatever is damaged."""
    repo = folder / 'r'
    pages = [Page('http://a.example/%s' % n, bytes(random.Random(n).randbytes(3000)), '2026-01-02T00:00:00Z', type='text/plain') for n in range(60)]
    done(ask(repo, 'import', archive(folder / 'a.warc', pages[:30])))
    done(ask(repo, 'import', archive(folder / 'b.warc', pages[30:])))
    call(repo, 'update')
    call(repo, 'index')
    segment = sorted(repo.glob('pages/*.seg'))[0]
    raw = bytearray(segment.read_bytes())
    raw[30000] ^= 1
    segment.write_bytes(raw)
    with Server(repo) as s:
        client, got = webbase.Client(s.url), []
        try:
            for capture in client.captures('a.example', matchType='host'):
                got.append(capture['url'])
            raise AssertionError('nothing was said')
        except webbase.Incomplete as error:
            assert 0 < error.left_out < 60 and len(got) == 60 - error.left_out and 'could not be read' in str(error), error
        streamed = []
        with contextlib.suppress(webbase.Incomplete), client.stream() as stream:
            for record in stream:
                streamed.append(record['url'])
        assert sorted(streamed) == sorted(got) and stream.interruptions >= 1, (len(streamed), len(got))
        try:
            client.get(next(p.url for p in pages if p.url not in got))
            raise AssertionError('nothing was said')
        except webbase.ApiError as error:
            assert error.status == 500, error


class Moody(http.server.BaseHTTPRequestHandler):
    """Answers as its list of moods says; the real server cannot be made to."""
    protocol_version, moods, seen, released = 'HTTP/1.1', [], [], threading.Event()

    def answer(self):
        self.rfile.read(int(self.headers.get('Content-Length') or 0))
        self.seen.append(self.command + ' ' + self.path)
        mood = self.moods.pop(0)
        if mood == 'silence':
            self.released.wait(PATIENCE)
        if mood in ('hang up', 'silence'):
            self.close_connection = True
            return
        body = b'{"ok":true}' if mood in ('ok', 'cut') else b'{"error":"not now"}'
        self.send_response(200 if mood in ('ok', 'cut') else mood)
        if mood in (429, 503):
            self.send_header('Retry-After', '0')
        self.send_header('Content-Length', str(len(body) + (mood == 'cut')))
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = True

    do_GET = do_POST = answer

    def log_message(self, *_):
        pass


@test
def only_what_reads_is_sent_again(folder):
    class Threaded(socketserver.ThreadingMixIn, http.server.HTTPServer):
        daemon_threads = True
    with Threaded(('127.0.0.1', 0), Moody) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        client = webbase.Client('http://127.0.0.1:%d' % server.server_port, patience=30)

        def tried(moods, what):
            Moody.moods, Moody.seen[:] = list(moods), []
            try:
                result = what()
            except webbase.WebBaseError as error:
                result = error
            end = time.monotonic() + PATIENCE
            while not Moody.seen and time.monotonic() < end:     # the client can give up before the server looks
                time.sleep(0.01)
            return result, len(Moody.seen)
        assert tried([503, 429, 'hang up', 'cut', 'ok'], client.healthy) == (True, 5)
        for mood, kind in ((503, webbase.Unavailable), (429, webbase.Unavailable), ('hang up', webbase.ConnectionLost), ('cut', webbase.ConnectionLost)):
            result, times = tried([mood, 'ok'], lambda: client.push(changed=['http://a.example/']))
            assert type(result) is kind and times == 1, (mood, result, times)
        result, times = tried([500, 'ok'], client.healthy)
        assert type(result) is webbase.ApiError and str(result) == 'not now' and times == 1
        result, times = tried([503] * 3, webbase.Client('http://127.0.0.1:%d' % server.server_port, patience=-1).healthy)
        assert type(result) is webbase.Unavailable and times == 1
        hasty = webbase.Client('http://127.0.0.1:%d' % server.server_port, timeout=2)    # enough for a busy machine to answer
        assert tried(['silence', 'ok'], hasty.healthy) == (True, 2)
        result, times = tried(['silence', 'ok'], lambda: hasty.push(gone=['http://a.example/']))
        assert type(result) is webbase.ConnectionLost and times == 1
        Moody.released.set()
        server.shutdown()


@test
def its_version_is_that_of_the_program(folder):
    version = call(None, '--version').stdout.decode().split()[1]
    assert webbase.__version__ == version and 'version = "%s"' % version in (ROOT / 'clients/python/pyproject.toml').read_text()
    for path in (ROOT / 'clients/python/webbase').glob('*.py'):
        compile(path.read_text(), str(path), 'exec')


run()
