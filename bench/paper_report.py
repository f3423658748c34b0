"""Writes docs/paper.md and its plots from the figures of bench/paper. Measures nothing."""
import re, textwrap

import paper_plot
from harness import ROOT
from paper_costs import add_seconds, busy, costs, designs, where
from paper_figures import (BASELINE, DISK_BYTES, FIGURE6, PAGE_BYTES, PROTOTYPE, S4, SHARE_PAGES, TABLE3, TABLE3_ROWS,
                           TABLE4, TABLE5, TABLE6, median_ms, median_of)

PLOTS = ROOT / 'docs/paper'
LOADS = [('a fast crawler, nobody reads', [5000, 0, 0, 0.25, 1]),
         ('a collection that many people look at', [0, 2000, 0, 0.25, 1]),
         ('streams for researchers, a slow crawl', [50, 10, 5000, 0.25, 2]),
         ('everything at once', [1000, 500, 5000, 0.25, 4]),
         ('everything at once, most pages replaced each time', [1000, 500, 5000, 0.9, 4])]
INTRO = '''# The paper's experiments

The WebBase paper (*WebBase: a repository of web pages*, 1999) compares ways to store pages with a simulator and with a
prototype. This report repeats its tables and figures. `bench/run paper` writes it, together with the plots and the costs
that `webbase advise` uses; do not edit it. Run it on your own machine before you choose a design:

```console
$ bench/run paper                        # everything; half an hour on a quiet machine
$ bench/run paper sim buckets report     # what needs no design: a few minutes
$ bench/run paper buckets report --repo DIR     # bucket sizes for your own pages
```

The columns:

- **paper**: what it says.
- **model**: our model of the paper's disk, a disk of 6.5 GB with 7200 revolutions per minute
  ([design/0036-paper-disk.md](design/0036-paper-disk.md)). It meets every row of Table S-4 within 10 %%.
- **this disk**: the same seeks, reads and writes on files of this machine: %(where)s.%(direct)s
- **real**: the program itself, with real pages: %(real)s.

'''


def fmt(value, digits=3):
    """Three significant digits, without exponents."""
    if value is None:
        return '-'
    if value == 0:
        return '0'
    if abs(value) >= 1000:
        rounded = float('%.*g' % (digits, value))
        return '{:,.0f}'.format(rounded)
    return '%g' % float('%.*g' % (digits, value))


def markdown(head, rows):
    lines = ['| ' + ' | '.join(head) + ' |', '|' + '---|' * len(head)]
    return '\n'.join(lines + ['| ' + ' | '.join(str(c) for c in row) + ' |' for row in rows]) + '\n\n'


def picture(name, text):
    return '![%s](paper/%s.svg)\n\n' % (text, name)


def refusals(rows):
    """A line for each design that could not be measured."""
    found = [r for r in rows if not r.get('available', True)]
    if not found:
        return ''
    reasons = sorted({r['message'].replace(r.get('design', '-'), '...') for r in found})
    return 'Not available in this program: %d design%s (%s).\n\n' % (
        len(found), '' if len(found) == 1 else 's', '; '.join('`%s`' % r for r in reasons))


# ---- simulator ---------------------------------------------------------------------------------------------------

