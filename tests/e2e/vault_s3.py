#!/usr/bin/env python3
"""The vault in a real S3: Ceph's gateway (ceph.py), which is started once for all tests of this script. First the room
object alone, through objectcalls.c, then backup and restore. What is in the store is compared with what another client
sees there, which signs its requests by itself."""
import atexit, hashlib, shutil, signal, socket, threading

from e2e import *
from powercut import exported
import ceph

CALLS = ROOT / 'build' / 'tests' / 'objectcalls'
BUCKET, MIB = 'vault', 1 << 20
NOTFOUND, INVALID, DOWN, DENIED = -6, -7, -11, -13


class Once:
    """The store, started by the first test that needs it. If it cannot start, each test fails with the reason."""

    def __init__(self):
        self.store = self.error = None

    def get(self):
        if self.error:
            raise self.error
        if not self.store:
            try:
                self.store = ceph.Ceph()
                atexit.register(self.store.end)
                self.store.bucket(BUCKET)
            except ceph.Failed as e:
                self.error = e
                raise
        return self.store


once = Once()


def store():
    return once.get()


# ---- the room object -------------------------------------------------------------------------------------------------

class Calls:
    """objectcalls, to which commands are sent. Use with `with`."""

    def __init__(self, url, patience=PATIENCE, **env):
        self.process = subprocess.Popen([CALLS, url, str(int(patience * 1000))], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, env=store().environment(**env))
        self.opened = self.answer()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.stdin.close()
        status = self.process.wait(PATIENCE)
        self.process.stdout.close()
        assert error[0] or status == (0 if self.opened[0] == 'ok' else 1), status

    def answer(self):
        """('ok', number, ...) or ('error', code, message)"""
        kind, _, rest = self.process.stdout.readline().decode().rstrip('\n').partition(' ')
        if kind == 'ok':
            return (kind, *map(int, rest.split()))
        assert kind == 'error', (kind, rest)
        code, _, message = rest.partition(' ')
        return kind, int(code), message

    def send(self, *words):
        self.process.stdin.write((' '.join(map(str, words)) + '\n').encode())
        self.process.stdin.flush()

    def ask(self, *words):
        self.send(*words)
        return self.answer()

    def ok(self, *words):
        said = self.ask(*words)
        assert said[0] == 'ok', (words, said)
        return said[1]

    def fails(self, code, *words, named=()):
        """The call fails with that code; the message has one of the words, and no key."""
        kind, got, message = self.ask(*words)
        assert (kind, got) == ('error', code), (words, kind, got, message)
        assert not named or any(w in message for w in named), (message, named)
        assert store().keys[1] not in message, message
        return message


def written(folder, name, data):
    (folder / name).write_bytes(data)
    return folder / name


def seen(key):
    """The object as another client sees it."""
    status, body = store().request('GET', BUCKET, key)
    assert status == 200, (key, status)
    return body


ODD = ('plain', 'deep/er/still', 'with blank', 'plus+plus', 'per%41cent', 'til~de', "quote'()!*", 'umläut/日本語', 'a&b=c;d,e:f@g$',
       'question?mark', 'hash#mark', 'x//y', 'a/../b', './c', '[brackets]{braces}|pipe', 'back\\slash', 'double"quote', '<less>')


@test
def prefixes_are_taken_literally(folder):
    for number, prefix in enumerate(ODD):
        data = b'under %d' % number
        with Calls('s3://%s/%s' % (BUCKET, prefix)) as calls:
            calls.ok('put', 'objects/a-1_b.c', written(folder, 'in', data))
            assert seen(prefix + '/objects/a-1_b.c') == data, prefix
            assert calls.ok('get', 'objects/a-1_b.c', folder / 'out') == len(data), prefix
            assert (folder / 'out').read_bytes() == data
            assert calls.ok('list', 'objects/', folder / 'list') == 1, prefix
            assert (folder / 'list').read_text() == 'objects/a-1_b.c %d\n' % len(data)
            assert calls.ok('size', 'objects/a-1_b.c') == len(data)
            calls.ok('delete', 'objects/a-1_b.c')
            calls.fails(NOTFOUND, 'get', 'objects/a-1_b.c', folder / 'out')
    with Calls('s3://' + BUCKET) as calls:
        calls.ok('put', 'head', written(folder, 'in', b'no prefix'))
        assert seen('head') == b'no prefix'
        calls.ok('delete', 'head')


