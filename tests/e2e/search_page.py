#!/usr/bin/env python3
"""How results are found and shown to people: where titles lead, completion while typing, and near duplicates and other
languages folded under one result."""
import json, re, urllib.parse
from html import escape, unescape
from html.parser import HTMLParser

from e2e import *
from serving import Server

DAY = '2026-01-02T03:04:05Z'
WORDS = 'stone river forest window garden letter market bridge island mirror'.split()
ENGLISH = ('This guide explains how the filter works and which rules are followed before anything else is done. It has examples '
           'for people who have never done this, and shows what happens if something goes wrong. ')
GERMAN = ('Diese Anleitung erklärt, wie der Filter arbeitet und welche Regeln befolgt werden, bevor etwas anderes geschieht. Sie '
          'enthält Beispiele für Leute, die das noch nie getan haben, und zeigt, was bei einem Fehler geschieht. ')
FRENCH = ('Ce guide explique comment le filtre fonctionne et quelles règles sont suivies avant toute autre chose. Il contient des '
          'exemples pour ceux qui ne l\'ont jamais fait, et montre ce qui se passe en cas d\'erreur. ')


def document(url, title, text, status='200 OK', **more):
    title = '' if title is None else '<title>%s</title>' % escape(title)
    return Page(url, ('<!DOCTYPE html><meta charset=utf-8>%s<body><p>%s</p></body>' % (title, text)).encode(), DAY, status=status,
                **more)


def indexed(folder, pages):
    repo = folder / 'r'
    ask(repo, 'import', archive(folder / 'in.warc', pages))
    call(repo, 'index')
    return repo


def get(server, path, **params):
    return server.ask(path + '?' + urllib.parse.urlencode(params))


def completions(server, typed, **more):
    r = get(server, '/api/complete', q=typed, **more)
    assert r.status == 200, (typed, r.status, r.body)
    found = r.json()
    assert found['q'] == typed and len(found['completions']) <= int(more.get('limit', 8)), found
    return found['completions']


def texts(server, typed, **more):
    return [c['text'] for c in completions(server, typed, **more)]


class Results(HTMLParser):
    """The results of a search page: lists of (href, rel) of links in each, and its text."""

    def __init__(self, text):
        super().__init__()
        self.hits, self.depth, self.details = [], 0, False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag == 'li' and attrs.get('class') == 'hit':
            self.hits.append({'links': [], 'folded': [], 'text': '', 'lang': []})
            self.depth = 1
        elif self.depth and tag == 'li':
            self.depth += 1
        if self.depth and tag == 'details':
            self.details = True
        if self.depth and tag == 'a':
            self.hits[-1]['folded' if self.details else 'links'].append((attrs['href'], attrs.get('rel')))
        if self.depth and 'lang' in attrs:
            self.hits[-1]['lang'].append(attrs['lang'])

    def handle_endtag(self, tag):
        if self.depth and tag == 'li':
            self.depth -= 1
        if tag == 'details':
            self.details = False

    def handle_data(self, data):
        if self.depth:
            self.hits[-1]['text'] += data


