#!/usr/bin/env python3
"""The vault in a real S3: Ceph's gateway (ceph.py), which is started once for all tests of this script. First the room
object alone, through objectcalls.c, then backup and restore. What is in the store is compared with what another client
sees there, which signs its requests by itself."""
import atexit, hashlib, signal, threading

from e2e import *
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


run()
