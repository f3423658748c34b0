#!/usr/bin/env python3
"""search, links and similar through the command line: every kind of query of docs/query.md, errors, orders, paging,
facets, JSON; takedowns and new generations."""
import atexit, re, signal
from e2e import *

TEXTS = {       # path: (title, text, links, more)
    'a.example/': ('Web crawlers', 'A crawler visits pages of the web. Crawlers are polite to every host.',
                   [('http://a.example/robots', 'Robots exclusion'), ('http://a.example/index', 'the index'),
                    ('http://b.example/', 'sister site'), ('http://never.example/x', 'unreachable treasure')], {}),
    'a.example/robots': ('Robots', '<h2>Exclusion standard</h2> The crawler obeys the rules of the web host.',
                         [('http://a.example/', 'home')], {'date': '2026-02-01T00:00:00Z'}),
    'a.example/index': ('Inverted index', 'An index maps words to pages. The e-mail of printf(3) is about std::vector '
                        'in c++ and version 3.11.7 of caf&eacute; NETWORKS.',
                        [('http://a.example/', 'home'), ('http://b.example/deep/page', 'deep')],
                        {'date': '2026-03-01T00:00:00Z'}),
    'b.example/': ('Sister of crawlers', 'Another web site, with a draft about networking and a web of crawler nests.',
                   [('http://a.example/', 'brother')], {'date': '2026-04-01T00:00:00Z'}),
    'b.example/deep/page': ('Deep page', 'Der schnelle Fuchs springt &uuml;ber den faulen Hund und l&auml;uft nach '
                            'Hause, weil es dort warm ist.', [('http://a.example/index', 'Verzeichnis')], {}),
    'sub.b.example/draft': ('Draft', 'A draft. Nothing to see here, apart from a network.', [],
                            {'head': '<meta property="article:published_time" content="2019-05-06">'
                                     '<meta property="article:modified_time" content="2026-01-31T10:00:00Z">'}),
    'c.edu/same/1': ('Twin', 'Two pages with exactly the same text about zebras, apart from nothing. ' * 8, [], {}),
    'c.edu/same/2': ('Twin', 'Two pages with exactly the same text about zebras, apart from nothing. ' * 8, [], {}),
}
PAGES = [Page('http://' + path, (
    '<!DOCTYPE html><html><head><title>%s</title>%s</head><body><p>%s</p>%s</body></html>' % (
        title, more.get('head', ''), text, ' '.join('<a href="%s">%s</a>' % l for l in links))).encode(),
    date=more.get('date', '2026-01-01T00:00:00Z')) for path, (title, text, links, more) in TEXTS.items()] + [
    Page('http://c.edu/plain.txt', b'plain zebras', type='text/plain'),
    Page('http://c.edu/missing', b'no zebras', status='404 Not Found', type='text/plain')]
A, ROBOTS, INDEX, B, DEEP, DRAFT = list(TEXTS)[:6]
TWINS, PLAIN, MISSING, NEVER = ['c.edu/same/1', 'c.edu/same/2'], 'c.edu/plain.txt', 'c.edu/missing', 'never.example/x'
STORED = [*TEXTS, PLAIN]
built = {}


def shared():
    """A repository that tests only read."""
    if not built:
        folder = pathlib.Path(tempfile.mkdtemp(prefix='webbase-search-'))
        atexit.register(shutil.rmtree, folder, True)
        built['repo'] = make(folder)
    return built['repo']


def make(folder):
    repo, quality, topic = folder / 'r', folder / 'quality.tsv', folder / 'topic.tsv'
    ask(repo, 'import', archive(folder / 'in.warc.gz', PAGES))
    quality.write_text(''.join('http://%s\t%s\n' % row for row in ((A, 0.9), (B, 0.5), (ROBOTS, -1))))
    topic.write_text('http://%s\tsolid state\nhttp://%s\tphysics\n' % (A, B))
    call(repo, 'index', '--column', 'quality=%s' % quality, '--column', 'topic=%s' % topic)
    return repo


