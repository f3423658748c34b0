"""The paper's experiments with the real program: each design is made, filled, read and updated by its commands.

Used by bench/paper. Everything goes through the command line (init --design, import, transfer, stream, emulate, serve),
except random access, which bench_design measures through the door of the store, because starting a program for each
page would hide it. A design that `init` refuses has a row that says so, and the others are measured.
"""
import itertools, json, os, pathlib, shutil, statistics, subprocess, sys, time

sys.dont_write_bytecode = True
from harness import BUILD, DATA, WORK, fresh, load, say, wait_for_quiet
from paper_figures import BASELINE, PROTOTYPE
from serving import drop_cache, webbase_server

PROGRAM = str(BUILD / 'webbase')
DOOR = str(BUILD / 'bench/bench_design')
PARTS = ['%s,%s' % p for p in itertools.product(('hash', 'uniform'), ('log', 'hash', 'hashed-log'))]
INCR = ['Incr[%s]' % p for p in PARTS]
BATCH = ['Batch[U(%s),R(%s)]' % (u, r) for u in PARTS for r in PARTS]
PAIRS = [d for d in BATCH if 'uniform' not in d]    # with one node, the distribution makes no difference
RATIO = 0.25
RATIOS = [n / 10 for n in range(1, 11)]
GETS = 2000
DAY_MS = 86400000


class Refused(Exception):
    """The program does not have this design, or this command, or it failed."""


def is_batch(design):
    return design.startswith('Batch')


