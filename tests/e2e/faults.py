#!/usr/bin/env python3
"""Full and read-only disks, flipped bytes, newer versions: told in words, nothing lost."""
import shutil

from e2e import *


@test
def a_full_disk(folder):
    random_ = rng('full')
    before = some_pages(random_, 10)
    pages = [Page('http://full.example/%d' % i, random_.randbytes(40000), type='application/octet-stream') for i in range(600)]
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
        assert p.returncode == 0 or b'out.warc' in p.stderr and not out.exists() and not (disk / 'out.warc.tmp').exists(), p
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


def data_files(repo):
    return sorted(p for p in repo.rglob('*') if p.is_file() and 'lock' not in p.name and p.stat().st_size)


@test
def flipped_bytes(folder):
    random_ = rng('flips')
    pages = [Page('http://flip%d.example/%d' % (i % 3, i), b'%d ' % i + random_.randbytes(8000) + html(random_)) for i in range(25)]
    sound = folder / 'sound'
    call(sound, 'import', archive(folder / 'a.warc', pages))
    rounds, detected = 24, 0
    for n in range(rounds):
        repo = folder / 'r'
        shutil.copytree(sound, repo)
        files = data_files(repo)
        # Small files get their turn too.
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
            named = path.name.encode() in p.stdout + p.stderr or any(f.name.encode() in p.stdout + p.stderr for f in files)
            assert named, (what, p)
        detected += found
        for page in pages[::4]:
            g = call(repo, 'get', page.url, status=None)
            assert g.returncode in (0, 1) and (g.returncode == 1 or g.stdout == page.body), what
            assert g.returncode == 0 or found, '%s: %s is gone and verify says ok' % (what, page.url)
        call(repo, 'export', '--warc', folder / 'out.warc', '--force', status=None)
        shutil.rmtree(repo)
    print('# verify noticed %d of %d flips' % (detected, rounds))
    assert detected >= rounds // 2


run()
