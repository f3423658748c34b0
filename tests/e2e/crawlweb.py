#!/usr/bin/env python3
"""Crawls of the synthetic web, judged by what the web reports afterwards: coverage, robots.txt, courtesy, crash safety,
limits.

The server's log is the witness: it has every request of the whole run, and /_truth says which pages exist, which of
them links or sitemaps lead to, and which robots.txt forbids.
"""
import collections, os, resource, signal, subprocess, time

from e2e import *
from crawlserver import fetches
from websim import *

AGENT = 'WebCheck/1.0'


def crawl_command(repo, seeds, *options):
    """If no interval is requested, the Crawl-delay of sites is cut short too; only the tests of courtesy wait for
    it."""
    hurry = ['--max-crawl-delay', 0.05] if '--delay' in options and options[options.index('--delay') + 1] == 0 else []
    return command(repo, 'crawl', *seeds, '--json', '--allow-private', '--user-agent', AGENT, *hurry, *options)


def crawl(repo, seeds, *options, timeout=PATIENCE):
    """Crawls to the end and returns the events."""
    p = subprocess.run(crawl_command(repo, seeds, *options), capture_output=True, timeout=timeout)
    assert p.returncode == 0, 'exit %d: %s' % (p.returncode, p.stderr[-800:])
    return lines(p.stdout)


def slowness():
    """How many times slower than usual the program is on this machine, at least 1."""
    began = time.time()
    for _ in range(10):
        call(None, 'help')
    return min(20, max(1, (time.time() - began) / 0.2))


PROBES = {'/', '/robots.txt'}      # what is requested of every name of a site


class Log:
    """The truth after a crawl, with the requests by host and by URL.

    Some sites have two names. The crawler crawls the one that it knows first, and of the other one requests the
    PROBES only; which one it knows first depends on which page arrives first. The truth lists the pages under one of
    the names. So counts has the requests under the name that the truth uses, without the probes of the other name."""

    def __init__(self, web):
        self.truth = web.truth()
        assert self.truth['dropped'] == 0
        self.pages = {p['url']: p for p in self.truth['pages']}
        self.requests = self.truth['requests']
        self.sites = {s['host']: s for s in self.truth['sites']}
        asked, self.names = self.by_host(), {}      # name in the truth -> name that was crawled, if they differ
        for host, site in self.sites.items():
            if 'alias_of' in site and {path for _, path in asked[host]} - PROBES:
                self.names[site['alias_of']] = host
        others = {s['alias_of'] if s['alias_of'] in self.names else h
                  for h, s in self.sites.items() if 'alias_of' in s}
        for host in others:
            assert {path for _, path in asked[host]} <= PROBES, 'both names of a site were crawled: %s' % host
        self.counts = collections.Counter(self.listed(r['url']) for r in self.requests
                                          if split(r['url'])[0] not in others)

    def listed(self, url):
        """The URL by which the truth lists a page."""
        host, path = split(url)
        return 'http://%s%s' % (self.sites[host]['alias_of'], path) if host in self.names.values() else url

    def crawled(self, url):
        """The URL by which a page of the truth was crawled."""
        host, path = split(url)
        return 'http://%s%s' % (self.names.get(host, host), path)

    def wanted(self):
        """If a site was crawled by its other name, this does not include pages to which only links or sitemaps with the
        name of the truth lead."""
        return {u for u, p in self.pages.items() if p['allowed'] and p['reachable']
                and not (split(u)[0] in self.names and (p.get('isolated') or p.get('sitemap')))}

    def by_host(self):
        found = collections.defaultdict(list)
        for r in self.requests:
            found[split(r['url'])[0]].append((seconds_of(r['time']), split(r['url'])[1]))
        return found

    def own(self):
        """Requests for pages at their own URLs (not robots.txt, sitemaps, or steps of redirects)."""
        return {u: n for u, n in self.counts.items() if u in self.pages}

    def expect_covered(self, repeatable=()):
        lost = sorted(self.wanted() - set(self.counts))
        assert not lost, '%d of %d pages were never requested, such as %s' % (len(lost), len(self.wanted()), lost[:3])
        twice = {u: n for u, n in self.own().items() if n > 1 and self.pages[u]['kind'] not in repeatable}
        assert not twice, '%d pages were requested more than once, such as %s' % (len(twice), sorted(twice.items())[:3])

    def expect_rules_kept(self):
        closed = [u for u in self.counts if u in self.pages and not self.pages[u]['allowed']]
        assert not closed, 'forbidden by robots.txt, but requested: %s' % closed[:3]
        hidden = [u for u in self.counts if u in self.pages and not self.pages[u]['reachable']]
        assert not hidden, 'nothing leads there, but it was requested: %s' % hidden[:3]
        for host, asked in self.by_host().items():
            assert asked[0][1] == '/robots.txt', '%s: %s was requested before robots.txt' % (host, asked[0][1])

    def expect_gaps(self, interval, pulse):
        """Checks that requests to a host are at least the interval apart, and requests for pages at least the
        Crawl-delay.

        The server takes the time when it reads a request. On a busy machine it may read the first of two requests
        late."""
        def slack(moment):
            return max(0.030, 0.15 * interval) + 3 * pulse.lag(moment - 0.2, moment)
        for host, asked in self.by_host().items():
            times = [t for t, _ in asked]
            for before, after, what in zip(times, times[1:], asked[1:]):
                assert after - before >= interval - slack(before), \
                    '%s: %s was requested %.3f s after the previous request' % (host, what[1], after - before)
            delay = self.sites.get(host, {}).get('delay', 0)
            pages = [t for t, path in asked if path != '/robots.txt' and not path.startswith('/sitemap')]
            assert all(b - a >= delay - slack(a) for a, b in zip(pages, pages[1:])), \
                '%s: requests are closer than its Crawl-delay' % host


