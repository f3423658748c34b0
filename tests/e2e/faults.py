#!/usr/bin/env python3
"""Full and read-only disks, flipped bytes, newer versions: each is reported in plain words, and nothing is lost."""
import shutil

from e2e import *


@test
def a_full_disk(folder):
    random_ = rng('full')
    before = some_pages(random_, 10)
    pages = [Page('http://full.example/%d' % i, random_.randbytes(40000), type='application/octet-stream')
             for i in range(600)]
    archive(folder / 'before.warc', before)
    archive(folder / 'pages.warc', pages)
    with small_disk(folder / 'disk', '12m') as disk:
        repo = disk / 'pages.repo'
        call(repo, 'import', folder / 'before.warc')
        p = call(repo, 'import', folder / 'pages.warc', '--json', status=1)
        assert b'space' in p.stderr.lower() and p.stderr.count(b'\n') == 1, p.stderr
        promised = max([e['pages'] for e in lines(p.stdout) if e['event'] == 'commit'], default=0)
        for page in before:
            assert call(repo, 'get', page.url).stdout == page.body
        out = disk / 'out.warc'
        p = call(repo, 'export', '--warc', out, status=None)
        assert p.returncode == 0 or b'out.warc' in p.stderr, p
        assert p.returncode == 0 or not out.exists() and not (disk / 'out.warc.tmp').exists(), p
        remount(disk, 'size=128m')
        assert verified(repo)['pages'] >= promised + len(before)
        assert done(ask(repo, 'import', folder / 'pages.warc'))['errors'] == 0
        assert verified(repo)['pages'] == len(before) + len(pages)
        for page in pages[::50]:
            assert call(repo, 'get', page.url).stdout == page.body


@test
def a_read_only_disk(folder):
    pages = some_pages(rng('read-only'), 10)
    archive(folder / 'a.warc', pages)
    archive(folder / 'more.warc', some_pages(rng('more'), 3, 'more.example'))
    with small_disk(folder / 'disk', '128m') as disk:
        repo = disk / 'pages.repo'
        call(repo, 'import', folder / 'a.warc')
        remount(disk, 'ro')
        refused(repo, 'pages.repo', 'import', folder / 'more.warc')
        refused(disk / 'new.repo', 'new.repo', 'import', folder / 'more.warc')
        refused(disk / 'new.repo', 'new.repo', 'init')
        refused(repo, 'out.warc', 'export', '--warc', disk / 'out.warc')
        p = call(repo, 'get', pages[0].url, status=None)
        assert p.stdout == pages[0].body if p.returncode == 0 else b'pages.repo' in p.stderr, p
        remount(disk, 'rw')
        assert verified(repo)['pages'] == len(pages)


@test
def a_damaged_part_of_the_catalog_costs_its_pages(folder):
    """An import into a repository with one damaged leaf stores what it can, names what it cannot, and never replaces a
    newer version by an older one."""
    random_ = rng('leaf')
    urls = ['http://leaf%d.example/%d' % (i % 3, i) for i in range(2000)]
    old, new = ([Page(u, b'%s %s' % (word, random_.randbytes(20).hex().encode()), date) for u in urls]
                for word, date in ((b'old', '2026-01-01T00:00:00Z'), (b'new', '2026-02-01T00:00:00Z')))
    archive(folder / 'old.warc', old[:1800])
    archive(folder / 'new.warc', new[:1000])
    archive(folder / 'both.warc', old[:1000] + new[1000:])
    repo = folder / 'pages.repo'
    call(repo, 'import', folder / 'old.warc', '--no-journal')
    call(repo, 'import', folder / 'new.warc', '--no-journal')
    catalog = repo / 'catalog.wbt'
    data = bytearray(catalog.read_bytes())
    # Find a leaf that is in use in the tree of pages by id: one that holds a page we know.
    key = bytes.fromhex(ask(repo, 'get', urls[1999 - 1000])[0]['id'])
    leaves = [at for at in range(8192, len(data), 4096) if key in data[at:at + 4096]]
    assert leaves, 'no page of the catalog holds an id in plain form'
    for at in leaves:
        data[at + data[at:at + 4096].index(key)] ^= 1
    catalog.write_bytes(data)
    p = call(repo, 'import', folder / 'both.warc', '--no-journal', '--json', status=1)
    assert b'catalog.wbt is damaged' in p.stderr, p.stderr
    events = lines(p.stdout)
    refused_urls = {e['file'] for e in events if e['event'] == 'error'}
    end = done(events)
    assert end['errors'] == len(refused_urls) and 0 < len(refused_urls) < 500, (end, len(refused_urls))
    for i, url in enumerate(random_.sample(urls, 120)):
        p = call(repo, 'get', url, status=None)
        if url in refused_urls:
            assert p.returncode == 1 and b'damaged' in p.stderr, (url, p)
        else:
            assert p.returncode == 0 and p.stdout.startswith(b'new'), (url, p)


