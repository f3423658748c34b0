#!/usr/bin/env python3
"""Power loss in every storage design: import, compact, expunge, transfer, nodes add, nodes remove and convert.

As in power.py, the real program runs with tests/power/recorder.c, and the recording is cut (powercut.py). The disk
includes the nodes' directories, which are outside of the repository. States are made in the place of the recorded
disk, because a repository knows those directories by their absolute names. In each state
  - every page has the bytes of before or after the command that was cut, and exactly those of before it if the command
    was no more than begun, in the newest state, in all captures and in a snapshot,
  - verify finds the repository sound,
  - the command can be repeated, also if the power fails again meanwhile, and the result is as if it had not been cut,
  - what was taken down is gone, and does not come back with a later import, transfer or conversion.
WEBBASE_POWER_ROUNDS=10 looks at ten times as many states as `make soak` does.
"""
import collections, copy, os, shutil

from e2e import *
from crawlserver import run_together
from powercut import Disk, RECORDER, ROUNDS, Recording, exported, naming_the_state

ALPHA, BETA, GAMMA = 'www.alpha.example', 'beta.example', 'www.gamma.example'


# Nobody cuts the power while a state is examined, so nothing is really synced then: it would take most of the time.
os.environ.update(LD_PRELOAD=str(RECORDER), WEBBASE_POWER=os.devnull)


class Model:
    """What a repository must contain. Lists of captures (date, body) by URL."""

    def __init__(self, batch, everything):
        self.batch, self.everything = batch, everything
        self.read, self.waiting, self.snapshot, self.barred = {}, {}, None, set()

    def copy(self):
        other = Model(self.batch, self.everything)
        other.read, other.waiting, other.barred = dict(self.read), dict(self.waiting), set(self.barred)
        other.snapshot = None if self.snapshot is None else dict(self.snapshot)
        return other

    def put(self, page):
        if page.url in self.barred:
            return
        where = self.waiting if self.batch else self.read
        where[page.url] = self.kept(where.get(page.url, ()) + ((page.date[:-1] + '.000Z', page.body),))

    def kept(self, captures):
        captures = sorted(set(captures))
        return tuple(captures if self.everything else captures[-1:])

    def transfer(self):
        for url, captures in self.waiting.items():
            self.read[url] = self.kept(self.read.get(url, ()) + captures)
        self.waiting = {}

    def seal(self):
        self.snapshot = {url: captures[-1:] for url, captures in self.read.items()}

    def bar(self, urls):
        self.barred.update(urls)
        for where in (self.read, self.waiting, self.snapshot or {}):
            for url in urls:
                where.pop(url, None)


class Step:
    """A command, and what it does to the model."""

    def __init__(self, args, change=None, pages=(), folder=None, number=None):
        self.args, self.change, self.pages, self.folder, self.number = args, change, list(pages), folder, number
        self.process = self.begin = self.end = self.after = None

    def name(self):
        return ' '.join(self.args[:2]) if self.args[0] == 'nodes' else self.args[0]

    def apply(self, model):
        if self.change:
            self.change(model)
        for p in self.pages:
            model.put(p)

    def repeat(self, repo):
        """Runs it again. Refused if it was complete but for telling so: a node or a target that is there already, or
        is gone already."""
        if self.name() == 'init' and call(repo, 'stat', status=None).returncode == 0:
            return
        if self.name() == 'nodes remove':
            if all(n['node'] != self.number for n in ask(repo, 'nodes')):
                return
        elif self.name() == 'nodes add':
            said = call(repo, *self.args, status=None)
            if said.returncode:
                assert b'already' in said.stderr, said.stderr
            return
        elif self.name() == 'snapshot' and any(s['name'] == 'first' for s in ask(repo, 'snapshot', 'list')):
            return
        elif self.name() == 'convert' and call(self.folder, 'stat', status=None).returncode == 0:
            refused(repo, self.folder.name, *self.args)
            return
        call(repo, *self.args)


def noise(random_, url, date, size):
    """A page that cannot be compressed, so that buckets of the organisation hash overflow."""
    return Page(url, random_.randbytes(size), date, 'application/octet-stream')


def newer(random_, pages, date):
    return [Page(p.url, random_.randbytes(8).hex().encode() + b' ' + p.body, date) for p in pages]


