#!/usr/bin/env python3
"""How good the ranking is: judged collections of queries, and pages that are looked for by their titles.

CACM and Cranfield come with the answers that people found relevant. They are measured with plain BM25, whose goals are
what other programs reach with it, and with the default ranking. Neither is tuned on these collections.

`quality.py --misses` prints the titles that did not find their page.
"""
import atexit, collections, functools, html as markup, math, re, tarfile
from e2e import *

DATA = pathlib.Path(os.environ.get('WEBBASE_DATA') or ROOT.parent / 'shared' / 'data') / 'ir'
CORPUS = pathlib.Path(os.environ.get('WEBBASE_BENCH_CORPUS') or ROOT / 'bench' / 'corpus-data') / 'pages.warc.gz'
MISSES = '--misses' in sys.argv and not sys.argv.remove('--misses')
# The stop words of the published baselines (Lucene's English list).
STOP_WORDS = set('a an and are as at be but by for if in into is it no not of on or such that the their then there '
                 'these they this to was will with'.split())


def found(repo, query, limit, *options):
    out = call(repo, 'search', '--json', '--limit', limit, '--quick', *options, '--', query).stdout
    return [hit['url'] for hit in lines(out) if 'url' in hit]


def or_query(text):
    return ' OR '.join(w for w in re.findall('[a-z0-9]+', text.lower()) if w not in STOP_WORDS)


def average_precision(ranked, relevant):
    hits, area = 0, 0.0
    for i, name in enumerate(ranked, 1):
        if name in relevant:
            hits += 1
            area += hits / i
    return area / len(relevant)


def ndcg(ranked, gains):
    gain = lambda values: sum(v / math.log2(i + 2) for i, v in enumerate(values[:10]))
    return gain([gains.get(name, 0) for name in ranked]) / gain(sorted(gains.values(), reverse=True))


def mean(values):
    return math.fsum(values) / len(values)


# ---- CACM ----------------------------------------------------------------------

def cacm():
    """Topics, and the relevant documents of each."""
    base = DATA / 'cacm'
    text = (base / 'topics' / 'topics.cacm.txt').read_text(encoding='latin-1')
    topics = dict(re.findall(r'<DOCNO>\s*(\d+)\s*</DOCNO>(.*?)</DOC>', text, re.S))
    relevant = collections.defaultdict(set)
    for line in (base / 'qrels' / 'qrels.cacm.txt').read_text().splitlines():
        topic, _, name, grade = line.split()
        if int(grade) > 0:
            relevant[topic].add(name)
    return topics, relevant


def cacm_repository(folder):
    if not (DATA / 'cacm').is_dir():
        raise Skip('no %s' % (DATA / 'cacm'))
    files, repo = folder / 'files', folder / 'cacm'
    files.mkdir()
    with tarfile.open(DATA / 'cacm' / 'cacm.tar.gz') as tar:
        for member in tar:
            if member.isfile():
                (files / os.path.basename(member.name)).write_bytes(tar.extractfile(member).read())
    call(repo, 'import', '--dir', files, '--url', 'http://cacm.example/')
    call(repo, 'index')
    return repo


@test
def cacm_queries_find_what_people_found_relevant(folder):
    repo = cacm_repository(folder)
    topics, relevant = cacm()
    value = {}
    for name, options in (('plain BM25', ['--plain']), ('default', [])):
        runs = [(t, [u.split('/')[-1].replace('.html', '') for u in found(repo, or_query(topics[t]), 1000, *options)])
                for t in sorted(relevant)]
        value[name] = mean([average_precision(run, relevant[t]) for t, run in runs])
        print('# CACM, %s: MAP %.4f over %d topics' % (name, value[name], len(runs)))
    assert value['plain BM25'] >= 0.311 and value['default'] >= 0.311, value


# ---- Cranfield -------------------------------------------------------------------

def read_smart(path):
    """The SMART format: `.I id`, then sections `.T .A .B .W`, each up to the next such line."""
    out, section = [], None
    for line in path.read_text(encoding='latin-1').splitlines():
        if line.startswith('.I'):
            out.append((line.split()[1], collections.defaultdict(str)))
            section = None
        elif re.match(r'\.[TABW]\s*$', line):
            section = line[1]
        elif section:
            out[-1][1][section] += line + '\n'
    return out


@functools.cache
def cranfield_repository():
    """Two tests read it, so it is made once."""
    base = DATA / 'cranfield'
    if not base.is_dir():
        raise Skip('no %s' % base)
    folder = pathlib.Path(tempfile.mkdtemp(prefix='webbase-e2e-'))
    atexit.register(shutil.rmtree, folder, True)
    repo, documents = folder / 'cranfield', read_smart(base / 'cran.all.1400')
    pages = [Page('http://cranfield.example/' + name, (
        '<!DOCTYPE html><html lang="en"><head><title>%s</title></head><body>%s</body></html>' % (
            markup.escape(' '.join(part['T'].split())),
            ''.join('<p>%s</p>' % markup.escape(part[s]) for s in 'WAB'))).encode()) for name, part in documents]
    ask(repo, 'import', archive(folder / 'cranfield.warc.gz', pages))
    call(repo, 'index')
    return repo, documents


@test
def cranfield_queries_find_the_best_answers_first(folder):
    repo, _ = cranfield_repository()
    # Queries are judged by their position in cran.qry. Code 1 is the best answer and 4 the least; -1 marks one answer
    # of each query that is as good as code 1.
    gains = collections.defaultdict(dict)
    for line in (DATA / 'cranfield' / 'cranqrel').read_text().splitlines():
        if line.strip():
            query, name, code = line.split()[:3]
            gains[int(query)][name] = 5 - abs(int(code))
    queries = [part['W'] for _, part in read_smart(DATA / 'cranfield' / 'cran.qry')]
    value = {}
    for name, options in (('plain BM25', ['--plain']), ('default', [])):
        runs = [(i, [u.split('/')[-1] for u in found(repo, or_query(queries[i - 1]), 10, *options)])
                for i in sorted(gains)]
        value[name] = mean([ndcg(run, gains[i]) for i, run in runs])
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
    titles = [('http://cranfield.example/' + n, ' '.join(part['T'].split())) for n, part in documents]
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
