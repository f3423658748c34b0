#!/usr/bin/env python3
"""kill -9 and signals at random moments, with several processes at once: everything that was acknowledged is there."""
import shutil, signal, subprocess, threading, time

from e2e import *

ROUNDS = rounds(9, 30)


class Big:
    """An archive that takes a while to import, and the MD5 of its pages by URL."""

    def __init__(self, path, random_, count, host='big'):
        self.path, self.md5 = path, {}
        paragraphs = [html(random_, 150) for _ in range(100)]
        with open(path, 'wb') as f:
            for i in range(count):
                page = Page('http://%s%d.example/p/%d' % (host, i * 20 // count, i),
                            b'<p>%d</p>' % i + random_.choice(paragraphs) + random_.choice(paragraphs))
                self.md5[page.url] = hashlib.md5(page.body).hexdigest()
                f.write(page.record())


def start(repo, out, *args):
    with open(out, 'wb') as f:
        return subprocess.Popen(command(repo, *args), stdout=f, stderr=subprocess.DEVNULL)


def promised(out):
    return max([e['pages'] for e in lines(out.read_bytes()) if e['event'] == 'commit'], default=0)


def assert_kept(repo, folder, big, least):
    assert verified(repo)['pages'] >= least
    out = folder / 'kept.warc'
    end = done(ask(repo, 'export', '--warc', out, '--force'))
    assert end['pages'] >= least, (end, least)
    data, at, seen = out.read_bytes(), 0, 0
    while at < len(data):
        head_end = data.index(b'\r\n\r\n', at)
        head = dict(line.split(b': ', 1) for line in data[at:head_end].split(b'\r\n')[1:])
        length = int(head[b'Content-Length'])
        block = data[head_end + 4:head_end + 4 + length]
        if head[b'WARC-Type'] == b'response':
            body = block.partition(b'\r\n\r\n')[2]
            assert big.md5[head[b'WARC-Target-URI'].decode()] == hashlib.md5(body).hexdigest(), head
            seen += 1
        at = head_end + 4 + length + 4
    assert seen == end['pages']


@test
def killed_at_random_moments(folder):
    random_ = rng('kill')
    big = Big(folder / 'big.warc', random_, 24000)
    archive(folder / 'few.warc', some_pages(random_, 5))
    began = time.time()
    call(folder / 'timing', 'import', big.path)
    seconds, killed, acknowledged = time.time() - began, 0, 0
    shutil.rmtree(folder / 'timing')
    repo = folder / 'r'
    for n in range(ROUNDS):
        p = start(repo, folder / 'out', 'import', big.path, '--json')
        try:
            p.wait(random_.uniform(0, 0.02) if n % 10 == 0 else seconds * random_.uniform(0.05, 1.0))
        except subprocess.TimeoutExpired:
            killed += 1
        else:
            seconds *= 0.8      # the machine was busier when this was timed
        p.kill()
        p.wait()
        least = promised(folder / 'out')
        acknowledged += least > 0
        if call(repo, 'stat', status=None).returncode == 0:
            assert_kept(repo, folder, big, least)
        else:
            # It was killed while it created the repository. Nothing was acknowledged, and the next import creates it.
            assert least == 0
            call(repo, 'import', folder / 'few.warc')
            assert verified(repo)['pages'] == 5
            shutil.rmtree(repo)
        # Most rounds start from nothing; some continue where the last one was killed.
        if n % 3 != 2:
            shutil.rmtree(repo, ignore_errors=True)
    print('# %d of %d imports killed, %d of them after a commit' % (killed, ROUNDS, acknowledged))
    assert killed >= ROUNDS // 3
    end = done(ask(repo, 'import', big.path))
    assert end['errors'] == 0 and ask(repo, 'stat')[0]['pages'] == len(big.md5)
    assert_kept(repo, folder, big, len(big.md5))


@test
def killed_while_compacting(folder):
    random_ = rng('compact')
    repo, urls = folder / 'r', ['http://c%d.example/%d' % (i % 7, i) for i in range(3000)]
    for day in (1, 2):
        bodies = {u: b'%d %s ' % (day, u.encode()) + random_.randbytes(3000) for u in urls[::day]}
        archive(folder / 'a.warc', [Page(u, b, '2026-01-0%dT00:00:00Z' % day) for u, b in bodies.items()])
        call(repo, 'import', folder / 'a.warc')
    before = ask(repo, 'stat')[0]
    for n in range(rounds(5, 10)):
        p = start(repo, folder / 'out', 'compact')
        time.sleep(random_.uniform(0, 0.1))
        p.kill()
        p.wait()
        assert verified(repo)['pages'] == len(urls)
    call(repo, 'compact')
    after = ask(repo, 'stat')[0]
    assert after['pages'] == len(urls) and after['bytes_stored'] < before['bytes_stored'], (before, after)
    for u, body in random_.sample(sorted(bodies.items()), 20):
        assert call(repo, 'get', u).stdout == body


@test
def signals_stop_cleanly(folder):
    random_ = rng('signals')
    big = Big(folder / 'big.warc', random_, 24000)
    for number in (signal.SIGTERM, signal.SIGINT):
        repo = folder / ('r%d' % number)
        p = start(repo, folder / 'out', 'import', *[big.path] * 20, '--json')
        while promised(folder / 'out') == 0 and p.poll() is None:
            time.sleep(0.01)
        p.send_signal(number)
        assert p.wait(PATIENCE) == 1
        events = lines((folder / 'out').read_bytes())
        assert done(events)['pages'] == promised(folder / 'out')
        assert_kept(repo, folder, big, promised(folder / 'out'))


@test
def several_processes_at_once(folder):
    random_ = rng('several')
    repo = folder / 'r'
    base = some_pages(random_, 20)
    call(repo, 'import', archive(folder / 'base.warc', base))
    bigs = [Big(folder / (host + '.warc'), random_, 3000, host) for host in ('left', 'right')]
    imports = [start(repo, folder / (b.path.name + '.out'), 'import', b.path, '--json') for b in bigs]
    rounds = 0
    while any(p.poll() is None for p in imports) or rounds < 3:
        page = random_.choice(base)
        assert call(repo, 'get', page.url).stdout == page.body
        if rounds % 5 == 0:
            call(repo, 'compact')
        rounds += 1
    assert [p.wait() for p in imports] == [0, 0]
    assert [promised(folder / (b.path.name + '.out')) for b in bigs] == [3000, 3000]
    assert verified(repo)['pages'] == 6020
    for b in bigs:
        for url in random_.sample(sorted(b.md5), 30):
            assert ask(repo, 'get', url)[0]['md5'] == b.md5[url]


@test
def two_imports_create_the_repository_at_once(folder):
    random_ = rng('together')
    sources = [archive(folder / ('%d.warc' % i), some_pages(random_, 5, 'h%d.example' % i)) for i in range(4)]
    for n in range(rounds(4, 10)):
        repo = folder / ('r%d' % n)
        imports = [subprocess.Popen(command(repo, 'import', s), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
                   for s in sources]
        said = [p.communicate(timeout=PATIENCE)[1] for p in imports]
        assert [p.returncode for p in imports] == [0] * 4, said
        assert verified(repo)['pages'] == 20


run()