def flip(path, at):
    with open(path, 'r+b') as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 8]))


def unreadable(repo, pages):
    """The pages that cannot be read, each of which must name its bucket. All others are as they were."""
    bad = []
    for page in pages:
        p = call(repo, 'get', page.url, status=None)
        assert p.returncode in (0, 1) and (p.returncode or p.stdout == page.body), page.url
        if p.returncode:
            assert b'.bkt is damaged: bucket ' in p.stderr, p
            bad.append(page)
    return bad


@test
def a_damaged_bucket_costs_its_own_pages(folder):
    """In a repository of buckets: everything goes on, on other pages and in the damaged bucket itself."""
    random_ = rng('bucket')
    pages = [Page('http://b%d.example/%d' % (i % 3, i), b'%d ' % i + random_.randbytes(6000)) for i in range(200)]
    more = [Page('http://more.example/%d' % i, b'%d ' % i + random_.randbytes(6000)) for i in range(60)]
    repo = folder / 'repo'
    call(repo, 'init', '--organisation', 'hash')
    call(repo, 'import', archive(folder / 'a.warc', pages))
    flip(next(repo.rglob('*.bkt')), 4096 + 3 * 65536 + 200)
    lost = unreadable(repo, pages)
    assert 2 < len(lost) < 40, len(lost)
    assert call(repo, 'verify', status=1).stdout
    p = call(repo, 'import', archive(folder / 'more.warc', more))
    assert p.stderr.count(b'damaged') == 1 and b'verify' in p.stderr, p.stderr
    others = [p for p in pages if p not in lost][::9] + more[::5]
    assert unreadable(repo, lost + others) == lost
    call(repo, 'verify', status=1)
    call(repo, 'expunge', lost[0].url)
    assert call(repo, 'get', lost[0].url, status=1).stderr.count(b'.bkt') == 0
    p = call(repo, 'compact', status=1)
    assert b'.bkt' in p.stderr and b'what is left of them was kept' in p.stderr, p.stderr
    told = 0
    for command in (('add', folder / 'disk2'), ('add', folder / 'disk3'), ('remove', '2')):
        p = call(repo, 'nodes', *command, status=None)
        assert p.returncode == 0 or (b'.bkt is damaged: bucket ' in p.stderr and p.stderr.count(b'\n') == 1), p
        told += p.returncode
    assert told, 'a damaged bucket was moved without a word'
    call(repo, 'verify', status=1)
    pages.remove(lost.pop(0))
    assert unreadable(repo, lost + others) == lost
    for page in lost:
        page.body, page.date = b'new ' + page.body, '2026-02-03T04:05:06Z'
    call(repo, 'import', archive(folder / 'again.warc', lost))
    assert not unreadable(repo, lost + others)
    call(repo, 'compact')
    assert verified(repo)['pages'] == len(pages) + len(more)