def search(repo, query, *options):
    """The hits of a query, and the object at the end."""
    out = lines(call(repo, 'search', '--json', '--limit', 100, *options, '--', query).stdout)
    hits, end = out[:-1], out[-1]
    assert end['event'] == 'done' and all(h['rank'] for h in hits), out
    return hits, end


def found(repo, query, *options):
    hits, end = search(repo, query, *options)
    assert end['total'] == len(hits) and end['exact'] is True, end
    return [h['url'].split('://')[1] for h in hits]


def check(expected):
    for query, pages in expected:
        got = found(shared(), query)
        assert sorted(got) == sorted(pages), '%s: %s, not %s' % (query, got, pages)


# ---- what is found ------------------------------------------------------------------------------------------

@test
def words(folder):
    check([
        ('crawler', [A, ROBOTS, B]), ('CRAWLERS', [A, ROBOTS, B]), ('"crawlers"', [A, B]), ('"crawler"', [A, ROBOTS, B]),
        ('networks', [INDEX, B, DRAFT]), ('"network"', [DRAFT]), ('cafe', [INDEX]), ('caf\u00e9', [INDEX]),
        ('web crawler', [A, ROBOTS, B]), ('"pages of the web"', [A]), ('"of pages the web"', []), ('"web host"', [ROBOTS]),
        ('"the web"', [A, ROBOTS]), ('"crawler rules"~3', [ROBOTS]), ('"crawler rules"~1', []),
        ('crawl*', [A, ROBOTS, B]), ('inver*', [INDEX]), ('xyz*', []), ('c++', [INDEX]), ('std::vector', [INDEX]),
        ('3.11.7', [INDEX]), ('e-mail', [INDEX]), ('printf(3)', [INDEX]), ('"fuchs springt \u00fcber"', [DEEP]),
        ('hunde', [DEEP]), ('no-such-word', []), ('zebras', [*TWINS, PLAIN])])


@test
def combinations(folder):
    check([
        ('crawler AND rules', [ROBOTS]), ('rules OR index', [ROBOTS, A, INDEX]), ('crawler -web', []),
        ('web -rules', [A, B]), ('draft OR web rules', [DRAFT, B, ROBOTS]), ('(draft OR web) rules', [ROBOTS]),
        ('web -(rules OR sister)', []), ('web -(rules OR draft)', [A]), ('web -"polite to"', [ROBOTS, B]), ('"OR"', []), ('web -site:a.example', [B]),
        ('-web', [INDEX, DEEP, DRAFT, *TWINS, PLAIN])])


@test
def fields(folder):
    check([
        ('title:crawlers', [A, B]), ('title:"sister of"', [B]), ('title:(deep OR draft)', [DEEP, DRAFT]),
        ('title:rob*', [ROBOTS]), ('heading:exclusion', [ROBOTS]), ('heading:crawler', []), ('url:deep', [DEEP]),
        ('anchor:home', [A]), ('anchor:"sister site"', [B]), ('anchor:treasure', [NEVER]), ('treasure', [NEVER, A]),
        ('anchor:unreachable OR anchor:deep', [NEVER, DEEP]), ('note:this', []), ('title:web anchor:brother', [A])])


