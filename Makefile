# Thin wrappers around meson and scripts/; what takes more than a line is there.
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 300

.PHONY: build deps demo test check format bench day fuzz install uninstall
build:
	scripts/build
deps:
	scripts/deps
demo: deps build
	scripts/demo
test: deps
	scripts/test
check:
	scripts/check
format:
	scripts/format
bench: deps build
	scripts/bench
day: deps build
	scripts/day $(DAY)
fuzz: deps
	scripts/fuzz $(FUZZ_SECONDS)
install:
	scripts/install $(PREFIX)
uninstall:
	scripts/installed remove $(PREFIX)