def section_s4(sim):
    rows, groups = [], []
    for number in range(1, 13):
        row = next(r for r in sim if r['bench'] == 'row' and r['row'] == number)
        model, files = median_ms(sim, 'model', number), median_ms(sim, 'files', number)
        paper = S4[number - 1] if number <= 9 else None
        name = '%s, %s' % (row['operation'], row['organisation'])
        rows.append([number, name, 'ms/' + row['unit'], fmt(paper, 4), fmt(model),
                     '%+.0f %%' % (100 * (model / paper - 1)) if paper else '', fmt(files),
                     fmt((paper or model) / files)])
        if number <= 9:
            groups.append(('%d %s' % (number, name.replace(', random order', '').replace('addition', 'add')),
                           [paper, model, files]))
    paper_plot.bars(PLOTS / 's4.svg', 'Table S-4: the time of each operation', 'milliseconds', groups,
                    ['paper', 'model', 'this disk'])
    text = '''## Table S-4: operations

Each operation is a sequence of seeks, reads and writes. Rows 10 to 12 are ours: the hashed-log column of Table 3 needs
two of them, and the last one says what a stream and additions on the same disk cost each other.

'''
    text += markdown(['', 'operation', 'unit', 'paper', 'model', '', 'this disk', 'times faster'], rows)
    text += picture('s4', 'Table S-4 as bars')
    gain = lambda n: S4[n - 1] / median_ms(sim, 'files', n)
    return text + '''Compared with the paper's disk, this one is %s times as fast at random access (row 2) and %s times as fast at
streaming (row 3).

''' % (fmt(gain(2)), fmt(gain(3)))


def in_turn(sim, disk):
    """How much longer a stream and additions take in turn than one after the other."""
    return median_ms(sim, disk, 12) / ((median_ms(sim, disk, 3) + median_ms(sim, disk, 9)) * 65536 / PAGE_BYTES)


def section_table3(data):
    sim, found, rows = data['sim'], designs(data), []
    names = ['log', 'hash', 'hashed-log']
    for field, title in TABLE3_ROWS:
        line = [title]
        for o in names:
            value = lambda d: median_of(sim, field, bench='table3', disk=d, organisation=o)
            line += [fmt(TABLE3[o][field]), fmt(value('model')), fmt(value('files')), fmt(real_rate(found, o, field))]
        rows.append(line)
    head = [''] + ['%s: %s' % (o, c) if i == 0 else c for o in names
                   for i, c in enumerate(('paper', 'model', 'this disk', 'real'))]
    text = '''## Table 3: organisations, one node

Pages per second of one node. Streams of hash and hashed-log come in the order of page ids, those of the log do not.
Where the paper gives no number, there is a dash: it describes hashed-log in the text only. *Space* in the columns of the
simulator is the paper's assumption; real space is the share of the bytes on disk that is compressed pages, compared with
the log. Real additions in sorted order are a transfer from a hashed-log, which copies whole blocks to logs and
hashed-logs, and compresses pages again for buckets.

'''
    text += markdown(head, rows)
    need = {'Incr[hash,%s]' % o for o in names}
    return text + refusals([r for r in data['real'] or [] if r.get('design') in need and r['bench'] == 'design'])


def real_rate(found, organisation, field):
    row = found.get('Incr[hash,%s]' % organisation)
    sent = found.get('Batch[U(hash,hashed-log),R(hash,%s)]' % organisation)
    log = found.get('Incr[hash,log]')
    if field == 'add_sorted':
        return sent['pages'] / sent['fill_s'] if sent else None
    if not row:
        return None
    return {'stream': row['stream_cold'], 'get': row['get_cold'], 'add': None,
            'add_buffered': row['pages'] / add_seconds(row), 'space': log['bytes_stored'] / row['bytes_stored']}[field]


def section_table4(data):
    sim, found, rows = data['sim'], designs(data), []
    for o in ('log', 'hash', 'hashed-log'):
        line = ['`Batch[U(hash,%s),R(hash,hash)]`' % o]
        real = found.get('Batch[U(hash,%s),R(hash,hash)]' % o)
        for i, field in enumerate(('add', 'update_s')):
            line += [fmt(TABLE4[o][i])] + [fmt(median_of(sim, field, bench='table4', disk=d, update=o))
                                           for d in ('model', 'files')]
            line.append(fmt((real['pages'] / real['add_s'], real['update_s'])[i]) if real else '-')
        rows.append(line)
    size = next(r['bytes'] for r in sim if r['bench'] == 'files')
    text = '''## Table 4: batch updates of hash-based read nodes

Pages per second that an update node takes, and seconds of a batch update with an update ratio of 0.25. A log cannot
deliver its pages in the order of ids, so the read nodes add them in random order; the other two are merged with the
buckets in one sweep. The update time depends on how much a read node holds: 6.5 GB in the paper and the model, %.3g GB
on this disk, and %s pages in the real program.

''' % (size / 2 ** 30, fmt(next((r['pages'] for r in found.values()), None)))
    text += markdown(['', 'add: paper', 'model', 'this disk', 'real', 'update: paper', 'model', 'this disk', 'real'], rows)
    need = {'Batch[U(hash,%s),R(hash,hash)]' % o for o in TABLE4}
    return text + refusals([r for r in data['real'] or [] if r.get('design') in need and r['bench'] == 'design'])


