#!/usr/bin/env python3
"""Power loss: the disk has what was synced, and of the rest any part (powercut.py).

The real program runs with tests/power/recorder.c. The recording is then cut at sync points and between them. Each
resulting state of the disk must open, pass verify, contain what was acknowledged, and be able to continue.
WEBBASE_POWER_ROUNDS=10 looks at ten times as many states as `make soak` does.
"""
import collections, json, os, shutil, signal, subprocess, sys

from e2e import *
from crawlserver import Server, crawl, crawl_command, page, run_together, stored
from powercut import Disk, RECORDER, Recording, cuts, exported, naming_the_state, state_kinds


# ---- the model itself --------------------------------------------------------------------------------------------

PROGRAM = '''
import os, sys
os.chdir(sys.argv[1])
def put(name, data, at=0, flags=os.O_RDWR | os.O_CREAT):
    fd = os.open(name, flags)
    os.pwrite(fd, data, at)
    return fd
def sync_dir(name='.'):
    fd = os.open(name, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)
'''


def states(folder, program, count=60):
    """Possible contents of the disk after a program: {path: bytes} for the extremes and for many other states."""
    recording = Recording(folder / 'disk', folder / 'log')
    recording.run([sys.executable, '-c', PROGRAM + program, folder / 'disk'])
    disk, random_, found = Disk(recording), rng('model'), []
    while disk.step():
        pass
    for n in range(count):
        state = disk.cut(random_, folder / 'state', {0: 'lost', 1: 'kept'}.get(n, 'any'))
        found.append({str(p.relative_to(state)): p.read_bytes() if p.is_file() else None for p in state.rglob('*')})
        shutil.rmtree(state)
    assert found[1] == {str(p.relative_to(folder / 'disk')): p.read_bytes() if p.is_file() else None
                        for p in (folder / 'disk').rglob('*')}, \
        'if everything is kept, the disk must have what the program sees'
    return found


@test
def the_model_keeps_what_is_synced(folder):
    found = states(folder, r'''
fd = put('a', b'one' * 1000); os.fsync(fd)
os.mkdir('d'); sync_dir()
fd = put('d/b', b'two'); os.fsync(fd); sync_dir('d')
os.rename('d/b', 'd/c'); sync_dir('d')
os.unlink('a'); sync_dir()
''')
    assert all(s == {'d': None, 'd/c': b'two'} for s in found), found


@test
def the_model_loses_what_is_not_synced(folder):
    found = states(folder, r'''
fd = put('a', b'1' * 2048); os.fsync(fd); sync_dir()
put('a', b'2' * 2048); put('a', b'3' * 512, 4096); os.ftruncate(fd, 5000)
os.mkdir('d'); fd = put('d/b', b'two'); os.fsync(fd); sync_dir('d')
os.close(put('x', b'x')); os.rename('x', 'y')
''', 400)
    assert found[0] == {'a': b'1' * 2048}
    contents = {s['a'] for s in found}
    torn = {c for c in contents if {b'1'[0], b'2'[0]} <= set(c)}
    assert torn, 'a sector is a mixture of two versions'
    assert all(len(set(c[i:i + 512])) == 1 for c in torn for i in range(0, 2048, 512)), \
        'a sector is a mixture of two versions'
    assert {len(c) for c in contents} == {2048, 4608, 5000}
    assert any(b'3' in c and b'2' not in c for c in contents), 'a later write is never there without the earlier one'
    names = {frozenset(s) for s in found}
    # Whether or not the rename is there, the file has at most one name.
    assert names == {frozenset(n) for a in (['a'],) for d in ([], ['d', 'd/b']) for x in ([], ['x'], ['y'])
                     for n in (a + d + x,)}, names


@test
def every_change_of_a_file_is_recorded(folder):
    """The recorder knows every function that the program and its databases call to change files."""
    changes = set('open open64 openat openat64 creat creat64 write pwrite pwrite64 writev pwritev pwritev64 pwritev2 '
                  'ftruncate ftruncate64 truncate truncate64 fallocate fallocate64 posix_fallocate posix_fallocate64 '
                  'copy_file_range sendfile sendfile64 splice fsync fdatasync sync syncfs rename renameat renameat2 '
                  'unlink unlinkat remove mkdir mkdirat rmdir link linkat symlink symlinkat'.split())
    # freopen and similar functions reach the kernel inside libc. We do not use them for any file that must last.
    known = set(symbols(RECORDER, '--defined-only'))
    libraries = [line.split()[2]
                 for line in subprocess.run(['ldd', WEBBASE], capture_output=True,
                                            check=True).stdout.decode().splitlines()
                 if 'sqlite' in line]
    for path in [WEBBASE, *libraries]:
        missing = (set(symbols(path, '--undefined-only')) & changes) - known
        assert not missing, \
            '%s calls %s, which tests/power/recorder.c does not record' % (path, ', '.join(sorted(missing)))


