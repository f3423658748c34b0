#!/usr/bin/env python3
"""The tools of the paper's experiments: the client module, and the report with its plots and costs."""
import subprocess, sys
import xml.etree.ElementTree

from e2e import *
from serving import *

sys.path.append(str(ROOT / 'bench'))
import harness, needs, paper_costs, paper_plot, paper_report
from paper_figures import S4, TABLE6

ORGANISATIONS = ('log', 'hash', 'hashed-log')


@test
def the_client_sends_what_was_asked_for(folder):
    repo = folder / 'r'
    pages = [Page('http://s%d.example/word/number%d' % (n % 3, n), b'<p>word number%d' % n) for n in range(40)]
    done(ask(repo, 'import', archive(folder / 'a.warc', pages)))
    call(repo, 'index')
    with Server(repo) as server:
        out = subprocess.run([str(ROOT / 'bench/client'), server.url, '--random', '20', '--query', '10', '--stream', '40',
                              '--seconds', '2', '--json'], stdout=subprocess.PIPE, check=True, timeout=PATIENCE).stdout
        rows = {r['kind']: r for r in map(json.loads, out.decode().splitlines())}
        assert set(rows) == {'random', 'query', 'stream'}, rows
        assert all(r['failed'] == 0 and r['bytes'] > 0 and r['rate'] > 0 for r in rows.values()), rows
        assert rows['random']['rate'] <= 21 and rows['query']['rate'] <= 11, rows
        (folder / 'urls').write_text('http://s0.example/nothing\n')
        out = subprocess.run([str(ROOT / 'bench/client'), server.url, '--random', '10', '--seconds', '1', '--json',
                              '--urls', str(folder / 'urls')], stdout=subprocess.PIPE, timeout=PATIENCE)
        assert out.returncode == 1 and json.loads(out.stdout)['failed'] > 0, out
    assert subprocess.run([str(ROOT / 'bench/client'), server.url], stderr=subprocess.DEVNULL).returncode == 2


def simulated():
    """Rows as bench_disk prints them: the paper's times, and a disk a hundred times as fast."""
    rows = [{'bench': 'about', 'date': '2026-01-02', 'processors': 2, 'memory': 2 ** 34, 'load': 0.1},
            {'bench': 'files', 'bytes': 2 ** 31, 'direct': True}]
    for disk, factor in (('model', 1), ('files', 0.01)):
        for number, ms in enumerate(S4 + [20, 1000, 40], 1):
            rows.append({'bench': 'row', 'disk': disk, 'row': number, 'operation': 'o', 'organisation': 'log',
                         'unit': 'page', 'ms': ms * factor})
        for n, o in enumerate(ORGANISATIONS, 1):
            rows.append({'bench': 'table3', 'disk': disk, 'organisation': o, 'stream': 100 * n, 'get': 10 * n, 'add': n,
                         'add_buffered': 2 * n, 'add_sorted': 3 * n, 'space': 0.5})
            rows.append({'bench': 'table4', 'disk': disk, 'update': o, 'add': n, 'update_s': 1000 * n})
    return rows


def studied():
    rows = [{'bench': 'own', 'given': True, 'first_ms': 0.1, 'ms_per_kb': 0.001}]
    for study, _ in paper_report.STUDIES:
        rows.append({'bench': 'pages', 'study': study, 'mean': 2591})
        rows += [{'bench': 'figure4', 'study': study, 'kb': kb, 'a': 20 + abs(kb - 60), 'b': 15, 'c': 1.1, 'd': 0.01}
                 for kb in (20, 40, 60, 80)]
        rows += [{'bench': 'figure5', 'study': study, 'per_bucket': n, 'kb': 4 * n, 'rate': 50, 'use': 0.6, 'ms': 20}
                 for n in (4, 8, 16, 32)]
    return rows


