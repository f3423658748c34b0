#!/usr/bin/env python3
"""Compares the main text of real articles with what people marked as the article.

Both texts are split into words; what they have in common is counted in runs of four words.
`main_text.py --pages` prints precision and recall of every page, the worst first, and
`main_text.py --page ID` shows what is superfluous and what is missing in one page.
"""
import collections, difflib, re

from e2e import *

ARTICLES = pathlib.Path(os.environ.get('WEBBASE_DATA', ROOT.parent / 'shared' / 'data')) / 'content' / 'articles'
GOAL = 0.95


def words(text):
    return re.findall(r'\w+', text or '')


def runs(text):
    w = words(text)
    return collections.Counter(tuple(w[i:i + 4]) for i in range(max(1, len(w) - 3))) if w else collections.Counter()


def extract_articles(folder):
    """For each article: its name, what people marked, and the main text that we extract."""
    if not (ARTICLES / 'truth.json').exists():
        raise Skip('no %s' % ARTICLES)
    truth = json.loads((ARTICLES / 'truth.json').read_text(encoding='utf-8'))
    files = []
    for name in truth:
        files.append(folder / (name + '.html'))
        files[-1].write_bytes(gzip.decompress((ARTICLES / 'html' / (name + '.html.gz')).read_bytes()))
    seen = ask(None, 'extract', *files, '--type', 'text/html')
    assert len(seen) == len(truth), len(seen)
    return [(name, truth[name]['articleBody'], page['main_text']) for name, page in zip(truth, seen)]


def score(want, got):
    """Precision and recall of one text; None if there is nothing to compare."""
    want, got = runs(want), runs(got)
    both = sum((want & got).values())
    return both / sum(got.values()) if got else None, both / sum(want.values()) if want else None


def mean(values):
    values = [v for v in values if v is not None]
    return sum(values) / len(values)


def f1(p, r):
    return 2 * p * r / (p + r) if p + r else 0


def total(scores):
    p, r = mean([s[0] for s in scores]), mean([s[1] for s in scores])
    return p, r, f1(p, r)


@test
def main_text_is_the_article(folder):
    articles = extract_articles(folder)
    p, r, f = total([score(want, got) for _, want, got in articles])
    print('# %d articles: precision %.3f, recall %.3f, F1 %.3f' % (len(articles), p, r, f))
    assert f >= GOAL, 'F1 %.3f is below %.2f' % (f, GOAL)
    empty = [name for name, _, got in articles if not got]
    assert not empty, 'no main text: %s' % empty


def print_pages():
    with tempfile.TemporaryDirectory() as folder:
        rows = [(score(want, got), name) for name, want, got in extract_articles(pathlib.Path(folder))]
    for (p, r), name in sorted(rows, key=lambda row: f1(row[0][0] or 0, row[0][1] or 0)):
        print('%s  precision %.3f  recall %.3f' % (name, p or 0, r or 0))
    for title, part in (('even', rows[::2]), ('odd', rows[1::2]), ('all', rows)):
        print('%-5s precision %.3f  recall %.3f  F1 %.3f' % (title, *total([s for s, _ in part])))


def print_page(wanted):
    with tempfile.TemporaryDirectory() as folder:
        for name, want, got in extract_articles(pathlib.Path(folder)):
            if not name.startswith(wanted):
                continue
            a, b = words(want), words(got)
            for op, a1, a2, b1, b2 in difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
                if op == 'equal':
                    print('    = %s' % ' '.join(a[a1:a2] if a2 - a1 < 16 else a[a1:a1 + 8] + ['...'] + a[a2 - 8:a2]))
                    continue
                if a2 > a1:
                    print('missing: %s' % ' '.join(a[a1:a2]))
                if b2 > b1:
                    print('too much: %s' % ' '.join(b[b1:b2]))


if sys.argv[1:2] == ['--pages']:
    print_pages()
elif sys.argv[1:2] == ['--page']:
    print_page(sys.argv[2])
else:
    run()
