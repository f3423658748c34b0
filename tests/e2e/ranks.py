#!/usr/bin/env python3
"""PageRank, host rank and ranks from the seeds of users: in queries, orders, facts and webdb; how they last, what is
refused."""
import random
from e2e import *


def random_web(folder, seed, pages=60, hosts=11):
    """Pages with random links. Returns the links of every URL, with those that are never fetched."""
    chance = random.Random(seed)
    host = lambda i: 'h%d.%s.test' % (i, 'oak' if i % 3 else 'elm')
    urls = ['http://%s/p%d' % (host(int(hosts * chance.random() ** 2)), i) for i in range(pages + 20)]
    links = {u: [] for u in urls[pages:]}
    for u in urls[:pages]:
        links[u] = sorted({urls[int(len(urls) * chance.random() ** 3)] for _ in range(chance.randint(0, 5))})
    archive(folder / ('web%d.warc.gz' % seed), [Page(u, ('<title>page</title>a page with number %d %s' % (
        i, ' '.join('<a href="%s">link</a>' % v for v in links[u]))).encode()) for i, u in enumerate(urls[:pages])])
    known = set(urls[:pages]).union(*links.values())
    return {u: l for u, l in links.items() if u in known}, urls[:pages]


def host_of(url):
    return url.split('/')[2]


def rank(links, seeds):
    """Where a walk is found that follows links, and jumps to one of the seeds."""
    jump = {u: (u in seeds) / len(seeds) for u in links}
    now = dict(jump)
    for _ in range(400):
        loose = sum(now[u] for u in links if not links[u])
        new = {u: (0.15 + 0.85 * loose) * jump[u] for u in links}
        for u, l in links.items():
            for v in l:
                new[v] += 0.85 * now[u] / len(l)
        now = new
    return now


def host_rank(links):
    hosts = {host_of(u): set() for u in links}
    for u, l in links.items():
        hosts[host_of(u)] |= {host_of(v) for v in l} - {host_of(u)}
    return rank(hosts, set(hosts))


def facts(repo, folder):
    call(repo, 'export', '--facts', folder / 'facts.jsonl', '--force')
    return {f['url']: f for f in map(json.loads, (folder / 'facts.jsonl').read_text().splitlines())}


def distance(got, expected):
    return sum(abs(got[u] - expected[u]) for u in got)


def found(repo, query, *options):
    hits = ask(repo, 'search', '--limit', 1000, *options, query)
    return [h['url'] for h in hits if 'url' in h]


