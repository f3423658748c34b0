"""Builds what a disk could hold after a power cut, from a recording made by tests/power/recorder.c.

The model (docs/design/0016-power-loss.md says what it assumes about a disk): an operation is durable once a sync of its
file or directory that began after it has ended. Any of the other operations may have reached the disk, in any order:
each sector of a file holds any of its versions since the last sync, the size is any of those the file had, and each
new, renamed or removed name is there or not. A sector is written as a whole, and a rename is atomic.

  Recording(folder)   starts programs and records their changes below the folder
  Disk(recording)     goes through the recording step() by step(); then cut() makes a state of the disk

Scripts that use this look at a number of states that is thorough, or at WEBBASE_POWER_ROUNDS times as many; in
`make check`, at a fifth of them.
"""
import contextlib, os, pathlib, struct, subprocess

import e2e

HEAD = struct.Struct('<IB3xIIQQQ')
MAGIC = 0x52574f50
SECTOR = 512
ROUNDS = float(os.environ.get('WEBBASE_POWER_ROUNDS', e2e.rounds(20, 100) / 100))
O_CREAT, O_TRUNC = os.O_CREAT, os.O_TRUNC
RECORDER = pathlib.Path(e2e.WEBBASE).resolve().parent / 'tests' / 'libpower.so'


class Record:
    def __init__(self, at, kind, process, payload, file, a, b):
        self.at, self.kind, self.process, self.payload = at, chr(kind), process, payload
        self.file, self.a, self.b = file, a, b

    def path(self):
        return os.path.normpath(self.payload.decode())


class Recording:
    """A recording of all changes below a folder. What is there at first is on the disk."""

    def __init__(self, folder, log):
        assert RECORDER.exists(), '%s is not built' % RECORDER
        self.root, self.log = os.path.realpath(folder), log
        os.makedirs(self.root, exist_ok=True)
        self.start = Folder.read(self.root)

    def env(self):
        return dict(os.environ, LD_PRELOAD=str(RECORDER), WEBBASE_POWER=str(self.log))

    def run(self, command, status=0):
        """Runs a program to its end. Its process id is p.pid. status: the expected exit status; None: any."""
        p = subprocess.Popen([str(c) for c in command], env=self.env(), stdout=subprocess.DEVNULL,
                             stderr=subprocess.PIPE)
        error = p.communicate(timeout=e2e.PATIENCE)[1]
        assert status is None or p.returncode == status, \
            'exit %d, not %s: %s: %s' % (p.returncode, status, command, error[-500:])
        return p

    def records(self):
        data, at, found = self.log.read_bytes() if self.log.exists() else b'', 0, []
        while at < len(data):
            magic, kind, process, length, file, a, b = HEAD.unpack_from(data, at)
            assert magic == MAGIC, 'no record at %d of %s' % (at, self.log)
            payload = data[at + HEAD.size:at + HEAD.size + length]
            found.append(Record(at, kind, process, payload, file, a, b))
            at += HEAD.size + length
        return found