@test
def a_prefix_is_not_that_of_another(folder):
    """vault/p and vault/prefix are two vaults."""
    with Calls('s3://%s/p' % BUCKET) as one, Calls('s3://%s/pq' % BUCKET) as two:
        one.ok('put', 'head', written(folder, 'in', b'one'))
        two.ok('put', 'head', written(folder, 'in', b'two'))
        assert one.ok('list', folder / 'list') == 1 and two.ok('list', folder / 'list') == 1
        one.ok('delete', 'head')
        assert two.ok('get', 'head', folder / 'out') == 3


@test
def ranges(folder):
    data = rng('ranges').randbytes(1000003)
    with Calls('s3://%s/ranges' % BUCKET) as calls:
        calls.ok('put', 'r', written(folder, 'in', data))
        size = len(data)
        for offset, length in ((0, 1), (0, size), (1, 2), (size - 1, 1), (size - 1, 100), (500000, 1 << 20), (12345, 65536),
                               (0, 2 * size), (size, 10)):
            want = data[offset:offset + length]
            assert calls.ok('range', 'r', offset, length, folder / 'out') == len(want), (offset, length)
            assert (folder / 'out').read_bytes() == want, (offset, length)
        calls.fails(NOTFOUND, 'range', 'none', 0, 10, folder / 'out')
        calls.ok('put', 'empty', written(folder, 'in', b''))
        assert calls.ok('size', 'empty') == 0 and calls.ok('get', 'empty', folder / 'out') == 0
        assert calls.ok('range', 'empty', 0, 10, folder / 'out') == 0


@test
def objects_of_64_mib(folder):
    data = rng('large').randbytes(64 * MIB)
    with Calls('s3://%s/large' % BUCKET) as calls:
        calls.ok('put', 'big', written(folder, 'in', data))
        assert calls.ok('size', 'big') == len(data)
        assert calls.ok('get', 'big', folder / 'out') == len(data)
        assert (folder / 'out').read_bytes() == data
        assert hashlib.sha256(seen('large/big')).digest() == hashlib.sha256(data).digest()
        assert calls.ok('range', 'big', 63 * MIB, 2 * MIB, folder / 'out') == MIB
        assert (folder / 'out').read_bytes() == data[63 * MIB:]
        calls.ok('delete', 'big')


@test
def what_was_put_last_counts(folder):
    with Calls('s3://%s/again' % BUCKET) as calls:
        for n in range(20):
            calls.ok('put', 'head', written(folder, 'in', b'%d ' % n * (20 - n)))
            assert calls.ok('get', 'head', folder / 'out') and (folder / 'out').read_bytes() == b'%d ' % n * (20 - n)


@test
def lists_have_more_than_a_page(folder):
    with Calls('s3://%s/many and+more' % BUCKET) as calls:
        calls.ok('fill', 'objects/n-', 2345, 8)
        calls.ok('fill', 'shipments/n-', 10, 2)
        names = ['objects/n-%05d' % n for n in range(2345)]
        assert calls.ok('list', 'objects/', folder / 'list') == 2345
        assert (folder / 'list').read_text() == ''.join('%s %d\n' % (n, len(n)) for n in names)
        assert calls.ok('list', folder / 'list') == 2355
        assert calls.ok('list', 'objects/n-0000', folder / 'list') == 10
        assert calls.ok('list', 'none', folder / 'list') == 0
        assert set(store().list(BUCKET, 'many and+more/objects/')) == {'many and+more/' + n for n in names}
        for n in names[::40]:
            calls.ok('delete', n)
        calls.ok('delete', names[0])        # it is gone already
        assert calls.ok('list', 'objects/', folder / 'list') == 2345 - len(names[::40])
        assert names[40] not in (folder / 'list').read_text().split()
        puts, _, deletes, lists, _ = calls.ask('counts')[1:]
        assert (puts, deletes) == (2355, len(names[::40]) + 1) and lists >= 10, (puts, deletes, lists)