@test
def places_and_links(folder):
    check([
        ('site:a.example', [A, ROBOTS, INDEX]), ('site:b.example', [B, DEEP, DRAFT]), ('site:sub.b.example', [DRAFT]),
        ('site:never.example', [NEVER]), ('suffix:edu', [*TWINS, PLAIN]), ('suffix:example', [A, ROBOTS, INDEX, B, DEEP,
                                                                                          DRAFT, NEVER]),
        ('link:a.example/', [ROBOTS, INDEX, B]), ('link:http://a.example/index', [A, DEEP]),
        ('link:never.example/x', [A]), ('linkfrom:a.example/', [ROBOTS, INDEX, B, NEVER]),
        ('linkfrom:a.example/ link:a.example/', [ROBOTS, INDEX, B]), ('link:a.example/ crawler -rules', [B]),
        ('link:no.such.example/', []), ('lang:de', [DEEP]), ('type:text/plain', [PLAIN]),
        ('type:text/html site:c.edu', TWINS), ('type:html site:c.edu', TWINS)])
    related = found(shared(), 'related:a.example/robots')
    assert ROBOTS not in related and {INDEX, B} <= set(related), related
    assert len(found(shared(), 'zebras exactly dup:no')) == 1


@test
def numbers_dates_and_columns(folder):
    check([
        ('inlinks:>=3', [A]), ('inlinks:2', [INDEX]), ('inlinks:0', [DRAFT, *TWINS, PLAIN]),
        ('inlinks:>=1 -web', [INDEX, DEEP, NEVER]), ('outlinks:>=4', [A]), ('size:<50', [PLAIN]),
        ('size:>=0.5k', TWINS), ('rank:>0.9', []), ('rank:>0 lang:de', [DEEP]), ('status:404', [MISSING]),
        ('status:4xx zebras', [MISSING]), ('zebras status:>=200', [*TWINS, PLAIN, MISSING]), ('versions:>1', []),
        ('after:2026-03-01', [INDEX, B]), ('before:2026-03-01 after:2026-01-03', [ROBOTS]),
        ('published:<2020-01-01', [DRAFT]), ('published:2019-05-06', [DRAFT]), ('published:>2019-05-06', []),
        ('modified:2026-01-31', [DRAFT]), ('modified:>=2026-02-01', []), ('changed:>=2026-04-01', [B]),
        ('quality:>=0.5', [A, B]), ('quality:<0', [ROBOTS]), ('quality:0.9', [A]), ('topic:physics', [B]),
        ('topic:"solid state"', [A]), ('topic:solid', []), ('web quality:>0 -topic:physics', [A])])


# ---- how it is shown ----------------------------------------------------------------------------------------

@test
def a_wrong_query_is_pointed_at(folder):
    for query, at in (('alpha "beta', 7), ('(alpha beta', 1), ('alpha OR', None), ('alpha inlinks:>=many', 17),
                      ('web after:someday', None), ('quality:>=much', None), ('alpha ()', None)):
        text = call(shared(), 'search', '--', query, status=1).stderr.decode()
        shown, caret, message = text.splitlines()
        assert shown == query and caret.strip() == '^' and message.startswith('webbase: in the query, at character '), text
        place = int(re.search(r'at character (\d+)', message).group(1))
        assert caret.index('^') == place - 1 and at in (None, place), text
    refused(shared(), 'nosuchkey', 'search', 'web', '--sort', 'nosuchkey')
    call(shared(), 'search', 'web', '--facet', 'colour', status=2)
    call(shared(), 'search', status=2)
    assert call(shared(), 'search', '*', status=None).returncode in (0, 1)


@test
def json_and_words(folder):
    hits, end = search(shared(), 'crawler OR treasure')
    assert [h['rank'] for h in hits] == list(range(1, 5)) and end['total'] == 4 and end['ms'] >= 0
    assert all(set(h) == {'rank', 'url', 'title', 'score', 'snippet', 'time', 'lang'} for h in hits)
    by_url = {h['url']: h for h in hits}
    never = by_url['http://' + NEVER]
    assert never['title'] is None and never['time'] is None
    root = by_url['http://' + A]
    assert root['title'] == 'Web crawlers' and root['time'] == '2026-01-01T00:00:00.000Z'
    assert '<b>crawler</b>' in root['snippet'].lower() or '<b>crawlers</b>' in root['snippet'].lower(), root
    scores = [h['score'] for h in hits]
    assert scores == sorted(scores, reverse=True)
    text = call(shared(), 'search', 'crawler').stdout.decode()
    assert '  1. ' in text and 'http://' + A in text and '3 results' in text and '\x1b' not in text, text
    assert call(shared(), 'search', 'web', 'crawler', '--json').stdout.count(b'\n') == 4    # words need no quotes
    assert 'did you mean: crawler' in call(shared(), 'search', 'crawlwr').stdout.decode()


