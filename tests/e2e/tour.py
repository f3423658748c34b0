#!/usr/bin/env python3
"""docs/tour.md and the examples of README.md: their commands work and print what they say. And make run: it ends with a
server on a freshly crawled web, and never hangs when nobody is there."""
import http.client, os, pty, re, select, signal, subprocess, time, urllib.parse

from e2e import *


def steps(text):
    """(command, lines that follow it) of every command of a document: what comes after $ in a block."""
    for block in re.findall(r'(?m)^```\n((?:.*\n)*?)```$', text):
        for command, printed in re.findall(r'(?m)^\$ (.*)\n((?:(?!\$ ).*\n)*)', block):
            yield command, printed.splitlines()


def shape(line):
    """A line without its figures, which are different each time."""
    line = re.sub(r'\b(?=\w*\d)[0-9a-f]{16,}\b', 'HEX', line)
    return ' '.join(re.sub(r'\d+([.,:]\d+)*', 'N', line).split())


def printed_so(expected, got):
    """Whether this is what a document says: `...` stands for any lines, or for the rest of a line."""
    if not expected:
        return not got
    if expected[0].strip() == '...':
        return any(printed_so(expected[1:], got[n:]) for n in range(len(got) + 1))
    want = shape(expected[0].removesuffix(' ...'))
    same = got and (shape(got[0]).startswith(want) if expected[0].endswith(' ...') else shape(got[0]) == want)
    return bool(same) and printed_so(expected[1:], got[1:])


class Terminal:
    """A shell in a network of its own, in which /tmp is a folder of the test and build/webbase the program under test.
    Use with `with`."""

    def __init__(self, folder):
        self.folder = folder

    def __enter__(self):
        env = {k: v for k, v in os.environ.items() if not k.startswith('WEBBASE_')}
        # A file, because what runs in the background may print at any time, and goes on when the shell has ended.
        self.out = open(self.folder / 'printed', 'w+')
        self.process = subprocess.Popen(['bash'], stdin=subprocess.PIPE, stdout=self.out, stderr=self.out, cwd=ROOT,
                                        env=env, text=True, start_new_session=True, preexec_fn=own_network)
        return self

    def __exit__(self, *error):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.out.close()

    def printed(self):
        return (self.folder / 'printed').read_text()

    def run(self, command, expected):
        """Runs a command and returns its lines. If it stays in the background, waits for the expected ones."""
        before, mark = len(self.printed()), self.folder / 'status'
        mark.unlink(missing_ok=True)
        words = command.replace('/tmp/', '%s/' % self.folder).replace('build/webbase', WEBBASE)
        self.process.stdin.write('%s\necho $? >%s.new; mv %s.new %s\n' % (words, mark, mark, mark))
        self.process.stdin.flush()
        end = time.time() + PATIENCE
        while True:
            status = mark.read_text().strip() if mark.exists() else None
            got = self.printed()[before:].replace('%s/' % self.folder, '/tmp/').splitlines()
            if status is not None and (not command.endswith('&') or printed_so(expected, got)):
                break
            assert time.time() < end and self.process.poll() is None, (command, got)
            time.sleep(0.02)
        assert status == '0', '%s: status %s: %s' % (command, status, got)
        return got


def follow(document, folder):
    """Runs every command of a document."""
    found = list(steps((ROOT / document).read_text()))
    with Terminal(folder) as terminal:
        for command, expected in found:
            got = terminal.run(command, expected)
            assert not expected or printed_so(expected, got), \
                '%s: $ %s\nprints:\n%s\nand not:\n%s' % (document, command, '\n'.join(got), '\n'.join(expected))
    return len(found)


@test
def the_tour_is_as_it_is_written(folder):
    assert follow('docs/tour.md', folder) > 30


@test
def the_examples_of_the_readme_work(folder):
    assert follow('README.md', folder) >= 5


def processes():
    """The processes of the tour that are running: they work in its folder."""
    found = []
    for entry in pathlib.Path('/proc').iterdir():
        try:
            if entry.name.isdigit() and os.readlink(entry / 'cwd') == os.path.realpath(ROOT / 'build' / 'tour'):
                found.append((entry / 'cmdline').read_bytes())
        except OSError:
            pass
    return found


def told(text):
    found = re.search(r'\$ webbase serve\s+listening on (http://127\.0\.0\.1:\d+/)', text)
    assert found, text[-2000:]
    return found.group(1)


@test
def without_a_terminal_it_asks_the_server_and_ends(folder):
    p = subprocess.run([ROOT / 'scripts' / 'run'], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                       timeout=PATIENCE, env={k: v for k, v in os.environ.items() if k not in ('SEEDS', 'KEEP')})
    assert p.returncode == 0, p.stdout[-1000:] + p.stderr[-1000:]
    assert 'The server answered at ' + told(p.stdout) in p.stdout and '"ok":true' in p.stdout, p.stdout[-1000:]
    assert int(re.search(r'(\d+) pages; the first ones are', p.stdout).group(1)) > 100
    assert processes() == []


@test
def at_a_terminal_it_serves_until_interrupted(folder):
    pid, fd = pty.fork()
    if pid == 0:
        for name in ('CI', 'SEEDS', 'KEEP'):
            os.environ.pop(name, None)
        os.execv(ROOT / 'scripts' / 'run', ['run'])
    text, end = b'', time.time() + PATIENCE
    try:
        while b'Ctrl-C ends it' not in text:
            assert time.time() < end and select.select([fd], [], [], PATIENCE)[0], text[-1000:]
            text += os.read(fd, 65536)
        base = told(text.decode())
        connection = http.client.HTTPConnection(urllib.parse.urlsplit(base).netloc, timeout=PATIENCE)
        connection.request('GET', '/api/search?q=the&limit=1')
        assert connection.getresponse().status == 200
        os.write(fd, b'\x03')
        while time.time() < end:
            try:
                if not os.read(fd, 65536):
                    break
            except OSError:     # the terminal is closed: everybody has left
                break
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        pid = 0
        while processes():
            assert time.time() < end, processes()
            time.sleep(0.05)
    finally:
        if pid:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        os.close(fd)


run()
