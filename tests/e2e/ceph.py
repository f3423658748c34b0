"""A real S3 for tests: Ceph with one monitor, one manager, one OSD and one RADOS gateway, on free ports of 127.0.0.1, in
a temporary directory, as the user who runs the test. It starts in about half a minute, so a script starts it once for
all of its tests.

    with Ceph() as store:
        env = store.environment()      # what webbase, rclone and others read
        store.bucket('vault')
        store.request('GET', 'vault', query={'list-type': '2'})
        store.pause(); store.resume(); store.kill_gateway(); store.start_gateway()

The processes belong to a supervisor (this file, run as a program), which ends them and removes the directory as soon as
its standard input is closed: when the block ends, and also when the script is killed. If Ceph cannot start, Ceph()
raises an error that says why.

scripts/deps test installs the packages. Requests are signed here with Signature Version 4, independently of webbase.
"""
import contextlib, ctypes, datetime, hashlib, hmac, http.client, json, os, pathlib, secrets, shutil, signal, socket
import subprocess, sys, tempfile, time, urllib.parse, uuid

PROGRAMS = {'ceph-mon': 'ceph-mon', 'ceph-mgr': 'ceph-mgr', 'ceph-osd': 'ceph-osd', 'radosgw': 'radosgw',
            'radosgw-admin': 'radosgw', 'ceph': 'ceph-common', 'ceph-authtool': 'ceph-common', 'monmaptool': 'ceph-common'}
PATIENCE = float(os.environ.get('WEBBASE_PATIENCE', 400))
REGION = 'us-east-1'
ATTEMPTS = 3            # another process may take a port between our looking and our using it

CONFIG = '''
[global]
fsid = {fsid}
mon host = [v2:127.0.0.1:{mon2}/0,v1:127.0.0.1:{mon1}/0]
public addr = 127.0.0.1
cluster addr = 127.0.0.1
ms bind ipv6 = false
auth cluster required = cephx
auth service required = cephx
auth client required = cephx
auth allow insecure global id reclaim = false
keyring = {dir}/keyring
run dir = {dir}
admin socket = {dir}/$name.asok
log file = {dir}/$name.log
log flush on exit = false
mon cluster log file = {dir}/cluster.log
crash dir = {dir}/crash
osd crush chooseleaf type = 0
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 4
osd pool default pgp num = 4
osd pool default pg autoscale mode = off
mon allow pool size one = true
mon warn on pool no redundancy = false
mon max pg per osd = 1000
mon data avail crit = 1
mon data avail warn = 1
[mon]
mon data = {dir}/mon
[mgr]
mgr data = {dir}/mgr
# Nothing is asked of the manager but statistics.
mgr initial modules =
mgr disabled modules = balancer crash devicehealth orchestrator pg_autoscaler progress rbd_support status telemetry volumes dashboard restful
[osd]
osd data = {dir}/osd
osd objectstore = {store}
osd memory target = 939524096
osd class update on start = false
osd max object name len = 256
osd max object namespace len = 64
osd op num shards = 2
osd mclock skip benchmark = true
memstore device bytes = {bytes}
bluestore block size = {bytes}
bluestore cache size = 134217728
bluestore cache autotune = false
bluestore fsck on mount = false
[client.rgw]
rgw data = {dir}/rgw
rgw frontends = beast endpoint=127.0.0.1:{rgw} tcp_nodelay=1
rgw thread pool size = 64
rgw cache enabled = true
rgw enable usage log = false
rgw enable ops log = false
rgw gc obj min wait = 60
rgw run sync thread = false
'''


class Failed(Exception):
    pass


# ---- signed requests --------------------------------------------------------------------------------------------------

def quoted(text, safe='-_.~'):
    return urllib.parse.quote(text, safe=safe)


def joined(query):
    return '&'.join('%s=%s' % (quoted(k), quoted(v)) for k, v in sorted(query.items()))


