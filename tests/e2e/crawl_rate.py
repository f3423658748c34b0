#!/usr/bin/env python3
"""crawl --max-rate: all processes together receive no more than the given number of bytes per second."""
import datetime, random

from e2e import *
from crawlserver import *


def noise(name, size):
    """Bytes that no coding makes smaller."""
    return random.Random(name).randbytes(size)


def big_site(name, pages, size):
    return {'/': page(*['/%d' % n for n in range(pages)], text=name), '/robots.txt': Reply('', 404),
            **{'/%d' % n: Reply(noise('%s%d' % (name, n), size), type='application/octet-stream')
               for n in range(pages)}}




def seconds(events):
    """From the first request to the end of the last response, by the program's own timestamps. A busy machine only makes
    it longer."""
    at = lambda e: datetime.datetime.fromisoformat(e['time'].replace('Z', '+00:00')).timestamp()
    return max(at(e) + e['ms'] / 1000 for e in fetches(events)) - min(at(e) for e in fetches(events))


@test
def large_pages_stay_below_the_rate(folder):
    size, rate = 300000, 400000
    with Server({'h%d.test' % n: big_site(str(n), 2, size) for n in range(4)}) as server:
        seeds = [server.url(h) for h in server.sites]
        events = crawl(folder / 'r', server, *seeds, '--delay', 0, '--max-rate', '400k', '--processes', 2)
        total = 8 * size
        assert len(stored(events)) == 12, results(events)
        took = seconds(events)
        assert total / took <= 1.2 * rate, 'received %.0f bytes/s' % (total / took)
        assert call(folder / 'r', 'get', server.url('h1.test', '/1')).stdout == noise('11', size)


@test
def a_page_that_takes_longer_than_the_timeout_only_because_of_the_rate_is_not_given_up(folder):
    size = 300000
    with Server({'slow.test': big_site('s', 2, size)}) as server:
        events = crawl(folder / 'r', server, server.url('slow.test'), '--delay', 0, '--max-rate', '100k',
                       '--timeout', 1)
        assert sorted(results(events).values()) == ['rules', 'stored', 'stored', 'stored'], results(events)
        assert seconds(events) >= 2 * size / 120000
        assert server.counts['slow.test', '/0'] == server.counts['slow.test', '/1'] == 1


@test
def a_limit_of_bytes_holds_under_a_rate(folder):
    with Server({'h.test': big_site('h', 2, 200000)}) as server:
        events = crawl(folder / 'r', server, server.url('h.test'), '--delay', 0, '--max-rate', '200k',
                       '--max-bytes', 50000)
        assert sorted(results(events).values()) == ['rules', 'stored', 'truncated', 'truncated'], results(events)
        assert call(folder / 'r', 'get', server.url('h.test', '/1')).stdout == noise('h1', 200000)[:50000]


@test
def small_pages_are_counted_too(folder):
    body = lambda r: Reply(noise(r.host + r.path, 8000), type='application/octet-stream')
    with Server({'h%d.test' % n: {'/': page(*['/%d' % i for i in range(40)], text=str(n)), '*': body,
                                  '/robots.txt': Reply('', 404)} for n in range(3)}) as server:
        seeds = [server.url(h) for h in server.sites]
        events = crawl(folder / 'r', server, *seeds, '--delay', 0, '--max-rate', 300000, '--processes', 2)
        assert len(stored(events)) == 123, len(stored(events))
        assert 120 * 8000 / seconds(events) <= 1.2 * 300000, seconds(events)


@test
def wrong_rates_are_refused(folder):
    for value in ('0', '-1', 'fast', '10q', '1.5M', 'k', '99999999999T'):
        refused(folder / 'r', 'max-rate', 'crawl', 'http://a.test/', '--max-rate=' + value, status=2, one_line=False)


run_together()
