#!/usr/bin/env python3
"""What comes back from a vault: everything that can be asked of a repository is the same of its restored copy, and it goes
on as the original would have. Damage, kills, full disks and two at once leave nothing that looks like a repository.

Vaults are directories here (file:///); vault_s3.py does some of this with a real S3.
"""
import signal

from e2e import *
from crawlserver import Server, crawl, crawl_until, page
from powercut import exported

DESIGNS = ['Incr[hash,log]', 'Incr[hash,hashed-log]', 'Incr[uniform,log]', 'Incr[hash,hash]',
           'Batch[U(hash,log),R(hash,log)]', 'Batch[U(uniform,hash),R(hash,hashed-log)]']
SITE = 'http://www.alpha.example/'
QUERIES = ['quokka', 'inlinks:>=2', 'site:www.alpha.example wombat', 'title:n1*']


def day(n):
    return '2026-01-%02dT03:04:05Z' % n


def some_versions(random_, count, when, share=0.7):
    """Pages of a site, each with links to others, of which a share has new content on this day."""
    links = ''.join('<a href="/p%d">to %d</a>' % (n, n) for n in random_.sample(range(count), min(count, 6)))
    return [Page(SITE + 'p%d' % n, ('<html lang=en><title>n%d</title><p>%s %s %d %s' % (
        n, 'quokka' if n % 3 else 'wombat', links, when, random_.random())).encode(), date=day(when))
        for n in range(count) if random_.random() < share]


def full_repository(folder, design=DESIGNS[0], nodes=1, count=40):
    """Something of everything: versions, snapshots, a takedown, editions, a generation, named streams, an unmerged
    journal."""
    random_, repo = rng('vault ' + design), folder / 'original'
    call(repo, 'init', '--design', design, '--nodes', nodes, '--history', 'all')
    for n in range(3):
        call(repo, 'import', archive(folder / ('%d.warc' % n), some_versions(random_, count, n + 1)))
        if design.startswith('Batch'):
            call(repo, 'transfer')
        if n < 2:
            call(repo, 'snapshot', *(['--name', 'first'] if n == 0 else []))
    call(repo, 'expunge', SITE + 'p3')
    call(repo, 'update')
    call(repo, 'index')
    call(repo, 'stream', '--name', 'finished', '--format', 'urls')
    call(repo, 'import', archive(folder / 'late.warc', some_versions(random_, count, 5, 0.2)))
    (folder / 'announced').write_text(SITE + 'announced\n')
    call(repo, 'push', folder / 'announced')
    return repo


def told(repo):
    """{question: answer}: all that a repository says, but for what belongs to its directory."""
    stat = ask(repo, 'stat')[0]
    out = {k: stat.get(k) for k in ('pages', 'versions', 'captures', 'sites', 'history', 'bytes_pages', 'design', 'edition',
                                    'generation', 'snapshots', 'revisits', 'pages_waiting')}
    out['snapshots'] = ask(repo, 'snapshot', 'list')
    out['unmerged'] = stat.get('unmerged_bytes')
    for what in ('pages', 'links', 'sites'):
        if stat['edition']:
            out['webdb ' + what] = call(repo, 'webdb', what, '--json').stdout
    for query in QUERIES if stat['generation'] else ():
        out['search ' + query] = [{k: v for k, v in hit.items() if k != 'ms'} for hit in ask(repo, 'search', query)]
    out['captures'] = sorted(exported(repo, '--versions'))
    for n in range(0, 40, 3):
        url = SITE + 'p%d' % n
        for args in [('get', url), ('get', url, '--headers'), ('versions', url, '--json'), ('links', url, '--in'), ('links', url, '--out'),
                     *(('get', url, '--snapshot', s['snapshot']) for s in out['snapshots'])]:
            p = call(repo, *args, status=None)
            out[args] = (p.returncode, p.stdout)
    return out


