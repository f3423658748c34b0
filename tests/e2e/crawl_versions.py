#!/usr/bin/env python3
"""What crawls and imports leave of the past of a page: versions, captures, and pages that ended. Kills change nothing."""
import datetime, hashlib, time

from e2e import *
from crawlserver import *


def md5_of(body):
    return hashlib.md5(body).hexdigest()


def stamp(seconds):
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime('%Y-%m-%dT%H:%M:%S.%f')[:-3] + 'Z'


def versions(repo, url):
    """[(captures, first, last)] of each version, oldest first"""
    return [(v['captures'], v['time'], v['last_seen']) for v in ask(repo, 'versions', url)]


def tagged(body):
    """A page with a validator: 304 if the crawler has it."""
    reply = Reply(body, headers=[('ETag', '"1"')])
    return lambda request: Reply(status=304) if request.headers.get('if-none-match') == '"1"' else reply


@test
def two_crawls(folder):
    site = {'/': page('/same', '/tagged', '/changed', '/gone'), '/same': page(text='same'),
            '/tagged': tagged(page(text='tagged')), '/changed': page(text='before'), '/gone': page(text='gone')}
    repo = folder / 'r'
    call(repo, 'init', '--history', 'all')
    with Server({'v.test': site}) as server:
        def url(path):
            return server.url('v.test', path)
        crawl(repo, server, url('/'), '--delay', 0)
        time.sleep(0.01)
        between = time.time()
        site['/changed'] = page(text='after')
        del site['/gone']
        events = crawl(repo, server, url('/'), '--delay', 0)
        found = {e['url']: e['result'] for e in fetches(events)}
        assert [found[url(p)] for p in ('/same', '/tagged', '/changed', '/gone')] == \
            ['unchanged', 'unchanged', 'stored', 'gone'], found
        for path in ('/same', '/tagged', '/'):
            rows = versions(repo, url(path))
            assert [r[0] for r in rows] == [2] and rows[0][1] < stamp(between) < rows[0][2], (path, rows)
        assert [r[0] for r in versions(repo, url('/changed'))] == [1, 1]
        call(repo, 'update')
        assert done(ask(repo, 'expunge'))['pages'] == 1
        # The page has ended, and its history has not.
        said = call(repo, 'get', url('/gone'), status=1).stderr.decode()
        assert 'gone' in said, said
        assert call(repo, 'get', url('/gone'), '--at', stamp(between)).stdout == page(text='gone')
        assert [r[0] for r in versions(repo, url('/gone'))] == [1]
        why = ask(repo, 'why', url('/gone'))[0]
        assert why['versions'] == 1 and why['gone_since'] > stamp(between) and why['latest_since'] is None, why
        why = ask(repo, 'why', url('/changed'))[0]
        assert why['versions'] == 2 and why['captures'] == 2 and why['latest_since'] > stamp(between), why
        row = ask(repo, 'webdb', 'page', url('/same'))[0]
        assert row['versions'] == 1 and row['captures'] == 2 and row['latest_since'] < stamp(between), row
        # It comes back with the same bytes: a version of its own.
        site['/gone'] = page(text='gone')
        crawl(repo, server, url('/'), url('/gone'), '--delay', 0)
        assert [r[0] for r in versions(repo, url('/gone'))] == [1, 1]
        assert call(repo, 'get', url('/gone')).stdout == page(text='gone')
        verified(repo)


@test
def kills_neither_lose_nor_repeat_captures(folder):
    """Every answer is one capture, also if the crawler is killed before it commits it and another one goes on."""
    random_ = rng('kills')
    site = {'/': page(*['/%d' % n for n in range(60)])}
    for n in range(60):
        site['/%d' % n] = tagged(page(text='page %d' % n)) if n % 2 else page(text='page %d' % n)
    repo = folder / 'r'
    call(repo, 'init', '--history', 'all')
    with Server({'k.test': site}) as server:
        crawl(repo, server, server.url('k.test'), '--delay', 0)
        for n in range(0, 60, 3):
            site['/%d' % n] = page(text='other page %d' % n)
        for _ in range(6):
            p = start(repo, server, server.url('k.test'), '--delay', 0.01, stdout=subprocess.DEVNULL)
            time.sleep(random_.uniform(0.1, 0.6))
            kill_all(p)
            p.wait()
        # A crawl that had finished starts again, so the number of rounds is open. But what was answered was seen.
        crawl(repo, server, server.url('k.test'), '--delay', 0)
        for n in range(60):
            rows = versions(repo, server.url('k.test', '/%d' % n))
            answers = [r for r in server.requests if r.path == '/%d' % n and r.status]
            assert len(rows) == (2 if n % 3 == 0 else 1), (n, rows)
            seen = sum(r[0] for r in rows)
            # An answer may have been under way when its crawler died; then it is asked for again.
            assert 2 <= seen <= len(answers), (n, rows, answers)
        verified(repo)