@test
def what_is_wrong_for_good_is_said_at_once(folder):
    """With a patience of hours: so the test only ends if nothing is repeated."""
    source, other = written(folder, 'in', b'x'), store().user('stranger')
    wrong = (('a wrong secret', BUCKET, dict(AWS_SECRET_ACCESS_KEY='wrong-secret'), ('AWS_SECRET_ACCESS_KEY', 'secret', 'signature')),
             ('an unknown key', BUCKET, dict(AWS_ACCESS_KEY_ID='NOBODY'), ('AWS_ACCESS_KEY_ID', 'key')),
             ('no bucket', 'nobucket', {}, ('nobucket',)),
             ('no right', BUCKET, dict(AWS_ACCESS_KEY_ID=other[0], AWS_SECRET_ACCESS_KEY=other[1]), (BUCKET,)))
    for what, bucket, env, words in wrong:
        with Calls('s3://%s/wrong' % bucket, patience=1e6, **env) as calls:
            for command in (('put', 'n', source), ('get', 'n', folder / 'out'), ('list', folder / 'list'), ('delete', 'n')):
                calls.fails(DENIED, *command, named=words)
    with Calls('s3://%s/wrong' % BUCKET, patience=1e6) as calls:
        calls.fails(NOTFOUND, 'get', 'n', folder / 'out')
        calls.fails(NOTFOUND, 'size', 'n')
    assert store().list(BUCKET, 'wrong') == {}


@test
def a_gateway_that_does_not_answer(folder):
    """It is tried for as long as the caller is patient. What was put while it came back is there."""
    source = written(folder, 'in', b'patient')
    for away, back in ((store().pause, store().resume), (store().kill_gateway, store().start_gateway)):
        with Calls('s3://%s/away' % BUCKET, patience=3) as hasty, Calls('s3://%s/away' % BUCKET) as patient:
            patient.ok('put', 'before', source)
            away()
            try:
                for command in (('put', 'n', source), ('get', 'before', folder / 'out'), ('list', folder / 'list')):
                    hasty.fails(DOWN, *command, named=('s3://%s/away' % BUCKET, store().endpoint))
                patient.send('put', 'meanwhile', source)
                hasty.fails(DOWN, 'size', 'before')
            finally:
                back()
            said = patient.answer()
            assert said[0] == 'ok', said
            assert hasty.ok('get', 'meanwhile', folder / 'out') == 7
    assert seen('away/meanwhile') == b'patient'


# ---- the vault -------------------------------------------------------------------------------------------------------

def url_of(name):
    return 's3://%s/%s' % (BUCKET, name)


def backup(repo, name, *options, **env):
    """Ships once; returns the done event."""
    return done(ask(repo, 'backup', url_of(name), *options, env=store().environment(**env)))


def restored(name, folder, *options):
    """A new repository of the vault, which verify finds sound."""
    shutil.rmtree(folder, ignore_errors=True)
    end = done(ask(None, 'restore', url_of(name), folder, *options, env=store().environment()))
    assert verified(folder)['pages'] == end['pages'], end
    return folder


def env_of(**more):
    return store().environment(**more)


def noise(random_, url, size=20000, date='2026-01-02T03:04:05Z'):
    """A page that no compressor shortens, so that its bytes are in the objects as they are."""
    return Page(url, random_.randbytes(size), date, type='application/octet-stream')


def content(repo):
    return sorted(exported(repo))


class Follower:
    """backup --follow. Use with `with`; at the end SIGTERM must end it well, unless the test has ended it."""

    def __init__(self, repo, name, folder, *options, status=0):
        self.out, self.errors, self.status = folder / 'followed', folder / 'follower.errors', status
        self.out.unlink(missing_ok=True)
        with open(self.out, 'wb') as out, open(self.errors, 'ab') as errors:
            self.process = subprocess.Popen(command(repo, 'backup', url_of(name), '--follow', '--every', '0.2', '--json', *options),
                                            stdout=out, stderr=errors, env=env_of())

    def __enter__(self):
        return self

    def __exit__(self, kind, *rest):
        if self.process.poll() is None:
            heed(self.process)
            self.process.terminate()
        status = self.process.wait(PATIENCE)
        assert kind or status == self.status, (status, self.said())

    def said(self):
        return self.errors.read_text()

    def safe(self):
        """Pages that were reported to be safe; None: nothing yet."""
        return max([e['pages'] for e in lines(self.out.read_bytes()) if e['event'] == 'safe'], default=None)

    def wait_for(self, condition, what):
        end = time.time() + PATIENCE
        while not condition():
            assert self.process.poll() is None, 'backup has ended before %s: %s' % (what, self.said())
            assert time.time() < end, 'waited in vain until %s: %s' % (what, self.said())
            time.sleep(0.05)

    def wait_safe(self, pages):
        self.wait_for(lambda: (self.safe() or 0) >= pages, '%d pages are safe' % pages)

    def kill(self):
        self.process.kill()
        self.process.wait(PATIENCE)
        self.status = -signal.SIGKILL


