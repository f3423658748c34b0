#!/usr/bin/env python3
"""webbase export --facts: what the index knows about pages, as SQLite, Parquet, CSV and JSON lines."""
import csv, re, signal, sqlite3
from e2e import *

NAMES = ('url id time status type length lang title published modified depth inlinks outlinks rank '
         'hostrank').split()


def page(path, title, text, links='', host='a.example', head='', **kw):
    body = '<!DOCTYPE html><html lang="en"><head><title>%s</title>%s</head><body><p>%s</p>%s</body></html>' % (
        title, head, text, ''.join('<a href="%s">%s</a> ' % (u, t) for u, t in links))
    return Page('http://%s/%s' % (host, path), body.encode(), **kw)


PAGES = [
    page('', 'Root, "quoted"', 'the cat sat on the mat with the other cats',
         [('/one', 'first'), ('/two', 'second, "again"'), ('http://b.example/', 'b'), ('/never', 'unknown')]),
    page('one', 'One', 'the dog chased the cat down the road', [('/', 'home')], date='2026-01-03T00:00:00Z',
         head='<meta property="article:published_time" content="2024-05-06T07:08:09Z">'),
    page('two', 'Zwei\u2028Zeilen', 'der Hund jagte die Katze die Stra&szlig;e hinunter und kam nicht zur&uuml;ck',
         [('/one', 'eins'), ('/one', 'noch einmal')]),
    page('', 'Site B', 'a cat on another site', [('http://a.example/', 'a')], host='b.example'),
    page('sub', 'Sub', 'a dog below', [('http://a.example/', 'a')], host='www.b.example'),
    Page('http://a.example/plain', b'just a cat in plain text', type='text/plain'),
    Page('http://a.example/gone', b'no cat here', status='404 Not Found', type='text/plain'),
]


def day(path, *headers, own='', **kw):
    return page('dates/' + path, path, 'a page about ' + path, head=own, headers=headers, **kw)


DATES = {     # the pages, and the date of their last change
    'server': (day('server', 'Last-Modified: Wed, 05 Feb 2020 10:00:00 GMT'), '2020-02-05T10:00:00.000Z'),
    'odd': (day('odd', 'last-modified: Thursday, 05-Feb-15 10:00:00 GMT', 'Date: Fri, 02 Jan 2026 03:04:05 GMT'), '2015-02-05T10:00:00.000Z'),
    'own': (day('own', 'Last-Modified: Wed, 05 Feb 2020 10:00:00 GMT', own='<meta property="article:modified_time" content="2012-03-04T00:00:00Z">'), '2012-03-04T00:00:00.000Z'),
    'later': (day('later', 'Last-Modified: Fri, 02 Jan 2026 03:04:06 GMT'), None),
    'epoch': (day('epoch', 'Last-Modified: Thu, 01 Jan 1970 00:00:00 GMT'), None),
    'made': (day('made', 'Last-Modified: Fri, 02 Jan 2026 03:04:00 GMT', 'Date: Fri, 02 Jan 2026 03:04:00 GMT'), None),
    'before': (day('before', 'Last-Modified: Fri, 02 Jan 2026 03:03:59 GMT', 'Date: Fri, 02 Jan 2026 03:04:00 GMT'), '2026-01-02T03:03:59.000Z'),
    'wrong': (day('wrong', 'Last-Modified: yesterday'), None),
    'plain': (Page('http://a.example/dates/plain', b'just text', type='text/plain', headers=['Last-Modified: Tue, 05 Feb 2019 10:00:00 GMT']), '2019-02-05T10:00:00.000Z'),
    'none': (day('none'), None),
}


@test
def the_last_change_is_the_pages_own_or_the_servers(folder):
    repo = folder / 'r'
    ask(repo, 'import', archive(folder / 'in.warc.gz', [p for p, _ in DATES.values()]))
    unindexed = [u.decode() for u in call(repo, 'stream', '--order', 'modified', '--format', 'urls').stdout.split()]
    ask(repo, 'index')
    for again in range(2):
        got = {r['url'].rpartition('/')[2]: r['modified'] for r in rows(repo, folder)}
        assert {n: t and instant(t) for n, t in got.items()} == {n: t and instant(t) for n, (_, t) in DATES.items()}, got
        order = [u.decode() for u in call(repo, 'stream', '--order', 'modified', '--format', 'urls').stdout.split()]
        dated = sorted((n for n, (_, t) in DATES.items() if t), key=lambda n: DATES[n][1])
        assert [u.rpartition('/')[2] for u in order[:len(dated)]] == dated and unindexed[:len(dated)] == order[:len(dated)], (order, unindexed)
        found = [h['url'].rpartition('/')[2] for h in ask(repo, 'search', 'modified:>=2014-01-01', '--sort', 'modified') if 'url' in h]
        assert sorted(found) == sorted(n for n in dated if n != 'own'), found
        # The next generation takes over what it knows already.
        ask(repo, 'import', archive(folder / 'more.warc.gz', [page('more', 'More', 'one more page', date='2026-01-02T03:04:05Z')]))
        ask(repo, 'index')
        DATES['more'] = (None, None)