def expect_same(a, b, clock=True):
    """clock: also what depends on when something was done."""
    x, y = told(a), told(b)
    for row in () if clock else x['snapshots'] + y['snapshots']:
        row.pop('time')
        row.pop('expires')
    assert x.keys() == y.keys()
    for what in x:
        assert x[what] == y[what], '%s: %.300r is now %.300r' % (what, x[what], y[what])


def vault(folder, name='vault'):
    return 'file://%s' % (folder / name)


def backup(repo, url, *args):
    return done(ask(repo, 'backup', url, *args))


def restored(url, target, *args):
    end = done(ask(None, 'restore', url, target, *args))
    assert end['pages'] == ask(target, 'stat')[0]['pages'], end
    verified(target)
    return target


def objects(folder, name='vault'):
    return sorted(p for p in (folder / name).rglob('*') if p.is_file())


def expect_nothing(target):
    assert not target.exists() or not list(target.iterdir()), list(target.iterdir())


def contents(folder):
    return {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file()}


# ---- the same repository ---------------------------------------------------------------

@test
def every_design_comes_back(folder):
    for n, design in enumerate(rng('designs').sample(DESIGNS, rounds(2, len(DESIGNS)))):
        place = folder / str(n)
        place.mkdir()
        repo = full_repository(place, design, 1 + n % 3)
        before = told(repo)
        backup(repo, vault(place))
        copy = restored(vault(place), place / 'copy')
        assert told(repo) == before, 'backup has changed the original'
        expect_same(repo, copy)


@test
def the_copy_goes_on_as_the_original(folder):
    """Updates, indexes, imports and compactions give the same; tokens resume; a stream that had ended has ended."""
    repo = full_repository(folder)
    words = call(repo, 'stream', '--format', 'urls', '--tokens', '--order', 'url').stdout.decode().split('\n')[:-1]
    tokens = [line.split('\t') for line in words]
    backup(repo, vault(folder))
    copy = restored(vault(folder), folder / 'copy')
    cut = len(tokens) // 3
    rest = call(copy, 'stream', '--format', 'urls', '--order', 'url', '--resume', tokens[cut - 1][1]).stdout.decode().split()
    assert rest == [t[0] for t in tokens[cut:]], (len(rest), len(tokens) - cut)
    assert call(copy, 'stream', '--name', 'finished', '--format', 'urls').stdout == b''
    more = archive(folder / 'more.warc', some_versions(rng('more'), 40, 9))
    for r in (repo, copy):
        call(r, 'update')
    assert b'announced' in call(copy, 'webdb', 'pages', '--json').stdout
    for r in (repo, copy):
        call(r, 'import', more)
        call(r, 'update')
        call(r, 'index')
        call(r, 'compact')
    expect_same(repo, copy, clock=False)
    call(copy, 'import', archive(folder / 'barred.warc', [Page(SITE + 'p3', b'back', date=day(20))]), status=None)
    call(copy, 'get', SITE + 'p3', status=1)
    refused(copy, 'take-over', 'backup', vault(folder))
    backup(copy, vault(folder, 'second'))
    expect_same(copy, restored(vault(folder, 'second'), folder / 'third'))


@test
def older_states(folder):
    repo, random_, states = folder / 'r', rng('at'), []
    call(repo, 'init', '--history', 'all')
    for n in range(4):
        call(repo, 'import', archive(folder / ('%d.warc' % n), some_versions(random_, 25, n + 1)))
        backup(repo, vault(folder))
        states.append(told(repo))
    listed = ask(repo, 'backup', vault(folder), '--list')
    assert [s['pages'] for s in listed] == [s['pages'] for s in states] and len({s['shipment'] for s in listed}) == 4, listed
    assert [s['time'] for s in listed] == sorted(s['time'] for s in listed)
    for n, state in enumerate(listed):
        copy = restored(vault(folder), folder / 'copy', '--at', state['time'])
        got = told(copy)
        assert got == states[n], [k for k in got if got[k] != states[n][k]]
        shutil.rmtree(copy)
    for at in ('2020-01-01', '1960-01-01T00:00:00Z'):
        said = refused(None, listed[0]['time'][:10], 'restore', vault(folder), folder / 'copy', '--at', at)
        assert vault(folder) in said, said
        expect_nothing(folder / 'copy')
    refused(None, 'yesterday', 'restore', vault(folder), folder / 'copy', '--at', 'yesterday', status=2, one_line=False)