class Design:
    """A recording of all commands in a design, and the cuts of it."""

    def __init__(self, folder, design, history, target):
        self.folder, self.design, self.batch, self.target = folder, design, design.startswith('Batch'), target
        self.random_ = rng(design)
        self.home = folder / 'disk'
        self.repo, self.model = self.home / 'r', Model(self.batch, history == 'all')
        self.counts = collections.Counter()
        self.steps, self.archives = [], 0
        more = ['--update-nodes', self.home / 'u1'] if self.batch else []
        self.add(['init', '--design', design, '--history', history, '--nodes', self.nodes('n1', 'n2'), *more])
        self.make()

    def nodes(self, *names):
        return ','.join(str(self.home / n) for n in names)

    def add(self, args, *rest, **more):
        self.steps.append(Step([*args, '--json'], *rest, **more))

    def imports(self, pages):
        self.archives += 1
        self.add(['import', archive(self.folder / ('%d.warc' % self.archives), pages)], None, pages)

    def transfer(self):
        if self.batch:
            self.add(['transfer'], Model.transfer)

    def node(self, name, *more):
        self.add(['nodes', 'add', self.home / name, *more], folder=self.home / name)

    def remove(self, number, folder):
        self.add(['nodes', 'remove', number], number=number, folder=self.home / folder)

    def expunge(self, what, urls):
        self.add(['expunge', what], lambda model: model.bar(urls))

    def make(self):
        """The commands. All pages of an archive have different URLs, so a page is old or new."""
        r = self.random_
        first = some_pages(r, 40, ALPHA) + [noise(r, 'http://%s/large%d' % (BETA, i), '2026-01-05T00:00:00Z', 50000)
                                           for i in range(4)]
        second = newer(r, first[:15] + first[40:42], '2026-02-02T00:00:00Z') + some_pages(r, 15, BETA)
        third = newer(r, second[:10], '2026-03-03T00:00:00Z') + some_pages(r, 12, GAMMA)
        fourth = newer(r, first[5:20] + third[-12:] + second[-3:], '2026-04-04T00:00:00Z')
        one, many = second[3].url, [p.url for p in third if GAMMA in p.url]
        self.imports(first)
        self.transfer()
        self.add(['snapshot', '--name', 'first'], Model.seal)
        self.imports(second)
        if self.batch:
            self.expunge(one, [one])
            self.transfer()
        self.add(['compact'])
        self.node('n3')
        if self.batch:
            self.node('u2', '--update')
        self.imports(third)
        if self.batch:
            self.remove(101, 'u1')
        self.remove(2, 'n2')
        if not self.batch:
            self.expunge(one, [one])
        self.expunge(GAMMA, many)
        self.transfer()
        self.add(['compact'])
        self.imports(fourth)
        target = self.home / 't'
        self.add(['convert', target, '--design', self.target, '--nodes', self.nodes('t1', 't2')], folder=target)
        self.transfer()

    def record(self):
        recording = Recording(self.home, self.folder / 'log')
        model, at = self.model.copy(), 0
        for step in self.steps:
            step.process = recording.run(command(self.repo, *step.args)).pid
            step.begin, at = at, len(recording.records())
            step.end = at
            step.before = model
            model = model.copy()
            step.apply(model)
            step.after = model
        shutil.rmtree(self.home)
        return Disk(recording)

    # ---- what a state must contain ---------------------------------------------------------------------------

    def look(self, repo, before, after):
        """Checks that every page is as it was before or after a command."""
        models = (before, after)
        newest = {url: body for url, _, body in exported(repo)}
        self.old_or_new('newest', newest, [{u: c[-1][1] for u, c in m.read.items()} for m in models])
        if before.everything:
            captures = collections.defaultdict(set)
            for url, date, body in exported(repo, '--versions'):
                captures[url].add((date, body))
            for url in set(captures).union(*(m.read for m in models)):
                a, b, c = *(set(m.read.get(url, ())) for m in models), captures.get(url, set())
                assert a & b <= c <= a | b, '%s: captures %s, not %s or %s' % (url, *map(dates, (c, a, b)))
        if before.snapshot is not None:
            found = {url: body for url, _, body in exported(repo, '--snapshot', 'first')}
            self.old_or_new('snapshot', found, [{u: c[-1][1] for u, c in m.snapshot.items()} for m in models])

    def old_or_new(self, what, found, models):
        for url in set(found).union(*models):
            ways = [m.get(url) for m in models]
            assert found.get(url) in ways, '%s: %s: %s' % (
                what, url, 'bytes of neither before nor after' if url in found else 'missing')

    def waiting(self, repo, before, after):
        if self.batch:
            count = ask(repo, 'stat')[0]['pages_waiting']
            a, b = set(before.waiting), set(after.waiting)
            assert len(a & b) <= count <= len(a | b), '%d pages wait, not %d or %d' % (count, len(a), len(b))

    def check(self, disk, step, process):
        """Checks the state of the disk in which step was cut, when it ran as that process."""
        said = any(e.get('event') == 'done' for e in lines(disk.output(process)))
        before, after = step.after if said else step.before, step.after
        if call(self.repo, 'stat', status=None).returncode:
            assert step is self.steps[0] and not said, 'there is no repository'
            return
        verified(self.repo)
        self.look(self.repo, before, after)
        self.waiting(self.repo, before, after)
        if step.name() == 'convert':
            if call(step.folder, 'stat', status=None).returncode == 0:
                self.look(step.folder, *[merged(after)] * 2)
                verified(step.folder)
            else:
                assert not said, 'convert has said that it is done'

    def cut_again(self, step, killed, choose=None):
        """The power fails while the command is repeated. killed: the disk, if the first time it was not the power that
        failed. Then what the killed process had not synced can still be lost."""
        log = self.folder / 'log again'
        log.unlink(missing_ok=True)
        recording = Recording(self.home, log)
        process = recording.run(command(self.repo, *step.args), status=None).pid
        disk = copy.deepcopy(killed) if killed else Disk(recording)
        if killed:
            disk.go_on(recording)
        moment = self.random_.choice((choose or self.moments)(disk, 0, len(disk.records), 3) or [-1])
        while disk.at <= moment:
            disk.step()
        shutil.rmtree(self.home)
        disk.cut(self.random_, self.home)
        with naming_the_state('repeated', disk, moment, 'any', SEED):
            self.check(disk, step, process)

    def go_on(self, steps):
        for step in steps:
            step.repeat(self.repo)
            if step.name() == 'nodes remove' and len(steps) == 1 and self.random_.random() < 0.5:
                # An ordinary directory again. Nothing of it is needed, and it can become a node.
                call(self.repo, 'nodes', 'add', step.folder, *['--update'] * (step.number > 100))
            elif step.name() == 'nodes remove':
                shutil.rmtree(step.folder, ignore_errors=True)
            if step.name() == 'convert':
                self.look(step.folder, *[merged(step.after)] * 2)
                verified(step.folder)
        verified(self.repo)
        self.look(self.repo, step.after, step.after)
        self.waiting(self.repo, step.after, step.after)
        if self.batch and step.after.waiting:
            call(self.repo, 'transfer')
            self.look(self.repo, *[merged(step.after)] * 2)
            verified(self.repo)

    def moments(self, disk, begin, end, count):
        """Chooses `count` records: syncs, any, and just before syncs, when most is pending: of all files, and of those
        that hold pages."""
        opened = {r.file for r in disk.records[:end] if r.kind == 'O' and b'/pages/' in r.payload}
        syncs = [i for i in range(begin + 1, end) if disk.records[i].kind in 'SD']
        before = [i - 1 for i in syncs if disk.records[i].file in opened]
        kinds = [kind for kind in (syncs, range(begin, end), [i - 1 for i in syncs], before) if kind]
        start = self.random_.randrange(4)
        return [self.random_.choice(kinds[(start + n) % len(kinds)]) for n in range(count) if kinds]

    def run_killed(self):
        """A writer is killed when it has written buckets in place, but not synced them. The power fails when the next
        one has overwritten the double-write file, but not synced that."""
        disk, count = self.record(), 0
        for step in [s for s in self.steps if s.name() in ('import', 'expunge')]:
            for moment in before_syncs(disk, step.begin, step.end, b'.bkt', lambda r: r.kind == 'W' and r.a >= 4096):
                while disk.at <= moment:
                    disk.step()
                for _ in range(max(1, round(ROUNDS))):
                    with naming_the_state('killed', disk, moment, 'kept', SEED):
                        disk.cut(self.random_, self.home, 'kept')
                        self.cut_again(step, disk, lambda again, begin, end, _: before_syncs(
                            again, begin, end, b'.dw', lambda r: r.kind == 'T' and r.a > 4096)[:2])
                    shutil.rmtree(self.home)
                    count += 1
        assert count, 'no bucket was written in place'
        print('# %d writers killed' % count)

    def run(self):
        """Cuts the recording in each command, once or twice."""
        disk, moments = self.record(), []
        for step in self.steps:
            share = max(1, round(ROUNDS * (1 if step.name() in ('init', 'import', 'snapshot') else 2)))
            moments += [(m, step) for m in self.moments(disk, step.begin, step.end, share)]
        for moment, step in sorted(moments, key=lambda m: m[0]):
            while disk.at <= moment:
                disk.step()
            how = self.random_.choice(('lost', 'any', 'any', 'any', 'kept', 'kept'))
            with naming_the_state('%s, %s' % (self.design, step.name()), disk, moment, how, SEED):
                disk.cut(self.random_, self.home, how)
                self.check(disk, step, step.process)
                if self.random_.random() < 0.25:
                    self.cut_again(step, disk if how == 'kept' else None)
                    self.counts[step.name() + ' again'] += 1
                rest = self.steps[self.steps.index(step):]
                self.go_on(rest if self.random_.random() < 0.15 else rest[:1])
            shutil.rmtree(self.home)
            self.counts[step.name()] += 1
        print('# %s: %d records, %d syncs; cuts: %s' % (
            self.design, len(disk.records), disk.syncs(), ', '.join('%s %d' % c for c in self.counts.items())))


