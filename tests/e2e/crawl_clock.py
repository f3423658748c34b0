#!/usr/bin/env python3
"""Clocks: setting the clock during a crawl, or between two crawls, neither stops the crawl nor makes it hurry. Slow
servers get their rest."""
import time

from e2e import *
from crawlserver import *

HOUR, YEAR = 3600, 365 * 24 * 3600


# ---- during a crawl ------------------------------------------------------------------------------

def set_while_crawling(folder, seconds, processes=1):
    clock = Clock(folder)
    sites = {'c%d.test' % i: star(12, 'c%d' % i) for i in range(3)}
    with Server(sites) as server:
        process = start(folder / 'r', server, *[server.url(h) for h in sites], '--delay', 0.3, '--processes', processes,
                        '--no-sitemaps', env=clock.env())
        until(lambda: len(server.requests) > 12)
        clock.set(seconds)
        set_at = len(server.requests)
        until(lambda: process.poll() is not None)
        assert process.returncode == 0, process.returncode
        assert len(server.requests) > set_at
        server.expect_gaps(0.3)
    assert ask(folder / 'r', 'stat')[0]['pages'] == 36
    verified(folder / 'r')


@test
def clock_put_back_an_hour(folder):
    set_while_crawling(folder, -HOUR)


@test
def clock_put_forward_an_hour(folder):
    set_while_crawling(folder, HOUR)


@test
def clock_put_back_ten_years(folder):
    set_while_crawling(folder, -10 * YEAR)


@test
def what_is_fetched_after_the_clock_was_set_has_the_right_time(folder):
    clock = Clock(folder)
    clock.set(10 * YEAR)
    with Server({'t.test': star(8)}) as server:
        process = start(folder / 'r', server, server.url('t.test'), '--delay', 0.3, '--no-sitemaps', env=clock.env())
        until(lambda: len(server.requests) > 3)
        clock.set(-10 * YEAR)
        until(lambda: process.poll() is not None)
        last = [r.path for r in server.requests][-1]
        # We do not know which request was under way when the clock was set; the last one was sent after it.
        date = ask(folder / 'r', 'get', server.url('t.test', last))[0]['time']
        assert date[:4] == time.strftime('%Y', time.gmtime()), date


# ---- between crawls -----------------------------------------------------------------------------------

@test
def a_visit_dated_ten_years_ahead_does_not_delay_the_next(folder):
    clock = Clock(folder)
    busy = {}

    def root(request):
        return Reply(status=503, headers=[('Retry-After', '3000')]) if busy.get('yes') else page('/1', text='busy')
    with Server({'a.test': star(4), 'b.test': {'/': root, '/1': page(text='b1')}}) as server:
        args = [server.url('a.test'), server.url('b.test'), '--delay', 0.2, '--no-sitemaps']
        clock.set(10 * YEAR)
        busy['yes'] = True
        crawl(folder / 'r', server, *args, env=clock.env())
        clock.set(-10 * YEAR)
        busy['yes'] = False
        before = len(server.requests)
        why = ask(folder / 'r', 'why', server.url('b.test'), env=clock.env())[0]
        # A site that asked for 3000 s waits no longer than that.
        assert why['next_time'][:4] == time.strftime('%Y', time.gmtime()), why
        crawl(folder / 'r', server, args[0], *args[2:], env=clock.env())
        asked = [r.path for r in server.requests[before:] if r.host == 'a.test' and r.path != '/robots.txt']
        assert sorted(asked) == ['/', '/1', '/2', '/3'], asked
        # The wait counts once from now: 3000 s.
        crawl(folder / 'r', server, *args[1:], env=clock.env())
        assert server.paths('b.test').count('/') == 1, server.paths('b.test')
        clock.forward(3100)
        crawl(folder / 'r', server, *args[1:], env=clock.env())
        assert '/1' in server.paths('b.test'), server.paths('b.test')
        server.expect_gaps(0.2, hosts=['a.test'])


@test
def robots_txt_from_the_future_is_not_believed_for_years(folder):
    clock = Clock(folder)
    rules = {'text': 'User-agent: *\nDisallow: /\n'}
    with Server({'r.test': {**star(3),
                            '/robots.txt': lambda request: Reply(rules['text'], type='text/plain')}}) as server:
        args = [server.url('r.test'), '--delay', 0, '--no-sitemaps']
        clock.set(10 * YEAR)
        crawl(folder / 'r', server, *args, env=clock.env())
        clock.set(-10 * YEAR)
        rules['text'] = ''
        clock.forward(25 * HOUR)
        crawl(folder / 'r', server, *args, env=clock.env())
        assert ask(folder / 'r', 'stat')[0]['pages'] == 3


# ---- courtesy ----------------------------------------------------------------------------------------

@test
def a_slow_server_gets_a_rest_as_long_as_its_response_took(folder):
    delay, wait = 0.4, 1.0
    with Server({'s.test': star(6, wait=wait), 'q.test': star(6)}) as server:
        crawl(folder / 'r', server, server.url('s.test'), server.url('q.test'), '--delay', delay, '--no-sitemaps')
        slow = sorted((r for r in server.requests if r.host == 's.test'), key=lambda r: r.time)
        assert len(slow) == 7
        for a, b in zip(slow, slow[1:]):
            took = a.done - a.time
            assert b.time - a.done >= 0.8 * min(took, delay), (a, b)
        server.expect_gaps(delay)


def cut(pages, used):
    """Answers the second request of each connection by closing it."""
    return {path: (lambda request, body=body: Reply(end='close') if request.number == 1 and used(request) else body)
            for path, body in pages.items()}


@test
def a_request_without_a_response_is_repeated_after_the_interval(folder):
    delay, dropped = 0.5, []

    def used(request):
        if request.path in ('/1', '/3', '/4'):
            dropped.append(request.path)
            return True
        return False
    with Server({'k.test': cut(star(6), used)}) as server:
        events = crawl(folder / 'r', server, server.url('k.test'), '--delay', delay, '--no-sitemaps')
        assert sorted(dropped) == ['/1', '/3', '/4'], dropped
        server.expect_gaps(delay)
        assert done(events)['pages'] == 6 and done(events)['errors'] == 0, done(events)
        assert all(server.counts['k.test', p] == 2 for p in dropped), server.counts


run_together()