@test
def no_other_spelling_for_a_word_that_has_hits(folder):
    """However rare it is, and however often the other word occurs."""
    repo, rare = folder / 'r', [Page('http://zoo.example/', b'<p>zebra animal')]
    call(repo, 'import', archive(folder / 'a.warc', rare + [Page('http://zoo.example/%d' % n, b'<p>jebra animal %d' % n)
                                                            for n in range(40)]))
    call(repo, 'index')
    for query in ('zebra', 'zebra animal', 'zebras', 'zebra -animal', 'title:zebra', 'zebra nothing'):
        assert b'did you mean' not in call(repo, 'search', query).stdout, query
    assert b'did you mean: jebra animal' in call(repo, 'search', 'jebrra animal').stdout
    assert b'did you mean: zebra jebra' in call(repo, 'search', 'zebra jebrra').stdout


@test
def urls_as_people_write_them(folder):
    """Without a scheme, and with a port, everywhere where a URL is expected."""
    repo = folder / 'r'
    links = b'<p>word <a href="http://safe.example/x">to x</a> <a href="http://port.example:8080/y">to y</a>'
    call(repo, 'import', archive(folder / 'a.warc', [Page('http://plain.example/', links),
                                                     Page('https://safe.example/x', b'<p>safe word'),
                                                     Page('http://port.example:8080/y', b'<p>port word')]))
    call(repo, 'index')
    for text, url in (('plain.example', 'http://plain.example/'), ('safe.example/x', 'https://safe.example/x'),
                      ('safe.example:443/x', 'https://safe.example/x'),
                      ('port.example:8080/y', 'http://port.example:8080/y')):
        for command in (['get'], ['versions'], ['links', '--out'], ['links', '--in'], ['similar'], ['webdb', 'page'],
                        ['webdb', 'links', '--to']):
            assert call(repo, *command, text).stdout == call(repo, *command, url).stdout, (command, text)
        assert ask(repo, 'get', text)[0]['url'] == url
    assert [ask(repo, 'why', text)[0]['verdict'] for text in ('safe.example/x', 'port.example:8080/y')] == ['fetched'] * 2
    assert len(lines(call(repo, '--json', 'links', '--in', 'port.example:8080/y').stdout)) == 1
    for wrong in ('two words', '/x', 'http://'):
        refused(repo, wrong, 'get', wrong)


def indexed_again(repo, *args, **kw):
    """(generation, whether it is a new one, its last line)."""
    before = ask(repo, 'stat')[0]
    said = ask(repo, 'index', *args, **kw)
    after = ask(repo, 'stat')[0]
    same = said[0]['event'] == 'unchanged'
    assert done(said)['generation'] == after['generation'] == before['generation'] + (not same), said
    assert not same or (after['snapshot'] == before['snapshot'] and said[0]['generation'] == after['generation']), said
    return after['generation'], not same, said[-1]


