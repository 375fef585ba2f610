# Everything but `deps` and `lint` needs Go, git and make only. Only `deps` installs.
GO       ?= go
LINT     := bin/tools/golangci-lint
FUZZTIME ?= 30s

# The race detector needs a C compiler. `make test RACE=-race` insists on it.
RACE := $(and $(filter 1,$(shell $(GO) env CGO_ENABLED)),$(shell command -v "$$($(GO) env CC)" 2>/dev/null),-race)

.PHONY: demo test test-long deps lint fuzz bench bench-boxes bench-children bench-worktrees docs build

# Go compiles its vet at the first use. Here that is part of the build; in the demo it would
# happen in every box, whose build cache is thrown away.
demo:
	@t=$$(date +%s) && $(MAKE) -s build && $(GO) vet ./cmd/skein-init && echo "build: $$(($$(date +%s) - t)) s" && t=$$(date +%s) && bin/skein demo && echo "demo: $$(($$(date +%s) - t)) s"

# The longest ones first: last, each would have one processor to itself.
test:
	$(GO) test $(RACE) -shuffle=on -timeout 18m ./worktree ./sandbox ./cmd/skein ./orchestrator ./...

# The suites that try a sample in `test` try all: every kill, hundreds of histories, of trees.
test-long:
	SKEIN_LONG=1 $(GO) test -timeout 2h -shuffle=on ./worktree ./orchestrator

deps:
	@.ci/deps

lint:
	@test -x $(LINT) || { echo "lint: no $(LINT): run make deps first" >&2; exit 1; }
	$(LINT) run ./...

fuzz:
	@.ci/fuzz $(FUZZTIME)

bench:
	$(GO) test -run '^$$' -bench . -benchmem ./...

# On disk, and in memory.
bench-worktrees:
	$(GO) test ./worktree -run '^$$' -bench "Writers|Moves" -benchtime 1x
	SKEIN_BENCH_DIR=/dev/shm $(GO) test ./worktree -run '^$$' -bench "Writers|Moves" -benchtime 1x

bench-boxes:
	$(GO) test ./sandbox -run '^$$' -bench 'Costs|Work' -benchtime 50x

# A thousand at once, with the model in a process of its own: readers of files, and with a command each.
bench-children:
	$(GO) test ./cmd/skein -run '^$$' -bench ThousandChildren -benchtime 1x

docs:
	$(GO) test ./docs ./cmd/internal/cli -run 'TestLayersInAgentsFile|TestEvents|TestReference' -update

# Without cgo, since skein-init runs where there may be no C library to load. The demo runs
# its tests with -trimpath too: what is compiled here serves them.
build:
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/ ./cmd/...
