"""Plots as SVG, for docs/paper.md: lines with one or two scales, stacked areas, and bars on a logarithmic scale.

The files have no size of their own in pixels beyond a viewBox, use the reader's sans-serif font, and have colours for
light and for dark pages (prefers-color-scheme).
"""
import html, math

WIDTH, HEIGHT = 720, 400
LEFT, RIGHT, TOP, BOTTOM = 84, 70, 44, 92
LIGHT = ['#0b62a4', '#c2410c', '#2e7d32', '#7b3fa0', '#8a6d00', '#b0235f', '#0d7377', '#57606a']
DARK = ['#6cb6ff', '#ff9d5c', '#7fd483', '#d2a8ff', '#e3c34c', '#ff8fb8', '#5cd1d6', '#adbac7']


def style():
    def rules(text, grid, colours):
        lines = ['text{fill:%s}.grid{stroke:%s}.axis{stroke:%s}' % (text, grid, text)]
        lines += ['.s%d{stroke:%s}.f%d{fill:%s}' % (i, c, i, c) for i, c in enumerate(colours)]
        return ''.join(lines)
    return ('<style>text{font:13px sans-serif}.title{font-weight:bold;font-size:15px}.grid{stroke-width:1}'
            '.axis{stroke-width:1;fill:none}.line{fill:none;stroke-width:2.2}.dash{stroke-dasharray:7 4}%s'
            '@media (prefers-color-scheme:dark){%s}</style>' %
            (rules('#24292f', '#d8dee4', LIGHT), rules('#d1d7e0', '#3d444d', DARK)))


def colour(i):
    return i % len(LIGHT)


def number(value):
    if value == 0:
        return '0'
    if abs(value) >= 1000:
        return '{:,.0f}'.format(value)
    return '%g' % float('%.3g' % value)


def nice_steps(top, count=5):
    """Round numbers from 0 to at least top."""
    top = top if top > 0 else 1
    raw = top / count
    size = 10 ** math.floor(math.log10(raw))
    step = next(m * size for m in (1, 2, 2.5, 5, 10) if m * size >= raw * 0.999)
    return [i * step for i in range(int(math.ceil(top / step - 1e-9)) + 1)]


class Plot:
    def __init__(self, title, height=HEIGHT, left=LEFT):
        self.parts, self.height, self.left = [], height, left
        self.text(WIDTH / 2, 22, title, 'middle', 'title')

    def text(self, x, y, text, anchor='start', kind='', turn=None):
        extra = ' transform="rotate(%d %.1f %.1f)"' % (turn, x, y) if turn else ''
        self.parts.append('<text x="%.1f" y="%.1f" text-anchor="%s"%s%s>%s</text>' % (
            x, y, anchor, ' class="%s"' % kind if kind else '', extra, html.escape(text)))

    def line(self, x1, y1, x2, y2, kind):
        self.parts.append('<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" class="%s"/>' % (x1, y1, x2, y2, kind))

    def write(self, path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img">%s\n%s\n</svg>\n' %
                        (WIDTH, self.height, style(), '\n'.join(self.parts)))


class Frame:
    """Axes: maps values to places. With log_x, x is on a logarithmic scale with base 2."""

    def __init__(self, plot, xs, tops, labels, log_x=False):
        self.plot, self.log_x = plot, log_x
        self.low, self.high = (min(xs), max(xs)) if log_x else (0, max(xs))
        self.steps = [nice_steps(t) if t is not None else None for t in tops]
        self.bottom = plot.height - BOTTOM
        self.draw(xs, labels)

    def x(self, value):
        f = math.log2
        share = (f(value) - f(self.low)) / (f(self.high) - f(self.low)) if self.log_x else value / self.high
        return self.plot.left + share * (WIDTH - self.plot.left - RIGHT)

    def y(self, value, side=0):
        return self.bottom - value / self.steps[side][-1] * (self.bottom - TOP)

    def draw(self, xs, labels):
        plot, right = self.plot, WIDTH - RIGHT
        for value in self.steps[0]:
            plot.line(plot.left, self.y(value), right, self.y(value), 'grid')
            plot.text(plot.left - 8, self.y(value) + 4, number(value), 'end')
        if self.steps[1]:
            for value in self.steps[1]:
                plot.text(right + 8, self.y(value, 1) + 4, number(value))
            plot.text(WIDTH - 14, (TOP + self.bottom) / 2, labels[2], 'middle', turn=-90)
        for value in (xs if self.log_x else [v for v in nice_steps(self.high, 8) if v <= self.high * 1.001]):
            plot.line(self.x(value), self.bottom, self.x(value), self.bottom + 5, 'axis')
            plot.text(self.x(value), self.bottom + 20, number(value), 'middle')
        plot.line(plot.left, self.bottom, right, self.bottom, 'axis')
        plot.text((plot.left + right) / 2, self.bottom + 40, labels[0], 'middle')
        plot.text(16, (TOP + self.bottom) / 2, labels[1], 'middle', turn=-90)