def status(repo):
    """What stat says of the vault."""
    return ask(repo, 'stat')[0]['backup'][0]


class Gate:
    """A way to the gateway that does something at the nth request for an object. Use with `with`; .env() is for programs."""

    def __init__(self, nth, action):
        self.nth, self.action, self.count, self.lock = nth, action, 0, threading.Lock()

    def __enter__(self):
        self.listener = socket.create_server(('127.0.0.1', 0))
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def __exit__(self, *error):
        self.listener.close()

    def env(self):
        return env_of(AWS_ENDPOINT_URL='http://127.0.0.1:%d' % self.listener.getsockname()[1])

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                client = self.listener.accept()[0]
                try:
                    server = socket.create_connection(('127.0.0.1', store().port))
                except OSError:
                    client.close()
                    continue
                threading.Thread(target=self.pump, args=(client, server, True), daemon=True).start()
                threading.Thread(target=self.pump, args=(server, client, False), daemon=True).start()

    def pump(self, a, b, asks):
        with contextlib.suppress(OSError):
            while data := a.recv(1 << 16):
                if asks and b'/objects/' in data:
                    with self.lock:
                        self.count += 1
                        if self.count == self.nth:
                            self.action()
                b.sendall(data)
        for s in (a, b):
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_RDWR)


@test
def a_repository_and_what_is_new(folder):
    """Pages, versions, links, an index, a named stream: the same after a restore. What comes later costs what it is."""
    repo, random_ = folder / 'r', rng('round')
    call(repo, 'init', '--history', 'all')
    pages = some_pages(random_, 300) + [noise(random_, 'http://noise.example/%d' % n) for n in range(100)]
    call(repo, 'import', archive(folder / 'a.warc', pages))
    call(repo, 'index')
    call(repo, 'stream', '--name', 'half', '--format', 'urls', '--limit', '100')
    first = backup(repo, 'round')
    listed = store().list(BUCKET, 'round/')
    assert first['pages'] == 400 and (first['objects'], first['bytes']) == (len(listed), sum(listed.values())), (first, listed)
    copy = restored('round', folder / 'copy')
    assert content(copy) == content(repo)
    for words in (['search', 'archive', '--limit', '50'], ['webdb', 'pages'], ['snapshot', 'list']):
        said = [[{k: v for k, v in row.items() if k != 'ms'} for row in ask(r, *words)] for r in (repo, copy)]
        assert said[0] == said[1] and said[0], words
    assert backup(repo, 'round') == dict(first, objects=0, bytes=0), 'nothing was new'
    call(repo, 'import', archive(folder / 'b.warc', [Page(pages[0].url, b'newer', '2026-03-03T00:00:00Z'),
                                                     noise(random_, 'http://noise.example/new', 5000)]))
    second = backup(repo, 'round')
    assert second['pages'] == 401 and 5000 < second['bytes'] < first['bytes'] / 10, (first, second)
    assert content(restored('round', folder / 'copy')) == content(repo)
    states = ask(repo, 'backup', url_of('round'), '--list', env=env_of())
    assert [s['pages'] for s in states] == [400, 401], states
    old = restored('round', folder / 'old', '--at', states[0]['time'])
    assert ask(old, 'stat')[0]['pages'] == 400
    call(repo, 'backup', url_of('round'), '--verify', env=env_of())
    assert all(size <= 64 * MIB for size in store().list(BUCKET, 'round/').values())