def measured(designs):
    rows = [{'bench': 'about', 'date': '2026-01-03', 'processors': 2, 'memory': 2 ** 34, 'load': 0.1}]
    stages = [['transfer', 30, 25], ['index', 5, 25], ['compact', 20, 0]]
    for n, design in enumerate(designs, 1):
        row = {'bench': 'design', 'design': design, 'available': True, 'pages': 100, 'add_s': 0.01 * n, 'get_cold': 1000,
               'get_warm': 9000, 'get_reads_cold': 1, 'stream_cold': 5000, 'stream_warm': 9000, 'bytes_stored': 1000}
        if design == 'Incr[hash,hash]':
            row['again_s'] = 5.0
        if design.startswith('Batch'):
            row.update(fill_s=0.2, fill_stages=stages, update_s=0.3, update_stages=stages, changed=25)
        rows.append(row)
    rows.append({'bench': 'design', 'design': 'Incr[uniform,hash]', 'available': False, 'message': 'no such thing'})
    for ratio in (0.25, 0.5, 1.0):
        rows.append({'bench': 'figure6', 'design': 'Batch[U(hash,log),R(hash,log)]', 'ratio': ratio,
                     'changed': 25, 'seconds': 0.05, 'stages': stages})
    rows.append({'bench': 'table5', 'design': 'Incr[hash,log]', 'available': False, 'message': 'no such thing'})
    return rows


def advise(*words):
    return ask(None, 'advise', *words)


@test
def the_report_has_every_table_and_every_plot_is_well_formed(folder):
    paper_report.PLOTS = folder / 'paper'
    batch = ['Batch[U(hash,hashed-log),R(hash,%s)]' % o for o in ORGANISATIONS]
    data = {'sim': simulated(), 'buckets': studied(), 'real': measured([d for d, _ in TABLE6] + batch)}
    text = paper_report.report(data, advise)
    for name in ('S-4', '3:', '4:', '5:', '6:'):
        assert '\n## Table %s' % name in text, name
    assert '\n## Figures 4 and 5' in text and '\n## Figure 6' in text and '\n## What to choose today' in text
    assert 'Incr[uniform,hash]` | not available' in text and '`no such thing`' in text
    shown = {m for m in re.findall(r'\(paper/(\w[\w-]*\.svg)\)', text)}
    assert shown == {p.name for p in (folder / 'paper').iterdir()} and len(shown) == 6, shown
    for path in (folder / 'paper').iterdir():
        root = xml.etree.ElementTree.parse(path).getroot()
        assert len(list(root)) > 20, path
        for element in root.iter():
            for name in ('x', 'y', 'x1', 'x2', 'y1', 'y2'):
                assert -1 <= float(element.get(name, 0)) <= 1200, (path, element.attrib)


@test
def every_layer_of_a_plot_has_its_own_colour_and_fits(folder):
    names = ['isolate', 'id lists', 'intersection', 'transfer', 'index', 'empty', 'compact', 'restart']     # of a transfer
    paper_plot.areas(folder / 'a.svg', 'title', ['x', 'y'], [0.1, 0.5, 1.0], [(n, [1, 2, 3]) for n in names])
    root = xml.etree.ElementTree.parse(folder / 'a.svg').getroot()
    colours = [e.get('class') for e in root if e.tag.endswith('polygon')]
    assert len(set(colours)) == len(names), colours
    shown = {e.text: float(e.get('x')) + 6.8 * len(e.text) for e in root if e.tag.endswith('text') and e.text in names}
    assert set(shown) == set(names) and max(shown.values()) <= paper_plot.WIDTH, shown
    heights = [float(e.get('y')) for e in root if e.tag.endswith('text')]
    assert max(heights) < paper_plot.HEIGHT, heights


@test
def the_report_says_what_is_missing(folder):
    paper_report.PLOTS = folder / 'paper'
    text = paper_report.report({'sim': simulated(), 'buckets': None, 'real': None}, advise)
    assert text.count('Not measured') == 4, text.count('Not measured')
    assert paper_costs.costs({'sim': simulated(), 'real': None}) is None
    assert 'Other programs' not in text
    noisy = simulated()
    noisy[0]['load'] = 7.25
    assert 'sim (7.2)' in paper_report.report({'sim': noisy, 'buckets': None, 'real': None}, advise)