@test
def the_journal_comes_before_the_store(folder):
    """Whatever moment a crawler dies in, the journal mentions all that is stored, and what it mentions is stored or in a
    spool. So one merge is enough: an update that adopts or corrects pages needs more."""
    random_ = rng('order')
    repo = folder / 'r'
    with Server({'o%d.test' % i: star(40, str(i)) for i in range(4)}) as server:
        seeds = [server.url(host) for host in server.sites]
        for n in range(8):
            p = start(repo, server, *seeds, '--delay', 0, '--processes', 2)
            time.sleep(random_.uniform(0.05, 0.5))
            if n % 2 and repo.exists():
                call(repo, 'update', status=None)  # while it runs
            kill_all(p)
            if call(repo, 'stat', status=None).returncode:
                continue
            edition = ask(repo, 'stat')[0]['edition']
            call(repo, 'update')
            stat = ask(repo, 'stat')[0]
            assert stat['edition'] <= edition + 1, (edition, stat)
            fetched = ask(repo, 'webdb', 'count')[0]['fetched'] if stat['edition'] else 0
            assert fetched == stat['pages'], (fetched, stat)
        crawl(repo, server, *seeds, '--delay', 0)
        call(repo, 'update')
        assert ask(repo, 'webdb', 'count')[0]['fetched'] == ask(repo, 'stat')[0]['pages'] == 160
        verified(repo)


@test
def imports_of_the_past(folder):
    """Old captures take their place, whatever webdb and the store have heard before; nothing old becomes the latest."""
    repo, url = folder / 'r', 'http://past.test/'
    days = ['2025-01-0%dT00:00:00Z' % d for d in range(1, 8)]
    call(repo, 'init', '--history', 'all')

    def take(name, *captures):
        return done(ask(repo, 'import', archive(folder / name, [Page(url, body, days[d]) for d, body in captures])))

    end = take('a.warc', (4, b'five'), (2, b'three'))
    assert (end['pages'], end['replaced'], end['captures']) == (2, 0, 0), end
    call(repo, 'update')
    md5 = ask(repo, 'webdb', 'page', url)[0]['md5']
    assert md5 == ask(repo, 'get', url)[0]['md5']
    end = take('b.warc', (0, b'one'), (3, b'three'), (5, b'five'), (6, b'three'))
    assert (end['pages'], end['replaced'], end['captures']) == (2, 1, 2), end
    assert [v[0] for v in versions(repo, url)] == [1, 2, 2, 1]
    again = take('b.warc', (0, b'one'), (3, b'three'), (5, b'five'), (6, b'three'))
    assert (again['pages'], again['captures']) == (0, 0), again
    call(repo, 'update')
    row, got = ask(repo, 'webdb', 'page', url)[0], ask(repo, 'get', url)[0]
    assert row['md5'] == got['md5'] and row['last_seen'] == got['time'] and row['versions'] == 4, (row, got)
    # Old captures alone do not change what webdb has.
    take('c.warc', (1, b'two'))
    call(repo, 'update')
    assert ask(repo, 'webdb', 'page', url)[0]['md5'] == md5_of(b'three')
    verified(repo)


@test
def pages_without_a_journal(folder):
    """What was imported with --no-journal, or whose journal was lost, is known after the next update."""
    repo, pages = folder / 'r', some_pages(rng('journal'), 6)
    call(repo, 'import', '--no-journal', archive(folder / 'a.warc', pages[:3]))
    call(repo, 'import', archive(folder / 'b.warc', pages[3:]))
    for log in (repo / 'journal').glob('*.wbe'):
        log.unlink()
    call(repo, 'update')
    for p in pages:
        assert ask(repo, 'webdb', 'page', p.url)[0]['md5'] == md5_of(p.body), p.url
    edition = ask(repo, 'stat')[0]['edition']
    call(repo, 'update')
    assert ask(repo, 'stat')[0]['edition'] == edition
    verified(repo)

run()