def instant(text):
    return re.sub(r'(\.000)?Z$', 'Z', text.replace(' ', 'T'))


def repository(folder):
    repo = folder / 'r'
    ask(repo, 'import', archive(folder / 'in.warc.gz', PAGES))
    ask(repo, 'index')
    return repo


def read(path):
    if path.suffix == '.csv':
        with open(path, encoding='utf-8', newline='') as f:
            rows = [{k: v if v else None for k, v in row.items()} for row in csv.DictReader(f, strict=True)]
        whole, numbers = ('status', 'length', 'depth', 'inlinks', 'outlinks'), ('rank', 'hostrank', 'quality', 'trust')
        return [{k: v if v is None else int(v) if k in whole else float(v) if k in numbers else v
                 for k, v in row.items()} for row in rows]
    if path.suffix == '.jsonl':
        return [json.loads(line) for line in open(path, encoding='utf-8', newline='\n')]
    if path.suffix == '.parquet':
        p = subprocess.run(['node', HERE / 'read_parquet.mjs', path], capture_output=True)
        assert p.returncode == 0, p.stderr
        return [json.loads(line) for line in p.stdout.split(b'\n')[1:-1]]
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.row_factory = sqlite3.Row
        assert db.execute('PRAGMA integrity_check').fetchone()[0] == 'ok'
        return [dict(row) for row in db.execute('SELECT * FROM pages ORDER BY rowid')]


def rows(repo, folder, *selection):
    """The rows of a selection, which all formats agree on."""
    got = []
    for end in ('csv', 'jsonl', 'sqlite', 'parquet'):
        path = folder / ('facts.' + end)
        count = done(ask(repo, 'export', '--facts', path, '--force', *selection))
        got.append(read(path))
        assert count['pages'] == len(got[-1]), count
        assert sorted(p.name for p in folder.glob('facts.%s*' % end)) == [path.name], 'temporary files stay'
    assert got[0] == got[1] == got[2] == got[3], 'the formats differ: %s' % got
    return got[0]


def urls(table):
    return [r['url'][7:] for r in table]


ALL = ['a.example/', 'a.example/gone', 'a.example/one', 'a.example/plain', 'a.example/two', 'b.example/',
       'www.b.example/sub']


@test
def every_format_has_every_fact(folder):
    repo = repository(folder)
    table = rows(repo, folder)
    assert urls(table) == ALL
    assert list(table[0]) == NAMES
    by_url = {r['url']: r for r in table}
    for p in PAGES:
        r, got = by_url[p.url], ask(repo, 'get', p.url)[0]
        for name in ('id', 'time', 'status', 'type', 'length'):
            assert r[name] == got[name], (p.url, name, r[name], got[name])
    root, one = by_url['http://a.example/'], by_url['http://a.example/one']
    assert root['title'] == 'Root, "quoted"' and one['title'] == 'One'
    assert by_url['http://a.example/plain']['title'] is None
    assert (root['inlinks'], root['outlinks']) == (3, 4) and (one['inlinks'], one['outlinks']) == (2, 1)
    assert one['published'] == '2024-05-06T07:08:09.000Z' and one['modified'] is None and root['published'] is None
    assert (one['lang'], by_url['http://a.example/two']['lang']) == ('en', 'de'), by_url
    hits = ask(repo, 'search', '--sort', 'rank', 'status:>=0', '--limit', '100')
    order = [h['url'] for h in hits if 'url' in h and h['time']]
    assert sorted(table, key=lambda r: -r['rank'])[0]['url'] == order[0]
    assert 0 < sum(r['rank'] for r in table) < 1
    # a.example and b.example link to each other, and www.b.example to a.example: the equations of PageRank, solved.
    hosts = {r['url'].split('/')[2]: r['hostrank'] for r in table}
    assert all(r['hostrank'] == hosts[r['url'].split('/')[2]] for r in table)
    lowest = 0.15 / 3
    b = (lowest * 1.85 + 0.85 * 0.85 * lowest) / (1 - 0.85 ** 2)
    expected = {'www.b.example': lowest, 'b.example': b, 'a.example': 1 - lowest - b}
    assert all(abs(hosts[h] - expected[h]) < 1e-9 for h in expected), (hosts, expected)


