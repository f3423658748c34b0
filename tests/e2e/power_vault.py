#!/usr/bin/env python3
"""Power loss while a repository is backed up: what was reported safe can be restored, and the next backup works.

As in power.py, the real program runs with tests/power/recorder.c, and the recording is cut (powercut.py). The vault is a
directory beside the repository. In one half of the states the power fails there too. In the other half the vault is on
another machine: it has everything that was written to it, and may be ahead of what is left here. States are made in the
place of the recorded disk, because DIR/vault knows the vault by its URL, and this copy by the inode of its owner file.
WEBBASE_POWER_ROUNDS=10 looks at ten times as many states as `make soak` does.
"""
import os, shutil, signal

from e2e import *
from crawlserver import run_together
from powercut import Disk, RECORDER, Recording, cuts, exported, naming_the_state, state_kinds

# Nobody cuts the power while a state is examined, so nothing is really synced then: it would take most of the time.
os.environ.update(LD_PRELOAD=str(RECORDER), WEBBASE_POWER=os.devnull)


class Step:
    def __init__(self, args, content=None):
        self.args, self.content, self.process = args, content, None      # content: of the repository after it
        self.is_backup = args[0] == 'backup'


class Place:
    """The recorded disk: the repository r and the vault v."""

    def __init__(self, folder):
        self.folder, self.disk = folder, folder / 'disk'
        self.repo, self.vault = self.disk / 'r', self.disk / 'v'
        self.url = 'file://%s' % self.vault
        self.recording = Recording(self.disk, folder / 'log')

    def keep_owner(self):
        """The owner file, which is to have the same inode in all states."""
        self.owner = self.folder / 'owner'
        os.link(self.repo / 'vault' / 'owner', self.owner)
        self.owner_text = self.owner.read_bytes()

    def make(self, disk, random_, how, far):
        """Makes a state of the disk in its place. far: the vault is on another machine."""
        shutil.rmtree(self.disk)
        disk.cut(random_, self.disk, how)
        if far:
            shutil.rmtree(self.vault, ignore_errors=True)
            disk.cut(random_, self.folder / 'kept', 'kept')
            if (self.folder / 'kept' / 'v').exists():
                shutil.move(self.folder / 'kept' / 'v', self.vault)
            shutil.rmtree(self.folder / 'kept')
        owner = self.repo / 'vault' / 'owner'
        if owner.exists() and owner.read_bytes() == self.owner_text:
            owner.unlink()
            os.link(self.owner, owner)

    def restored(self):
        """The pages that a restore gives, or None if there is no vault."""
        copy = self.folder / 'copy'
        shutil.rmtree(copy, ignore_errors=True)
        p = call(None, 'restore', self.url, copy, status=None)
        if p.returncode:
            assert p.returncode == 1 and not (copy.exists() and list(copy.iterdir())), p.stderr
            return None
        verified(copy)
        found = sorted(exported(copy))
        shutil.rmtree(copy)
        return found

    def back_up(self):
        """What every state must be able to do, if there is a repository in it."""
        call(self.repo, 'backup', self.url)
        verified(self.repo)
        assert self.restored() == sorted(exported(self.repo)), 'the next backup is not what is in the repository'
        call(self.repo, 'backup', self.url, '--verify')


def story(folder, random_):
    first, second = some_pages(random_, 40), some_pages(random_, 15, 'www.beta.example')
    newer = [Page(p.url, b'new ' + p.body, '2026-02-02T00:00:00Z') for p in first[:20]] + second
    third = some_pages(random_, 25, 'www.gamma.example')
    archives = [archive(folder / ('%d.warc' % n), pages) for n, pages in enumerate((first, newer, third))]
    return [['import', archives[0]], ['backup'], ['import', archives[1]], ['update'], ['backup'], ['backup'], ['index'], ['compact'],
            ['backup'], ['import', archives[2]], ['backup'], ['expunge', 'www.beta.example'], ['compact'], ['backup', '--keep', '0']]


def record(place, random_):
    steps = []
    for args in story(place.folder, random_):
        args = ['backup', place.url, *args[1:]] if args[0] == 'backup' else args
        step = Step(args)
        step.process = place.recording.run(command(place.repo, *args, '--json')).pid
        step.content = sorted(exported(place.repo))
        steps.append(step)
    place.keep_owner()
    return steps


def allowed(disk, steps):
    """(contents that a restore may give, whether there must be one), from what the program has said so far."""
    safe = [n for n, s in enumerate(steps) if s.is_backup and b'"safe"' in disk.said.get(s.process, b'')]
    least = max(safe, default=0)
    # A later one may have been complete before it could say so.
    return [s.content for s in steps[least:] if s.is_backup], bool(safe)


@test
def backups_after_a_power_cut(folder):
    random_ = rng('backups')
    place = Place(folder)
    steps = record(place, random_)
    disk, restored, again = Disk(place.recording), 0, 0
    for n, moment in enumerate(cuts(disk, random_, 60)):
        how, far = state_kinds(random_, n), bool(n % 2)
        with naming_the_state('backups, %s' % ('far' if far else 'near'), disk, moment, how, SEED):
            place.make(disk, random_, how, far)
            contents, must = allowed(disk, steps)
            found = place.restored()
            assert found in contents if found is not None else not must, 'a restore has not what was reported safe'
            restored += found is not None
            if call(place.repo, 'stat', status=None).returncode == 0:
                if random_.random() < 0.4:
                    # What is done now is not what was done then.
                    call(place.repo, 'import', archive(folder / 'other.warc', some_pages(random_, 12, 'www.delta.example')))
                place.back_up()
                again += 1
    print('# %d records, %d syncs; %d states restored, %d backed up again' % (len(disk.records), disk.syncs(), restored, again))
    assert again


@test
def a_follower_after_a_power_cut(folder):
    """backup --follow beside imports: as many pages as it has reported are in a restore, with the bytes that they had."""
    random_ = rng('follower')
    place, bodies = Place(folder), {}
    call(place.repo, 'init')
    place.recording = Recording(place.disk, folder / 'log')
    p = subprocess.Popen(command(place.repo, 'backup', place.url, '--follow', '--every', '0', '--json'), env=place.recording.env(),
                         stdout=open(folder / 'said', 'wb'), stderr=subprocess.PIPE)
    for n in range(4):
        pages = some_pages(random_, 30, 'host%d.example' % n)
        bodies.update((page.url, page.body) for page in pages)
        place.recording.run(command(place.repo, 'import', archive(folder / ('%d.warc' % n), pages)))
        end = time.time() + PATIENCE
        while max([e['pages'] for e in lines((folder / 'said').read_bytes()) if e['event'] == 'safe'], default=0) < 30 * (n + 1):
            assert p.poll() is None and time.time() < end, p.stderr.read() if p.poll() is not None else 'it does not become safe'
            time.sleep(0.05)
    p.send_signal(signal.SIGTERM)
    error = p.communicate(timeout=PATIENCE)[1]
    assert p.returncode == 0, error
    place.keep_owner()
    disk = Disk(place.recording)
    for n, moment in enumerate(cuts(disk, random_, 40)):
        how, far = state_kinds(random_, n), bool(n % 2)
        with naming_the_state('follower, %s' % ('far' if far else 'near'), disk, moment, how, SEED):
            place.make(disk, random_, how, far)
            least = max([e['pages'] for e in lines(disk.output(p.pid)) if e['event'] == 'safe'], default=None)
            found = place.restored()
            assert least is None if found is None else len(found) >= (least or 0), (least, found and len(found))
            for url, _, body in found or ():
                assert bodies[url] == body, url
            place.back_up()


run_together()
