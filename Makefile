# Thin wrappers around meson and scripts/; what takes more than a line is there.
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 300

.PHONY: build deps demo test check format bench day fuzz install uninstall dist dist-tree dist-tarball dist-deb dist-wheel dist-npm dist-twice wheel npm test-aarch64 test-layers test-packages
build:
	scripts/build
deps:
	scripts/deps
demo: deps build
	scripts/demo
test:
	scripts/deps test
	scripts/test
check:
	scripts/check
format:
	scripts/format
bench:
	scripts/deps test
	scripts/build
	scripts/bench
day:
	scripts/deps test
	scripts/build
	scripts/day $(DAY)
fuzz:
	scripts/deps test
	scripts/fuzz $(FUZZ_SECONDS)
install:
	scripts/install $(PREFIX)
uninstall:
	scripts/installed remove $(PREFIX)
dist:
	scripts/deps dist
	scripts/dist
dist-tree dist-tarball dist-deb dist-wheel dist-npm:
	scripts/deps dist
	scripts/dist $(@:dist-%=%)
wheel npm: %: dist-%
dist-twice:
	scripts/deps dist
	scripts/dist-twice
test-aarch64:
	scripts/deps dist
	scripts/test-aarch64
test-layers:
	scripts/deps test
	scripts/test-layers $(SYSTEMS)
test-packages: dist
	scripts/deps test
	scripts/test-packages $(SYSTEMS)
	CORDON_DIST=$(CURDIR)/dist scripts/pytest tests/e2e/test_packages.py
