# The front door for people; the build itself is meson.build.
PREFIX ?= /usr/local
DESTDIR ?=
FUZZ_SECONDS ?= 180
BUILD = build

all: build/webbase

# Always asks ninja, which knows what is out of date.
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
	@scripts/check

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

clean:
	rm -rf build build-clang build-asan build-fuzz

help:
	@echo 'make            builds build/webbase'
	@echo 'make run        builds it and crawls a made-up web with it; SEEDS=urls.txt: real sites'
	@echo 'make check      all tests; ends with "N passed, N failed, N skipped"'
	@echo 'make bench      measures it beside other stores; prints a table'
	@echo 'make fuzz       fuzzes each parser for FUZZ_SECONDS (default 180) seconds'
	@echo 'make install    program, library, headers, man page, completion; PREFIX, DESTDIR'
	@echo 'make clean      removes what was built'

.PHONY: all build/webbase configured run check bench fuzz install clean help