@test
def killed_at_random_moments(folder):
    """backup --follow is killed again and again beside imports. What it has reported is always in a restore."""
    repo, random_, known, safe = folder / 'r', rng('kills'), {}, 0
    call(repo, 'init')
    for n in range(rounds(4, 40)):
        pages = [noise(random_, 'http://k%d.example/%d' % (n, i), 3000) for i in range(30)]
        known.update((p.url, p.body) for p in pages)
        path = archive(folder / 'k.warc', pages)
        with Follower(repo, 'kills', folder) as follower:
            importing = subprocess.Popen(command(repo, 'import', path), stdout=subprocess.DEVNULL)
            if random_.random() < 0.7:
                follower.wait_for(lambda: follower.safe() is not None, 'something is safe')
            time.sleep(random_.random() * 0.5)
            follower.kill()
            safe = max(safe, follower.safe() or 0)
            assert importing.wait(PATIENCE) == 0
        if safe:
            found = content(restored('kills', folder / 'copy'))
            assert len(found) >= safe and all(known[url] == body for url, _, body in found), (len(found), safe)
    end = backup(repo, 'kills')
    assert end['pages'] == len(known) and content(restored('kills', folder / 'copy')) == content(repo)
    call(repo, 'backup', url_of('kills'), '--verify', env=env_of())


@test
def the_gateway_stops_while_a_backup_follows(folder):
    """SIGSTOP, then kill and restart: nothing is reported that is not there, and it goes on by itself."""
    repo, random_, total = folder / 'r', rng('stops'), 0
    call(repo, 'init')
    with Follower(repo, 'stops', folder) as follower:
        for outages, (away, back) in enumerate(((store().pause, store().resume), (store().kill_gateway, store().start_gateway))):
            for step in range(2):
                if step:
                    away()
                pages = [noise(random_, 'http://s%d.example/%d' % (total, i), 3000) for i in range(20)]
                call(repo, 'import', archive(folder / 's.warc', pages))
                if step:
                    try:
                        follower.wait_for(lambda: status(repo)['failing'], 'stat says that it fails')
                        assert status(repo)['following'] and status(repo)['unsafe_since'] and status(repo)['error'], status(repo)
                        assert (follower.safe() or 0) <= total, 'reported as safe while nobody answered'
                    finally:
                        back()
                total += 20
                follower.wait_safe(total)
                follower.wait_for(lambda: not status(repo)['failing'], 'it has gone on')
                assert follower.said().count('trying again') == outages + step, 'it says once that it waits: ' + follower.said()
                assert len(content(restored('stops', folder / 'copy'))) >= total
    assert content(restored('stops', folder / 'copy')) == content(repo)


@test
def the_gateway_stops_during_a_restore(folder):
    """For a moment: then it succeeds. For good: then it gives up and leaves nothing."""
    repo, random_, copy = folder / 'r', rng('away'), folder / 'copy'
    call(repo, 'import', archive(folder / 'a.warc', [noise(random_, 'http://away.example/%d' % n, 200000) for n in range(100)]))
    call(repo, 'index')
    backup(repo, 'away')

    def pause():
        store().pause()
        threading.Timer(2, store().resume).start()

    def restart():
        store().kill_gateway()
        store().start_gateway()

    for action in (pause, restart):
        with Gate(2, action) as gate:
            shutil.rmtree(copy, ignore_errors=True)
            call(None, 'restore', url_of('away'), copy, env=gate.env())
            assert gate.count >= 2
        assert content(copy) == content(repo)
    shutil.rmtree(copy)
    try:
        with Gate(2, store().kill_gateway) as gate:
            refused(None, BUCKET, 'restore', url_of('away'), copy, env=gate.env())
            assert gate.count >= 2 and not (copy.exists() and list(copy.iterdir()))
    finally:
        store().start_gateway()
    assert content(restored('away', copy)) == content(repo)


