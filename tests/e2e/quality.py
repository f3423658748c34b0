#!/usr/bin/env python3
"""How good the ranking is: judged collections of queries, and pages that are looked for by their titles.

CACM and Cranfield come with the answers that people found relevant. They are measured with plain BM25, whose goals are
what other programs reach with it, and with the default ranking. Neither is tuned on these collections.

`quality.py --misses` prints the titles that did not find their page.
"""
import atexit, collections, functools, re
from e2e import *
from judged import (DATA, average_precision, cacm_files, cacm_topics, cranfield_pages, cranfield_queries, mean, ndcg,
                    words_of)

CORPUS = pathlib.Path(os.environ.get('WEBBASE_BENCH_CORPUS') or ROOT / 'bench' / 'corpus-data') / 'pages.warc.gz'
MISSES = '--misses' in sys.argv and not sys.argv.remove('--misses')


def found(repo, query, limit, *options):
    out = call(repo, 'search', '--json', '--limit', limit, '--quick', *options, '--', query).stdout
    return [hit['url'] for hit in lines(out) if 'url' in hit]


def or_query(text):
    return ' OR '.join(words_of(text))


# ---- CACM ----------------------------------------------------------------------

def cacm_repository(folder):
    if not (DATA / 'cacm').is_dir():
        raise Skip('no %s' % (DATA / 'cacm'))
    files, repo = folder / 'files', folder / 'cacm'
    files.mkdir()
    for name, data in cacm_files():
        (files / name).write_bytes(data)
    call(repo, 'import', '--dir', files, '--url', 'http://cacm.example/')
    call(repo, 'index')
    return repo


@test
def cacm_queries_find_what_people_found_relevant(folder):
    repo = cacm_repository(folder)
    topics, relevant = cacm_topics()
    value = {}
    for name, options in (('plain BM25', ['--plain']), ('default', [])):
        runs = [(t, [u.split('/')[-1].replace('.html', '') for u in found(repo, or_query(topics[t]), 1000, *options)])
                for t in sorted(relevant)]
        value[name] = mean([average_precision(run, relevant[t]) for t, run in runs])
        print('# CACM, %s: MAP %.4f over %d topics' % (name, value[name], len(runs)))
    assert value['plain BM25'] >= 0.311 and value['default'] >= 0.311, value


# ---- Cranfield -------------------------------------------------------------------

@functools.cache
def cranfield_repository():
    """Two tests read it, so it is made once."""
    if not (DATA / 'cranfield').is_dir():
        raise Skip('no %s' % (DATA / 'cranfield'))
    folder = pathlib.Path(tempfile.mkdtemp(prefix='webbase-e2e-'))
    atexit.register(shutil.rmtree, folder, True)
    repo, documents = folder / 'cranfield', list(cranfield_pages())
    pages = [Page('http://cranfield.example/' + name, text.encode()) for name, _, text in documents]
    ask(repo, 'import', archive(folder / 'cranfield.warc.gz', pages))
    call(repo, 'index')
    return repo, documents


@test
def cranfield_queries_find_the_best_answers_first(folder):
    repo, _ = cranfield_repository()
    queries = cranfield_queries()
    value = {}
    for name, options in (('plain BM25', ['--plain']), ('default', [])):
        runs = [([u.split('/')[-1] for u in found(repo, or_query(query), 10, *options)], gains)
                for query, gains in queries]
        value[name] = mean([ndcg(run, gains) for run, gains in runs])
        print('# Cranfield, %s: nDCG@10 %.4f over %d queries' % (name, value[name], len(runs)))
    assert value['plain BM25'] >= 0.52 and value['default'] >= 0.5, value


# ---- pages by their titles -----------------------------------------------------------

def title_query(title):
    """The words of a title as a query: everything that the language has a meaning for is taken out."""
    words = re.sub(r'["()*:\\]', ' ', title).split()
    return ' '.join(w.lstrip('-') for w in words if w.lstrip('-') and w not in ('OR', 'AND'))


def known_items(name, repo, titles, chance):
    """The share of 200 pages that their titles find among the first ten. titles: (URL, title) of all pages. The choice
    is the same in every run, so that the result does not depend on luck."""
    shared = collections.Counter(title for _, title in titles)
    chosen = sorted((u, t) for u, t in titles if t and shared[t] <= 3 and title_query(t))
    chosen = chance.sample(chosen, min(200, len(chosen)))
    hits = 0
    for url, title in chosen:
        hit = url in found(repo, title_query(title), 10)
        hits += hit
        if MISSES and not hit:
            print('# %s: %r' % (url, title))
    print('# %s: %d of %d titles find their page among the first ten' % (name, hits, len(chosen)))
    return hits / len(chosen)


@test
def titles_find_their_abstracts(folder):
    repo, documents = cranfield_repository()
    titles = [('http://cranfield.example/' + name, title) for name, title, _ in documents]
    assert known_items('Cranfield', repo, titles, random.Random('abstracts')) >= 0.95


def titles_find_their_pages_of_documentation(folder):
    repo = folder / 'corpus'
    ask(repo, 'import', CORPUS)
    call(repo, 'index')
    call(repo, 'export', '--facts', folder / 'facts.jsonl', '--status', '200')
    with open(folder / 'facts.jsonl', encoding='utf-8', newline='\n') as f:
        titles = [(row['url'], row['title'] or '') for row in map(json.loads, f)]
    assert known_items('documentation', repo, titles, random.Random('documentation')) >= 0.95


# bench/corpus makes it of Debian packages; it is too large for the repository.
if CORPUS.exists():
    test(titles_find_their_pages_of_documentation)

run()