@test
def crawl_after_a_restore_fetches_what_was_not_safe(folder):
    random_ = rng('crawl')
    web = {'s%d.test' % s: {'/p%d' % n if n else '/': page(*['/p%d' % m for m in (2 * n + 1, 2 * n + 2) if m < 25],
                                                          text=random_.randbytes(200).hex()) for n in range(25)}
           for s in range(3)}
    with Server(web, latency=lambda: random_.uniform(0, 0.03)) as server:
        seeds, repo = [server.url(host) for host in web], folder / 'r'
        args = [*seeds, '--delay', 0.02]
        crawl_until(repo, server, lambda: len(server.requests) > 20, *args)
        backup(repo, vault(folder))
        safe = ask(repo, 'stat')[0]['pages']
        crawl_until(repo, server, lambda: len(server.requests) > 45, *args)
        copy = restored(vault(folder), folder / 'copy')
        assert ask(copy, 'stat')[0]['pages'] == safe
        crawl(copy, server, *args)
        assert verified(copy)['pages'] == 75, ask(copy, 'stat')
        for host in web:
            for path, body in web[host].items():
                assert call(copy, 'get', server.url(host, path)).stdout == body, path
        call(copy, 'update')
        call(copy, 'index')
        verified(copy)


# ---- damage ------------------------------------------------------------------------------

def damaged(path, random_, how):
    data = bytearray(path.read_bytes())
    if how == 'flip':
        data[random_.randrange(len(data))] ^= 1 << random_.randrange(8)
    if how == 'cut':
        del data[random_.randrange(len(data)):]
    path.unlink()
    if how != 'gone':
        path.write_bytes(data)


@test
def damaged_and_missing_objects(folder):
    """Each object in turn: a restore names it, or did not need it, and verify names it alone."""
    random_, repo = rng('damage'), folder / 'r'
    call(repo, 'init', '--history', 'all')
    for n in range(3):
        call(repo, 'import', archive(folder / ('%d.warc' % n), some_versions(random_, 60, n + 1)))
        if n == 1:
            call(repo, 'index')
        backup(repo, vault(folder))
    want, names, refusals = told(repo), objects(folder), 0
    call(repo, 'backup', vault(folder), '--verify')
    for path in random_.sample(names, min(len(names), rounds(12, 1000))):
        sound = path.read_bytes()
        for how in ('flip', 'cut', 'gone'):
            damaged(path, random_, how)
            p = call(None, 'restore', vault(folder), folder / 'copy', status=None)
            if p.returncode == 0:
                assert told(folder / 'copy') == want, (path, how)
                shutil.rmtree(folder / 'copy')
            else:
                refusals += 1
                said = p.stderr.decode()
                assert p.returncode == 1 and said.count('\n') == 1, said
                assert path.name in said or (path.name == 'head' and vault(folder) in said), (path, how, said)
                expect_nothing(folder / 'copy')
            p = call(repo, 'backup', vault(folder), '--verify', status=1)
            said = (p.stdout + p.stderr).decode()
            if path.name != 'head':
                assert [n.name for n in names if n.name != 'head' and n.name in said] == [path.name], (how, path, said)
            path.write_bytes(sound)
    assert refusals > 6, refusals
    call(repo, 'backup', vault(folder), '--verify')
    assert told(restored(vault(folder), folder / 'copy')) == want


