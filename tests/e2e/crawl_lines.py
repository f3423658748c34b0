#!/usr/bin/env python3
"""The lines of --json and --log: none is lost, whatever is killed and whether or not anybody reads them. And what the
death of a worker costs."""
import fcntl, json

from e2e import *
from crawlserver import *

F_SETPIPE_SZ = 1031


def stars(random_, sites, pages, wait=0.0):
    return {'s%d.test' % i: {'/': page(*['/%d' % n for n in range(pages)], text='root %d' % i),
                             **{'/%d' % n: Reply(page(text='%d %d %d' % (i, n, random_.getrandbits(60))), wait=wait)
                                for n in range(pages)}}
            for i in range(sites)}


def all_urls(server):
    return {server.url(h, p) for h, pages in server.sites.items() for p in pages}


def stored_in(text):
    """URLs of the pages that were stored, from lines of which some may be incomplete."""
    events = []
    for line in text.split(b'\n'):
        with contextlib.suppress(ValueError):
            events.append(json.loads(line))
    return stored(events)


def expect_lines(name, lives, want):
    """Checks the lines of a crawl that was killed and continued. lives: what each process told, as URLs."""
    told = {url for life in lives for url in life}
    assert want <= told, '%s: no line for %s' % (name, sorted(want - told)[:5])
    repeating = 0
    for n, life in enumerate(lives):
        assert len(life) == len(set(life)), '%s: one crawl has told lines twice' % name
        later = {url for other in lives[n + 1:] for url in other}
        again = [url for url in life if url in later]
        # If the parent is killed between writing lines and recording that, the next crawl writes the same lines. That
        # time is so short that it is not hit twice.
        assert life[len(life) - len(again):] == again, '%s: not only the last lines are repeated' % name
        repeating += bool(again)
    assert repeating <= 1, '%s: lines are repeated after %d of %d kills' % (name, repeating, len(lives) - 1)


@test
def every_stored_page_has_its_line_whatever_was_killed(folder):
    random_ = rng('killed')
    with Server(stars(random_, 4, 150, wait=0.04)) as server:
        log, out = folder / 'log', folder / 'out'
        args = [*[server.url(h) for h in server.sites], '--delay', 0, '--processes', 2, '--log', log]
        out.touch()
        log.touch()
        told = {'--json': [], '--log': []}

        def end_of_life():
            for name, path in (('--json', out), ('--log', log)):
                before = sum(len(life) for life in told[name])
                told[name].append(stored_in(path.read_bytes())[before:])

        # Some are killed before the first commit, when the lines are still with the pages, and some later.
        for victim, early in (('one', False), ('parent', False), ('all', True), ('all', False), ('one', True)):
            at, sizes = len(server.requests), [f.stat().st_size for f in (out, log)]
            with open(out, 'ab') as f:
                p = start(folder / 'r', server, *args, stdout=f)
            until(lambda: len(server.requests) > at + 30 and
                  (early or all(f.stat().st_size > size + 1000 for f, size in zip((out, log), sizes))) or
                  p.poll() is not None)
            found = workers_of(p)
            if victim == 'one' and found:
                kill(random_.choice(found))
                at = len(server.requests)
                until(lambda: len(server.requests) > at + 10 or p.poll() is not None)
            if p.poll() is not None:
                break
            if victim == 'parent':
                kill(p.pid)
                p.wait()
            else:
                kill_all(p)
            # The last line may be incomplete. In the log, the next crawl replaces it.
            with open(out, 'ab') as f:
                f.write(b'\n')
            end_of_life()
        assert sum(bool(life) for life in told['--json']) >= 2, 'too few were killed after they had told something'
        for pages in server.sites.values():
            for reply in list(pages.values())[1:]:
                reply.wait = 0
        # The killed processes may still be ending, so one crawl may not have everything.
        for _ in range(2):
            with open(out, 'ab') as f:
                f.write(crawl_text(folder / 'r', server, *args))
        end_of_life()
        assert log.read_bytes().endswith(b'\n')
        want = all_urls(server)
        for name, lives in told.items():
            expect_lines(name, lives, want)
        assert json.loads(call(folder / 'r', 'stat', '--json').stdout)['pages'] == len(want)
        assert not os.listdir(folder / 'r' / 'lines'), os.listdir(folder / 'r' / 'lines')


def crawl_text(repo, server, *args):
    """Crawls to the end; returns the lines as they were written."""
    p = subprocess.run(crawl_command(repo, server, *args), capture_output=True, timeout=PATIENCE)
    assert p.returncode == 0, (p.returncode, p.stderr[-800:])
    return p.stdout


def lines_waiting(repo):
    """How many lines of stored pages are in the files of lines."""
    return sum(f.read_bytes().count(b'"result":"stored"') for f in (repo / 'lines').iterdir())