def symbols(path, which):
    out = subprocess.run(['nm', '-D', which, path], capture_output=True, check=True).stdout.decode()
    return [line.split()[-1].partition('@')[0] for line in out.splitlines()]


# ---- the store: imports, expunge, compact -------------------------------------------------------------------------

class Step:
    """A command and what it acknowledges: pages in order, or pages that are gone."""

    def __init__(self, args, pages=(), gone=()):
        self.args, self.pages, self.gone, self.process = args, list(pages), list(gone), None

    def acknowledged(self, disk):
        """(pages, gone) that the program has acknowledged so far."""
        events = lines(disk.output(self.process)) if self.process else []
        finished = any(e.get('event') == 'done' for e in events)
        pages = max([e['pages'] for e in events if e.get('event') == 'commit'], default=0)
        return self.pages[:pages], self.gone if finished else []


def store_steps(folder, random_):
    first = some_pages(random_, 40)
    second = [Page(p.url, b'new ' + p.body, '2026-02-02T00:00:00Z')
              for p in first[:20]] + some_pages(random_, 15, 'www.beta.example')
    third = some_pages(random_, 25, 'www.gamma.example')
    fourth = [Page(p.url, b'newest ' + p.body, '2026-03-03T00:00:00Z')
              for p in first[5:15]] + some_pages(random_, 10, 'delta.example')
    yield Step(['import', archive(folder / '1.warc', first), '--json'], first)
    yield Step(['import', archive(folder / '2.warc', second), '--json'], second)
    yield Step(['compact', '--json'])
    yield Step(['import', archive(folder / '3.warc', third), '--json'], third)
    yield Step(['update', '--json'])
    yield Step(['expunge', 'www.gamma.example', '--json'], gone=[p.url for p in third])
    yield Step(['compact', '--json'])
    yield Step(['import', archive(folder / '4.warc', fourth), '--json'], fourth)
    yield Step(['update', '--json'])


def bodies(repo):
    """{url: body} of everything in the repository."""
    return {url: body for url, _, body in exported(repo)}


def expect_pages(repo, steps, disk):
    """Checks that every acknowledged page is there, as acknowledged or newer, and that pages acknowledged as gone are
    gone."""
    versions, least, gone = collections.defaultdict(list), {}, set()
    for step in steps:
        kept, removed = step.acknowledged(disk)
        for p in step.pages:
            versions[p.url].append(p.body)
        for p in kept:
            least[p.url] = versions[p.url].index(p.body)
            gone.discard(p.url)
        if step.gone and step.process:
            for url in step.gone:
                least.pop(url, None)
        gone.update(removed)
    if call(repo, 'stat', status=None).returncode:
        assert not least and not gone, 'there is no repository, but %d pages were acknowledged' % len(least)
        return False
    verified(repo)
    found = bodies(repo)
    for url, version in least.items():
        assert found.get(url) in versions[url][version:], \
            '%s: %s' % (url, 'an older version' if url in found else 'acknowledged but missing')
    for url, body in found.items():
        assert body in versions[url], '%s has bytes that nobody stored' % url
    assert not gone & set(found), 'expunged, but there again: %s' % sorted(gone & set(found))
    return True


@test
def the_store_after_a_power_cut(folder):
    random_ = rng('store')
    recording, steps = Recording(folder / 'disk', folder / 'log'), list(store_steps(folder, random_))
    repo = folder / 'disk' / 'dir' / 'r'
    final = {}
    for step in steps:
        step.process = recording.run(command(repo, *step.args)).pid
        final.update((p.url, p.body) for p in step.pages)
        for url in step.gone:
            final.pop(url, None)
    disk, opened, resumed = Disk(recording), 0, 0
    for n, moment in enumerate(cuts(disk, random_, 60)):
        for m in range(2):
            how = state_kinds(random_, 2 * n + m)
            with naming_the_state('store', disk, moment, how, SEED):
                state = disk.cut(random_, folder / 'state', how) / 'dir' / 'r'
                opened += expect_pages(state, steps, disk)
                if random_.random() < 0.25:
                    for step in steps:
                        if step.args[0] != 'expunge':
                            call(state, *step.args)
                    call(state, *next(s.args for s in steps if s.gone))
                    verified(state)
                    assert bodies(state) == final
                    resumed += 1
            shutil.rmtree(folder / 'state')
    print('# %d records, %d syncs; %d states opened, %d went on to the end' %
          (len(disk.records), disk.syncs(), opened, resumed))