@test
def costs_are_those_of_the_designs_once_all_were_measured(folder):
    data = {'sim': simulated(), 'real': measured(['Incr[hash,log]'])}
    costs = paper_costs.costs(data)
    assert not costs['real'] and costs['organisations']['hash']['add'] > costs['organisations']['log']['add']
    # 100 pages in 0.01 s are 100 us of work; row 9 adds 0.00164 ms.
    assert abs(costs['organisations']['log']['add'] - 101.64) < 1e-6, costs
    assert 'not measured yet' in paper_costs.header(costs, data['sim'])
    designs = ['Incr[hash,%s]' % o for o in ORGANISATIONS] + ['Batch[U(hash,%s),R(hash,%s)]' % (u, r)
                                                              for u in ORGANISATIONS for r in ORGANISATIONS]
    data['real'] = measured(designs)
    costs = paper_costs.costs(data)
    text = paper_costs.header(costs, data['sim'])
    assert costs['real'] and costs['organisations']['log']['get'] == 1000 and 'themselves were measured' in text
    assert costs['organisations']['hash']['add'] == 50000, costs      # into a full repository
    assert abs(costs['lookup'] - 141) < 1e-6, costs     # that of the simulator: half of row 2
    data['real'] = measured(designs + ['Incr[uniform,log]'])
    next(r for r in data['real'] if r.get('design') == 'Incr[uniform,log]')['get_cold'] = 800
    assert abs(paper_costs.costs(data)['lookup'] - 250) < 1e-6
    assert abs(costs['organisations']['log']['compact'] - 1000 * 20 / 75) < 1e-6 and costs['merge'] == 3000
    assert costs['organisations']['log']['bring'] == 2000 and costs['index'] == 50, costs
    # Measurements cannot tell 5 % from noise, but they can tell 20 %.
    for factor, same in ((1.05, True), (1.2, False)):
        next(r for r in data['real'] if r.get('design') == 'Incr[hash,hashed-log]')['get_cold'] = 1000 * factor
        per = paper_costs.costs(data)['organisations']
        assert (per['log']['get'] == per['hashed-log']['get']) == same, (factor, per)
    (folder / 'costs.c').write_text('#include "advice/advice.h"\n' + text + 'extern const struct wb_advice_costs c;\n'
                                    'const struct wb_advice_costs c = WB_ADVICE_MEASURED;\n'
                                    'const char *where = WB_ADVICE_MEASURED_WHERE;\n')
    subprocess.run(['cc', '-Wall', '-Werror', '-fsyntax-only', '-I', str(ROOT / 'src'), str(folder / 'costs.c')], check=True)
    assert max(map(len, text.splitlines())) <= 120


@test
def scales_have_round_numbers(folder):
    assert paper_plot.nice_steps(97) == [0, 20, 40, 60, 80, 100]
    assert paper_plot.nice_steps(0)[-1] >= 1 and paper_plot.nice_steps(1e-4)[-1] >= 1e-4
    assert paper_plot.number(1234567) == '1,234,567' and paper_plot.number(0.00123) == '0.00123'


@test
def a_topic_names_what_it_lacks(folder):
    """And only that: programs whose libraries are missing do not keep others from being measured."""
    needs.INCLUDE, programs = (str(folder),), folder / 'bench'
    programs.mkdir()
    assert set(needs.TOPICS) <= set(harness.load('run').TOPICS)
    assert needs.missing('paper', programs) == needs.missing('url', programs) == []
    assert needs.missing('store', programs) == needs.missing('webdb', programs) == ['librocksdb-dev', 'libsqlite3-dev']
    (folder / 'sqlite3.h').touch()
    assert needs.missing('store', programs) == ['librocksdb-dev']
    (programs / 'bench_store').touch()
    assert needs.missing('store', programs) == []
    needs.COMMANDS['no-such-command'], needs.TOPICS['own'] = 'some-package', ('no-such-command', 'bench_store')
    assert needs.missing('own', programs) == ['some-package']
    build = (ROOT / 'bench/meson.build').read_text()
    assert all("'%s'" % name in build for name in needs.PROGRAMS)


run()
