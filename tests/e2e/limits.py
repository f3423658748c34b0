#!/usr/bin/env python3
"""Small limits (open files, size of files, memory) and a full disk: the message names file and cause, and nothing is
lost."""
import resource

from e2e import *

COMMANDS = ('import', 'get', 'export', 'stat', 'verify', 'update', 'compact', 'generate', 'webdb', 'why', 'expunge')


class Place:
    """A repository with pages and a web database, copied for each command that a limit may stop."""

    def __init__(self, folder):
        self.folder = folder
        self.pages = [p for host in range(6) for p in some_pages(rng('host%d' % host), 20, 'h%d.example' % host)]
        self.newer = [Page(p.url, p.body + b' newer', '2026-03-02T03:04:05Z') for p in self.pages[:60]]
        archive(folder / 'newer.warc', self.newer)
        self.sound = folder / 'sound'
        call(self.sound, 'import', archive(folder / 'pages.warc', self.pages))
        call(self.sound, 'update')

    def arguments(self, name):
        return {'import': ('import', self.folder / 'newer.warc', '--json'), 'get': ('get', self.pages[70].url),
                'webdb': ('webdb', 'pages'),
                'export': ('export', '--warc', self.folder / 'out.warc', '--force'), 'why': ('why', 'h1.example'),
                'expunge': ('expunge', self.pages[-1].url)}.get(name, (name,))

    def limited(self, name, limit, value):
        """Runs a command under a limit, in its own repository. Returns (the repository, the finished process)."""
        repo = self.folder / 'repo'
        shutil.rmtree(repo, ignore_errors=True)
        shutil.copytree(self.sound, repo)
        return repo, call(repo, *self.arguments(name), status=None,
                          preexec_fn=lambda: resource.setrlimit(limit, (value, value)))

    def expect_nothing_lost(self, repo, name, what):
        """Checks that every page is there, in one of its possible versions, and that the same command then works
        without the limit."""
        verified(repo)
        newer = {p.url: p.body for p in self.newer}
        for page in self.pages[::23]:
            p = call(repo, 'get', page.url, status=None)
            assert p.stdout in (page.body, newer.get(page.url)) or name == 'expunge' and page is self.pages[-1], \
                (what, page.url, p)
        call(repo, *self.arguments(name))
        if name == 'import':
            assert all(call(repo, 'get', p.url).stdout == p.body for p in self.newer[::20]), what


def only_message(p):
    """Returns the only message, which must not mention damage."""
    text = p.stderr.decode()
    assert text.startswith('webbase: ') and text.count('\n') == 1 and 'damage' not in text, p
    return text


@test
def few_open_files(folder):
    place, failed = Place(folder), 0
    for name in COMMANDS:
        works = False
        for files in (4, 6, 8, 10, 12, 40):
            repo, p = place.limited(name, resource.RLIMIT_NOFILE, files)
            works = p.returncode == 0
            if not works:
                text = only_message(p)
                assert p.returncode == 1 and 'open files' in text and 'ulimit -n' in text, (name, files, p)
                assert '/' in text, (name, files, p)
                place.expect_nothing_lost(repo, name, (name, files))
                failed += 1
        assert works, '%s does not work with 40 files' % name
    assert failed > 10


@test
def a_limit_on_the_size_of_files(folder):
    place, failed = Place(folder), 0
    for name in ('import', 'export', 'compact', 'generate', 'expunge', 'update'):
        for size in (0, 4096, 20000, 65536, 150000):
            repo, p = place.limited(name, resource.RLIMIT_FSIZE, size)
            if p.returncode == 0:
                continue
            text = only_message(p)
            assert p.returncode == 1 and 'File too large' in text and 'ulimit -f' in text, (name, size, p)
            assert str(folder) in text, (name, size, p)
            place.expect_nothing_lost(repo, name, (name, size))
            failed += 1
    assert failed > 5


@test
def little_memory(folder):
    place = Place(folder)
    for name in COMMANDS:
        for megabytes in (60, 90, 130, 400):
            repo, p = place.limited(name, resource.RLIMIT_AS, megabytes << 20)
            if p.returncode == 127:
                assert b'shared' in p.stderr, p # the program was not even loaded
            elif p.returncode != 0:
                text = only_message(p)
                assert p.returncode == 1 and 'memory' in text and 'ulimit -v' in text, (name, megabytes, p)
                place.expect_nothing_lost(repo, name, (name, megabytes))


@test
def a_disk_that_fills(folder):
    place = Place(folder)
    size = sum(f.stat().st_size for f in place.sound.rglob('*') if f.is_file())
    failed = 0
    with small_disk(folder / 'disk', '64m') as disk:
        for name in ('import', 'export', 'update', 'compact', 'generate', 'expunge'):
            for room in (0, 20000, 120000):
                repo = disk / 'repo'
                shutil.rmtree(repo, ignore_errors=True)
                shutil.copytree(place.sound, repo)
                place.folder = disk # the export is written there too
                shutil.copy(folder / 'newer.warc', disk)
                state = os.statvfs(disk)
                (disk / 'ballast').write_bytes(bytes(max(0, state.f_bavail * state.f_bsize - room)))
                p = call(repo, *place.arguments(name), status=None)
                if p.returncode:
                    text = only_message(p)
                    assert p.returncode == 1 and 'space' in text.lower() and str(disk) in text, (name, room, p)
                    failed += 1
                (disk / 'ballast').unlink()
                if p.returncode:
                    place.expect_nothing_lost(repo, name, (name, room))
                place.folder = folder
    print('# %d of 18 commands met the full disk; the repository has %d bytes' % (failed, size))
    assert failed > 5


@test
def soft_limits_are_raised(folder):
    """A soft limit below the hard one has no effect."""
    place = Place(folder)
    for name in COMMANDS:
        call(place.sound, *place.arguments(name),
             preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (4, 200)))


run()