@test
def nobody_reads_the_output(folder):
    """Nobody reads standard output or standard error. The crawl continues, a signal ends it, and the next crawl
    delivers the rest."""
    random_ = rng('stalled')
    with Server({**stars(random_, 3, 150), 'quiet.test': {'/': Reply(end='hang')}}) as server:
        args = [*[server.url(h) for h in server.sites], '--delay', 0, '--processes', 2, '--timeout', 50,
                '--no-sitemaps']
        read_fd, write_fd = os.pipe()
        size = fcntl.fcntl(write_fd, F_SETPIPE_SZ, 4096)
        p = start(folder / 'r', server, *args, stdout=write_fd, stderr=write_fd)
        os.close(write_fd)
        until(lambda: sum(len(server.paths(h)) for h in server.sites) >= 3 * 152 + 2)
        # Everything is committed, and its lines have come as far as they can: what the pipe does not hold, waits.
        until(lambda: json.loads(call(folder / 'r', 'stat', '--json').stdout)['pages'] == 3 * 151)
        until(lambda: lines_waiting(folder / 'r') >= 3 * 151 - size // 100)
        assert p.poll() is None
        p.send_signal(signal.SIGTERM)
        p.wait(PATIENCE)
        assert p.returncode == 1, p.returncode
        with os.fdopen(read_fd, 'rb') as f:
            got = f.read()
        assert len(got) <= size
        first = stored_in(got)
        verified(folder / 'r')
        server.sites['quiet.test']['/'] = page(text='awake')
        rest = stored(crawl(folder / 'r', server, *args))
        want = all_urls(server)
        assert want <= set(first + rest), sorted(want - set(first + rest))[:5]
        assert len(first + rest) == len(want)


@test
def a_slow_reader_gets_everything(folder):
    random_ = rng('slow')
    with Server(stars(random_, 2, 150)) as server:
        read_fd, write_fd = os.pipe()
        fcntl.fcntl(write_fd, F_SETPIPE_SZ, 4096)
        p = start(folder / 'r', server, *[server.url(h) for h in server.sites], '--delay', 0, stdout=write_fd)
        os.close(write_fd)
        got = b''
        while True:
            part = os.read(read_fd, 700)
            if not part:
                break
            got += part
            time.sleep(0.005)
        os.close(read_fd)
        assert p.wait(PATIENCE) == 0
        events = lines(got)
        assert sorted(stored(events)) == sorted(all_urls(server))
        assert events[-1]['event'] == 'done' and events[-1]['pages'] == len(all_urls(server))


@test
def a_reader_that_goes_away(folder):
    """The crawl ends and gives the reason. What was stored is kept, and its lines come with the next crawl."""
    random_ = rng('gone')
    with Server(stars(random_, 2, 100, wait=0.01)) as server:
        args = [*[server.url(h) for h in server.sites], '--delay', 0]
        p = start(folder / 'r', server, *args, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        json.loads(p.stdout.readline())
        p.stdout.close()
        words = p.stderr.read().decode()
        assert p.wait(PATIENCE) == 1
        assert 'standard output' in words, words
        verified(folder / 'r')
        # What was in the pipe is lost with its reader.
        crawl(folder / 'r', server, *args)
        assert json.loads(call(folder / 'r', 'stat', '--json').stdout)['pages'] == len(all_urls(server))


@test
def an_incomplete_line_in_the_log_is_replaced(folder):
    with Server({'a.test': {'/': page(text='a')}}) as server:
        log = folder / 'log'
        log.write_bytes(b'somebody else\n{"event":"fetch","url":"http://a.te')
        crawl(folder / 'r', server, server.url('a.test'), '--delay', 0, '--log', log)
        got = log.read_bytes().split(b'\n')
        assert got[0] == b'somebody else' and got[-1] == b''
        assert server.url('a.test') in [json.loads(l)['url'] for l in got[1:-1]]
        log.write_bytes(b'not ours, without an end')
        crawl(folder / 'r2', server, server.url('a.test'), '--delay', 0, '--log', log)
        assert log.read_bytes().startswith(b'not ours, without an end\n')


@test
def a_page_that_kills_workers_costs_only_that_page(folder):
    """The worker dies whenever it has requested a certain page. After the second time, this crawl does not request the
    page again."""
    job = []
    def deadly(request):
        for pid in workers_of(job[0]):
            kill(pid, signal.SIGABRT)
        return Reply(page(text='late'), wait=0.5)
    web = {'good.test': {'/': page(*['/%d' % n for n in range(20)]),
                         **{'/%d' % n: page(text='good %d' % n) for n in range(20)}},
           'bad.test': {'/': page('/deadly', '/after'), '/deadly': deadly, '/after': page(text='after')}}
    with Server(web) as server:
        args = [server.url('good.test'), server.url('bad.test'), '--delay', 0, '--processes', 1, '--no-sitemaps']
        job.append(start(folder / 'r', server, *args, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
        out, words = job[0].communicate(timeout=PATIENCE)
        assert job[0].returncode == 0, words
        events = lines(out)
        want = all_urls(server) - {server.url('bad.test', '/deadly')}
        assert want <= set(stored(events)), want - set(stored(events))
        assert results(events)[server.url('bad.test', '/deadly')].startswith('error:'), words
        # Usually four. As long as other pages are fetched between two deaths, nobody looks for the cause.
        assert server.paths('bad.test').count('/deadly') <= 10 + len(want), server.paths('bad.test')


run_together()
