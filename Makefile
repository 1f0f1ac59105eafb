# Each target is a plain Python command, for machines without make: python3 .ci/dev.py demo | test | night | bench
PYTHON ?= python3

.PHONY: help demo test night bench
help:  ## Say what there is
	@$(PYTHON) .ci/dev.py || true
demo:  ## Install into .venv and show what the library does
	@$(PYTHON) .ci/dev.py demo
test:  ## Install into .venv and run every check; a part of the long searches, in CI a larger one
	@$(PYTHON) .ci/dev.py test
night:  ## The same for a night: a hundred times the examples
	@$(PYTHON) .ci/dev.py night
bench:  ## Run the benchmarks; JSON on standard output
	@$(PYTHON) .ci/dev.py bench