# ---- buckets -----------------------------------------------------------------------------------------------------

STUDIES = [('paper', 'the paper\'s pages, model'), ('raw-model', 'own pages, model'),
           ('packed-model', 'own pages compressed, model'), ('raw', 'own pages, this disk'),
           ('packed', 'own pages compressed, this disk')]


def figures45(rows, study, suffix, title):
    four = sorted((r['kb'], r) for r in rows if r['bench'] == 'figure4' and r['study'] == study)
    five = sorted((r['per_bucket'], r) for r in rows if r['bench'] == 'figure5' and r['study'] == study)
    paper_plot.lines(PLOTS / ('figure4%s.svg' % suffix), 'Figure 4: 16 pages per bucket; ' + title,
                     ['bucket size, KB', 'milliseconds', 'reads; 50 x share'],
                     [('A random access', 0, [(x, r['a']) for x, r in four]),
                      ('B reading a bucket', 0, [(x, r['b']) for x, r in four]),
                      ('C buckets read', 1, [(x, r['c']) for x, r in four]),
                      ('D share x 50', 1, [(x, 50 * r['d']) for x, r in four])])
    paper_plot.lines(PLOTS / ('figure5%s.svg' % suffix), 'Figure 5: the best bucket size; ' + title,
                     ['pages per bucket', 'pages/s', '%; KB'],
                     [('E random access, pages/s', 0, [(x, r['rate']) for x, r in five]),
                      ('F space used, %', 1, [(x, 100 * r['use']) for x, r in five]),
                      ('G best size, KB', 1, [(x, r['kb']) for x, r in five])], log_x=True)


def flat_range(rows):
    """The bucket sizes whose random access takes at most 3 % longer than the best."""
    best = min(r['a'] for r in rows)
    near = [r['kb'] for r in rows if r['a'] <= 1.03 * best]
    return min(near), max(near)


def bucket_table(rows):
    """(head, rows) of a table: the best bucket for 16 pages, in each study."""
    cells = []
    for study, name in STUDIES:
        best = next(r for r in rows if r['bench'] == 'figure5' and r['study'] == study and r['per_bucket'] == 16)
        mean = median_of(rows, 'mean', bench='pages', study=study)
        cells.append([name, fmt(mean / 1024), best['kb'], fmt(best['ms']), fmt(best['rate']), '%.0f %%' % (100 * best['use'])])
    return ['16 pages per bucket', 'mean page, KB', 'best bucket, KB', 'ms', 'pages/s', 'space used'], cells