def before_syncs(disk, begin, end, name, wanted):
    """The records just before syncs of files whose names have that ending, as far as they are wanted."""
    opened = {r.file: r.payload for r in disk.records[:end] if r.kind == 'O'}
    return [i - 1 for i in range(begin + 1, end) if disk.records[i].kind == 'S' and wanted(disk.records[i - 1])
            and opened.get(disk.records[i].file, b'').endswith(name)]


def merged(model):
    model = model.copy()
    model.transfer()
    return model


def dates(captures):
    return sorted(d for d, _ in captures)


@test
def buckets(folder):
    Design(folder, 'Incr[hash,hash]', 'all', 'Incr[hash,hashed-log]').run()


@test
def buckets_of_a_killed_writer(folder):
    Design(folder, 'Incr[hash,hash]', 'newest', 'Incr[hash,log]').run_killed()


@test
def logs_by_range(folder):
    Design(folder, 'Incr[hash,hashed-log]', 'newest', 'Incr[hash,hash]').run()


@test
def logs_on_any_node(folder):
    Design(folder, 'Incr[uniform,log]', 'all', 'Batch[U(hash,hash),R(hash,log)]').run()


@test
def a_batch_of_logs(folder):
    Design(folder, 'Batch[U(hash,log),R(hash,log)]', 'all', 'Incr[uniform,hash]').run()