def signature_of(secret, stamp, text):
    """The signature of a canonical request."""
    scope, key = '%s/%s/s3/aws4_request' % (stamp[:8], REGION), ('AWS4' + secret).encode()
    for part in scope.split('/'):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    text = '\n'.join(['AWS4-HMAC-SHA256', stamp, scope, hashlib.sha256(text.encode()).hexdigest()])
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def signed(keys, method, host, path, query, body):
    """The headers of a request with Signature Version 4. path is quoted already."""
    stamp, digest = datetime.datetime.utcnow().strftime('%Y%m%dT%H%M%SZ'), hashlib.sha256(body).hexdigest()
    headers = {'host': host, 'x-amz-content-sha256': digest, 'x-amz-date': stamp}
    names = ';'.join(sorted(headers))
    signature = signature_of(keys[1], stamp, '\n'.join([method, path, joined(query), *('%s:%s' % (n, headers[n]) for n in sorted(headers)),
                                                        '', names, digest]))
    headers['authorization'] = 'AWS4-HMAC-SHA256 Credential=%s/%s/%s/s3/aws4_request, SignedHeaders=%s, Signature=%s' % (
        keys[0], stamp[:8], REGION, names, signature)
    return headers


def request(port, keys, method, bucket='', key='', query=None, body=b'', headers=None, timeout=PATIENCE):
    """Sends one signed request, in path style. Returns (status, body)."""
    path = '/' + quoted(bucket) + ('/' + quoted(key, '-_.~/') if key else '')
    host = '127.0.0.1:%d' % port
    head = signed(keys, method, host, path, query or {}, body)
    target = path + ('?' + joined(query) if query else '')
    with contextlib.closing(http.client.HTTPConnection('127.0.0.1', port, timeout=timeout)) as c:
        c.request(method, target, body=body, headers={**head, **(headers or {})})
        reply = c.getresponse()
        return reply.status, reply.read()


def link(port, keys, bucket, key, seconds=86400):
    """A URL with a signature in it, which anybody may GET for a while."""
    now, host, path = datetime.datetime.utcnow(), '127.0.0.1:%d' % port, '/%s/%s' % (quoted(bucket), quoted(key, '-_.~/'))
    stamp = now.strftime('%Y%m%dT%H%M%SZ')
    query = {'X-Amz-Algorithm': 'AWS4-HMAC-SHA256', 'X-Amz-Credential': '%s/%s/%s/s3/aws4_request' % (keys[0], stamp[:8], REGION),
             'X-Amz-Date': stamp, 'X-Amz-Expires': str(seconds), 'X-Amz-SignedHeaders': 'host'}
    text = joined(query)
    signature = signature_of(keys[1], stamp, '\n'.join(['GET', path, text, 'host:' + host, '', 'host', 'UNSIGNED-PAYLOAD']))
    return 'http://%s%s?%s&X-Amz-Signature=%s' % (host, path, text, signature)


# ---- what a script uses ------------------------------------------------------------------------------------------------