# ---- crawls: store, journal, spool, dispenser -----------------------------------------------------------------------

def small_sites(count, pages):
    return {'p%d.test' % n: {'/': page(*['/%d' % i for i in range(1, pages)], text='root %d' % n),
                             **{'/%d' %
                                i: page('/', '/%d' % (i % (pages - 1) + 1),
                                        text='page %d %d ' % (n, i) + 'x' * 300 * (i % 5)) for i in range(1, pages)}}
            for n in range(count)}


@test
def a_crawl_after_a_power_cut(folder):
    """What was reported as stored is stored. The crawl continues and has every page in the end."""
    random_, sites = rng('crawl'), small_sites(4, 12)
    with Server(sites) as server:
        args = [*[server.url(h) for h in sites], '--delay', 0, '--processes', 2]
        recording, repo = Recording(folder / 'disk', folder / 'log'), folder / 'disk' / 'r'
        recording.run(crawl_command(repo, server, *args))
        disk, everything = Disk(recording), {server.url(h, p): body for h in sites for p, body in sites[h].items()}
        opened = 0
        for n, moment in enumerate(cuts(disk, random_, 30)):
            how = state_kinds(random_, n)
            with naming_the_state('crawl', disk, moment, how, SEED):
                state = disk.cut(random_, folder / 'state', how) / 'r'
                told_of = set(stored(lines(disk.output())))
                if call(state, 'stat', status=None).returncode == 0:
                    verified(state)
                    found = bodies(state)
                    assert told_of <= set(found), 'reported as stored but missing: %s' % sorted(told_of - set(found))
                    opened += 1
                else:
                    assert not told_of, told_of
                crawl(state, server, *args)
                verified(state)
                found = bodies(state)
                assert found == everything, \
                    'missing after the crawl was continued: %s' % sorted(set(everything) - set(found))
            shutil.rmtree(folder / 'state')
        print('# %d records, %d syncs; %d states opened' % (len(disk.records), disk.syncs(), opened))


# ---- cycles: webdb, lists, the state of a run -----------------------------------------------------------------------

@test
def a_run_after_a_power_cut(folder):
    """webdb is a complete edition. The run continues, and in the end store and webdb know every page."""
    random_, sites = rng('run'), small_sites(3, 8)
    with Server(sites) as server:
        def args(cycles):
            return ['run', '--json', '--allow-private', '--user-agent', 'PowerCheck/1.0', '--delay', 0, '--processes',
                    2, '--cycles', cycles, '--budget', 10,
                    *server.resolve(), *[server.url(h) for h in sites]]
        recording, repo = Recording(folder / 'disk', folder / 'log'), folder / 'disk' / 'r'
        recording.run(command(repo, *args(3)))
        disk, everything = Disk(recording), {server.url(h, p): body for h in sites for p, body in sites[h].items()}
        for n, moment in enumerate(cuts(disk, random_, 25)):
            how = state_kinds(random_, n)
            with naming_the_state('run', disk, moment, how, SEED):
                state = disk.cut(random_, folder / 'state', how) / 'r'
                cycles = [e for e in lines(disk.output()) if e.get('event') == 'cycle']
                if call(state, 'stat', status=None).returncode == 0:
                    verified(state)
                    stat = ask(state, 'stat')[0]
                    assert stat['edition'] >= (1 if cycles else 0), (stat, len(cycles))
                    if stat['edition']:
                        call(state, 'webdb', 'check')
                else:
                    assert not cycles
                for _ in range(8):
                    call(state, *args(1))
                    if bodies(state) == everything:
                        break
                assert bodies(state) == everything, sorted(set(everything) - set(bodies(state)))
                verified(state)
                known = {p['url'] for p in ask(state, 'webdb', 'pages')}
                assert set(everything) <= known, sorted(set(everything) - known)
            shutil.rmtree(folder / 'state')
        print('# %d records, %d syncs' % (len(disk.records), disk.syncs()))


run_together()
