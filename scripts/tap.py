"""What scripts/arrows and scripts/docs-check share: running rules and printing the result as TAP."""


def check(rules):
    """rules: [(title, function that returns the violations as lines of text)]. Returns the exit status."""
    failed = 0
    print('1..%d' % len(rules))
    for n, (title, rule) in enumerate(rules, 1):
        found = list(dict.fromkeys(rule()))
        failed += bool(found)
        print('%s %d - %s' % ('not ok' if found else 'ok', n, title))
        for line in found:
            print('# ' + line)
    return 1 if failed else 0
