#!/usr/bin/env python3
"""A crawl on a full or read-only disk; damaged journals, spools and dispensers: the crawl says what is wrong and can be
continued."""
import shutil, sqlite3, time

from e2e import *
from crawlserver import *


def heavy(random_, pages, size):
    """A site of pages that cannot be compressed."""
    site = {'/%d' % n: Reply(b'%d ' % n + random_.randbytes(size), type='application/octet-stream')
            for n in range(pages)}
    return {'/': page(*site), **site}


def light(sites, pages):
    return {'l%d.test' %
            i: {'/': page(*['/%d' % n for n in range(pages)], text=str(i)),
                **{'/%d' % n: page(text='page %d %d' % (i, n)) for n in range(pages)}}
            for i in range(sites)}


def all_sites(server, delay=0):
    """The arguments for a crawl of all sites of the server by two processes."""
    return [*[server.url(host) for host in server.sites], '--delay', delay, '--processes', 2]


def body_of(server, url):
    found = server.sites[url.split('/')[2].split(':')[0]]['/' + url.split('/', 3)[3]]
    return found.body if isinstance(found, Reply) else found


def expect_kept(repo, server, events):
    """Checks that every page that was logged as stored is there, as it was served."""
    stored = [e['url'] for e in fetches(events) if e['result'] in ('stored', 'duplicate')]
    expect_there(repo, server, stored)
    return stored


def expect_there(repo, server, urls):
    for url in rng('there').sample(urls, min(len(urls), 40)):
        assert call(repo, 'get', url).stdout == body_of(server, url), url


@test
def a_disk_that_fills_up(folder):
    random_ = rng('full')
    with small_disk(folder / 'disk', '8m') as disk, Server({'h.test': heavy(random_, 150, 100000)}) as server:
        repo = disk / 'pages.repo'
        p = subprocess.run(crawl_command(repo, server, server.url('h.test'), '--delay', 0, '--processes', 2),
                           capture_output=True, timeout=PATIENCE)
        words = p.stderr.decode()
        assert p.returncode == 1 and 'space' in words.lower() and 'pages.repo' in words, (p.returncode, words)
        first = expect_kept(repo, server, lines(p.stdout))
        # The disk is still full: the crawl says so again, and nothing is lost.
        p = subprocess.run(crawl_command(repo, server, server.url('h.test'), '--delay', 0, '--processes', 2),
                           capture_output=True, timeout=PATIENCE)
        assert p.returncode == 1 and 'pages.repo' in p.stderr.decode(), p.stderr
        first += expect_kept(repo, server, lines(p.stdout))
        remount(disk, 'size=128m')
        verified(repo)
        expect_kept(repo, server, crawl(repo, server, server.url('h.test'), '--delay', 0))
        expect_there(repo, server, first)
        assert verified(repo)['pages'] == 151, 'stored: %d' % verified(repo)['pages']