@test
def ranks_are_what_they_should_be(folder):
    repo, seeds = folder / 'r', folder / 'seeds'
    links, stored = random_web(folder, 1)
    ask(repo, 'import', folder / 'web1.warc.gz')
    seeds.write_text('# where I start\n%s\n\n  elm.test\n%s\n' % (stored[3], stored[7][7:]))
    end = done(ask(repo, 'index', '--rank', 'trust=%s' % seeds))
    assert end['urls'] == len(links) and end['pages'] == len(stored)
    rows = facts(repo, folder)
    chosen = {stored[3], stored[7]} | {u for u in stored if host_of(u).endswith('.elm.test')}
    hosts = host_rank(links)
    expected = {'rank': rank(links, set(links)), 'hostrank': {u: hosts[host_of(u)] for u in links},
                'trust': rank(links, chosen)}
    for name, values in expected.items():
        got = {u: rows[u][name] for u in stored}
        assert distance(got, values) < 1e-9, name
        # The order, and a range. Equal values are in the order of docids, so only the values are compared.
        there = [got[u] for u in found(repo, 'page', '--sort', name)]
        assert there == sorted(got.values(), reverse=True), name
        assert [got[u] for u in found(repo, 'page', '--sort', '-' + name)] == there[::-1], name
        middle = there[len(there) // 2]
        assert sorted(found(repo, 'page %s:>=%.17g' % (name, middle))) == sorted(u for u in got if got[u] >= middle)
        assert sorted(found(repo, 'page %s:<%.17g' % (name, middle))) == sorted(u for u in got if got[u] < middle)
    # URLs that were never fetched have ranks, too.
    never = [u for u in links if u not in stored]
    assert set(never) <= set(found(repo, 'hostrank:>0 rank:>0 trust:>=0'))
    # webdb shows the rank beside the score.
    for url in (stored[0], stored[30], never[0]):
        row = ask(repo, 'webdb', 'page', url)[0]
        assert abs(row['rank'] / expected['rank'][url] - 1) < 1e-5 and row['score'] > 0, row
        words = dict(line.split(None, 1) for line in call(repo, 'webdb', 'page', url).stdout.decode().splitlines())
        assert abs(float(words['rank']) / expected['rank'][url] - 1) < 1e-5, words
    assert 'rank' not in call(repo, 'webdb', 'page', stored[0], '--tsv').stdout.decode().split('\n')[0].split('\t')
    verified(repo)


@test
def a_rank_lasts_and_follows_the_web(folder):
    repo, seeds = folder / 'r', folder / 'seeds'
    links, stored = random_web(folder, 2)
    ask(repo, 'import', folder / 'web2.warc.gz')
    late = 'http://late.test/start'
    seeds.write_text('%s\n%s\n' % (stored[5], late))
    said = call(repo, 'index', '--rank', 'trust=%s' % seeds).stderr.decode()
    assert 'rank trust: 1 of 2 seeds' in said, said
    assert distance({u: f['trust'] for u, f in facts(repo, folder).items()}, rank(links, {stored[5]})) < 1e-9
    seeds.unlink()      # it is not needed any more
    links[late] = [stored[8], stored[9]]
    ask(repo, 'import', archive(folder / 'late.warc', [Page(late, (
        'late <a href="%s">8</a> <a href="%s">9</a>' % (stored[8], stored[9])).encode())]))
    p = call(repo, 'index')
    assert b'rank trust' not in p.stderr, p.stderr
    expected = rank(links, {stored[5], late})
    assert distance({u: f['trust'] for u, f in facts(repo, folder).items()}, expected) < 1e-9
    call(repo, 'index', '--from-scratch')
    assert distance({u: f['trust'] for u, f in facts(repo, folder).items()}, expected) < 1e-9
    call(repo, 'index', '--rank', 'trust=')
    assert 'trust' not in facts(repo, folder)[late]
    refused(repo, 'trust', 'index', '--rank', 'trust=')
    refused(repo, 'trust', 'search', 'page', '--sort', 'trust')


@test
def what_is_refused(folder):
    repo, seeds = folder / 'r', folder / 'seeds.txt'
    _, stored = random_web(folder, 3, pages=12)
    ask(repo, 'import', folder / 'web3.warc.gz')
    call(repo, 'index')
    for text, named in (('http://unknown.test/\nunknown.test\n', 'none of the 2 seeds'), ('', 'no seed'),
                        ('%s\nnot a host\n' % stored[0], 'line 2'), ('mailto:a@h1.oak.test', 'line 1')):
        seeds.write_text(text)
        message = refused(repo, named, 'index', '--rank', 'trust=%s' % seeds)
        assert 'seeds.txt' in message and 'trust' in message, message
    seeds.write_text(stored[0] + '\n')
    refused(repo, 'hostrank', 'index', '--rank', 'hostrank=%s' % seeds)
    refused(repo, 'hostrank', 'index', '--column', 'hostrank=%s' % seeds)
    refused(repo, 'NAME=FILE', 'index', '--rank', 'trust')
    refused(repo, 'twice', 'index', '--rank', 'trust=%s' % seeds, '--column', 'trust=%s' % seeds)
    refused(repo, 'missing.txt', 'index', '--rank', 'trust=%s' % (folder / 'missing.txt'))
    assert ask(repo, 'stat')[-1]['generation'] == 1


@test
def webdb_has_no_rank_without_an_index(folder):
    repo = folder / 'r'
    links, stored = random_web(folder, 4, pages=12)
    ask(repo, 'import', folder / 'web4.warc.gz')
    call(repo, 'update')
    row = ask(repo, 'webdb', 'page', stored[0])[0]
    assert row['rank'] is None and row['score'] > 0
    assert not [l for l in call(repo, 'webdb', 'page', stored[0]).stdout.decode().splitlines() if l.startswith('rank')]
    call(repo, 'index')
    ask(repo, 'import', archive(folder / 'late.warc', [Page('http://late.test/', b'late')]))
    call(repo, 'update')
    assert ask(repo, 'webdb', 'page', 'http://late.test/')[0]['rank'] is None
    assert ask(repo, 'webdb', 'page', stored[0])[0]['rank'] > 0
    call(repo, 'expunge', stored[0])
    assert ask(repo, 'webdb', 'page', stored[0])[0]['rank'] is None
    # A damaged index is reported; the rest of the page is shown.
    ranks = list((repo / 'index').rglob('rank.wbc'))
    ranks[0].write_bytes(b'?' * ranks[0].stat().st_size)
    p = call(repo, 'webdb', 'page', stored[1], '--json')
    assert b'without its rank' in p.stderr and b'rank.wbc' in p.stderr, p.stderr
    assert lines(p.stdout)[0]['rank'] is None and lines(p.stdout)[0]['url'] == stored[1]


run()