@test
def every_reachable_page_once_and_no_forbidden_one(folder):
    with Web('--seed', rng('coverage').randrange(1 << 40), '--sites', 60, '--pages', 2500) as web:
        events = crawl(folder / 'r', [web.root], '--scope', 'any', '--delay', 0)
        log = Log(web)
        log.expect_covered()
        log.expect_rules_kept()
        good = [p for p in log.pages.values() if p['url'] in log.wanted() and p['status'] == 200]
        stored = [e['url'] for e in fetches(events) if e['result'] in ('stored', 'duplicate')]
        assert set(log.crawled(p['url']) for p in good) <= set(stored), 'requested, but not stored'
        moved = {e['url'] for e in fetches(events, 'redirect')}
        assert ask(folder / 'r', 'stat')[0]['pages'] - len(moved) == done(events)['pages'] >= len(good)
        verified(folder / 'r')
        for p in rng('bodies').sample(good, 40):
            url = log.crawled(p['url'])
            assert call(folder / 'r', 'get', url).stdout == web.get(url).body, p


@test
def a_crawl_of_one_site_stays_there(folder):
    with Web('--seed', 3, '--sites', 30, '--pages', 1500) as web:
        site = max((s for s in web.truth()['sites'] if s['host'].startswith('s')), key=lambda s: s['pages'])['host']
        crawl(folder / 'r', ['http://%s/' % site], '--delay', 0)
        log = Log(web)
        assert set(log.by_host()) == {site}, sorted(log.by_host())
        inside = {u for u in log.wanted() if split(u)[0] == site and not log.pages[u].get('isolated')}
        assert inside <= set(log.counts) and set(log.own()) <= inside, sorted(inside ^ set(log.own()))[:3]
        log.expect_rules_kept()


