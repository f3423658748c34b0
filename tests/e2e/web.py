#!/usr/bin/env python3
"""The synthetic web itself: the same seed gives the same web, and what it says about itself is true."""
import collections, gzip, json, math, os, re, signal, socket, subprocess, time, zlib

from e2e import *
from websim import *


def bare(web, data):
    for coding in ('ascii', 'utf-16-le'):
        data = data.replace((':%d' % web.port).encode(coding), ':PORT'.encode(coding))
    return data


def expect_near(what, got, expected, variance):
    """Checks that a number is within five standard deviations plus one of what is expected."""
    slack = 5 * math.sqrt(variance) + 1
    assert abs(got - expected) <= slack, '%s: %.0f instead of %.1f +- %.1f' % (what, got, expected, slack)


@test
def the_same_seed_gives_the_same_bytes_after_a_restart(folder):
    args = ['--sites', 12, '--pages', 300]
    with Web('--seed', 5, *args) as a, Web('--seed', 5, *args) as b, Web('--seed', 6, *args) as c:
        truth = [bare(w, json.dumps([w.truth('requests=0')[k] for k in ('sites', 'pages')]).encode())
                 for w in (a, b, c)]
        assert truth[0] == truth[1] and truth[0] != truth[2]
        for p in a.pages():
            twin = p['url'].replace(':%d' % a.port, ':%d' % b.port)
            x, y = a.get(p['url']), b.get(twin)
            assert (x.status, bare(a, x.body), x.headers['Last-Modified']) == (y.status, bare(b, y.body),
                                                                               y.headers['Last-Modified']), p


@test
def truth_is_what_is_served(folder):
    with Web('--seed', rng('truth').randrange(1 << 40), '--sites', 30, '--pages', 1200) as web:
        truth = web.truth()
        rules, linked, kinds = {}, collections.defaultdict(set), collections.Counter()
        for s in truth['sites']:
            r = web.get('http://%s/robots.txt' % s['host'])
            rules[s['host']] = Robots(r.status, r.text())
            assert (s['robots'] == 'none') == (r.status == 404), s
            assert (rules[s['host']].delay or 0) == s['delay'], s
        for p in truth['pages']:
            r = web.get(p['url'])
            kinds[p['kind']] += 1
            assert r.status == p['status'], (p, r.status)
            assert rules[split(p['url'])[0]].allows(p['url']) == p['allowed'], p
            if p['kind'] == 'redirect':
                assert r.headers['Location'] == split(p['to'])[1], (p, r.headers['Location'])
            if r.status == 200 and p['kind'] in ('page', 'list'):
                for link in links_of(p['url'], r.text()):
                    linked[link].add(p['url'])
        known = {p['url']: p for p in truth['pages']}
        assert len(known) == len(truth['pages']), 'a page is listed twice'
        assert len(kinds) > 8, kinds
        aliases = {s['host']: s['alias_of'] for s in truth['sites'] if 'alias_of' in s}
        for link in linked:
            host, path = split(link)
            assert 'http://%s%s' % (aliases.get(host, host), path) in known, \
                'a link to a page that does not exist: %s' % link
        expect_reach(web, truth, known, linked)


def expect_reach(web, truth, known, linked):
    """Walks the links of each site from its root, and checks that it finds what the truth says can be found."""
    by_source = collections.defaultdict(list)
    for link, sources in linked.items():
        for source in sources:
            by_source[source].append(link)
    for s in truth['sites']:
        if 'alias_of' in s:
            continue
        root = web.site_root(s['host'])
        seen, left = {root}, [root]
        while left:
            for link in by_source[left.pop()]:
                if split(link)[0] == s['host'] and link not in seen:
                    seen.add(link)
                    left += [link] if known[link]['allowed'] else []
        mapped = set(web.sitemap_urls(s['host']))
        for url, p in known.items():
            if split(url)[0] != s['host']:
                continue
            inside = url in seen
            assert inside == (p['reachable'] and not p.get('isolated') and not p.get('sitemap')), p
            assert not p.get('sitemap') or url in mapped, p
            if p.get('isolated'):
                assert bool(linked[url]) == p['reachable'], (p, linked[url])
        assert mapped <= set(known), sorted(mapped - set(known))[:3]
        assert (s['sitemap'] != 'none') == bool(mapped), s