def section_buckets(rows):
    if not rows:
        return '## Figures 4 and 5: bucket sizes\n\nNot measured: `bench/run paper buckets`.\n\n'
    own = next(r for r in rows if r['bench'] == 'own')
    for study, suffix, title in (('paper', '', 'the paper\'s pages'), ('packed', '-own', 'own pages, compressed, this disk')):
        figures45(rows, study, suffix, title)
    whose = 'a repository that was given with `--repo`' if own['given'] else 'the benchmark corpus, which is documentation'
    text = '''## Figures 4 and 5: bucket sizes

With n pages per bucket on average, small buckets overflow, and large ones take long to read and are mostly empty. Plot A
is the time of a random access: B, the time of one read, multiplied by C, the number of buckets that are read. *Own pages*
are those of %s. In a bucket each page is compressed alone.

''' % whose
    text += markdown(*bucket_table(rows))
    flat = flat_range([r for r in rows if r['bench'] == 'figure4' and r['study'] == 'paper'])
    text += '''The paper has 64 KB, 20.7 ms, 48.3 pages/s and 60 %% for the first row. The curve is flat: every size from %d
to %d KB is within 3 %% of the best. On this disk a read costs %s ms, and %s ms more for each KB: transferring %s KB takes
as long as the access, and 240 KB on the paper's disk. The smaller this number, the smaller the best buckets.

''' % (*flat, fmt(own['first_ms']), fmt(own['ms_per_kb'], 2), fmt(own['first_ms'] / max(own['ms_per_kb'], 1e-9), 2))
    return text + ''.join(picture(n, t) for n, t in (('figure4', 'Figure 4'), ('figure5', 'Figure 5'), (
        'figure4-own', 'Figure 4 with own pages'), ('figure5-own', 'Figure 5 with own pages')))


# ---- the real program ---------------------------------------------------------------------------------------------------

def section_table5(data):
    rows = [r for r in data['real'] or [] if r['bench'] == 'table5']
    text = '''## Table 5: a system and its client

The prototype of the paper is `Batch[U(hash,log),R(hash,log)]`. The crawler emulator adds pages as fast as it can, and
the client module (`bench/client`) streams and gets pages over HTTP; both run on the same processors as the program.

'''
    if not rows:
        return text + 'Not measured: `bench/run paper real`.\n\n'
    table = [['the paper\'s prototype', fmt(TABLE5['stream']), fmt(TABLE5['add']), fmt(TABLE5['get']),
              fmt(TABLE5['update_s'], 4)]]
    for r in rows:
        if r['available']:
            how = '' if r['how'] == 'emulate' else ', pages by `import`'
            table.append(['`%s`%s' % (r['design'], how), fmt(r['stream']), fmt(r['add']), fmt(r['get']),
                          fmt(r.get('update_s'))])
        else:
            table.append(['`%s`' % r['design'], 'not available', '', '', ''])
    text += markdown(['', 'streaming, pages/s', 'addition, pages/s', 'random access, pages/s',
                      'batch update (ratio 0.25), s'], table)
    for r in rows:
        both = r.get('both', {}) if r['design'] in (PROTOTYPE, BASELINE) else {}
        if 'random' in both and 'stream' in both:
            text += ('`%s` at set rates, both at the same time: %s of %s gets/s, p50 %s ms, p99 %s ms; %s of %s streamed '
                     'pages/s.\n\n' % (r['design'], fmt(both['random']['rate']), fmt(both['random']['asked']),
                                       fmt(both['random']['p50_ms'], 2), fmt(both['random']['p99_ms'], 2),
                                       fmt(both['stream']['rate']), fmt(both['stream']['asked'])))
    return text + refusals(rows)


def section_figure6(data):
    measured = [r for r in data['real'] or [] if r['bench'] == 'figure6']
    rows = [r for r in measured if r['design'] == PROTOTYPE]
    text = '''## Figure 6: batch update time

The time of each stage against the update ratio, with `Batch[U(hash,log),R(hash,log)]` and one update node (the paper
adds update nodes as the ratio grows, which keeps its transfer time constant). The paper, at a ratio of 0.25: %s.

''' % ', '.join('%s %d s' % stage for stage in FIGURE6)
    done = [r for r in rows if r.get('available', True)]
    if not done:
        return text + (refusals(rows) or 'Not measured: `bench/run paper real`.\n\n')
    names = list(dict.fromkeys(s[0] for r in done for s in r['stages']))
    ms = lambda r, name: sum(s[1] for s in r['stages'] if s[0] == name)
    text += markdown(['update ratio', 'pages'] + ['%s, ms' % n for n in names] + ['all, ms'],
                     [[fmt(r['ratio']), fmt(r['changed'])] + [fmt(ms(r, n)) for n in names] + [fmt(1000 * r['seconds'])]
                      for r in done])
    if len(done) > 1:
        paper_plot.areas(PLOTS / 'figure6.svg', 'Figure 6: batch update time by stage',
                         ['update ratio', 'milliseconds, cumulative'], [r['ratio'] for r in done],
                         [(n, [ms(r, n) for r in done]) for n in names])
        text += picture('figure6', 'Figure 6')
    return text + figure6_designs(measured)