@test
def titles_open_the_stored_copy(folder):
    url, odd = 'http://www.shop.example/guide/caf%C3%A9/long-name-of-a-page.html?x=1&y=2', 'http://shop.example/%E2%80%AEevil'
    repo = indexed(folder, [
        document(url, 'The title', 'zqword <a href="http://never.example/zqword">zqword</a>'),
        document(odd, 'ab\u202ecd\u0007ef <b>', 'zqword'),
        Page('http://shop.example/heading', b'<h1>Only a heading</h1><p>zqword', DAY),
        Page('http://shop.example/nothing', b'<p>zqword', DAY),
        document('http://shop.example/a/b/c/d/e/f/g/h/' + 'x' * 90, 'T' * 500, 'zqword')])
    with Server(repo) as s:
        r = get(s, '/', q='zqword')
        hits = {urllib.parse.unquote(h['links'][0][0]): h for h in Results(r.body.decode()).hits}
        assert len(hits) == 6, hits.keys()
        first = hits['/web/20260102030405/' + urllib.parse.unquote(url)]
        (copy, _), (facts, _), (similar, _), (live, rel) = first['links']
        assert s.ask(copy).status == 200 and b'zqword' in s.ask(copy).body
        assert b'Facts' in s.ask(facts).body and similar.endswith('#similar')
        assert live == url and {'noopener', 'noreferrer'} <= set(rel.split()), (live, rel)
        assert 'www.shop.example › guide › café › long-name-of-a-page.html' in first['text'] and '2026-01-02' in first['text'], first
        # Nothing turns the line around, and a page without a title has a name nevertheless.
        assert not any(c in r.body.decode() for c in '\u202e\u0007')
        names = [h['text'] for h in hits.values()]
        assert any(n.strip().startswith('ab cd ef <b>') for n in names) and any('%E2%80%AEevil' in n for n in names), names
        assert any(n.strip().startswith('Only a heading') for n in names), names
        assert any(n.strip().startswith('http://shop.example/nothing') for n in names), names
        assert any('T' * 200 + '…' in n and '›' in n and 'x' * 60 not in n for n in names), names
        assert [h for h in hits if h.startswith('/page?url=http://never.example/')], hits.keys()


@test
def completion_of_titles_and_words(folder):
    pages = [document('http://a.example/nf', 'Netfilter manual: filter tables - Handbook', ' '.join(WORDS * 3) + ' gardening gardeners')]
    pages += [document('http://a.example/h%d' % i, 'Page number%d | Handbook' % i, ' '.join(WORDS[i % 5:i % 5 + 4])) for i in range(20)]
    pages += [document('http://a.example/u', 'Über "quoted" (brackets) -minus title:field OR Straße', 'x'),
              document('http://a.example/j', '東京都の天気', 'x'), document('http://a.example/lost', 'Vanished secret', 'x', status='404 Not Found'),
              document('http://a.example/gone', 'Takedown candidate', 'takedownword'), document('http://a.example/gone2', 'Other', 'takedownword')]
    repo = indexed(folder, pages)
    with Server(repo) as s:
        manual = 'Netfilter manual: filter tables'
        for typed in ('n', 'netf', 'NETFILTER MAN', 'manual', 'filt', 'filter ta', 'Tables', ' netfilter  manual', 'netfilter, man'):
            assert manual in texts(s, typed, limit=20), typed
        found = [c for c in completions(s, 'netfilter') if c['kind'] == 'title']
        assert found == [{'text': manual, 'kind': 'title', 'url': 'http://a.example/nf'}], found
        # The part that all titles have is there once.
        assert texts(s, 'hand') == ['Handbook'] and texts(s, 'filter t ') == [] and texts(s, 'vanished') == []
        assert texts(s, 'uber')[0] == texts(s, 'ÜBE')[0] == 'Über quoted brackets minus title field or Straße', texts(s, 'uber')
        assert texts(s, 'strasse')[:1] == texts(s, 'straß')[:1] == texts(s, 'uber')[:1] and texts(s, '東京')[:1] == ['東京都の天気']
        # Every completion is a query that finds something.
        for typed in ('u', 'g', 'netf', 'page', 'stone riv', 'site:a.example gar', '東'):
            for text in texts(s, typed):
                assert get(s, '/api/search', q=text).json()['total'] > 0, (typed, text)
        assert 'stone river' in texts(s, 'stone riv') and 'site:a.example garden' in texts(s, 'site:a.example gar')
        assert [c['kind'] for c in completions(s, 'stone riv')] == ['words'] and texts(s, 'river mark') == ['river market']
        assert texts(s, 'takedownword nu') == []            # no page has both
        # Words with one stem find the same pages: one of them is enough.
        assert len([t for t in texts(s, 'garde') if t.startswith('garden')]) == 1, texts(s, 'garde')
        assert len(texts(s, 'p', limit=3)) == 3 and texts(s, 'p', limit=0) == [] and texts(s, '"(unclosed') == []
        r = get(s, '/api/complete', q='netf', format='opensearch')
        assert r.json() == ['netf', [manual]] and r.field('Content-Type').startswith('application/x-suggestions+json'), r.body
        for query in ('', 'limit=x&q=a', 'limit=21&q=a', 'limit=-1&q=a', 'format=xml&q=a'):
            s.ask('/api/complete?' + query).error(400)
        description = s.ask('/opensearch.xml').body.decode()
        template = re.search(r'x-suggestions\+json" method="get" template="([^"]*)"', description)[1]
        assert template == s.url + '/api/complete?format=opensearch&amp;q={searchTerms}', template
        # What is typed may be anything.
        for typed in ('\x00', 'a' * 5000, '\ufffd\u202e', '-' * 200, 'a ' * 100, '%', '()"', ':'):
            assert isinstance(texts(s, typed), list), typed
        # A takedown takes effect at once: of a title, and of words that no other page has.
        assert texts(s, 'takedown cand') == ['Takedown candidate'] and 'takedownword' in texts(s, 'takedownw')
        call(repo, 'expunge', 'http://a.example/gone')
        assert texts(s, 'takedown cand') == [] and texts(s, 'takedownw') == ['takedownword']
        call(repo, 'expunge', 'http://a.example/gone2')
        assert texts(s, 'takedownw') == [] and texts(s, 'netf') == [manual]
    verified(repo)