@test
def courtesy_over_the_whole_run(folder):
    with Web('--seed', rng('courtesy').randrange(1 << 40), '--sites', 60, '--pages', 600, '--latency',
             20) as web, Pulse() as pulse:
        crawl(folder / 'r', [web.root], '--scope', 'any', '--delay', 0.25, '--max-time', 60)
        log = Log(web)
        log.expect_gaps(0.25, pulse)
        log.expect_rules_kept()
        assert len(log.requests) > 400
        busiest = max(len(a) for a in log.by_host().values())
        assert busiest > 20, 'no site was requested often enough to see anything'


def roots(web):
    return ['http://%s/' % s['host'] for s in web.truth('pages=0')['sites'] if 'alias_of' not in s]


def kill_group(process):
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@test
def killed_at_any_moment_nothing_is_lost_and_courtesy_is_kept(folder):
    random_ = rng('kill')
    with Web('--seed', random_.randrange(1 << 40), '--sites', 20, '--pages', 500, '--latency',
             10) as web, Pulse() as pulse:
        args = ['--scope', 'any', '--delay', 0.1]
        kills, before = 4, 0
        for _ in range(kills):
            p = subprocess.Popen(crawl_command(folder / 'r', [web.root], *args), stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL,
                                 start_new_session=True)
            enough = before + random_.randrange(6, 60)
            while before < enough and p.poll() is None:
                time.sleep(0.05)
                before = len(web.truth('pages=0&sites=0')['requests'])
            kill_group(p)
        crawl(folder / 'r', [web.root], *args)
        log = Log(web)
        assert 20 < before < len(log.requests), (before, len(log.requests))
        lost = log.wanted() - set(log.counts)
        assert not lost, '%d pages lost, such as %s' % (len(lost), sorted(lost)[:3])
        # A page is requested again if its response was on the way when the crawler died: at most one per site.
        again = sum(n - 1 for n in log.own().values())
        assert again <= kills * 22, '%d pages were requested again after %d kills' % (again, kills)
        log.expect_rules_kept()
        log.expect_gaps(0.1, pulse)
        verified(folder / 'r')
        assert len([u for u in log.wanted() if log.pages[u]['status'] == 200]) <= ask(folder / 'r', 'stat')[0]['pages']


@test
def a_second_crawl_uses_validators(folder):
    with Web('--seed', 5, '--sites', 20, '--pages', 600) as web:
        args = ['--scope', 'any', '--delay', 0]
        first = crawl(folder / 'r', roots(web), *args)
        count = len(web.truth('pages=0')['requests'])
        second = crawl(folder / 'r', roots(web), *args)
        results = collections.Counter(e['result'] for e in fetches(second))
        assert results['stored'] == results['duplicate'] == 0, results
        pages = Log(web).pages      # except those of aliases
        again = {e['url'] for e in fetches(second) if e['result'] == 'unchanged'}
        before = {e['url'] for e in fetches(first) if e['result'] in ('stored', 'duplicate') and e['url'] in pages}
        assert before <= again, 'not requested again: %s' % sorted(before - again)[:3]
        statuses = collections.Counter(r['status'] for r in web.truth('pages=0')['requests'][count:])
        assert statuses[304] > statuses[200], statuses
        Log(web).expect_rules_kept()


@test
def a_second_crawl_visits_sites_known_only_by_links(folder):
    with Web('--seed', 5, '--sites', 10, '--pages', 100) as web:
        args = ['--scope', 'any', '--delay', 0]
        crawl(folder / 'r', [web.root], *args)
        crawl(folder / 'r', [web.root], *args)
        counts = Log(web).counts
        once = [u for u in roots(web) if counts[u] < 2]
        assert not once, '%d sites were not visited again, such as %s' % (len(once), once[:3])


