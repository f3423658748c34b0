#!/usr/bin/env python3
"""The dashboard as a tool: its history through restarts, kills, two servers and a disk that nobody may write to; sites,
the latest fetches, what operators did; what is going on, in words; and how to begin."""
import base64, html as html_text, json, os, re, shlex, shutil, signal, subprocess, time, urllib.parse

from e2e import *
from crawlserver import Reply, Server, page, star, start, until
import serving

TOKEN = 'secret-of-the-test'
BEARER = {'Authorization': 'Bearer ' + TOKEN}
PASSWORD = {'Authorization': 'Basic ' + base64.b64encode(b'me:' + TOKEN.encode()).decode()}


def serve(repo, *args):
    return serving.Server(repo, *args, token=TOKEN)


def seconds(server, metric='connections'):
    """The seconds that were watched: {time: value}."""
    said = server.get('/api/history', metric=metric, range='hour', step=1)
    assert len(said['time']) == len(said['metrics'][metric]['values']) and said['step'] == 1
    return {t: v for t, v in zip(said['time'], said['metrics'][metric]['values']) if v is not None}


def found(what):
    """Waits until what() is true, and returns it."""
    last = []
    until(lambda: last.append(what()) or last[-1])
    return last[-1]


def watched(server, count=2):
    return found(lambda: len(seconds(server)) >= count and seconds(server))


def verified_as_sound(repo):
    said = json.loads(call(repo, 'verify', '--json').stdout)
    assert said['ok'] and not said['problems'], said


@test
def the_history_survives_restarts_and_kills(folder):
    repo = folder / 'r'
    call(repo, 'init')
    with serve(repo) as s:
        before = watched(s, 3)
        s.kill()
    verified_as_sound(repo)
    with serve(repo) as s:
        after = watched(s, len(before) + 2)
        # At most the last second, which may not have been written, and what the newest step did not have yet.
        assert set(before) - {max(before)} <= set(after), (before, after)
        assert s.get('/api/history')['kept'] == 'disk'
        s.stop()
    verified_as_sound(repo)
    with serve(repo) as s:
        assert set(after) - {max(after)} <= set(watched(s, len(after) + 1))
        for word in ('hour', 'day', 'week', 'month', 'year', 'all'):
            said = s.get('/api/history', range=word, metric='pages')
            assert len(said['time']) <= 4000 and any(v is not None for v in said['metrics']['pages']['values']), word


@test
def of_two_servers_one_writes(folder):
    repo = folder / 'r'
    call(repo, 'init')
    with serve(repo) as a:
        watched(a)
        with serve(repo) as b:
            until(lambda: set(seconds(a)) & set(seconds(b)))
            a.kill()
            last = max(seconds(b))
            # The other one goes on where the first one was.
            until(lambda: max(seconds(b)) > last + 2000)
            assert b.get('/api/history')['kept'] == 'disk'
    verified_as_sound(repo)


