#!/usr/bin/env python3
"""openapi.json: its form, Redocly's rules, real answers against its schemas, and a client that is generated from it."""
import functools, urllib.parse

from e2e import *
from crawlserver import Server as Site, kill, page, start
from serving import *

FILE = ROOT / 'src/serve/web/openapi.json'
TOOLS = HERE / 'openapi'
HUB, PROVIDER = 'http://hub.example/', 'provider-1234567890'


def node(*words, **kw):
    return subprocess.run(['node', *map(str, words)], capture_output=True, text=True, cwd=TOOLS, **kw)


def repository(folder):
    """Pages with links, several versions, a copy, a redirect, and everything that is made from them."""
    repo, links = folder / 'r', ''.join('<a href="http://s.example/%d">number %d</a>' % (n, n) for n in range(9))
    copied = ' '.join('one two three wombat %d' % n for n in range(100))
    call(repo, 'init', '--history', 'all')
    for k in range(2):
        done(ask(repo, 'import', archive(folder / ('%d.warc' % k), [
            Page(HUB, ('<html lang=en><title>hub</title><p>everything quokka</p>' + links).encode(), '2026-01-0%dT00:00:00Z' % (k + 1))] + [
            Page('http://s.example/%d' % n, b'<title>p</title><p>quokka %d %s' % (n, b'' if n < 5 else b'%d' % k), '2026-01-0%dT00:00:00Z' % (k + 1)) for n in range(9)] + [
            Page('http://s.example/copy%d' % n, ('<title>copy</title><p>%s.' % copied).encode()) for n in range(2)] + [
            Page('http://s.example/moved', b'', status='301 Moved', headers=['Location: /1'])])))
    call(repo, 'update')
    call(repo, 'index')
    call(repo, 'snapshot', '--name', 'spring')
    return repo


# ---- the file ------------------------------------------------------------------------------------

@test
def its_form_makes_changes_small(folder):
    """One member a line, and what calls have in common in the order of names: docs/design/0051 says how to add a call."""
    text = FILE.read_text()
    description = json.loads(text)
    assert text == json.dumps(description, indent=1, ensure_ascii=False) + '\n', 'write it as json.dumps(..., indent=1, ensure_ascii=False) does'
    for kind, things in description['components'].items():
        assert list(things) == sorted(things), kind
    calls = [call_ for ways in description['paths'].values() for call_ in ways.values()]
    assert len({c['operationId'] for c in calls}) == len(calls)

    def look(schema, place):
        if schema.get('type') == 'object':
            assert schema.get('description') or '/items' in place, place + ' has no description'
        for name, inner in schema.get('properties', {}).items():
            assert '$ref' in inner or inner.get('description'), '%s/%s has no description' % (place, name)
            assert '$ref' in inner or inner['type'] in ('object', 'array') or 'example' in inner, '%s/%s has no example' % (place, name)
            look(inner, place + '/' + name)
        if isinstance(schema.get('items'), dict):
            look(schema['items'], place + '/items')
    for name, schema in description['components']['schemas'].items():
        look(schema, name)


@test
def redocly_has_no_complaint(folder):
    p = node('lint.mjs', FILE)
    assert p.returncode == 0, p.stdout + p.stderr
    broken = json.loads(FILE.read_text())
    del broken['paths']['/api/page']['get']['operationId'], broken['info']['license'], broken['components']['schemas']['Page']
    (folder / 'broken.json').write_text(json.dumps(broken))
    p = node('lint.mjs', folder / 'broken.json')
    for rule in ('operation-operationId', 'info-license', 'no-unresolved-refs'):
        assert p.returncode == 1 and rule in p.stdout, p.stdout + p.stderr


# ---- answers -------------------------------------------------------------------------------------