@test
def a_full_node_of_buckets_is_named(folder):
    """What was committed before stays, and the import goes on when there is room."""
    random_ = rng('full buckets')
    pages = [Page('http://full.example/%d' % i, random_.randbytes(40000), type='application/octet-stream')
             for i in range(400)]
    with small_disk(folder / 'disk', '6m') as disk:
        repo = folder / 'repo'
        call(repo, 'init', '--organisation', 'hash', '--nodes', '%s,%s' % (folder / 'one', disk / 'two'))
        for part in range(4):
            archive(folder / ('%d.warc' % part), pages[part * 100:part * 100 + 100])
        stored = []
        for part in range(4):
            p = call(repo, 'import', folder / ('%d.warc' % part), status=None)
            if p.returncode:
                assert b'node 2' in p.stderr and b'space' in p.stderr.lower() and p.stderr.count(b'\n') == 1, p.stderr
                break
            stored += pages[part * 100:part * 100 + 100]
        assert 0 < len(stored) < len(pages), len(stored)
        for page in stored[::9]:
            assert call(repo, 'get', page.url).stdout == page.body
        verified(repo)
        remount(disk, 'size=128m')
        for part in range(4):
            assert done(ask(repo, 'import', folder / ('%d.warc' % part)))['errors'] == 0
        assert verified(repo)['pages'] == len(pages)
        for page in pages[::9]:
            assert call(repo, 'get', page.url).stdout == page.body


@test
def pages_avoid_a_full_node_of_buckets(folder):
    """With uniform distribution, also in one large commit, which finds out only when it writes."""
    random_ = rng('avoid')
    pages = [Page('http://avoid.example/%d' % i, random_.randbytes(40000), type='application/octet-stream')
             for i in range(500)]
    with small_disk(folder / 'disk', '6m') as disk:
        repo = folder / 'repo'
        call(repo, 'init', '--design', 'Incr[uniform,hash]', '--nodes', '%s,%s' % (folder / 'one', disk / 'two'))
        call(repo, 'import', archive(folder / 'first.warc', pages[:20]))
        assert done(ask(repo, 'import', archive(folder / 'all.warc', pages)))['pages'] == 480
        rows = {row['node']: row for row in ask(repo, 'nodes')}
        assert rows[1]['pages'] + rows[2]['pages'] == 500 and rows[2]['pages'] >= 1, rows
        for page in pages[::25]:
            assert call(repo, 'get', page.url).stdout == page.body
        assert verified(repo)['pages'] == 500


def data_files(repo):
    return sorted(p for p in repo.rglob('*') if p.is_file() and 'lock' not in p.name and p.stat().st_size)


@test
def flipped_bytes(folder):
    random_ = rng('flips')
    pages = [Page('http://flip%d.example/%d' % (i % 3, i), b'%d ' % i + random_.randbytes(8000) + html(random_))
             for i in range(25)]
    sound = folder / 'sound'
    call(sound, 'import', archive(folder / 'a.warc', pages))
    rounds, detected = 24, 0
    for n in range(rounds):
        repo = folder / 'r'
        shutil.copytree(sound, repo)
        files = data_files(repo)
        # Small files get their share too.
        path = files[n % len(files)] if n % 2 else random_.choices(files, [f.stat().st_size for f in files])[0]
        data = bytearray(path.read_bytes())
        at = random_.choice([i for i in random_.sample(range(len(data)), min(len(data), 2000)) if data[i]] or [0])
        data[at] ^= 1 << random_.randrange(8)
        path.write_bytes(bytes(data))
        what = '%s at %d' % (path.relative_to(repo), at)
        p = call(repo, 'verify', '--json', status=None)
        found = p.returncode == 1
        assert p.returncode in (0, 1), what
        if found:
            named = path.name.encode() in p.stdout + p.stderr or any(f.name.encode() in p.stdout + p.stderr
                                                                     for f in files)
            assert named, (what, p)
        detected += found
        for page in pages[::4]:
            g = call(repo, 'get', page.url, status=None)
            assert g.returncode in (0, 1) and (g.returncode == 1 or g.stdout == page.body), what
            assert g.returncode == 0 or found, '%s: %s is missing, but verify says ok' % (what, page.url)
        call(repo, 'export', '--warc', folder / 'out.warc', '--force', status=None)
        shutil.rmtree(repo)
    print('# verify noticed %d of %d flips' % (detected, rounds))
    assert detected >= rounds // 2


run()