@test
def nothing_new_makes_no_generation(folder):
    """Every kind of change makes one; what changes nothing that is indexed does not."""
    repo, column, seeds = folder / 'r', folder / 'column.tsv', folder / 'seeds.txt'
    page = lambda n, word, second=0: Page('http://n.example/%d' % n, b'<p>%s <a href=/%d>next</a>' % (word.encode(), n + 1),
                                          '2026-01-01T00:00:%02dZ' % second)
    new = lambda *args, **kw: indexed_again(repo, *args, **kw)[1]
    put = lambda *pages: call(repo, 'import', archive(folder / ('%d.warc' % len(list(folder.iterdir()))), pages))
    call(repo, 'init', '--history', '2')
    put(*(page(n, 'word') for n in range(20)))
    call(repo, 'index')
    assert not new() and b'nothing new: generation 1 has everything, 20 pages' in call(repo, 'index').stdout
    assert not list((repo / 'index').glob('new-*')) and new('--force') and not new() and new('--from-scratch')

    put(page(3, 'word'))                            # the same capture again
    assert not new()
    call(repo, 'compact')
    call(repo, 'update')
    call(repo, 'snapshot', '--name', 'mine')
    assert not new()
    put(page(3, 'word', 1))                         # the same bytes, seen later
    assert new() and not new()
    put(page(3, 'other', 2))
    assert new() and not new()
    assert done(ask(repo, 'search', 'other'))['total'] == 1
    put(page(20, 'word'))
    assert new() and not new()
    call(repo, 'expunge', 'http://n.example/5')
    assert new() and not new()
    call(repo, 'expunge', '--allow', 'http://n.example/5')
    put(page(5, 'word'))
    assert new() and not new()
    call(repo, 'push', '-', input=b'http://known.example/\n')   # known, but not stored
    assert new() and not new()
    call(repo, 'history', 'all')
    assert new() and not new()

    column.write_text('http://n.example/1\t1\n')
    seeds.write_text('http://n.example/2\n')
    given = ['--column', 'quality=%s' % column, '--rank', 'trust=%s' % seeds]
    assert new(*given) and not new() and not new(*given)
    column.write_text('http://n.example/1\t2\n')
    assert new(*given) and not new(*given)
    seeds.write_text('http://n.example/3\n')
    assert new(*given) and not new(*given) and new('--column', 'quality=') and not new()
    column.write_text('http://n.example/1\ttext\nbroken\n')
    refused(repo, 'column.tsv', 'index', '--column', 'quality=%s' % column)
    assert not new() and not list((repo / 'index').glob('new-*'))

    (folder / 'elsewhere').mkdir()
    assert new('--index-dir', folder / 'elsewhere') and not new() and not new('--index-dir', folder / 'elsewhere')
    assert new('--index-dir', repo) and not new()


ARTICLE = """<html lang=%s><head><title>%s</title></head><body><nav><ul><li><a href=/1>%s menu</a><li><a href=/2>quick links</a>
</ul></nav><main><h1>%s</h1><p>%s</p></main><footer>all rights reserved</footer></body></html>"""
ENGLISH = ('The reserve was founded in 1950. A herd of zebras lives in the north of it. Visitors come in the dry season, when '
           'there is little water elsewhere. ') + 'The roads are closed in April and in May, because the rivers rise. ' * 40
ARABIC = ('تأسست المحمية في عام ١٩٥٠. يعيش قطيع من الحمار الوحشي في شمالها. هل يأتي الزوار في موسم الجفاف؟ نعم، يأتون كل سنة. ') * 3
JAPANESE = '保護区は1950年に設立された。北部にはシマウマの群れが生息している。訪問者は乾季に来る。' * 6