@test
def completion_of_hostile_titles(folder):
    same = 'Cheap <b>offer</b> now'
    pages = [document('http://spam.example/%d' % i, same, 'x%d' % i) for i in range(1500)]
    pages += [document('http://spam.example/long', 'Endless ' + 'zqlong ' * 1500000, 'x'),
              document('http://spam.example/word', 'zqword' + 'y' * 3000000, 'x'),
              document('http://spam.example/parts', ' - '.join('Part%d of it' % i for i in range(50000)), 'x'),
              document('http://spam.example/odd', 'Odd\x01\x02 \u202etitle\u2066 \u200bend\ud7ff\ufdd0', 'x'),
              document('http://spam.example/punctuation', '.' * 2000 + ' dots ' + '!' * 2000, 'x'),
              Page('http://spam.example/bytes', b'<title>Broken \xff\xfe bytes \xc3</title>x', DAY, type='text/html; charset=utf-8')]
    repo = indexed(folder, pages)
    with Server(repo) as s:
        assert texts(s, 'cheap') == [same] and texts(s, 'offer') == [same], texts(s, 'cheap')
        for typed in ('endless', 'zqlong', 'zqword', 'part0', 'part3', 'odd', 'dots', 'broken', 'b', 'e', 'o'):
            for text in texts(s, typed, limit=20):
                assert len(text.encode()) <= 120 and not re.search('[\x00-\x1f\u200b-\u200f\u202a-\u202e\u2066-\u2069]', text), (typed, text)
        assert texts(s, 'endless')[0].startswith('Endless zqlong zqlong') and texts(s, 'odd')[0].startswith('Odd title end')
        assert texts(s, 'part3') == ['Part3 of it'] and texts(s, 'part4') == []
    bytes_of = {p.name: p.stat().st_size for p in (repo / 'index/00000001').iterdir()}
    assert bytes_of['completions.wbb'] < 100000, bytes_of
    verified(repo)


WAYS = ('http://doc.example/%s/intro.html', 'http://doc.example/more/intro.%s.html', 'http://doc.example/x?hl=%s')