@test
def sqlite_has_links_types_and_indexes(folder):
    repo = repository(folder)
    path = folder / 'facts.sqlite'
    end = done(ask(repo, 'export', '--facts', path))
    with contextlib.closing(sqlite3.connect(path)) as db:
        links = db.execute('SELECT from_url, to_url, anchor FROM links').fetchall()
        assert end['links'] == len(links) == len({(a, b) for a, b, _ in links})
        assert ('http://a.example/', 'http://a.example/two', 'second, "again"') in links
        assert ('http://a.example/', 'http://a.example/never', 'unknown') in links
        assert sum(1 for a, _, _ in links if a == 'http://a.example/') == 4
        types = {r[1]: r[2] for r in db.execute('PRAGMA table_info(pages)')}
        assert types['status'] == types['inlinks'] == 'INTEGER' and types['rank'] == 'REAL' and types['url'] == 'TEXT'
        plan = ' '.join(str(r) for r in db.execute(
            "EXPLAIN QUERY PLAN SELECT * FROM pages p JOIN links l ON l.from_url = p.url WHERE l.to_url = 'x'"))
        assert 'pages_url' in plan and 'links_to' in plan, plan
    end = done(ask(repo, 'export', '--facts', path, '--force', '--site', 'b.example'))
    assert (end['pages'], end['links']) == (1, 1), end


@test
def selections(folder):
    repo = repository(folder)
    hosts = folder / 'hosts'
    hosts.write_text('b.example\n\n WWW.b.example \n')
    for selection, expected in (
            (('--site', 'a.example'), ALL[:5]),
            (('--site', 'b.example'), ['b.example/']),
            (('--site', 'b.example', '--site', 'www.b.example'), ['b.example/', 'www.b.example/sub']),
            (('--sites', hosts), ['b.example/', 'www.b.example/sub']),
            (('--suffix', 'b.example'), ['b.example/', 'www.b.example/sub']),
            (('--suffix', '.example', '--type', 'text/plain'), ['a.example/gone', 'a.example/plain']),
            (('--type', 'html', '--site', 'b.example'), ['b.example/']),
            (('--since', '2026-01-03'), ['a.example/one']),
            (('--until', '2026-01-03T00:00:00Z', '--site', 'a.example', '--type', 'html'),
             ['a.example/', 'a.example/two']),
            (('--status', '404'), ['a.example/gone']),
            (('--status', '2xx', '--type', 'text/plain'), ['a.example/plain']),
            (('--query', 'dog'), ['a.example/one', 'www.b.example/sub']),
            (('--query', 'cat -dog'), ['a.example/', 'a.example/plain', 'b.example/']),
            (('--query', 'cat', '--status', '404'), ['a.example/gone']),
            (('--query', 'cat status:404'), ['a.example/gone']),
            (('--query', 'cat', '--status', '4xx', '--site', 'b.example'), []),
            (('--query', 'inlinks:0', '--suffix', 'b.example'), ['www.b.example/sub']),
            (('--query', 'no-such-word-anywhere'), [])):
        assert urls(rows(repo, folder, *selection)) == expected, selection
    for code in ('en', 'de'):
        hits = ask(repo, 'search', 'lang:%s status:>=0' % code, '--limit', '99')
        found = urls(rows(repo, folder, '--lang', code))
        assert found and found == sorted(h['url'][7:] for h in hits if 'url' in h), (code, found, hits)