class Ceph:
    """The supervisor, seen from the script. store: 'memstore', or 'bluestore', which writes to the directory. parent:
    where the temporary directory is made. bytes: how much the store can hold."""

    def __init__(self, store='memstore', bytes=8 << 30, parent=None):
        self.process = subprocess.Popen([sys.executable, '-B', __file__, store, str(bytes), str(parent or '')],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True)
        answer = self.answer()
        self.port, self.keys, self.dir, self.pids = answer['port'], tuple(answer['keys']), answer['dir'], answer['pids']
        self.endpoint = 'http://127.0.0.1:%d' % self.port

    def answer(self):
        line = self.process.stdout.readline()
        said = json.loads(line) if line else {'error': 'the supervisor of Ceph has ended'}
        if 'error' in said:
            self.end()
            raise Failed(said['error'])
        return said

    def command(self, word):
        self.process.stdin.write(word + '\n')
        self.process.stdin.flush()
        self.pids = self.answer()['pids']

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.end()

    def end(self):
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        self.process.wait(PATIENCE)
        self.process.stdout.close()

    def environment(self, **more):
        """The environment of a program that uses the store."""
        env = {k: v for k, v in os.environ.items() if not k.startswith('AWS_')}
        env.update(AWS_ENDPOINT_URL=self.endpoint, AWS_ACCESS_KEY_ID=self.keys[0], AWS_SECRET_ACCESS_KEY=self.keys[1],
                   AWS_REGION=REGION, AWS_EC2_METADATA_DISABLED='true')
        env.update(more)
        return env

    # -- the gateway comes and goes

    def pause(self):
        """The gateway keeps its connections, and answers nothing."""
        os.kill(self.pids['radosgw'], signal.SIGSTOP)

    def resume(self):
        os.kill(self.pids['radosgw'], signal.SIGCONT)

    def kill_gateway(self):
        self.command('kill')

    def start_gateway(self):
        """Starts it at the same address. Returns when it answers."""
        self.command('start')

    # -- requests

    def request(self, method, bucket='', key='', **how):
        return request(self.port, self.keys, method, bucket, key, **how)

    def bucket(self, name):
        status, body = self.request('PUT', name)
        assert status == 200, (name, status, body)

    def user(self, name):
        """Another user, who may do nothing with the buckets of the first one. Returns the keys."""
        said = subprocess.run(['radosgw-admin', '-c', self.dir + '/ceph.conf', '-n', 'client.admin', 'user', 'create',
                               '--uid', name, '--display-name', name], capture_output=True, check=True, timeout=PATIENCE)
        keys = json.loads(said.stdout)['keys'][0]
        return keys['access_key'], keys['secret_key']

    def list(self, bucket, prefix=''):
        """{name: size} of all objects with a prefix."""
        import xml.etree.ElementTree as tree
        found, query = {}, {'list-type': '2', 'prefix': prefix}
        while True:
            status, body = self.request('GET', bucket, query=query)
            assert status == 200, (status, body)
            root = tree.fromstring(body)
            ns = root.tag.partition('}')[0] + '}' if root.tag.startswith('{') else ''
            for item in root.iter(ns + 'Contents'):
                found[item.find(ns + 'Key').text] = int(item.find(ns + 'Size').text)
            token = root.find(ns + 'NextContinuationToken')
            if token is None:
                return found
            query['continuation-token'] = token.text


# ---- the supervisor ----------------------------------------------------------------------------------------------------

def free_ports(count):
    with contextlib.ExitStack() as stack:
        ports = []
        for _ in range(count):
            s = stack.enter_context(socket.socket())
            s.bind(('127.0.0.1', 0))
            ports.append(s.getsockname()[1])
        return ports


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)      # PR_SET_PDEATHSIG