class File:
    """A file. durable: its bytes as of the last sync; pending: the changes since then, oldest first."""

    def __init__(self):
        self.durable, self.pending = bytearray(), []

    def sync(self, begin):
        while self.pending and self.pending[0].at < begin:
            change(self.durable, self.pending.pop(0))

    def versions_touched(self):
        """The sectors that unsynced changes touch, and the sizes of the file, both by the number of changes made."""
        sectors, size, sizes = set(), len(self.durable), [len(self.durable)]
        for r in self.pending:
            begin, end = r.a, r.a
            if r.kind == 'W':
                begin, end = min(size, r.a), r.a + len(r.payload)
                size = max(size, end)
            elif r.kind == 'Z':
                end = min(size, r.a + r.b)
            else:
                begin, end = sorted((size, r.a))
                size = r.a
            sectors.update(range(begin // SECTOR, (end + SECTOR - 1) // SECTOR))
            sizes.append(size)
        return sectors, sizes

    def content(self, random_, how):
        n = len(self.pending)
        if how == 'lost' or not n:
            return bytes(self.durable)
        if how == 'any':
            how = random_.choice(['lost', 'kept', 'prefix', 'sectors', 'sectors', 'blocks', 'writes', 'writes'])
        if how == 'lost':
            return bytes(self.durable)
        if how in ('kept', 'prefix'):
            data = bytearray(self.durable)
            for r in self.pending[:n if how == 'kept' else random_.randrange(n + 1)]:
                change(data, r)
            return bytes(data)
        return self.mixed(random_, how)

    def mixed(self, random_, how):
        """Each sector as it was after some number of changes, and the size after some other number."""
        sectors, sizes = self.versions_touched()
        chance = random_.choice([0.05, 0.3, 0.5, 0.7, 0.95])
        chosen = {}
        if how == 'writes':
            # Each change is there as a whole or not at all. A later change to a sector includes the earlier ones.
            kept = [i for i in range(1, len(sizes)) if random_.random() < chance]
            for i in kept:
                r = self.pending[i - 1]
                if r.kind == 'W':
                    chosen.update((s, i) for s in range(r.a // SECTOR, (r.a + len(r.payload) + SECTOR - 1) // SECTOR))
            size = sizes[max(kept, default=0)]
        else:
            unit = 1 if how == 'sectors' else 8
            version = {}
            for s in sorted(sectors):
                if s // unit not in version:
                    if random_.random() < 0.3:
                        version[s // unit] = random_.randrange(len(sizes))
                    else:
                        version[s // unit] = len(sizes) - 1 if random_.random() < chance else 0
                chosen[s] = version[s // unit]
            size = random_.choice(sizes)
        result = bytearray(self.durable)
        result.extend(bytes(max(sizes) - len(result)))
        data, by_version = bytearray(self.durable), {}
        for s, version in chosen.items():
            by_version.setdefault(version, []).append(s)
        for i, r in enumerate(self.pending, 1):
            change(data, r)
            for s in by_version.get(i, ()):
                part = data[s * SECTOR:(s + 1) * SECTOR]
                part.extend(bytes(SECTOR - len(part)))
                result[s * SECTOR:(s + 1) * SECTOR] = part
        del result[size:]
        result.extend(bytes(size - len(result)))
        return bytes(result)


def change(data, r):
    """Applies a record to the bytes of a file."""
    if r.kind == 'W':
        data.extend(bytes(max(0, r.a - len(data))))
        data[r.a:r.a + len(r.payload)] = r.payload
    elif r.kind == 'T':
        del data[r.a:]
        data.extend(bytes(r.a - len(data)))
    elif r.kind == 'Z':
        end = min(len(data), r.a + r.b)
        data[r.a:end] = bytes(max(0, end - r.a))
    else:
        assert False, r.kind


class Folder:
    """A folder. names: as the running program sees them; durable: as of the last sync."""

    def __init__(self):
        self.names, self.durable = {}, {}

    @staticmethod
    def read(path):
        """A folder that is on the disk with all that is in it."""
        folder = Folder()
        for entry in os.scandir(path):
            if entry.is_dir():
                node = Folder.read(entry.path)
            else:
                node = File()
                node.durable.extend(pathlib.Path(entry.path).read_bytes())
            folder.names[entry.name] = folder.durable[entry.name] = node
        return folder

    def below(self):
        """It and all folders in it."""
        return [self] + [f for node in self.names.values() if isinstance(node, Folder) for f in node.below()]


class Naming:
    """A change of a name: it now refers to a file or folder (None: removed). For a rename, also the previous name."""

    def __init__(self, at, where, name, node, source=None):
        self.at, self.where, self.name, self.node, self.source = at, where, name, node, source

    def apply(self, entries):
        """entries: {Folder: {name: node}}"""
        if self.source:
            folder, name = self.source
            if entries[folder].get(name) is self.node:
                del entries[folder][name]
            elif any(self.node is n for names in entries.values() for n in names.values()):
                return      # an earlier rename of the same file is missing, and this one cannot be there without it
        if self.node is None:
            entries[self.where].pop(self.name, None)
        else:
            entries[self.where][self.name] = self.node


class Disk:
    def __init__(self, recording):
        self.root_path, self.records = recording.root, recording.records()
        self.root, self.files, self.namings = recording.start, {}, []
        self.folders = self.root.below()
        self.said, self.at = {}, 0

    # ---- going through the recording -----------------------------------------------------------------------

    def step(self):
        """Applies the next record. Returns its kind, or None at the end."""
        if self.at == len(self.records):
            return None
        r = self.records[self.at]
        self.at += 1
        getattr(self, 'take_' + r.kind)(r)
        return r.kind

    def go_on(self, recording):
        """Takes the records of another recording, which began where this one is now with nothing lost: as if the
        program had been killed, and others had been started."""
        end = self.records[-1].at + len(self.records[-1].payload) + HEAD.size
        self.records, self.at, self.said = recording.records(), 0, {}
        for r in self.records:
            r.at += end
            if r.kind in 'SD':
                r.a += end

    def syncs(self):
        return sum(r.kind in 'SD' for r in self.records)

    def output(self, process=None):
        """What all processes, or one of them, have printed so far."""
        return b''.join(text for p, text in self.said.items() if process in (None, p))

    def place(self, path):
        """(folder, name) of a path below the root, or None if there is no such folder."""
        if not path.startswith(self.root_path + '/'):
            return None
        parts, folder = path[len(self.root_path) + 1:].split('/'), self.root
        for part in parts[:-1]:
            folder = folder.names.get(part)
            if not isinstance(folder, Folder):
                return None
        return folder, parts[-1]

    def name(self, r, where, node, source=None):
        folder, name = where
        if source:
            del source[0].names[source[1]]
        if node is None:
            del folder.names[name]
        else:
            folder.names[name] = node
        self.namings.append(Naming(r.at, folder, name, node, source))

    def take_O(self, r):
        where = self.place(r.path())
        self.files.pop(r.file, None)
        if not where:
            return
        node = where[0].names.get(where[1])
        if not node:
            node = File()
            self.name(r, where, node)
        elif r.a & O_TRUNC:
            node.pending.append(Record(r.at, ord('T'), r.process, b'', r.file, 0, 0))
        self.files[r.file] = node

    def take_N(self, r):
        self.files.pop(r.file, None)

    def take_W(self, r):
        if r.file in self.files:
            self.files[r.file].pending.append(r)

    take_T = take_Z = take_W

    def take_S(self, r):
        if r.file in self.files:
            self.files[r.file].sync(r.a)

    def take_D(self, r):
        path = r.path()
        folder = self.root
        if path != self.root_path:
            where = self.place(path)
            folder = where and where[0].names.get(where[1])
        if not isinstance(folder, Folder):
            return
        done = [n for n in self.namings if n.where is folder and n.at < r.a]
        self.namings = [n for n in self.namings if n not in done]
        entries = self.entries()
        for n in done:
            n.apply(entries)
        for f, names in entries.items():
            f.durable = names

    def take_R(self, r):
        a, b = (os.path.normpath(p.decode()) for p in r.payload.split(b'\0'))
        source, where = self.place(a), self.place(b)
        if source and where and source[1] in source[0].names:
            self.name(r, where, source[0].names[source[1]], source)

    def take_U(self, r):
        where = self.place(r.path())
        if where and isinstance(where[0].names.get(where[1]), File):
            self.name(r, where, None)

    def take_X(self, r):
        where = self.place(r.path())
        node = where and where[0].names.get(where[1])
        if isinstance(node, Folder) and not node.names:
            self.name(r, where, None)

    def take_M(self, r):
        where = self.place(r.path())
        if where and where[1] not in where[0].names:
            node = Folder()
            self.folders.append(node)
            self.name(r, where, node)

    def take_A(self, r):
        self.said[r.process] = self.said.get(r.process, b'') + r.payload

    # ---- the power fails -------------------------------------------------------------------------------------

    def entries(self):
        return {f: dict(f.durable) for f in self.folders}

    def cut(self, random_, to, how='any', kept=None):
        """Makes a state of the disk in a new folder. how: 'kept' (everything, as after kill -9), 'lost' (only what was
        synced), 'any'. kept: which changes of names are there, as a function of their place in self.namings."""
        names, count = how, len(self.namings)
        if how == 'any':
            names = random_.choice(['kept', 'lost', 'prefix', 'each', 'each'])
        chance = random_.choice([0.1, 0.5, 0.9])
        kept = kept or {'kept': lambda i: True, 'lost': lambda i: False,
                        'each': lambda i: random_.random() < chance}.get(names)
        if not kept:
            end = random_.randrange(count + 1)
            kept = lambda i: i < end
        entries = self.entries()
        for i, naming in enumerate(self.namings):
            if kept(i):
                naming.apply(entries)
        os.makedirs(to)
        self.write(self.root, entries, random_, how, str(to))
        return to

    def write(self, folder, entries, random_, how, to):
        for name, node in entries[folder].items():
            path = os.path.join(to, name)
            if isinstance(node, Folder):
                os.mkdir(path)
                self.write(node, entries, random_, how, path)
            else:
                with open(path, 'wb') as f:
                    f.write(node.content(random_, how))


# ---- what the scripts share ------------------------------------------------------------------------------------------

def cuts(disk, random_, count, begin=0):
    """Goes through the recording and stops at some of its sync points and between them, `count` times in total."""
    count, records = int(count * ROUNDS), disk.records
    syncs = [i for i, r in enumerate(records) if r.kind in 'SD' and i >= begin]
    others = [i for i, r in enumerate(records) if r.kind not in 'SDA' and i >= begin]
    assert syncs and others
    moments = random_.sample(syncs, min(len(syncs), count * 2 // 3))
    moments += random_.sample(others, min(len(others), count - len(moments)))
    for moment in sorted(moments):
        while disk.at <= moment:
            disk.step()
        yield moment


def state_kinds(random_, n):
    """Mostly random states, sometimes one of the two extremes."""
    return ('lost', 'any', 'any', 'kept', 'any', 'any', 'any', 'any')[n % 8]


@contextlib.contextmanager
def naming_the_state(what, disk, moment, how, seed):
    """If a check fails, prints which state of the disk it was."""
    try:
        yield
    except BaseException:
        r = disk.records[moment]
        print('# %s: power cut after record %d of %d (%s %s), %s, SEED=%d' %
              (what, moment, len(disk.records), r.kind, r.payload[:80] if r.kind not in 'WA' else '', how, seed),
              flush=True)
        raise


def exported(repo, *options):
    """[(url, date, body)] of the pages that export writes."""
    data, at, found = e2e.call(repo, 'export', '--warc', '-', *options).stdout, 0, []
    while at < len(data):
        head_end = data.index(b'\r\n\r\n', at)
        head = dict(line.split(b': ', 1) for line in data[at:head_end].split(b'\r\n')[1:])
        length = int(head[b'Content-Length'])
        if head[b'WARC-Type'] == b'response':
            body = data[head_end + 4:head_end + 4 + length].partition(b'\r\n\r\n')[2]
            found.append((head[b'WARC-Target-URI'].decode(), head[b'WARC-Date'].decode(), body))
        at = head_end + 4 + length + 4
    return found