class Witness:
    """Asks, and keeps the answers for the comparison."""

    def __init__(self, s):
        self.s, self.answers, self.description = s, [], s.get('/api/openapi.json')

    def ask(self, path, at=None, method='GET', want=200, token=None, body=None, named={}, **params):
        """at: the path, if path is a pattern. named: parameters with the names of those of this function."""
        headers = {'Authorization': 'Bearer ' + token} if token else {}
        params.update(named)
        data = json.dumps(body).encode() if body is not None else None
        r = self.s.ask((at or path) + ('?' + urllib.parse.urlencode(params, doseq=True) if params else ''), method, headers, data)
        assert r.status == want, (at or path, params, r.status, r.body[:300])
        kind = (r.field('Content-Type') or '').split(';')[0]
        text = r.body.decode() if 'json' in kind else ''
        self.answers.append(dict(path=path, method=method.lower(), status=str(r.status), type=kind, body=text,
                                 at='%s %s %s' % (method, at or path, urllib.parse.urlencode(params, doseq=True))))
        return r

    def compare(self):
        p = node('validate.mjs', input=json.dumps(dict(description=self.description, answers=self.answers)))
        return p.returncode, p.stdout + p.stderr


def ask_everything(w, repo):
    ask_ = w.ask
    ask_('/api/search', q='quokka', facet=['site', 'type', 'lang', 'status'], explain=1)
    ask_('/api/search', q='quokak', quick=1)
    ask_('/api/search', want=400)
    ask_('/api/page', url=HUB)
    ask_('/api/page', url='http://s.example/moved')
    ask_('/api/page', url='http://nowhere.example/', want=404)
    ask_('/api/versions', url='http://s.example/7', limit=1)
    ask_('/api/versions', url='http://s.example/1')
    for way in ('in', 'out'):
        ask_('/api/links', url=HUB, dir=way, limit=2)
    ask_('/api/links', url=HUB, dir='up', want=400)
    assert ask_('/api/similar', url='http://s.example/copy0').json()['similar']
    call(repo, 'backup', 'file://%s.vault' % repo)
    assert ask_('/api/stat').json()['backup']
    assert ask_('/api/snapshots').json()['snapshots']
    ask_('/api/openapi.json')
    ask_('/metrics')
    ask_('/healthz')
    ask_('/api/stream', format='jsonl', name='mirror', token=TOKEN)
    ask_('/api/stream', versions=1)
    for format_ in ('warc', 'warc.gz', 'warc.zst', 'text', 'urls', 'wire'):
        ask_('/api/stream', format=format_)
    ask_('/api/stream', format='scroll', want=400)
    ask_('/api/stream/acknowledge', method='POST', want=400)
    for q in (dict(), dict(output='json'), dict(output='json', resolveRevisits=1), dict(output='text'), dict(output='link'), dict(showNumPages=1), dict(fl='url')):
        ask_('/cdx', url=HUB, **q)
    ask_('/cdx', url='s.example*', output='json')
    ask_('/cdx', want=400)
    for q in (dict(), dict(output='json'), dict(showNumPages=1)):
        ask_('/cdx/search/cdx', url='s.example*', **q)
    ask_('/api/complete', q='hu')
    ask_('/api/complete', q='quok', format='opensearch')
    ask_('/api/search', q='quokka', fold=1)
    ask_('/api/calendar', url=HUB)
    ask_('/api/calendar', url=HUB, **{'from': '2025', 'to': '2027'})
    ask_('/api/calendar', want=400)
    ask_('/api/captures', url='s.example/*', limit=2)
    ask_('/api/embedded', url=HUB)
    ask_('/api/history', range='day')
    ask_('/api/history', range='never', want=400)
    ask_('/api/dash')
    ask_('/web/{target}', '/web/20260101000000id_/' + HUB)
    ask_('/web/{target}', '/web/' + HUB, want=302)
    ask_('/timemap/link/{url}', '/timemap/link/' + HUB)
    ask_('/api/token', token=TOKEN)
    ask_('/api/token', want=401)
    ask_('/api/token', token=PROVIDER, want=403)
    ask_('/api/push', method='POST', token=PROVIDER, body={'changed': ['http://h.example/'], 'pages': [{'url': 'http://h.example/1', 'html': 'x'}]})
    ask_('/api/push', method='POST', token=PROVIDER, body={'changed': ['http://other.example/']}, want=403)
    ask_('/api/push', method='POST', token=PROVIDER, body=[], want=400)
    ask_('/api/control/{order}', '/api/control/pause', method='POST', token=TOKEN, body={}, want=404)
    ask_('/api/expunge', method='POST', token=TOKEN, body={'what': 'http://s.example/8'})
    ask_('/api/expunge', method='POST', token=TOKEN, body={}, want=400)