class Cluster:
    def __init__(self, folder, store, size):
        self.dir, self.store, self.size = folder, store, size
        self.config = folder / 'ceph.conf'
        self.running = {}
        self.keys = (secrets.token_hex(10).upper(), secrets.token_urlsafe(30))

    def tool(self, *words):
        """Runs a program of Ceph to its end; returns what it prints."""
        program, *rest = map(str, words)
        p = subprocess.run([program, '-c', self.config, *rest] if program not in ('ceph-authtool', 'monmaptool') else
                           [program, *rest], capture_output=True, text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL,
                           preexec_fn=die_with_parent)
        if p.returncode:
            raise Failed('%s ended with %d: %s' % (' '.join(map(str, words[:3])), p.returncode, p.stderr.strip()[-600:]))
        return p.stdout

    def daemon(self, program, *words):
        with open(self.dir / (program + '.out'), 'ab') as out:
            self.running[program] = subprocess.Popen([program, '-c', self.config, '-f', *words], stdin=subprocess.DEVNULL,
                                                     stdout=out, stderr=out, preexec_fn=die_with_parent)

    def wait(self, what, condition):
        end = time.time() + PATIENCE
        while not condition():
            for program, process in self.running.items():
                if process.poll() is not None:
                    raise Failed('%s has ended with %d before %s: %s' % (
                        program, process.returncode, what, (self.dir / (program + '.out')).read_text()[-600:].strip()))
            if time.time() > end:
                raise Failed('waited for %d s in vain until %s' % (PATIENCE, what))
            time.sleep(0.1)

    def make_keys(self):
        ring = self.dir / 'keyring'
        for name, caps in (('mon.', {'mon': 'allow *'}),
                           ('client.admin', {'mon': 'allow *', 'osd': 'allow *', 'mgr': 'allow *'}),
                           ('mgr.a', {'mon': 'allow profile mgr', 'osd': 'allow *'}),
                           ('osd.0', {'mon': 'allow profile osd', 'mgr': 'allow profile osd', 'osd': 'allow *'}),
                           ('client.rgw', {'mon': 'allow rw', 'osd': 'allow rwx', 'mgr': 'allow rw'})):
            caps = [word for kind, text in caps.items() for word in ('--cap', kind, text)]
            create = [] if ring.exists() else ['--create-keyring']
            self.tool('ceph-authtool', *create, ring, '--gen-key', '-n', name, *caps)

    def start(self):
        mon1, mon2, self.port = free_ports(3)
        fsid = str(uuid.uuid4())
        self.config.write_text(CONFIG.format(dir=self.dir, fsid=fsid, mon1=mon1, mon2=mon2, rgw=self.port,
                                             store=self.store, bytes=self.size))
        for name in ('mon', 'mgr', 'osd', 'rgw', 'crash'):
            (self.dir / name).mkdir()
        self.make_keys()
        self.tool('monmaptool', '--create', '--fsid', fsid, '--addv', 'a',
                  '[v2:127.0.0.1:%d,v1:127.0.0.1:%d]' % (mon2, mon1), self.dir / 'monmap')
        self.tool('ceph-mon', '--mkfs', '-i', 'a', '--monmap', self.dir / 'monmap', '--keyring', self.dir / 'keyring')
        self.daemon('ceph-mon', '-i', 'a')
        osd = str(uuid.uuid4())
        self.tool('ceph', '-n', 'client.admin', '--connect-timeout', int(PATIENCE), 'osd', 'new', osd, '0')
        self.tool('ceph-osd', '-i', '0', '--mkfs', '--osd-uuid', osd)
        self.daemon('ceph-osd', '-i', '0')
        self.daemon('ceph-mgr', '-i', 'a')
        self.start_gateway()
        self.tool('radosgw-admin', '-n', 'client.admin', 'user', 'create', '--uid', 'webbase', '--display-name', 'webbase',
                  '--access-key', self.keys[0], '--secret', self.keys[1])
        self.wait('a request is answered', lambda: request(self.port, self.keys, 'GET')[0] == 200)

    def start_gateway(self):
        self.daemon('radosgw', '-n', 'client.rgw')
        self.wait('the gateway listens', self.listens)

    def listens(self):
        with contextlib.suppress(OSError), socket.create_connection(('127.0.0.1', self.port), timeout=1):
            return True
        return False

    def kill(self, program):
        process = self.running.pop(program, None)
        if process:
            process.kill()
            process.wait()

    def end(self):
        for program in list(self.running):
            self.kill(program)

    def say(self):
        print(json.dumps({'port': self.port, 'keys': self.keys, 'dir': str(self.dir),
                          'pids': {n: p.pid for n, p in self.running.items()}}), flush=True)

    def obey(self, word):
        if word == 'kill':
            self.kill('radosgw')
        elif word == 'start' and 'radosgw' not in self.running:
            self.start_gateway()
        self.say()


def missing():
    return sorted({package for program, package in PROGRAMS.items() if not shutil.which(program)})


def started(parent, store, size):
    """A cluster that answers, and the directory it is in."""
    for attempt in range(1, ATTEMPTS + 1):
        # Not deep: the names of sockets are short.
        folder = pathlib.Path(tempfile.mkdtemp(prefix='wb-ceph-', dir=parent or None))
        cluster = Cluster(folder, store, size)
        try:
            cluster.start()
            return cluster
        except BaseException as e:
            cluster.end()
            shutil.rmtree(folder, ignore_errors=True)
            if attempt == ATTEMPTS or not isinstance(e, (Failed, subprocess.TimeoutExpired, OSError)):
                raise


def main(store, size, parent):
    signal.signal(signal.SIGINT, signal.SIG_IGN)     # the end of standard input ends it
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    cluster = None
    try:
        if missing():
            raise Failed('missing: %s; scripts/deps test installs them' % ' '.join(missing()))
        cluster = started(parent, store, int(size))
        cluster.say()
        for line in sys.stdin:
            cluster.obey(line.strip())
    except (Failed, subprocess.TimeoutExpired, OSError) as e:
        print(json.dumps({'error': 'Ceph cannot start here: %s' % e}), flush=True)
    finally:
        if cluster:
            cluster.end()
            shutil.rmtree(cluster.dir, ignore_errors=True)


if __name__ == '__main__':
    main(*sys.argv[1:])