def figure6_designs(rows):
    """The whole update time of all pairs of organisations, of which the prototype is one."""
    found = {}
    for r in rows:
        if r.get('available', True):
            found.setdefault(r['design'], {})[r['ratio']] = 1000 * r['seconds']
    if len(found) < 2:
        return refusals(rows)
    ratios = sorted({ratio for times in found.values() for ratio in times})
    return '''The same for all pairs of organisations, all stages together, in ms. Logs are brought as blocks, everything else is
compressed again; buckets are merged, so that few new pages cost nearly as much as many.

''' + markdown(['update ratio'] + [fmt(r) for r in ratios],
               [['`%s`' % d] + [fmt(times.get(r)) for r in ratios] for d, times in found.items()]) + refusals(rows)


def symbol(value, best, small=False):
    """The paper's five grades, by the ratio to the best; small: less is better."""
    if value is None:
        return ''
    share = best / value if small else value / best
    return next(s for s, least in (('++', 0.75), ('+', 0.35), ('+-', 0.12), ('-', 0.03), ('--', 0)) if share >= least)


def model_row(sim, design):
    """(stream, get, add, update time) of a design on the model, for 6.5 GB on a read node."""
    rate = lambda o, f: median_of(sim, f, bench='table3', disk='model', organisation=o)
    if design.startswith('Incr'):
        p, o = design[5:-1].split(',')
        get = 1000 / (1000 / rate(o, 'get') + (median_ms(sim, 'model', 2) / 2 if p == 'uniform' else 0))
        return rate(o, 'stream'), get, rate(o, 'add_buffered'), None
    u, r = (part.split(',')[1] for part in design[8:-2].split('),R('))
    update = median_of(sim, 'update_s', bench='table4', disk='model', update=u)
    if r == 'log':         # compaction copies what stays, and what comes is appended
        pages, copy = DISK_BYTES / PAGE_BYTES, 1 / rate('log', 'stream') + 1 / rate('log', 'add')
        update = pages * (0.75 * copy + 0.25 / rate('log', 'add'))
    return rate(r, 'stream'), rate(r, 'get'), rate(u, 'add_buffered'), update


def real_row(found, design):
    r = found.get(design)
    return (r['stream_cold'], r['get_cold'], r['pages'] / add_seconds(r), r.get('update_s')) if r else (None,) * 4


def section_table6(data):
    found, rows = designs(data), []
    kinds = [[model_row(data['sim'], d) for d, _ in TABLE6], [real_row(found, d) for d, _ in TABLE6]]
    best = [[(min if c == 3 else max)((r[c] for r in kind if r[c]), default=None) for c in range(4)] for kind in kinds]
    for i, (design, paper) in enumerate(TABLE6):
        line = ['`%s`' % design]
        for c in range(4):
            cells = [paper[c]] + [symbol(kind[i][c], best[k][c], c == 3) for k, kind in enumerate(kinds)]
            line.append(' / '.join(x or '·' for x in cells) if any(cells) else '')
        rows.append(line)
    return '''## Table 6: which design is good at what

Paper / model / real, from `++` to `--`. The paper does not say how it graded; ours are by the ratio to the best of the
column: three quarters, a third, an eighth, a thirtieth. `·`: not measured. The model has no interference between
operations, which is why it does not share the paper's low grade for additions to `Incr[hash,log]`.

''' + markdown(['', 'streaming', 'random access', 'addition', 'update time'], rows)


