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
