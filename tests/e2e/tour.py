#!/usr/bin/env python3
"""make run: it ends with a server on a freshly crawled web, and never hangs when nobody is there."""
import http.client, os, pty, re, select, signal, subprocess, time, urllib.parse

from e2e import *


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