@test
def a_disk_that_fills_up_under_many_sites(folder):
    """The pages are too small to fill it, so journal, dispenser and store can each run out of space at any moment."""
    random_ = rng('many')
    with small_disk(folder / 'disk', '64m') as disk, Server(light(12, 40)) as server:
        repo = disk / 'pages.repo'
        args = all_sites(server, delay=0.01)
        logged = []
        for _ in range(4):
            p = start(repo, server, *args, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            time.sleep(random_.uniform(0.05, 0.35))
            with open(disk / 'ballast', 'wb', 0) as f, contextlib.suppress(OSError):
                while True:
                    f.write(bytes(4096))
            out, err = p.communicate(timeout=PATIENCE)
            assert p.returncode in (0, 1) and (p.returncode == 0 or b'webbase: ' in err), (p.returncode, err)
            (disk / 'ballast').unlink()
            if repo.exists():
                logged += expect_kept(repo, server, lines(out))
        crawl(repo, server, *args)
        expect_there(repo, server, logged)
        assert verified(repo)['pages'] == 12 * 41


@test
def a_read_only_repository(folder):
    with small_disk(folder / 'disk', '64m') as disk, Server(light(1, 4)) as server:
        repo = disk / 'pages.repo'
        crawl(repo, server, server.url('l0.test'), '--delay', 0)
        count = len(server.requests)
        remount(disk, 'ro')
        p = subprocess.run(crawl_command(repo, server, server.url('l0.test'), '--delay', 0), capture_output=True,
                           timeout=PATIENCE)
        assert p.returncode == 1 and b'pages.repo' in p.stderr, p
        assert len(server.requests) == count, 'pages were requested although they could not be stored'
        q = call(repo, 'why', server.url('l0.test', '/1'), status=None)
        assert q.returncode == 0 and b'fetched' in q.stdout or q.returncode == 1 and b'pages.repo' in q.stderr, q
        remount(disk, 'rw')
        crawl(repo, server, server.url('l0.test'), '--delay', 0)
        verified(repo)


def damage(random_, path):
    data = bytearray(path.read_bytes())
    how = random_.choice(['flip', 'cut', 'zero', 'random', 'last'])
    at = random_.randrange(len(data))
    if how == 'flip':
        for _ in range(3):
            data[random_.randrange(len(data))] ^= 1 << random_.randrange(8)
    elif how == 'last':
        data[-random_.randrange(1, min(len(data), 40))] ^= 0x55
    elif how == 'cut':
        del data[at:]
    elif how == 'zero':
        data[at:at + 512] = bytes(len(data[at:at + 512]))
    else:
        data[at:at + 64] = random_.randbytes(len(data[at:at + 64]))
    path.write_bytes(data)
    return how, at


@test
def damaged_journals(folder):
    """Damage costs history, with a warning, but never the crawl."""
    random_ = rng('journal')
    with Server(light(4, 30)) as server:
        args = all_sites(server)
        crawl(folder / 'stopped', server, *args, '--max-pages', 60)
        p = start(folder / 'killed', server, *args)
        until(lambda: len(server.requests) > 140)
        kill_all(p)
        shutil.copytree(folder / 'stopped', folder / 'done')
        crawl(folder / 'done', server, *args)
        warned = 0
        for n in range(15):
            kind = ('stopped', 'killed', 'done')[n % 3]
            shutil.copytree(folder / kind, folder / 'r')
            paths = sorted((folder / 'r' / 'journal').glob('*.wbe'))
            what = [(kind, p.name, *damage(random_, p)) for p in paths if p.stat().st_size]
            q = subprocess.run(crawl_command(folder / 'r', server, *args), capture_output=True, timeout=PATIENCE)
            assert q.returncode == 0, (what, q.returncode, q.stderr)
            assert ask(folder / 'r', 'stat')[0]['pages'] == 4 * 31, (what, ask(folder / 'r', 'stat')[0])
            warned += b'history' in q.stderr
            call(folder / 'r', 'why', server.url('l0.test', '/3'), status=None)
            call(folder / 'r', 'verify', status=None)
            shutil.rmtree(folder / 'r')
        print('# %d of 15 crawls warned' % warned)
        assert warned


@test
def damaged_spools(folder):
    random_ = rng('spool')
    sites = light(3, 60)
    with Server(sites) as server:
        args = all_sites(server)
        p = start(folder / 'killed', server, *args)
        until(lambda: len(server.requests) > 100)
        kill_all(p)
        for n in range(5):
            shutil.copytree(folder / 'killed', folder / 'r')
            for path in (folder / 'r' / 'spool').iterdir():
                damage(random_, path)
            q = subprocess.run(crawl_command(folder / 'r', server, *args), capture_output=True, timeout=PATIENCE)
            assert q.returncode == 0, q.stderr
            # The bytes of some pages that the journal has as fetched are gone. Whatever is there is right.
            assert verified(folder / 'r')['pages'] <= 3 * 61
            for url in random_.sample([server.url(h, '/%d' % i) for h in sites for i in range(60)], 10):
                g = call(folder / 'r', 'get', url, status=None)
                assert g.returncode == 1 or g.stdout == body_of(server, url)
            # The next visit fetches all of them.
            crawl(folder / 'r', server, *args)
            assert ask(folder / 'r', 'stat')[0]['pages'] == 3 * 61
            shutil.rmtree(folder / 'r')


def store_files(folder):
    return [path for path in folder.iterdir() if path.name.startswith('catalog') or path.name == 'pages']


def copy_store(repo, to):
    to.mkdir()
    for path in store_files(repo):
        (shutil.copytree if path.is_dir() else shutil.copy)(path, to / path.name)


def put_store_back(repo, copy):
    for path in store_files(repo):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    for path in store_files(copy):
        (shutil.copytree if path.is_dir() else shutil.copy)(path, repo / path.name)


def site_state(repo, host):
    with contextlib.closing(sqlite3.connect(repo / 'dispenser.db')) as db:
        return db.execute('SELECT state FROM webbase_site WHERE name LIKE ?', (host + '%',)).fetchone()[0]


def power_fails(folder, name, lose, short=40):
    """A crawl dies in the middle. Before the next one, lose(repo, copy) undoes what was not on disk; copy is the store
    a moment earlier."""
    web = light(3, 40)
    for n in range(short, 40):
        del web['l0.test']['/%d' % n]
    web['l0.test']['/'] = page(*['/%d' % n for n in range(short)], text='short')
    for host, site in web.items():
        for path, body in site.items():
            site[path] = Reply(body, wait=0.02 if short == 40 or host == 'l0.test' else 0.2)
    with Server(web) as server:
        repo, copy = folder / name, folder / (name + '-copy')
        args = [server.url(h) for h in web] + ['--delay', 0, '--processes', 1]
        p = start(repo, server, *args)
        until(lambda: len(server.requests) > (45 if short == 40 else 12))
        os.killpg(p.pid, signal.SIGSTOP)
        copy_store(repo, copy)
        before = len(server.requests)
        os.killpg(p.pid, signal.SIGCONT)
        until(lambda: len(server.requests) > before + (40 if short == 40 else 8))
        # The short site was finished after the copy was made, and the dispenser knows that.
        until(lambda: short == 40 or site_state(repo, 'l0.test') == 5)
        kill_all(p)
        shutil.rmtree(repo / 'spool')
        lose(repo, copy)
        crawl(repo, server, *args)
        assert verified(repo)['pages'] == 2 * 41 + short + 1, verified(repo)
        expect_there(repo, server, [server.url(h, path) for h in web for path in web[h]])


@test
def the_journal_is_ahead_of_the_store_after_power_loss(folder):
    """Pages that the journal has as stored, but that the store has lost, are requested again."""
    power_fails(folder, 'behind', put_store_back)


@test
def a_finished_site_is_compared_with_the_store_too(folder):
    power_fails(folder, 'finished', put_store_back, short=22)


@test
def the_store_is_ahead_of_the_journal_after_power_loss(folder):
    def lose(repo, copy):
        for log in (repo / 'journal').iterdir():
            size = log.stat().st_size
            os.truncate(log, max(64, size // 2))
    power_fails(folder, 'ahead', lose)


@test
def a_damaged_dispenser(folder):
    random_ = rng('dispenser')
    with Server(light(4, 10)) as server:
        args = all_sites(server)
        crawl(folder / 'sound', server, *args, '--max-pages', 20)
        for n in range(8):
            shutil.copytree(folder / 'sound', folder / 'r')
            db = folder / 'r' / 'dispenser.db'
            data = bytearray(db.read_bytes())
            if n == 0:
                data[:] = b'this is no database' * 300
            elif n == 1:
                data[:100] = random_.randbytes(100)
            elif n == 2:
                del data[len(data) // 2:]
            else:
                for _ in range(200):
                    data[random_.randrange(100, len(data))] = random_.randrange(256)
            db.write_bytes(data)
            q = subprocess.run(crawl_command(folder / 'r', server, *args), capture_output=True, timeout=PATIENCE)
            assert q.returncode in (0, 1), (n, q)
            assert n > 2 or q.returncode == 1, n
            assert q.returncode == 0 or b'dispenser.db' in q.stderr, (n, q.stderr)
            # The dispenser holds no pages, and `verify` reports the damage.
            report = lines(call(folder / 'r', 'verify', '--json', status=1 if q.returncode else None).stdout)[-1]
            assert all(x['file'] == 'dispenser.db' for x in report['problems']), report
            assert q.returncode == 0 or report['problems'], report
            assert report['pages'] >= 20, report
            shutil.rmtree(folder / 'r')


run_together()
