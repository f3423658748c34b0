#!/usr/bin/env python3
"""Memory of all processes of a crawl with a large number of links and known URLs."""
import time

from e2e import *
from crawlserver import *

LIMIT_MB = 200


def anonymous_kb(pid):
    with contextlib.suppress(OSError):
        found = re.search(r'RssAnon:\s+(\d+)', pathlib.Path('/proc/%d/status' % pid).read_text())
        return int(found.group(1)) if found else 0
    return 0


def peak_mb(process, enough):
    """The peak memory of the parent and its workers together, until enough() or the end."""
    peak = 0
    while process.poll() is None and not enough():
        peak = max(peak, sum(anonymous_kb(p) for p in [process.pid, *workers_of(process)]))
        time.sleep(0.03)
    return peak / 1024


def run_measured(folder, server, enough, *args):
    p = start(folder / 'r', server, *args, stdout=open(folder / 'out', 'w'), stderr=subprocess.PIPE)
    until(lambda: server.requests)
    mb = peak_mb(p, enough)
    if p.poll() is None:
        kill(p.pid, signal.SIGTERM)
    assert p.wait(PATIENCE) in (0, 1), p.stderr.read()
    print('# %.0f MB' % mb)
    assert 1 < mb < LIMIT_MB, '%.0f MB' % mb
    verified(folder / 'r')
    return lines((folder / 'out').read_bytes())


@test
def a_page_with_a_hundred_thousand_links(folder):
    links = ''.join('<a href="/some/path/to/page-%d.html?number=%d">link %d</a>\n' % (n, n * 7, n)
                    for n in range(100000))
    with Server({'big.test': {'/': links.encode(), '*': lambda r: page(text=r.path)}}) as server:
        run_measured(folder, server, lambda: len(server.requests) > 1500, server.url('big.test'), '--delay', 0,
                     '--processes', 2)
        assert len(server.requests) > 1000
        # After a kill or a stop, all of it is known again.
        begin = len(server.requests)
        run_measured(folder, server, lambda: len(server.requests) > begin + 300, server.url('big.test'), '--delay', 0,
                     '--processes', 2)
        assert max(n for (_, path), n in server.counts.items() if path != '/robots.txt') == 1


@test
def links_to_very_many_sites(folder):
    with Server({'hub.test': {'*': lambda r: page(text=r.path)}}) as server:
        links = ''.join('<a href="http://n%d.example:%d/">x</a>\n' % (n, server.port) for n in range(20000))
        server.sites['hub.test']['/'] = links.encode()
        p = run_measured(folder, server, lambda: len(server.requests) > 400, server.url('hub.test'), '--scope', 'any',
                         '--delay', 1, '--processes', 2,
                         '--resolve', '*.example:%d:127.0.30.1' % server.port)
        assert len({r.host for r in server.requests}) > 100, len(p)


@test
def two_hundred_thousand_known_urls(folder):
    with Server({'maps.test': {'*': lambda r: page(text=r.path)}}) as server:
        site = server.sites['maps.test']
        site['/robots.txt'] = Reply('\n'.join('Sitemap: ' + server.url('maps.test', '/map%d.txt' % m)
                                              for m in range(4)), type='text/plain')
        for m in range(4):
            site['/map%d.txt' %
                 m] = Reply('\n'.join(server.url('maps.test', '/section/%d/article-%d' % (m, n)) for n in range(50000)),
                            type='text/plain')
        events = run_measured(folder, server, lambda: len(server.requests) > 2500, server.url('maps.test'), '--delay',
                              0, '--processes', 2)
        assert sum(e['result'] == 'sitemap' and e['bytes'] > 1e6 for e in fetches(events)) == 4
        why = ask(folder / 'r', 'why', server.url('maps.test', '/section/3/article-49999'))[0]
        assert why['verdict'] in ('waiting', 'fetched'), why


run_together()
