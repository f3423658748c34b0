"""What the operations of each organisation cost, for `webbase advise`: from the figures of bench/paper to a C header.

A cost is the work of the log without waiting for the disk, measured, plus the time of the simulator on files; or, if
the designs with all three organisations were measured, what they took. docs/design/0037-advice.md explains it.
"""
import statistics

from paper_figures import BUCKET_PAGES, log_pages, PROTOTYPE, SHARE_PAGES, median_ms

ORGANISATIONS = ('log', 'hashed-log', 'hash')
COPY_US = 2.7       # a page that compaction copies: `bench/run compact`, docs/performance.md
INDEX_US = 3.0      # a row of the catalog in a large commit: `bench/run grow`
ERROR = 0.1         # costs that differ by less than this are not known to differ


def designs(data):
    return {r['design']: r for r in data['real'] or [] if r['bench'] == 'design' and r['available']}


def add_seconds(row):
    """The time of adding all pages to a full repository. Buckets that are empty need not be read first."""
    return row.get('again_s', row['add_s'])


def simulated(data, log):
    """Work of the log plus time of the simulator, in microseconds."""
    r = [0.0] + [1000 * median_ms(data['sim'], 'files', n) for n in range(1, 13)]
    add, get, stream = (1e6 * add_seconds(log) / log['pages'], 1e6 / log['get_warm'], 1e6 / log['stream_warm'])
    copy = COPY_US + r[3] + r[9]
    return {
        'log': {'add': add + r[9], 'add_sorted': add + r[9], 'bring': COPY_US + r[9], 'get': get + r[2],
                'stream': stream + r[3], 'compact': copy},
        'hashed-log': {'add': add + r[8] / SHARE_PAGES, 'add_sorted': add + r[11] / log_pages(data['sim']),
                       'bring': COPY_US + r[11] / log_pages(data['sim']), 'get': get + r[2], 'stream': stream + r[3],
                       'compact': copy},
        'hash': {'add': add + r[6], 'add_sorted': add + r[7] / BUCKET_PAGES, 'bring': 0, 'get': get + r[1],
                 'stream': stream + r[4] / BUCKET_PAGES, 'compact': 0},
    }


def stage_us(stages, name, pages):
    """Microseconds per page of a stage."""
    return sum(1000 * ms / pages for stage, ms, _ in stages if stage == name)


def compaction(data):
    """Microseconds for each page that stays, when pages all over the logs were replaced; None if not measured."""
    pages = next(r['pages'] for r in designs(data).values())
    found = [stage_us(r['stages'], 'compact', pages - r['changed']) for r in data['real']
             if r['bench'] == 'figure6' and r['design'] == PROTOTYPE and 0.1 < r.get('ratio', 0) < 0.6]
    return statistics.median(found) if found else None


def align(costs):
    """Costs of log and hashed-log become the same where the measurement does not tell them apart."""
    for kind, value in costs['log'].items():
        other = costs['hashed-log'][kind]
        if abs(value - other) < ERROR * max(value, other):
            costs['log'][kind] = costs['hashed-log'][kind] = (value + other) / 2
    return costs


def measured(found, copied):
    """The same from the designs themselves."""
    costs = {}
    for o in ORGANISATIONS:
        row, sent = found['Incr[hash,%s]' % o], found['Batch[U(hash,hashed-log),R(hash,%s)]' % o]
        same = found['Batch[U(hash,%s),R(hash,%s)]' % (o, o)]
        costs[o] = {'add': 1e6 * add_seconds(row) / row['pages'], 'add_sorted': 1e6 * sent['fill_s'] / sent['pages'],
                    'bring': 1e6 * same['fill_s'] / same['pages'], 'get': 1e6 / row['get_cold'],
                    'stream': 1e6 / row['stream_cold'], 'compact': 0 if o == 'hash' else copied}
    return align(costs)


def busy(about):
    """Whether other programs used so much of the machine that the figures are of no use as costs."""
    return about['load'] > 0.5 * about['processors']


def costs(data):
    """Everything that advice_costs.h has; None if the log was not measured."""
    found = designs(data)
    if 'Incr[hash,log]' not in found:
        return None
    sim = data['sim']
    per = simulated(data, found['Incr[hash,log]'])
    needed = ['Incr[hash,%s]' % o for o in ORGANISATIONS] + ['Batch[U(hash,hashed-log),R(hash,%s)]' % o
                                                             for o in ORGANISATIONS]
    needed += ['Batch[U(hash,%s),R(hash,%s)]' % (o, o) for o in ORGANISATIONS]
    real = all(d in found for d in needed)
    index = INDEX_US
    merge, lookup = COPY_US + 1000 * median_ms(sim, 'files', 7) / BUCKET_PAGES, 500 * median_ms(sim, 'files', 2)
    if real:
        per = measured(found, compaction(data) or per['log']['compact'])
        index = stage_us(found['Batch[U(hash,log),R(hash,log)]']['fill_stages'], 'index', found['Incr[hash,log]']['pages'])
        merged = found['Batch[U(hash,hashed-log),R(hash,hash)]']
        merge = 1e6 * merged['update_s'] / merged['pages']
        if 'Incr[uniform,log]' in found:
            lookup = 1e6 / found['Incr[uniform,log]']['get_cold'] - per['log']['get']
            lookup = lookup if lookup > ERROR * per['log']['get'] else 0.0
    r3, r9, r12 = (median_ms(sim, 'files', n) for n in (3, 9, 12))
    buffer_pages = 65536 / 2591
    about = next(r for r in data['real'] if r['bench'] == 'about')
    return {'organisations': per, 'merge': merge, 'index': index, 'lookup': lookup,
            'conflict': max(0.0, r12 / ((r3 + r9) * buffer_pages) - 1), 'real': real, 'about': about}


def where(about, sim):
    return '%s, %d processors, %d GB of memory, a disk that reads 64 KB at random in %.2g ms' % (
        about['date'], about['processors'], round(about['memory'] / 2 ** 30), median_ms(sim, 'files', 1))


def header(c, sim):
    how = ('The designs themselves were measured, with pages of the benchmark corpus.' if c['real'] else
           'The designs themselves are not measured yet: a cost is the\n * work that the log does without waiting for '
           'the disk, measured, and the time of the paper\'s simulator on files.')
    lines = ['/*', ' * advice_costs.h - what the operations of each organisation cost. Written by bench/run paper; do not '
             'edit.', ' *', ' * Microseconds of a node for one page. ' + how, ' */', '/* clang-format off */',
             '#define WB_ADVICE_MEASURED_WHERE                                                                         '
             '              \\', '    "%s"' % where(c['about'], sim), '']
    body = ['{', '    .organisation =', '        {']
    for o in ORGANISATIONS:
        c_of = c['organisations'][o]
        body += ['            [WB_ORGANISATION_%s] =' % o.upper().replace('-', '_')]
        for first, kinds, last in (('{', ('add', 'add_sorted', 'bring'), ','), (' ', ('get', 'stream', 'compact'), '},')):
            body += ['                ' + first + ', '.join('.%s = %.4g' % (k, c_of[k]) for k in kinds) + last]
    body += ['        },', '    .merge = %.4g, .index = %.4g, .lookup = %.4g, .conflict = %.4g,' % (
        c['merge'], c['index'], c['lookup'], c['conflict'])]
    lines.append('#define WB_ADVICE_MEASURED'.ljust(119) + '\\')
    lines += [('    ' + line).ljust(119) + '\\' for line in body] + ['    }']
    return '\n'.join(lines) + '\n'