def folded_web():
    long = ' '.join('%s%d' % (WORDS[i % 10], i) for i in range(400))
    pages = [document('http://copies.example/%d' % i, 'Copy', 'zqfold the same text everywhere ' + long) for i in range(60)]
    for way in WAYS:
        own = ' '.join(way + str(i) for i in range(40))
        pages += [document(way % 'en', 'Guide', 'zqfold ' + ENGLISH * 8 + own), document(way % 'de', 'Anleitung', 'zqfold ' + GERMAN * 8 + own),
                  document(way % 'fr', 'Guide (fr)', 'zqfold ' + FRENCH * 8 + own)]
    # A copy elsewhere of one of them: if it is better, the translations are folded under it as well.
    pages.append(document('http://mirror.example/anleitung', 'Anleitung', pages[61].body.decode().partition('<p>')[2]))
    # The language is named by the URL, but the page is in another one; or the site is another one.
    pages += [document('http://doc.example/it/intro.html', 'Falso', 'zqfold not what it says ' + ENGLISH * 3 + long),
              document('http://other.example/de/intro.html', 'Anderswo', 'zqfold anderswo ' + GERMAN * 3 + 'eigenes')]
    pages += [document('http://single.example/%d' % i, 'Single %d' % i, 'zqfold ' + ' '.join('%s%d' % (w, 1000 * i + k) for k in range(30)
                                                                                          for w in WORDS)) for i in range(25)]
    return pages


@test
def folding(folder):
    pages = folded_web()
    repo = indexed(folder, pages)
    with Server(repo) as s:
        def search(**more):
            return get(s, '/api/search', q='zqfold', **more).json()
        whole = search(limit=1000)
        assert whole['total'] == len(whole['hits']) == len(pages) and 'folded' not in whole['hits'][0] and 'hits_total' not in whole
        order = [h['url'] for h in whole['hits']]
        for limit in (1, 4, 10, 1000):
            hits, offset = [], 0
            while True:
                page = search(limit=limit, offset=offset, fold=1)
                assert page['total'] == len(pages) and page['hits_total'] >= len(hits) + len(page['hits']), page
                assert [h['rank'] for h in page['hits']] == list(range(offset + 1, offset + 1 + len(page['hits'])))
                hits += page['hits']
                offset += limit
                if len(page['hits']) < limit:
                    break
            assert page['hits_exact'] is True and page['hits_total'] == len(hits)
            # Every page is there once, as a hit or under one that is better.
            assert sorted(u for h in hits for u in [h['url'], *(f['url'] for f in h['folded'])]) == sorted(order)
            assert [h['url'] for h in hits] == [u for u in order if u in {h['url'] for h in hits}]
            for h in hits:
                places = [order.index(f['url']) for f in h['folded']]
                assert places == sorted(places) and all(0 < p - order.index(h['url']) <= 40 for p in places), h
            if limit == 1:
                one_by_one = hits
            assert hits == one_by_one, limit
        why = {f['why']: f for h in hits for f in h['folded']}
        assert set(why) == {'near', 'language'}, why
        groups = [sorted([(h['url'], h['lang']), *((f['url'], f['lang']) for f in h['folded'])]) for h in hits]
        for way in WAYS:
            mirror = [('http://mirror.example/anleitung', 'de')] if way == WAYS[0] else []
            assert sorted([(way % lang, lang) for lang in ('en', 'de', 'fr')] + mirror) in groups, (way, groups)
        assert [('http://doc.example/it/intro.html', 'en')] in groups and [('http://other.example/de/intro.html', 'de')] in groups, groups
        # The page for people folds unless it is told not to.
        r = Results(get(s, '/', q='zqfold', limit=100).body.decode())
        assert len(r.hits) == len(hits) and sum(len(h['folded']) for h in r.hits) == len(pages) - len(hits)
        text = ' '.join(h['text'] for h in r.hits)
        assert 'also in' in text and 'Deutsch' in text and 'français' in text and 'near duplicates' in text, text
        assert len(Results(get(s, '/', q='zqfold', limit=100, fold=0).body.decode()).hits) == len(pages)
        both = get(s, '/', q='zqfold').body.decode()
        assert '%d results, ' % len(pages) in both and 'fold=0' in both and 'after folding' in both
        # The links to further pages lead to all of them.
        seen, todo, done_ = set(), ['/?q=zqfold'], set()
        while todo:
            path = todo.pop()
            done_.add(path)
            body = s.ask(path).body.decode()
            seen |= {link for h in Results(body).hits for link, _ in [h['links'][0], *h['folded']]}
            paging = body[body.find('class="paging"'):]
            todo += {unescape(x) for x in re.findall(r'href="(/\?q=zqfold[^"]*offset[^"]*)"', paging)} - done_ - set(todo)
        assert len(seen) == len(pages), (len(seen), len(pages))
        s.ask('/api/search?q=zqfold&fold=maybe').error(400, 'fold')
    out = ask(repo, 'search', '--fold', '--limit', '1000', 'zqfold')
    assert [h['url'] for h in out[:-1]] == [h['url'] for h in hits] and out[-1]['hits_total'] == len(hits) and out[-1]['total'] == len(pages)
    words = call(repo, 'search', '--fold', '--limit', '100', 'zqfold').stdout.decode()
    assert '+ http://copies.example/' in words and 'near duplicate' in words and 'after folding' in words, words
    plain = call(repo, 'search', 'zqfold').stdout.decode()
    assert 'near duplicate' not in plain and 'folding' not in plain


