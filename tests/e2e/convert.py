#!/usr/bin/env python3
"""convert: a repository in another design. What both say of themselves must be the same, and the source must not change."""
import hashlib, os, pathlib, random, re, shutil, signal, subprocess, time

from e2e import *

DESIGNS = ['Incr[hash,log]', 'Incr[uniform,hashed-log]', 'Incr[hash,hash]', 'Batch[U(hash,log),R(hash,hash)]',
           'Batch[U(uniform,hash),R(hash,log)]']
SITE = 'http://www.alpha.example/'


def day(n):
    return '2026-01-%02dT03:04:05Z' % n


def versions_of(random_, count, when):
    links = ''.join('<a href="/p%d">%d</a>' % (n, n) for n in range(count))
    return [Page(SITE + 'p%d' % n, ('<title>%d</title><p>%s %s' % (n, links, random_.random())).encode(), date=day(when))
            for n in range(count) if random_.random() < 0.7]


def source(folder, design='Incr[hash,log]', nodes=1):
    """Three archives, a snapshot after each of the first two, a takedown, and a web database."""
    random_, repo = rng('convert ' + design), folder / 'source'
    call(repo, 'init', '--design', design, '--nodes', nodes, '--history', 'all')
    for n in range(3):
        call(repo, 'import', archive(folder / ('%d.warc' % n), versions_of(random_, 30, n + 1)))
        if design.startswith('Batch'):
            call(repo, 'transfer')
        if n < 2:
            call(repo, 'snapshot', *(['--name', 'first'] if n == 0 else []))
    call(repo, 'update')
    call(repo, 'expunge', SITE + 'p3')
    call(repo, 'update')
    return repo


def digests(folder):
    return {str(p.relative_to(folder)): hashlib.sha1(p.read_bytes()).hexdigest()
            for p in pathlib.Path(folder).rglob('*') if p.is_file() and p.stat().st_size}


def told(repo):
    """All that a repository tells, without its design."""
    stat = ask(repo, 'stat')[0]
    out = [stat[k] for k in ('pages', 'versions', 'captures', 'sites', 'history', 'bytes_pages')]
    snapshots = ask(repo, 'snapshot', 'list')
    out += [[(s['snapshot'], s['name'], s['time'], s['pages'], s['expires'], s['held_by']) for s in snapshots]]
    out += [ask(repo, 'webdb', 'count'), sorted(call(repo, 'webdb', 'pages', '--json').stdout.splitlines()),
            sorted(call(repo, 'webdb', 'links', '--json').stdout.splitlines())]
    for n in range(0, 30, 4):
        url = SITE + 'p%d' % n
        for args in [(), *(('--snapshot', s['snapshot']) for s in snapshots)]:
            p = call(repo, 'get', url, *args, status=None)
            out.append((url, args, p.returncode, p.stdout))
        p = call(repo, 'versions', url, '--json', status=None)
        out.append((p.returncode, p.stdout))
    return out


def same(a, b):
    x, y = told(a), told(b)
    different = [(p, q) for p, q in zip(x, y) if p != q]
    assert not different and len(x) == len(y), different[:1]


@test
def every_design_into_another(folder):
    for n, design in enumerate(DESIGNS):
        place = folder / str(n)
        place.mkdir()
        repo = source(place, design, 1 + n % 3)
        before = digests(repo)
        for k in (1 + n % 4,):
            other, target = DESIGNS[(n + k) % len(DESIGNS)], place / ('target-%d' % k)
            said = done(ask(repo, 'convert', target, '--design', other, '--nodes', k))
            stat = ask(target, 'stat')[0]
            assert stat['design'] == other and set(said) == {'event', 'pages', 'versions', 'bytes', 'lost', 'lost_pages', 'ms'}, said
            assert said['pages'] == stat['pages'] and said['versions'] == stat['versions'], (said, stat)
            assert digests(repo) == before, 'convert has changed the source'
            same(target, repo)
            verified(target)
            call(target, 'import', archive(place / 'again.warc', [Page(SITE + 'p3', b'back', date=day(9))]))
            if other.startswith('Batch'):
                call(target, 'transfer')
            call(target, 'get', SITE + 'p3', status=1)
            if n == 0:
                assert done(ask(target, 'index'))['pages'] == stat['pages']


@test
def waiting_pages(folder):
    repo = source(folder, DESIGNS[3])
    call(repo, 'import', archive(folder / 'new.warc', [Page(SITE + 'new', b'<p>waits', date=day(7))]))
    call(repo, 'get', SITE + 'new', status=1)
    call(repo, 'convert', folder / 'batch', '--design', DESIGNS[4])
    call(folder / 'batch', 'get', SITE + 'new', status=1)
    call(folder / 'batch', 'transfer')
    call(repo, 'convert', folder / 'incr', '--design', DESIGNS[1])
    for target in ('batch', 'incr'):
        assert call(folder / target, 'get', SITE + 'new').stdout == b'<p>waits', target
        verified(folder / target)
    assert not (folder / 'incr' / 'update').exists()
    call(repo, 'get', SITE + 'new', status=1)
    call(repo, 'transfer')
    same(folder / 'batch', repo)
    same(folder / 'incr', repo)