@test
def answers_are_as_described(folder):
    repo = repository(folder)
    with Server(repo, '--push-token', PROVIDER + '=h.example', '--memory', '64M', token=TOKEN) as s:
        w = Witness(s)
        ask_everything(w, repo)
        token = s.ask('/api/stream', name='mirror', headers={'Authorization': 'Bearer ' + TOKEN}).field('WebBase-Token')
        w.ask('/api/stream/acknowledge', method='POST', name='mirror', token=TOKEN, named=dict(token=token))
        endless = {'/': page(*['/%d' % n for n in range(2000)]), '*': lambda r: page(text=r.path)}
        with Site({'a.test': endless}) as site:
            p = start(repo, site, site.url('a.test'), '--delay', 0.05)
            wait_for(lambda: s.get('/api/dash')['crawls'], 'the crawl is seen')
            w.ask('/api/dash')
            w.ask('/api/control/{order}', '/api/control/pause', method='POST', token=TOKEN, body={})
            w.ask('/api/control/{order}', '/api/control/delay', method='POST', token=TOKEN, body={'site': 'a.test:%d' % site.port, 'delay': 2})
            w.ask('/api/sites', q='a.test')
            w.ask('/api/fetches', token=TOKEN)
            w.ask('/api/orders', token=TOKEN)
            kill(p.pid, signal.SIGTERM)
            assert p.wait(PATIENCE) in (0, 1)
        status, said = w.compare()
        assert status == 0, said
        # Every call of the description has answered, each with a schema as it should.
        seen = {(a['path'], a['method'], a['type']) for a in w.answers if a['status'] == '200'}
        for path, ways in w.description['paths'].items():
            for way, what in ways.items():
                for kind in what['responses']['200']['content']:
                    assert (path, way, kind) in seen or kind == '*/*', (path, way, kind)
        # The comparison notices what is missing, what is new, and what has another type.
        for change in (lambda v: v.pop('total'), lambda v: v.update(colour=1), lambda v: v.update(total='17'), lambda v: v['hits'][0].update(time='yesterday')):
            answer = json.loads(next(a['body'] for a in w.answers if a['path'] == '/api/search'))
            change(answer)
            w.answers = [dict(w.answers[0], body=json.dumps(answer))]
            assert w.compare()[0] == 1, answer
            w.answers = [dict(w.answers[0], body=json.dumps(s.get('/api/search', q='quokka')))]


# ---- a generated client --------------------------------------------------------------------------

@test
def a_generated_client_works(folder):
    bin_ = HERE / 'node_modules/.bin'
    os.symlink(HERE / 'node_modules', folder / 'node_modules')
    shutil.copy(TOOLS / 'client.ts', folder)
    (folder / 'package.json').write_text('{"type":"module"}')
    subprocess.run([bin_ / 'openapi-typescript', FILE, '-o', folder / 'openapi.ts'], check=True, capture_output=True, cwd=folder)
    compile_ = functools.partial(subprocess.run, [bin_ / 'tsc', '--strict', '--target', 'es2022', '--module', 'nodenext', '--skipLibCheck', '--types', 'node',
                                                  'client.ts'], cwd=folder, capture_output=True, text=True)
    p = compile_()
    assert p.returncode == 0, p.stdout
    with Server(repository(folder), '--push-token', PROVIDER + '=h.example', token=TOKEN) as s:
        p = subprocess.run(['node', 'client.js', s.url, HUB, TOKEN, 'h.example'], cwd=folder, capture_output=True, text=True)
        assert p.returncode == 0, p.stderr
        got = json.loads(p.stdout)
        facts, versions = s.get('/api/page', url=HUB), s.get('/api/versions', url=HUB)
        assert got['hits'] == [h['url'] for h in s.get('/api/search', q='quokka', limit=3)['hits']] and 's.example' in got['facets']
        assert got['id'] == facts['id'] and got['sha1'] == [v['sha1'] for v in versions['versions']]
        assert got['links'] == ['number 0', 'number 1'] and got['next'] == 2 and got['generation'] == 1
        assert got['streamed'] == s.ask('/api/stream', format='urls').body.count(b'\n') and got['captures'] == 2
        assert (got['accepted'], got['stored'], got['expunged']) == (2, 1, 1)
        assert got['order'] == [404, got['order'][1]] and 'no crawl' in got['order'][1], got['order']
        assert got['wrong'][0] == 404 and 'nowhere.example' in got['wrong'][1]


run()