@test
def a_batch_into_buckets(folder):
    Design(folder, 'Batch[U(hash,hashed-log),R(hash,hash)]', 'newest', 'Incr[hash,log]').run()


@test
def a_directory_that_is_no_longer_a_node(folder):
    """As long as it has files of a node, webbase.node says whose they are. Without that nobody knows that they can be
    deleted, and the directory is refused as a node for ever, because it is not empty."""
    random_, home, counts = rng('no longer'), folder / 'disk', collections.Counter()
    repo, node = home / 'r', home / 'n2'
    recording = Recording(home, folder / 'log')
    recording.run(command(repo, 'init', '--design', 'Incr[hash,log]', '--nodes', '%s,%s' % (home / 'n1', node)))
    recording.run(command(repo, 'import', archive(folder / '1.warc', some_pages(random_, 40, ALPHA))))
    assert list((node / 'pages').iterdir())
    begin = len(recording.records())
    recording.run(command(repo, 'nodes', 'remove', 2))
    disk = Disk(recording)
    while kind := disk.step():
        if disk.at <= begin or kind not in 'UXD':
            continue
        assert len(disk.namings) < 9, 'too many states'
        for state in range(1 << len(disk.namings)):
            shutil.rmtree(home)
            with naming_the_state('no longer a node', disk, disk.at - 1, state, SEED):
                disk.cut(random_, home, 'kept', lambda i: state >> i & 1)
                named, files = (node / 'webbase.node').exists(), list(node.glob('pages/*'))
                assert named or not files, 'nobody knows whose these are: %s' % files
                if not named and counts['without'] < 3:
                    call(repo, 'nodes', 'add', node)
                    verified(repo)
            counts['with' if named else 'without'] += 1
            counts['with files'] += bool(files)
    assert min(counts[k] for k in ('with', 'without', 'with files')) > 0, counts
    print('# no longer a node: %s' % dict(counts))


run_together()
