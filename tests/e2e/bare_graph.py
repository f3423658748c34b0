#!/usr/bin/env python3
"""webbase graph: a bare link graph is imported, counted and ranked; a bad one changes nothing; damage is noticed."""
from e2e import *


def write(path, lists, packed=False):
    text = '%d\n%s' % (len(lists), ''.join(' '.join(map(str, l)) + '\n' for l in lists))
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    return path


def ranks(repo, *args):
    values = [json.loads(line) for line in call(repo, 'graph', 'rank', '--json', *args).stdout.splitlines()]
    assert [v['node'] for v in values] == list(range(len(values)))
    plain = [float(line) for line in call(repo, 'graph', 'rank', *args).stdout.split()]
    assert plain == [v['rank'] for v in values]
    return plain


def plain_rank(lists, jump):
    rank = list(jump)
    for _ in range(200):
        loose = sum(r for r, l in zip(rank, lists) if not l)
        new = [(0.15 + 0.85 * loose) * j for j in jump]
        for u, l in enumerate(lists):
            for v in l:
                new[v] += 0.85 * rank[u] / len(l)
        rank = new
    return rank


def distance(a, b):
    assert len(a) == len(b)
    return sum(abs(x - y) for x, y in zip(a, b))


@test
def a_graph_is_imported_counted_and_ranked(folder):
    chance, n = rng('graph'), 500
    lists = [sorted(chance.sample(range(n), chance.randrange(12))) for _ in range(n)]
    for packed in (False, True):
        repo = folder / ('r%d' % packed)
        end = done(ask(repo, 'graph', 'import', write(folder / 'text', lists, packed)))
        arcs = sum(map(len, lists))
        assert (end['nodes'], end['arcs'], end['repeated']) == (n, arcs, 0), end
        stat = ask(repo, 'graph', 'stat')[0]
        assert (stat['nodes'], stat['arcs']) == (n, arcs), stat
        assert stat['bytes'] == (repo / 'graph' / 'links').stat().st_size
        assert abs(stat['bits_per_link'] - 8 * stat['bytes'] / arcs) < 1e-3
        assert distance(ranks(repo), plain_rank(lists, [1 / n] * n)) < 1e-9
        seeds = [0.5 if v in (3, 400) else 0 for v in range(n)]
        assert distance(ranks(repo, '--from', '3', '--from', '400'), plain_rank(lists, seeds)) < 1e-9
        assert ranks(repo) == ranks(repo, '--threads', '5') == ranks(repo, '--memory', '1')


@test
def an_import_replaces_the_graph_or_leaves_it_alone(folder):
    repo = folder / 'r'
    for args in (('graph', 'stat'), ('graph', 'rank')):
        assert b'there is no repository' in call(repo, *args, status=1).stderr
    call(repo, 'init')
    assert b'there is no graph' in call(repo, 'graph', 'stat', status=1).stderr
    call(repo, 'graph', 'import', write(folder / 'good', [[1], [0, 2], []]))
    bad = folder / 'bad'
    for text, words in ((b'2\n1\n7\n', b'line 3: there is no node 7'), (b'2\n1\n', b'ends after line 2'),
                        (b'1\nx\n', b"line 2: 'x'"), (b'', b'line 1')):
        bad.write_bytes(text)
        said = call(repo, 'graph', 'import', bad, status=1).stderr
        assert words in said and str(bad).encode() in said, said
        assert ask(repo, 'graph', 'stat')[0]['arcs'] == 3
        assert sorted(p.name for p in (repo / 'graph').iterdir()) == ['links', 'lock']
    call(repo, 'graph', 'import', write(folder / 'next', [[0]] * 5))
    assert ask(repo, 'graph', 'stat')[0]['nodes'] == 5


@test
def damage_is_noticed(folder):
    repo = folder / 'r'
    call(repo, 'graph', 'import', write(folder / 'text', [[(v * 7 + i * i) % 300 for i in range(9)] for v in range(300)]))
    links = repo / 'graph' / 'links'
    whole, right = links.read_bytes(), ranks(repo)
    for at in range(0, len(whole), 13):
        links.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1:])
        p = call(repo, 'graph', 'rank', status=None)
        assert p.returncode == 0 and [float(v) for v in p.stdout.split()] == right or \
            p.returncode == 1 and str(links).encode() in p.stderr, (at, p)


@test
def wrong_words_are_refused(folder):
    repo = folder / 'r'
    call(repo, 'graph', 'import', write(folder / 'text', [[0]]))
    for args in (('graph',), ('graph', 'fly'), ('graph', 'import'), ('graph', 'stat', 'x'),
                 ('graph', 'stat', '--from', '1'), ('graph', 'import', 'x', '--threads', '2')):
        assert call(repo, *args, status=2).stderr, args
    for node in ('1', '-1', 'x', '0x', '99999999999999999999', '4294967296'):
        assert b'--from' in call(repo, 'graph', 'rank', '--from=' + node, status=1).stderr, node


run()