@test
def journal_that_is_not_merged(folder):
    repo = folder / 'source'
    call(repo, 'import', archive(folder / '0.warc', versions_of(rng('journal'), 10, 1)))
    call(repo, 'convert', folder / 'never-updated', '--design', DESIGNS[1])
    call(repo, 'update')
    call(repo, 'import', archive(folder / '1.warc', versions_of(rng('journal 2'), 20, 2)))
    call(repo, 'convert', folder / 'target', '--design', DESIGNS[2])
    before = ask(repo, 'webdb', 'count')[0]
    assert ask(folder / 'target', 'webdb', 'count')[0] == before
    for r in (repo, folder / 'target'):
        call(r, 'update')
    a, b = ask(repo, 'webdb', 'count')[0], ask(folder / 'target', 'webdb', 'count')[0]
    assert a['pages'] > before['pages'] and all(a[k] == b[k] for k in ('pages', 'fetched', 'links', 'contents', 'edition')), (a, b)
    call(folder / 'never-updated', 'update')
    assert ask(folder / 'never-updated', 'webdb', 'count')[0]['fetched'] > 0
    verified(folder / 'never-updated')


@test
def refused_and_left_alone(folder):
    repo, other = source(folder), folder / 'other'
    call(other, 'init')
    (folder / 'thesis').mkdir()
    (folder / 'thesis' / 'thesis.txt').write_bytes(b'years of work')
    (folder / 'plain').write_bytes(b'hello')
    before = digests(folder)
    for target in (repo, other, repo / 'inside', folder / 'thesis', folder / 'plain', folder / 'no' / 'where', folder):
        refused(repo, target.name, 'convert', target, '--design', DESIGNS[1])
    refused(repo, 'thesis', 'convert', folder / 'fresh', '--nodes', str(folder / 'thesis'))
    refused(folder / 'nowhere', 'nowhere', 'convert', folder / 'fresh')
    for args in ([], [folder / 'fresh', '--design', 'Incr[foo,log]'], [folder / 'fresh', '--history', 'all'],
                 [folder / 'fresh', '--update-nodes', '2'], [folder / 'fresh', 'and-another']):
        refused(repo, 'convert', 'convert', *args, status=2, one_line=False)
    assert digests(folder) == before and not (folder / 'fresh').exists()


def flip(path, at):
    data = bytearray(path.read_bytes())
    data[at] ^= 0x55
    path.write_bytes(data)


def damage(repo, file):
    """Flips a byte of a page's bytes: in the last block of a log, or in a bucket, of which there may be a second copy."""
    flip(file, file.read_bytes().rindex(b'WBBK') + 300)
    copies = file.with_suffix('.dw')
    for image in re.finditer(b'WBBK', copies.read_bytes()) if copies.exists() else ():
        flip(copies, image.start() + 300)
    assert not ask(repo, 'verify', status=1)[-1]['ok']


@test
def damaged_versions_are_named_and_everything_else_is_copied(folder):
    """In a log a block is damaged, in buckets one bucket. Both repositories are read as they are, page by page."""
    for n, (design, pattern) in enumerate((('Incr[hash,log]', 'pages/*.seg'), ('Incr[hash,hash]', 'pages/*.bkt'))):
        place = folder / str(n)
        place.mkdir()
        repo, target = source(place, design), place / 'target'
        file = max(repo.glob(pattern), key=lambda p: p.stat().st_size)
        damage(repo, file)
        readable = {}
        for k in range(30):
            p = call(repo, 'get', SITE + 'p%d' % k, status=None)
            if p.returncode == 0:
                readable[SITE + 'p%d' % k] = p.stdout
        said = ask(repo, 'convert', target, '--design', DESIGNS[1], status=1)
        lost, end = [e for e in said if e['event'] == 'lost'], done(said)
        assert lost and len(lost) == end['lost'] and len({e['id'] for e in lost}) == end['lost_pages'], said
        for e in lost:
            assert set(e) == {'event', 'url', 'id', 'time', 'latest', 'message'}, e
            assert e['url'].startswith(SITE) and file.name in e['message'] and e['time'].startswith('2026-01-0'), e
        gone = {e['url'] for e in lost if e['latest']}
        assert gone and not gone & set(readable), (gone, set(readable))
        before, after = ask(repo, 'stat')[0], ask(target, 'stat')[0]
        assert after['versions'] == before['versions'] - len(lost) == end['versions'], (before, after)
        assert after['pages'] == before['pages'] - len(gone) == len(readable) == end['pages'], (before, after)
        for url, body in readable.items():
            assert call(target, 'get', url).stdout == body, url
        for url in gone:
            call(target, 'get', url, status=1)
        verified(target)
        words = call(repo, 'convert', place / 'words', '--design', DESIGNS[2], status=1)
        errors = words.stderr.decode().splitlines()
        assert sum('lost: ' + SITE in line for line in errors) == len(lost), errors
        assert '%d version' % len(lost) in errors[-1] and 'words' in errors[-1] and 'everything else' in errors[-1], errors
        assert b'index' in words.stdout and b'not copied' in words.stdout, words.stdout
        # Also after what is damaged had to be written once more.
        call(repo, 'import', archive(place / 'more.warc', [Page(SITE + 'more', b'<p>more', date=day(5))]), status=None)
        once_more = ask(repo, 'convert', place / 'more', '--design', DESIGNS[0], status=1)
        assert {(e['id'], e['time']) for e in once_more if e['event'] == 'lost'} == {(e['id'], e['time']) for e in lost}
        assert done(once_more)['pages'] == end['pages'] + 1
        verified(place / 'more')
        # What was lost can be imported once more.
        for k in range(3):
            call(target, 'import', place / ('%d.warc' % k))
        assert ask(target, 'stat')[0]['versions'] == before['versions']


