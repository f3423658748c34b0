"""The paper's own figures, and reading those that bench/paper has measured."""
import json, statistics

from harness import OUT

# Table S-2, with the 6.5 GB that the paper's tables imply (docs/design/0036-paper-disk.md).
DISK_BYTES, PAGE_BYTES = 13 << 29, 2591
BUCKET_PAGES = 65536 * 0.6 / PAGE_BYTES
SHARE_PAGES = (16 << 20) ** 2 / DISK_BYTES / PAGE_BYTES

S4 = [19.8, 28.2, 0.159, 3.87, 42.9, 28.9, 11.8, 23.71, 0.164]
PROTOTYPE = 'Batch[U(hash,log),R(hash,log)]'      # what the paper's authors had built
BASELINE = 'Incr[hash,log]'                       # the default, which needs no --design

# Table 3. The hashed-log column has what section 4.3.1 says; our copy of the journal version has no numbers.
TABLE3 = {
    'log': {'stream': 6300, 'get': 35, 'add': 6100, 'add_buffered': 6100, 'add_sorted': 6100, 'space': None},
    'hash': {'stream': 3900, 'get': 51, 'add': 23, 'add_buffered': 35, 'add_sorted': 1300, 'space': 0.6},
    'hashed-log': {'stream': None, 'get': None, 'add': None, 'add_buffered': 660, 'add_sorted': None, 'space': None},
}
TABLE3_ROWS = [('stream', 'streaming, pages/s'), ('get', 'random access, pages/s'),
               ('add', 'addition, random order, pages/s'), ('add_buffered', 'the same with a buffer, pages/s'),
               ('add_sorted', 'addition, sorted order, pages/s'), ('space', 'space used for pages, share')]
TABLE4 = {'log': (6100, 11700), 'hash': (35, 1260), 'hashed-log': (660, 1260)}
TABLE5 = {'stream': 2800, 'add': 3200, 'update_s': 2451, 'get': 33}
# Figure 6 at an update ratio of 0.25, in seconds (section 4.4).
FIGURE6 = [('catalog update', 26), ('page identifier transfer', 84), ('compaction', 1244), ('page transfer', 1008),
           ('B-tree construction', 88)]
# Table 6: streaming, random access, addition, update time. Its last row says U(hashed-log, hash), which is turned around.
TABLE6 = [('Incr[hash,log]', ['+', '-', '--', '']), ('Incr[uniform,log]', ['+', '--', '+', '']),
          ('Incr[hash,hash]', ['+', '+', '-', '']), ('Batch[U(hash,log),R(hash,log)]', ['++', '-', '+', '+']),
          ('Batch[U(hash,log),R(hash,hash)]', ['+', '+', '+', '-']),
          ('Batch[U(hash,hash),R(hash,hash)]', ['+', '+', '-', '+']),
          ('Batch[U(hash,hashed-log),R(hash,hash)]', ['+', '+', '+-', '+'])]


def read_lines(part):
    """The rows of a part; None if it was not measured."""
    path = OUT / ('paper-%s.json' % part)
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else None


def median_of(rows, field, **where):
    values = [r[field] for r in rows or [] if field in r and all(r.get(k) == v for k, v in where.items())]
    return statistics.median(values) if values else None


def median_ms(rows, disk, number):
    """R(number) of Table S-4 on a disk."""
    return median_of(rows, 'ms', bench='row', disk=disk, row=number)


def log_pages(sim):
    """The pages that row 11 writes: a log, whose size depends on the disk that was measured."""
    size = next(r['bytes'] for r in sim if r['bench'] == 'files')
    return (16 << 20) * (size / DISK_BYTES) ** 0.5 / PAGE_BYTES