def section_designs(data):
    rows = [r for r in data['real'] or [] if r['bench'] == 'design']
    text = '## All designs\n\n'
    if not rows:
        return text + 'Not measured: `bench/run paper real`.\n\n'
    table = []
    for r in rows:
        if not r['available']:
            table.append(['`%s`' % r['design'], 'not available', '', '', '', '', ''])
            continue
        table.append(['`%s`' % r['design'], fmt(r['pages'] / add_seconds(r)), fmt(r['get_cold']),
                      fmt(r['get_reads_cold'], 2), fmt(r['stream_cold']), fmt(r.get('update_s')),
                      fmt(r['bytes_stored'] / r['pages'] / 1024)])
    pages = next((r['pages'] for r in rows if r['available']), None)
    text += '''One node; in batch designs one update node and one read node. %s pages; gets and streams with a cold cache.
Additions to incremental designs replace every page of a full repository; those to batch designs go to empty update nodes.

''' % fmt(pages)
    text += markdown(['', 'addition, pages/s', 'random access, pages/s', 'reads per get', 'streaming, pages/s',
                      'batch update (ratio 0.25), s', 'KB on disk per page'], table)
    return text + refusals(rows)


# ---- choice ------------------------------------------------------------------------------------------------------

def section_program(data):
    """How the organisations compare in the program itself, and what follows from that."""
    found = designs(data)
    rows = {o: found.get('Incr[hash,%s]' % o) for o in ('log', 'hashed-log', 'hash')}
    if not all(rows.values()):
        return ''
    kinds = {'adding': lambda r: r['pages'] / add_seconds(r), 'gets': lambda r: r['get_cold'],
             'streams': lambda r: r['stream_cold'], 'space': lambda r: r['pages'] / r['bytes_stored']}
    text, good = 'With the program itself on this machine, one node, compared with the best organisation:\n\n', set(rows)
    table = []
    for kind, of in kinds.items():
        best = max(map(of, rows.values()))
        table.append([kind] + ['%.0f %%' % (100 * of(r) / best) for r in rows.values()])
        good &= {o for o, r in rows.items() if of(r) > 0.9 * best}
    text += markdown([''] + list(rows), table)
    if good:
        name = next(o for o in rows if o in good)
        text += 'Here `%s` is the best or within 10 %% of it in each row, so `Incr[hash,%s]` is the choice without a reason ' \
                'for another.' % (name, name)
    else:
        text += 'None is the best in all rows, so the load decides: ask `webbase advise`.'
    return text + ''' Reasons for another design:

- *Pages in the order of their ids*, for merging with other sorted data: `hashed-log`, or `hash` if few pages change.
- *Readers must see a collection that does not change between two transfers*: a batch design, with logs on both sides,
  because blocks are then copied as they are.
- *Several disks that are not equally fast, or not always there*: `uniform` distribution. New pages go where there is
  room.
- *An access to the disk takes milliseconds and the catalog does not fit into memory*: `hash`, if gets are all that
  counts.

'''