@test
def keys_and_buckets_that_are_wrong(folder):
    repo, copy = folder / 'r', folder / 'copy'
    call(repo, 'import', archive(folder / 'a.warc', some_pages(rng('wrong'), 5)))
    before = store().list(BUCKET)
    for name, env in ((BUCKET, dict(AWS_SECRET_ACCESS_KEY='wrong-secret')), (BUCKET, dict(AWS_ACCESS_KEY_ID='NOBODY')), ('nobucket', {})):
        word = name if name == 'nobucket' else 'AWS_'
        for r, args in ((repo, ['backup', 's3://%s/x' % name]), (None, ['restore', 's3://%s/x' % name, copy]),
                        (repo, ['backup', 's3://%s/x' % name, '--follow'])):
            said = refused(r, word, *args, env=env_of(**env))
            assert store().keys[1] not in said and 'wrong-secret' not in said, said
            assert not (copy.exists() and list(copy.iterdir()))
    assert refused(None, url_of('nothing-here'), 'restore', url_of('nothing-here'), copy, env=env_of())
    assert store().list(BUCKET) == before


@test
def takedowns_reach_the_objects(folder):
    repo, random_ = folder / 'r', rng('takedown')
    pages = [noise(random_, 'http://t%d.example/%d' % (n % 3, n), 5000) for n in range(30)]
    call(repo, 'import', archive(folder / 'a.warc', pages))
    backup(repo, 'takedown')

    def lying(page):
        """Objects that have bytes of the page."""
        return [name for name in store().list(BUCKET, 'takedown/') if page.body[1000:1064] in seen(name)]

    gone, kept = pages[4], pages[5]
    assert lying(gone) and lying(kept)
    call(repo, 'expunge', gone.url)
    call(repo, 'compact')
    backup(repo, 'takedown', '--keep', '7d')
    assert not lying(gone) and lying(kept)
    copy = restored('takedown', folder / 'copy')
    assert content(copy) == content(repo) and gone.url not in {url for url, _, _ in content(copy)}
    call(repo, 'backup', url_of('takedown'), '--verify', env=env_of())


@test
def two_copies_and_one_vault(folder):
    """The second copy is refused until it takes over, then the first one is. Of two that take over at once, one is the
    owner in the end, and the vault is whole."""
    one, two, random_ = folder / 'one', folder / 'two', rng('copies')
    call(one, 'import', archive(folder / 'a.warc', some_pages(random_, 40)))
    backup(one, 'copies')
    shutil.copytree(one, two)
    call(two, 'import', archive(folder / 'b.warc', some_pages(random_, 10, 'two.example')))
    refused(two, '--take-over', 'backup', url_of('copies'), env=env_of())
    with Follower(one, 'copies', folder, status=1) as follower:
        call(one, 'import', archive(folder / 'c.warc', some_pages(random_, 10, 'one.example')))
        follower.wait_safe(50)
        backup(two, 'copies', '--take-over')
        call(one, 'import', archive(folder / 'c.warc', some_pages(random_, 10, 'later.example')))
        assert follower.process.wait(PATIENCE) == 1 and '--take-over' in follower.said(), follower.said()
    assert content(restored('copies', folder / 'copy')) == content(two)
    for n in range(rounds(3, 20)):
        for repo in (one, two):
            call(repo, 'import', archive(folder / 'd.warc', some_pages(random_, 5, '%s%d.example' % (repo.name, n))))
        both = [subprocess.Popen(command(r, 'backup', url_of('copies'), '--take-over'), stdout=subprocess.DEVNULL,
                                 stderr=subprocess.PIPE, env=env_of()) for r in (one, two)]
        said = [p.communicate(timeout=PATIENCE)[1] for p in both]
        assert all(p.returncode in (0, 1) for p in both) and any(p.returncode == 0 for p in both), said
        found = content(restored('copies', folder / 'copy'))
        assert found in [content(r) for r, p in zip((one, two), both) if p.returncode == 0], said
        # The head that arrived last may be that of the one which took over first. The other one, whose term is higher,
        # corrects that when it ships next; then it is the only owner.
        for _ in range(2):
            owners = [r for r in (one, two) if call(r, 'backup', url_of('copies'), env=env_of(), status=None).returncode == 0]
        assert len(owners) == 1, owners
        assert content(restored('copies', folder / 'copy')) == content(owners[0])
        call(owners[0], 'backup', url_of('copies'), '--verify', env=env_of())
    other = folder / 'other'
    call(other, 'import', archive(folder / 'e.warc', some_pages(random_, 5, 'other.example')))
    refused(other, url_of('copies'), 'backup', url_of('copies'), '--take-over', env=env_of())


run()
