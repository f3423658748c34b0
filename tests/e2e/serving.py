"""A running `webbase serve` for end-to-end tests, and requests to it: with http.client, and with raw sockets."""
import contextlib, http.client, json, os, re, signal, socket, ssl, subprocess, threading, time, urllib.parse

from e2e import PATIENCE, call, command, done, ask, archive

TOKEN = 'operator-1234567890'


class Reply:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.fields, self.body = status, headers, headers.items(), body

    def json(self):
        return json.loads(self.body)

    def field(self, name):
        return self.headers[name]

    def error(self, status, *words):
        """Checks that this is an error as JSON, whose message has these words."""
        assert self.status == status, (self.status, self.body[:300])
        assert self.field('Content-Type').startswith('application/json'), self.fields
        message = self.json()
        assert list(message) == ['error'] and message['error'], message
        for word in words:
            assert word in message['error'], (word, message)
        return message['error']


class Server:
    """Use with `with`. The process must not have died when the block ends, unless the test has ended it. said() is what
    it has written to stderr, and the list .out what has come after the first line of stdout."""

    def __init__(self, repo, *args, listen='127.0.0.1:0', env=None, token=None):
        self.repo, self.listen, self.env, self.process = repo, listen, env, None
        self.args = [*args, '--token', token] if token else args

    def __enter__(self):
        return self.start()

    def __exit__(self, kind, *rest):
        if self.ended:
            return
        if kind is None and self.process.poll() is not None:
            raise AssertionError('the server has ended with %d: %s' % (self.process.returncode, self.errors()))
        status = self.stop()
        assert kind or status == 0, (status, self.errors())

    def start(self):
        self.log, self.out, self.ended = open(str(self.repo) + '.log', 'ab'), [], False
        self.log_begin = os.fstat(self.log.fileno()).st_size
        self.process = subprocess.Popen(command(self.repo, 'serve', '--listen', self.listen, *self.args),
                                        stdout=subprocess.PIPE, stderr=self.log, env=self.env)
        line = self.process.stdout.readline().decode()
        self.drain = threading.Thread(target=self.read_on, args=(self.process.stdout,), daemon=True)
        self.drain.start()
        found = re.fullmatch(r'listening on (https?)://(.*):(\d+)/\n', line)
        assert found, (line, self.errors())
        self.scheme, self.host, self.port = found[1], found[2].strip('[]'), int(found[3])
        if self.host == '0.0.0.0':
            self.host = '127.0.0.1'
        self.url = '%s://%s:%d' % (self.scheme, self.host, self.port)
        # The next start uses the same address.
        self.listen = '%s:%d' % (self.listen.rsplit(':', 1)[0], self.port)
        return self

    def read_on(self, pipe):
        with pipe:
            self.out.extend(line.decode() for line in pipe)

    def stop(self, number=signal.SIGTERM):
        """Ends it and returns its exit status."""
        self.ended = True
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        self.drain.join(PATIENCE)
        return self.process.returncode

    def kill(self):
        self.stop(signal.SIGKILL)

    def said(self):
        with open(str(self.repo) + '.log', 'rb') as f:
            f.seek(self.log_begin)
            return f.read().decode('utf-8', 'replace')

    def errors(self):
        return self.said()[-2000:]

    def connect(self):
        if self.scheme == 'http':
            return http.client.HTTPConnection(self.host, self.port, timeout=PATIENCE)
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return http.client.HTTPSConnection(self.host, self.port, timeout=PATIENCE, context=context)

    def ask(self, path, method='GET', headers={}, body=None, **params):
        if params:
            path += '?' + urllib.parse.urlencode(params, doseq=True)
        with contextlib.closing(self.connect()) as c:
            c.request(method, path, body=body, headers=headers)
            r = c.getresponse()
            return Reply(r.status, r.headers, r.read())

    def get(self, path, **params):
        """The JSON of a call that must succeed."""
        r = self.ask(path, **params)
        assert r.status == 200, (path, params, r.status, r.body[:300])
        return r.json()

    def post(self, path, body, token=None):
        """body: bytes, or something that is sent as JSON."""
        headers = {'Content-Type': 'application/json'}
        if token:
            headers['Authorization'] = 'Bearer ' + token
        return self.ask(path, 'POST', headers, body if isinstance(body, bytes) else json.dumps(body).encode())

    def raw(self, data, read=True, timeout=PATIENCE):
        """Sends bytes; returns everything until the server closes."""
        with socket.create_connection((self.host, self.port), timeout=timeout) as s:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                s.sendall(data)
            return read_all(s) if read else b''

    # ---- the process

    def memory(self):
        """Bytes that belong to this process alone: not those of mapped files."""
        text = open('/proc/%d/status' % self.process.pid).read()
        return int(re.search(r'RssAnon:\s+(\d+) kB', text)[1]) << 10

    def files(self):
        return len(os.listdir('/proc/%d/fd' % self.process.pid))


def read_all(s):
    out = b''
    with contextlib.suppress(ConnectionResetError):
        while part := s.recv(1 << 16):
            out += part
    return out


def wait_for(condition, what, server=None):
    """Waits until the condition is true; returns its value. server: must be running meanwhile."""
    end = time.time() + PATIENCE
    while not (value := condition()):
        assert not server or server.process.poll() is None, 'the server has ended before ' + what
        assert time.time() < end, 'waited in vain until ' + what
        time.sleep(0.02)
    return value
