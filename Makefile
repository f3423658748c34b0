# The commands for people. The build itself is in meson.build.
PREFIX ?= /usr/local
DESTDIR ?=
FUZZ_SECONDS ?= 180
ROUNDS ?= 100
BUILD = build

all: build/webbase

# Always run ninja: it knows what is out of date.
build/webbase: configured
	@ninja -C $(BUILD) program

configured:
	@scripts/deps build
	@test -f $(BUILD)/build.ninja || meson setup $(BUILD) -Dtests=false --prefix=$(PREFIX)

run:
	@scripts/deps build run
	@SEEDS="$(SEEDS)" scripts/run

check:
	@scripts/deps build test
	@scripts/deps browser || echo 'check: there is no browser, so the tests that need one will be skipped'
	@scripts/check

# One test, by its name: make test T=url. Further words go to it.
test:
	@scripts/deps build test
	@scripts/test $(T)

# make check with all rounds of the tests that repeat something at random.
soak:
	@WEBBASE_TEST_ROUNDS=$(ROUNDS) $(MAKE) --no-print-directory check

bench: all
	@scripts/deps build bench
	@bench/run

fuzz:
	@scripts/deps build fuzz
	@FUZZ_SECONDS=$(FUZZ_SECONDS) scripts/fuzz

install: all
	@meson configure $(BUILD) -Dprefix=$(PREFIX)
	@ninja -C $(BUILD) program
	@meson install -C $(BUILD) --no-rebuild $(if $(DESTDIR),--destdir $(abspath $(DESTDIR)))

deb: all
	@scripts/deps build deb
	@scripts/deb

clean:
	rm -rf build build-asan build-fuzz

help:
	@echo 'make            builds build/webbase'
	@echo 'make run        builds it, crawls a synthetic web (with SEEDS=urls.txt, real sites) and serves it at port 8080'
	@echo 'make check      runs all tests; ends with "N passed, N failed, N skipped"'
	@echo 'make test T=url builds and runs one test, here tests/unit/url/test_url.c; T= says which names there are'
	@echo 'make soak       the same with all rounds of random tests (ROUNDS percent of them, default 100); takes about an hour'
	@echo 'make bench      measures it next to other programs; prints tables'
	@echo 'make fuzz       fuzzes each parser for FUZZ_SECONDS (default 180) seconds'
	@echo 'make install    installs program, library, headers, man page, completion; PREFIX, DESTDIR'
	@echo 'make deb        makes a Debian package, which installs it as a service under its own user'
	@echo 'make clean      removes everything that was built'

.PHONY: all build/webbase configured run check test soak bench fuzz install deb clean help
