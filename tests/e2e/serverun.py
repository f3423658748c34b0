"""A server for tests: `webbase serve` on a free port, and requests to it."""
import http.client, json, signal, subprocess, threading, urllib.parse

from e2e import *

TOKEN = 'operator-1234567890'


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)


class Serving:
    """Use with `with`. args: options of serve."""

    def __init__(self, repo, *args, token=TOKEN, **kw):
        self.args = command(repo, 'serve', '--listen', '127.0.0.1:0', '--token', token, *args)
        self.token, self.kw, self.out = token, kw, []

    def __enter__(self):
        self.process = subprocess.Popen(self.args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **self.kw)
        self.errors = []
        self.drains = [threading.Thread(target=self.drain, args=(self.process.stderr, self.errors), daemon=True)]
        self.drains[0].start()
        line = self.process.stdout.readline()
        while line and not line.startswith('listening on '):
            self.out.append(line)
            line = self.process.stdout.readline()
        assert line, 'serve has ended: ' + ''.join(self.errors)
        self.base = line.split()[-1]
        self.drains.append(threading.Thread(target=self.drain, args=(self.process.stdout, self.out), daemon=True))
        self.drains[1].start()
        return self

    def drain(self, pipe, lines_):
        for line in pipe:
            lines_.append(line)

    def __exit__(self, *error):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(PATIENCE)
        for thread in self.drains:
            thread.join(PATIENCE)

    def stop(self, number=signal.SIGTERM):
        """Ends it and returns its exit status and what it wrote to stderr."""
        self.process.send_signal(number)
        self.process.wait(PATIENCE)
        for thread in self.drains:
            thread.join(PATIENCE)
        return self.process.returncode, ''.join(self.errors)

    def request(self, method, path, body=None, **headers):
        where = urllib.parse.urlsplit(self.base)
        connection = http.client.HTTPConnection(where.hostname, where.port, timeout=PATIENCE)
        try:
            connection.request(method, path, body, {k.replace('_', '-'): v for k, v in headers.items()})
            r = connection.getresponse()
            return Answer(r.status, r.headers, r.read())
        finally:
            connection.close()

    def get(self, path, **params):
        return self.request('GET', path + ('?' + urllib.parse.urlencode(params) if params else ''))

    def post(self, path, body, token=None):
        """body: bytes, or something that is sent as JSON."""
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
        headers = {'Authorization': 'Bearer ' + token} if token else {}
        return self.request('POST', path, body, Content_Type='application/json', **headers)


def wait_for(condition, what, process=None):
    end = time.time() + PATIENCE
    while True:
        value = condition()
        if value:
            return value
        assert process is None or process.poll() is None, 'the server has ended while waiting for ' + what
        assert time.time() < end, 'waited too long for ' + what
        time.sleep(0.05)
