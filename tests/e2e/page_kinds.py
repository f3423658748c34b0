#!/usr/bin/env python3
"""What kind of page comes first: pages that say something before those that only lead to them.

A made-up manual of twelve chapters, with the pages that manuals have besides: a table of contents, an alphabetical
index, a list of what uses each thing, a page with its copyright, a page to search with, and everything once more in one
file. All have the same words, and every page links to most of them. Letters on another site have other words.
"""
from e2e import *

HOST = 'http://manual.example/'
THINGS = ['valve', 'boiler', 'piston', 'gauge', 'furnace', 'whistle', 'lever', 'crank', 'flywheel', 'governor', 'tender',
          'injector']
PARTS = ['mounting', 'cleaning', 'pressure', 'repair']
LETTERS = 100
FILLER = ('the engineer must turn it slowly and listen for a sound that was not there before because steam finds every '
          'small opening and whoever waits too long has to start again with cold water').split()


def link(path, text):
    return '<a href="/%s">%s</a>' % (path, text)


def page(path, title, body, nav=True):
    """Every page has the same navigation and footer."""
    bar = '<nav>%s</nav>' % ' '.join(link(p + '.html', t) for p, t in (
        ('index', 'Home'), ('contents', 'Contents'), ('genindex', 'Index'), ('search', 'Search'))) if nav else ''
    foot = '<footer>%s 2026 Example Works</footer>' % link('copyright.html', 'Copyright')
    return Page(HOST + path + '.html', ('<!DOCTYPE html><html lang="en"><head><title>%s</title></head><body>%s%s%s'
                                        '</body></html>' % (title, bar, body, foot)).encode())


def prose(random_, thing, part):
    words = [random_.choice(FILLER) for _ in range(60)]
    for word in (thing, part):
        for _ in range(4):
            words[random_.randrange(60)] = word
    return '<p>The %s of the %s: %s.</p>' % (part, thing, ' '.join(words))


def manual():
    random_ = rng('manual')
    chapters = {thing: ''.join('<h2>%s</h2>%s' % (part.title(), ''.join(prose(random_, thing, part) for _ in range(3)))
                               for part in PARTS) for thing in THINGS}
    pages = [page(thing, 'The %s' % thing, '<h1>The %s</h1>%s' % (thing, text)) for thing, text in chapters.items()]
    entries = [link(thing + '.html#' + part, '%s, %s' % (thing, part)) for thing in THINGS for part in PARTS]
    entries += [link(random_.choice(THINGS) + '.html', '%s, %s' % (word, random_.choice(FILLER)))
                for word in sorted(set(FILLER)) for _ in range(3)]
    lists = lambda items: '<ul>%s</ul>' % ''.join('<li>%s</li>' % item for item in items)
    pages += [
        page('index', 'Steam Engine Manual', '<h1>Steam Engine Manual</h1><p>This manual describes a steam engine, from '
             'its boiler to its whistle, for those who keep it running.</p>' +
             lists(link(t + '.html', 'The ' + t) for t in THINGS)),
        page('contents', 'Contents', lists(link(t + '.html', 'The %s' % t) + lists(
            link(t + '.html#' + part, '%s of the %s' % (part.title(), t)) for part in PARTS) for t in THINGS)),
        page('genindex', 'Index', '<h1>Index</h1>' + lists(sorted(entries))),
        page('copyright', 'Copyright', '<h1>Copyright</h1><p>Copyright 2026 Example Works. All rights reserved, also '
             'those to the drawings of the valve, the boiler and the piston.</p>'),
        page('search', 'Search', '<h1>Search</h1><form><input name="q"></form><p>Please enter words, such as valve '
             'pressure or boiler repair.</p>'),
        page('print', 'Steam Engine Manual', ''.join(chapters.values()) * 8, nav=False)]
    pages += [page('uses-' + thing, 'Uses of the ' + thing, '<h1>Uses of the %s</h1>' % thing + lists(
        link(other + '.html', 'the %s, in the chapter about %s' % (thing, other)) for other in THINGS)) for thing in THINGS]
    # A page that nobody has fetched: only the texts of links to it are known.
    pages.append(page('news', 'News', '<p>What others write about us, and why they should not.</p>' + ' '.join(
        link('http://elsewhere.example/valve/pressure'[7:], 'valve pressure') for _ in range(3)).replace(
            'href="/', 'href="http://')))
    pages += [Page('http://letters.example/%d.html' % i, ('<!DOCTYPE html><title>Letter %d</title><p>%s.</p>' % (
        i, ' '.join(random_.choice(FILLER) for _ in range(300)))).encode()) for i in range(LETTERS)]
    return pages


def names(repo, query, count=4):
    out = lines(call(repo, 'search', '--json', '--limit', count, '--', query).stdout)
    return [hit['url'].removeprefix(HOST).removesuffix('.html') for hit in out if 'url' in hit]


@test
def pages_that_lead_to_others_come_after_them(folder):
    repo = folder / 'repo'
    ask(repo, 'import', archive(folder / 'manual.warc.gz', manual()))
    call(repo, 'index')
    for thing in THINGS:
        found = names(repo, thing)
        assert found[0] == thing, (thing, found)
        for part in PARTS:
            found = names(repo, '%s %s' % (thing, part))
            assert found[0] == thing, (thing, part, found)
    # Who asks for one of the other pages, or for the manual itself, gets it.
    for query, wanted in (('steam engine manual', 'index'), ('manual', 'index'), ('copyright', 'copyright'),
                          ('search', 'search'), ('contents', 'contents'), ('index', 'genindex'),
                          ('uses of the piston', 'uses-piston')):
        found = names(repo, query)
        assert found[0] == wanted, (query, found)


@test
def pages_that_nobody_has_read_are_found_but_not_first(folder):
    repo = folder / 'repo'
    ask(repo, 'import', archive(folder / 'manual.warc.gz', manual()))
    call(repo, 'index')
    found = names(repo, 'valve pressure', 40)
    assert found[0] == 'valve' and 'http://elsewhere.example/valve/pressure' in found, found


@test
def what_a_length_counts_survives_a_build_on_the_last_one(folder):
    repo, pages = folder / 'repo', manual()
    ask(repo, 'import', archive(folder / 'manual.warc.gz', pages))
    call(repo, 'index')
    pages[0].body = pages[0].body.replace(b'slowly', b'quickly')
    pages[0].date = '2026-02-02T03:04:05Z'
    ask(repo, 'import', archive(folder / 'again.warc.gz', pages[:1]))
    call(repo, 'index')
    built = (max((repo / 'index').glob('0*')) / 'length.wbc').read_bytes()
    call(repo, 'index', '--from-scratch')
    assert (max((repo / 'index').glob('0*')) / 'length.wbc').read_bytes() == built
    verified(repo)


run()