@test
def columns_of_users_are_there(folder):
    repo = repository(folder)
    numbers, words, shouted = folder / 'quality.tsv', folder / 'topic.tsv', folder / 'shouted.tsv'
    numbers.write_text('http://a.example/\t0.1\nhttp://a.example/one\t-2.5\nhttp://b.example/\t1e300\n')
    words.write_text('http://a.example/\tanimals, "all"\nhttp://a.example/never\tnothing\n')
    shouted.write_text('http://a.example/\tonce\n')
    call(repo, 'index', '--column', 'quality=%s' % numbers, '--column', 'topic=%s' % words)
    by_url = {r['url'][7:]: r for r in rows(repo, folder)}
    assert {u: r['quality'] for u, r in by_url.items() if r['quality'] is not None} == {
        'a.example/': 0.1, 'a.example/one': -2.5, 'b.example/': 1e300}
    assert {u: r['topic'] for u, r in by_url.items() if r['topic'] is not None} == {'a.example/': 'animals, "all"'}
    # SQLite does not tell upper from lower case in names.
    call(repo, 'index', '--column', 'TOPIC=%s' % shouted)
    call(repo, 'export', '--facts', folder / 'two.sqlite')
    row = read(folder / 'two.sqlite')[0]
    assert {v for k, v in row.items() if k.lower().startswith('topic')} == {'animals, "all"', 'once'}, row


@test
def what_was_taken_down_is_not_there(folder):
    repo = repository(folder)
    before = {r['url'][7:]: r for r in rows(repo, folder)}
    call(repo, 'expunge', 'http://a.example/one')
    after = {r['url'][7:]: r for r in rows(repo, folder)}
    assert set(before) - set(after) == {'a.example/one'}
    assert before['a.example/']['inlinks'] == 3 and after['a.example/']['inlinks'] == 2
    with contextlib.closing(sqlite3.connect(folder / 'facts.sqlite')) as db:
        assert db.execute("SELECT count(*) FROM links WHERE from_url = 'http://a.example/one'").fetchone() == (0,)
    assert urls(rows(repo, folder, '--query', 'dog')) == ['www.b.example/sub']


@test
def what_is_refused(folder):
    repo = folder / 'r'
    path = folder / 'facts.csv'
    refused(repo, 'there is no repository at', 'export', '--facts', path)
    assert not repo.exists()
    ask(repo, 'import', archive(folder / 'in.warc.gz', PAGES))
    refused(repo, "'webbase index' builds one", 'export', '--facts', path)
    call(repo, 'index')
    assert 'wrote the facts of 7 pages to' in call(repo, 'export', '--facts', path).stdout.decode()
    before = path.read_bytes()
    assert before.endswith(b'\r\n') and before.count(b'\r\n') == 8
    refused(repo, path, 'export', '--facts', path)
    assert path.read_bytes() == before
    for name in ('facts.xls', 'facts', 'facts.csv.gz', '-'):
        refused(repo, '.sqlite, .parquet, .csv or .jsonl', 'export', '--facts', name, status=2, one_line=False)
    for args in ((), ('--warc', 'x.warc', '--facts', path), ('--warc', 'x.warc', '--query', 'cat'),
                 ('--warc', 'x.warc', '--lang', 'de'), ('--facts', folder / 'n.csv', '--versions'),
                 ('--facts', folder / 'n.csv', '--snapshot', '1'), ('--facts', folder / 'n.csv', '--lang', 'klingon'),
                 ('--facts', folder / 'n.csv', '--status', '4'), ('--facts', folder / 'n.csv', '--site', 'a b')):
        call(repo, 'export', *args, status=2)
    refused(repo, 'at character', 'export', '--facts', folder / 'n.csv', '--query', 'cat (dog')
    refused(repo, 'no-such-folder', 'export', '--facts', folder / 'no-such-folder' / 'n.sqlite')
    assert sorted(p.name for p in folder.iterdir()) == ['facts.csv', 'in.warc.gz', 'r']


@test
def status_and_several_sites_also_select_for_archives(folder):
    repo = repository(folder)
    end = done(ask(repo, 'export', '--warc', folder / 'some.warc', '--status', '404'))
    assert end['pages'] == 1
    end = done(ask(repo, 'export', '--warc', folder / 'more.warc', '--site', 'b.example', '--site', 'www.b.example'))
    assert end['pages'] == 2
    end = done(ask(repo, 'export', '--warc', folder / 'all.warc', '--versions', '--status', '2xx'))
    assert end['pages'] == 6


@test
def a_full_disk_leaves_nothing(folder):
    repo = repository(folder)
    with small_disk(folder / 'small', '16k') as small:
        for end in ('sqlite', 'csv', 'jsonl', 'parquet'):
            (small / 'filler').write_bytes(b'x' * (12 << 10 if end == 'sqlite' else 16 << 10))
            refused(repo, 'facts.' + end, 'export', '--facts', small / ('facts.' + end))
            assert [p.name for p in small.iterdir()] == ['filler']
            (small / 'filler').unlink()


run()