@test
def who_may_not_write_keeps_the_history_in_memory(folder):
    repo = folder / 'disk' / 'r'
    with small_disk(folder / 'disk', '64m'):
        call(repo, 'init')
        with serving.Server(repo, token=TOKEN) as s:
            before = watched(s, 3)
        s.log.close()     # nobody may have a file open for writing
        remount(folder / 'disk', 'ro')
        p = subprocess.Popen(command(repo, 'serve', '--listen', '127.0.0.1:0'), stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
        line = p.stdout.readline().decode()
        try:
            assert line.startswith('listening on '), (line, p.stderr.read1())
            s.host, s.port = '127.0.0.1', int(line.rstrip('/\n').rsplit(':', 1)[1])
            after = watched(s, len(before) + 1)
            assert set(before) - {max(before)} <= set(after)
            assert s.get('/api/history')['kept'] == 'memory'
            assert s.ask('/dash').status == 200 and s.ask('/dash/sites').status == 200
        finally:
            p.kill()
            p.wait(PATIENCE)


@test
def questions_about_the_past(folder):
    repo = folder / 'r'
    call(repo, 'init')
    with serve(repo) as s:
        watched(s)
        ask = lambda **q: s.ask('/api/history', **q)
        ask(range='decade').error(400, 'range=decade')
        ask(metric='pages,nonsense').error(400, 'nonsense')
        ask(range='day', step=1).error(400, '4000')
        ask(range='day', to=5).error(400, 'range')
        ask(**{'from': 5000, 'to': 4000}).error(400, 'from=5000')
        ask(**{'from': 'x'}).error(400, 'from=x')
        said = s.get('/api/history', metric='pages,requests', step=7, **{'from': 1001, 'to': 100000})
        assert said['from'] == 0 and said['to'] == 105000 and list(said['metrics']) == ['pages', 'requests']
        assert said['metrics']['requests']['per_second'] and not said['metrics']['pages']['per_second']
        assert said['metrics']['pages']['values'] == [None] * 15
        # Requests are counted: what we have just asked is there, and in no more seconds than we took.
        until(lambda: sum(seconds(s, 'requests').values()) > 8)
        for query in ('', '?range=year', '?range=all', '?from=1000&to=5000', '?from=1768435200000&to=1999999999000'):
            r = s.ask('/dash' + query)
            text = r.body.decode()
            assert r.status == 200 and text.count('<svg viewBox="0 0 600 150"') == 8, query
            assert not re.search(r'nan|inf[^o]', ' '.join(re.findall(r' d="([^"]*)"', text))), query
        assert s.ask('/dash?range=x').status == 400


WEB = {'a.test': {**star(30, 'a'), '/gone': Reply(status=404), '/slow': Reply(end='close')},
       'b.test': star(3, 'b'),
       'c.test': {'/robots.txt': Reply(status=503, headers=[('Retry-After', '3600')])}}


def crawl(server, repo, *more):
    return start(repo, server, *['http://%s:%d%s' % (host, server.port, path) for host, path in
                                 (('a.test', '/'), ('a.test', '/gone'), ('a.test', '/slow'), ('b.test', '/'),
                                  ('c.test', '/'))], '--delay', 0.05, '--max-crawl-delay', 0.05, *more)


@test
def sites_fetches_and_orders(folder):
    repo = folder / 'r'
    call(repo, 'init')
    with Server(WEB) as web, serve(repo) as s:
        name = 'a.test:%d' % web.port
        process = crawl(web, repo, '--max-time', 60)
        until(lambda: s.ask('/api/fetches', headers=BEARER).json()['newest'] > 20)
        # Orders that work, and one that does not.
        assert s.post('/api/control/pause', {}, TOKEN).status == 200
        until(lambda: 'paused' in s.get('/api/dash')['state']['text'])
        assert s.post('/api/control/stop', {'site': 'nowhere.test'}, TOKEN).status == 404
        assert s.post('/api/control/resume', {}, TOKEN).status == 200
        until(lambda: s.get('/api/sites', q='B.TEST')['sites'][0]['state'] == 'done')
        until(lambda: s.get('/api/sites', state='waiting')['total'] == 1)
        waiting = s.get('/api/sites', state='waiting')['sites'][0]
        assert waiting['site'].startswith('c.test') and '503' in waiting['why'] and waiting['next'], waiting
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE)
        # The latest fetches, and who may see them.
        for path in ('/api/fetches', '/api/orders', '/dash/fetches', '/dash/orders'):
            assert s.ask(path).status == 401 and s.ask(path, headers={'Authorization': 'Bearer no'}).status == 401
            assert s.ask(path, headers=BEARER).status == 200 and s.ask(path, headers=PASSWORD).status == 200
        fetches = lambda **q: s.ask('/api/fetches', headers=BEARER, **q).json()['fetches']
        all_ = fetches(limit=1000)
        numbers = [f['number'] for f in all_]
        assert numbers == sorted(numbers, reverse=True) and len(set(numbers)) == len(numbers)
        asked = {r.path for r in web.requests if r.host == name}
        assert {urllib.parse.urlsplit(f['url']).path for f in all_ if name in f['url']} >= asked - {'/slow'}
        assert {f['status'] for f in fetches(status='4xx', site=name)} == {404}
        assert all(f['result'].startswith('error:') for f in fetches(error='any')) and fetches(error='any')
        assert {f['status'] for f in fetches(q='robots.txt', site='c.test:%d' % web.port)} == {503}
        assert fetches(error='empty') and not fetches(error='tls') and len(fetches(limit=3)) == 3
        assert [f['number'] for f in fetches(after=numbers[5])] == numbers[:5] and not fetches(after=numbers[0])
        s.ask('/api/fetches', headers=BEARER, status='9xx').error(400, 'status=9xx')
        # What operators did.
        orders = s.ask('/api/orders', headers=BEARER).json()['orders']
        assert [(o['what'], o['ok']) for o in orders] == [('resume', True), ('stop', False), ('pause', True)], orders
        assert orders[1]['subject'] == 'nowhere.test' and 'nowhere.test' in orders[1]['said']
        text = s.ask('/dash/orders', headers=PASSWORD).body.decode()
        assert 'failed' in text and 'nowhere.test' in text
    verified_as_sound(repo)
    assert os.stat(repo / 'control/orders').st_mode & 0o77 == 0