def section_choice(data, advise):
    rows = []
    for name, (add, get, stream, ratio, nodes) in LOADS:
        found = advise('--add', add, '--get', get, '--stream', stream, '--update-ratio', ratio, '--nodes', nodes)
        best = found[0]
        batch = next(r for r in found if r['design'].startswith('Batch'))
        rows.append([name, '%d / %d / %d' % (add, get, stream), ratio, nodes, '`%s`' % best['design'], fmt(best['score']),
                     '`%s`' % batch['design'], fmt(batch['score'])])
    c = costs(data)
    how = ('The costs are older than the figures below: other programs were busy when those were measured.'
           if disturbance(data) else 'The costs were measured with the designs themselves.' if c and c['real'] else
           'The costs are those of the simulator on this disk, and the work of the log, because not all organisations '
           'were measured\nwith the real program.')
    text = '''## What to choose today, and why

`webbase advise` judges all 42 designs for a load ([design/0037-advice.md](design/0037-advice.md)). %s

''' % how
    text += markdown(['load', 'add / get / stream, per s', 'update ratio', 'nodes', 'best', 'score', 'best batch design',
                      'score'], rows)
    ms = lambda d, n: median_ms(data['sim'], d, n)
    return text + section_program(data) + '''What the simulator says about the reasons for each:

- **Buckets for gets.** A get from buckets needs one random access instead of two. On the model that makes it %s times as
  fast as a get from a log, on this disk %s times: the less an access costs, the more the size of the bucket counts.
- **No buckets for additions.** A page costs a read and a write of its whole bucket. Appending to a log is %s times as
  fast on the model, and %s times on this disk.
- **hashed-log for sorted pages.** Its additions are %s times as fast as those to buckets on the model, %s times on this
  disk, and it delivers pages in the order of ids.
- **Batch updates against the arm.** A stream and additions in turn take %s times as long as one after the other on the
  model, and %s times on this disk. Where this is near 1, what is left of the reason for batch designs is isolation:
  readers see a collection that does not change between two transfers.

''' % (fmt(ms('model', 2) / ms('model', 1)), fmt(ms('files', 2) / ms('files', 1)),
       fmt(ms('model', 6) / ms('model', 9)), fmt(ms('files', 6) / ms('files', 9)),
       fmt(SHARE_PAGES * ms('model', 6) / ms('model', 8)), fmt(SHARE_PAGES * ms('files', 6) / ms('files', 8)),
       fmt(in_turn(data['sim'], 'model'), 2), fmt(in_turn(data['sim'], 'files'), 2))


def report(data, advise):
    files = next(r for r in data['sim'] if r['bench'] == 'files')
    about = next(r for r in data['sim'] if r['bench'] == 'about')
    found = designs(data)
    count = len([r for r in data['real'] or [] if r['bench'] == 'design'])
    real = '%d of %d designs could be measured' % (len(found), count) if count else 'not measured'
    direct = '' if files['direct'] else (' The file system refuses O_DIRECT, so a part of these times is that of the page '
                                         'cache.')
    text = INTRO % {'where': where(about, data['sim']), 'direct': direct, 'real': real} + disturbance(data)
    for section in (section_choice(data, advise), section_s4(data['sim']), section_table3(data), section_table4(data),
                    section_buckets(data['buckets']), section_table5(data), section_figure6(data), section_table6(data),
                    section_designs(data)):
        text += section
    return wrapped(text).rstrip('\n') + '\n'


def disturbance(data):
    """A warning if the machine was not quiet when a part began."""
    found = ['%s (%.1f)' % (part, row['load']) for part in ('sim', 'real') for row in data[part] or []
             if row['bench'] == 'about' and busy(row)]
    if not found:
        return ''
    return '''**Other programs were busy during these measurements.** The load average on %d processors before each part: %s. The
figures of *this disk* and *real* are therefore worse than they should be, by changing factors; do not compare designs by
them. Those of the model are exact.

''' % (data['sim'][0]['processors'], ', '.join(found))


def wrapped(text, width=120):
    """Paragraphs and items of lists in lines of that width; tables, examples and headings stay as they are."""
    blocks = []
    for block in text.split('\n\n'):
        if not re.match(r'[|#!`$]', block) or block.startswith('`Batch') or block.startswith('`Incr') or \
                block.startswith('`webbase'):
            items = re.split(r'\n(?=- )', block)
            block = '\n'.join(textwrap.fill(' '.join(i.split()), width, subsequent_indent='  ' if i.startswith('- ') else '',
                                            break_long_words=False, break_on_hyphens=False) for i in items)
        blocks.append(block)
    return '\n\n'.join(blocks)
