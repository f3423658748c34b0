#!/usr/bin/env python3
"""webbase cluster: the registry of a cluster is made and shown, in SQLite and in PostgreSQL; what cannot be is refused; no
password is shown."""
import json, socket

from e2e import *


@contextlib.contextmanager
def postgres():
    process = subprocess.Popen([ROOT / 'tests' / 'postgres'], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        yield process.stdout.readline().decode().strip()
    finally:
        process.stdin.close()
        process.wait(PATIENCE)


def make_and_show(db, folder, where):
    store = 'file://%s/store' % folder
    refused(db, 'webbase cluster init' if where else folder, 'cluster', 'status')
    for words, named in ((['--shards', '48'], 'power of two'), (['--shards', '131072'], 'power of two'),
                         (['--copies', '17'], 'copies'), (['--copies', '0'], '--copies'), (['--lease', '1s'], 'lease'),
                         (['--lease', '1h'], 'lease'), (['--history', 'sometimes'], 'sometimes')):
        refused(db, named, 'cluster', 'init', '--store', store, *words, status=2, one_line=False)
    refused(db, '--store', 'cluster', 'init', status=2, one_line=False)
    refused(db, 'ftp://x/y', 'cluster', 'init', '--store', 'ftp://x/y', status=2, one_line=False)
    refused(db, '--shards', 'cluster', 'status', '--shards', '4', status=2, one_line=False)
    refused(db, 'frobnicate', 'cluster', 'frobnicate', status=2, one_line=False)

    made = json.loads(call(db, 'cluster', 'init', '--store', store, '--shards', 4, '--copies', 2, '--lease', '3s',
                           '--history', '30d', '--json').stdout)
    assert where in made.pop('database'), made
    assert made == {'event': 'done', 'store': store, 'shards': 4, 'copies': 2, 'lease_ms': 3000, 'history': '30d'}, made
    refused(db, store, 'cluster', 'init', '--store', store)

    shown = json.loads(call(db, 'cluster', 'status', '--json').stdout)
    assert list(shown) == ['machines', 'shards', 'generation', 'problems'], shown
    assert shown['machines'] == [] and shown['generation'] == 0 and len(shown['problems']) == 1, shown
    assert shown['shards'] == [{'shard': i, 'holder': None, 'term': 0, 'copies': [], 'pages': 0, 'safe_ms': 0}
                               for i in range(4)], shown
    words = call(db, 'cluster', 'status').stdout.decode()
    assert words.startswith('! ') and '4 shards, 0 with a holder' in words and store in words, words


@test
def with_sqlite(folder):
    db = 'sqlite://%s/registry.db' % folder
    make_and_show(db, folder, '')
    (folder / 'registry.db').write_bytes(b'something else' * 1000)
    refused(db, 'registry.db', 'cluster', 'status')


@test
def with_postgresql(folder):
    with postgres() as url:
        make_and_show(url, folder, 'the PostgreSQL server at')


@test
def a_repository_is_no_database(folder):
    for words in (['-r', folder / 'r'], ['-r', 'sqlite://r.db'], ['-r', 'mysql://h/d'], []):
        refused(None, 'postgres://', 'cluster', 'status', *words, status=2, one_line=False,
                env={k: v for k, v in os.environ.items() if k != 'WEBBASE_REPO'}, cwd=folder)


@test
def no_password_is_shown(folder):
    """Neither in messages nor in the list of processes, while a server keeps the command waiting."""
    with socket.socket() as silent:
        silent.bind(('127.0.0.1', 0))
        silent.listen(5)
        host = '127.0.0.1:%d' % silent.getsockname()[1]
        url = 'postgres://web:sekret@%s/web?password=sekret' % host
        p = subprocess.Popen(command(url, 'cluster', 'status'), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        connection = silent.accept()[0]        # by now it has read its command line
        words = pathlib.Path('/proc/%d/cmdline' % p.pid).read_bytes()
        assert b'sekret' not in words and b'cluster' in words and host.encode() in words, words
        connection.close()
        silent.close()
        out, err = p.communicate(timeout=PATIENCE)
        assert p.returncode == 1 and host.encode() in err and b'sekret' not in out + err, err


run()