@test
def sites_are_sorted_and_paged_by_the_server(folder):
    repo = folder / 'r'
    call(repo, 'init')
    sites = {'s%02d.test' % i: star(1 + i % 5, 's%d' % i) for i in range(25)}
    with Server(sites) as web, serve(repo) as s:
        assert s.get('/api/sites')['total'] == 0 and 'No crawl has been given a site' in s.ask('/dash/sites').body.decode()
        process = start(repo, web, *['http://%s:%d/' % (h, web.port) for h in sites], '--delay', 0)
        assert process.wait(PATIENCE) == 0
        names = sorted('%s:%d' % (h, web.port) for h in sites)
        rows = lambda **q: [r['site'] for r in s.get('/api/sites', **q)['sites']]
        assert rows() == names and rows(order='down') == names[::-1]
        assert rows(limit=7, offset=7) == names[7:14] and rows(offset=999) == []
        assert rows(q='S1') == [n for n in names if n.startswith('s1')] and rows(q='%') == rows(q='_') == []
        pages = [r['pages'] for r in s.get('/api/sites', sort='pages', order='down')['sites']]
        assert pages == sorted(pages, reverse=True) and set(pages) == {1, 2, 3, 4, 5}, pages
        said = s.get('/api/sites', state='done', limit=1)
        assert said['total'] == said['states']['done'] == 25 and said['sites'][0]['errors'] == 0
        for bad in ({'sort': 'x'}, {'state': 'x'}, {'order': 'x'}, {'limit': 501}, {'offset': 'x'}):
            s.ask('/api/sites', **bad).error(400, *bad)
        first = s.ask('/dash/sites', limit=10, sort='pages', order='down').body.decode()
        assert '1 to 10 of 25' in first and 'aria-sort="descending"' in first
        following = html_text.unescape(re.search(r'href="([^"]*)" rel="next"', first)[1])
        assert '11 to 20 of 25' in s.ask(following).body.decode()
        nasty = s.ask('/dash/sites', q='"><script>alert(1)</script>').body.decode()
        assert '<script>alert' not in nasty and 'None.' in nasty


@test
def a_revisit_is_called_one(folder):
    repo = folder / 'r'
    call(repo, 'init')
    body = page(*['/%d' % i for i in range(40)], text='always the same')
    pages = {'/': body, **{'/%d' % i: page('/', text='page %d' % i) for i in range(40)}}
    with Server({'a.test': pages}) as web, serve(repo) as s:
        assert s.get('/api/dash')['state']['text'].startswith('Nothing is stored yet')
        seed = 'http://a.test:%d/' % web.port
        assert start(repo, web, seed, '--delay', 0).wait(PATIENCE) == 0
        assert s.get('/api/dash')['state']['text'] == 'No crawl is running.'
        process = start(repo, web, seed, '--delay', 0.2)
        found(lambda: re.search(r'Revisiting: \d+ unchanged, 0 new or changed', s.get('/api/dash')['state']['text']))
        assert 'Revisiting: ' in s.ask('/dash').body.decode()
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE)


@test
def an_empty_repository_says_how_to_begin(folder):
    repo = folder / "it's a $(touch bad) place"
    call(repo, 'init')
    with Server({'a.test': {'/': page(text='begin with a quokka')}}) as web, serve(repo) as s:
        assert 'Nothing is stored yet: <a href="/dash#begin">' in s.ask('/').body.decode(), 'the search page leads there'
        text = s.ask('/dash').body.decode()
        commands = html_text.unescape(re.search(r'<pre[^>]*>(.*?)</pre>', text, re.S)[1]).splitlines()
        assert len(commands) == 2 and all(c.startswith('webbase -r ') for c in commands), commands
        program, bad = str(command(repo, 'stat')[0]), folder / 'bad'
        for c in commands:
            assert shlex.split(c)[2] == os.path.realpath(repo), c
            c = c.replace('https://example.org/', 'http://a.test:%d/ --allow-private --resolve a.test:%d:127.0.0.1' %
                          (web.port, web.port))
            p = subprocess.run(['sh', '-c', shlex.quote(program) + c[len('webbase'):]], capture_output=True, cwd=folder,
                               timeout=PATIENCE)
            assert p.returncode == 0, (c, p.stderr)
        assert not bad.exists()
        until(lambda: s.ask('/api/search', q='quokka').status == 200 and s.get('/api/search', q='quokka')['total'] == 1)
        assert '<section id="begin"' not in s.ask('/dash').body.decode()
        assert '1 page of 1 site,' in s.ask('/').body.decode() and '#begin' not in s.ask('/').body.decode()
    other = folder / 'public'
    call(other, 'init')
    with serve(other, '--public') as s:
        text = s.ask('/dash').body.decode()
        assert 'webbase -r DIR crawl' in text and str(folder) not in text


@test
def damage_is_found_and_costs_only_what_is_damaged(folder):
    repo = folder / 'r'
    call(repo, 'init')
    with serve(repo) as s:
        before = watched(s, 4)
        assert s.post('/api/control/pause', {}, TOKEN).status == 404
    file = bytearray((repo / 'control/chronicle').read_bytes())
    victim = sorted(before)[1] // 1000
    at = 4096 + victim % 3600 * 272
    assert int.from_bytes(file[at:at + 8], 'little') == victim
    file[at + 100] ^= 0x40
    (repo / 'control/chronicle').write_bytes(file)
    orders = (repo / 'control/orders').read_bytes()
    (repo / 'control/orders').write_bytes(orders[:30] + b'x' + orders[31:])
    p = subprocess.run(command(repo, 'verify', '--json'), capture_output=True, timeout=PATIENCE)
    said = json.loads(p.stdout)
    assert p.returncode == 1 and {x['file'] for x in said['problems']} == {'control/chronicle', 'control/orders'}, said
    with serve(repo) as s:
        after = watched(s, 3)
        assert victim * 1000 not in after and sorted(before)[0] in after and sorted(before)[2] in after
        assert s.ask('/api/orders', headers=BEARER).json()['orders'] == []


run()