@test
def what_nothing_needs_is_only_a_note(folder):
    repo = folder / 'r'
    call(repo, 'import', archive(folder / '0.warc', some_pages(rng('note'), 10)))
    backup(repo, vault(folder))
    left = folder / 'vault' / 'objects' / '0123456789abcdef-00000001'
    left.write_bytes(b'left by a backup that was killed')
    found = ask(repo, 'backup', vault(folder), '--verify')
    assert [(e['event'], e['object']) for e in found[:-1]] == [('note', 'objects/' + left.name)], found
    assert found[-1]['event'] == 'done' and found[-1]['problems'] == 0
    expect_same(repo, restored(vault(folder), folder / 'copy'))


@test
def where_nothing_can_be_restored(folder):
    """A folder with something in it, a file, a repository, a folder in one: named, and not changed."""
    repo = folder / 'r'
    call(repo, 'import', archive(folder / '0.warc', some_pages(rng('refused'), 10)))
    backup(repo, vault(folder))
    (folder / 'thesis').mkdir()
    (folder / 'thesis' / 'text').write_bytes(b'years of work')
    (folder / 'plain').write_bytes(b'hello')
    before = told(repo)
    for target in (repo, repo / 'inside', folder / 'thesis', folder / 'plain', folder / 'no' / 'where'):
        refused(None, target.name, 'restore', vault(folder), target)
        refused(None, target.name, 'restore', vault(folder, 'none'), target)     # before the store is asked
    assert (folder / 'thesis' / 'text').read_bytes() == b'years of work' and (folder / 'plain').read_bytes() == b'hello'
    assert len(list((folder / 'thesis').iterdir())) == 1 and not (folder / 'no').exists() and told(repo) == before
    refused(None, vault(folder, 'none'), 'restore', vault(folder, 'none'), folder / 'copy')
    refused(None, 'backup', 'backup', vault(folder), '--list', '--verify', status=2, one_line=False)
    expect_nothing(folder / 'copy')
    (folder / 'empty').mkdir()
    expect_same(repo, restored(vault(folder), folder / 'empty'))


# ---- kills, full disks, others ---------------------------------------------------------------

def large_repository(folder, pages=1500):
    random_, repo = rng('large'), folder / 'r'
    call(repo, 'init', '--design', 'Incr[hash,hashed-log]', '--nodes', 2)
    call(repo, 'import', archive(folder / 'large.warc', [
        Page('http://s%d.example/%d' % (n % 40, n), random_.randbytes(12000), type='application/octet-stream') for n in range(pages)]))
    call(repo, 'update')
    return repo