@test
def changes_are_seen(folder):
    """Pages that changed between two visits are stored again; the others are reported as unchanged."""
    with Web('--seed', 6, '--sites', 15, '--pages', 800, '--speed', 86400 * 3) as web:
        args = ['--scope', 'any', '--delay', 0]
        crawl(folder / 'r', roots(web), *args)
        time.sleep(5)
        results = {e['url']: e['result'] for e in fetches(crawl(folder / 'r', roots(web), *args))}
        log = Log(web)
        times = collections.defaultdict(list)
        for r in log.requests:
            times[r['url']].append(seconds_of(r['time']))
        seen = collections.Counter()
        for url, p in log.pages.items():
            if p['kind'] != 'page' or len(times[url]) != 2 or split(url)[1] == '/':
                continue
            first, second = times[url]
            changed, gone = seconds_of(p['changed']), seconds_of(p['gone']) if p['gone'] else 1e18
            if gone < second - 0.3:
                assert results[url] == 'gone' or gone < first, (p, results[url])
                seen['gone'] += 1
            elif gone > second + 0.3 and changed < first - 0.3:
                assert results[url] == 'unchanged', (p, results[url])
                seen['unchanged'] += 1
            elif gone > second + 0.3 and first + 0.3 < changed < second - 0.3:
                assert results[url] in ('stored', 'duplicate'), (p, results[url])
                seen['changed'] += 1
        assert min(seen['gone'], seen['unchanged'], seen['changed']) > 3, seen


# ---- hostile webs -----------------------------------------------------------------------

# These may be requested again, because they failed the first time. Long chains of redirects and traps have no page
# count.
RETRIED = {'unavailable', 'too-many', 'reset-head', 'reset-body', 'short', 'silent', 'error', 'garbage', 'bad-chunks',
           'bad-head', 'two-lengths',
           'endless-head', 'huge-head', 'bad-gzip', 'bomb', 'bomb-nested', 'bad-location', 'long', 'slow-first',
           'slow-body',
           'endless-body', 'loop', 'chain', 'long-chain', 'session', 'calendar', 'repeat'}


@test
def hostile_webs_end_in_bounded_time_and_memory(folder):
    with Web('--seed', rng('hostile').randrange(1 << 40), '--sites', 50, '--pages', 1200, '--hostile') as web:
        # On a slow machine everything takes longer, so the limits are longer in proportion.
        slow = slowness()
        events = crawl(folder / 'r', [web.root], '--scope', 'any', '--delay', 0, '--timeout', 4 * slow, '--max-time',
                       25 * slow,
                       '--max-bytes', 1 << 20, '--site-budget', 400)
        done(events)
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        assert peak < 400 << 10, 'a crawler used %d KB' % peak
        log = Log(web)
        log.expect_rules_kept()
        expect_results(log, events)
        twice = {u: n for u, n in log.own().items() if n > 1 and log.pages[u]['kind'] not in RETRIED}
        assert not twice, 'requested more than once: %s' % sorted(twice.items())[:3]
        most = max(log.own().values())
        assert most < 12, 'a page was requested %d times' % most
        verified(folder / 'r')


def expect_results(log, events):
    """Checks that each kind of page has the right result."""
    results = collections.defaultdict(set)
    for e in fetches(events):
        if e['url'] in log.pages:
            results[log.pages[e['url']]['kind']].add(e['result'])
    for kind, allowed in (('endless-body', {'truncated'}), ('missing', {'gone'}), ('gone', {'gone'}),
                          ('redirect', {'redirect'}),
                          ('out', {'redirect'}), ('page', {'stored', 'duplicate', 'robots', 'gone'}),
                          ('soft-404', {'stored', 'duplicate'}),
                          ('windows-1252', {'stored', 'duplicate'}), ('unknown-coding', {'stored', 'duplicate'}),
                          ('deep', {'stored', 'duplicate', 'truncated'})):
        assert results[kind] <= allowed, (kind, results[kind])
    for kind in ('silent', 'reset-head', 'reset-body', 'short', 'garbage', 'bad-chunks', 'endless-head', 'bomb',
                 'bomb-nested', 'bad-gzip',
                 'error', 'bad-location'):
        assert all(r.startswith('error:') for r in results[kind]), (kind, results[kind])
    assert sum(bool(r) for r in results.values()) > 20, 'too few kinds of pages were met: %s' % sorted(results)


run()