def legend(plot, names, area=False, dashed=()):
    """Names and their colours, in one row or two."""
    start, places, row = min(plot.left, LEFT), [], 0
    x = start
    for name in names:
        width = 42 + 6.8 * len(name)
        if x + width > WIDTH and x > start:
            x, row = start, row + 1
        places.append((x, row))
        x += width
    for i, (name, (x, at)) in enumerate(zip(names, places)):
        y = plot.height - 14 - 20 * (row - at)
        if area:
            plot.parts.append('<rect x="%.1f" y="%.1f" width="22" height="10" class="f%d"/>' % (x, y - 9, colour(i)))
        else:
            plot.line(x, y - 4, x + 22, y - 4, 'line s%d%s' % (colour(i), ' dash' if name in dashed else ''))
        plot.text(x + 28, y, name)


def lines(path, title, labels, series, log_x=False):
    """series: (name, side, points); side 0 is the left scale, 1 the right one. labels: x, left, right."""
    plot = Plot(title)
    tops = [max((y for _, s, points in series if s == side for _, y in points), default=None) for side in (0, 1)]
    frame = Frame(plot, sorted({x for _, _, points in series for x, _ in points}), tops, labels, log_x)
    for i, (_, side, points) in enumerate(series):
        plot.parts.append('<polyline class="line s%d%s" points="%s"/>' % (
            colour(i), ' dash' if side else '', ' '.join('%.1f,%.1f' % (frame.x(x), frame.y(y, side)) for x, y in points)))
    legend(plot, [name for name, _, _ in series], dashed=[name for name, side, _ in series if side])
    plot.write(path)


def areas(path, title, labels, xs, layers):
    """layers: (name, values), from below; each is drawn on top of those before it."""
    plot = Plot(title)
    total = [sum(values[i] for _, values in layers) for i in range(len(xs))]
    frame = Frame(plot, xs, [max(total), None], labels + [''])
    below = [0.0] * len(xs)
    for n, (_, values) in enumerate(layers):
        above = [b + v for b, v in zip(below, values)]
        points = list(zip(xs, above)) + list(reversed(list(zip(xs, below))))
        plot.parts.append('<polygon class="f%d" fill-opacity="0.8" points="%s"/>' % (
            colour(n), ' '.join('%.1f,%.1f' % (frame.x(x), frame.y(y)) for x, y in points)))
        below = above
    legend(plot, [name for name, _ in layers], area=True)
    plot.write(path)


def bars(path, title, label, groups, names):
    """Horizontal bars on a logarithmic scale. groups: (name, values), a value for each of names, or None."""
    row, gap, left = 15, 10, 250
    height = TOP + len(groups) * (len(names) * row + gap) + BOTTOM
    plot = Plot(title, height, left)
    found = [v for _, values in groups for v in values if v]
    low, high = (10 ** f(math.log10(v)) for f, v in ((math.floor, min(found)), (math.ceil, max(found))))
    place = lambda v: left + (math.log10(v) - math.log10(low)) / max(1e-9, math.log10(high / low)) * (WIDTH - left - 60)
    decade = low
    while decade <= high * 1.001:
        plot.line(place(decade), TOP, place(decade), height - BOTTOM, 'grid')
        plot.text(place(decade), height - BOTTOM + 18, number(decade), 'middle')
        decade *= 10
    y = TOP + gap / 2
    for name, values in groups:
        plot.text(left - 8, y + len(names) * row / 2 + 4, name, 'end')
        for i, value in enumerate(values):
            if value:
                plot.parts.append('<rect x="%.1f" y="%.1f" width="%.1f" height="%d" class="f%d"/>' % (
                    left, y + i * row + 1, max(1.0, place(value) - left), row - 2, colour(i)))
                plot.text(place(value) + 4, y + i * row + row - 3, number(value))
        y += len(names) * row + gap
    plot.text((left + WIDTH - 60) / 2, height - BOTTOM + 38, label, 'middle')
    legend(plot, names, area=True)
    plot.write(path)