def start_restore(url, target):
    return subprocess.Popen(command(None, 'restore', url, target), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


@test
def killed_and_stopped(folder):
    """kill -9 leaves nothing that a command opens, and the next restore into it works. SIGTERM leaves nothing at all."""
    random_, repo = rng('kill'), large_repository(folder)
    backup(repo, vault(folder))
    want, began = sorted(exported(repo)), time.time()
    restored(vault(folder), folder / 'timing')
    seconds, killed, stopped, least, n = time.time() - began, 0, 0, rounds(6, 100), 0
    while n < least or (n < 20 * least and not (killed and stopped)):
        target, term = folder / 'copy', n % 3 == 0
        shutil.rmtree(target, ignore_errors=True)
        p = start_restore(vault(folder), target)
        if term:
            heed(p)
        if n % 2:       # as soon as it has begun
            while p.poll() is None and not (target / 'webbase.unfinished').exists():
                time.sleep(0.001)
        else:
            time.sleep(random_.uniform(0, seconds))
        p.send_signal(signal.SIGTERM if term else signal.SIGKILL)
        said = p.communicate(timeout=PATIENCE)[1].decode()
        n += 1
        if p.returncode == 0:
            verified(target)
            continue
        if term:
            assert p.returncode == 1 and 'stopped' in said and said.count('\n') == 1, (p.returncode, said)
            expect_nothing(target)
            stopped += 1
        else:
            assert p.returncode == -signal.SIGKILL, said
            if (target / 'webbase.unfinished').exists() and not (target / 'webbase.repo').exists():
                refused(target, 'copy', 'stat')
                killed += 1
        if call(target, 'stat', status=None).returncode != 0:
            restored(vault(folder), target)
        assert sorted(exported(target)) == want
    assert killed and stopped, (killed, stopped)


@test
def full_disk(folder):
    """Whatever room there is, too little of it leaves nothing, and the message names the directory."""
    random_, repo = rng('disk'), large_repository(folder, 300)
    backup(repo, vault(folder))
    need = sum(p.stat().st_size for p in repo.rglob('*') if p.is_file())
    with small_disk(folder / 'disk', '64m') as disk:
        refusals = 0
        for n in range(rounds(6, 40)):
            remount(disk, 'size=%dk' % max(16, int(need * random_.uniform(0.01, 0.95)) // 1024))
            p = call(None, 'restore', vault(folder), disk / 'copy', status=None)
            if p.returncode:
                refusals += 1
                assert str(disk) in p.stderr.decode() and p.stderr.count(b'\n') == 1, p.stderr
                expect_nothing(disk / 'copy')
            else:
                verified(disk / 'copy')
                shutil.rmtree(disk / 'copy')
        assert refusals
        remount(disk, 'size=64m')
        expect_same(repo, restored(vault(folder), disk / 'copy'))


@test
def two_at_once(folder):
    """Into one directory: one of them makes it, the other is refused with its name. Into two: both."""
    repo = large_repository(folder, 400)
    backup(repo, vault(folder))
    want = told(repo)
    for n in range(rounds(4, 30)):
        both = [start_restore(vault(folder), folder / 'copy') for _ in range(2)]
        said = [p.communicate(timeout=PATIENCE)[1].decode() for p in both]
        codes = [p.returncode for p in both]
        assert 0 in codes and set(codes) <= {0, 1}, (codes, said)
        assert all(str(folder / 'copy') in s for s, c in zip(said, codes) if c), said
        assert codes != [0, 0], 'both say that they have made %s' % (folder / 'copy')
        assert told(folder / 'copy') == want
        shutil.rmtree(folder / 'copy')
    both = [start_restore(vault(folder), folder / name) for name in ('one', 'two')]
    assert [p.wait(PATIENCE) for p in both] == [0, 0]
    assert told(folder / 'one') == want and told(folder / 'two') == want


@test
def restores_while_states_come_and_expire(folder):
    """With --keep 0 each backup removes what the state before it needed; a restore that loses its state takes the next."""
    random_, repo, target = rng('expire'), folder / 'r', folder / 'copy'
    bodies, stop = {}, threading.Event()
    call(repo, 'init')

    def change(n):
        pages = [Page('http://s%d.example/%d' % (i % 4, i), b'%d ' % n + random_.randbytes(20000),
                      date='2026-01-%02dT03:%02d:%02dZ' % (1 + n // 3600, n // 60 % 60, n % 60), type='application/octet-stream')
                 for i in range(30)]
        bodies.update({(p.url, hashlib.md5(p.body).hexdigest()): n for p in pages})
        call(repo, 'import', archive(folder / 'now.warc', pages))
        call(repo, 'compact')
        backup(repo, vault(folder), '--keep', 0)

    failures = []

    def keep_changing():
        try:
            n = 1
            while not stop.is_set():
                change(n)
                n += 1
        except BaseException as e:      # told by the main thread
            failures.append(e)

    change(0)
    changing = threading.Thread(target=keep_changing)
    changing.start()
    try:
        for _ in range(rounds(8, 60)):
            restored(vault(folder), target)
            pages = exported(target)
            assert len(pages) == 30, len(pages)
            of = {bodies[url, hashlib.md5(body).hexdigest()] for url, _, body in pages}
            assert len(of) == 1, 'pages of %s in one state' % of
            shutil.rmtree(target)
    finally:
        stop.set()
        changing.join()
    assert not failures, failures
    call(repo, 'backup', vault(folder), '--verify')


if __name__ == '__main__':
    run()