def call(repo, *words):
    """(seconds, standard output) of a command; Refused with its first line of complaint if it fails."""
    wait_for_quiet()
    start = time.monotonic()
    done = subprocess.run([PROGRAM, '-r', str(repo), *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    seconds = time.monotonic() - start
    if done.returncode != 0:
        said = (done.stderr.decode('utf-8', 'replace').strip() or 'exit status %d' % done.returncode).splitlines()[0]
        raise Refused(said.replace(str(WORK), '').replace('webbase: ', ''))
    return seconds, done.stdout.decode('utf-8', 'replace')


def objects(text):
    return [json.loads(line) for line in text.splitlines() if line.startswith('{')]


# ---- pages ---------------------------------------------------------------------------------------------------

def corpus_rows(count):
    """(URL, offset, length of the head, length of the body, time) of so many pages, spread over the corpus."""
    rows = [line.rstrip('\n').split('\t') for line in open(DATA / 'pages.tsv')]
    step = max(1, len(rows) // count)
    return [(r[0], int(r[1]), int(r[2]), int(r[3]), int(r[4])) for r in rows[::step]][:count]


def stamp(ms):
    return time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(ms / 1000))


def write_archive(path, rows, version=0):
    """A WARC of these pages. A version other than 0 changes each body, keeps its length, and is so many days later."""
    mark = (b'<!-- version %d -->' % version) if version else b''
    with open(DATA / 'pages.warc', 'rb') as source, open(path, 'wb') as out:
        for number, (url, offset, head_len, body_len, ms) in enumerate(rows):
            source.seek(offset)
            head, body = source.read(head_len), source.read(body_len)
            if len(body) > len(mark):
                middle = (len(body) - len(mark)) // 2
                body = body[:middle] + mark + body[middle + len(mark):]
            text = ('WARC/1.1\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-%012x>\r\n'
                    'WARC-Date: %s\r\nWARC-Target-URI: %s\r\nContent-Type: application/http;msgtype=response\r\n'
                    'Content-Length: %d\r\n\r\n' % (number + (version << 32), stamp(ms + version * DAY_MS), url,
                                                    len(head) + len(body)))
            out.write(text.encode() + head + body + b'\r\n\r\n')
    return path


class Archives:
    """The pages of the experiments as archives: all of them, and changed versions of a share of them."""

    def __init__(self, count):
        self.rows, self.folder = corpus_rows(count), fresh('paper-archives')
        self.folder.mkdir(parents=True)
        self.base, self.changed = write_archive(self.folder / 'base.warc', self.rows), {}

    def ratio(self, ratio):
        """Every page with a chance of `ratio`: those whose number falls into the share."""
        if ratio not in self.changed:
            rows = [r for i, r in enumerate(self.rows) if int((i + 1) * ratio + 1e-9) > int(i * ratio + 1e-9)]
            self.changed[ratio] = (write_archive(self.folder / ('changed-%g.warc' % ratio), rows, 1), len(rows))
        return self.changed[ratio]


# ---- one design -------------------------------------------------------------------------------------------------

def make(name, design):
    repo = fresh(name)
    more = ['--update-nodes', 1] if is_batch(design) else []
    try:
        call(repo, 'init', '--design', design, '--nodes', 1, *more)
    except Refused:
        if design != BASELINE:
            raise
        shutil.rmtree(repo, ignore_errors=True)     # a program from before designs has this one only
        call(repo, 'init')
    return repo


def add(repo, archive):
    seconds, _ = call(repo, 'import', '--no-journal', archive)
    return seconds


def transfer(repo):
    """(seconds, [(stage, ms, pages)], the done event)"""
    seconds, text = call(repo, '--json', 'transfer')
    events = objects(text)
    done = [e for e in events if e.get('event') == 'done']
    if len(done) != 1:
        raise Refused('transfer printed %d done events' % len(done))
    return seconds, [(e['stage'], e['ms'], e['pages']) for e in events if e.get('event') == 'stage'], done[0]


def forget(repo):
    drop_cache(str(p) for p in pathlib.Path(repo).rglob('*') if p.is_file() and p.stat().st_size)


def door(*words):
    done = subprocess.run([DOOR, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode != 0:
        raise Refused(done.stderr.decode('utf-8', 'replace').strip())
    return done.stdout.decode()


def read_rates(repo):
    """Random access and streaming, from the disk (cold) and from memory (warm)."""
    found, ids = {}, WORK / 'paper-ids'
    ids.write_text(door('ids', repo))
    for name, cold in (('cold', True), ('warm', False)):
        for kind, words in (('get', ['get', repo, ids, GETS, 1]), ('stream', ['stream', repo])):
            if cold:
                forget(repo)
            wait_for_quiet()
            row = json.loads(door(*words))
            found['%s_%s' % (kind, name)] = row['pages'] / row['seconds']
            found['%s_reads_%s' % (kind, name)] = row['reads'] / max(1, row['pages'])
            found['%s_disk_%s' % (kind, name)] = row['disk'] / max(1, row['pages'])
    forget(repo)
    seconds, _ = call(repo, 'stream', '--latest', '--format', 'urls')
    found['urls_s'] = seconds
    return found


def measure(design, archives, name='paper-design'):
    """All figures of a design, as a row; {'available': False, 'message': ...} if it is not there."""
    row = {'bench': 'design', 'design': design, 'available': True, 'pages': len(archives.rows)}
    try:
        repo = make(name, design)
        row['add_s'] = add(repo, archives.base)
        if is_batch(design):
            row['fill_s'], row['fill_stages'], _ = transfer(repo)
        row.update(read_rates(repo))
        facts = objects(call(repo, '--json', 'stat')[1])[0]
        row.update(bytes_pages=facts['bytes_pages'], bytes_stored=facts['bytes_stored'])
        if is_batch(design):
            archive, count = archives.ratio(RATIO)
            row['change_s'], row['changed'] = add(repo, archive), count
            row['update_s'], row['update_stages'], done = transfer(repo)
            row['replaced'] = done['replaced']
        else:
            row['again_s'] = add(repo, archives.ratio(1.0)[0])      # into a full repository, every page changed
    except Refused as refused:
        row = {'bench': 'design', 'design': design, 'available': False, 'message': str(refused)}
    shutil.rmtree(WORK / name, ignore_errors=True)
    return row


def all_designs(designs, archives, runs=1):
    rows = []
    for design in designs:
        found = [measure(design, archives)]
        while found[0]['available'] and len(found) < runs:
            found.append(measure(design, archives))
        found = [r for r in found if r['available']] or found
        row = dict(found[0])
        for field, value in row.items():
            if isinstance(value, float):
                row[field] = statistics.median(r[field] for r in found)
        rows.append(row)
        say('  %-44s %s' % (design, 'add %.0f/s, get %.0f/s, stream %.0f/s' % (
            row['pages'] / row['add_s'], row['get_cold'], row['stream_cold']) if row['available']
            else 'is not available: ' + row['message']))
    return rows


# ---- Figure 6 and Table 5 -------------------------------------------------------------------------------------------

def figure6(design, archives, ratios=RATIOS):
    """Batch update time by stage against the update ratio."""
    rows = []
    try:
        base = make('paper-base', design)
        add(base, archives.base)
        transfer(base)
        for ratio in ratios:
            repo = fresh('paper-copy')
            shutil.copytree(base, repo, symlinks=True)
            archive, count = archives.ratio(ratio)
            add(repo, archive)
            forget(repo)
            seconds, stages, done = transfer(repo)
            rows.append({'bench': 'figure6', 'design': design, 'ratio': ratio, 'changed': count, 'seconds': seconds,
                         'stages': stages, 'replaced': done['replaced']})
    except Refused as refused:
        rows.append({'bench': 'figure6', 'available': False, 'design': design, 'message': str(refused)})
    for name in ('paper-base', 'paper-copy'):
        shutil.rmtree(WORK / name, ignore_errors=True)
    return rows


def served(repo, seconds, urls):
    """What a client of a server sees: a stream as fast as it comes, then pages by URL as fast as they are answered."""
    client = load('client')
    with webbase_server(repo=repo) as (_, url):
        stream, = client.run(url, stream_rate=0, seconds=seconds)
        random_row, = client.run(url, random_rate=100000, seconds=seconds, urls=urls)
        both = client.run(url, random_rate=100, stream_rate=1000, seconds=seconds, urls=urls)
    return stream, random_row, both


def table5(archives, designs, seconds=3):
    """The prototype as its users saw it: pages from an emulated crawler, and a client over HTTP."""
    rows = []
    for design in designs:
        row = {'bench': 'table5', 'design': design, 'available': True}
        try:
            source = make('paper-source', BASELINE)
            add(source, archives.base)
            repo = make('paper-served', design)
            try:
                emulated, _ = call(repo, 'emulate', source, '--rate', 1000000)
                row['how'] = 'emulate'
            except Refused:
                emulated, row['how'] = add(repo, archives.base), 'import'
            row['add'] = len(archives.rows) / emulated
            if is_batch(design):
                transfer(repo)
                archive, _ = archives.ratio(RATIO)
                add(repo, archive)
                row['update_s'] = transfer(repo)[0]
            stream, random_row, both = served(repo, seconds, [r[0] for r in archives.rows])
            row.update(stream=stream['rate'], get=random_row['rate'],
                       failed=stream['failed'] + random_row['failed'],
                       both={r['kind']: {k: r[k] for k in ('asked', 'rate', 'p50_ms', 'p99_ms')} for r in both})
        except Refused as refused:
            row = {'bench': 'table5', 'design': design, 'available': False, 'message': str(refused)}
        for name in ('paper-source', 'paper-served'):
            shutil.rmtree(WORK / name, ignore_errors=True)
        rows.append(row)
    return rows