@test
def snippets_are_kept_with_the_generation(folder):
    """Of the main part of a page, in whole sentences; without the pages; and never of a page that was taken down."""
    repo = folder / 'r'
    pages = [Page('http://en.example/', (ARTICLE % ('en', 'Reserve', 'main', 'Reserve', ENGLISH)).encode()),
             Page('http://ar.example/', (ARTICLE % ('ar', 'محمية', 'main', 'محمية', ARABIC)).encode()),
             Page('http://ja.example/', (ARTICLE % ('ja', '保護区', 'main', '保護区', JAPANESE)).encode())]
    call(repo, 'import', archive(folder / 'a.warc', pages))
    call(repo, 'index')
    snippet = lambda query, url: next(h['snippet'] for h in search(repo, query)[0] if h['url'] == url)
    english = snippet('zebras', 'http://en.example/')
    assert english.startswith('A herd of <b>zebras</b> lives in the north of it. Visitors come'), english
    assert 'menu' not in english and 'rights' not in english and '…' not in english and english.endswith('.'), english
    quick = snippet('quick', 'http://en.example/')
    assert quick.startswith('The reserve was founded in 1950.') and 'links' not in quick, quick
    arabic, japanese = snippet('قطيع', 'http://ar.example/'), snippet('シマウマ', 'http://ja.example/')
    assert arabic.startswith('يعيش <b>قطيع</b> من') and arabic.rstrip(' …')[-1] in '.؟', arabic
    assert japanese.startswith('北部には') and '<b>' in japanese and japanese.endswith('。'), japanese
    assert [h['title'] for h in search(repo, 'zebras')[0]] == ['Reserve']
    # No page is read: nothing is missing without them.
    for file in (repo / 'pages').glob('*.seg'):
        file.rename(file.with_suffix('.away'))
    assert snippet('zebras', 'http://en.example/') == english
    for file in (repo / 'pages').glob('*.away'):
        file.rename(file.with_suffix('.seg'))
    # A part that is damaged costs a snippet, and `verify` names the file.
    generation, = (repo / 'index').glob('0*')
    good = (generation / 'texts.wbb').read_bytes()
    (generation / 'texts.wbb').write_bytes(good[:70] + bytes(b ^ 1 for b in good[70:90]) + good[90:])
    for query, url in (('zebras', 'http://en.example/'), ('قطيع', 'http://ar.example/'), ('シマウマ', 'http://ja.example/')):
        hit = next(h for h in search(repo, query)[0] if h['url'] == url)
        assert hit['title'] in ('Reserve', 'محمية', '保護区'), hit
        assert hit['snippet'] in ('', None, english, arabic, japanese), hit
    assert b'texts.wbb' in call(repo, 'verify', status=1).stdout
    (generation / 'texts.wbb').write_bytes(good)
    call(repo, 'verify')
    call(repo, 'expunge', 'http://en.example/')
    assert not search(repo, 'zebras')[0]
    call(repo, 'index')
    generation, = (repo / 'index').glob('0*')
    assert not search(repo, 'zebras')[0] and len((generation / 'texts.wbb').read_bytes()) < len(good)


