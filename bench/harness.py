"""What the benchmark scripts share: running a program and keeping its figures, tables, goals, and a quiet machine.

bench/run, bench/crawl, bench/freshness and bench/compare are programs and import this; it measures nothing itself.
"""
import importlib.machinery, importlib.util, json, os, pathlib, resource, shutil, statistics, subprocess, sys, time

ROOT = pathlib.Path(__file__).resolve().parent.parent
HERE = ROOT / 'bench'
BUILD = ROOT / 'build-bench'
OUT = HERE / 'out'
DATA = HERE / 'corpus-data'
WORK = pathlib.Path(os.environ.get('BENCH_DIR') or OUT / 'work')
RUNS = int(os.environ.get('BENCH_RUNS') or 3)
BATCH = os.environ.get('BENCH_BATCH') or '1000'
WEBDB_PAGES = int(os.environ.get('BENCH_WEBDB_PAGES') or 200000)
OTHERS_MAX = 0.1   # share of the processors: if other programs use more, the measurement is repeated
RETRIES = int(os.environ.get('BENCH_RETRIES') or 3)
QUIET_SECONDS = float(os.environ.get('BENCH_QUIET') or 20)


def say(text=''):
    print(text, flush=True)


def load(name):
    """Imports another script of this folder, which has no .py in its name."""
    loader = importlib.machinery.SourceFileLoader('bench_' + name, str(HERE / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


def build():
    """Configures (once) and compiles build-bench/. What fails is shown, and ends the program."""
    steps = [['ninja', '-C', str(BUILD)]]
    if not (BUILD / 'build.ninja').exists():
        steps.insert(0, ['meson', 'setup', str(BUILD), str(ROOT), '-Dbench=true', '-Dtests=false'])
    for step in steps:
        done = subprocess.run(step, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors='replace')
        if done.returncode != 0:
            sys.exit('%s\nbench: %s failed, see above; scripts/deps bench installs what it needs' %
                     (done.stdout.rstrip(), ' '.join(step[:2])))


def choose(words, known, what, default=None):
    """The names that were given on the command line, or the default (all). Ends the program if one is unknown."""
    for word in words:
        if word not in known:
            sys.exit('bench: there is no %s %s; choose from: %s' % (what, word, ' '.join(known)))
    return words or default or list(known)


# ---- running ------------------------------------------------------------------------

class Lines:
    """The JSON lines of a topic: collects them, writes them to a file, and gives medians."""

    def __init__(self, topic):
        self.topic, self.rows = topic, []
        self.load_before = os.getloadavg()[0]

    def run(self, *command, before=None, again=True, **extra):
        """Runs a program and keeps its lines. Repeats it, a few times, if other programs used too much of the
        processors; the quietest run counts. With again=False it is run once: it changes what it measures."""
        best = None
        for _ in range(1 + RETRIES if again else 1):
            if before:
                before()
            wait_for_quiet()
            print('  ' + ' '.join(pathlib.Path(c).name if '/' in c else c for c in command), file=sys.stderr,
                  flush=True)
            busy, own, start = busy_seconds(), child_seconds(), time.monotonic()
            done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
            wall = time.monotonic() - start
            others = max(0.0, busy_seconds() - busy - (child_seconds() - own)) / wall / os.cpu_count()
            if best is None or others < best[0]:
                best = others, done.stdout.decode()
            if others <= OTHERS_MAX:
                break
            print('    disturbed: other programs used %.0f %% of the processors' % (others * 100), file=sys.stderr,
                  flush=True)
        for line in best[1].splitlines():
            if line.startswith('{'):
                self.rows.append(dict(json.loads(line), others=round(best[0], 3), **extra))

    def store(self, command, peer, folder, *options, **extra):
        self.run(str(BUILD / 'bench/bench_store'), command, '--peer', peer, '--dir', str(folder), '--corpus', str(DATA),
                 '--batch', BATCH, *options, **extra)

    def median(self, field, **where):
        values = [r[field] for r in self.rows if all(r.get(k) == v for k, v in where.items())]
        return statistics.median(values) if values else None

    def write(self, runs=RUNS):
        OUT.mkdir(exist_ok=True)
        with open(OUT / (self.topic + '.json'), 'w') as out:
            for row in self.rows:
                out.write(json.dumps(row) + '\n')
        repeated = 'medians of %d' % runs if runs > 1 else 'one run'
        others = [r['others'] for r in self.rows if 'others' in r]
        watched = 'used at most %.0f %% of the processors' % (max(others) * 100) if others else 'were not watched'
        say('  (%s; other programs %s; load before %.2f; lines in bench/out/%s.json)' %
            (repeated, watched, self.load_before, self.topic))


def busy_seconds():
    """Processor time that all programs together have used since the machine started."""
    fields = [int(f) for f in open('/proc/stat').readline().split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) / os.sysconf('SC_CLK_TCK')


def child_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def wait_for_quiet():
    """Waits until the processors are nearly idle, for QUIET_SECONDS at most."""
    end = time.monotonic() + QUIET_SECONDS
    while time.monotonic() < end:
        busy = busy_seconds()
        time.sleep(0.3)
        if busy_seconds() - busy < 0.06 * os.cpu_count():
            return


def fresh(name, work=None):
    """The path of a folder that does not exist; its parent does. What was there is removed."""
    folder = (work or WORK) / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    return folder


# ---- tables -------------------------------------------------------------------------

def table(title, head, rows):
    cells = [[str(c) for c in row] for row in [head] + rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    say()
    say(title)
    for number, row in enumerate(cells):
        say('  ' + '  '.join(c.ljust(w) if i == 0 else c.rjust(w)
                             for i, (c, w) in enumerate(zip(row, widths))).rstrip())
        if number == 0:
            say('  ' + '  '.join('-' * w for w in widths))


def ratio(ours, theirs):
    return ours / theirs if ours is not None and theirs else None


def show(value, form='%.2f'):
    return '-' if value is None else form % value


def goal(value, bound, least=True):
    """The goal, and whether it is met, as text for a table."""
    sign = '>=' if least else '<='
    met = value is not None and (value >= bound if least else value <= bound)
    return '%s %g %s' % (sign, bound,
                         'met' if met else 'MISSED (%.3g)' % value if value is not None else 'not measured')