@test
def folding_many_copies(folder):
    """A site of nothing but copies does not hide the others, and all copies can be reached."""
    same = 'zqmany ' + ' '.join('%s%d' % (WORDS[i % 10], i) for i in range(300))
    pages = [document('http://copies.example/%d' % i, 'zqmany', same) for i in range(900)]
    pages += [document('http://one.example/', 'One', 'zqmany and something else that is quite different')]
    repo = indexed(folder, pages)
    with Server(repo) as s:
        first = get(s, '/api/search', q='zqmany', fold=1).json()
        assert len(first['hits']) == 10 and all(len(h['folded']) <= 40 for h in first['hits'])
        seen, offset = set(), 0
        while page := get(s, '/api/search', q='zqmany', fold=1, offset=offset).json()['hits']:
            seen |= {u for h in page for u in [h['url'], *(f['url'] for f in h['folded'])]}
            offset += 10
        assert len(seen) == 901, len(seen)
        assert offset <= 40, offset


@test
def languages_of_the_reader(folder):
    repo = indexed(folder, [document('http://a.example/', 'Anleitung', 'zqlang ' + GERMAN * 4)])
    with Server(repo) as s:
        for accepted, named in (('en', True), ('de-AT,en;q=0.5', False), ('fr, DE;q=0.1', False), ('', True), ('den', True)):
            text = s.ask('/?q=zqlang', headers={'Accept-Language': accepted}).body.decode()
            assert ('Deutsch' in text) == named, accepted
            assert '<p class="snippet" lang="de">' in text


@test
def more_spellings_of_a_url(folder):
    pages = [document('http://xn--bcher-kva.example/stra%C3%9Fe', 'B', 'x'), document('http://a.example/a%20b', 'S', 'x'),
             document('http://a.example/very/long/path/of/a/page', 'L', 'x')]
    repo = indexed(folder, pages)
    ways = {pages[0].url: ['bücher.example/straße', 'http://BÜCHER.example/straße', 'https://www.xn--bcher-kva.example/stra%c3%9fe#x',
                           'BÜCHER.EXAMPLE/stra%C3%9Fe'],
            pages[1].url: ['http://a.example/a b', 'a.example/a%20b', ' http://a.example/a b '],
            pages[2].url: ['http://a.example/very/lo\nng/path/of/a/page', 'A.example:80/very/./long/x/../path/of/a/page#part']}
    with Server(repo) as s:
        for url, typed in ways.items():
            for way in typed:
                r = get(s, '/', q=way)
                assert r.status == 302 and urllib.parse.unquote(r.field('Location')) == '/page?url=' + url, (way, r.field('Location'))
        for typed in ('http://a.example/a b c', 'http://a.example/ http://b.example/', 'a.example/a b', 'http://www..?a', 'www..?a'):
            assert get(s, '/', q=typed).status == 200, typed


run()