@test
def a_damaged_generation_is_built_again(folder):
    """Although nothing is new: what was changed behind our back is looked at, and what is sound stays."""
    repo = folder / 'r'
    call(repo, 'import', archive(folder / 'a.warc', some_pages(rng('damaged index'), 40)))
    call(repo, 'index')
    for name in ('lists', 'simhash.wbc', 'titles.wbt', 'manifest', 'docids.wbb', 'positions', 'texts.wbb', 'urls.wbb'):
        generation, = (repo / 'index').glob('0*')
        data = bytearray((generation / name).read_bytes())
        data[len(data) // 2] ^= 4
        (generation / name).write_bytes(data)
        p = call(repo, 'index')
        assert b'generation' in p.stdout and b'nothing new' not in p.stdout, (name, p.stdout)
        assert b'everything is indexed again' in p.stderr and name.encode() in p.stderr, (name, p.stderr)
        verified(repo)
        assert b'nothing new' in call(repo, 'index').stdout, name
    generation, = (repo / 'index').glob('0*')
    (generation / 'types.wbt').unlink()
    assert b'nothing new' not in call(repo, 'index').stdout
    generation, = (repo / 'index').glob('0*')
    os.utime(generation / 'lists')                  # as after a copy: sound, but younger than the manifest
    assert b'nothing new' in call(repo, 'index').stdout


@test
def facets_orders_and_paging(folder):
    repo = shared()
    _, end = search(repo, 'web OR zebras', '--facet', 'site', '--facet', 'type', '--facet', 'status', '--facet', 'lang')
    values = {name: {v['value']: v['count'] for v in list_} for name, list_ in end['facets'].items()}
    assert values['site'] == {'c.edu': 3, 'a.example': 2, 'b.example': 1}, values
    assert values['type'] == {'text/html': 5, 'text/plain': 1} and values['status'] == {'200': 6}, values
    assert [v['value'] for v in end['facets']['site']] == ['c.edu', 'a.example', 'b.example']
    everything = found(repo, 'status:>=0', '--sort', 'url')
    surts = [','.join(reversed(u.split('/')[0].split('.'))) + ')/' + u.split('/', 1)[1] for u in everything]
    assert surts == sorted(surts) and len(everything) == len(STORED) + 1
    for key, query, expected in (('date', 'site:a.example OR title:sister', [B, INDEX, ROBOTS, A]),
                                 ('quality', 'quality:>=-1', [A, B, ROBOTS])):
        assert found(repo, query, '--sort', key) == expected, key
        assert found(repo, query, '--sort', '-' + key) == expected[::-1], key
    assert found(repo, 'web', '--sort', 'quality') == [A, B, ROBOTS] and \
        found(repo, 'site:a.example', '--sort', '-quality') == [ROBOTS, A, INDEX]     # without a value: last either way
    call(repo, 'export', '--facts', folder / 'facts.jsonl')
    rank = {f['url'][7:]: f['rank'] for f in map(json.loads, (folder / 'facts.jsonl').read_text().splitlines())}
    there, back = ([rank[u] for u in found(repo, 'status:>=0', '--sort', sign + 'rank')] for sign in ('', '-'))
    assert there == sorted(rank.values(), reverse=True) and back == there[::-1] and len(there) == len(everything)
    assert found(repo, 'rank:>0', '--sort', 'rank')[0] == A
    whole = found(repo, 'web OR network OR zebras')
    pieces = []
    for offset in range(0, len(whole), 2):
        hits, end = search(repo, 'web OR network OR zebras', '--limit', 2, '--offset', offset)
        assert end['total'] == len(whole) and [h['rank'] for h in hits][0] == offset + 1
        pieces += [h['url'].split('://')[1] for h in hits]
    assert pieces == whole
    assert search(repo, 'web', '--offset', 1000)[0] == []
    sites = [u.split('/')[0] for u in found(repo, 'web OR zebras', '--one-per-site')]
    assert sorted(sites) == ['a.example', 'b.example', 'c.edu']
    assert found(repo, 'web OR network') == found(repo, 'web OR network', '--exhaustive')
    assert sorted(found(repo, 'web', '--plain')) == sorted(found(repo, 'web'))


@test
def explanations(folder):
    hits, end = search(shared(), 'title:crawlers link:a.example/', '--explain')
    assert end['plan'] and 'link' in end['plan'], end
    for hit in hits:
        assert abs(sum(p['score'] for p in hit['parts']) - hit['score']) < 1e-3, hit
        assert {p['term'] for p in hit['parts']} >= {'PageRank'}, hit
    text = call(shared(), 'search', 'crawler', '--explain').stdout.decode()
    assert 'PageRank' in text and 'crawler' in text


@test
def links_and_similar(folder):
    repo = shared()
    links = ask(repo, 'links', 'http://a.example/', '--in')
    assert sorted((l['url'], l['anchor']) for l in links) == [
        ('http://a.example/index', 'home'), ('http://a.example/robots', 'home'), ('http://b.example/', 'brother')]
    out = ask(repo, 'links', 'a.example/', '--out')
    assert {l['url']: l['anchor'] for l in out}['http://never.example/x'] == 'unreachable treasure' and len(out) == 4
    assert [l['url'] for l in ask(repo, 'links', 'http://never.example/x', '--in')] == ['http://a.example/']
    assert ask(repo, 'links', 'http://never.example/x', '--out') == []
    refused(repo, 'no.example', 'links', 'http://no.example/', '--in')
    call(repo, 'links', 'http://a.example/', status=2)
    like = ask(repo, 'similar', 'http://c.edu/same/1')
    assert like[0]['url'] == 'http://c.edu/same/2' and 0 < like[0]['score'] <= 1.001
    assert all(l['url'] != 'http://c.edu/same/1' for l in like)
    refused(repo, 'no.example', 'similar', 'http://no.example/')


# ---- generations --------------------------------------------------------------------------------------------

@test
def before_the_first_index(folder):
    repo = folder / 'r'
    for args in (('search', 'web'), ('links', 'http://a.example/', '--in'), ('similar', 'http://a.example/')):
        refused(repo, 'there is no repository', *args)
    assert not repo.exists()
    ask(repo, 'import', archive(folder / 'in.warc.gz', PAGES))
    refused(repo, "'webbase index' builds one", 'search', 'web')
    assert ask(repo, 'stat')[-1]['generation'] == 0


@test
def a_takedown_takes_effect_at_once(folder):
    repo = make(folder)
    assert ROBOTS in found(repo, 'crawler')
    call(repo, 'expunge', 'http://a.example/robots')
    assert sorted(found(repo, 'crawler')) == sorted([A, B])
    assert sorted(found(repo, 'link:a.example/')) == sorted([INDEX, B])
    assert found(repo, 'linkfrom:a.example/robots') == [] and found(repo, 'related:a.example/robots') == []
    assert found(repo, 'inlinks:>=3') == [] and A in found(repo, 'inlinks:2')
    assert ROBOTS not in found(repo, 'linkfrom:a.example/') and ROBOTS not in found(repo, 'site:a.example')
    assert ROBOTS not in found(repo, 'status:>=0') and ROBOTS not in found(repo, '-zebras')
    assert 'http://' + ROBOTS not in [l['url'] for l in ask(repo, 'links', 'http://a.example/', '--in')]
    assert ask(repo, 'links', 'http://a.example/robots', '--out') == []
    _, end = search(repo, 'site:a.example', '--facet', 'site')
    assert end['facets']['site'] == [{'value': 'a.example', 'count': 2}]
    before = sorted(found(repo, 'crawler'))
    call(repo, 'index')
    assert sorted(found(repo, 'crawler')) == before and ROBOTS not in found(repo, 'rules OR robots')
    call(repo, 'expunge', 'b.example')
    assert found(repo, 'site:b.example') == [DRAFT] and found(repo, 'crawler') == [A]


@test
def the_next_generation_is_only_seen_when_it_is_complete(folder):
    repo = make(folder)
    ask(repo, 'import', archive(folder / 'more.warc', [Page('http://d.example/', b'<title>late</title>a late zebra')]))
    call(repo, 'update')
    assert found(repo, 'late') == []
    process = subprocess.Popen(command(repo, 'index'), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    seen = []
    while process.poll() is None:
        seen.append(len(found(repo, 'zebra')))
    assert process.returncode == 0, process.stderr.read()
    process.stderr.close()
    assert set(seen) <= {3, 4} and seen == sorted(seen), seen
    assert found(repo, 'late') == ['d.example/'] and len(found(repo, 'zebra')) == 4
    assert ask(repo, 'stat')[-1]['generation'] == 2
    assert found(repo, 'quality:>=0.5 -topic:physics') == [A]      # columns stay


@test
def a_killed_build_leaves_the_old_generation(folder):
    repo = make(folder)
    ask(repo, 'import', archive(folder / 'more.warc', [Page('http://d.example/', b'a late zebra')]))
    for wait in (0, 0.01, 0.03, 0.08):
        process = subprocess.Popen(command(repo, 'index'), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(wait)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert len(found(repo, 'zebra')) in (3, 4)
    call(repo, 'index')
    assert len(found(repo, 'zebra')) == 4


run()