@test
def aliases_and_virtual_hosts(folder):
    with Web('--seed', 3, '--sites', 120, '--pages', 400) as web:
        sites = web.truth('pages=0&requests=0')['sites']
        second = [s for s in sites if 'alias_of' in s]
        assert second
        for s in second:
            for path in ('/', '/robots.txt'):
                a, b = web.get('http://%s%s' % (s['host'], path)), web.get('http://%s%s' % (s['alias_of'], path))
                assert (a.status, a.body) == (b.status, b.body), s
        roots = {web.get(web.site_root(s['host'])).body for s in sites}
        assert len(roots) == len(sites) - len(second), 'two virtual hosts have the same root page'
        known = {s['host'] for s in sites}
        stranger = next('a%d.localhost:%d' % (i, web.port) for i in range(1, 121)
                        if 'a%d.localhost:%d' % (i, web.port) not in known)
        for host in (stranger, 's121.localhost', 'elsewhere.example', 's0.localhost', 'sx.localhost'):
            assert web.get('http://%s/' % host).body == web.get(web.root).body, host


@test
def many_sites_are_listed_on_several_pages(folder):
    with Web('--sites', 2500, '--pages', 3000) as web:
        listed, url = [], web.root
        while url:
            links = links_of(url, web.get(url).text())
            listed += [l for l in links if split(l)[1] == '/' and split(l)[0].startswith('s')]
            url = next((l for l in links if '/sites/' in l and split(l)[0] == split(web.root)[0]), None)
        assert sorted(set(listed)) == sorted('http://s%d.localhost:%d/' % (i, web.port) for i in range(1, 2501))
        assert {p['url'] for p in web.pages('list')} == {web.root + 'sites/2', web.root + 'sites/3'}
        sizes = sorted((s['pages'] for s in web.truth('pages=0')['sites'] if 'alias_of' not in s), reverse=True)
        assert sizes[0] > 20 * sizes[len(sizes) // 2], 'sizes do not follow a power law: %s' % sizes[:5]


@test
def conditional_requests_head_and_gzip(folder):
    with Web('--seed', 2, '--sites', 20, '--pages', 200) as web:
        seen = collections.Counter()
        for p in web.pages('page', status=200):
            r = web.get(p['url'])
            head = web.get(p['url'], 'HEAD')
            assert head.body == b'' and head.headers['Content-Length'] == str(len(r.body)), p
            for name, ask in (('ETag', 'If_None_Match'), ('Last-Modified', 'If_Modified_Since')):
                if r.headers[name]:
                    seen[name] += 1
                    again = web.get(p['url'], **{ask: r.headers[name]})
                    assert (again.status, again.body) == (304, b''), (p, again.status)
                    assert web.get(p['url'], **{ask: '"other"'}).status == 200
            z = web.get(p['url'], Accept_Encoding='br, gzip')
            if z.headers['Content-Encoding'] == 'gzip':
                seen['gzip'] += 1
                assert len(z.body) < len(r.body) and gzip.decompress(z.body) == r.body
            else:
                assert z.body == r.body
        assert len(seen) == 3, seen


@test
def odd_requests_are_answered(folder):
    with Web('--seed', 2, '--sites', 3, '--pages', 30) as web:
        root = web.get('http://s1.localhost:%d/' % web.port).body
        with socket.create_connection(('127.0.0.1',
                                       web.port)) as s:     # three requests at once; the last one closes the connection
            s.sendall(b'GET / HTTP/1.1\r\nHost: s1.localhost\r\n\r\n'
                      b'GET http://S1.LOCALHOST:9/ HTTP/1.1\r\nHost: x\r\n\r\n'
                      b'GET / HTTP/1.0\nHost: s1.localhost\n\n')
            data = b''
            while (got := s.recv(65536)):
                data += got
            assert data.count(root) == 3, data.count(root)
        for odd in (b'nonsense\r\n\r\n', b'GET nowhere HTTP/1.1\r\n\r\n', b'\r\n\r\n',
                    b'GET / HTTP/1.1\r\nX: ' + b'y' * 70000):
            with socket.create_connection(('127.0.0.1', web.port)) as s:
                s.sendall(odd)
                assert s.recv(100).startswith(b'HTTP/1.1 400 '), odd[:20]
        for path in ('/no-such-page', '/news/nothing-here-999999999.html', '/a-4294967296', '/latest/', '/sites/2',
                     '/news/view?id=', '/?x=1',
                     '/sitemap-part9.xml', '/%2e%2e/', '/' + 'x' * 9000):
            assert web.get(web.root.rstrip('/') + path).status == 404, path
        assert web.get(web.root, 'POST').status == 405
        folder_page = next(p for p in web.pages('page', status=200) if p['url'].endswith('/')
                           and p['url'].count('/') > 4)
        r = web.get(folder_page['url'].rstrip('/'))
        assert r.status == 301 and folder_page['url'].endswith(r.headers['Location']), r.headers['Location']


@test
def requests_are_remembered(folder):
    with Web('--seed', 2, '--sites', 9, '--pages', 100) as web:
        assert web.truth()['requests'] == []
        pages = [p['url'] for p in web.pages('page', status=200)]
        asked = pages[:20] + [web.root + 'nothing?x=%22', 'http://s1.localhost:%d/robots.txt' % web.port]
        before = time.time()
        for url in asked:
            web.get(url)
        middle = time.time()
        web.get(pages[0], 'HEAD')
        requests = web.truth('pages=0&sites=0')['requests']
        assert [r['url'] for r in requests] == asked + [pages[0]]
        times = [seconds_of(r['time']) for r in requests]
        assert times == sorted(times) and before - 0.1 < times[0] and times[-1] < time.time() + 0.1, times
        assert requests[-1]['method'] == 'HEAD' and requests[20]['status'] == 404
        later = web.truth('since=%d' % int(times[-1] * 1000))['requests']
        assert later and later[-1]['url'] == pages[0] and len(later) < len(requests) or middle - before < 0.01
        one = web.truth('site=s1.localhost:%d' % web.port)
        assert {split(r['url'])[0] for r in one['requests']} == {'s1.localhost:%d' % web.port}
        assert {split(p['url'])[0] for p in one['pages']} == {'s1.localhost:%d' % web.port}


@test
def pages_change_appear_and_vanish_at_their_rates(folder):
    day = 86400
    with Web('--seed', rng('rates').randrange(1 << 40), '--sites', 40, '--pages', 6000, '--speed', day) as web:
        a = web.truth('requests=0')
        time.sleep(4)
        b = web.truth('requests=0')
        days = (b['web']['web_seconds'] - a['web']['web_seconds']) / day
        assert days > 3.5, days
        first, second = {p['url']: p for p in a['pages']}, {p['url']: p for p in b['pages']}
        chance = [1 - math.exp(-p['rate'] * days) for p in a['pages'] if 'rate' in p]
        changed = sum(p['version'] != second[u]['version'] for u, p in first.items() if 'rate' in p)
        expect_near('pages that changed', changed, sum(chance), sum(c * (1 - c) for c in chance))
        born = [p for u, p in second.items() if u not in first and 'rate' in p]
        births = sum(s['births'] for s in b['sites'] if 'alias_of' not in s) * days
        expect_near('pages that appeared', len(born), births, births)
        mortal = [p for p in a['pages'] if p.get('gone') and p['status'] == 200]
        vanished = sum(second[p['url']]['status'] in (404, 410) for p in mortal)
        chance = 1 - math.exp(-days / 30)
        expect_near('pages that vanished', vanished, len(mortal) * chance, len(mortal) * chance * (1 - chance))
        fast = [p for p in a['pages'] if p.get('rate', 0) > 1 and p['kind'] == 'page']
        assert fast and all(p['version'] < second[p['url']]['version'] for p in fast if p['rate'] > 20)
        expect_reachable_newborns(web, b)


def expect_reachable_newborns(web, truth):
    """Checks that new pages are linked from /latest/ or from older lists, and that they answer."""
    host = max((s for s in truth['sites'] if 'alias_of' not in s), key=lambda s: s['births'])['host']
    found, url = set(), 'http://%s/latest/' % host
    assert url in links_of(web.site_root(host), web.get(web.site_root(host)).text())
    for _ in range(1000):
        links = links_of(url, web.get(url).text())
        found.update(links)
        url = next((l for l in links if '/latest/' in l and l != url), None)
        if not url:
            break
    for p in truth['pages']:
        if split(p['url'])[0] == host and re.search(r'-n\d+\.html$', p['url']) and p['status'] == 200:
            if not p['gone'] or seconds_of(p['gone']) > time.time() + 1:
                assert p['url'] in found and web.get(p['url']).status == 200, p


@test
def bytes_change_exactly_when_the_version_does(folder):
    with Web('--seed', 4, '--sites', 5, '--pages', 400, '--speed', 10 * 86400) as web:
        last, compared = {}, collections.Counter()
        for _ in range(4):
            time.sleep(0.5)
            before = {p['url']: p for p in web.pages('page')}
            bodies = {u: web.get(u) for u, p in before.items() if p['status'] == 200}
            after = {p['url']: p for p in web.pages('page')}
            for u, r in bodies.items():
                if r.status != 200 or before[u]['version'] != after[u]['version'] or '/latest/' in r.text():
                    continue
                if u in last:
                    same = last[u][0] == before[u]['version']
                    compared[same] += 1
                    assert (last[u][1] == r.body) == same, (u, same)
                if r.headers['Last-Modified']:
                    moment = time.strftime('%a, %d %b %Y %H:%M:%S GMT', time.gmtime(seconds_of(before[u]['changed'])))
                    assert r.headers['Last-Modified'] == moment, (before[u], r.headers['Last-Modified'])
                last[u] = (before[u]['version'], r.body)
        assert compared[True] > 50 and compared[False] > 50, compared


# ---- misbehaviour -------------------------------------------------------------------

def one_of(pages, kind):
    found = [p for p in pages if p['kind'] == kind]
    assert found, 'no page of kind ' + kind
    return found[0]['url']


def head_and_body(data):
    head, _, body = data.partition(b'\r\n\r\n')
    return head, body


@test
def hostile_kinds_do_what_they_say(folder):
    with Web('--seed', 11, '--sites', 20, '--pages', 8000, '--hostile') as web:
        pages = web.pages()

        def fetch(kind, **kw):
            return web.bytes(one_of(pages, kind), **kw)

        data, end = fetch('silent', seconds=1)
        assert (data, end) == (b'', 'silent')
        data, end = fetch('reset-head')
        assert end == 'reset' and b'\r\n\r\n' not in data
        for kind, how in (('reset-body', 'reset'), ('short', 'closed')):
            data, end = fetch(kind)
            head, body = head_and_body(data)
            assert end == how and int(head.rpartition(b'Content-Length: ')[2]) > len(body) > 0, (kind, end, head)
        head, body = head_and_body(fetch('long')[0])
        assert int(head.rpartition(b'Content-Length: ')[2]) < len(body)
        for kind in ('endless-body', 'endless-head'):
            data, end = fetch(kind, limit=40 << 20)
            assert end == 'limit' and (b'\r\n\r\n' in data) == (kind == 'endless-body'), (kind, end)
        assert len(head_and_body(fetch('huge-head')[0])[0]) > 900000
        head, body = head_and_body(fetch('bad-chunks')[0])
        assert b'chunked' in head and (b'\r\nxyz\r\n' in body or b'fffffffffffffffff' in body)
        assert not fetch('garbage')[0].startswith(b'HTTP')
        assert fetch('two-lengths')[0].count(b'Content-Length') == 2 and b'\0' in fetch('bad-head')[0]
        head, body = head_and_body(fetch('unknown-coding')[0])
        assert b'Content-Encoding: squeezed' in head and body.startswith(b'<!DOCTYPE')
        head, body = head_and_body(fetch('bad-gzip')[0])
        assert b'Content-Encoding: gzip' in head and body.startswith(b'<!DOCTYPE')
        expect_bombs(fetch)
        expect_slow(web, pages)
        expect_errors(web, pages)
        expect_traps(web, pages)


def inflated(body):
    """The length of gzipped data when unpacked, and whether it ends properly."""
    z, total = zlib.decompressobj(31), 0
    while body and not z.eof:
        total += len(z.decompress(body, 1 << 24))
        body = z.unconsumed_tail
    return total, z.eof


def expect_bombs(fetch):
    head, body = head_and_body(fetch('bomb')[0])
    assert len(body) < 3 << 20 and inflated(body) == (1 << 30, True)
    head, nested = head_and_body(fetch('bomb-nested')[0])
    assert b'gzip, gzip' in head and len(nested) < 100 << 10 and gzip.decompress(nested) == body


def expect_slow(web, pages):
    start = time.time()
    r = web.get(one_of(pages, 'slow-first'))
    assert r.status == 200 and time.time() - start > 1.9
    start = time.time()
    r = web.get(one_of(pages, 'slow-body'))
    assert r.status == 200 and time.time() - start > 0.19 * (len(r.body) // 512 - 1)


def expect_errors(web, pages):
    assert web.get(one_of(pages, 'error')).status == 500
    for kind, status in (('unavailable', 503), ('too-many', 429)):
        url, seen, end = one_of(pages, kind), {}, time.time() + PATIENCE
        while len(seen) < 2 and time.time() < end:
            r = web.get(url)
            assert r.status == 200 or 1 <= int(r.headers['Retry-After']) <= 3
            seen[r.status] = r
            time.sleep(0.2)
        assert sorted(seen) == [200, status], (kind, sorted(seen))
    for kind, hops in (('chain', 3), ('long-chain', 60), ('loop', 100)):
        url, n = one_of(pages, kind), 0
        while n < 100:
            r = web.get(url)
            if r.status == 200:
                break
            assert r.status in (301, 302, 307, 308), (kind, r.status)
            url, n = 'http://%s%s' % (split(url)[0], r.headers['Location']), n + 1
        assert n == hops, (kind, n)
    host = split(one_of(pages, 'out'))[0]
    assert host not in web.get(one_of(pages, 'out')).headers['Location']


def expect_traps(web, pages):
    for kind, rounds in (('calendar', 40), ('session', 40), ('repeat', 40)):
        url = first = one_of(pages, kind)
        seen = {url}
        for _ in range(rounds):
            r = web.get(url)
            assert r.status == 200, (url, r.status)
            fresh = [l for l in links_of(url, r.text()) if l.startswith(first) and l not in seen]
            assert fresh, '%s ends at %s' % (kind, url)
            url = fresh[-1]
            seen.add(url)
    lost = [l for l in links_of(web.root, web.get(one_of(pages, 'soft-404')).text()) if '/missing-' in l]
    assert len(lost) == 5
    url = one_of(pages, 'soft-404') + '/missing-z'
    assert web.get(url).status == 200
    assert web.get(one_of(pages, 'many-links')).text().count('<a href="/nothing/') == 5000
    assert web.get(one_of(pages, 'deep')).text().count('<div>') == 50000


@test
def benign_oddities(folder):
    with Web('--seed', 12, '--sites', 20, '--pages', 6000) as web:
        pages = web.pages()
        assert {p['kind'] for p in pages} == {'page', 'redirect', 'chain', 'out', 'missing', 'gone', 'duplicate',
                                              'near-duplicate',
                                              'windows-1252', 'shift_jis', 'utf-16'}
        for p in pages:
            if p['kind'] in ('duplicate', 'near-duplicate'):
                a, b = web.get(p['url']).body, web.get(p['of']).body
                assert (a == b) == (p['kind'] == 'duplicate') and a[:len(b)] == b, p
            elif p['kind'] in ('windows-1252', 'shift_jis', 'utf-16'):
                r = web.get(p['url'])
                name = {'utf-16': 'utf-16le'}.get(p['kind'], p['kind'])
                told = r.headers.get_param('charset')
                text = r.body.decode(name)
                assert told == name or told is None and 'charset="%s"' % name in text, (p, told)
                assert ('forêt' if p['kind'] == 'windows-1252' else 'ページ') in text or 'ます' in text, p
        hostile = {'failing', 'huge', 'moved', 'html', 'slow'}
        assert not hostile & {s['robots'] for s in web.truth('pages=0')['sites']}


@test
def hostile_rules(folder):
    with Web('--seed', 13, '--sites', 200, '--pages', 4000, '--hostile') as web:
        truth = web.truth('requests=0')
        sites = {s['robots']: s['host'] for s in truth['sites'] if 'alias_of' not in s}
        closed = collections.defaultdict(set)
        for p in truth['pages']:
            closed[split(p['url'])[0]].add(p['allowed'])
        assert web.get('http://%s/robots.txt' % sites['failing']).status == 503 and closed[sites['failing']] == {False}
        huge = web.get('http://%s/robots.txt' % sites['huge']).body
        assert huge.index(b'Disallow') > 400000 and len(huge) < 500 << 10
        moved = web.get('http://%s/robots.txt' % sites['moved'])
        assert moved.status == 302
        assert b'Disallow: /private/' in web.get('http://%s%s' % (sites['moved'], moved.headers['Location'])).body
        assert web.get('http://%s/robots.txt' % sites['html']).body.startswith(b'<!DOCTYPE')
        assert closed[sites['html']] == {True}


# ---- the program ---------------------------------------------------------------------

@test
def raw_responses_come_byte_for_byte(folder):
    data = pathlib.Path(os.environ.get('WEBBASE_DATA') or ROOT.parent / 'shared' / 'data') / 'http' / 'raw-responses'
    if not data.is_dir():
        raise Skip('no raw responses at %s' % data)
    with Web('--raw', data) as web:
        links = links_of(web.root, web.get(web.root + 'raw/').text())
        files = sorted(data.glob('*.response'))
        assert len(links) == len(files) > 50 and len({split(l)[0] for l in links}) == len(files)
        for link in links:
            got, end = web.bytes(link)
            assert got == (data / link.rpartition('/')[2]).read_bytes() and end == 'closed', (link, end)
        assert web.get('http://%s/robots.txt' % split(links[0])[0]).status == 404
    refused(None, folder, 'web', '--raw', folder)
    refused(None, 'nowhere', 'web', '--raw', folder / 'nowhere')


@test
def latency_is_added(folder):
    with Web('--latency', 300) as web:
        start = time.time()
        assert web.get(web.root).status == 200 and time.time() - start > 0.29


@test
def it_stops_at_once_and_says_what_is_wrong(folder):
    for number in (signal.SIGTERM, signal.SIGINT):
        with Web('--hostile') as web:
            with socket.create_connection(('127.0.0.1', web.port)) as s:
                s.sendall(b'GET / HTTP/1.1\r\n')
                web.process.send_signal(number)
                assert web.process.wait(PATIENCE) == 0      # while a client is still connected
    with Web() as web:
        refused(None, '127.0.0.1:%d' % web.port, 'web', '--listen', '127.0.0.1:%d' % web.port)
    for where in ('nowhere', '127.0.0.1', '127.0.0.1:99999', 'example.org:80', '[::1:5'):
        refused(None, where, 'web', '--listen', where)
    for option, value in (('--seed', 'x'), ('--sites', '0'), ('--speed', '-1'), ('--speed', 'nan'),
                          ('--pages', '99999999999'), ('--latency', '-1')):
        refused(None, value, 'web', option, value, status=2, one_line=False)
    refused(None, "'x'", 'web', 'x', status=2, one_line=False)


@test
def the_truth_about_a_large_web_is_sent_in_chunks(folder):
    with Web('--sites', 3000, '--pages', 150000) as web:
        truth = web.truth()
        assert len(truth['pages']) > 140000
        memory = int(next(l for l in open('/proc/%d/status' % web.process.pid) if l.startswith('VmHWM')).split()[1])
        assert memory < 60 << 10, '%d KB' % memory


run()
