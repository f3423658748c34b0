"""Queries with judged answers, and measures of how well a ranking answers them: for quality.py and bench/quality.

CACM and Cranfield are collections of abstracts; the questions about documentation are ours (tests/data/questions).
"""
import collections, html, math, os, pathlib, re, tarfile

HERE = pathlib.Path(__file__).resolve().parent
DATA = pathlib.Path(os.environ.get('WEBBASE_DATA') or HERE.parent.parent.parent / 'shared' / 'data') / 'ir'
QUESTIONS = HERE.parent / 'data' / 'questions' / 'documentation.txt'
# The stop words of the published baselines (Lucene's English list).
STOP_WORDS = set('a an and are as at be but by for if in into is it no not of on or such that the their then there '
                 'these they this to was will with'.split())


def words_of(text):
    return [w for w in re.findall('[a-z0-9]+', text.lower()) if w not in STOP_WORDS]


# ---- measures --------------------------------------------------------------------

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


def reciprocal_rank(ranked, good):
    return next((1 / i for i, name in enumerate(ranked[:10], 1) if name in good), 0.0)


def mean(values):
    return math.fsum(values) / len(values)


# ---- CACM ----------------------------------------------------------------------

def cacm_topics():
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


def cacm_files():
    """(name, bytes) of each file."""
    with tarfile.open(DATA / 'cacm' / 'cacm.tar.gz') as tar:
        for member in tar:
            if member.isfile():
                yield os.path.basename(member.name), tar.extractfile(member).read()


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


def cranfield_pages():
    """(name, title, HTML) of each abstract."""
    for name, part in read_smart(DATA / 'cranfield' / 'cran.all.1400'):
        title = ' '.join(part['T'].split())
        yield name, title, '<!DOCTYPE html><html lang="en"><head><title>%s</title></head><body>%s</body></html>' % (
            html.escape(title), ''.join('<p>%s</p>' % html.escape(part[s]) for s in 'WAB'))


def cranfield_queries():
    """(query, gains of its answers) of each. Queries are judged by their position in cran.qry. Code 1 is the best
    answer and 4 the least; -1 marks one answer of each query that is as good as code 1."""
    gains = collections.defaultdict(dict)
    for line in (DATA / 'cranfield' / 'cranqrel').read_text().splitlines():
        if line.strip():
            query, name, code = line.split()[:3]
            gains[int(query)][name] = 5 - abs(int(code))
    queries = [part['W'] for _, part in read_smart(DATA / 'cranfield' / 'cran.qry')]
    return [(queries[i - 1], gains[i]) for i in sorted(gains)]


# ---- questions about documentation -------------------------------------------------

def question_name(url):
    """The name of a page in QUESTIONS: the first letters of its package, which have no version, and its path."""
    host, _, path = re.sub('^[a-z]+://', '', url).partition('/')
    return (re.match('[a-z]+', host).group() if host.endswith('.example') else host) + '/' + path


def questions():
    """(half, question, {name of a page: grade}) of each; its README describes the format."""
    out = []
    for line in QUESTIONS.read_text(encoding='utf-8').splitlines():
        first, _, rest = line.partition(' ')
        if first in ('tuning', 'held-out'):
            out.append((first, rest, {}))
        elif first:
            out[-1][2].update((name, int(first)) for name in rest.split(' '))
    return out
