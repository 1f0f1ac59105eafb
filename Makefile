# Each target is a plain Python command, for machines without make: python3 .ci/dev.py demo | test | bench
PYTHON ?= python3

.PHONY: help demo test bench
help:  ## Say what there is
	@$(PYTHON) .ci/dev.py || true
demo:  ## Install into .venv and show what the library does
	@$(PYTHON) .ci/dev.py demo
test:  ## Install into .venv and run every check
	@$(PYTHON) .ci/dev.py test
bench:  ## Run the benchmarks; JSON on standard output
	@$(PYTHON) .ci/dev.py bench