@test
def a_node_that_is_down_is_noticed_before_anything_is_made(folder):
    repo = source(folder, nodes=2)
    (repo / 'node2').rename(folder / 'away')
    refused(repo, 'node 2', 'convert', folder / 'target')
    assert not (folder / 'target').exists()
    (folder / 'away').rename(repo / 'node2')
    call(repo, 'convert', folder / 'target')
    same(folder / 'target', repo)


# Whatever uses a repository, in a folder without files.
USERS = ('init', 'import --dir . --url http://a/', 'crawl http://127.0.0.1:1/', 'webdb count', 'update', 'index', 'search x',
         'links --in http://a/', 'similar http://a/', 'serve --listen 127.0.0.1:0', 'generate', 'push /dev/null',
         'expunge http://a/', 'run --cycles 1', 'run --cycles 1 http://127.0.0.1:1/', 'why http://a/',
         'export --warc x.warc', 'export --facts x.csv', 'get http://a/', 'stream', 'versions http://a/', 'snapshot',
         'history all', 'stat', 'verify', 'compact', 'nodes', 'nodes add n', 'nodes remove 1', 'transfer', 'convert other',
         'graph stat', 'backup file:///nowhere/vault')


@test
def every_command_knows_an_unfinished_copy(folder):
    half = folder / 'half'
    half.mkdir()
    (half / 'webbase.unfinished').write_text('webbase unfinished copy\nformat 1\n')
    others = {'advise', 'extract', 'help', 'robots', 'url', 'web', 'control', 'emulate', 'restore'}
    text = call(None, 'help').stdout.decode().split('Commands:')[1].split('Options:')[0]
    names = {line.split()[0] for line in text.splitlines() if line.strip()}
    assert names == {user.split()[0] for user in USERS} | others, names
    for user in USERS:
        refused(half, 'half is an unfinished copy', *user.split(), cwd=folder)
    refused(half, 'not a repository', 'emulate', folder, '--rate', 1)      # its source is looked at first
    assert os.listdir(half) == ['webbase.unfinished'] and os.listdir(folder) == ['half'], os.listdir(folder)
    assert call(half, 'url', 'http://a/').stdout


@test
def a_signal_or_a_kill_leaves_an_unfinished_copy(folder):
    repo, target, stopped = source(folder, nodes=2), folder / 'target', 0
    call(repo, 'import', archive(folder / 'big.warc', [Page(SITE + 'b%d' % n, random.Random(n).randbytes(20000), type='image/png')
                                                       for n in range(400)]))
    start = time.time()
    call(repo, 'convert', folder / 'whole', '--design', DESIGNS[2])
    took, before = time.time() - start, digests(repo)
    for n in range(8):
        p = subprocess.Popen(command(repo, 'convert', target, '--design', DESIGNS[n % 3], '--nodes', '%s,%s' % (folder / 'a', folder / 'b')),
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(took * rng('kill %d' % n).random())
        p.send_signal(signal.SIGTERM if n % 2 else signal.SIGKILL)
        _, err = p.communicate(timeout=PATIENCE)
        assert digests(repo) == before
        if (target / 'webbase.repo').exists() and not (target / 'webbase.unfinished').exists():
            for d in (target, folder / 'a', folder / 'b'):      # it was done, whether it could say so or not
                shutil.rmtree(d)
            continue
        stopped += 1
        assert n % 2 == 0 or b'unfinished' in err and p.returncode == 1 or p.returncode == -signal.SIGTERM, (p.returncode, err)
        if target.exists():
            for args in (['stat'], ['get', SITE], ['export', '--warc', folder / 'x.warc'], ['import', folder / '0.warc'], ['init']):
                if args[0] != 'init' or (target / 'webbase.unfinished').exists():
                    text = call(target, *args, status=None)
                    assert text.returncode == 1 or not (target / 'webbase.unfinished').exists(), args
    call(repo, 'convert', target, '--design', DESIGNS[2], '--nodes', '%s,%s' % (folder / 'a', folder / 'b'))
    assert stopped > 0 and not (target / 'webbase.unfinished').exists()
    same(target, repo)
    verified(target)


run()
